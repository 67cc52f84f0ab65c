internal import ArgumentParser
internal import TapNetwork
internal import TapRecord

/// `xmpptap sessions`.
struct SessionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sessions",
        abstract: "List the sessions of a running proxy, and act on them.",
        discussion: """
            Without a subcommand: lists the sessions, or shows the session with the given number.

            Examples:

              xmpptap sessions
              xmpptap sessions 3
              xmpptap sessions held 3
              xmpptap sessions drop 3 1
            """,
        subcommands: [Show.self, Held.self, Pass.self, Drop.self, Edit.self, Close.self],
        defaultSubcommand: Show.self
    )

    /// `xmpptap sessions show`.
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
            transform: SessionNumber.parse
        )
        var number: UInt64?

        @Flag(help: "Print JSON, one session per line.")
        var json = false

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            let client = try control.client()
            if let number { return try await show(number, client) }
            let list = try await client.ask(.init("GET", "/sessions"))["sessions"]?.values ?? []
            if json {
                for session in list { Console.print(session.json) }
            } else if list.isEmpty {
                Console.complain("the proxy has no sessions")
            } else {
                let sessions = try list.map { json throws(ControlClientError) in try RunningSession(json) }
                for line in SessionTable(sessions: sessions).lines(width: Console.width) { Console.print(line) }
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
            for line in SessionReport(session: try RunningSession(session)).lines { Console.show(line) }
        }
    }

    /// `xmpptap sessions held`.
    struct Held: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "held",
            abstract: "Show the stanzas that the rule action PAUSE holds.",
            discussion: """
                Each has a number, with which "sessions pass", "sessions drop" and "sessions edit" release it. A stanza \
                that nobody releases passes after a minute. A direction holds one stanza at a time; what follows it \
                waits and is shown when its turn comes.

                Example:

                  xmpptap sessions held 3
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
            if items.isEmpty, !json { Console.complain("session \(session.number) holds no stanza") }
            for item in items {
                json ? Console.print(item.json) : Console.show(HeldStanza(json: item).line)
            }
        }
    }

    /// `xmpptap sessions pass`.
    struct Pass: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "pass",
            abstract: "Relay a held stanza as it is.",
            discussion: """
                Example:

                  xmpptap sessions pass 3 1
                """
        )

        @OptionGroup var stanza: HeldNumber
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws { try await stanza.release("pass", nil, control.client()) }
    }

    /// `xmpptap sessions drop`.
    struct Drop: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "drop",
            abstract: "Drop a held stanza.",
            discussion: """
                Example:

                  xmpptap sessions drop 3 1
                """
        )

        @OptionGroup var stanza: HeldNumber
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws { try await stanza.release("drop", nil, control.client()) }
    }

    /// `xmpptap sessions edit`.
    struct Edit: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "edit",
            abstract: "Replace a held stanza by another one, and relay that.",
            discussion: """
                Example:

                  xmpptap sessions held 3 --json | jq -r .stanza > held.xml
                  xmpptap sessions edit 3 1 held.xml
                """
        )

        @OptionGroup var stanza: HeldNumber

        @Argument(
            help: ArgumentHelp("File with the stanza; - is standard input.", valueName: "file"),
            completion: .file()
        )
        var file: String

        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            try await stanza.release("edit", StanzaFile.read(file), control.client())
        }
    }

    /// `xmpptap sessions close`.
    struct Close: AsyncParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "close",
            abstract: "Close a session.",
            discussion: """
                Sends a stream error to the client, and closes the stream to the server.

                Example:

                  xmpptap sessions close 3
                """
        )

        @OptionGroup var session: SessionNumber
        @OptionGroup var control: ControlOption
        @OptionGroup var config: ConfigOption

        func run() async throws {
            _ = try await control.client().ask(.init("DELETE", "/sessions/\(session.number)"))
        }
    }
}

/// The number of a session as an argument.
struct SessionNumber: ParsableArguments {
    @Argument(help: ArgumentHelp("Number of the session.", valueName: "session"), transform: parse)
    var number: UInt64

    static func parse(_ text: String) throws(Failure) -> UInt64 { UInt64(try Number.parse(text, in: 1...Int.max)) }
}

/// The number of a held stanza as an argument, behind that of its session.
struct HeldNumber: ParsableArguments {
    @OptionGroup var session: SessionNumber

    @Argument(
        help: ArgumentHelp("Number of the held stanza.", valueName: "number"),
        transform: SessionNumber.parse
    )
    var number: UInt64

    /// Has the stanza released.
    func release(_ action: String, _ stanza: [UInt8]?, _ client: ControlClient) async throws {
        let body = LineBuffer.object {
            $0.field("action", action)
            if let stanza { $0.field("stanza", stanza.span.bytes, orBase64: "base64") }
        }
        _ = try await client.ask(.init("POST", "/sessions/\(session.number)/held/\(number)", body: body))
    }
}
