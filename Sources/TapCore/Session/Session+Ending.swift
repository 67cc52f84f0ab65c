internal import TapRecord
import XMPPCore

// Why a session ended, from what both sides sent before.
extension Session {
    /// A leg has ended; the first ending is kept.
    mutating func judgeEnd(_ direction: Direction, _ end: LegEnd) {
        guard info.ending == nil else { return }
        if direction == .send && context.directions.send.hasClosedStream
            || direction == .recv && context.directions.recv.hasClosedStream
        {
            return
        }
        // After the other side closed its stream, the end of the connection is expected.
        if end == .finished, context.directions.send.hasClosedStream || context.directions.recv.hasClosedStream {
            info.ending = .clean(by: context.directions.send.hasClosedStream ? .send : .recv)
            return
        }
        info.ending =
            context.directions[direction].isOpaque
            ? .undecoded(
                leg: direction.source,
                negotiation.passedTLS?.endsWithAlert(direction) == true ? .finished : end
            )
            : .unclean(leg: direction.source, end)
        let unheard = unheard(by: direction)
        info.closeReason = unheard?.closeReason
        info.reason = unheard?.words
    }

    /// A stream error was relayed.
    mutating func judge(streamError condition: String, _ element: Element, _ direction: Direction) {
        info.ending = .error(condition: condition, by: direction)
        let said = element.childText("text", .streamErrors).map { Prose(tools.redactor.disclose(text: $0)) }
        switch condition {
        case "conflict":
            info.closeReason = .conflict
            let resource = info.jid.flatMap { Address($0).resource }.map { tools.redactor.disclose(name: $0) }
            info.reason =
                "another login uses the same resource\(resource.map { " \($0)" } ?? "")\(said.map { ": \($0.clause)" } ?? "")"
        case "connection-timeout":
            let unheard = unheard(by: direction)
            info.closeReason = unheard?.closeReason ?? .idle
            info.reason = unheard?.words
        case "system-shutdown": info.closeReason = .systemShutdown
        case "policy-violation":
            info.closeReason = .policyViolation
            info.reason = said
        case "see-other-host":
            info.closeReason = .seeOtherHost
            let named = element.childText("see-other-host", .streamErrors) ?? ""
            let host = named.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let behind =
                options.isObserved
                ? "" : edited == nil ? "; the client will bypass xmpptap" : "; the client was told to reconnect instead"
            info.reason = "redirected to \(host.isEmpty ? "another host" : host)\(behind)"
        default:
            info.closeReason = .streamError
            info.reason = said
        }
        guard direction == .recv, let early = info.enableFault(for: condition) else { return }
        info.reason = info.reason.map { "\($0); \(early)" } ?? early
    }

    /// Returns the unanswered request of this direction's sender, if any.
    private func unheard(by direction: Direction) -> Liveness.Finding? {
        let ping = requests.oldestPing(direction)
        return liveness.unheard(by: direction, ping: ping, isOpen: info.opened != nil, at: context.now.monotonic)
    }
}
