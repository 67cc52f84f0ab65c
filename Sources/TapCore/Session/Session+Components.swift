internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// The order in which components see the items of the streams, and each other's effects.
extension Session {
    // MARK: Elements

    mutating func handleElement(_ event: StreamEvent, _ direction: Direction) {
        guard event.head.kind == .nonza else { return handleStanza(event, direction) }
        guard !event.isTruncated else { return context.recordItem(event, direction, .element, level: .info) }
        switch event.head.namespace.namespace {
        case .streams: handleStreamError(event, direction)
        case .tls: perform(startTLS.handle(event, direction, &context))
        case .sasl, .sasl2, .sasl2Legacy: perform(authentication.handle(event, direction, &context))
        case .compression: context.handleCompression(event, direction)
        case .streamManagement, .streamManagement2: handleStreamManagement(event, direction)
        case .dialback: perform(context.handleDialback(event, direction))
        case .componentAccept where context.isNamed("handshake", event, direction),
            .componentConnect where context.isNamed("handshake", event, direction):
            perform(authentication.handleHandshake(event, direction, &context))
        case .bidirectional:
            if direction == .send {
                requests.observeBidirectional()
                context.directions.recv.receiverBytes = context.parse(.send).flatMap(StreamFeatures.itemBytes) ?? .max
            }
            context.recordItem(event, direction, .element, level: .info)
        case .clientState where direction == .send:
            injector.pings.setInactive(context.isNamed("inactive", event, .send), at: context.now.monotonic)
            context.recordItem(event, direction, .element, level: .info)
        default: context.recordItem(event, direction, .element, level: .info)
        }
    }

    private mutating func handleStreamError(_ event: StreamEvent, _ direction: Direction) {
        guard let element = context.parse(direction),
            let condition = SessionContext.streamErrorCondition(element)
        else {
            return context.recordItem(event, direction, .element, level: .info)
        }
        context.judge(streamError: condition, element, direction, unheard(by: direction))
        let text = authentication.recordStreamError(condition, element, event, direction, &context)
        context.noteHandledCount(element, direction)
        context.failStep(condition: condition, text)
    }

    private mutating func handleStreamManagement(_ event: StreamEvent, _ direction: Direction) {
        context.recordItem(event, direction, .element, level: .info)
        if context.isNamed("r", event, direction) {
            liveness.observe(.asked(direction), at: context.now.monotonic)
        } else if context.isNamed("a", event, direction) {
            if direction == .send { injector.pings.acknowledged(at: context.now.monotonic) }
            liveness.observe(.acknowledged(direction), at: context.now.monotonic)
        } else {
            perform(context.handleStreamManagement(event, direction))
        }
    }

    // MARK: Stanzas

    private mutating func handleStanza(_ event: StreamEvent, _ direction: Direction) {
        let head = event.head
        context.info.count(head.kind, direction)
        if direction == .send { injector.pings.heard(at: context.now.monotonic) }
        let type = StanzaType(head, context.directions.bytes(direction))
        switch type {
        case .error where !event.isTruncated:
            guard let (request, failure) = requests.observeError(event, direction, &context) else { break }
            context.handle(failure, request.purpose, direction)
        case .request where head.kind == .iq: handleRequest(event, direction)
        case .result where head.kind == .iq:
            if let request = requests.observeResult(event, direction, &context) {
                perform(context.handleResult(request.purpose, direction))
            }
            roster.observe(event, direction, isPush: false, &context)
        default:
            context.recordItem(event, direction, .stanza, level: .info)
            if head.kind == .presence, head.type != nil { roster.observePresence(event, direction, &context) }
        }
        if direction == .send { software.observe(event, isResult: type == .result, &context) }
    }

    private mutating func handleRequest(_ event: StreamEvent, _ direction: Direction) {
        var record = context.makeRecord(event, direction, .stanza, level: .info)
        let purpose = authentication.purpose(of: event, direction, &record, &context)
        guard requests.observeRequest(event, direction, purpose, consume record, &context) else { return }
        roster.observe(event, direction, isPush: true, &context)
    }

    private enum StanzaType {
        case request, result, error, other

        init(_ head: StanzaHead, _ item: Span<UInt8>) {
            guard let range = head.type?.range else {
                self = .other
                return
            }
            let type = item.slice(range)
            if type.equals("get") || type.equals("set") {
                self = .request
            } else {
                self = type.equals("result") ? .result : type.equals("error") ? .error : .other
            }
        }
    }

    // MARK: Logins that xmpptap performs itself

    /// Handles an element of such a login, and performs the resulting actions.
    mutating func handleBridged(
        _ event: StreamEvent,
        _ direction: Direction,
        _ element: Element,
        _ acts: [SASLBridge.Act],
        wasLoggingIn: Bool
    ) {
        guard !acts.contains(.passOn) else {
            for case .remark(let remark) in acts { context.record(remark) }
            return understand(event, .element, direction)
        }
        let bridged = context.negotiation.bridged
        if direction == .send {
            bridged?.answers(event)
            perform(authentication.handle(event, .send, parsed: element, &context))
        } else {
            bridged?.recordOwn(event, element, acts, &context)
        }
        perform(acts, element.namespaceURI, element, bridged, wasLoggingIn: wasLoggingIn)
    }

    /// Continues with a step that was computed elsewhere.
    mutating func computed(_ step: SlowStep) {
        guard let bridged = context.negotiation.bridged, let (acts, uri) = bridged.handle(step, &context) else {
            return
        }
        perform(acts, uri, nil, bridged, wasLoggingIn: false)
    }

    private mutating func perform(
        _ acts: [SASLBridge.Act],
        _ uri: String,
        _ element: Element?,
        _ bridged: BridgedLogin?,
        wasLoggingIn: Bool
    ) {
        for act in acts { perform(bridged?.perform(act, uri, element, &context) ?? []) }
        BridgedLogin.holdClient(wasLoggingIn: wasLoggingIn, &context)
    }

    // MARK: Effects

    /// Carries out effects in order.
    mutating func perform(_ effects: [SessionEffect]) {
        for effect in effects { perform(effect) }
    }

    private mutating func perform(_ effect: SessionEffect) {
        switch effect {
        case .open(let words, let earlier): open(words, resumes: earlier)
        case .enabled(let element):
            resumption.enable(element, reconnects.client, &context)
            resumption.observeLocation(element, &context)
        case .resumed(let element, let identifier): resume(element, identifier: identifier)
        case .software(let name): software.observe(name, &context)
        case .answerLogin(let bytes): perform(authentication.answer(bytes, &context))
        case .relayLogin(let bytes): authentication.relay(bytes, &context)
        case .authenticated(let element): perform(context.authenticate(element))
        case .refusedLogin(let element): authentication.fail(element, &context)
        }
    }

    /// Opens the session: stanzas flow, in cut-through, under the limits of an authenticated session.
    private mutating func open(_ words: String, resumes earlier: UInt64?) {
        guard context.negotiation.open() else { return }
        reconnects.identify(context.login, context)
        injector.pings.begin(context)
        context.open(words, resumes: earlier)
    }

    // MARK: The end

    /// Records notes about the session as a whole.
    mutating func finishRecords() {
        if context.outlet.isEmpty { context.outlet.showNothing() }
        context.rules?.recordUnsent(&context)
        context.info.unanswered = requests.count + requests.forgotten
        context.negotiation.close()
        context.endTimeline()
        for direction in Direction.allCases { context.recordOpaqueBytes(direction) }
        context.recordDiagnosis(isPartial: isPartial)
        if !reconnects.askAboutLoop(&context) { recordEnd() }
    }

    private mutating func recordEnd() {
        leaveIfFinished()
        context.recordEnd(as: recording?.ending)
    }

    // MARK: Other sessions

    /// Handles the answer about state that sessions share.
    mutating func handle(_ answer: SharedAnswer) {
        switch answer.kind {
        case .loop(let count, let span):
            reconnects.recordLoop(count, span, &context)
            recordEnd()
        case .noLoop: recordEnd()
        case .bindings(let accepted): context.login?.observe(.history(accepted))
        case .mark(let mark): context.outlet.request(.addToJournal(mark))
        case .claim(let claim): context.streamManagement?.endWaiting(by: claim)
        case .resumed(let earlier, let key): resumed(earlier, by: key)
        case .inherited(let legacy):
            roster.inherit(legacy.roster, context)
            resumption.inherit(legacy.counts)
        }
    }
}

// A session that is read from a recording: see ``RecordedSession``.
extension Session {
    /// Whether the items of the recording alone do not show the outcome of the login.
    var isPartial: Bool { recording?.isPartial == true }

    /// Handles the next item of the recording. For the byte counts, its length on the wire is used.
    mutating func receive(_ line: RecordLine, at now: Run.Instant) {
        let record = line.record
        guard let recording, let direction = record.direction, let xml = record.xml else { return }
        recording.observe(record)
        authentication.recall(record.sasl)
        _ = receive(direction, line.content.span.slice(xml), at: now)
        context.info.count(bytes: (record.origin == .tap ? 0 : record.length) &- UInt64(xml.count), direction)
    }

    /// Discards pending steps of the login.
    mutating func forgetUnderWay() { _ = context.timeline.end(nil, at: context.now.monotonic) }

    /// Applies a record that the session cannot make from the items.
    mutating func recall(_ line: RecordLine) { recording?.recall(line, &context) }

    /// Uses the recorded diagnosis if the current code cannot make one; returns false if its cause is unknown here.
    mutating func recall(_ diagnosis: LoginDiagnosis?) -> Bool { recording?.recall(diagnosis, &context) == true }

    /// Ends the session as its last record reports.
    mutating func closed(as record: Record, at now: Run.Instant) {
        context.now = now
        let shown = context.info.ending
        if let (direction, end) = recording?.recallEnd(record, &context) {
            context.judgeEnd(direction, end, unheard(by: direction))
        }
        recording?.recallEnd(record, shown: shown, &context)
        handle(.closed, at: context.now)
    }
}
