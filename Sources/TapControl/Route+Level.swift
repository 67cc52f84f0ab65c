internal import HTTPTypes
internal import HummingbirdCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

// MARK: Log level
extension Route {
    /// Maximum number of sessions and JIDs with separate levels.
    private static let maximumLevels = 1000

    static func level(_ context: ControlContext) -> [Route] {
        [
            Route(method: .get, path: "/level") { _ in try show(log(context)) },
            Route(method: .put, path: "/level") { request in
                let log = try log(context)
                let body = try await request.body()
                try change(log, by: body)
                return show(log)
            },
        ]
    }

    private static func log(_ context: ControlContext) throws(Problem) -> any ControlledLog {
        guard let log = context.log else {
            throw Problem(.noLog, "this proxy writes no log, so there is no level to change")
        }
        return log
    }

    private static func change(_ log: any ControlledLog, by body: JSONObject) throws {
        try body.allow("level", "part", "session", "jid")
        let level = try body.text("level", orNull: true).map { try Problem.level($0) }
        guard body.has("level") else { throw Problem.refused("\"level\" is missing") }
        let part = try body.text("part").map { text throws(Problem) in
            guard let part = Part(name: text) else {
                throw .refused("\"part\" must be one of \(Part.allCases.map(\.name).joined(separator: ", "))")
            }
            return part
        }
        let session = try body.integer("session", in: 1...Int64.max).map(UInt64.init)
        let jid = try body.text("jid").map { try Problem.jid($0, "jid") }
        let count = [part != nil, session != nil, jid != nil].count { $0 }
        guard count <= 1 else { throw Problem.refused("give one of \"part\", \"session\" and \"jid\"") }
        guard count == 1 || level != nil else {
            throw Problem.refused("level null removes the level of a part, session or JID; name one")
        }
        let spec = log.spec
        guard level == nil || spec.sessions.count + spec.jids.count < maximumLevels else {
            throw Problem.refused("\(maximumLevels) sessions and JIDs have separate levels; remove some")
        }
        log.change { spec in
            if let part {
                spec.set(level, part: part)
            } else if let session {
                spec.set(level, session: session)
            } else if let jid {
                spec.set(level, jid: jid)
            } else {
                spec.level = level
                // Level off also disables SEND and RECV lines.
                if level == .off { (spec.showsSend, spec.showsReceive) = (false, false) }
            }
        }
    }

    private static func show(_ log: any ControlledLog) -> Response {
        let spec = log.spec
        return .json { line in
            line.field("level", (spec.level ?? .info).name)
            line.field("parts") { line in
                for part in Part.allCases {
                    if let level = spec.parts[part] { line.field(part.literal, level.name) }
                }
            }
            line.field("sessions") { line in
                for (number, level) in spec.sessions.sorted(by: { $0.key < $1.key }) {
                    line.field(named: String(number))
                    line.appendJSONString(level.name)
                }
            }
            line.field("jids") { line in
                for entry in spec.jids {
                    line.field(named: entry.jid.description)
                    line.appendJSONString(entry.level.name)
                }
            }
        }
    }
}
