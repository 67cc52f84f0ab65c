/// An invalid acknowledgement of a peer (XEP-0198 §4).
///
/// Stanzas are numbered from 1 in the order in which they were sent to the peer since stream management was enabled.
package struct AcknowledgementFinding: Sendable, Hashable {
    /// The kind of error.
    package enum Fault: Sendable, Hashable {
        /// The peer acknowledged more stanzas than were sent; most servers close the stream (XEP-0198 §6).
        case tooHigh
        /// The peer acknowledged fewer stanzas than were sent before the request, in several consecutive answers. Only
        /// reported for peers that acknowledge only on request.
        case tooLow
        /// The peer acknowledged fewer stanzas than before.
        case backwards
        /// The value is not a number from 0 to 4294967295.
        case unreadable
    }

    /// The kind of error.
    package let fault: Fault
    /// The peer's `h`; 0 if it is unreadable.
    package let count: UInt32
    /// The number of stanzas by which the count is wrong; 0 if it is unreadable.
    package let difference: UInt64
    /// The last stanza at which the peer's count was correct; 0 if it never was.
    package let lastCorrect: UInt64
    /// The first stanza at which the peer's count is known to be wrong.
    package let firstWrong: UInt64
}

/// Compares a peer's acknowledgements with the stanzas sent to it.
struct AcknowledgementAudit: Sendable, Hashable {
    /// Number of consecutive low answers before they are reported; a single low count may only be late.
    private static let lateAnswers = 3

    private struct Lack: Hashable {
        /// Number of stanzas that are missing in the first low answer; later low answers lack at least as many.
        var difference: UInt64
        /// Number of stanzas sent before the request for the first low answer, and before that for the last one.
        var first: UInt64
        var last: UInt64
        var answers = 1
    }

    /// Number of unanswered requests.
    private var requests: UInt64 = 0
    /// Number of stanzas sent before the request; nil unless exactly one is unanswered, because answers to several are
    /// indistinguishable.
    private var asked: UInt64?
    /// Number of stanzas sent when the peer's count was last correct.
    private var lastCorrect: UInt64
    private var lack: Lack?
    /// Whether the peer has acknowledged without a request, so that answers cannot be matched with requests.
    private var hasVolunteered = false
    /// The last finding, which is not repeated.
    private var reported: AcknowledgementFinding?

    /// Creates an audit that starts at the peer's count `count`.
    init(startingAt count: UInt64) { lastCorrect = count }

    /// Handles a request to the peer after `sent` stanzas.
    mutating func request(_ sent: UInt64) {
        asked = requests == 0 ? sent : nil
        requests &+= 1
    }

    /// Handles the loss of the connection: requests on it will not be answered.
    mutating func disconnect() {
        requests = 0
        asked = nil
    }

    /// Handles an acknowledgement of `count` stanzas, no more than were sent and no fewer than before.
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

    /// Returns the finding for an impossible `count` after `sent` stanzas; nil if it was already reported.
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
