internal import TapCore
internal import TapRecord
internal import TapRules

/// Formats the lines of a log on other threads, each of which has its own line maker.
///
/// Only for forms whose lines do not depend on earlier lines; see ``LogSink/lineMakers``.
package struct LineMaker: ~Copyable {
    /// Creates the line maker of a thread.
    package typealias Factory = @Sendable () -> LineMaker

    private let levels: LogFilter
    private let filter: RecordFilter?
    private var form: TextForm

    /// The least severe level that the log shows.
    var level: Level { levels.level }

    init(_ levels: LogFilter, _ filter: RecordFilter?, _ style: TextForm.Style) {
        self.levels = levels
        self.filter = filter
        form = TextForm(style: style)
    }

    /// Appends the lines that the log shows of a record; nothing if it does not show the record.
    mutating func append(_ redacted: borrowing RedactedRecord, content: Span<UInt8>, to lines: inout LineBuffer) {
        append(redacted.record, content, to: &lines)
    }

    /// Appends the lines that the log shows of a stored record; nothing if it does not show the record.
    mutating func append(_ stored: borrowing RecordLine, to lines: inout LineBuffer) {
        append(stored.record, stored.content.span, to: &lines)
    }

    private mutating func append(_ record: borrowing Record, _ content: Span<UInt8>, to lines: inout LineBuffer) {
        let shown = levels.shown(of: record)
        guard !shown.isEmpty, filter?.matches(record, content: content) ?? true else { return }
        form.append(record, content: content, shown, to: &lines)
    }
}

/// Collects the lines of records. Used by one thread only.
final class LineBatch: RecordConsumer {
    private var text = LineBuffer(capacity: 0)
    private var ends: [Int] = []
    private var maker: LineMaker

    init(_ maker: consuming LineMaker) { self.maker = maker }

    /// The least severe level that the log shows.
    var level: Level { maker.level }

    /// The number of records with lines in the batch.
    var count: Int { ends.count }

    /// Begins a batch with space for `capacity` bytes.
    func begin(capacity: Int) { text = LineBuffer(capacity: capacity) }

    /// Ends the batch and returns its lines.
    func end() -> FormedLines {
        var made = LineBuffer(capacity: 0)
        swap(&made, &text)
        defer { ends = [] }
        return FormedLines(made, ends: ends)
    }

    func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
        maker.append(record, content: content, to: &text)
        endRecord()
    }

    func receive(_ line: consuming RecordLine) {
        maker.append(line, to: &text)
        endRecord()
    }

    @inline(__always)
    private func endRecord() {
        if text.count > ends.last ?? 0 { ends.append(text.count) }
    }
}
