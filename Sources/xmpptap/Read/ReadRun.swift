internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapCore
internal import TapRecord
internal import TapRules
internal import TapStore

/// Shows the records of files on standard output, or writes them to another file.
struct ReadRun {
    private let plan: ReadPlan
    private let sink: LogSink
    private let capture: SniffedCapture?
    private let rows: RecordedRows?
    private let trouble = Trouble()

    /// The first error of the output.
    private final class Trouble: Sendable {
        private let state = Mutex<WriterFault?>(nil)

        var fault: WriterFault? {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = $0 ?? newValue } }
        }
    }

    /// Opens the output. If there is a capture, or an audit store, all records are written to it as well.
    init(_ plan: ReadPlan, capture: SniffedCapture? = nil, store: StoreRequest? = nil) throws(Failure) {
        self.plan = plan
        self.capture = capture
        rows = try store.map { request throws(Failure) in try request.open() }
        // Use the headers of the files, which describe the shown records.
        let header = plan.header
        let run = LoggedRun(
            tool: header.tool,
            word: header.run,
            redaction: header.redaction,
            run: Run(),
            now: { Run.Instant(time: header.time, monotonic: 0) }
        )
        var configuration = OpenLogs.configuration(plan.output, cutAdvice: "redirect to a file to see it whole")
        configuration.isCapture = plan.keepsAll
        configuration.writesHeader = false
        do throws(WriterFault) {
            sink = try LogSink(configuration, run: run) { [trouble] event in
                if case .failed(let fault) = event { trouble.fault = fault }
            }
        } catch {
            throw .file("--log: \(error)")
        }
    }

    /// Waits up to 100 ms for a file to grow, or for packets.
    ///
    /// - Returns: Whether to continue: standard output still has a reader, and the user has not stopped the command or
    ///   an interface still has packets.
    private static func waits(for reader: RecordReader) -> Bool {
        guard reader.follows || reader.isLive, !Interruption.hasCome || reader.stop() else { return false }
        return hasReader(afterWaitingFor: reader.descriptor)
    }

    /// Waits up to 100 ms for a file that has no content yet.
    ///
    /// - Returns: Whether to continue, as for a file that was opened.
    static func waits() -> Bool { !Interruption.hasCome && hasReader(afterWaitingFor: -1) && !Interruption.hasCome }

    /// Waits up to 100 ms for data on a descriptor; returns whether standard output still has a reader.
    private static func hasReader(afterWaitingFor descriptor: Int32) -> Bool {
        var sources = [
            pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        poll(&sources, 2, 100)
        return sources[0].revents == 0
    }

    /// Shows all records. If `isReanalysed`, those of complete captures are decoded again from their items.
    ///
    /// - Throws: ``ReaderFault`` if a file becomes unreadable; a ``Failure`` if lines were skipped or records could not
    ///   be written. A closed pipe on standard output does not count as a failure.
    func run(_ reader: RecordReader, isReanalysed: Bool = false) throws {
        let reanalysis = isReanalysed ? CaptureReanalyzer(reader) : nil
        // Skip lines that cannot match the filter, unless they are needed for another purpose.
        if reanalysis == nil, rows == nil, plan.sessions.isEmpty {
            reader.requiredLiterals = plan.output.filter?.literals
        }
        let isLive = reader.isLive
        var damage = DamageReport()
        let rows = rows
        var copier = RecordCopier(reader, reanalysis, plan.selection, to: sink, capture: capture?.sink) {
            rows?.add($0)
        }
        var parts = ShownParts(plan, sink)
        // If records are shown continuously on the terminal, no progress line is needed.
        let showsItself = plan.output.isTerminal && (!plan.selects || reader.follows)
        let progress = showsItself ? nil : ProgressLine(after: .seconds(1))
        do {
            defer {
                progress?.clear()
                damage.end()
            }
            copying: while trouble.fault == nil {
                let stop = try copier.next()
                parts.add(copier.takeCount())
                rows?.commitIfDue()
                switch stop {
                case .pause: progress?.update(reader)
                case .end: guard Self.waits(for: reader) else { break copying }
                case .header(let header):
                    parts.begin(header, of: reanalysis?.path ?? reader.path)
                    rows?.begin(header)
                    // The records are only for this output: format them in bulk.
                    guard reanalysis == nil, capture == nil, rows == nil, plan.includesAll,
                        reader.formLines(sink.lineMakers)
                    else {
                        continue
                    }
                    while trouble.fault == nil, let lines = reader.nextLines() {
                        sink.write(lines)
                        progress?.update(reader)
                    }
                case .gap(let gap):
                    Console.printDiagnostic("\(gap)")
                    parts.recordGap()
                case .damage(let line):
                    damage.record(line)
                    parts.recordDamage()
                }
            }
        } catch {
            sink.close()
            try? capture?.close()
            rows?.finish()
            throw error
        }
        rows?.finish()
        guard isLive || !Interruption.hasCome else { return _ = sink.close() }
        var captureFailure: Failure?
        do throws(Failure) { try capture?.close() } catch { captureFailure = error }
        let lost = sink.close(within: .seconds(3600))
        if trouble.fault == nil, let remark = copier.found.remark(on: plan.sessions) { Console.printDiagnostic(remark) }
        if let fault = trouble.fault {
            guard fault.code != .brokenPipe else { return }
            throw Failure.file("\(fault)")
        }
        guard lost.isEmpty else {
            throw Failure.file("\(lost.records) records could not be written to \(plan.output.name)")
        }
        if let captureFailure { throw captureFailure }
        if let fault = rows?.fault { throw Failure.file("--store: \(LineBuffer.escaped("\(fault)"))") }
        var isWhole = damage.isWhole
        if let reanalysis, !reanalysis.isWhole {
            Console.printDiagnostic(
                "--reanalyse: \(plan.files.joined(separator: ", ")): not a complete capture; the stored records are shown; "
                    + "record with --capture"
            )
            isWhole = false
        }
        guard isWhole else { throw Failure.reported(.file) }
        guard !copier.found.lacksAny(of: plan.sessions) else { throw Failure.reported(.checkFailed) }
    }
}
