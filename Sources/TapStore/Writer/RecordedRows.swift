internal import Glibc
internal import TapCapture
package import TapRecord
package import TapRules

/// Adds stored records to a store, as they are read; used by one thread at a time.
package final class RecordedRows {
    /// The time after which added rows are committed, in nanoseconds, for records that arrive slowly.
    private static let commitInterval: Int64 = 1_000_000_000

    private let store: any AuditWriter
    private let levels: LogFilter
    private let filter: RecordFilter?
    private let content: StoredContent
    private var maker: AuditRowMaker?
    private var commitTime = Int64.max
    /// The first fault; no rows are added after it.
    package private(set) var fault: StoreFault?

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - spec: Selects the sessions and stanzas that are stored.
    ///   - filter: Selects records; nil selects all.
    package init(
        _ place: StorePlace,
        spec: LogSpec = LogSpec(level: .info),
        filter: RecordFilter? = nil,
        content: StoredContent,
        onEvent: @escaping @Sendable (Spool.Event) -> Void
    ) throws(StoreFault) {
        // The recordings can be of several runs.
        let random = (0..<RunIdentifier.randomCount).map { _ in UInt8.random(in: 0...UInt8.max) }
        let time = Timestamp(nanoseconds: Int64(time(nil)) * 1_000_000_000)
        var writing = StorePlace.Writing(run: RunIdentifier.text(at: time, random: random))
        writing.whenFull = .wait
        writing.onEvent = onEvent
        store = try place.openWriter(writing)
        levels = LogFilter(spec)
        self.filter = filter
        self.content = content
    }

    /// Receives the header of the next records.
    package func begin(_ header: RecordHeader) { maker = AuditRowMaker(run: header.run, content: content) }

    package func add(_ line: borrowing RecordLine) {
        guard fault == nil, AuditRowMaker.isKept(line.record), !levels.shown(of: line.record).isEmpty,
            filter?.matches(line.record, content: line.content.span) ?? true, let maker
        else { return }
        attempt { () throws(StoreFault) in try store.add(line.record, content: line.content.span, by: maker) }
        if commitTime == .max { commitTime = Monitor.now + Self.commitInterval }
    }

    /// Commits the added rows if that is due. Call it regularly.
    package func commitIfDue() {
        guard fault == nil, Monitor.now >= commitTime else { return }
        commit()
    }

    private func commit() {
        commitTime = .max
        attempt { () throws(StoreFault) in try store.commit() }
    }

    /// Sends the added rows to the store, so that they can be read. Nothing can be added later.
    package func finish() {
        attempt { () throws(StoreFault) in try store.finish() }
    }

    private func attempt(_ body: () throws(StoreFault) -> Void) {
        do throws(StoreFault) {
            try body()
        } catch {
            store.abandon()
            fault = error
        }
    }
}
