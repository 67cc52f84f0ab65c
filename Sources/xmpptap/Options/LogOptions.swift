internal import ArgumentParser
internal import TapRecord
internal import TapRules

/// The default of a command's log on standard output.
protocol UsualLog {
    /// The description of the default, for the help.
    static var text: String { get }
}

/// The flags of commands that write logs.
struct LogOptions<Usual: UsualLog>: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Level and parts to log to standard output.",
            discussion: """
                Comma-separated list of a level (off, error, warn, info, verbose, trace), send, recv, PART=LEVEL, \
                session:N=LEVEL and jid:JID=LEVEL. Default: \(Usual.text).
                """,
            valueName: "spec"
        ),
        completion: .logSpec,
        transform: LogSpec.typed
    )
    var log: LogSpec?

    @OptionGroup var filter: FilterOption
    @OptionGroup var form: FormOptions

    @Option(
        help: ArgumentHelp(
            "Write another log to a file; repeatable.",
            discussion: """
                Default: text at level info. Example: --log-to tap.jsonl,format=json,verbose. filter= comes last: \
                --log-to chat.log,verbose,filter=message.
                """,
            valueName: "path[,format=text|compact|json|pretty][,spec][,filter=expression]"
        ),
        completion: .file(),
        transform: LogDestination.init
    )
    var logTo: [LogDestination] = []

    @Option(
        file: "Record all sessions to this file, for read and explain.",
        discussion: """
            In a folder the file is xmpptap-TIME-NUMBER.xtap. Placeholders: %t (time in UTC), %s (session) and %j (its JID, \
            once bound); with %s or %j each session has a file. A name that ends in .gz or .zst is compressed.
            """,
        valueName: "path[,filter=expression]"
    )
    var capture: String?

    @OptionGroup var trigger: TriggerOptions

    @Flag(help: "Add to a --capture file that exists.")
    var append = false

    @Flag(
        help: ArgumentHelp(
            "Chain the lines of --capture by their hashes.",
            discussion:
                "Later changes are found by read --verify. The last hash is printed at the end; keep it elsewhere."
        )
    )
    var hashChain = false

    @Option(
        help: ArgumentHelp("Rotate logs at this size (default: 100MB; 0 disables).", valueName: "size"),
        transform: ByteSize.init
    )
    var rotateSize = ByteSize(bytes: 100_000_000)

    @Option(
        help: ArgumentHelp("Rotated files to keep (default: 10 of a log, all of --capture).", valueName: "count"),
        transform: { try Number.parse($0, in: 0...9999) }
    )
    var rotateKeep: Int?

    @Option(
        help: ArgumentHelp("Rotate logs at this age, as in 1h or 7d (default: never).", valueName: "time"),
        transform: TimeSpan.age
    )
    var rotateAge: Duration?

    @Option(
        help: ArgumentHelp("Remove rotated files at this age (default: never).", valueName: "time"),
        transform: TimeSpan.age
    )
    var keepAge: Duration?

    @Flag(help: "Flush log files to disk (fdatasync) after each write.")
    var fsync = false

    @Option(
        help: ArgumentHelp(
            "What to hide in logs and captures (default: secrets).",
            discussion: """
                secrets: passwords, tokens and keys. bodies: also message texts. metadata: everything except kinds of \
                stanzas, sizes, times and pseudonyms.
                """,
            valueName: "secrets|bodies|metadata"
        ),
        completion: .list(RedactionPolicy.allCases.filter { $0 != .none }.map(\.rawValue)),
        transform: RedactionPolicy.typed
    )
    var redact: RedactionPolicy?

    @Flag(help: "Log passwords and other secrets in clear text.")
    var noRedact = false

    @Flag(help: "Close and refuse sessions while a log cannot be written.")
    var logRequired = false

    /// Returns the flags as typed.
    ///
    /// - Throws: A ``Failure`` if a flag requires another one that is missing.
    func request(store: StoreRequest?) throws(Failure) -> LogRequest {
        LogRequest(
            log: log,
            filter: filter.filter,
            form: form.format,
            colour: form.color,
            showsBodies: form.bodies,
            logTo: logTo,
            capture: capture,
            trigger: try trigger.trigger(of: capture),
            store: store,
            appends: append,
            hasChain: hashChain,
            rotateSize: rotateSize,
            rotateKeep: rotateKeep,
            rotateAge: rotateAge,
            keepAge: keepAge,
            syncs: fsync,
            redact: redact,
            showsSecrets: noRedact,
            isRequired: logRequired
        )
    }
}

extension Option where Value == String? {
    /// Creates an option for a file name, with shell completion.
    init(
        file abstract: String,
        discussion: String = "",
        valueName: String = "file",
        completion: CompletionKind = .file()
    ) {
        self.init(
            help: ArgumentHelp(abstract, discussion: discussion, valueName: valueName),
            completion: completion
        )
    }
}

/// `--format`, `--color` and `--bodies`.
struct FormOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Form of the records.",
            discussion: """
                compact: rows of columns, cut to the terminal; logins and repetitions are folded. text: lines. pretty: text \
                with indented XML. Default: compact on a terminal, otherwise text.
                """,
            valueName: "form"
        )
    )
    var format: LogDestination.Form?

    @Option(help: ColourOption.help)
    var color = ColourChoice.auto

    @Flag(
        inversion: .prefixedNo,
        help: ArgumentHelp(
            "Show the texts of messages in rows and lines.",
            discussion: """
                Default: in rows (compact) on a terminal. Only on standard output. Texts that --redact has hidden stay hidden.
                """
        )
    )
    var bodies: Bool?
}

/// `--color`.
struct ColourOption: ParsableArguments {
    static let help = ArgumentHelp("When to use colours.", valueName: "when")

    @Option(help: Self.help)
    var color = ColourChoice.auto
}

extension LogDestination.Form: ExpressibleByArgument {}

/// `--log`, for commands that show recorded or captured sessions.
struct ShownLogOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Level and parts to show.",
            discussion: """
                As for proxy. Default: info; with --format text on a terminal info,send,recv; with --json everything.
                """,
            valueName: "spec"
        ),
        completion: .logSpec,
        transform: LogSpec.typed
    )
    var log: LogSpec?
}

/// `--filter`.
struct FilterOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Show only records that meet this condition.",
            discussion: """
                Conditions of rule files, joined by and, or, not and parentheses: --filter 'message and \
                with:romeo@example.net and not body~"^/"'. filters/README.md lists them.
                """,
            valueName: "expression"
        ),
        transform: RecordFilter.typed
    )
    var filter: RecordFilter?
}

extension LogSpec {
    static func typed(_ text: String) throws(Failure) -> LogSpec {
        do throws(LogSpecError) {
            return try LogSpec(text)
        } catch {
            throw .usage(error.description)
        }
    }
}

extension RedactionPolicy {
    /// Parses a policy. `none` is not accepted: it is selected with `--no-redact`.
    static func typed(_ text: String) throws(Failure) -> RedactionPolicy {
        guard let policy = RedactionPolicy(rawValue: text), policy != .none else {
            let names = RedactionPolicy.allCases.filter { $0 != .none }.map(\.rawValue).joined(separator: ", ")
            throw .usage("choose one of \(names)")
        }
        return policy
    }
}
