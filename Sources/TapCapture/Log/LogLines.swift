internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapRules

/// Formats the lines of a log that do not come from its source: headers, reports of dropped records and notes about
/// omitted records.
final class LogLines: Sendable {
    private let configuration: LogSink.Configuration
    private let run: LoggedRun
    /// The log specification for the next header.
    private let spec: Mutex<LogSpec>

    init(_ configuration: LogSink.Configuration, run: LoggedRun) {
        self.configuration = configuration
        self.run = run
        spec = Mutex(configuration.spec)
    }

    /// Changes the log specification for later headers.
    func change(to spec: LogSpec) { self.spec.withLock { $0 = spec } }

    /// Returns the header line for the beginning of a file, or for the place after dropped records.
    ///
    /// In a text log it is a comment. A text log on standard output has no header.
    func header(_ opening: RecordWriter.Opening) -> [UInt8] {
        guard configuration.writesHeader else { return [] }
        if configuration.form != .json, configuration.destination == .standardOutput { return [] }
        var header = RecordHeader(
            tool: run.tool,
            time: run.now().time,
            level: spec.withLock { $0 }.description,
            filter: configuration.filter?.text,
            isComplete: configuration.isWhole && opening.dropped.isEmpty,
            redaction: run.redaction,
            run: run.word,
            recordsBefore: opening.records,
            session: configuration.session
        )
        header.trigger = configuration.trigger.map {
            RecordHeader.Trigger(condition: $0.condition.text, before: $0.before, after: $0.after)
        }
        var line = LineBuffer()
        Self.append(header, in: configuration.form, hasLoss: !opening.dropped.isEmpty, to: &line)
        return line.bytes
    }

    /// Appends a header in the form of a log: as a JSON object, or as a comment.
    ///
    /// - Parameters:
    ///   - hasLoss: Whether the comment of a text log says that the log is incomplete.
    ///   - file: The file that the comment of a text log names; nil for none.
    static func append(
        _ header: RecordHeader,
        in form: LogSink.Form,
        hasLoss: Bool = false,
        file: String? = nil,
        to line: inout LineBuffer
    ) {
        guard form != .json else { return header.append(to: &line) }
        var timestamps = TimestampWriter(zone: form.zone)
        line.append("# ")
        timestamps.appendStamp(header.time, to: &line)
        line.append(0x20)
        line.appendEscaped(header.tool)
        // The tool's name for a client's log already ends with "log".
        line.append(header.tool.hasSuffix(" log") ? " " : " log ")
        line.appendEscaped(header.level)
        if let filter = header.filter {
            line.append(", filter ")
            line.appendEscaped(filter)
        }
        switch header.redaction {
        case .none: line.append(", SECRETS SHOWN")
        case .secrets: break
        case .bodies: line.append(", bodies redacted")
        case .metadata: line.append(", metadata only")
        }
        if hasLoss { line.append(", incomplete") }
        if let file {
            line.append(", file ")
            line.appendEscaped(file)
        }
        line.endLine()
    }

    /// Returns the line of a record that reports dropped records. It is written whatever the level of the log.
    func loss(_ loss: RecordWriter.Loss) -> [UInt8] {
        let now = run.now()
        var record = Record(
            sequence: run.run.nextSequence(),
            time: now.time,
            monotonic: now.monotonic,
            kind: .note,
            level: .warn,
            part: .capture
        )
        record.code = "records-dropped"
        let cause = loss.deletedFile.map { "\($0) was deleted while it was written" } ?? "they could not be written"
        record.message = "\(loss.records) records (\(loss.bytes) bytes) lost here: \(cause)"
        record.details = [
            "records": .integer(Int64(clamping: loss.records)), "bytes": .integer(Int64(clamping: loss.bytes)),
        ]
        return self.line(of: record)
    }

    /// Returns the line of a record that reports records which a capture has omitted.
    func noteLine(_ note: TriggerNote) -> [UInt8] {
        // Reuse the sequence number of an omitted record.
        var record = Record(
            sequence: note.place.sequence,
            time: note.place.time,
            monotonic: note.place.monotonic,
            kind: .note,
            level: .info,
            part: .capture
        )
        record.code = Record.Code.recordsOmitted
        func plural(_ count: UInt64, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
        switch note {
        case .omitted(let session, let records, _):
            record.session = session
            record.message = "\(plural(records, "record")) of this session left out here: no match is near"
            record.details = ["records": .integer(Int64(clamping: records))]
        case .unmatched(let sessions, let records, _):
            record.message = "\(plural(records, "record")) left out, of \(plural(sessions, "session")) without a match"
            record.details = [
                "records": .integer(Int64(clamping: records)), "sessions": .integer(Int64(clamping: sessions)),
            ]
        case .ended(let matches, _):
            record.code = Record.Code.captureEnded
            record.message =
                "the capture ended after \(matches) match\(matches == 1 ? "" : "es"): what came later is left out"
            record.details = ["matches": .integer(Int64(matches))]
        }
        return line(of: record)
    }

    private func line(of record: Record) -> [UInt8] {
        let nothing: [UInt8] = []
        var line = LineBuffer()
        switch configuration.form {
        case .json:
            var form = JSONForm()
            form.append(record, content: nothing.span, [], to: &line)
        case .text(let style):
            var form = TextForm(style: style)
            form.append(record, content: nothing.span, .summary, to: &line)
        case .compact(var style):
            style.namesDays = false
            var form = CompactForm(style: style)
            form.append(record, content: nothing.span, .summary, to: &line)
        }
        return line.bytes
    }
}
