internal import Glibc
internal import Synchronization
package import TapCore
package import TapRecord
package import TapRules

/// A log, or several that act as one: counters, and the end.
package protocol LogOutput: Sink {
    /// The counts of written and dropped records so far.
    var counters: RecordWriter.Counters { get }
    /// Continues in new files after the old ones were moved away.
    func reopen()
    /// Writes everything and ends; gives what was dropped in its whole life. `removingUnused` removes files that were empty and
    /// got no record.
    @discardableResult
    func close(within time: Duration, removingUnused: Bool) -> RecordWriter.Loss
}

/// A log or capture: of every record what its level and filter show, in one form, to one destination.
///
/// ```
/// record ──→ LogFilter ──→ RecordFilter ──→ the form of the log ──→ RecordWriter ──→ file, pipe or terminal
/// ```
///
/// Lines are formed on the thread that brings the record, written by another. Nothing here fails: where writing does,
/// records are dropped, counted, and the log says so as soon as it can.
package final class LogSink: LogOutput {
    /// How records are written.
    package enum Form: Sendable, Hashable {
        /// Lines for people.
        case text(TextForm.Style)
        /// Rows of columns for a terminal.
        case compact(CompactForm.Style)
        /// One JSON object a line.
        case json

        /// The zone of the times.
        var zone: LocalZone {
            switch self {
            case .text(let style): style.zone
            case .compact(let style): style.zone
            case .json: .utc
            }
        }
    }

    /// The contents, destination and form.
    package struct Configuration: Sendable {
        /// Where to.
        package var destination: RecordWriter.Destination
        /// In which form.
        package var form: Form
        /// What of each record.
        package var spec: LogSpec
        /// Which records, of those that the specification shows; nil is all.
        package var filter: RecordFilter?
        /// The log is to hold every record up to verbose, and where reads split it.
        package var isCapture: Bool
        /// The source may lack records of its sessions, so that the log is not a complete capture; default false.
        package var isPartial = false
        /// Around which matches it holds records; nil holds all.
        package var trigger: CaptureTrigger?
        /// Told once, with the number of matches, when ``trigger`` lets nothing more through.
        package var onCompletion: @Sendable (Int) -> Void = { _ in }
        /// The session whose records alone it gets, for its header; nil is all.
        package var session: UInt64?
        /// Whether the log begins with a header of its run, and each file of it; default true. Who writes what other runs
        /// have recorded writes their headers, by ``LogSink/write(header:)``.
        package var writesHeader = true
        /// Called now and then for the columns of the terminal, if the form has columns; nil keeps those of its style.
        package var terminalWidth: (@Sendable () -> Int?)?
        /// Told with true before lines are written to a terminal, and with false behind them, on the writer's thread.
        package var onWriting: (@Sendable (Bool) -> Void)?
        /// Buffer, times and rotation.
        package var writer: RecordWriter.Options

        /// A log of these properties.
        package init(
            _ destination: RecordWriter.Destination,
            form: Form,
            spec: LogSpec,
            filter: RecordFilter? = nil,
            isCapture: Bool = false,
            writer: RecordWriter.Options = RecordWriter.Options()
        ) {
            self.destination = destination
            self.form = form
            self.spec = spec
            self.filter = filter
            self.isCapture = isCapture
            self.writer = writer
        }

        /// Every record up to verbose is in it.
        var isWhole: Bool { isCapture && !isPartial && trigger == nil && filter == nil }
    }

    /// The least severe level that the log shows.
    package let level: Level

    private let form: Form
    private let levels: LogFilter
    private let filter: RecordFilter?
    private let isCapture: Bool
    private let parts: JSONForm.Parts
    private let lines: LogLines
    private let writer: RecordWriter
    private let workspaces: [Workspace]
    private let terminalWidth: (@Sendable () -> Int?)?
    private let triggered: TriggeredLines?

    /// Buffers and forms for making a line; one for each thread that is likely to make one at the same time.
    private final class Workspace: Sendable {
        struct Tools: ~Copyable {
            var text: TextForm?
            var compact: CompactForm?
            var json = JSONForm()
            var line = LineBuffer()
            /// When the terminal was asked for its columns, in nanoseconds of the run.
            var widthAsked = Int64.min
        }

        let tools: Mutex<Tools>
        /// The thread that found it free first; 0 if there was none.
        private let thread = Atomic<UInt>(0)

        /// Whether it belongs to the thread; an unused one is assigned to the thread.
        func isOf(_ thread: UInt) -> Bool {
            switch self.thread.load(ordering: .relaxed) {
            case thread: true
            case 0: self.thread.compareExchange(expected: 0, desired: thread, ordering: .relaxed).exchanged
            default: false
            }
        }

        init(_ form: Form) {
            var tools = Tools()
            switch form {
            case .text(let style): tools.text = TextForm(style: style)
            case .compact(let style): tools.compact = CompactForm(style: style)
            case .json: break
            }
            self.tools = Mutex(tools)
        }
    }

    /// Opens the destination.
    ///
    /// - Parameters:
    ///   - run: The run whose records will come.
    ///   - onEvent: Told when writing fails and works again, on the writer's thread.
    ///   - onOpeningFailure: See ``RecordWriter/init(_:options:lines:onEvent:onOpeningFailure:)``.
    /// - Throws: ``WriterFault`` if the destination cannot be opened or takes no header.
    package init(
        _ configuration: Configuration,
        run: LoggedRun,
        onEvent: @escaping @Sendable (RecordWriter.Event) -> Void = { _ in },
        onOpeningFailure: (@Sendable (WriterFault) -> Void)? = nil
    ) throws(WriterFault) {
        form = configuration.form
        levels = LogFilter(configuration.spec)
        filter = configuration.filter
        level = levels.level
        isCapture = configuration.isCapture
        parts = isCapture || level >= .trace ? .chunks : []
        // Rows of columns depend on those before them, and are formed one after the other.
        let count = if case .compact = configuration.form { 1 } else { 4 }
        workspaces = (0..<count).map { _ in Workspace(configuration.form) }
        terminalWidth = configuration.terminalWidth
        let lines = LogLines(configuration, run: run)
        self.lines = lines
        triggered = configuration.trigger.map {
            TriggeredLines($0, from: run.now().monotonic, onCompletion: configuration.onCompletion)
        }
        var writerLines = RecordWriter.Lines(header: { lines.header($0) }, loss: { lines.loss($0) })
        writerLines.onWriting = configuration.onWriting
        writer = try RecordWriter(
            configuration.destination,
            options: configuration.writer,
            lines: writerLines,
            onEvent: onEvent,
            onOpeningFailure: onOpeningFailure
        )
    }

    /// The same log, continued with another specification.
    private init(_ log: LogSink, _ spec: LogSpec) {
        form = log.form
        levels = LogFilter(spec)
        filter = log.filter
        level = levels.level
        isCapture = log.isCapture
        parts = isCapture || level >= .trace ? .chunks : []
        workspaces = log.workspaces
        terminalWidth = log.terminalWidth
        lines = log.lines
        triggered = log.triggered
        writer = log.writer
    }

    /// The selection of the log.
    package var spec: LogSpec { levels.spec }

    /// The same log with another specification; a file is opened again, so that a header says so. Records go to one of the
    /// two: see ``RecordDispatcher/replace(_:by:)``.
    package func showing(_ spec: LogSpec) -> LogSink {
        lines.change(to: spec)
        writer.reopen()
        return LogSink(self, spec)
    }

    /// Writes what the log shows of a record.
    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        _ = write(redacted.record, content, unknown: [])
    }

    /// Writes what the log shows of a record that was read back, in JSON with the fields that this program does not
    /// know.
    ///
    /// - Returns: Whether the log shows anything of it.
    @discardableResult
    package func write(_ stored: borrowing RecordLine) -> Bool {
        write(stored.record, stored.content.span, unknown: stored.unknown)
    }

    @inline(__always)
    private func write(_ record: borrowing Record, _ content: Span<UInt8>, unknown: [UInt8]) -> Bool {
        let shown = levels.shown(of: record)
        guard !shown.isEmpty, filter?.matches(record, content: content) ?? true else { return false }
        guard triggered?.takesNoMore != true else { return false }
        withTools { tools in
            tools.line.removeAll()
            if tools.text != nil {
                tools.text?.append(record, content: content, shown, to: &tools.line)
            } else if tools.compact != nil {
                measure(&tools, at: record.monotonic)
                tools.compact?.append(record, content: content, shown, to: &tools.line)
            } else {
                // A non-text part has no separate line: it is part of the record's line.
                let parts = shown.contains(.xml) || record.bytes != nil ? parts.union(.content) : parts
                tools.json.append(record, content: content, parts, unknown: unknown, to: &tools.line)
            }
            append(tools.line, of: record, content)
        }
        return true
    }

    /// Creates makers of the log's lines, for ``write(_:)-(MergedLines)``; nil if lines depend on those before.
    package var lineMakers: LineMaker.Factory? {
        guard case .text(let style) = form, triggered == nil else { return nil }
        return { [levels, filter] in LineMaker(levels, filter, style) }
    }

    /// Writes lines that one of ``lineMakers`` has made.
    package func write(_ lines: MergedLines) { writer.append(lines) }

    /// Writes the line of a record now, once it is near a match, or never.
    private func append(_ line: borrowing LineBuffer, of record: borrowing Record, _ content: Span<UInt8>) {
        guard !line.isEmpty else { return }
        guard let triggered else { return _ = writer.append(line) }
        triggered.take(record, content: content, line.span, to: output)
    }

    private var output: TriggerWindow.Output {
        TriggerWindow.Output(
            line: { [writer] in writer.append($0) },
            note: { [writer, lines] in writer.append(lines.note($0)) }
        )
    }

    /// Writes the header of the following records, from another run.
    ///
    /// - Parameter file: The file that they are from, which a text log names; nil is one that needs no name.
    package func write(header: RecordHeader, file: String? = nil) {
        var line = LineBuffer()
        LogLines.append(header, in: form, file: file, to: &line)
        writer.append(line)
    }

    /// Whether so much waits to be written that sources should stop reading.
    package var isCongested: Bool { writer.isCongested }
    /// The counts of written and dropped records so far.
    package var counters: RecordWriter.Counters { writer.counters }

    /// Continues in a new file after the old one was moved away.
    package func reopen() { writer.reopen() }

    /// Gives the file another name; see ``RecordWriter/rename(to:)``.
    package func rename(to name: String) { writer.rename(to: name) }

    /// Writes everything and ends the log, without waiting for it.
    package func finish() {
        flush()
        writer.finish()
    }

    /// Whether it was ended and has written everything.
    package var isFinished: Bool { writer.isFinished }

    /// Writes everything and ends; gives what was dropped in the log's whole life.
    @discardableResult
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> RecordWriter.Loss {
        flush()
        return writer.close(within: time, removingUnused: removingUnused)
    }

    /// Writes the rows that the form holds back, and the trigger's last lines.
    private func flush() {
        triggered?.close(to: output)
        guard case .compact = form else { return }
        withTools { tools in
            tools.line.removeAll()
            tools.compact?.flush(to: &tools.line)
            if !tools.line.isEmpty { writer.append(tools.line) }
        }
    }

    /// Writes the rows of logins that take long; to be asked now and then where people look on.
    package func unfold(at monotonic: Int64) {
        guard case .compact = form else { return }
        withTools { tools in
            tools.line.removeAll()
            tools.compact?.unfold(at: monotonic, to: &tools.line)
            if !tools.line.isEmpty { writer.append(tools.line) }
        }
    }

    private static let widthInterval: Int64 = 100_000_000

    /// Follows the terminal, whose user may have changed its size.
    private func measure(_ tools: inout Workspace.Tools, at monotonic: Int64) {
        guard let terminalWidth, monotonic &- Self.widthInterval >= tools.widthAsked else { return }
        tools.widthAsked = monotonic
        if let width = terminalWidth() { tools.compact?.style.width = width }
    }

    /// Borrows the thread's workspace, or a free one; waits only if all are in use. To find one locked costs a call of the
    /// system, which is why threads have their own.
    private func withTools(_ body: (inout Workspace.Tools) -> Void) {
        let thread = UInt(pthread_self())
        for index in workspaces.indices where workspaces[index].isOf(thread) {
            if workspaces[index].tools.withLockIfAvailable({ body(&$0) }) != nil { return }
            break
        }
        for workspace in workspaces where workspace.tools.withLockIfAvailable({ body(&$0) }) != nil { return }
        workspaces[0].tools.withLock { body(&$0) }
    }
}

/// What every log of a run says of it.
package struct LoggedRun: Sendable {
    /// Name and version of the program.
    package var tool: String
    /// A random word that all files of the run share, and no other run has.
    package var word: String
    /// The redaction policy.
    package var redaction: RedactionPolicy
    /// Numbers the records.
    package var run: Run
    /// Reads both clocks.
    package var now: @Sendable () -> Run.Instant

    /// A run of these properties.
    package init(
        tool: String,
        word: String,
        redaction: RedactionPolicy,
        run: Run,
        now: @escaping @Sendable () -> Run.Instant
    ) {
        self.tool = tool
        self.word = word
        self.redaction = redaction
        self.run = run
        self.now = now
    }
}
