internal import Glibc
internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapCore
internal import TapRecord
internal import TapStore

final class OpenLogs: Sendable {
    /// Passes records to all logs.
    let dispatcher: RecordDispatcher

    /// The log whose level can be changed while the program runs; nil if all outputs are captures.
    let controlled: ControlledOutput?

    private let sinks: [(name: String, sink: any LogOutput)]
    /// The path of the capture, its index in ``sinks``, and what its readers must know; nil without `--capture`.
    private let capture: (place: Int, path: CapturePath, remark: String?)?
    private let watch: Watch
    /// Counts the records shown on the terminal; nil unless a terminal shows the log in compact form.
    private let summary: SummarySink?
    /// The task that shows slow logins, which are otherwise folded until they end.
    private let unfolding: Task<Void, Never>?
    /// The task that refreshes the status line at the bottom of the terminal.
    private let status = Mutex<Task<Void, Never>?>(nil)

    /// Tracks which logs cannot be written, and notifies one observer.
    private final class Watch: Sendable {
        private struct State {
            /// Indices of the logs that cannot be written.
            var failing: Set<Int> = []
            /// Indices of the logs whose reader closed the pipe, which only happens to standard output and is not a
            /// failure.
            var unread: Set<Int> = []
            var report: (@Sendable (Bool) -> Void)?
        }

        private let state = Mutex(State())

        /// Notifies the observer when the first log fails, and when the last one recovers. The lock is held, so that
        /// notifications are in order.
        func changed(_ log: Int, isFailing: Bool) {
            state.withLock { state in
                let wasFailing = !state.failing.isEmpty
                if isFailing { state.failing.insert(log) } else { state.failing.remove(log) }
                if state.failing.isEmpty == wasFailing { state.report?(isFailing) }
            }
        }

        /// Returns an observer that prints the events of a store and tracks its failures under a number.
        func observer(ofStore log: LogPlan.Log, _ place: Int) -> @Sendable (StoreSink.Event) -> Void {
            { event in
                OpenLogs.report(event, of: log)
                guard log.isRequired else { return }
                switch event {
                case .failed: self.changed(place, isFailing: true)
                case .recovered: self.changed(place, isFailing: false)
                case .replaced, .rejected, .stalled, .flowing, .spool: break
                }
            }
        }

        /// Handles that a session's file could not be opened: the log counts as failing until `isPossible` returns
        /// true.
        func failed(_ log: Int, until isPossible: @escaping @Sendable () -> Bool) {
            // Run detached: sessions may wait for the lock that the caller holds.
            Task.detached {
                self.changed(log, isFailing: true)
                repeat { try? await Task.sleep(for: .seconds(1)) } while !isPossible()
                self.changed(log, isFailing: false)
            }
        }

        /// Returns an observer that prints the events of a log and tracks its failures under a number.
        func observer(of log: LogPlan.Log, _ place: Int) -> @Sendable (RecordWriter.Event) -> Void {
            { event in
                OpenLogs.report(event, of: log)
                switch event {
                case .failed(let fault):
                    if log.path == nil, fault.code == .brokenPipe { self.lostReader(place) }
                    if log.isRequired { self.changed(place, isFailing: true) }
                case .recovered: if log.isRequired { self.changed(place, isFailing: false) }
                case .notice, .room, .stalled, .flowing: break
                }
            }
        }

        func lostReader(_ log: Int) { state.withLock { _ = $0.unread.insert(log) } }

        func hasLostReader(_ log: Int) -> Bool { state.withLock { $0.unread.contains(log) } }

        func onChange(_ body: @escaping @Sendable (Bool) -> Void) {
            state.withLock { state in
                state.report = body
                if !state.failing.isEmpty { body(true) }
            }
        }
    }

    /// Opens the logs of a plan.
    ///
    /// - Throws: A ``Failure`` that names the flag and the file.
    init(_ plan: LogPlan, run: LoggedRun) throws(Failure) {
        var sinks: [(String, any LogOutput)] = []
        let watch = Watch()
        // Use the same time in all file names.
        let started = run.now().time
        for (place, log) in plan.logs.enumerated() {
            do throws(Failure) {
                if let store = log.store {
                    sinks.append((log.name, try Self.open(store, log, run, watch, place)))
                    continue
                }
                try Self.refuseForeign(log)
                sinks.append((log.name, try Self.open(log, plan, run, started, watch, place)))
            } catch {
                for (_, sink) in sinks { sink.close(within: .seconds(10), removingUnused: true) }
                throw error
            }
        }
        self.sinks = sinks
        self.watch = watch
        capture = plan.logs.firstIndex { $0.flag == "--capture" }.flatMap { place in
            plan.logs[place].path.map { (place, CapturePath($0, time: started), Self.remark(on: plan.logs[place])) }
        }
        unfolding = Self.unfolding(
            zip(plan.logs, sinks).filter { $0.0.form == .compact }.compactMap { $0.1.1 as? LogSink },
            run
        )
        summary = plan.logs.first { $0.isTerminal && $0.form == .compact }
            .map { LogFilter($0.spec).level }.flatMap { $0 >= .info ? SummarySink(level: $0) : nil }
        let dispatcher = RecordDispatcher(sinks.map { $0.1 as any Sink } + (summary.map { [$0] } ?? []))
        self.dispatcher = dispatcher
        controlled = zip(plan.logs, sinks).first { !$0.0.isComplete && $0.0.trigger == nil && $0.0.store == nil }
            .flatMap { $0.1.1 as? LogSink }.map { ControlledOutput($0, dispatcher) }
    }

    /// Shows the state of the run at the bottom of a terminal that shows the log in compact form, until the logs are
    /// closed.
    func showStatus() {
        guard let summary else { return }
        let task = Task.detached {
            var status = RunStatus()
            let began = ContinuousClock.now
            repeat {
                BottomLine.show(status.line(summary.soFar, at: (ContinuousClock.now - began).wholeNanoseconds))
            } while (try? await Task.sleep(for: .milliseconds(500))) != nil
        }
        status.withLock { $0 = task }
    }

    private static func unfolding(_ sinks: [LogSink], _ run: LoggedRun) -> Task<Void, Never>? {
        guard !sinks.isEmpty else { return nil }
        return Task.detached {
            while (try? await Task.sleep(for: .milliseconds(500))) != nil {
                for sink in sinks { sink.flushSlowLogins(at: run.now().monotonic) }
            }
        }
    }

    private static func open(
        _ log: LogPlan.Log,
        _ plan: LogPlan,
        _ run: LoggedRun,
        _ started: Timestamp,
        _ watch: Watch,
        _ place: Int
    ) throws(Failure) -> any LogOutput {
        var configuration = configuration(log, of: plan)
        do throws(WriterFault) {
            guard log.flag == "--capture", let template = log.path else {
                return try LogSink(configuration, run: run, onEvent: watch.observer(of: log, place))
            }
            let path = CapturePath(template, time: started)
            guard path.isPerSession else {
                configuration.destination = path.destination
                return try LogSink(configuration, run: run, onEvent: watch.observer(of: log, place))
            }
            // The files are created with the sessions: check now whether that is possible.
            if let fault = WriterFault.creating(path.name(session: 1)) { throw fault }
            return sessionLogs(log, path, configuration, run, watch, place)
        } catch {
            let advice = error.code == .exists ? ", or add --append" : ""
            throw .file("\(log.flag): \(error)\(advice)")
        }
    }

    /// Opens an audit store.
    private static func open(
        _ store: StoreRequest,
        _ log: LogPlan.Log,
        _ run: LoggedRun,
        _ watch: Watch,
        _ place: Int
    ) throws(Failure) -> StoreSink {
        var configuration = StoreSink.Configuration(store.place, spec: log.spec, filter: log.filter)
        configuration.content = store.content
        if store.content.tap == nil, !Console.hostName.isEmpty { configuration.content.tap = Console.hostName }
        configuration.limit = store.limit
        configuration.isRequired = store.isRequired
        return try Failure.ofStore { () throws(StoreFault) in
            try StoreSink(configuration, run: run, onEvent: watch.observer(ofStore: log, place))
        }
    }

    /// Creates a capture with one file per session.
    private static func sessionLogs(
        _ log: LogPlan.Log,
        _ path: CapturePath,
        _ configuration: LogSink.Configuration,
        _ run: LoggedRun,
        _ watch: Watch,
        _ place: Int
    ) -> SessionLogs {
        let open: SessionLogs.Opening = { session in
            var log = log
            log.path = path.name(session: session)
            var own = configuration
            own.destination = log.path.map { .path($0) } ?? configuration.destination
            own.session = session
            let fail: @Sendable (WriterFault) -> Void = { [log] fault in
                Console.printDiagnostic("warning: \(log.flag): session \(session) is not recorded: \(fault)")
                watch.failed(place, until: { log.path.flatMap(WriterFault.creating) == nil })
            }
            do throws(WriterFault) {
                return try LogSink(
                    own,
                    run: run,
                    onEvent: watch.observer(of: log, place + Int(clamping: session) << 16),
                    onOpeningFailure: fail
                )
            } catch {
                fail(error)
                return nil
            }
        }
        let level = LogFilter(log.spec).level
        guard path.hasJID else { return SessionLogs(level: level, open: open) }
        return SessionLogs(level: level, open: open) { path.name(session: $0, jid: $1) }
    }

    /// Refuses to append JSON to a file with other content, which no command could read.
    private static func refuseForeign(_ log: LogPlan.Log) throws(Failure) {
        guard log.form == .json, let path = log.path, TextFile.isRegular(path) else { return }
        let foreign = Failure.file(
            "\(log.flag): \(path) exists and is not a JSON log of xmpptap; choose another name"
        )
        let isForeign: Bool
        do throws(ReaderFault) {
            isForeign = try RecordReader([path]).isForeign
        } catch {
            switch error.code {
            case .notOurs, .otherFormat, .packets, .compressed, .newerVersion: throw foreign
            // Errors are reported when the file is opened for writing.
            case .cannotOpen, .cannotRead, .empty: return
            }
        }
        guard isForeign else { return try refuseHalfChained(log, path) }
        // The file is a client log or contains packets, to which records cannot be appended.
        throw foreign
    }

    /// Refuses to mix records with and without a hash chain in one file, because a check of the chain would report a
    /// change.
    private static func refuseHalfChained(_ log: LogPlan.Log, _ path: String) throws(Failure) {
        guard log.flag == "--capture", log.appends, let isChained = try? HashChainVerification.isChained(path) else {
            return
        }
        guard isChained != log.hasChain else { return }
        throw .file(
            isChained
                ? "\(log.flag): \(path) has a hash chain, which other records would break; add --hash-chain"
                : "\(log.flag): \(path) has no hash chain, so that read --verify would refuse it; choose another name"
        )
    }

    /// Sets the observer of failures. It is called with true when a log cannot be written, immediately if one already
    /// cannot, and with false when all logs can be written again. Calls come from any thread, but one at a time.
    func onFailure(_ body: @escaping @Sendable (Bool) -> Void) { watch.onChange(body) }

    /// The statistics of each log so far.
    var figures: [LogFigures] {
        sinks.map { name, sink in
            let counters = sink.counters
            return LogFigures(
                name: name,
                written: counters.records,
                dropped: counters.dropped.records,
                lag: counters.lag,
                delivery: (sink as? StoreSink)?.spoolFigures.map { DeliveryFigures($0) }
            )
        }
    }

    /// Reopens the files after they were renamed.
    func reopen() {
        for (_, sink) in sinks { sink.reopen() }
    }

    /// Writes all records, closes the logs, and prints how many records were lost.
    ///
    /// - Parameter removingUnused: Whether to remove files that were empty and received no record, because the command
    ///   did not start.
    /// - Returns: Whether every log is complete; standard output does not count if its reader closed the pipe.
    @discardableResult
    func close(within time: Duration, removingUnused: Bool = false) -> Bool {
        unfolding?.cancel()
        status.withLock { $0 }?.cancel()
        BottomLine.hide(isEnd: true)
        var isWhole = true
        for (place, (name, sink)) in sinks.enumerated() {
            let lost = sink.close(within: time, removingUnused: removingUnused)
            if let chain = sink.counters.chain {
                Console.printStandardError("the hash chain of \(name) ends with \(chain)")
            }
            guard !lost.isEmpty else { continue }
            Console.printDiagnostic(
                "warning: \(name) is incomplete: \(lost.records) records (\(lost.bytes) bytes) lost"
            )
            isWhole = isWhole && watch.hasLostReader(place)
        }
        if let summary = summary?.soFar {
            let width = Console.width(of: STDERR_FILENO)
            let lines = SummarySink.lines(summary, width: width, isASCII: width != nil && !Console.hasUTF8)
            for line in lines { Console.printStandardError(escaped: line) }
        }
        return isWhole
    }

    /// The files of the capture, for commands that read them; nil without `--capture`.
    var recording: Inspection.Recording? {
        guard let capture, sinks.indices.contains(capture.place) else { return nil }
        let isRotated = sinks[capture.place].sink.counters.rotations > 0
        return Inspection.Recording(
            words: capture.path.absolute.shellWords(isRotated: isRotated),
            remark: capture.remark
        )
    }

    /// Returns why the sessions of a capture may not be those of the run; nil if they are.
    private static func remark(on log: LogPlan.Log) -> String? {
        if log.trigger != nil { return "the capture has only what --capture-when selects; a session can be incomplete" }
        if log.filter != nil { return "the capture has a filter; a session can lack stanzas" }
        return log.appends
            ? "the file has earlier runs, too; 'xmpptap read --sessions' has the numbers of its sessions" : nil
    }

    /// Prints the path of the capture, and the command that explains it.
    func printCapture() {
        guard let capture, sinks.indices.contains(capture.place) else { return }
        let (name, sink) = sinks[capture.place]
        Self.printCapture(name, capture.path, sink.counters)
    }

    /// Prints the name of a capture, and the command that explains it.
    static func printCapture(_ name: String, _ path: CapturePath, _ counters: RecordWriter.Counters) {
        let files = path.shellWords(isRotated: counters.rotations > 0)
        let records = Plural.of(Int(clamping: counters.kept), "record")
        let advice = counters.kept > 0 ? ": xmpptap explain \(files)" : ""
        Console.printStandardError("capture \(name), \(records)\(advice)")
    }

    /// Returns the configuration of a log's sink.
    ///
    /// - Parameters:
    ///   - plan: The plan that contains the log, for settings that all its files share.
    ///   - cutAdvice: How to see the full text, if a terminal shows it shortened.
    static func configuration(
        _ log: LogPlan.Log,
        of plan: LogPlan? = nil,
        cutAdvice: String = "use --log-to FILE,verbose for all of it"
    ) -> LogSink.Configuration {
        var writer = RecordWriter.Options()
        if let plan, log.path != nil {
            if plan.rotateSize != nil || plan.rotateAge != nil || plan.keepAge != nil {
                writer.rotation = RecordWriter.Rotation(
                    size: plan.rotateSize ?? .max,
                    keep: plan.rotateKeep ?? (log.flag == "--capture" ? .max : 10),
                    age: plan.rotateAge,
                    keepAge: plan.keepAge
                )
            }
            writer.syncs = plan.syncs
            writer.appends = log.appends
            writer.hasChain = log.hasChain
        }
        var style = TextForm.Style()
        style.cutsLongTexts = log.isTerminal
        style.cutAdvice = cutAdvice
        style.isColoured = log.isColoured
        style.indentsXML = log.form == .pretty
        style.showsBodies = log.showsBodies
        style.zone = .system
        let form: LogSink.Form
        switch log.form {
        case .json: form = .json
        case .text, .pretty: form = .text(style)
        case .compact:
            var style = CompactForm.Style()
            style.isColoured = log.isColoured
            style.foldsLogins = !log.isLive
            style.showsBodies = log.showsBodies
            style.zone = .system
            style.isASCII = log.isTerminal && !Console.hasUTF8
            form = .compact(style)
        }
        var configuration = LogSink.Configuration(
            log.path.map { .path($0) } ?? .standardOutput,
            form: form,
            spec: log.spec,
            filter: log.filter,
            isCapture: log.isComplete || log.trigger != nil,
            writer: writer
        )
        configuration.trigger = log.trigger
        configuration.onCompletion = { matches in
            let count = "\(matches) match\(matches == 1 ? "" : "es")"
            Console.printStandardError(
                "the capture in \(log.name) is complete after \(count); sessions continue without it"
            )
        }
        if log.isTerminal {
            configuration.terminalWidth = { Console.width }
            configuration.onWriting = { $0 ? BottomLine.begin(STDOUT_FILENO) : BottomLine.end(STDOUT_FILENO) }
        }
        return configuration
    }

    /// Prints a message when a store cannot be written or is too slow, and when it works again.
    private static func report(_ event: StoreSink.Event, of log: LogPlan.Log) {
        switch event {
        case .failed(let fault):
            Console.printDiagnostic(
                "\(log.flag): \(fault); stanzas are buffered, then dropped, until it can be written"
            )
        case .recovered(let loss) where loss.isEmpty:
            Console.printDiagnostic("\(log.name) can be written again; nothing was lost")
        case .recovered(let loss):
            Console.printDiagnostic("\(log.name) can be written again; \(loss.records) records were lost")
        case .replaced(let fault): Console.printDiagnostic("warning: \(log.flag): \(fault)")
        case .rejected(let count, let fault):
            Console.printDiagnostic("warning: \(log.flag): \(fault); \(Plural.of(count, "stanza")) lost")
        case .stalled:
            Console.printDiagnostic("warning: \(log.name) is too slow; relaying is paused until its stanzas are stored")
        case .flowing(let duration):
            let time = LineBuffer.duration(duration.wholeNanoseconds)
            Console.printDiagnostic("\(log.name) has stored its stanzas after \(time); relaying continues")
        case .spool(let event): SpoolReport.show(event, of: log.name)
        }
    }

    /// Prints a message when writing fails or is blocked, and when it works again.
    static func report(_ event: RecordWriter.Event, of log: LogPlan.Log) {
        switch event {
        case .failed(let fault):
            let prefix = fault.code == .deleted ? "warning: " : ""
            let outlook = fault.code == .diskFull ? "; records are buffered, then dropped, until there is space" : ""
            Console.printDiagnostic("\(prefix)\(log.flag): \(fault)\(outlook)")
        case .recovered(let loss) where loss.deletedFile != nil:
            let records = Plural.of(Int(clamping: loss.records), "record")
            Console.printDiagnostic("\(log.name) was created anew; \(records) lost with the deleted file")
        case .recovered(let loss) where loss.isEmpty:
            Console.printDiagnostic("\(log.name) can be written again; nothing was lost")
        case .recovered(let loss):
            Console.printDiagnostic("\(log.name) can be written again; \(loss.records) records were lost")
        case .notice(let fault): Console.printDiagnostic("warning: \(log.flag): \(fault)")
        case .stalled:
            Console.printDiagnostic(
                "warning: log output to \(log.name) is blocked; relaying is paused until it is read"
            )
        case .flowing(let duration):
            let time = LineBuffer.duration(duration.wholeNanoseconds)
            Console.printDiagnostic("log output to \(log.name) is no longer blocked after \(time); relaying continues")
        case .room: break
        }
    }
}
