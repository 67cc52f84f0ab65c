internal import TapCore
internal import TapRecord

/// Records that are made in one place and given out in another, each once, without a copy: a copy retains each of the record's texts.
///
/// Sendable: one thread fills it, and then another empties it.
final class RecordBatch: RecordConsumer, @unchecked Sendable {
    /// A record that was given out leaves nil.
    private var lines: [RecordLine?] = []
    /// Number of records that were given out.
    private var given = 0

    /// A batch with room for `capacity` records at first.
    init(capacity: Int = 16) { lines.reserveCapacity(max(16, capacity)) }

    /// Number of records that were appended.
    var count: Int { lines.count }

    func receive(_ record: consuming RedactedRecord, content: Span<UInt8>) {
        take(RecordLine(record, content: content))
    }

    func take(_ line: consuming RecordLine) { lines.append(line) }

    /// Gives out the next record; nil if there is none.
    func next() -> RecordLine? {
        guard given < lines.count else { return nil }
        given += 1
        return lines[given - 1].take()
    }

    /// Empties the batch, to be filled again.
    func clear() {
        lines.removeAll(keepingCapacity: true)
        given = 0
    }
}
