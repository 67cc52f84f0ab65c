internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// Follows the streams of both directions: headers, restarts, ends, compression, and the elements of stream management.
struct Streams {
    /// Whether the session had begun before it was first observed: its stream headers are not login steps.
    private var isJoined = false

    /// The session had begun before it was first observed.
    mutating func join(_ context: inout SessionContext) {
        isJoined = context.negotiation.open()
        context.login = nil
    }

    /// TLS is decrypted from here on: in a session that was joined, a login begins, regardless of the state before.
    mutating func beginLogin(_ context: inout SessionContext) {
        guard isJoined else { return }
        isJoined = false
        context.login = LoginObserver()
        context.negotiation.reopen()
    }

    // MARK: Headers

    func handleHeader(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        let head = event.head
        switch direction {
        case .send: Self.observeClientHeader(event, &context)
        case .recv:
            context.login?.observe(.serverHeader(version: context.text(head.version, direction)))
            if context.info.streams.count < SessionInfo.mostStreams {
                context.info.streams.append(.init(epoch: event.epoch, id: context.text(head.id, direction)))
            }
        }
        if context.options.level >= .info {
            var record = context.makeRecord(event, direction, .streamOpen, level: .info)
            record.message = Self.headerWords(event, direction, context.info.kind).map { Prose($0) }
            context.emit(consume record)
        }
        if event.epoch > 1, !context.isRestartDue(direction) {
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
        context.negotiation.bridged?.handleHeader(event, direction, &context)
        addToTimeline(event, direction, &context)
        if direction == .send { context.answerRefused() }
    }

    private static func observeClientHeader(_ event: StreamEvent, _ context: inout SessionContext) {
        let head = event.head
        context.info.version = context.text(head.version, .send)
        if let to = context.text(head.to, .send) { context.info.domain = to }
        context.askAboutBindings()
        // Stream management belongs to a stream: a new stream has none.
        if event.epoch > 1, context.info.opened == nil, context.streamManagement?.isWaiting != true {
            context.outlet.count(in: nil)
        }
        if let from = context.text(head.from, .send) { context.info.from = from }
        context.info.kind =
            switch context.directions.send.decoder.contentNamespace {
            case .client: .client
            case .server: .server
            case .componentAccept, .componentConnect: .component
            default: .unknown
            }
    }

    /// The description of a header besides its addresses; nil for clients with version 1.0.
    private static func headerWords(
        _ event: StreamEvent,
        _ direction: Direction,
        _ kind: SessionInfo.StreamKind
    ) -> String? {
        var words: [String] = []
        switch kind {
        case .client, .unknown: break
        case .server: if direction == .send { words.append("of a server") }
        // A component's header has no version (XEP-0114 §3).
        case .component: return direction == .send ? "of a component" : nil
        }
        if kind != .unknown, event.head.version == nil { words.append("before version 1.0") }
        return words.isEmpty ? nil : words.joined(separator: ", ")
    }

    private func addToTimeline(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        guard !context.negotiation.isRefusing, !isJoined else { return }
        let epoch = Attributes.Value.integer(Int64(clamping: event.epoch))
        switch direction {
        case .send:
            var details = Attributes()
            details.reserveCapacity(2)
            details.append("epoch", epoch)
            details.append("to", context.info.domain.map { .string($0) })
            context.beginStep(.streamOpen, awaits: .server, details: details)
        case .recv:
            context.finishStep(.streamOpen, .ok, details: ["epoch": epoch])
            // A stream without a version has no features (RFC 6120 §4.7.5).
            if event.head.version != nil { context.beginStep(.features, awaits: .server, details: ["epoch": epoch]) }
        }
    }

    // MARK: Ends

    static func handleEnd(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        context.directions[direction].hasClosedStream = true
        context.recordItem(event, direction, .streamClose, level: .info)
        if context.info.ending == nil { context.info.ending = .clean(by: direction) }
        context.negotiation.closeStream()
    }

    /// The condition of a stream error; nil for another element.
    static func errorCondition(_ element: Element) -> String? {
        guard element.isNamed("error") else { return nil }
        return element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name
            ?? "undefined-condition"
    }

    // MARK: Compression

    static func handleCompression(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        context.recordItem(event, direction, .element, level: .info)
        if direction == .send, context.isNamed("compress", event, direction) {
            context.beginStep(.compression, awaits: .server)
        }
        if direction == .recv, context.isNamed("failure", event, direction) {
            context.finishStep(.compression, .failed())
        }
        guard direction == .recv, context.isNamed("compressed", event, direction) else { return [] }
        context.finishStep(.compression, .ok)
        guard !context.options.isDecoded else {
            for direction in Direction.allCases { context.directions[direction].mayRestart = true }
            return []
        }
        context.note(
            code: "compression",
            "the streams are compressed from here on and cannot be decoded",
            direction: direction
        )
        return [.turnOpaque(.send, .compression), .turnOpaque(.recv, .compression)]
    }

    // MARK: Stream management

    /// Handles an element that starts stream management or resumes a session (XEP-0198 §3, §5), after its record.
    static func handleStreamManagement(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        guard direction == .recv else {
            if context.isNamed("resume", event, direction) {
                context.beginStep(.resume, awaits: .server)
            } else if context.isNamed("enable", event, direction) {
                observeEnable(&context)
            }
            return []
        }
        if context.isNamed("failed", event, direction), context.timeline.isUnderWay(.resume) {
            let condition = context.parse(direction)?.firstChild { $0.namespace == .stanzaErrors }?.name
            context.finishStep(.resume, .failed(condition: condition))
        } else if context.isNamed("enabled", event, direction), let enabled = context.parse(direction) {
            context.info.enableFault = nil
            context.login?.observe(.established)
            return [.enabled(enabled)]
        } else if context.isNamed("resumed", event, direction), context.info.opened == nil {
            context.finishStep(.resume, .ok)
            return [.resumed(context.parse(direction))]
        }
        return []
    }

    /// Warns of a request for stream management that was sent too early or not offered (XEP-0198 §3).
    private static func observeEnable(_ context: inout SessionContext) {
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
}

extension SessionContext {
    /// Whether the initiator may open a new stream: after success, or in advance while authentication is in progress.
    func isRestartDue(_ direction: Direction) -> Bool {
        directions[direction].mayRestart
            || negotiation.mayRestart(
                direction,
                sendEpoch: directions.send.decoder.epoch,
                recvEpoch: directions.recv.decoder.epoch
            )
    }
}
