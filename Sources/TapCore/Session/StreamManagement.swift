internal import TapRecord
import TapStreamManagement
import XMPPCore

/// The state of stream management (XEP-0198) of a session: the counts of both ends, and a request to resume that waits.
///
/// A class, allocated only if stream management was requested: other sessions store one empty reference. Only
/// ``Outlet`` counts stanzas.
final class StreamManagement {
    /// The event that ends the wait of a request to resume.
    enum Reason: Equatable {
        /// The answer to ``SharedRequest/Kind/claim(_:)``.
        case claim
        /// The counts of the session, which another connection still owns.
        case displacement
        /// The journal's answer about these marks.
        case journal([[UInt8]])
    }

    /// A request to resume that waits.
    struct Waiting {
        /// The largest delay in nanoseconds.
        static let limit: Int64 = 5_000_000_000

        let event: StreamEvent
        let reason: Reason
        let deadline: Int64
        /// Whether the wait has ended.
        fileprivate(set) var isOver = false
        /// Why the direction is not decoded after this element; nil if it is.
        fileprivate(set) var opacity: DirectionRelay.Opacity?
    }

    private var translator: StreamManagementTranslator
    /// A delayed request to resume; nil if there is none.
    private var waiting: Waiting?
    /// A request has waited for another session's counts: it does not wait again.
    private(set) var hasWaited = false
    /// The answer about the session, until the request is decided on.
    private var claim: ResumptionTable.Claim?
    /// The journal's answer to the waiting request, until that request is decided on.
    private var isInJournal: Bool?
    /// The server has named another host for resumption, and the client received it.
    private(set) var namesOtherHost = false
    /// The divergence of the counts was reported by ``takeDivergence()``.
    private var isDivergenceKnown = false

    init(_ options: SessionOptions) { translator = StreamManagementTranslator(translates: options.translatesCounts) }

    // MARK: State

    /// Whether nothing was enabled or requested.
    var isIdle: Bool { waiting == nil && translator.isOff }

    /// Whether stream management is enabled.
    var isOn: Bool { translator.isOn }

    /// Whether the ends have ever counted differently.
    var hasDiverged: Bool { translator.hasDiverged }

    /// The counts of both directions.
    var ledgers: StreamManagementLedgers { translator.ledgers }

    /// The counts for a session that resumes this one; nil without stream management.
    var legacy: StreamManagementLedgers? { translator.legacy }

    /// The difference between the counts of the two ends, in both directions together.
    var divergence: UInt64 {
        Direction.allCases.reduce(0) { sum, direction in
            let (sent, delivered) = (translator.ledgers[direction].sent, translator.ledgers[direction].delivered)
            return sum + (max(sent, delivered) - min(sent, delivered))
        }
    }

    /// Returns once whether the counts have diverged.
    func takeDivergence() -> Bool {
        guard !isDivergenceKnown, translator.hasDiverged else { return false }
        isDivergenceKnown = true
        return true
    }

    /// The server has named another host for resumption.
    func setOtherHost() { namesOtherHost = true }

    // MARK: Stanzas, counted by ``Outlet``

    /// Counts a stanza that was forwarded unchanged.
    @inline(__always)
    func pass(_ direction: Direction) { translator.ledgers[direction].pass() }

    /// Counts a stanza that was forwarded with edits, or by a decision that must be repeated.
    func pass(_ direction: Direction, _ mark: StreamManagementLedger.Mark) { translator.ledgers[direction].pass(mark) }

    /// Counts a stanza that was not forwarded.
    func drop(_ direction: Direction, _ mark: StreamManagementLedger.Mark) { translator.ledgers[direction].drop(mark) }

    /// Counts an injected item: one stanza, or all those in raw bytes.
    func inject(_ item: InjectedItem, _ direction: Direction) {
        // A lost ping would arrive too late.
        // A copy is sent again with its stanza.
        let isMessage = item.event?.head.kind == .message
        let isKept = isMessage && item.number != Injection.copyNumber || item.outlivesConnection
        let kept = isKept ? item.bytes : nil
        for _ in 0..<item.stanzaCount { translator.ledgers[direction].inject(keeping: kept) }
    }

    /// Stores an injected stanza that was not sent on this connection for the next one; returns false without space.
    func keep(lost item: [UInt8], _ direction: Direction) -> Bool { translator.ledgers[direction].keep(lost: item) }

    /// Removes and returns the injected stanzas that were lost with an earlier connection.
    func takeLost() -> [Injection] { translator.ledgers.takeLostInjections() }

    /// Returns the earlier decision about a stanza that is sent again; nil if the stanza is new.
    func retransmission(
        _ event: StreamEvent,
        _ relay: borrowing DirectionRelay
    ) -> StreamManagementLedger.Retransmission? {
        guard translator.ledgers[relay.direction].isRepeating else { return nil }
        let fingerprint = StreamManagementLedger.fingerprint(event.head, relay.decoder.bytes)
        return translator.ledgers[relay.direction].retransmission(fingerprint)
    }

    // MARK: Elements

    /// Translates the decoder's last item.
    func translate(
        _ decoder: borrowing StreamDecoder,
        _ direction: Direction,
        previous: StreamManagementTranslator.Previous
    ) -> StreamManagementTranslator.Translation {
        translator.translate(decoder, direction, previous: previous)
    }

    /// Returns a request for an acknowledgement; nil without stream management.
    func makeRequest(_ direction: Direction) -> [UInt8]? { translator.makeRequest(direction) }

    /// Whether many stanzas are stored until an acknowledgement arrives.
    func wantsRequest(_ direction: Direction) -> Bool { translator.wantsRequest(direction) }

    // MARK: A waiting request to resume

    var isWaiting: Bool { waiting != nil }

    /// When the wait ends at the latest, in nanoseconds of the run; nil without one.
    var deadline: Int64? { waiting?.deadline }

    /// Stores a request to resume until its wait ends.
    func wait(with event: StreamEvent, for reason: Reason, at now: Int64) {
        waiting = Waiting(event: event, reason: reason, deadline: now &+ Waiting.limit)
    }

    /// Ends the wait for the answer about the session.
    func endWaiting(by claim: ResumptionTable.Claim) {
        guard waiting?.reason == .claim else { return }
        waiting?.isOver = true
        self.claim = claim
    }

    /// Ends the wait for another session's counts, or for the journal's answer about these marks. Late answers are
    /// ignored.
    func endWaiting(for reason: Reason, isInJournal: Bool? = nil) {
        guard waiting?.reason == reason else { return }
        waiting?.isOver = true
        self.isInJournal = isInJournal
    }

    /// Ends the wait because its direction is not decoded after the request; returns false if none waits.
    func endWaiting(_ why: DirectionRelay.Opacity) -> Bool {
        guard waiting != nil else { return false }
        waiting?.isOver = true
        waiting?.opacity = why
        return true
    }

    /// Ends a wait at its deadline.
    func expire(at now: Int64) { if let waiting, now >= waiting.deadline { self.waiting?.isOver = true } }

    /// Removes and returns the request after its wait; nil if there is none, or if it still waits.
    func takeWaiting() -> Waiting? {
        guard let waiting, waiting.isOver else { return nil }
        self.waiting = nil
        switch waiting.reason {
        case .claim: break
        case .displacement: hasWaited = true
        // A journal that does not answer in time counts as one that cannot be read.
        case .journal: isInJournal = isInJournal ?? false
        }
        return waiting
    }

    /// Removes and returns the answer about the session; nil if it was not asked.
    func takeClaim() -> ResumptionTable.Claim? { claim.take() }

    /// Forgets answers that the decision on a request did not need.
    func forgetAnswers() { if waiting == nil { (claim, isInJournal) = (nil, nil) } }

    /// Removes and returns the journal's answer; nil if it was not asked.
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
