internal import Synchronization
internal import TapCapture
internal import TapCore

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

    /// Opens standard output.
    init(_ plan: ReadPlan) throws(Failure) {
        self.plan = plan
        // The header is that of the files: what is shown is what they hold.
        let header = plan.header
        let run = LoggedRun(
            tool: header.tool,
            word: header.run,
            redaction: header.redaction,
            run: Run(),
            now: { Run.Instant(time: header.time, monotonic: 0) }
        )
        var configuration = OpenLogs.configuration(plan.output, cutAdvice: "redirected to a file it is whole")
        configuration.isCapture = plan.isComplete
        do throws(WriterFault) {
            sink = try LogSink(configuration, run: run) { [trouble] event in
                if case .failed(let fault) = event { trouble.fault = fault }
            }
        } catch {
            throw .file("--log: \(error)")
        }
    }

    /// Shows everything.
    ///
    /// - Throws: ``ReaderFault`` where a file cannot be read on, a ``Failure`` where lines had to be passed over or
    ///   nothing could be written. That whoever reads the output has seen enough is no failure.
    func run(_ reader: RecordReader) throws {
        var hasDamage = false
        var sessions = SessionsFound()
        do {
            while trouble.fault == nil, let entry = try reader.next() {
                switch entry {
                case .header(let header): sessions.note(run: header.run)
                case .record(let record):
                    sessions.note(session: record.record.session)
                    if plan.sessions.isEmpty || plan.sessions.contains(record.record.session) { sink.write(record) }
                case .gap(let gap): Console.complain("\(gap)")
                case .damage(let line):
                    Console.complain("\(line)")
                    hasDamage = hasDamage || line.reason != .torn
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
        guard !hasDamage else { throw Failure.told(.file) }
    }
}
