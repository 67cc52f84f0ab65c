package import TapRecord

/// Keeps the newest records of a run for pages that are opened later.
package final class LiveTable: Sink {
    /// The default limits: 100,000 records in at most 64 MiB.
    package static let usualLimits = RecordTable.Limits(records: 100_000, bytes: 64 << 20)

    package let level = Level.verbose
    /// The records.
    package let table: RecordTable

    package init(_ limits: RecordTable.Limits = usualLimits) { table = RecordTable(limits) }

    package var isCongested: Bool { false }

    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        table.append(redacted.record, content: content)
    }
}
