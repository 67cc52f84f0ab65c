internal import ArgumentParser
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

struct LevelCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "level",
        abstract: "Show or change what a running proxy logs.",
        discussion: """
            Prints the current levels, one per line, as the words of --log. With a level, sets it first: for the whole \
            log, or for a part, a session or a JID. "default" removes the level of a part, session or JID.

            Examples:

              xmpptap level
              xmpptap level verbose --session 3
              xmpptap level trace --part sasl
              xmpptap level default --session 3
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Level to set: off, error, warn, info, verbose, trace or default.",
            valueName: "level"
        ),
        completion: .list(Level.allCases.map(\.name) + ["default"]),
        transform: Choice.typed
    )
    var level: Choice?

    @Option(
        help: ArgumentHelp(
            "Part to set it for: \(Part.allCases.map(\.name).joined(separator: ", ")).",
            valueName: "part"
        ),
        completion: .list(Part.allCases.map(\.name)),
        transform: { text throws(Failure) in
            guard let part = Part(name: text) else {
                throw .usage("the parts are \(Part.allCases.map(\.name).joined(separator: ", "))")
            }
            return part
        }
    )
    var part: Part?

    @Option(
        help: ArgumentHelp("Session to set it for.", valueName: "number"),
        completion: .sessionNumbers,
        transform: SessionNumber.parse
    )
    var session: [UInt64] = []

    @Option(
        help: ArgumentHelp("JID whose sessions to set it for, full or bare.", valueName: "jid"),
        completion: .sessionJIDs,
        transform: JID.typed
    )
    var jid: JID?

    @Flag(help: "Print the levels as JSON.")
    var json = false

    @OptionGroup var control: ControlOption
    @OptionGroup var config: ConfigOption

    /// The accepted values of the argument.
    enum Choice {
        case level(Level)
        case `default`

        static func typed(_ text: String) throws(Failure) -> Choice {
            if text == "default" { return .default }
            guard let level = Level(name: text) else {
                throw .usage("the levels are \(Level.allCases.map(\.name).joined(separator: ", ")), default")
            }
            return .level(level)
        }
    }

    func validate() throws {
        let places = [part != nil, !session.isEmpty, jid != nil].count { $0 }
        guard places <= 1, session.count <= 1 else {
            throw ValidationError("a level is for one part, one session or one JID; call level once for each")
        }
        guard level != nil || places == 0 else {
            throw ValidationError("a level is missing, as in level verbose --session 3")
        }
        if case .default? = level, places == 0 {
            throw ValidationError("default removes the level of a --part, --session or --jid; add one")
        }
    }

    func run() async throws {
        let client = try control.client()
        if let level {
            let body = LineBuffer.object {
                $0.field("level")
                if case .level(let level) = level { $0.appendJSONString(level.name) } else { $0.append("null") }
                if let part { $0.field("part", part.name) }
                if let session = session.first { $0.field("session", session) }
                if let jid { $0.field("jid", jid.description) }
            }
            _ = try await client.ask(.init("PUT", "/level", body: body))
        }
        let levels = try await client.ask(.init("GET", "/level"))
        if json { return Console.print(levels.json) }
        Console.printEscaped(levels["level"]?.text ?? Level.info.name)
        let special = [("parts", ""), ("sessions", "session:"), ("jids", "jid:")]
        for (name, prefix) in special {
            for field in levels[name]?.fields ?? [] {
                Console.printEscaped("\(prefix)\(field.name)=\(field.value.text ?? "")")
            }
        }
    }
}
