internal import TapCore
internal import TapRecord

/// A queue of records. Records are moved out and not copied, because a copy retains each of the record's texts.
///
/// Sendable: one thread fills it, and then another empties it.
final class RecordBatch: RecordConsumer, @unchecked Sendable {
    /// The records; nil replaces a record that was returned.
    private var lines: [RecordLine?] = []
    /// Number of records that were returned.
    private var returned = 0

    /// Creates a batch with room for `capacity` records, at least 16.
    init(capacity: Int = 16) { lines.reserveCapacity(max(16, capacity)) }

    /// Number of records that were appended.
    var count: Int { lines.count }

    func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
        receive(RecordLine(record, content: content))
    }

    func receive(_ line: consuming RecordLine) { lines.append(line) }

    /// Removes and returns the next record; nil if there is none.
    func next() -> RecordLine? {
        guard returned < lines.count else { return nil }
        returned += 1
        return lines[returned - 1].take()
    }

    /// Empties the batch for reuse.
    func clear() {
        lines.removeAll(keepingCapacity: true)
        returned = 0
    }
}
