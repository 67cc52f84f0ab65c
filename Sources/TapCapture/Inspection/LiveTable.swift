internal import Synchronization
package import TapCore
package import TapRecord

/// Keeps the newest records of a run for pages that are open.
///
/// Errors, warnings, and the beginning and end of sessions are always kept, so that a page shows a login that failed before it was
/// opened, and which sessions are open. Other records cost more, and are only kept while a page asks for data: until then, and 60 s
/// after the last request, the level is ``idleLevel``.
package final class LiveTable: Sink {
    /// The default limits: 100,000 records in at most 64 MiB.
    package static let usualLimits = RecordTable.Limits(records: 100_000, bytes: 64 << 20)
    /// The level while no page is open. Of the items of streams, only those with errors are kept.
    package static let idleLevel = Level.info
    /// The time without a request after which recording stops, in nanoseconds.
    package static let patience: Int64 = 60_000_000_000

    /// The records.
    package let table: RecordTable
    private let recording = RecordLevel(idleLevel)
    private let now: @Sendable () -> Run.Instant
    private let onChange: @Sendable () -> Void
    private let asked = Mutex(Asked())

    private struct Asked {
        /// The time of the last request, in nanoseconds since the run began.
        var last: Int64 = 0
        /// When recording began; nil while no page is open.
        var since: Timestamp?
        var hasRecorded = false
    }

    /// Creates an empty table.
    ///
    /// - Parameters:
    ///   - limits: How much it keeps.
    ///   - now: Reads the clocks of the run.
    ///   - onChange: Called after a change of ``level``.
    package init(
        _ limits: RecordTable.Limits = usualLimits,
        now: @escaping @Sendable () -> Run.Instant,
        onChange: @escaping @Sendable () -> Void
    ) {
        table = RecordTable(limits)
        self.now = now
        self.onChange = onChange
    }

    package var level: Level { recording.current }

    /// When recording began; nil while no page is open.
    package var since: Timestamp? { asked.withLock { $0.since } }

    package var isCongested: Bool { false }

    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        if redacted.record.kind.isStreamItem, redacted.record.level > .warn, recording.current == Self.idleLevel {
            return
        }
        table.append(redacted, content: content)
    }

    /// Begins to record, or continues for another minute.
    package func touch() {
        let now = now()
        let begins = asked.withLock { asked in
            asked.last = max(asked.last, now.monotonic)
            guard asked.since == nil else { return false }
            asked.since = now.time
            let start = "recording since \(now.time.stamp(in: .utc))"
            let remark =
                asked.hasRecorded
                ? "\(start): no page was open before, so that only sessions, errors and warnings are kept"
                : "\(start): of the time before, only sessions, errors and warnings are shown"
            asked.hasRecorded = true
            table.append(StoredLine.Remark(.gap, remark, at: now.time))
            recording.set(.verbose)
            return true
        }
        if begins { onChange() }
    }

    /// Stops recording if the last request is too long ago.
    package func expire() {
        let now = now()
        let ends = asked.withLock { asked in
            guard asked.since != nil, now.monotonic &- asked.last > Self.patience else { return false }
            asked.since = nil
            recording.set(Self.idleLevel)
            return true
        }
        if ends { onChange() }
    }
}
