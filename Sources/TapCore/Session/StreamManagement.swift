internal import TapRecord
import TapStreamManagement
import XMPPCore

/// The stream management (XEP-0198) of a session: the stanza counts of both ends, and a request to resume that waits.
///
/// A class, allocated only if stream management was requested: other sessions store only a nil reference. Only
/// ``Outlet`` counts stanzas.
final class StreamManagement {
    /// The event for which a request to resume waits.
    enum Reason: Equatable {
        /// The answer to ``SharedRequest/Kind/claim(_:)``.
        case claim
        /// The stanza counts of the session, which another connection still owns.
        case displacement
        /// The answer of the journal about these marks.
        case journal([[UInt8]])
    }

    /// A request to resume that waits.
    struct Waiting {
        /// The longest wait in nanoseconds.
        static let limit: Int64 = 5_000_000_000

        let event: StreamEvent
        let reason: Reason
        let deadline: Int64
        /// Whether the wait has ended.
        fileprivate(set) var isOver = false
        /// Why the direction is not decoded after this request; nil if it is.
        fileprivate(set) var undecodedReason: DirectionRelay.UndecodedReason?
    }

    private var translator: StreamManagementTranslator
    /// The request to resume that waits; nil if none waits.
    private var waiting: Waiting?
    /// Whether a request has waited for the counts of a connected session. It does not wait for them again.
    private(set) var hasWaited = false
    /// The answer about the session to be resumed, until the request is decided on.
    private var claim: ResumptionTable.Claim?
    /// The journal's answer about the request, until the request is decided on.
    private var isInJournal: Bool?
    /// Whether the server has named another host for resumption, and the client has received it.
    private(set) var namesOtherHost = false
    /// Whether ``detectDivergence()`` has reported that the counts diverged.
    private var isDivergenceKnown = false

    init(_ options: SessionOptions) { translator = StreamManagementTranslator(translates: options.translatesCounts) }

    // MARK: State

    /// Whether stream management is neither enabled nor requested.
    var isIdle: Bool { waiting == nil && translator.isOff }

    /// Whether stream management is enabled.
    var isOn: Bool { translator.isOn }

    /// Whether the stanza counts of the two ends have ever differed.
    var hasDiverged: Bool { translator.hasDiverged }

    /// The stanza counts of both directions.
    var ledgers: StreamManagementLedgers { translator.ledgers }

    /// The stanzas that were counted on both legs since stream management was enabled (XEP-0198 §4); nil before that.
    var counts: Attributes? {
        let (send, recv) = (translator.ledgers.send, translator.ledgers.recv)
        guard translator.isOn, send.isCounting, recv.isCounting else { return nil }
        return [
            "from_client": .integer(Int64(clamping: send.sent)), "to_server": .integer(Int64(clamping: send.delivered)),
            "from_server": .integer(Int64(clamping: recv.sent)), "to_client": .integer(Int64(clamping: recv.delivered)),
        ]
    }

    /// The stanza counts for a session that resumes this one; nil without stream management.
    var legacy: StreamManagementLedgers? { translator.legacy }

    /// The difference between the stanza counts of the two ends, summed over both directions.
    var divergence: UInt64 {
        Direction.allCases.reduce(0) { sum, direction in
            let (sent, delivered) = (translator.ledgers[direction].sent, translator.ledgers[direction].delivered)
            return sum + (max(sent, delivered) - min(sent, delivered))
        }
    }

    /// Returns whether the counts have diverged; true only once.
    func detectDivergence() -> Bool {
        guard !isDivergenceKnown, translator.hasDiverged else { return false }
        isDivergenceKnown = true
        return true
    }

    /// Stores that the server has named another host for resumption.
    func setOtherHost() { namesOtherHost = true }

    // MARK: Stanzas, counted by ``Outlet``

    /// Counts a stanza that was forwarded unchanged.
    @inline(__always)
    func pass(_ direction: Direction) { translator.ledgers[direction].pass() }

    /// Counts a stanza that was forwarded with edits, or by a decision that must be repeated for its retransmission.
    func pass(_ direction: Direction, _ mark: StreamManagementLedger.Mark) { translator.ledgers[direction].pass(mark) }

    /// Counts a stanza that was not forwarded.
    func drop(_ direction: Direction, _ mark: StreamManagementLedger.Mark) { translator.ledgers[direction].drop(mark) }

    /// Counts an injected item: one stanza, or all stanzas in raw bytes.
    func inject(_ item: InjectedItem, _ direction: Direction) {
        // Only messages and the stanzas of rules are kept for a later connection. A ping would arrive too late, and a
        // copy is sent again together with its stanza.
        let isMessage = item.event?.head.kind == .message
        let isKept = isMessage && item.number != Injection.copyNumber || item.outlivesConnection
        let kept = isKept ? item.bytes : nil
        for _ in 0..<item.stanzaCount { translator.ledgers[direction].inject(keeping: kept) }
    }

    /// Keeps an injected stanza that was not sent on this connection for the next one; returns false if there is no
    /// space.
    func keep(lost item: [UInt8], _ direction: Direction) -> Bool { translator.ledgers[direction].keep(lost: item) }

    /// Removes and returns the injected stanzas that were lost with an earlier connection.
    func takeLost() -> [Injection] { translator.ledgers.takeLostInjections() }

    /// Returns the earlier decision about a retransmitted stanza; nil if the stanza is new.
    func retransmission(
        _ event: StreamEvent,
        _ relay: borrowing DirectionRelay
    ) -> StreamManagementLedger.Retransmission? {
        guard translator.ledgers[relay.direction].isRepeating else { return nil }
        let fingerprint = StreamManagementLedger.fingerprint(event.head, relay.decoder.bytes)
        return translator.ledgers[relay.direction].retransmission(fingerprint)
    }

    // MARK: Elements

    /// Translates the counts in the decoder's last item.
    func translate(
        _ decoder: borrowing StreamDecoder,
        _ direction: Direction,
        previous: StreamManagementTranslator.Previous
    ) -> StreamManagementTranslator.Translation {
        translator.translate(decoder, direction, previous: previous)
    }

    /// Returns a request for an acknowledgement; nil without stream management.
    func makeRequest(_ direction: Direction) -> [UInt8]? { translator.makeRequest(direction) }

    /// Returns whether to request an acknowledgement, because many stanzas are stored until the next one.
    func wantsRequest(_ direction: Direction) -> Bool { translator.wantsRequest(direction) }

    // MARK: A waiting request to resume

    var isWaiting: Bool { waiting != nil }

    /// The time at which the wait ends at the latest, in nanoseconds of the run; nil if no request waits.
    var deadline: Int64? { waiting?.deadline }

    /// Stores a request to resume until its wait ends.
    func wait(with event: StreamEvent, for reason: Reason, at now: Int64) {
        waiting = Waiting(event: event, reason: reason, deadline: now &+ Waiting.limit)
    }

    /// Ends the wait for the answer about the session to be resumed.
    func endWaiting(by claim: ResumptionTable.Claim) {
        guard waiting?.reason == .claim else { return }
        waiting?.isOver = true
        self.claim = claim
    }

    /// Ends the wait for a connected session's counts, or for the journal's answer about these marks. Ignores late
    /// answers.
    func endWaiting(for reason: Reason, isInJournal: Bool? = nil) {
        guard waiting?.reason == reason else { return }
        waiting?.isOver = true
        self.isInJournal = isInJournal
    }

    /// Ends the wait because the direction is not decoded after the request; returns false if no request waits.
    func endWaiting(_ why: DirectionRelay.UndecodedReason) -> Bool {
        guard waiting != nil else { return false }
        waiting?.isOver = true
        waiting?.undecodedReason = why
        return true
    }

    /// Ends a wait at its deadline.
    func expire(at now: Int64) { if let waiting, now >= waiting.deadline { self.waiting?.isOver = true } }

    /// Removes and returns the request after its wait has ended; nil otherwise.
    func takeWaiting() -> Waiting? {
        guard let waiting, waiting.isOver else { return nil }
        self.waiting = nil
        switch waiting.reason {
        case .claim: break
        case .displacement: hasWaited = true
        // If the journal does not answer in time, it counts as unreadable.
        case .journal: isInJournal = isInJournal ?? false
        }
        return waiting
    }

    /// Removes and returns the answer about the session to be resumed; nil if it was not requested.
    func takeClaim() -> ResumptionTable.Claim? { claim.take() }

    /// Removes the answers that the decision on a request did not need.
    func forgetAnswers() { if waiting == nil { (claim, isInJournal) = (nil, nil) } }

    /// Removes and returns the journal's answer; nil if it was not requested.
    func takeJournalAnswer() -> Bool? { isInJournal.take() }
}

extension StreamManagementLedgers {
    /// Removes and returns the injected stanzas that were lost with an earlier connection, to be injected again.
    mutating func takeLostInjections() -> [Injection] {
        var lost: [Injection] = []
        for direction in Direction.allCases {
            for item in self[direction].takeLost() {
                lost.append(Injection(item, to: direction.destination, number: Injection.repeatedNumber))
            }
        }
        return lost
    }
}
