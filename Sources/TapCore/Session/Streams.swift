internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// Tracks the stream headers of both directions.
struct Streams {
    /// Whether the session had begun before it was first observed, so that its stream headers are not login steps.
    private var isJoined = false

    /// Handles a session that had begun before it was first observed, possibly inside TLS that is not decrypted.
    mutating func join(inTLS: Bool, _ context: inout SessionContext) {
        isJoined = context.negotiation.open()
        context.login = nil
        context.finishStep(.connect, .skipped("before the capture began"))
        guard inTLS else { return }
        context.finishStep(.tls, .skipped("TLS began before the capture and is not decrypted"))
        context.negotiation.stopDecoding(nil)
        for direction in Direction.allCases { context.stopDecoding(direction, .tls) }
    }

    /// Starts to track a login in a joined session, because its TLS is decrypted from here on.
    mutating func beginLogin(_ context: inout SessionContext) {
        guard isJoined else { return }
        isJoined = false
        context.login = LoginObserver()
        context.negotiation.reopen()
    }

    // MARK: Items

    /// Handles a stream header, stream end or features element that is not forwarded.
    func handleHidden(
        _ event: StreamEvent,
        _ direction: Direction,
        _ offer: StreamFeatures?,
        _ context: inout SessionContext
    ) -> [SessionEffect] {
        switch event.item {
        case .header: handleHeader(event, direction, &context)
        case .end: context.handleStreamEnd(event, direction)
        default: return context.handleFeatures(event, offer)
        }
        return []
    }

    func handleHeader(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        let head = event.head
        switch direction {
        case .send: Self.observeClientHeader(event, &context)
        case .recv:
            context.login?.observe(.serverHeader(version: context.text(head.version, direction)))
            if context.info.streams.count < SessionInfo.maximumStreams {
                context.info.streams.append(.init(epoch: event.epoch, id: context.text(head.id, direction)))
            }
        }
        if context.options.level >= .info {
            var record = context.makeRecord(event, direction, .streamOpen, level: .info)
            record.message = Self.headerRemarks(event, direction, context).map { Prose($0) }
            context.emit(consume record)
        }
        if event.epoch > 1, !context.isRestartDue(direction) {
            // Only the first unexpected restart is a warning, because each header has a record.
            context.report(
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
        // Stream management ends with its stream.
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

    /// Returns a description of a header without its addresses; nil for a client with version 1.0.
    private static func headerRemarks(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: borrowing SessionContext
    ) -> String? {
        let kind = context.info.kind
        var remarks: [String] = []
        // The bytes on the wire differ: a stream opening of a WebSocket has the same facts.
        if context.options.isBOSH { remarks.append("attributes of a BOSH body") }
        switch kind {
        case .client, .unknown: break
        case .server: if direction == .send { remarks.append("of a server") }
        // A component's header has no version (XEP-0114 §3).
        case .component: return direction == .send ? "of a component" : nil
        }
        if kind != .unknown, event.head.version == nil { remarks.append("before version 1.0") }
        return remarks.isEmpty ? nil : remarks.joined(separator: ", ")
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
}
