/// A peer has acknowledged a number of stanzas that cannot be right (XEP-0198 §4).
///
/// Stanzas are numbered from 1 in the order in which they were sent to the peer since stream management began.
public struct AcknowledgementFinding: Sendable, Hashable {
    /// What is wrong with the number.
    public enum Fault: Sendable, Hashable {
        /// More stanzas than were sent. Most servers close the stream (XEP-0198 §6).
        case tooHigh
        /// Fewer stanzas than were sent before the request, in several answers in a row. Told only of a peer that never
        /// acknowledges without being requested.
        case tooLow
        /// Fewer stanzas than the peer acknowledged before.
        case backwards
        /// No number from 0 to 4294967295.
        case unreadable
    }

    /// What is wrong.
    public let fault: Fault
    /// The `h` of the peer; 0 where it is unreadable.
    public let count: UInt32
    /// By how many stanzas it is wrong; 0 where it is unreadable.
    public let difference: UInt64
    /// The last stanza after which the peer's count was right; 0 where it never was.
    public let lastCorrect: UInt64
    /// The first stanza after which the peer's count is known to be wrong.
    public let firstWrong: UInt64
}

/// Compares what a peer acknowledges with what was sent to it.
struct AcknowledgementAudit: Sendable, Hashable {
    /// A count that is too low may only be late: answers in a row that have to lack stanzas.
    private static let lateAnswers = 3

    private struct Lack: Hashable {
        /// The least number of stanzas that was missing.
        var difference: UInt64
        /// Stanzas that had been sent at the first of the requests, and at the last one.
        var first: UInt64
        var last: UInt64
        var answers = 1
    }

    /// Requests that are not answered.
    private var requests: UInt64 = 0
    /// What had been sent at the request, while it is the only one: answers to several are indistinguishable.
    private var asked: UInt64?
    /// What had been sent when the peer's count was right.
    private var lastCorrect: UInt64
    private var lack: Lack?
    /// The peer has acknowledged without being requested: what answers a request is not known then.
    private var hasVolunteered = false
    /// The last finding, which is not repeated.
    private var reported: AcknowledgementFinding?

    /// An audit that begins when the peer's count is `count`.
    init(startingAt count: UInt64) { lastCorrect = count }

    /// The peer is requested to acknowledge when `sent` stanzas have been sent to it.
    mutating func request(_ sent: UInt64) {
        asked = requests == 0 ? sent : nil
        requests &+= 1
    }

    /// The peer has lost its connection: what was requested there is not answered.
    mutating func disconnect() {
        requests = 0
        asked = nil
    }

    /// The peer has acknowledged `count` stanzas, no more than were sent and no fewer than before.
    mutating func answer(_ count: UInt64) -> AcknowledgementFinding? {
        if requests > 0 { requests &-= 1 } else { hasVolunteered = true }
        guard let asked, !hasVolunteered else {
            if lack == nil || hasVolunteered { lastCorrect = max(lastCorrect, count) }
            return nil
        }
        self.asked = nil
        guard count < asked else {
            lastCorrect = count
            lack = nil
            reported = nil
            return nil
        }
        let difference = asked &- count
        guard var lack, difference >= lack.difference else {
            lack = Lack(difference: difference, first: asked, last: asked)
            return nil
        }
        if asked > lack.last { lack.answers += 1 }
        lack.last = asked
        self.lack = lack
        guard lack.answers >= Self.lateAnswers else { return nil }
        return report(.tooLow, UInt32(truncatingIfNeeded: count), lack.difference, firstWrong: lack.first)
    }

    /// The peer has acknowledged `count`, which cannot be right after `sent` stanzas; nil if it was reported before.
    mutating func report(
        _ fault: AcknowledgementFinding.Fault,
        _ count: UInt32,
        _ difference: UInt64,
        firstWrong sent: UInt64
    ) -> AcknowledgementFinding? {
        if let reported, reported.fault == fault, reported.difference == difference { return nil }
        reported = AcknowledgementFinding(
            fault: fault,
            count: count,
            difference: difference,
            lastCorrect: min(lastCorrect, sent),
            firstWrong: sent
        )
        return reported
    }
}
