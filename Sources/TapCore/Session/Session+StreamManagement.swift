internal import TapRecord
import XMPPCore

/// A session's state of stream management (XEP-0198).
///
/// A class, allocated only if stream management was requested: other sessions store one empty reference.
final class StreamManagement {
    var translator: StreamManagementTranslator
    /// A delayed request to resume; nil if there is none.
    var waiting: Waiting?
    /// A request has waited for another session's counts: it does not wait again.
    var hasWaited = false
    /// The journal's answer to the waiting request, until that request is decided on.
    var isInJournal: Bool?
    /// The server has named another host for resumption, and the client received it.
    var namesOtherPlace = false
    /// Both directions are stored because the counts have diverged.
    var isStored = false

    /// A request to resume a session that another connection still owns, or that the journal may contain.
    struct Waiting {
        /// The largest delay in nanoseconds.
        static let limit: Int64 = 5_000_000_000

        let event: StreamEvent
        /// The marks that are searched in the journal; empty while another session's counts are awaited.
        let marks: [[UInt8]]
        let deadline: Int64
        /// Whether the wait has ended.
        var isOver = false
        /// Why the direction is not decoded after this element; nil if it is.
        var opacity: DirectionRelay.Opacity?
    }

    /// Whether nothing was enabled or requested.
    var isIdle: Bool { waiting == nil && translator.isOff }

    init(_ options: SessionOptions) { translator = StreamManagementTranslator(translates: options.translatesCounts) }

    /// Counts a stanza that was forwarded unchanged.
    @inline(__always)
    func pass(_ direction: Direction) { translator.ledgers[direction].pass() }
}

// Stream management: stanzas are counted for both ends, and acknowledgements translated if the counts have diverged.
extension Session {
    /// Whether the ends have ever counted differently. From then on, items are forwarded only after they were decided
    /// on.
    var hasDiverged: Bool { streamManagement?.translator.hasDiverged == true }

    /// The difference between the counts of the two ends, in both directions together.
    public var divergence: UInt64 {
        guard let ledgers = streamManagement?.translator.ledgers else { return 0 }
        return Direction.allCases.reduce(0) { sum, direction in
            let (sent, delivered) = (ledgers[direction].sent, ledgers[direction].delivered)
            return sum + (max(sent, delivered) - min(sent, delivered))
        }
    }

    // MARK: Stanzas

    /// Counts a stanza according to the decision on it.
    mutating func count(
        _ event: StreamEvent,
        _ direction: Direction,
        _ decision: ItemDecision,
        _ streamManagement: StreamManagement
    ) {
        guard event.item == .element, event.head.kind != .nonza else { return }
        switch decision {
        // If the stanza is retransmitted, a decision from a rule's memory must be repeated.
        case .pass where rules?.ruling?.isStateful != true: streamManagement.pass(direction)
        case .pass, .replace: streamManagement.translator.ledgers[direction].pass(mark(event, direction))
        case .drop, .answer: streamManagement.translator.ledgers[direction].drop(mark(event, direction))
        case .buffer, .refuse, .fault: break
        }
        followDivergence(streamManagement)
    }

    private func mark(_ event: StreamEvent, _ direction: Direction) -> StreamManagementLedger.Mark {
        let bytes = directions.bytes(direction)
        return StreamManagementLedger.Mark(
            fingerprint: StreamManagementLedger.fingerprint(event.head, bytes),
            rule: rules?.ruling?.answers ?? 0
        )
    }

    /// Counts an injection into a direction: one stanza, or all those in raw bytes.
    mutating func inject(_ item: InjectedItem, _ direction: Direction, _ streamManagement: StreamManagement) {
        // A lost ping would arrive too late.
        // A copy is sent again with its stanza.
        let isMessage = item.event?.head.kind == .message
        let isKept = isMessage && item.number != Injection.copyNumber || item.outlivesConnection
        let kept = isKept ? item.bytes : nil
        for _ in 0..<item.stanzaCount { streamManagement.translator.ledgers[direction].inject(keeping: kept) }
        followDivergence(streamManagement)
    }

    /// Once the counts have diverged, acknowledgements must be decided on before they are forwarded, until the session
    /// ends. A partly forwarded one is still correct: it counts earlier stanzas.
    private mutating func followDivergence(_ streamManagement: StreamManagement) {
        guard streamManagement.translator.hasDiverged, !streamManagement.isStored else { return }
        streamManagement.isStored = true
        if let resumption { noteDivergence(resumption) }
        for direction in Direction.allCases { storeAndForward(direction) }
        guard streamManagement.namesOtherPlace else { return }
        note(
            .note,
            .warn,
            code: "other-location",
            "stanzas were injected or dropped; the session can be resumed only through xmpptap, "
                + "not at the other host that the server has named",
            direction: .recv
        )
    }

    /// Requests an acknowledgement if many stanzas are stored until one arrives.
    mutating func requestAcknowledgement(_ direction: Direction, _ streamManagement: StreamManagement) {
        guard streamManagement.translator.wantsRequest(direction), directions[direction].isStoring,
            mayInsert(direction), !negotiation.isFinished,
            let request = streamManagement.translator.makeRequest(direction)
        else { return }
        say([(.element, request)], to: direction.destination)
    }

    // MARK: Elements

    /// Translates an element that contains a count for its receiver; repeats the decision on a retransmitted stanza.
    mutating func interceptStreamManagement(
        _ event: StreamEvent,
        _ direction: Direction,
        _ reading: inout ItemReading
    ) -> ItemDecision? {
        // A recording contains the earlier findings, and may lack stanzas.
        guard event.item == .element, recording == nil else { return nil }
        guard event.head.kind == .nonza else { return decideRepeated(event, direction) }
        guard !event.isTruncated else { return nil }
        if event.head.namespace.namespace == .streams { return interceptRedirect(direction) }
        guard StreamManagementTranslator.concerns(event.head) else { return nil }
        let streamManagement = streamManagement ?? StreamManagement(options)
        guard let previous = previous(event, direction, streamManagement) else {
            self.streamManagement = streamManagement
            return .buffer(until: .counts)
        }
        let translation = streamManagement.translator.translate(
            directions[direction].decoder,
            direction,
            previous: previous
        )
        self.streamManagement = streamManagement.isIdle ? nil : streamManagement
        reading = .streamManagement(translation)
        if translation.answer != nil { return .answer }
        return translation.bytes.map { .replace(EditedItem(bytes: $0, words: translation.words)) }
    }

    /// A stanza that was dropped before the session was resumed is dropped again.
    private func decideRepeated(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard let streamManagement else { return nil }
        let repeated = streamManagement.translator.ledgers[direction].retransmission(
            mark(event, direction).fingerprint
        )
        return repeated?.outcome == .dropped ? .drop : nil
    }

    /// Decides on a redirect (RFC 6120 §4.9.3.19) of a client that needs xmpptap until its session ends: it receives a
    /// reset instead.
    private func interceptRedirect(_ direction: Direction) -> ItemDecision? {
        guard direction == .recv, hasDiverged, options.translatesCounts,
            let bytes = StreamManagementTranslator.withoutRedirect(directions.recv.decoder)
        else { return nil }
        return .replace(EditedItem(bytes: bytes, words: "reset instead of see-other-host"))
    }

    /// Returns what is known of the session that an element requests to resume; nil if the request must wait for that.
    private mutating func previous(
        _ event: StreamEvent,
        _ direction: Direction,
        _ streamManagement: StreamManagement
    ) -> StreamManagementTranslator.Previous? {
        guard direction == .send, info.opened == nil else { return .unknown }
        var user = info.user
        if event.head.namespace.namespace.isSASL2 {
            // The user name is not known yet: the login is decoded when it is recorded.
            var login = sasl
            guard let element = try? tools.parser.parse(directions.send.decoder) else { return .unknown }
            _ = login.decode(element, .send)
            user = login.user
        }
        let isInJournal = streamManagement.isInJournal.take()
        let mayWait = directions.send.isStoring && !negotiation.isRefusing
        switch claimResumption(direction, user: user) {
        case .unknown: return .unknown
        case .ready(let ledgers): return .known(ledgers)
        case .connected(let session):
            guard !streamManagement.hasWaited, mayWait else { return .lost }
            wait(with: event, streamManagement)
            enqueue(.displace(session))
            return nil
        case .unlisted(let marks):
            if let isInJournal { return isInJournal ? .lost : .unknown }
            guard mayWait else { return .unknown }
            wait(with: event, searching: marks, streamManagement)
            enqueue(.searchJournal(marks))
            return nil
        case .lost: return .lost
        }
    }

    private func wait(with event: StreamEvent, searching marks: [[UInt8]] = [], _ streamManagement: StreamManagement) {
        streamManagement.waiting = StreamManagement.Waiting(
            event: event,
            marks: marks,
            deadline: now.monotonic &+ StreamManagement.Waiting.limit
        )
    }

    /// Ends the wait of a request to resume: the journal was searched for these marks, or, without marks, another
    /// session has left its counts. Late answers are ignored.
    func endWaiting(for marks: [[UInt8]], isInJournal: Bool? = nil) {
        guard let streamManagement, let waiting = streamManagement.waiting, waiting.marks == marks else { return }
        streamManagement.waiting?.isOver = true
        streamManagement.isInJournal = isInJournal
    }

    /// Ends the wait of a request to resume, since its direction is not decoded after it; returns false if none waits.
    mutating func endWaiting(_ why: DirectionRelay.Opacity) -> Bool {
        guard streamManagement?.waiting != nil else { return false }
        streamManagement?.waiting?.isOver = true
        streamManagement?.waiting?.opacity = why
        directions.send.hasInput = true
        return true
    }

    /// Handles a request to resume again after its wait.
    mutating func goesOnResuming() -> Bool {
        guard let streamManagement, let waiting = streamManagement.waiting, waiting.isOver else { return false }
        streamManagement.waiting = nil
        if waiting.marks.isEmpty {
            streamManagement.hasWaited = true
        } else if streamManagement.isInJournal == nil {
            // A journal that does not answer in time counts as one that cannot be read.
            streamManagement.isInJournal = false
        }
        release(.send)
        handle(waiting.event, .send)
        guard let opacity = waiting.opacity else {
            settleMode(.send)
            return true
        }
        if !endWaiting(opacity) { turnOpaque(.send, opacity) }
        return true
    }

    /// Records the fault of a count, answers a request that the server must not receive, and injects lost stanzas
    /// again.
    mutating func handle(_ translation: StreamManagementTranslator.Translation, _ direction: Direction) {
        if translation.bytes != nil { counters.count(.translated) }
        if let finding = translation.finding { report(finding, direction) }
        if let answer = translation.answer {
            say([(.element, answer)], to: direction.source)
            finish(.resume, .failed(condition: "item-not-found", "xmpptap no longer has this session's counts"))
        }
        guard let streamManagement, direction == .recv, info.opened != nil else { return }
        for direction in Direction.allCases {
            for item in streamManagement.translator.ledgers[direction].takeLost() {
                inject(Injection(item, to: direction.destination, number: Injection.repeatedNumber))
            }
        }
    }

    /// A peer ends its stream because an acknowledgement is too high (XEP-0198 §6): it sends its own counts, which the
    /// other end does not know if the counts have diverged.
    mutating func noteHandledCount(_ error: Element, _ direction: Direction) {
        guard hasDiverged, let ledger = streamManagement?.translator.ledgers[direction],
            let told = error.firstChild(where: { $0.isNamed("handled-count-too-high") }),
            let h = told.attribute("h").flatMap({ UInt32($0) }),
            let sent = told.attribute("send-count").flatMap({ UInt32($0) })
        else { return }
        note(
            .note,
            .info,
            code: "handled-count-translated",
            "in the counts of the \(direction.source.other.name): h=\(ledger.receiverCount(h)), "
                + "send-count=\(ledger.receiverCount(sent))",
            direction: direction
        )
    }

    private mutating func report(_ finding: AcknowledgementFinding, _ direction: Direction) {
        let (peer, other) = (direction.source.name, direction.source.other.name)
        let fault: (code: Attributes.Value, words: String) =
            switch finding.fault {
            case .tooHigh: ("too-high", "\(finding.difference) more than were sent to it")
            case .tooLow: ("too-low", "\(finding.difference) fewer than were sent to it, in several answers in a row")
            case .backwards: ("backwards", "\(finding.difference) fewer than it acknowledged before")
            case .unreadable: ("unreadable", "")
            }
        let words =
            finding.fault == .unreadable
            ? "the \(peer) sent an acknowledgement without a number (h)"
            : "the \(peer) acknowledged h=\(finding.count), \(fault.words)"
        let correct = finding.lastCorrect > 0 ? "was right after stanza \(finding.lastCorrect) and " : ""
        note(
            .note,
            .warn,
            code: "wrong-acknowledgement",
            "\(words); its count of the \(other)'s stanzas \(correct)is wrong after stanza \(finding.firstWrong)",
            direction: direction,
            details: [
                "fault": fault.code, "h": .integer(Int64(finding.count)),
                "difference": .integer(Int64(clamping: finding.difference)),
                "last_correct": .integer(Int64(clamping: finding.lastCorrect)),
                "first_wrong": .integer(Int64(clamping: finding.firstWrong)),
            ]
        )
    }
}
