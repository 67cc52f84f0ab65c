internal import ArgumentParser
internal import TapCapture
internal import TapRecord
internal import TapSecurity

struct ReadCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "read",
        abstract: "Show the records of a capture, log or packet capture.",
        discussion: """
            Prints files as the live log would have shown them, at any level recorded in them: JSON logs and captures, \
            text logs with the XML of items, a client's own log (SEND: and RECV:), Smack's and Prosody's debug logs, and \
            packets (pcap, pcapng). Files of different kinds are merged by time. Name all rotated files of a run, in \
            any order, or their folder; "-" is standard input.

            Examples:

              xmpptap read today.xtap --log info
              xmpptap read today.xtap --sessions
              xmpptap read today.xtap --follow --filter message
              xmpptap read today.xtap --since 17:20 --until 17:25
              xmpptap read today-*.xtap today.xtap --session 3 --log verbose
              xmpptap read today.xtap --log verbose --filter 'message and body~"(?i)invoice"'
              xmpptap read yesterday.xtap --reanalyse --log verbose
              xmpptap read night.pcap --keylog keys.txt
              xmpptap read today.xtap --json | jq -r 'select(.name == "message") | .xml'
            """
    )

    @Argument(
        help: ArgumentHelp("Capture, log, packets, or a folder of captures.", valueName: "file"),
        completion: .recordings
    )
    var files: [String]

    @OptionGroup var shown: ShownLogOption
    @OptionGroup var filter: FilterOption
    @OptionGroup var form: FormOptions
    @OptionGroup var redaction: RedactionOptions
    @OptionGroup var store: StoreOption
    @OptionGroup var storeAccess: StoreAccessOptions
    @OptionGroup var storeSpool: SpoolOptions
    @OptionGroup var storeContent: StoredContentOptions

    @Option(
        help: ArgumentHelp(
            "Show only records of this time or later.",
            discussion: """
                A time (2026-11-21T17:22:42Z), a time of day (17:22), or a time before now (-10m). Without Z or an offset \
                it is local.
                """,
            valueName: "time"
        ),
        transform: TimeBound.parse
    )
    var since: TimeBound?

    @Option(
        help: ArgumentHelp("Show only records before this time.", valueName: "time"),
        transform: TimeBound.parse
    )
    var until: TimeBound?

    @Flag(
        help: ArgumentHelp(
            "Show a table of the sessions instead of the records.",
            discussion: """
                The sessions with at least one record that the other options select. SENT and RECEIVED count stanzas.
                """
        )
    )
    var sessions = false

    @Flag(help: "Show counts, sizes, round trips and errors instead of the records.")
    var stats = false

    @Flag(
        help: ArgumentHelp(
            "Show new records as they are written, until Ctrl-C.",
            discussion: """
                After rotation or truncation, reading continues with the new file, as with tail -F. Waits for the first \
                record of a file that has none. Not for packets: see sniff.
                """
        )
    )
    var follow = false

    @Flag(help: "Print JSON, one record or session per line.")
    var json = false

    @Flag(
        help: ArgumentHelp(
            "Check the hash chain of captures instead of showing records.",
            discussion: "For captures made with --hash-chain. Exit code 1 and the first line that does not fit."
        )
    )
    var verify = false

    @Option(
        help: ArgumentHelp(
            "With --verify: the end of the chain, as the recording printed it; repeatable, one for each run.",
            discussion: "Without it, a file that was truncated or completely rewritten is not detected.",
            valueName: "hash"
        )
    )
    var head: [String] = []

    @Flag(
        help: ArgumentHelp(
            "Decode the items of a complete capture again.",
            discussion: """
                Timeline, diagnosis and summaries are made by this version; redacted secrets stay redacted. Other files \
                are shown as stored, with exit code 3.
                """
        )
    )
    var reanalyse = false

    @Option(
        help: ArgumentHelp("Show only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        guard !verify else { return try check() }
        guard head.isEmpty else { throw Failure.usage("--head needs --verify; add it") }
        guard !sessions, !stats else { return try report() }
        guard !follow || !reanalyse else {
            throw Failure.usage("--reanalyse and --follow exclude each other; leave one out")
        }
        let store = try store.request(storeAccess, storeSpool, storeContent)
        do {
            if follow { Interruption.installHandlers() }
            let keys = try keylog.keys()
            let policy = try redaction.policy(showsBodies: form.bodies == true)
            guard let reader = try open(keys, policy) else { return }
            try redaction.check(reader)
            reader.follows = follow
            let plan = ReadPlan(
                files: files,
                log: shown.log,
                filter: filter.filter,
                form: json ? .json : form.format,
                colour: form.color,
                showsBodies: form.bodies,
                sessions: Set(session),
                times: choice.times(in: reader.firstHeader),
                header: reader.firstHeader,
                isLive: follow,
                in: .current
            )
            if let note = plan.note { Console.printDiagnostic(note) }
            try ReadRun(plan, store: store).run(reader, isReanalysed: reanalyse)
        } catch let fault as ReaderFault {
            throw Failure(fault)
        }
    }

    /// Opens the files. With `--follow`, waits until each of them has content that can be read; nil if the user ends the
    /// command before.
    private func open(_ keys: KeyLog, _ policy: RedactionPolicy) throws -> RecordReader? {
        var announced: String?
        while true {
            do throws(ReaderFault) {
                return try RecordReader(
                    files,
                    advice: AdviceTable.advice(for:),
                    keys: keys,
                    redaction: policy,
                    zone: .system
                )
            } catch {
                guard follow, error.mayPass else { throw error }
                if announced != error.path {
                    announced = error.path
                    Console.printDiagnostic(
                        "\(error.path) has no records or stanzas yet; waiting for them, Ctrl-C ends"
                    )
                }
                // A larger file takes longer to read again.
                let size = FileStatus(path: error.path)?.size
                repeat { guard ReadRun.waits() else { return nil } } while FileStatus(path: error.path)?.size == size
            }
        }
    }

    /// Checks the hash chain of the files.
    private func check() throws {
        guard !files.contains("-") else { throw Failure.usage("--verify needs files; it reads them twice") }
        let chain: HashChainVerification
        do throws(ReaderFault) {
            chain = try HashChainVerification(files)
        } catch {
            throw Failure(error)
        }
        if let fault = chain.firstBreak {
            let advice = fault.hasNoChain && chain.records == 0 ? "; record with --capture FILE --hash-chain" : ""
            Console.printDiagnostic("\(fault)\(advice)")
            throw Failure.reported(.checkFailed)
        }
        guard !chain.heads.isEmpty else { throw Failure.file("\(files.joined(separator: ", ")): no hash chain found") }
        let ends = chain.heads.joined(separator: ", ")
        Console.print("\(Plural.of(Int(clamping: chain.records), "record")) in the hash chain, which ends with \(ends)")
        if chain.isTorn { Console.printDiagnostic("warning: the last line is incomplete, and not in the chain") }
        guard !head.isEmpty else {
            if chain.beginsWithin {
                Console.printDiagnostic("warning: files that were written before were not named, so not checked")
            }
            return Console.printStandardError(
                "without --head, a file that was truncated or completely rewritten is not detected"
            )
        }
        let expected = Set(head.map { $0.lowercased() })
        if chain.beginsWithin {
            Console.printDiagnostic(
                "the beginning of the hash chain is missing: name all files, or the first header was changed"
            )
        }
        for end in chain.heads where !expected.contains(end) {
            Console.printDiagnostic(
                "a hash chain ends with \(end), which no --head names: lines were removed, added or rewritten"
            )
        }
        for missing in expected.subtracting(chain.heads).sorted() {
            Console.printDiagnostic("no hash chain ends with \(LineBuffer.escaped(missing))")
        }
        guard !chain.beginsWithin, Set(chain.heads) == expected else { throw Failure.reported(.checkFailed) }
    }

    private var choice: RecordChoice {
        RecordChoice(sessions: Set(session), since: since, until: until, filter: filter.filter)
    }

    /// Prints the overview that `--sessions` or `--stats` requests.
    private func report() throws {
        guard !sessions || !stats else { throw Failure.usage("choose one of --sessions and --stats") }
        let flag = sessions ? "--sessions" : "--stats"
        guard shown.log == nil, !follow else {
            throw Failure.usage("\(follow ? "--follow" : "--log") is not for \(flag)")
        }
        var report = OverviewReport(sessions ? .sessions : .statistics, of: choice)
        let stored = try StoredRecords(
            files,
            isReanalysed: reanalyse,
            keys: keylog.keys(),
            redaction: redaction
        ) { report.add($0) }
        stored.remark(on: choice.sessions)
        let lines = report.lines(isJSON: json, style: .ofOutput(form.color))
        if lines.isEmpty { Console.printDiagnostic("no sessions found") }
        for line in lines { Console.print(line) }
        try stored.end(choice.sessions)
    }
}
