internal import HTTPTypes
internal import HummingbirdCore
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

// Stanzas that rules or a pause hold until the user decides. They are shown unredacted, because the user has to judge
// them.
extension Route {
    static func held(_ context: ControlContext) -> [Route] {
        let sessions = context.sessions
        return [
            Route(method: .get, path: "/sessions/{id}/held") { request in
                let (items, now) = try await sessions.inspect(request.number("id")) { session, now in
                    (session.heldItems, now)
                }
                return .json { line in
                    line.field("held", items) { line, item in
                        line.field("number", item.number)
                        line.field("direction", literal: item.direction.name)
                        if let rule = item.rule { line.field("rule", "\(rule)") }
                        line.field("since", item.since.time.text)
                        line.field("remaining_ns", Int(max(0, item.deadline - now.monotonic)))
                        line.field("stanza", item.bytes.span.bytes, orBase64: "base64")
                    }
                }
            },
            Route(method: .post, path: "/sessions/{id}/pause") { request in
                let session = try request.number("id")
                let body = try await request.body()
                try body.allow("direction", "count", "condition")
                let direction = try body.text("direction").map { name throws(Problem) in
                    guard let direction = Direction.allCases.first(where: { "\($0.name)" == name }) else {
                        throw .refused("\"direction\" must be \"send\" or \"recv\"")
                    }
                    return direction
                }
                let count = Int(try body.integer("count", in: 1...Int64(StanzaPause.maximumStanzas)) ?? 1)
                let conditions = try body.text("condition") ?? ""
                let pause: StanzaPause
                do throws(StanzaPause.Unusable) {
                    pause = try StanzaPause(direction, count: count, conditions: conditions)
                } catch {
                    throw Problem.refused("\"condition\": \(error)")
                }
                if let obstacle = try await sessions.pause(pause, direction, in: session) {
                    throw Problem(obstacle, "no stanza can be held")
                }
                return Response(status: .noContent)
            },
            Route(method: .delete, path: "/sessions/{id}/pause") { request in
                _ = try await sessions.pause(nil, nil, in: request.number("id"))
                return Response(status: .noContent)
            },
            Route(method: .post, path: "/sessions/{id}/held/{number}") { request in
                let (session, number) = (try request.number("id"), try request.number("number"))
                let body = try await request.body(limit: 2 * context.itemLimit + 64 << 10)
                try body.allow("action", "stanza")
                let stanza = try body.text("stanza")
                let release: HeldRelease
                switch (try body.required("action"), stanza) {
                case ("pass", nil): release = .pass
                case ("drop", nil): release = .drop
                case ("edit", let stanza?): release = .replace(trimmed(stanza))
                case ("edit", nil): throw Problem.refused("\"edit\" needs \"stanza\"")
                default: throw Problem.refused("\"action\" must be pass or drop, or edit with \"stanza\"")
                }
                let outcome = try await sessions.release(number, release, in: session)
                switch outcome {
                case .released: return Response(status: .noContent)
                case .notHeld:
                    throw Problem(.notHeld, "session \(session) holds no stanza \(number)")
                case .refused(let reason):
                    throw Problem(.editRefused, "held stanza \(number) stays held, its edit was refused: \(reason)")
                }
            },
        ]
    }

    /// Returns the bytes without surrounding white space, such as the final line feed of a file.
    private static func trimmed(_ stanza: String) -> [UInt8] {
        let space: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        var rest = stanza.utf8.drop { space.contains($0) }
        while let last = rest.last, space.contains(last) { rest.removeLast() }
        return Array(rest)
    }
}
