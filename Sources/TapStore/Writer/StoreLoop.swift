internal import Glibc
internal import TapCapture
internal import TapCore
internal import TapRecord

/// The part of a ``StoreSink`` that its thread uses: makes rows of the queued records, adds them to the store, deletes old ones, and
/// tries again if the store cannot be written.
final class StoreLoop {
    /// The time after which a limit is checked again, in nanoseconds.
    private static let limitInterval: Int64 = 60_000_000_000
    /// The number of records after which a stall is noticed.
    private static let noticeInterval = 1000

    /// The store; nil if the file was moved, and after the end.
    private var store: (any AuditWriter)?
    private let queue: RecordQueue
    private let configuration: StoreSink.Configuration
    private let options: RecordWriter.Options
    private let run: LoggedRun
    private let maker: AuditRowMaker
    private let onEvent: @Sendable (StoreSink.Event) -> Void
    private var batch = RecordQueue.Batch()
    private var isFailing = false
    /// The record with the highest number that was written.
    private var newest: RecordPlace?
    private var lost = Lost.nothing
    private var stalledSince: Int64?
    private var limitTime: Int64

    /// Records that were dropped while the store could not be written. Those that were buffered before them are written first.
    private enum Lost {
        case nothing
        /// After the buffered records, which are not written yet.
        case afterBuffer(UInt64)
        /// Between the last record that was written and the next one.
        case beforeNext(UInt64)

        var count: UInt64 {
            switch self {
            case .nothing: 0
            case .afterBuffer(let count), .beforeNext(let count): count
            }
        }
    }

    init(
        _ store: any AuditWriter,
        _ queue: RecordQueue,
        _ configuration: StoreSink.Configuration,
        _ options: RecordWriter.Options,
        run: LoggedRun,
        _ onEvent: @escaping @Sendable (StoreSink.Event) -> Void
    ) {
        self.store = store
        self.queue = queue
        self.configuration = configuration
        self.options = options
        maker = AuditRowMaker(run: run.word, content: configuration.content)
        self.run = run
        self.onEvent = onEvent
        limitTime = configuration.limit.isEmpty ? .max : Monitor.now
    }

    /// The thread's body: returns when the sink is closed.
    func work() {
        queue.begin()
        while true {
            let requests = queue.dequeue(&batch, interval: options.flushInterval.wholeNanoseconds, until: limitTime)
            closeIfGone()
            // A disk of the limit's size must not become full before the time is over.
            if configuration.limit.bytes != nil, !batch.ends.isEmpty { limitTime = Monitor.now }
            while writeBatch() {}
            if Monitor.now >= limitTime, !requests.closes { applyLimit() }
            guard requests.closes else { continue }
            addLastGap()
            store?.close()
            store = nil
            if queue.end() { return }
        }
    }

    // MARK: Writing

    /// Writes the batch, and waits if that fails; returns whether there is another batch to be written at once.
    private func writeBatch() -> Bool {
        guard !batch.ends.isEmpty else { return false }
        while true {
            do throws(StoreFault) {
                let rejected = try addBatch()
                if queue.progress(bytes: batch.bytes.count, records: batch.ends.count - rejected) { noticeFlow() }
                if rejected > 0 { queue.reject(records: rejected) }
                batch.clear()
                guard isFailing else { return false }
                isFailing = false
                let loss = queue.recover(&batch)
                // Those of an earlier failure may not be counted yet.
                let count = lost.count + loss.records
                if count > 0 { lost = batch.ends.isEmpty ? .beforeNext(count) : .afterBuffer(count) }
                onEvent(.recovered(loss))
                return !batch.ends.isEmpty
            } catch {
                store?.abandon()
                guard waitAfter(error) else {
                    queue.giveUp(records: batch.ends.count, bytes: batch.bytes.count, forEver: true)
                    batch.clear()
                    return false
                }
            }
        }
    }

    /// Adds the rows of the batch in one transaction; returns the number of records that cannot be stored.
    private func addBatch() throws(StoreFault) -> Int {
        let store = try openStore()
        var rejected: StoreGap?
        var rejection: StoreFault?
        var newest = newest
        var lost = lost
        let bytes = batch.bytes
        var start = 0
        for (index, end) in batch.ends.enumerated() {
            if index % Self.noticeInterval == 0 { noticeStall() }
            try QueuedRecord.decode(bytes.span.extracting(start..<end)) { record, content throws(StoreFault) in
                let place = RecordPlace(sequence: record.sequence, time: record.time)
                if case .beforeNext(let count) = lost {
                    let before = newest.map { $0.sequence &+ 1 } ?? 0
                    let last = max(before, place.sequence &- 1)
                    try store.add(gap(before...last, count, "the store could not be written", place.time))
                    lost = .nothing
                }
                if place.sequence > newest?.sequence ?? 0 { newest = place }
                do throws(StoreFault) {
                    try store.add(record, content: content, by: maker)
                } catch {
                    guard case .row = error.code else { throw error }
                    let gap = gap(place.sequence...place.sequence, 1, "a stanza could not be stored", place.time)
                    rejected = StoreGap.joined((rejected.map { [$0] } ?? []) + [gap]).first
                    rejection = error
                }
            }
            start = end
        }
        if let rejected { try store.add(rejected) }
        try store.commit()
        // A batch that failed is added again.
        if case .afterBuffer(let count) = lost { lost = .beforeNext(count) }
        (self.newest, self.lost) = (newest, lost)
        let count = Int(clamping: rejected?.stanzas ?? 0)
        if let rejection { onEvent(.rejected(count, rejection)) }
        return count
    }

    private func gap(_ numbers: ClosedRange<UInt64>, _ count: UInt64, _ reason: String, _ time: Timestamp) -> StoreGap {
        StoreGap(
            run: run.word,
            first: numbers.lowerBound,
            last: numbers.upperBound,
            stanzas: count,
            reason: reason,
            time: time
        )
    }

    /// Adds the gap of the records that were dropped, and after which none came.
    private func addLastGap() {
        guard case .beforeNext(let count) = lost, let store, let newest else { return }
        let numbers = newest.sequence &+ 1...max(newest.sequence &+ 1, newest.sequence &+ count)
        do throws(StoreFault) {
            try store.add(gap(numbers, count, "the store could not be written", newest.time))
            try store.commit()
        } catch {
            store.abandon()
        }
    }

    /// Reports a fault, and waits until the next attempt; returns false if the sink is closing.
    private func waitAfter(_ fault: StoreFault) -> Bool {
        if !isFailing {
            isFailing = true
            stalledSince = nil
            _ = queue.fail()
            onEvent(.failed(fault))
        }
        guard !queue.isClosing, !queue.isAbandoned else { return false }
        _ = queue.pause(until: Monitor.now + options.retryInterval.wholeNanoseconds)
        closeIfGone()
        return true
    }

    private func noticeStall() {
        guard stalledSince == nil, let since = queue.congestedSince,
            Monitor.now - since >= options.stallNotice.wholeNanoseconds
        else { return }
        stalledSince = since
        onEvent(.stalled)
    }

    private func noticeFlow() {
        guard let since = stalledSince else { return }
        stalledSince = nil
        onEvent(.flowing(after: .nanoseconds(Monitor.now - since)))
    }

    // MARK: Other work

    /// Closes the store if the file was deleted or moved. The next row begins a new one.
    private func closeIfGone() {
        guard store?.isInPlace == false else { return }
        store?.close()
        store = nil
        // A log that a reader keeps open must not become that of the new store.
        for ending in ["-wal", "-shm"] { unlink(configuration.place.name + ending) }
        onEvent(.replaced(StoreFault(code: .moved, path: configuration.place.name)))
    }

    private func openStore() throws(StoreFault) -> any AuditWriter {
        if let store { return store }
        let store = try configuration.place.openWriter(configuration.writing(run, onEvent))
        self.store = store
        return store
    }

    private func applyLimit() {
        limitTime = Monitor.now + Self.limitInterval
        guard let store, !isFailing else { return }
        do throws(StoreFault) {
            while try store.retain(configuration.limit, at: run.now().time) {
                // Records wait meanwhile. Old rows can be deleted later, but a file that is too large can fill the disk.
                guard !queue.isCongested || configuration.limit.bytes != nil else { return limitTime = Monitor.now }
            }
        } catch {
            // The next row that is written reports the fault.
            store.abandon()
        }
    }
}
