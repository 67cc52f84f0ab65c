internal import HTTPTypes
internal import HummingbirdCore
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapRules
internal import XMPPCore

// Stanzas that rules or a pause hold until the user decides. They are shown unredacted, because the user has to judge
// them.
extension Route {
    /// - Parameters:
    ///   - owner: The user of the pauses that these routes begin.
    ///   - onPause: Called after a pause has begun.
    static func held(
        _ context: ControlContext,
        for owner: StanzaPause.Owner = .control,
        onPause: @escaping @Sendable () -> Void = {}
    ) -> [Route] {
        let sessions = context.sessions
        return [
            Route(method: .get, path: "/sessions/{id}/held") { request in
                let (items, now) = try await sessions.inspect(request.number("id")) { session, now in
                    (session.heldItems, now)
                }
                return .json { line in
                    line.field("held", items) { line, item in
                        item.append(to: &line, at: now.monotonic)
                        line.field("stanza", item.bytes.span.bytes, orBase64: "base64")
                    }
                }
            },
            Route(method: .post, path: "/sessions/{id}/pause") { request in
                let session = try request.number("id")
                let pause = try StanzaPause(try await request.body(), for: owner)
                if let obstacle = try await sessions.pause(pause, pause.description.direction, in: session) {
                    throw Problem(obstacle, "no stanza can be held")
                }
                onPause()
                return Response(status: .noContent)
            },
            Route(method: .delete, path: "/sessions/{id}/pause") { request in
                _ = try await sessions.pause(nil, nil, in: request.number("id"))
                return Response(status: .noContent)
            },
            release(context),
        ]
    }

    private static func release(_ context: ControlContext) -> Route {
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
            let outcome = try await context.sessions.release(number, release, in: session)
            switch outcome {
            case .released: return Response(status: .noContent)
            case .notHeld:
                throw Problem(.notHeld, "session \(session) holds no stanza \(number)")
            case .refused(let reason):
                throw Problem(.editRefused, "held stanza \(number) stays held, its edit was refused: \(reason)")
            }
        }
    }

    /// Returns the bytes without surrounding white space, such as the final line feed of a file.
    private static func trimmed(_ stanza: String) -> [UInt8] {
        let space: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
        var rest = stanza.utf8.drop { space.contains($0) }
        while let last = rest.last, space.contains(last) { rest.removeLast() }
        return Array(rest)
    }
}

extension StanzaPause {
    /// Creates the pause of a request.
    fileprivate init(_ body: JSONObject, for owner: Owner) throws(Problem) {
        try body.allow("direction", "count", "condition", "filter")
        let direction = try body.text("direction").map { name throws(Problem) in
            guard let direction = Direction.allCases.first(where: { "\($0.name)" == name }) else {
                throw .refused("\"direction\" must be \"send\" or \"recv\"")
            }
            return direction
        }
        let count = Int(try body.integer("count", in: 1...Int64(StanzaPause.maximumStanzas)) ?? 1)
        let conditions = try body.text("condition")
        if let filter = try body.text("filter") {
            guard conditions == nil else { throw .refused("give one of \"condition\" and \"filter\"") }
            let filter = try Problem.filter(filter)
            do throws(FilterFault) {
                try self.init(direction, count: count, filter: filter, owner: owner)
            } catch {
                throw Problem(error)
            }
            return
        }
        do throws(StanzaPause.Unusable) {
            try self.init(direction, count: count, conditions: conditions ?? "", owner: owner)
        } catch {
            throw .refused("\"condition\": \(error)")
        }
    }
}

extension HeldItem {
    /// Appends all fields but the stanza.
    ///
    /// - Parameter now: The time in nanoseconds of the run.
    func append(to line: inout LineBuffer, at now: Int64) {
        line.field("number", number)
        line.field("direction", literal: direction.name)
        if let rule { line.field("rule", "\(rule)") }
        if let pause, pause.isFilter { line.field("filter", pause.text) }
        line.field("since", since.time.text)
        line.field("remaining_ns", Int(max(0, deadline - now)))
    }
}
