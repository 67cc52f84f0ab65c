internal import TapRecord
import XMPPCore

// Why a session ended, from what both sides sent before.
extension Session {
    /// A leg has ended; the first ending is kept.
    mutating func judgeEnd(_ direction: Direction, _ end: LegEnd) {
        guard context.info.ending == nil else { return }
        if direction == .send && context.directions.send.hasClosedStream
            || direction == .recv && context.directions.recv.hasClosedStream
        {
            return
        }
        // After the other side closed its stream, the end of the connection is expected.
        if end == .finished, context.directions.send.hasClosedStream || context.directions.recv.hasClosedStream {
            context.info.ending = .clean(by: context.directions.send.hasClosedStream ? .send : .recv)
            return
        }
        context.info.ending =
            context.directions[direction].isOpaque
            ? .undecoded(
                leg: direction.source,
                context.negotiation.passedTLS?.endsWithAlert(direction) == true ? .finished : end
            )
            : .unclean(leg: direction.source, end)
        let unheard = unheard(by: direction)
        context.info.closeReason = unheard?.closeReason
        context.info.reason = unheard?.words
    }

    /// A stream error was relayed.
    mutating func judge(streamError condition: String, _ element: Element, _ direction: Direction) {
        context.info.ending = .error(condition: condition, by: direction)
        let said = element.childText("text", .streamErrors).map { Prose(context.tools.redactor.disclose(text: $0)) }
        switch condition {
        case "conflict":
            context.info.closeReason = .conflict
            let resource = context.info.jid.flatMap { Address($0).resource }.map {
                context.tools.redactor.disclose(name: $0)
            }
            context.info.reason =
                "another login uses the same resource\(resource.map { " \($0)" } ?? "")\(said.map { ": \($0.clause)" } ?? "")"
        case "connection-timeout":
            let unheard = unheard(by: direction)
            context.info.closeReason = unheard?.closeReason ?? .idle
            context.info.reason = unheard?.words
        case "system-shutdown": context.info.closeReason = .systemShutdown
        case "policy-violation":
            context.info.closeReason = .policyViolation
            context.info.reason = said
        case "see-other-host":
            context.info.closeReason = .seeOtherHost
            let named = element.childText("see-other-host", .streamErrors) ?? ""
            let host = named.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let behind =
                context.options.isObserved
                ? ""
                : context.edited == nil
                    ? "; the client will bypass xmpptap" : "; the client was told to reconnect instead"
            context.info.reason = "redirected to \(host.isEmpty ? "another host" : host)\(behind)"
        default:
            context.info.closeReason = .streamError
            context.info.reason = said
        }
        guard direction == .recv, let early = context.info.enableFault(for: condition) else { return }
        context.info.reason = context.info.reason.map { "\($0); \(early)" } ?? early
    }

    /// Returns the unanswered request of this direction's sender, if any.
    private func unheard(by direction: Direction) -> Liveness.Finding? {
        let ping = requests.oldestPing(direction)
        return liveness.unheard(
            by: direction,
            ping: ping,
            isOpen: context.info.opened != nil,
            at: context.now.monotonic
        )
    }
}
