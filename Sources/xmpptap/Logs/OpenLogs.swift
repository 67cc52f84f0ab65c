internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapRecord

final class OpenLogs: Sendable {
    /// Passes records to all logs.
    let dispatcher: RecordDispatcher

    /// The log whose level can be changed while the program runs; nil where there are captures alone.
    let controlled: ControlledOutput?

    private let sinks: [(name: String, sink: LogSink)]
    private let watch: Watch

    /// Tracks which logs cannot be written, and notifies one observer.
    private final class Watch: Sendable {
        private struct State {
            /// Indices of the logs that cannot be written.
            var failing: Set<Int> = []
            /// Indices of the logs whose reader closed the pipe, which is no failure: standard output only.
            var unread: Set<Int> = []
            var tell: (@Sendable (Bool) -> Void)?
        }

        private let state = Mutex(State())

        /// Notifies of the first log that fails and the last that recovers, with the lock held, so in order.
        func changed(_ log: Int, isFailing: Bool) {
            state.withLock { state in
                let wasFailing = !state.failing.isEmpty
                if isFailing { state.failing.insert(log) } else { state.failing.remove(log) }
                if state.failing.isEmpty == wasFailing { state.tell?(isFailing) }
            }
        }

        func lostReader(_ log: Int) { state.withLock { _ = $0.unread.insert(log) } }

        func hasLostReader(_ log: Int) -> Bool { state.withLock { $0.unread.contains(log) } }

        func onChange(_ tell: @escaping @Sendable (Bool) -> Void) {
            state.withLock { state in
                state.tell = tell
                if !state.failing.isEmpty { tell(true) }
            }
        }
    }

    /// Opens the logs of a plan.
    ///
    /// - Throws: A ``Failure`` that names the flag and the file.
    init(_ plan: LogPlan, run: LoggedRun) throws(Failure) {
        var sinks: [(String, LogSink)] = []
        let watch = Watch()
        let rotation = plan.rotateSize.map { RecordWriter.Rotation(size: $0, keep: plan.rotateKeep) }
        for (place, log) in plan.logs.enumerated() {
            do throws(Failure) {
                try Self.refuseForeign(log)
                sinks.append((log.name, try Self.open(log, rotation, run, watch, place)))
            } catch {
                for (_, sink) in sinks { sink.close() }
                throw error
            }
        }
        self.sinks = sinks
        self.watch = watch
        let dispatcher = RecordDispatcher(sinks.map(\.1))
        self.dispatcher = dispatcher
        controlled = zip(plan.logs, sinks).first { !$0.0.isComplete }.map { ControlledOutput($0.1.1, dispatcher) }
    }

    private static func open(
        _ log: LogPlan.Log,
        _ rotation: RecordWriter.Rotation?,
        _ run: LoggedRun,
        _ watch: Watch,
        _ place: Int
    ) throws(Failure) -> LogSink {
        do throws(WriterFault) {
            return try LogSink(configuration(log, rotation: rotation), run: run) { event in
                tell(event, of: log)
                switch event {
                case .failed(let fault):
                    if log.path == nil, fault.code == .brokenPipe { watch.lostReader(place) }
                    watch.changed(place, isFailing: true)
                case .recovered: watch.changed(place, isFailing: false)
                case .notice, .room, .stalled, .flowing: break
                }
            }
        } catch {
            throw .file("\(log.flag): \(error)")
        }
    }

    /// Refuses to append JSON to a file with other content: no command could read it.
    private static func refuseForeign(_ log: LogPlan.Log) throws(Failure) {
        guard log.form == .json, let path = log.path, TextFile.isRegular(path) else { return }
        let foreign = Failure.file(
            "\(log.flag): \(path) exists and is not a JSON log of xmpptap; choose another name"
        )
        do throws(ReaderFault) {
            guard try RecordReader([path]).hasClientLog else { return }
        } catch {
            switch error.code {
            case .notOurs, .otherFormat, .newerVersion: throw foreign
            // Errors of writing are reported when it is opened.
            case .cannotOpen, .cannotRead, .empty: return
            }
        }
        // A client log can be read, but not appended to.
        throw foreign
    }

    /// Calls `tell` with true when a log cannot be written, immediately if that is already the case, and with false when all
    /// can be written again. Calls come on any thread, one at a time.
    func onFailure(_ tell: @escaping @Sendable (Bool) -> Void) { watch.onChange(tell) }

    /// What each log has written so far.
    var figures: [LogFigures] {
        sinks.map { name, sink in
            let counters = sink.counters
            return LogFigures(name: name, written: counters.records, dropped: counters.dropped.records)
        }
    }

    /// Reopens the files, after they were renamed.
    func reopen() {
        for (_, sink) in sinks { sink.reopen() }
    }

    /// Writes all records, closes the logs, and prints which records were lost.
    ///
    /// - Returns: Whether every log is complete, except standard output whose reader closed the pipe.
    @discardableResult
    func close(within time: Duration) -> Bool {
        var isWhole = true
        for (place, (name, sink)) in sinks.enumerated() {
            let lost = sink.close(within: time)
            guard !lost.isEmpty else { continue }
            Console.complain("warning: \(name) is incomplete: \(lost.records) records (\(lost.bytes) bytes) lost")
            isWhole = isWhole && watch.hasLostReader(place)
        }
        return isWhole
    }

    /// The configuration of a log's sink.
    ///
    /// - Parameter cutAdvice: How to see the whole text that a terminal shows shortened.
    static func configuration(
        _ log: LogPlan.Log,
        rotation: RecordWriter.Rotation? = nil,
        cutAdvice: String = "use --log-to FILE,verbose for all of it"
    ) -> LogSink.Configuration {
        var writer = RecordWriter.Options()
        if log.path != nil { writer.rotation = rotation }
        var style = TextForm.Style()
        style.cutsLongTexts = log.isTerminal
        style.cutAdvice = cutAdvice
        style.isColoured = log.isColoured
        style.indentsXML = log.form == .pretty
        return LogSink.Configuration(
            log.path.map { .path($0) } ?? .standardOutput,
            form: log.form == .json ? .json : .text(style),
            spec: log.spec,
            filter: log.filter,
            isCapture: log.isComplete,
            writer: writer
        )
    }

    /// Prints when writing fails or blocks, and when it works again.
    private static func tell(_ event: RecordWriter.Event, of log: LogPlan.Log) {
        switch event {
        case .failed(let fault):
            let outlook = fault.code == .diskFull ? "; records are buffered, then dropped, until there is space" : ""
            Console.complain("\(log.flag): \(fault)\(outlook)")
        case .recovered(let loss) where loss.isEmpty:
            Console.complain("\(log.name) can be written again; nothing was lost")
        case .recovered(let loss):
            Console.complain("\(log.name) can be written again; \(loss.records) records were lost")
        case .notice(let fault): Console.complain("warning: \(log.flag): \(fault)")
        case .stalled:
            Console.complain("warning: log output to \(log.name) is blocked; relaying is paused until it is read")
        case .flowing(let duration):
            let time = LineBuffer.duration(duration.wholeNanoseconds)
            Console.complain("log output to \(log.name) is no longer blocked after \(time); relaying continues")
        case .room: break
        }
    }
}
