internal import ArgumentParser
internal import TapCapture
internal import TapDiagnosis
internal import TapRecord
internal import TapReplay
internal import TapSecurity
internal import TapStore

struct ConvertCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Write a recording in another format.",
        discussion: """
            The ending of the last file is the format:

              .xtap    Capture, or JSON log
              .jsonl   JSON log, one record per line
              .log     Text log at level verbose
              .pcapng  Packets for Wireshark: one TCP connection per session, with
                       the content of TLS; actions of rules are comments
              .html    The page of view, with its records, as one file
              .sqlite  Audit store with the stanzas, for search; an existing one gets
                       the stanzas that it lacks
              .scs     Scansion script: what each client sent and received, with
                       wildcards for values that vary; replay and scansion run it

            With .gz or .zst after it, as in .xtap.gz, the file is compressed.

            The exit code is 1 if a session of --session was not found, or if \
            items are missing in the packets because the recording lacks their XML.

            Examples:

              xmpptap convert today.xtap today.pcapng
              xmpptap convert night.pcap night.xtap --keylog keys.txt
              xmpptap convert talk.xtap talk.scs
            """
    )

    @Argument(
        help: ArgumentHelp(
            "Captures, folders of them, logs or packets; the last is written.",
            valueName: "file"
        ),
        completion: .recordings(and: "scs", "html")
    )
    var files: [String]

    @Option(
        help: ArgumentHelp("Convert only this session; repeatable.", valueName: "number"),
        transform: { UInt64(try Number.parse($0, in: 1...Int.max)) }
    )
    var session: [UInt64] = []

    @Flag(help: "Replace the file to write if it exists.")
    var overwrite = false

    @OptionGroup var storeContent: StoredContentOptions
    @OptionGroup var access: StoreAccessOptions
    @OptionGroup var spool: SpoolOptions

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var config: ConfigOption

    /// The output formats; each raw value is the file name extension.
    private enum Format: String, CaseIterable {
        case xtap, jsonl, log, pcapng, html, sqlite, scs
    }

    func run() throws {
        guard files.count > 1, let output = files.last else {
            throw Failure.usage("name a recording and the file to write, as in 'xmpptap convert talk.xtap talk.pcapng'")
        }
        if ClickHouseAddress.isAddress(output) {
            return try writeStore(of: Array(files.dropLast()), try keylog.keys(), to: output)
        }
        let name = output.dropLast(Compression(path: output)?.ending.count ?? 0)
        if let flag = spool.flag { throw Failure.usage("\(flag) is for stores like clickhouse://HOST/DATABASE") }
        guard let format = Format.allCases.first(where: { name.hasSuffix(".\($0.rawValue)") }) else {
            let endings = Format.allCases.map { ".\($0.rawValue)" }.joined(separator: ", ")
            throw Failure.usage("\(output): unknown format; the file to write ends in one of \(endings)")
        }
        guard overwrite || format == .sqlite || !TextFile.isRegular(output) else {
            throw Failure.usage("\(output) exists already; choose another name or add --overwrite")
        }
        let inputs = Array(files.dropLast())
        let keys = try keylog.keys()
        switch format {
        case .xtap, .jsonl: try writeRecords(of: inputs, keys, to: output, isJSON: true)
        case .log: try writeRecords(of: inputs, keys, to: output, isJSON: false)
        case .pcapng: try writePackets(of: inputs, keys, to: output)
        case .html: try writePage(of: inputs, keys, to: output)
        case .sqlite: try writeStore(of: inputs, keys, to: output)
        case .scs: try writeScript(of: inputs, keys, to: output)
        }
    }

    private func writeRecords(of inputs: [String], _ keys: KeyLog, to output: String, isJSON: Bool) throws(Failure) {
        var ending: Failure?
        try OutputText.replace(output) { draft throws(Failure) in
            do {
                let reader = try RecordReader(inputs, advice: AdviceTable.advice(for:), keys: keys, zone: .system)
                let plan = ReadPlan(
                    files: inputs,
                    log: isJSON ? nil : LogSpec(level: .verbose),
                    form: isJSON ? .json : .text,
                    sessions: Set(session),
                    header: reader.firstHeader,
                    path: draft,
                    in: Surroundings(isTerminal: false, wantsColour: false)
                )
                if let note = plan.note { Console.printDiagnostic(note) }
                try ReadRun(plan).run(reader)
            } catch let failure as Failure {
                // Keep the records that could be read; the exit code says that some are missing.
                guard failure.message.isEmpty else {
                    // Replace the name of the temporary file, which the user does not know.
                    throw Failure(status: failure.status, message: failure.message.replacing(draft, with: output))
                }
                ending = failure
            } catch {
                throw .file("\(error)")
            }
        }
        if let ending { throw ending }
    }

    private func writePackets(of inputs: [String], _ keys: KeyLog, to output: String) throws(Failure) {
        let wanted = Set(session)
        var export = PacketExport(tool: "xmpptap \(Version.text)")
        var ending: Failure?
        try OutputText.replace(output) { draft throws(Failure) in
            let file = try OutputText.Draft(draft, as: output)
            var fault: Failure?
            func write() {
                do throws(Failure) { try file.write(export.takeBytes()) } catch { fault = fault ?? error }
            }
            let stored = try StoredRecords(inputs, keys: keys) { entry in
                switch entry {
                case .header(let header): export.add(header)
                case .record(let line) where wanted.isEmpty || wanted.contains(line.record.session): export.add(line)
                case .record, .damage, .gap: return
                }
                if export.waitingBytes >= 1 << 16 { write() }
            }
            export.finish()
            write()
            if let fault { throw fault }
            try file.finish()
            stored.remark(on: wanted)
            do throws(Failure) { try stored.end(wanted, isWell: export.missing == 0) } catch { ending = error }
        }
        if export.missing > 0 {
            Console.printDiagnostic(
                "\(export.missing) items are not in \(output): the recording lacks their XML; record with --capture"
            )
        }
        if let ending { throw ending }
    }

    private func writeStore(of inputs: [String], _ keys: KeyLog, to output: String) throws(Failure) {
        let wanted = Set(session)
        let content = try storeContent.content().content
        let place = try access.place(output, spool: spool.configuration(of: output))
        // A recording that cannot be opened leaves no empty store.
        var opened: RecordedRows?
        var failure: Failure?
        func rows() -> RecordedRows? {
            guard opened == nil, failure == nil else { return opened }
            do throws(Failure) {
                opened = try Failure.ofStore { () throws(StoreFault) in
                    try RecordedRows(place, content: content) { SpoolReport.show($0, of: place.name) }
                }
            } catch {
                failure = error
            }
            return opened
        }
        let stored = try StoredRecords(inputs, isReanalysed: false, keys: keys) { entry in
            switch entry {
            case .header(let header): rows()?.begin(header)
            case .record(let line) where wanted.isEmpty || wanted.contains(line.record.session): rows()?.add(line)
            case .record, .damage, .gap: return
            }
        }
        if let failure { throw failure }
        opened?.finish()
        if let fault = opened?.fault { throw .file(LineBuffer.escaped("\(fault)")) }
        stored.remark(on: wanted)
        try stored.end(wanted)
    }

    private func writePage(of inputs: [String], _ keys: KeyLog, to output: String) throws(Failure) {
        let wanted = Set(session)
        let page = PageFile(of: inputs, sessions: wanted, view: .records)
        let stored = try StoredRecords(inputs, keys: keys) { page.add($0) }
        stored.remark(on: wanted)
        try OutputText.write(page.drawn(), to: output)
        try stored.end(wanted)
    }

    private func writeScript(of inputs: [String], _ keys: KeyLog, to output: String) throws(Failure) {
        let sessions = try RecordedSessions.read(inputs, Set(session), keys: keys, refusals: true)
        let writer = ScriptWriter(sessions)
        guard let script = writer.script(title: Self.title(inputs)) else {
            throw Failure.file(
                "\(inputs.joined(separator: ", ")): no session with a completed login; a script cannot express a refused one, "
                    + "'xmpptap replay' plays it"
            )
        }
        try OutputText.write(script, to: output)
        for (reason, count) in writer.omissions {
            Console.printDiagnostic("not in the script: \(reason)\(count > 1 ? ", \(count) times" : "")")
        }
    }

    private static func title(_ files: [String]) -> String {
        files.map(FileName.last).joined(separator: ", ")
    }
}
