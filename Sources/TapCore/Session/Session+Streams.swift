internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Streams: headers, end tags and stream errors.
extension Session {
    mutating func handleHeader(_ event: StreamEvent, _ direction: Direction) {
        let head = event.head
        switch direction {
        case .send:
            context.info.version = context.text(head.version, direction)
            if let to = context.text(head.to, direction) { context.info.domain = to }
            askAboutBindings()
            // Stream management belongs to a stream: a new stream has none.
            if event.epoch > 1, context.info.opened == nil, context.streamManagement?.isWaiting != true {
                context.outlet.count(in: nil)
            }
            if let from = context.text(head.from, direction) { context.info.from = from }
            context.info.kind =
                switch context.directions[direction].decoder.contentNamespace {
                case .client: .client
                case .server: .server
                case .componentAccept, .componentConnect: .component
                default: .unknown
                }
        case .recv:
            context.login?.observe(.serverHeader(version: context.text(head.version, direction)))
            if context.info.streams.count < SessionInfo.mostStreams {
                context.info.streams.append(.init(epoch: event.epoch, id: context.text(head.id, direction)))
            }
        }
        if context.options.level >= .info {
            var record = context.makeRecord(event, direction, .streamOpen, level: .info)
            record.message = headerWords(event, direction).map { Prose($0) }
            context.emit(consume record)
        }
        if event.epoch > 1, !isRestartDue(direction) {
            // Only the first is reported; each header has its own record.
            context.note(
                .note,
                context.directions[direction].hasRestartedUncalled ? .verbose : .warn,
                code: "unexpected-restart",
                "unexpected stream restart",
                direction: direction
            )
            context.directions[direction].hasRestartedUncalled = true
        }
        context.directions[direction].mayRestart = false
        awaitFeatures(event, direction)
        timelineHeader(event, direction)
        if direction == .send { context.answerRefused() }
    }

    /// Whether the initiator may open a new stream: after success, or in advance while authentication is in progress.
    func isRestartDue(_ direction: Direction) -> Bool {
        context.directions[direction].mayRestart
            || context.negotiation.mayRestart(
                direction,
                sendEpoch: context.directions.send.decoder.epoch,
                recvEpoch: context.directions.recv.decoder.epoch
            )
    }

    mutating func handleStreamEnd(_ event: StreamEvent, _ direction: Direction) {
        context.directions[direction].hasClosedStream = true
        context.recordItem(event, direction, .streamClose, level: .info)
        if context.info.ending == nil { context.info.ending = .clean(by: direction) }
        context.negotiation.closeStream()
    }

    private mutating func handleStreamElement(_ event: StreamEvent, _ direction: Direction) {
        guard let element = context.parse(direction) else {
            return context.recordItem(event, direction, .element, level: .info)
        }
        guard element.isNamed("error") else { return context.recordItem(event, direction, .element, level: .info) }
        let condition =
            element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name ?? "undefined-condition"
        context.judge(streamError: condition, element, direction, unheard(by: direction))
        var record = context.makeRecord(event, direction, .element, level: .error)
        record.condition = condition
        record.code = "stream-error"
        record.summary = "closes the stream"
        // A wrong component secret is answered with a stream error (XEP-0114 §3).
        if let step = decodeStep(element, direction) {
            record.sasl = step.details
            context.info.authentication = .failed(condition: condition)
        }
        let words = element.childText("text", .streamErrors).map { Prose(context.tools.redactor.disclose(text: $0)) }
        record.message = words
        context.emit(record)
        context.noteHandledCount(element, direction)
        context.failStep(condition: condition, words)
    }

    // MARK: Elements other than stanzas

    mutating func handleElement(_ event: StreamEvent, _ direction: Direction) {
        guard event.head.kind == .nonza else { return handleStanza(event, direction) }
        guard !event.isTruncated else { return context.recordItem(event, direction, .element, level: .info) }
        switch event.head.namespace.namespace {
        case .streams: handleStreamElement(event, direction)
        case .tls: perform(startTLS.handle(event, direction, &context))
        case .sasl, .sasl2, .sasl2Legacy: handleSASL(event, direction)
        case .compression: handleCompression(event, direction)
        case .streamManagement, .streamManagement2: handleStreamManagement(event, direction)
        case .dialback: handleDialback(event, direction)
        case .componentAccept where context.isNamed("handshake", event, direction),
            .componentConnect where context.isNamed("handshake", event, direction):
            handleHandshake(event, direction)
        case .bidirectional:
            if direction == .send {
                requests.observeBidirectional()
                context.directions.recv.receiverBytes = context.parse(.send).flatMap(StreamFeatures.itemBytes) ?? .max
            }
            context.recordItem(event, direction, .element, level: .info)
        case .clientState where direction == .send:
            let isInactive = context.isNamed("inactive", event, .send)
            injector.pings.setInactive(isInactive, at: context.now.monotonic)
            context.recordItem(event, direction, .element, level: .info)
        default: context.recordItem(event, direction, .element, level: .info)
        }
    }

    private mutating func handleCompression(_ event: StreamEvent, _ direction: Direction) {
        context.recordItem(event, direction, .element, level: .info)
        if direction == .send, context.isNamed("compress", event, direction) {
            context.beginStep(.compression, awaits: .server)
        }
        if direction == .recv, context.isNamed("failure", event, direction) {
            context.finishStep(.compression, .failed())
        }
        guard direction == .recv, context.isNamed("compressed", event, direction) else { return }
        context.finishStep(.compression, .ok)
        guard !context.options.isDecoded else {
            for direction in Direction.allCases { context.directions[direction].mayRestart = true }
            return
        }
        context.note(
            code: "compression",
            "the streams are compressed from here on and cannot be decoded",
            direction: direction
        )
        context.turnOpaque(.send, .compression)
        context.turnOpaque(.recv, .compression)
    }

    private mutating func handleStreamManagement(_ event: StreamEvent, _ direction: Direction) {
        context.recordItem(event, direction, .element, level: .info)
        if context.isNamed("r", event, direction) {
            return liveness.observe(.asked(direction), at: context.now.monotonic)
        }
        if context.isNamed("a", event, direction) {
            if direction == .send { injector.pings.acknowledged(at: context.now.monotonic) }
            return liveness.observe(.acknowledged(direction), at: context.now.monotonic)
        }
        if direction == .send, context.isNamed("resume", event, direction) {
            return context.beginStep(.resume, awaits: .server)
        }
        if direction == .send, context.isNamed("enable", event, direction) { noteEnable() }
        guard direction == .recv else { return }
        if context.isNamed("failed", event, direction), context.timeline.isUnderWay(.resume) {
            let condition = context.parse(direction)?.firstChild { $0.namespace == .stanzaErrors }?.name
            return context.finishStep(.resume, .failed(condition: condition))
        }
        if context.isNamed("enabled", event, direction), let enabled = context.parse(direction) {
            context.info.enableFault = nil
            context.login?.observe(.established)
            noteEnabled(enabled)
        }
        guard context.isNamed("resumed", event, direction), context.info.opened == nil else { return }
        context.finishStep(.resume, .ok)
        resume(context.parse(direction))
    }

    /// Warns of a request for stream management that was sent too early or not offered (XEP-0198 §3).
    private mutating func noteEnable() {
        let fault: Prose
        if context.negotiation.isBinding {
            fault = "the client requested stream management before the result of resource binding"
        } else if context.info.features.contains("bind"),
            !context.info.features.contains(where: { $0.hasPrefix("sm:") })
        {
            fault = "the client requested stream management, which the server does not offer"
        } else {
            return
        }
        context.info.enableFault = fault
        context.note(code: LoginCause.earlyEnable.rawValue, "\(fault) (XEP-0198 §3)", direction: .send)
    }

    /// Opens the session: stanzas flow, in cut-through, under the limits of an authenticated session.
    ///
    /// - Parameter earlier: The session that this one continues.
    mutating func becomeOpen(_ words: String, resumes earlier: UInt64? = nil) {
        guard context.negotiation.open() else { return }
        context.info.opened = context.now
        reconnects.identify(context.login, context)
        context.login = nil
        for direction in Direction.allCases {
            context.directions[direction].limits = context.options.limits
            context.cutThrough(direction)
        }
        injector.pings.begin(context)
        becameReady()
        noteReady(words, resumes: earlier)
    }
}
