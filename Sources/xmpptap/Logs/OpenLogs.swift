internal import Synchronization
internal import TapCapture
internal import TapRecord

/// All logs of a run, open.
final class OpenLogs: Sendable {
    /// Hands records to all of them.
    let dispatcher: RecordDispatcher

    private let sinks: [(name: String, sink: LogSink)]
    private let watch: Watch

    /// Whoever wants to know whether all logs are written.
    private final class Watch: Sendable {
        private struct State {
            /// The logs that are not, by their place.
            var failing: Set<Int> = []
            /// Those whose reader has gone, which is its own choice and no failure: standard output alone.
            var unread: Set<Int> = []
            var tell: (@Sendable (Bool) -> Void)?
        }

        private let state = Mutex(State())

        /// Only the first log that fails is told, and the last that works again; with the lock held, so in their order.
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
            } catch {
                for (_, sink) in sinks { sink.close() }
                throw error
            }
            do throws(WriterFault) {
                let sink = try LogSink(Self.configuration(log, rotation: rotation), run: run) { event in
                    Self.tell(event, of: log)
                    switch event {
                    case .failed(let fault):
                        if log.path == nil, fault.code == .brokenPipe { watch.lostReader(place) }
                        watch.changed(place, isFailing: true)
                    case .recovered: watch.changed(place, isFailing: false)
                    case .notice, .room, .stalled, .flowing: break
                    }
                }
                sinks.append((log.name, sink))
            } catch {
                for (_, sink) in sinks { sink.close() }
                throw .file("\(log.flag): \(error)")
            }
        }
        self.sinks = sinks
        self.watch = watch
        dispatcher = RecordDispatcher(sinks.map(\.1))
    }

    /// Refuses to add JSON to a file that holds something else: nothing could read it back.
    private static func refuseForeign(_ log: LogPlan.Log) throws(Failure) {
        guard log.form == .json, let path = log.path, TextFile.isRegular(path) else { return }
        let foreign = Failure.file(
            "\(log.flag): \(path) is not a JSON log of xmpptap; choose another name"
        )
        do throws(ReaderFault) {
            guard try RecordReader([path]).hasClientLog else { return }
        } catch {
            switch error.code {
            case .notOurs, .otherFormat, .newerVersion: throw foreign
            // Whether it can be written is seen when it is.
            case .cannotOpen, .cannotRead, .empty: return
            }
        }
        // It can be read like one of ours, but not be added to.
        throw foreign
    }

    /// Calls `tell` with true as soon as a log cannot be written, also where that has happened already, and with false
    /// when all can be again; on any thread, one call at a time.
    func onFailure(_ tell: @escaping @Sendable (Bool) -> Void) { watch.onChange(tell) }

    /// Goes on in new files, after somebody moved the old ones away.
    func reopen() {
        for (_, sink) in sinks { sink.reopen() }
    }

    /// Writes everything and ends, and tells what could not be written.
    ///
    /// - Returns: Whether every log has all its records. Standard output whose reader has gone does not count.
    @discardableResult
    func close(within time: Duration) -> Bool {
        var isWhole = true
        for (place, (name, sink)) in sinks.enumerated() {
            let lost = sink.close(within: time)
            guard !lost.isEmpty else { continue }
            Console.complain("warning: \(name) lacks \(lost.records) records (\(lost.bytes) bytes)")
            isWhole = isWhole && watch.hasLostReader(place)
        }
        return isWhole
    }

    /// How a log is written.
    ///
    /// - Parameter cutAdvice: How what a terminal does not show whole can be seen, where a further log is no way.
    static func configuration(
        _ log: LogPlan.Log,
        rotation: RecordWriter.Rotation? = nil,
        cutAdvice: String? = nil
    ) -> LogSink.Configuration {
        var writer = RecordWriter.Options()
        if log.path != nil { writer.rotation = rotation }
        var style = TextForm.Style()
        style.cutsLongTexts = log.isTerminal
        if let cutAdvice { style.cutAdvice = cutAdvice }
        style.isColoured = log.isColoured
        style.indentsXML = log.form == .pretty
        return LogSink.Configuration(
            log.path.map { .path($0) } ?? .standardOutput,
            form: log.form == .json ? .json : .text(style),
            spec: log.spec,
            isCapture: log.isComplete,
            writer: writer
        )
    }

    /// Says once that writing fails or stands still, and once that it works again.
    private static func tell(_ event: RecordWriter.Event, of log: LogPlan.Log) {
        switch event {
        case .failed(let fault):
            let outlook = fault.code == .diskFull ? "; records wait or are dropped until there is space" : ""
            Console.complain("\(log.flag): \(fault)\(outlook)")
        case .recovered(let loss) where loss.isEmpty: Console.complain("\(log.name) is written again; nothing was lost")
        case .recovered(let loss):
            Console.complain("\(log.name) is written again; \(loss.records) records were dropped")
        case .notice(let fault): Console.complain("warning: \(log.flag): \(fault)")
        case .stalled:
            Console.complain("warning: \(log.name) takes no more, and every session waits until its reader goes on")
        case .flowing(let duration):
            var words = LineBuffer()
            words.append(duration: duration.wholeNanoseconds)
            let time = String(decoding: words.bytes, as: UTF8.self)
            Console.complain("\(log.name) takes records again after \(time); the sessions go on")
        case .room: break
        }
    }
}
