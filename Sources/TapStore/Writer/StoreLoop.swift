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
    private var stalledSince: Int64?
    private var limitTime: Int64

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
                if rejected > 0 { queue.giveUp(records: rejected, bytes: 0, forEver: false) }
                batch.clear()
                guard isFailing else { return false }
                isFailing = false
                onEvent(.recovered(queue.recover(&batch)))
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
        var rejected = 0
        var rejection: StoreFault?
        var start = 0
        for (index, end) in batch.ends.enumerated() {
            var entry: AuditEntry?
            QueuedRecord.decode(batch.bytes.span.extracting(start..<end)) { entry = maker.entry($0, content: $1) }
            start = end
            if index % Self.noticeInterval == 0 { noticeStall() }
            guard let entry else { continue }
            do throws(StoreFault) {
                try store.add(entry)
            } catch {
                guard case .row = error.code else { throw error }
                rejected += 1
                rejection = error
            }
        }
        try store.commit()
        if let rejection { onEvent(.rejected(rejected, rejection)) }
        return rejected
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
