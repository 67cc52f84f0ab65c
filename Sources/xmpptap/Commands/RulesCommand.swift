internal import ArgumentParser
internal import TapCore

/// `xmpptap rules`.
struct RulesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rules",
        abstract: "Check rule files and dry-run them over recordings.",
        discussion: """
            Rule files are written in the language of Prosody's mod_firewall, with additional terms for proxies. \
            filters/README.md is the reference.

            Examples:

              xmpptap rules check filters/no-typing.pfw
              xmpptap rules run filters/no-typing.pfw yesterday.xtap
            """,
        subcommands: [Check.self, Run.self]
    )

    /// `xmpptap rules check`.
    struct Check: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check rule files and report all mistakes.",
            discussion: """
                Reports every mistake as FILE:LINE:COLUMN with what was expected. The files are checked together: a \
                definition of one can be used in another. Lists are read too. The exit code is 1 if a file has a \
                mistake.

                Example:

                  xmpptap rules check filters/no-typing.pfw staff.pfw
                """
        )

        @Argument(help: ArgumentHelp("Rule file.", valueName: "file"), completion: .file())
        var files: [String]

        @OptionGroup var chain: DefaultChainOption
        @OptionGroup var config: ConfigOption

        func run() throws {
            try RuleFiles.checkInputs(files)
            let rules = try RuleFiles.load(files, defaultChain: chain.chain)
            Console.print("\(Plural.of(rules.count, "rule")) in \(Plural.of(files.count, "file")), no mistakes")
        }
    }

    /// `xmpptap rules run`.
    struct Run: ParsableCommand, Configurable {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Show which rules hit which stanzas of a recording.",
            discussion: """
                Evaluates the rules for every stanza and nonza of a JSON log, capture or client log. Prints those that \
                a rule hit, what it would do, and for an edit the original (-) and the edited stanza (+). Nothing is \
                sent. The XML is in captures and in logs at level verbose. Each stanza is judged as it was recorded, \
                redacted secrets included. The exit code is 1 if a rule file has a mistake.

                Name the recording last. "-" is standard input.

                Examples:

                  xmpptap rules run filters/no-typing.pfw yesterday.xtap
                  xmpptap rules run a.pfw b.pfw today.xtap --json | jq -r .rule | sort | uniq -c
                """
        )

        @Argument(help: ArgumentHelp("Rule files, and last the recording.", valueName: "file"), completion: .file())
        var files: [String]

        @OptionGroup var chain: DefaultChainOption

        @Flag(help: "Print JSON, one stanza per line.")
        var json = false

        @Option(
            help: ArgumentHelp("Judge only this session; repeatable.", valueName: "number"),
            transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
        )
        var session: [UInt64] = []

        @OptionGroup var config: ConfigOption

        func run() throws {
            guard files.count > 1, let recording = files.last else {
                throw Failure.usage("rules run takes rule files and a recording, as in rules run typing.pfw today.xtap")
            }
            try RuleFiles.checkInputs(files)
            if let early = files.dropLast().first(where: { $0.hasSuffix(".xtap") }) {
                throw Failure.usage("\(early) is a recording; name it last")
            }
            let rules = try RuleFiles.load(Array(files.dropLast()), defaultChain: chain.chain)
            try RuleReport(rules, isJSON: json).run(recording, sessions: Set(session))
        }
    }
}

/// `--chain`.
struct DefaultChainOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Chain of rules before the first chain line (default: both).",
            discussion: "deliver is mod_firewall's default: such rules see only what the server sends.",
            valueName: "chain"
        ),
        completion: .list(RuleSet.chainNames),
        transform: { text throws(ValidationError) in
            guard RuleSet.chainNames.contains(text) else {
                throw ValidationError("the chains are \(RuleSet.chainNames.joined(separator: ", "))")
            }
            return text
        }
    )
    var chain = "both"
}
