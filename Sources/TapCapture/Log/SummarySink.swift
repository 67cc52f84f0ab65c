internal import Synchronization
package import TapDiagnosis
package import TapRecord

/// Counts the results of a run for the summary that is printed at its end.
package final class SummarySink: Sink {
    package let level: Level
    private let summary = Mutex(RunSummary())

    /// Creates a sink for records up to the level that the terminal shows, so that no additional records have to be
    /// made.
    package init(level: Level) { self.level = level }

    package var isCongested: Bool { false }

    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        let record = redacted.record
        summary.withLock { $0.add(record, content: content) }
    }

    /// The results so far.
    package var soFar: RunSummary { summary.withLock { $0 } }
}
