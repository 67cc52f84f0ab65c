internal import TapRecord
import XMPPCore

// Streams: headers, end tags and stream errors.
extension Session {
    mutating func handleHeader(_ event: StreamEvent, _ direction: Direction) {
        let head = event.head
        switch direction {
        case .send:
            info.version = text(head.version, direction)
            if let to = text(head.to, direction) { info.domain = to }
            if let from = text(head.from, direction) { info.from = from }
            info.kind =
                switch directions[direction].decoder.contentNamespace {
                case .client: .client
                case .server: .server
                case .componentAccept, .componentConnect: .component
                default: .unknown
                }
        case .recv:
            login?.observe(.serverHeader(version: text(head.version, direction)))
            if info.streams.count < SessionInfo.mostStreams {
                info.streams.append(.init(epoch: event.epoch, id: text(head.id, direction)))
            }
        }
        if options.level >= .info {
            var record = makeRecord(event, direction, .streamOpen, level: .info)
            record.message = headerWords(event, direction).map { Prose($0) }
            emit(record)
        }
        if event.epoch > 1, !isRestartDue(direction) {
            // Only the first is reported; each header has its own record.
            note(
                .note,
                directions[direction].hasRestartedUncalled ? .verbose : .warn,
                code: "unexpected-restart",
                "unexpected stream restart",
                direction: direction
            )
            directions[direction].hasRestartedUncalled = true
        }
        directions[direction].mayRestart = false
        awaitFeatures(event, direction)
        timelineHeader(event, direction)
        if direction == .send { answerRefused() }
    }

    /// Whether the initiator may open a new stream: after success, or ahead of it while authentication is under way.
    private func isRestartDue(_ direction: Direction) -> Bool {
        directions[direction].mayRestart
            || negotiation.mayRestart(
                direction,
                sendEpoch: directions.send.decoder.epoch,
                recvEpoch: directions.recv.decoder.epoch
            )
    }

    mutating func handleStreamEnd(_ event: StreamEvent, _ direction: Direction) {
        directions[direction].hasClosedStream = true
        recordItem(event, direction, .streamClose, level: .info)
        if info.ending == nil { info.ending = .clean(by: direction) }
        negotiation.closeStream()
    }

    mutating func handleStreamElement(_ event: StreamEvent, _ direction: Direction) {
        guard let element = parse(direction) else { return recordItem(event, direction, .element, level: .info) }
        guard element.isNamed("error") else { return recordItem(event, direction, .element, level: .info) }
        let condition =
            element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name ?? "undefined-condition"
        judge(streamError: condition, element, direction)
        var record = makeRecord(event, direction, .element, level: .error)
        record.condition = condition
        record.code = "stream-error"
        record.summary = "closes the stream"
        // A wrong component secret is answered with a stream error (XEP-0114 §3).
        if let step = decodeStep(element, direction) {
            record.sasl = step.details
            info.authentication = .failed(condition: condition)
        }
        let words = element.childText("text", .streamErrors).map { tools.redactor.disclose(text: $0) }
        record.message = words.map { Prose($0) }
        emit(record)
        noteHandledCount(element, direction)
        failStep(condition: condition, words)
    }
}
