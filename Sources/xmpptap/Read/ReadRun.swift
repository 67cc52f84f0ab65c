internal import Synchronization
internal import TapCapture
internal import TapCore
internal import TapRecord

/// Shows the records of files on standard output.
struct ReadRun {
    private let plan: ReadPlan
    private let sink: LogSink
    private let trouble = Trouble()

    /// Why standard output takes no more.
    private final class Trouble: Sendable {
        private let state = Mutex<WriterFault?>(nil)

        var fault: WriterFault? {
            get { state.withLock { $0 } }
            set { state.withLock { $0 = $0 ?? newValue } }
        }
    }

    init(_ plan: ReadPlan) throws(Failure) {
        self.plan = plan
        // The headers are those of the files: what is shown is what they hold.
        let header = plan.header
        let run = LoggedRun(
            tool: header.tool,
            word: header.run,
            redaction: header.redaction,
            run: Run(),
            now: { Run.Instant(time: header.time, monotonic: 0) }
        )
        var configuration = OpenLogs.configuration(plan.output, cutAdvice: "redirected to a file it is whole")
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

    /// Shows everything; with `isReanalysed` what today's code makes of complete captures.
    ///
    /// - Throws: ``ReaderFault`` where a file cannot be read on, a ``Failure`` where lines had to be passed over or
    ///   nothing could be written. A reader that closes the output is no failure.
    func run(_ reader: RecordReader, isReanalysed: Bool = false) throws {
        let reanalysis = isReanalysed ? Reanalysis(reader) : nil
        var isWhole = true
        var sessions = SessionsFound()
        var parts = ShownParts(plan, sink)
        do {
            while trouble.fault == nil, let entry = try reanalysis?.next() ?? reader.next() {
                switch entry {
                case .header(let header):
                    sessions.note(run: header.run)
                    parts.begin(header)
                case .record(let record):
                    sessions.note(session: record.record.session)
                    if plan.sessions.isEmpty || plan.sessions.contains(record.record.session) { parts.show(record) }
                case .gap(let gap):
                    Console.complain("\(gap)")
                    parts.noteGap()
                case .damage(let line):
                    Console.complain("\(line)")
                    isWhole = isWhole && line.isInterruption
                    parts.noteDamage()
                }
            }
        } catch {
            sink.close()
            throw error
        }
        let lost = sink.close(within: .seconds(3600))
        if trouble.fault == nil, let remark = sessions.remark(on: plan.sessions) { Console.complain(remark) }
        if let fault = trouble.fault {
            guard fault.code != .brokenPipe else { return }
            throw Failure.file("\(fault)")
        }
        guard lost.isEmpty else {
            throw Failure.file("\(lost.records) records could not be written to standard output")
        }
        if let reanalysis, !reanalysis.isWhole {
            Console.complain(
                "--reanalyse: \(plan.files.joined(separator: ", ")): not a complete capture; the stored records are shown; "
                    + "record with --capture"
            )
            isWhole = false
        }
        guard isWhole else { throw Failure.reported(.file) }
        guard !sessions.lacksAny(of: plan.sessions) else { throw Failure.reported(.checkFailed) }
    }
}
