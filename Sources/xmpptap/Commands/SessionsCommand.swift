internal import ArgumentParser
internal import TapCore
internal import TapNetwork
internal import TapRecord

struct SessionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract: "List the sessions of a running proxy, and act on them.",
        discussion: """
            Without a subcommand: lists the sessions, or shows the session with the given number.

            Examples:

              xmpptap sessions
              xmpptap sessions 3
              xmpptap sessions pause 3
              xmpptap sessions held 3
              xmpptap sessions drop 3 1
            """,
        subcommands: [Show.self, Pause.self, Held.self, Pass.self, Drop.self, Edit.self, Close.self],
        defaultSubcommand: Show.self
    )

    struct Show: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "List sessions, or show one: login steps, roster, pending requests.",
            discussion: """
                SENT and RECEIVED count stanzas. The exit code is 1 if there is no such session.

                Examples:

                  xmpptap sessions show
                  xmpptap sessions show 3
                  xmpptap sessions show --json | jq -r .jid
                """
        )

        @Argument(
            help: ArgumentHelp("Number of the session (default: all sessions).", valueName: "number"),
            completion: .sessionNumbers,
            transform: SessionNumber.parse
        )
        var number: UInt64?

        @Flag(help: "Print JSON, one session per line.")
        var json = false

        @OptionGroup var colour: ColourOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            let client = try control.client()
            if let number { return try await show(number, client) }
            let list = try await client.ask(.init("GET", "/sessions"))["sessions"]?.values ?? []
            if json {
                for session in list { Console.print(session.json) }
            } else if list.isEmpty {
                Console.printDiagnostic("the proxy has no sessions")
            } else {
                let sessions = try list.map { json throws(ControlClientError) in try RunningSession(json) }
                for line in SessionTable(sessions: sessions).lines(.ofOutput(colour.color)) { Console.print(line) }
            }
        }

        private func show(_ number: UInt64, _ client: ControlClient) async throws {
            var fields = try await client.session(number).json.fields
            for (part, _) in SessionReport.parts {
                let list = try await client.ask(.init("GET", "/sessions/\(number)/\(part)"))
                fields.append(.init(part, list[part] ?? .array([])))
            }
            let session = JSONValue.object(fields)
            if json { return Console.print(session.json) }
            for line in SessionReport(session: try RunningSession(session)).lines(.ofOutput(colour.color)) {
                Console.print(line)
            }
        }
    }

    struct Pause: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "pause",
            abstract: "Hold the next stanza, to pass, edit or drop it.",
            discussion: """
                Only iqs, messages and presences are held, one in a direction at a time. "sessions held" shows them. \
                A new pause replaces the one before it.

                Examples:

                  xmpptap sessions pause 3
                  xmpptap sessions pause 3 --direction send --count 5
                  xmpptap sessions pause 3 --filter 'message and with:romeo@example.org'
                  xmpptap sessions pause 3 --condition 'KIND: message' --condition 'TYPE: chat'
                  xmpptap sessions pause 3 --end
                """
        )

        @OptionGroup var session: SessionNumber

        @Option(help: ArgumentHelp("Hold stanzas of send or recv (default: both).", valueName: "direction"))
        var direction: String?

        @Option(
            help: ArgumentHelp("Number of stanzas to hold (default: 1).", valueName: "number"),
            transform: { try Number.parse($0, in: 1...StanzaPause.maximumStanzas) }
        )
        var count = 1

        @Option(help: ArgumentHelp("Condition of a rule, repeatable; all have to hold.", valueName: "condition"))
        var condition: [String] = []

        @Option(
            help: ArgumentHelp(
                "Hold only stanzas that match, as in message and body:hello.",
                discussion: """
                    Instead of --condition. The language is that of --filter of the proxy; conditions on what is found \
                    later (round-trip, code, condition, action, rule) are refused.
                    """,
                valueName: "expression"
            )
        )
        var filter: String?

        @Flag(help: "Hold no more stanzas; those that are held stay held.")
        var end = false

        @OptionGroup var output: AnswerOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func validate() throws {
            guard condition.isEmpty || filter == nil else {
                throw ValidationError("give one of --condition and --filter")
            }
            guard end, direction != nil || count != 1 || !condition.isEmpty || filter != nil else { return }
            throw ValidationError("--end stands alone: it ends a pause, whatever its conditions are")
        }

        func run() async throws {
            guard !end else {
                _ = try await control.client().ask(.init("DELETE", "/sessions/\(session.number)/pause"))
                return output.show("end-pause", session: session.number)
            }
            let body = LineBuffer.object { line in
                if let direction { line.field("direction", direction) }
                line.field("count", count)
                if !condition.isEmpty { line.field("condition", condition.joined(separator: "\n")) }
                if let filter { line.field("filter", filter) }
            }
            _ = try await control.client().ask(.init("POST", "/sessions/\(session.number)/pause", body: body))
            output.show("pause", session: session.number)
        }
    }

    struct Held: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "held",
            abstract: "Show the stanzas that a pause or the rule action PAUSE holds.",
            discussion: """
                Each has a number, which "sessions pass", "sessions drop" and "sessions edit" take to release it. A stanza \
                that nobody releases passes after a minute. A direction holds one stanza at a time; the next one is \
                shown after its release.

                Examples:

                  xmpptap sessions held 3
                  xmpptap sessions held 3 --json | jq -r .stanza
                  xmpptap sessions held 3 --control tap.sock
                """
        )

        @OptionGroup var session: SessionNumber

        @Flag(help: "Print JSON, one stanza per line.")
        var json = false

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            let answer = try await control.client().ask(.init("GET", "/sessions/\(session.number)/held"))
            let items = answer["held"]?.values ?? []
            if items.isEmpty, !json { Console.printDiagnostic("session \(session.number) holds no stanza") }
            for item in items {
                json ? Console.print(item.json) : Console.printEscaped(HeldStanza(json: item).line)
            }
        }
    }

    struct Pass: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "pass",
            abstract: "Relay a held stanza as it is.",
            discussion: """
                Examples:

                  xmpptap sessions pass 3 1
                  xmpptap sessions pass 3 1 --json
                  xmpptap sessions pass 3 1 --control tap.sock
                """
        )

        @OptionGroup var stanza: HeldNumber
        @OptionGroup var output: AnswerOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws { try await stanza.release("pass", nil, control.client(), output) }
    }

    struct Drop: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "drop",
            abstract: "Drop a held stanza.",
            discussion: """
                Examples:

                  xmpptap sessions drop 3 1
                  xmpptap sessions drop 3 1 --json
                  xmpptap sessions drop 3 1 --control tap.sock
                """
        )

        @OptionGroup var stanza: HeldNumber
        @OptionGroup var output: AnswerOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws { try await stanza.release("drop", nil, control.client(), output) }
    }

    struct Edit: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "edit",
            abstract: "Replace a held stanza by another one, and relay that.",
            discussion: """
                Examples:

                  xmpptap sessions held 3 --json | jq -r .stanza > held.xml
                  xmpptap sessions edit 3 1 held.xml
                  xmpptap sessions edit 3 1 held.xml --control tap.sock
                """
        )

        @OptionGroup var stanza: HeldNumber

        @Argument(
            help: ArgumentHelp("File with the stanza; - is standard input.", valueName: "file"),
            completion: .file()
        )
        var file: String

        @OptionGroup var output: AnswerOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            try await stanza.release("edit", StanzaFile.read(file), control.client(), output)
        }
    }

    struct Close: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "close",
            abstract: "Close a session.",
            discussion: """
                Sends a stream error to the client, and closes the stream to the server.

                Examples:

                  xmpptap sessions close 3
                  xmpptap sessions close 3 --json
                  xmpptap sessions close 3 --control tap.sock
                """
        )

        @OptionGroup var session: SessionNumber
        @OptionGroup var output: AnswerOption
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            _ = try await control.client().ask(.init("DELETE", "/sessions/\(session.number)"))
            output.show("close", session: session.number)
        }
    }
}

/// The `--json` flag of commands that otherwise print nothing.
struct AnswerOption: ParsableArguments {
    @Flag(help: "Print what was done as JSON.")
    var json = false

    func show(_ action: String, session: UInt64, number: UInt64? = nil) {
        guard json else { return }
        Console.print(
            LineBuffer.object { line in
                line.field("session", session)
                if let number { line.field("held", number) }
                line.field("action", action)
            }
        )
    }
}

/// A session number as an argument.
struct SessionNumber: ParsableArguments {
    @Argument(
        help: ArgumentHelp("Number of the session.", valueName: "session"),
        completion: .sessionNumbers,
        transform: parse
    )
    var number: UInt64

    static func parse(_ text: String) throws(Failure) -> UInt64 { UInt64(try Number.parse(text, in: 1...Int.max)) }
}

/// A session number and the number of a held stanza, as arguments.
struct HeldNumber: ParsableArguments {
    @OptionGroup var session: SessionNumber

    @Argument(
        help: ArgumentHelp("Number of the held stanza.", valueName: "number"),
        transform: SessionNumber.parse
    )
    var number: UInt64

    /// Asks the proxy to release the stanza.
    func release(
        _ action: String,
        _ stanza: [UInt8]?,
        _ client: ControlClient,
        _ output: AnswerOption
    ) async throws {
        let body = LineBuffer.object {
            $0.field("action", action)
            if let stanza { $0.field("stanza", stanza.span.bytes, orBase64: "base64") }
        }
        _ = try await client.ask(.init("POST", "/sessions/\(session.number)/held/\(number)", body: body))
        output.show(action, session: session.number, number: number)
    }
}
