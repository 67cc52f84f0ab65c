internal import Glibc
package import TapCapture
internal import TapCore
package import TapRecord
package import TapRules

/// Adds the records of a running program to a store.
///
/// ```
/// event loops ── QueuedRecord ──→ RecordQueue ──→ thread of the store: AuditRowMaker ──→ AuditWriter
/// ```
///
/// An event loop only copies what a row is made of. Buffer and limit are those of a log: a slow store pauses the sessions as a slow disk
/// does. While the store cannot be written, records are buffered, then dropped and counted, and the sessions continue.
package final class StoreSink: LogOutput {
    /// A change of the state of the store. Sent on its thread.
    package enum Event: Sendable {
        /// Rows cannot be written; they are buffered, then dropped.
        case failed(StoreFault)
        /// Rows are written again; with the number of records that were dropped.
        case recovered(RecordWriter.Loss)
        /// The file was deleted or moved, and a new store is begun.
        case replaced(StoreFault)
        /// Some records cannot be stored, and were dropped; others can.
        case rejected(Int, StoreFault)
        /// The store is too slow: the sources are paused.
        case stalled
        /// The store accepts records again after ``stalled``; with the duration of the stall.
        case flowing(after: Duration)
        /// Something happened to the rows on their way to a server.
        case spool(Spool.Event)
    }

    /// The content and the limits of a store.
    package struct Configuration: Sendable {
        package var place: StorePlace
        /// Selects the sessions and stanzas that are stored.
        package var spec: LogSpec
        package var filter: RecordFilter?
        /// What rows contain of stanzas.
        package var content = StoredContent()
        package var limit = StoreLimit()
        /// Whether rows must not be dropped while a store cannot be written.
        package var isRequired = false

        package init(_ place: StorePlace, spec: LogSpec, filter: RecordFilter? = nil) {
            self.place = place
            self.spec = spec
            self.filter = filter
        }

        func writing(_ run: LoggedRun, _ onEvent: @escaping @Sendable (Event) -> Void) -> StorePlace.Writing {
            var writing = StorePlace.Writing(run: run.word)
            writing.limit = limit
            writing.whenFull = isRequired ? .refuse : .drop
            writing.onEvent = { onEvent(.spool($0)) }
            return writing
        }
    }

    /// The least severe level that the store needs.
    package let level: Level
    private let levels: LogFilter
    private let filter: RecordFilter?
    private let queue: RecordQueue
    private let spool: Spool?

    /// Opens a store, and starts its thread.
    ///
    /// - Parameter run: The run of the records.
    package init(
        _ configuration: Configuration,
        run: LoggedRun,
        onEvent: @escaping @Sendable (Event) -> Void
    ) throws(StoreFault) {
        levels = LogFilter(configuration.spec)
        level = levels.level
        filter = configuration.filter
        var options = RecordWriter.Options()
        // The larger the transactions, the less the index of words is merged.
        options.flushSize = 4 << 20
        // Rows that are not in a file yet are lost if the process is killed.
        options.flushInterval = configuration.place.isFile ? .milliseconds(500) : .milliseconds(100)
        options.retryInterval = .seconds(5)
        let queue = RecordQueue(options: options)
        self.queue = queue
        let store = try configuration.place.openWriter(configuration.writing(run, onEvent))
        spool = store.spool
        // Used only by the thread from here on.
        nonisolated(unsafe) let loop = StoreLoop(store, queue, configuration, options, run: run, onEvent)
        let result = WorkerThread.start(named: "store-writer") { loop.work() }
        guard result == 0 else {
            throw StoreFault(
                code: .other("no thread: \(String(cString: strerror(result)))"),
                path: configuration.place.name
            )
        }
    }

    package func write(_ redacted: borrowing RedactedRecord, content: Span<UInt8>) {
        guard AuditRowMaker.isKept(redacted.record), !levels.shown(of: redacted.record).isEmpty,
            filter?.matches(redacted.record, content: content) ?? true
        else { return }
        _ = queue.append(QueuedRecord.encode(redacted.record, content).span.bytes)
    }

    package var isCongested: Bool { queue.isCongested }

    package var counters: RecordWriter.Counters { queue.counters }

    /// The state of the rows on their way to a server; nil for a file.
    package var spoolFigures: Spool.Figures? { spool?.figures }

    /// Continues in a new store if the file was moved.
    package func reopen() { queue.requestReopen() }

    package func close(within time: Duration, removingUnused: Bool) -> RecordWriter.Loss {
        queue.requestClose(removingUnused: removingUnused)
        queue.waitForEnd(until: Monitor.now + time.wholeNanoseconds)
        return queue.counters.dropped
    }
}
