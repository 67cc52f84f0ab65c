internal import ArgumentParser
internal import ServiceLifecycle
internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapSecurity
internal import TapStore

struct ViewCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "view",
        abstract: "Show records in the browser, or in the terminal.",
        discussion: """
            Serves a page on this machine and prints its address, which contains a secret: only who has it can read the \
            records. The page shows the sessions, the records with their XML, each session as a diagram with the \
            diagnosis of its login, conversations, errors and figures. Files are read only. Press Ctrl-C to end it.

            With --tui, shows sessions, records and diagrams in this terminal instead; ? lists the keys, q quits.

            Takes all files that "xmpptap read" takes, or one audit store, NAME.sqlite or clickhouse://…, of which it shows \
            all stanzas. The records of a running proxy are shown by "xmpptap proxy --web" and "xmpptap proxy --tui".

            Examples:

              xmpptap view today.xtap
              xmpptap view captures/
              xmpptap view night.pcap --keylog keys.txt
              xmpptap view audit.sqlite
              xmpptap view today.xtap --listen 8080
              xmpptap view today.xtap --tui
            """
    )

    @Argument(
        help: ArgumentHelp("Capture, log, packets, a folder of captures, or an audit store.", valueName: "file"),
        completion: .recordings
    )
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Port of the page (default: any free port).",
            discussion: """
                Only addresses of this machine. From another one, use ssh -L PORT:127.0.0.1:PORT.
                """,
            valueName: "[host:]port"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var listen: ListenSpec?

    @Flag(
        help: ArgumentHelp(
            "Show sessions and records in this terminal.",
            discussion: "The same sessions, records and filters as on the page, which is not served then."
        )
    )
    var tui = false

    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var config: ConfigOption

    /// Whether the user has ended the command.
    private final class Ended: Sendable {
        let flag = Atomic(false)
    }

    /// The recording that is shown.
    private enum Recording {
        case files(RecordFiles)
        case store(StoreRecords)

        var table: RecordTable {
            switch self {
            case .files(let files): files.table
            case .store(let store): store.table
            }
        }

        var redaction: String {
            switch self {
            case .files(let files): files.header.redaction.rawValue
            case .store: "as recorded"
            }
        }
    }

    private func open() throws -> Recording {
        guard !AuditSourceOptions.areStore(files) else {
            let place = try access.place(files[0])
            try Failure.ofStore { () throws(StoreFault) in _ = try place.open() }
            return .store(StoreRecords(place))
        }
        try access.refuseWithoutServer()
        do {
            return .files(
                try RecordFiles(files, advice: AdviceTable.advice(for:), keys: keylog.keys(), zone: .system)
            )
        } catch let fault as ReaderFault {
            throw Failure(fault)
        }
    }

    func run() async throws {
        if tui {
            try TerminalInspector.check(instead: "'xmpptap view' without --tui, or 'xmpptap read'")
            guard listen == nil else { throw Failure.usage("--tui serves no page; leave --listen out, or --tui") }
        }
        let recording = try open()
        let page = tui ? nil : try PagePort.open(listen ?? ListenSpec(port: 0), flag: "--listen")
        let names = files.map(FileName.last)
        var subject = Inspection.Subject(
            title: names.count == 1 ? names[0] : "\(names[0]) and \(Plural.of(names.count - 1, "other file"))",
            files: files,
            tool: TapRun.tool,
            isLive: false,
            redaction: recording.redaction
        )
        let words = files.map { ShellWords.quoted(ShellWords.absolute($0)) }.joined(separator: " ")
        // A store does not have sessions as they were on the wire, so no test can be made of it.
        if case .files = recording, !files.contains("-") {
            subject.recording = { Inspection.Recording(words: words) }
        }
        // Another run: the page of an earlier one is not continued.
        let random = (0..<RunIdentifier.randomCount).map { _ in UInt8.random(in: 0...UInt8.max) }
        let run = RunIdentifier.text(at: RunClock().now().time, random: random)
        let inspection = Inspection(subject, run: run, recording.table)
        let ended = Ended()
        Self.load(recording, inspection, until: ended)
        guard let page else { return try await Self.show(inspection, until: ended) }
        let service = PageService(page.port, inspection, token: page.token, logger: DiagnosticHandler.logger())
        Console.printStandardError("\(subject.title): open \(service.url)")
        Console.printStandardError("Ctrl-C ends it")
        let services = ServiceRun(
            services: [service],
            grace: .seconds(2),
            onHangUp: {},
            finish: { _ in
                ended.flag.store(true, ordering: .relaxed)
                return true
            }
        )
        _ = try await services.run()
    }

    /// Shows the records in the terminal until the user quits.
    private static func show(_ inspection: Inspection, until ended: Ended) async throws {
        let ending = await TerminalInspector(inspection, messages: TerminalMessages()).run(endsProgram: true)
        ended.flag.store(true, ordering: .relaxed)
        if case .failed(let reason) = ending { throw Failure.file("--tui: \(reason)") }
    }

    /// Reads the files on another thread, while what was read already is shown.
    private static func load(_ recording: Recording, _ inspection: Inspection, until ended: Ended) {
        // Only the new thread uses the files from now on.
        nonisolated(unsafe) let recording = recording
        let error = WorkerThread.start(named: "view") {
            switch recording {
            case .files(let files): files.load(inspection) { !ended.flag.load(ordering: .relaxed) }
            case .store(var store): store.load(inspection) { !ended.flag.load(ordering: .relaxed) }
            }
            inspection.surveyAll { !ended.flag.load(ordering: .relaxed) }
        }
        if error != 0 { inspection.setTrouble("the files cannot be read: no thread can be started") }
    }
}
