internal import Glibc
internal import Synchronization
package import TapCore
package import TapRecord
package import TapRules

/// A log, or several logs that are used as one.
package protocol LogOutput: Sink {
    /// The numbers of written and dropped records so far.
    var counters: RecordWriter.Counters { get }
    /// Continues in new files after the old ones were moved.
    func reopen()
    /// Writes everything and closes the log.
    ///
    /// - Parameters:
    ///   - time: The maximum time to wait for a slow destination.
    ///   - removingUnused: Whether to remove files that were empty and got no records.
    /// - Returns: The total loss since the log was opened.
    @discardableResult
    func close(within time: Duration, removingUnused: Bool) -> RecordWriter.Loss
}

/// A log or capture. Writes what its level and filter show of every record, in one form, to one destination.
///
/// ```
/// record ──→ LogFilter ──→ RecordFilter ──→ the form of the log ──→ RecordWriter ──→ file, pipe or terminal
/// ```
///
/// Lines are formatted on the thread that calls ``write(_:content:)``, and written by another thread. Writing a
/// record never throws: if the destination fails, records are dropped and counted, and the log reports the loss when
/// it works again.
package final class LogSink: LogOutput {
    /// The format of a log.
    package enum Form: Sendable, Hashable {
        /// Human-readable lines.
        case text(TextForm.Style)
        /// Rows of columns for a terminal.
        case compact(CompactForm.Style)
        /// One JSON object for each line.
        case json

        /// The time zone of the times.
        var zone: LocalZone {
            switch self {
            case .text(let style): style.zone
            case .compact(let style): style.zone
            case .json: .utc
            }
        }
    }

    /// The content, destination and form of a log.
    package struct Configuration: Sendable {
        /// The destination.
        package var destination: RecordWriter.Destination
        /// The form.
        package var form: Form
        /// The log specification, which selects the parts of each record that the log shows.
        package var spec: LogSpec
        /// Selects records among those that the specification shows; nil selects all.
        package var filter: RecordFilter?
        /// Whether the log is a capture: it has every record up to verbose, and marks how reads split the data.
        package var isCapture: Bool
        /// Whether the source may lack records of its sessions, so that the log is not a complete capture; default
        /// false.
        package var isPartial = false
        /// Selects the records around matches; nil writes all records.
        package var trigger: CaptureTrigger?
        /// Called once, with the number of matches, when ``trigger`` will select no more records.
        package var onCompletion: @Sendable (Int) -> Void = { _ in }
        /// The session, for the header, if the log gets only the records of one session; nil if it gets all.
        package var session: UInt64?
        /// Whether the log, and each of its files, begins with a header of this run; default true. Callers that write
        /// records of other runs set it to false and write the headers by ``LogSink/write(header:file:)``.
        package var writesHeader = true
        /// Returns the width of the terminal in columns. Called regularly if the form has columns; nil keeps the
        /// width of the style.
        package var terminalWidth: (@Sendable () -> Int?)?
        /// Called on the writer's thread: with true before lines are written to a terminal, and with false after
        /// that.
        package var onWriting: (@Sendable (Bool) -> Void)?
        /// The buffer sizes, intervals and rotation of the writer.
        package var writer: RecordWriter.Options

        /// Creates a configuration with these properties.
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

        /// Whether the log has every record up to verbose.
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

    /// Buffers and formatters for a line; one for each thread that is likely to format a line at the same time.
    private final class Workspace: Sendable {
        struct Tools: ~Copyable {
            var text: TextForm?
            var compact: CompactForm?
            var json = JSONForm()
            var line = LineBuffer()
            /// The time of the last call of ``terminalWidth``, in nanoseconds since the run began.
            var widthAsked = Int64.min
        }

        let tools: Mutex<Tools>
        /// The first thread that used the workspace; 0 if it is unused.
        private let thread = Atomic<UInt>(0)

        /// Returns whether the workspace belongs to the thread. An unused workspace is assigned to the thread.
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

    /// Creates a log and opens its destination.
    ///
    /// - Parameters:
    ///   - run: The run whose records will be written.
    ///   - onEvent: Called on the writer's thread with the writer's events, for example if writing fails or works
    ///     again.
    ///   - onOpeningFailure: See ``RecordWriter/init(_:options:lines:onEvent:onOpeningFailure:)``.
    /// - Throws: ``WriterFault`` if the destination cannot be opened, or the header cannot be written.
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
        // Rows of the compact form depend on earlier rows, so they are formatted one after the other.
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

    /// Creates a log that continues another log with a different specification.
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

    /// The log specification.
    package var spec: LogSpec { levels.spec }

    /// Returns a log with another specification and the same output. A file is reopened, so that its header has the
    /// new specification. Each record goes to one of the two logs only: see ``RecordDispatcher/replace(_:by:)``.
    package func showing(_ spec: LogSpec) -> LogSink {
        lines.change(to: spec)
        writer.reopen()
        return LogSink(self, spec)
    }

    /// Writes the parts of a record that the log shows.
    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let shown = shown(of: redacted.record, content)
        guard !shown.isEmpty else { return }
        // The closure captures the parameter: a constant for its record would be a copy, which retains each text.
        withTools { format(redacted.record, content, shown, unknown: [], with: &$0) }
    }

    /// Writes what the log shows of a stored record. JSON includes the fields that this program does not know.
    ///
    /// - Returns: Whether the log shows the record.
    @discardableResult
    package func write(_ stored: borrowing RecordLine) -> Bool {
        let shown = shown(of: stored.record, stored.content.span)
        guard !shown.isEmpty else { return false }
        withTools { format(stored.record, stored.content.span, shown, unknown: stored.unknown, with: &$0) }
        return true
    }

    /// Returns the parts of a record that the log shows; empty if it shows none.
    private func shown(of record: borrowing Record, _ content: Span<UInt8>) -> LogFilter.Shown {
        let shown = levels.shown(of: record)
        guard !shown.isEmpty, filter?.matches(record, content: content) ?? true else { return [] }
        return triggered?.takesNoMore == true ? [] : shown
    }

    /// Formats the shown parts of a record, and writes them.
    private func format(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ shown: LogFilter.Shown,
        unknown: [UInt8],
        with tools: inout Workspace.Tools
    ) {
        tools.line.removeAll()
        if tools.text != nil {
            tools.text?.append(record, content: content, shown, to: &tools.line)
        } else if tools.compact != nil {
            measure(&tools, at: record.monotonic)
            tools.compact?.append(record, content: content, shown, to: &tools.line)
        } else {
            // Content that is not text has no separate line: it is part of the record's line.
            let parts = shown.contains(.xml) || record.bytes != nil ? parts.union(.content) : parts
            tools.json.append(record, content: content, parts, unknown: unknown, to: &tools.line)
        }
        append(tools.line, of: record, content)
    }

    /// Creates line makers of the log, for ``write(_:)-(MergedLines)``; nil if lines depend on earlier lines.
    package var lineMakers: LineMaker.Factory? {
        guard case .text(let style) = form, triggered == nil else { return nil }
        return { [levels, filter] in LineMaker(levels, filter, style) }
    }

    /// Writes lines that one of ``lineMakers`` has made.
    package func write(_ lines: MergedLines) { writer.append(lines) }

    /// Writes the line of a record. With a trigger, the line is written only if the record is near a match.
    private func append(_ line: borrowing LineBuffer, of record: borrowing Record, _ content: Span<UInt8>) {
        guard !line.isEmpty else { return }
        guard let triggered else { return _ = writer.append(line) }
        triggered.process(record, content: content, line.span, to: output)
    }

    private var output: TriggerWindow.Output {
        TriggerWindow.Output(
            line: { [writer] in writer.append($0) },
            note: { [writer, lines] in writer.append(lines.noteLine($0)) }
        )
    }

    /// Writes the header of another run. Its records must be written next.
    ///
    /// - Parameter file: The file of the records, which the header of a text log names; nil for none.
    package func write(header: RecordHeader, file: String? = nil) {
        var line = LineBuffer()
        LogLines.append(header, in: form, file: file, to: &line)
        writer.append(line)
    }

    /// Whether so many bytes are pending that the sources should stop reading.
    package var isCongested: Bool { writer.isCongested }
    /// The numbers of written and dropped records so far.
    package var counters: RecordWriter.Counters { writer.counters }

    /// Continues in a new file after the old one was moved.
    package func reopen() { writer.reopen() }

    /// Renames the file; see ``RecordWriter/rename(to:)``.
    package func rename(to name: String) { writer.rename(to: name) }

    /// Closes the log without waiting; everything is written in the background.
    package func finish() {
        flush()
        writer.finish()
    }

    /// Whether the log is closed and everything is written.
    package var isFinished: Bool { writer.isFinished }

    /// Writes everything and closes the log, and waits at most `time`. Returns the total loss since the log was
    /// opened.
    @discardableResult
    package func close(within time: Duration = .seconds(10), removingUnused: Bool = false) -> RecordWriter.Loss {
        flush()
        return writer.close(within: time, removingUnused: removingUnused)
    }

    /// Writes the rows that the form has buffered, and the last lines of the trigger.
    private func flush() {
        triggered?.close(to: output)
        guard case .compact = form else { return }
        withTools { tools in
            tools.line.removeAll()
            tools.compact?.flush(to: &tools.line)
            if !tools.line.isEmpty { writer.append(tools.line) }
        }
    }

    /// Writes the buffered rows of logins that take long. Must be called regularly while the log is shown on a
    /// terminal.
    package func flushSlowLogins(at monotonic: Int64) {
        guard case .compact = form else { return }
        withTools { tools in
            tools.line.removeAll()
            tools.compact?.unfold(at: monotonic, to: &tools.line)
            if !tools.line.isEmpty { writer.append(tools.line) }
        }
    }

    private static let widthInterval: Int64 = 100_000_000

    /// Updates the width, because the user may have changed the size of the terminal.
    private func measure(_ tools: inout Workspace.Tools, at monotonic: Int64) {
        guard let terminalWidth, monotonic &- Self.widthInterval >= tools.widthAsked else { return }
        tools.widthAsked = monotonic
        if let width = terminalWidth() { tools.compact?.style.width = width }
    }

    /// Calls `body` with the workspace of the current thread. If it is locked, `body` gets a free one; the method waits
    /// only if all are locked. Each thread tries its own first, because a failed attempt to lock costs a system call.
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

/// The properties of a run that all of its logs share.
package struct LoggedRun: Sendable {
    /// The name and version of the program.
    package var tool: String
    /// Identifies the run in all of its files; see ``RunIdentifier``.
    package var word: String
    /// The redaction policy.
    package var redaction: RedactionPolicy
    /// The run, which numbers the records.
    package var run: Run
    /// Returns the current time of both clocks: the time of day and the monotonic clock.
    package var now: @Sendable () -> Run.Instant

    /// Creates a run with these properties.
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
