internal import Glibc
internal import Synchronization
internal import TapRecord

/// The bounded double buffer between the threads that append records and the thread that writes them.
///
/// Appenders copy into one batch while the thread writes the other; ``dequeue(_:interval:until:)`` swaps the two. All
/// state is guarded by the monitor, except an atomic flag for ``isCongested``, because it is read before every read
/// of a socket.
package final class RecordQueue: @unchecked Sendable {  // Sendable: `state` is guarded by the monitor.
    /// Complete records, one after the other.
    package struct Batch {
        package internal(set) var bytes: [UInt8] = []
        /// The offsets at which the records end.
        package internal(set) var ends: [Int] = []

        package init() {}

        mutating func add(_ line: RawSpan) {
            line.withUnsafeBytes { bytes.append(contentsOf: $0) }
            if bytes.last != 0x0A { bytes.append(0x0A) }
            ends.append(bytes.count)
        }

        mutating func add(_ lines: MergedLines) { lines.append(to: &bytes, &ends) }

        /// Empties the batch but keeps its memory, because under load the next one is as large.
        package mutating func clear() {
            bytes.removeAll(keepingCapacity: true)
            ends.removeAll(keepingCapacity: true)
        }

        /// Releases the memory of an empty batch that was large. Called when there is nothing to write.
        mutating func shrink() {
            guard bytes.isEmpty, bytes.capacity > 1 << 20 else { return }
            bytes = []
            ends = []
        }
    }

    /// Requests to the writer thread other than writing records.
    package struct Requests {
        package internal(set) var reopens = false
        package internal(set) var closes = false
        /// Whether a file without a record is removed at the end.
        var removesUnused = false
        /// The new name of the file; nil if it is not renamed.
        var name: String?
    }

    private enum Mode {
        case working
        /// Writing fails. Records are buffered, then dropped when the buffer is full.
        case failing
        /// Writing has failed permanently: all records are dropped.
        case broken
        /// The destination could not be opened: all records are discarded and not counted as dropped.
        case unopened
    }

    private struct State {
        var filling = Batch()
        /// The number of bytes of the other batch that are not written yet.
        var writing = 0
        /// The times at which the first record of each batch was appended.
        var (fillingSince, writingSince): (Int64, Int64) = (0, 0)
        var mode = Mode.working
        /// The records dropped since writing began to fail. After the first one all later records are dropped too
        /// until writing works again, so that there is only one gap.
        var loss = RecordWriter.Loss()
        /// The numbers of records accepted, and of those written or dropped later; used for flushing.
        var accepted: UInt64 = 0
        var settled: UInt64 = 0
        var reopens = false
        var name: String?
        var flushes = false
        var closes = false
        var removesUnused = false
        var isAbandoned = false
        var isClosed = false
        /// Whether the thread waits for the first byte, or for more bytes.
        var isIdle = false
        var isCollecting = false
        /// Whether the previous batch had records.
        var isBusy = false
        var thread: pthread_t?
        var counters = RecordWriter.Counters()
        /// The time at which sources were asked to stop reading; nil if they may read.
        var congestedSince: Int64?

        var pending: Int { filling.bytes.count + writing }

        /// Empties a written batch and swaps it with the filled one.
        mutating func swapBatches(_ batch: inout Batch) {
            batch.clear()
            swap(&batch, &filling)
            writing = batch.bytes.count
            writingSince = fillingSince
        }

        mutating func drop(records: Int, bytes: Int) {
            loss.add(records: records, bytes: bytes)
            counters.dropped.add(records: records, bytes: bytes)
        }
    }

    private let monitor = Monitor()
    /// Accessed under the lock of ``monitor``.
    private var state = State()
    private let options: RecordWriter.Options
    private let congested = Atomic<Bool>(false)

    package init(options: RecordWriter.Options) {
        self.options = options
    }

    // MARK: - For appenders and owners, from any thread

    /// Whether sources should stop reading.
    package var isCongested: Bool { congested.load(ordering: .relaxed) }

    package var counters: RecordWriter.Counters {
        monitor.withLock {
            var counters = state.counters
            counters.pending = state.pending
            if counters.pending > 0 {
                counters.lag = max(0, Monitor.now - (state.writing > 0 ? state.writingSince : state.fillingSince))
            }
            return counters
        }
    }

    package func append(_ line: RawSpan) -> RecordWriter.Outcome {
        append(bytes: line.byteCount, records: 1) { $0.add(line) }
    }

    func append(_ lines: MergedLines) -> RecordWriter.Outcome {
        append(bytes: lines.byteCount, records: lines.recordCount) { $0.add(lines) }
    }

    @inline(__always)
    private func append(bytes: Int, records: Int, _ add: (inout Batch) -> Void) -> RecordWriter.Outcome {
        monitor.withLock {
            // One more byte, because a newline may be added.
            let size = bytes + 1
            // The sources were asked to stop reading at half the capacity; a thread that still fills the buffer has
            // to wait. The writer thread, which may append from a callback, must not wait: it would wait for itself.
            while state.mode == .working, !state.closes, state.pending > 0, state.pending + size > options.capacity,
                state.thread.map({ pthread_equal($0, pthread_self()) }) != 1
            {
                state.counters.waits &+= 1
                monitor.wait(for: .progress)
            }
            let isFull = state.mode == .failing && (!state.loss.isEmpty || state.pending + size > options.capacity)
            guard state.mode != .unopened else { return .dropped }
            guard !isFull, state.mode != .broken, !state.closes else {
                state.drop(records: records, bytes: bytes)
                return .dropped
            }
            let before = state.filling.bytes.count
            if before == 0 { state.fillingSince = Monitor.now }
            add(&state.filling)
            state.accepted &+= UInt64(records)
            let after = state.filling.bytes.count
            if state.isIdle && before == 0
                || state.isCollecting && before < options.flushSize && after >= options.flushSize
            {
                monitor.signal(.work)
            }
            state.counters.pendingPeak = max(state.counters.pendingPeak, state.pending)
            if state.mode == .working, state.pending > options.highWater, !isCongested {
                congested.store(true, ordering: .relaxed)
                state.congestedSince = Monitor.now
            }
            return isCongested ? .congested : .taken
        }
    }

    /// Waits until all records appended before are written; returns false if that fails or is not done at `deadline`.
    func flush(until deadline: Int64) -> Bool {
        monitor.withLock {
            guard state.mode == .working else { return false }
            let target = state.accepted
            let lost = state.counters.dropped
            while state.settled < target {
                guard state.mode == .working, Monitor.now < deadline else { return false }
                state.flushes = true
                monitor.signal(.work)
                monitor.wait(for: .progress, until: deadline)
            }
            return state.counters.dropped == lost
        }
    }

    package func requestReopen() {
        monitor.withLock {
            state.reopens = true
            monitor.signal(.work)
        }
    }

    func requestRename(to name: String) {
        monitor.withLock {
            state.name = name
            monitor.signal(.work)
        }
    }

    package func requestClose(removingUnused: Bool = false) {
        monitor.withLock {
            state.closes = true
            if removingUnused { state.removesUnused = true }
            monitor.signal(.work)
            monitor.signal(.progress)
        }
    }

    /// Waits for the end of the thread. If it is still running at `deadline`, asks it to give up and waits 0.5 s
    /// more.
    package func waitForEnd(until deadline: Int64) {
        monitor.withLock {
            while !state.isClosed, Monitor.now < deadline { monitor.wait(for: .progress, until: deadline) }
            guard !state.isClosed else { return }
            state.isAbandoned = true
            monitor.signal(.work)
            let last = Monitor.now + 500_000_000
            while !state.isClosed, Monitor.now < last { monitor.wait(for: .progress, until: last) }
        }
    }

    // MARK: - For the writer thread

    package func begin() {
        monitor.withLock { state.thread = pthread_self() }
    }

    /// Waits for records or requests and removes all of them; `batch` is empty only if there is a request or
    /// `wakeTime` is reached.
    ///
    /// Records wait up to `interval` nanoseconds for others, unless there are enough or a request arrives. After a
    /// batch with records, the thread waits for up to `interval` and then checks for more: the first record appended
    /// meanwhile does not have to wake it.
    ///
    /// - Parameter wakeTime: The time on the clock of ``Monitor`` at which it returns even without records; `.max`
    ///   for no limit.
    package func dequeue(_ batch: inout Batch, interval: Int64, until wakeTime: Int64 = .max) -> Requests {
        monitor.withLock {
            var deadline = state.isBusy ? Monitor.now + interval : nil
            while !state.closes, !state.reopens, state.name == nil, !(state.flushes && !state.filling.ends.isEmpty),
                state.filling.bytes.count < options.flushSize
            {
                if state.filling.ends.isEmpty, deadline.map({ Monitor.now >= $0 }) ?? true {
                    deadline = nil
                    state.flushes = false
                    state.filling.shrink()
                    batch.shrink()
                    guard Monitor.now < wakeTime else { break }
                    state.isIdle = true
                    monitor.wait(for: .work, until: wakeTime == .max ? nil : wakeTime)
                    state.isIdle = false
                } else {
                    let end = deadline ?? Monitor.now + interval
                    deadline = end
                    guard Monitor.now < end else { break }
                    state.isCollecting = true
                    monitor.wait(for: .work, until: end)
                    state.isCollecting = false
                }
            }
            state.flushes = false
            state.swapBatches(&batch)
            state.isBusy = !batch.ends.isEmpty
            let requests = Requests(
                reopens: state.reopens,
                closes: state.closes,
                removesUnused: state.removesUnused,
                name: state.name
            )
            state.reopens = false
            state.name = nil
            return requests
        }
    }

    /// Counts bytes and records of the batch as written.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes; negative if a record is written again from its beginning in another file, or
    ///     if the batch has grown.
    ///   - records: The number of complete records, including headers.
    ///   - headers: The number of headers among them.
    /// - Returns: Whether to send ``RecordWriter/Event/room``.
    package func progress(bytes: Int, records: Int, headers: Int = 0) -> Bool {
        monitor.withLock {
            state.writing -= bytes
            state.settled &+= UInt64(records)
            state.counters.records &+= UInt64(records - headers)
            monitor.signal(.progress)
            return relieve()
        }
    }

    /// Stores the value of the hash chain at the last written line, for ``counters``.
    func store(chain: [UInt8]) {
        monitor.withLock { state.counters.chain = String(decoding: HashChain.hex(chain), as: UTF8.self) }
    }

    func countRotation() {
        monitor.withLock { state.counters.rotations &+= 1 }
    }

    /// Must be called when writing begins to fail: appenders no longer wait, and sources may read.
    ///
    /// - Returns: Whether to send ``RecordWriter/Event/room``.
    package func fail() -> Bool {
        monitor.withLock {
            state.mode = .failing
            monitor.signal(.progress)
            state.congestedSince = nil
            return congested.exchange(false, ordering: .relaxed)
        }
    }

    /// Waits until `deadline`, the time of the next attempt to write, or until a request to reopen or close.
    package func pause(until deadline: Int64) -> Requests {
        monitor.withLock {
            while !state.closes, !state.reopens, Monitor.now < deadline { monitor.wait(for: .work, until: deadline) }
            let requests = Requests(reopens: state.reopens, closes: state.closes)
            state.reopens = false
            return requests
        }
    }

    /// Must be called when writing works again: moves the buffered records to `batch`, and returns the loss after
    /// them.
    package func recover(_ batch: inout Batch) -> RecordWriter.Loss {
        monitor.withLock {
            state.mode = .working
            state.swapBatches(&batch)
            defer { state.loss = RecordWriter.Loss() }
            return state.loss
        }
    }

    /// Appends a line of the writer itself to a batch, and counts its bytes among those being written.
    func add(_ line: [UInt8], to batch: inout Batch) {
        guard !line.isEmpty else { return }
        let before = batch.bytes.count
        batch.add(line.span.bytes)
        monitor.withLock {
            state.writing += batch.bytes.count - before
            state.accepted &+= 1
        }
    }

    /// Inserts a line of the writer itself at the beginning of a batch of which nothing is written yet.
    func add(_ line: [UInt8], before batch: inout Batch) {
        guard !line.isEmpty else { return }
        var whole = Batch()
        whole.add(line.span.bytes)
        let count = whole.bytes.count
        batch.bytes.insert(contentsOf: whole.bytes, at: 0)
        batch.ends = whole.ends + batch.ends.map { $0 + count }
        monitor.withLock {
            state.writing += count
            state.accepted &+= 1
        }
    }

    /// Counts records that were lost with a deleted file.
    func countDeleted(_ loss: RecordWriter.Loss) {
        monitor.withLock {
            state.counters.deleted &+= loss.records
            state.counters.dropped.add(loss)
        }
    }

    /// Counts records of a batch that were refused as dropped. They are not part of the loss of a failure, see ``recover(_:)``.
    package func reject(records: Int) {
        monitor.withLock {
            state.counters.dropped.add(records: records, bytes: 0)
            state.settled &+= UInt64(records)
            state.writing = 0
            monitor.signal(.progress)
        }
    }

    /// Drops the rest of a batch. If `forEver` is true, also drops all buffered records and all later ones.
    package func giveUp(records: Int, bytes: Int, forEver: Bool) {
        monitor.withLock {
            state.drop(records: records, bytes: bytes)
            state.settled &+= UInt64(records)
            state.writing = 0
            if forEver {
                let waiting = state.filling.ends.count
                state.drop(records: waiting, bytes: state.filling.bytes.count)
                state.settled &+= UInt64(waiting)
                state.filling = Batch()
                state.mode = .broken
            }
            monitor.signal(.progress)
        }
    }

    /// The time at which sources were asked to stop reading; nil if they may read.
    package var congestedSince: Int64? { isCongested ? monitor.withLock { state.congestedSince } : nil }
    package var isClosing: Bool { monitor.withLock { state.closes } }
    var isClosed: Bool { monitor.withLock { state.isClosed } }
    package var isAbandoned: Bool { monitor.withLock { state.isAbandoned } }
    var dropped: RecordWriter.Loss { monitor.withLock { state.counters.dropped } }

    /// Closes the queue because the destination could not be opened, and discards the appended records.
    func discardAll() {
        monitor.withLock {
            state.mode = .unopened
            state.settled = state.accepted
            state.filling = Batch()
            state.congestedSince = nil
            congested.store(false, ordering: .relaxed)
            state.isClosed = true
            monitor.signal(.progress)
        }
    }

    /// Closes the queue unless records were appended meanwhile; returns whether it is closed.
    package func end() -> Bool {
        monitor.withLock {
            guard state.filling.ends.isEmpty else { return false }
            state.isClosed = true
            state.thread = nil
            monitor.signal(.progress)
            return true
        }
    }

    // MARK: - With the lock held

    private func relieve() -> Bool {
        guard isCongested, state.pending <= options.lowWater else { return false }
        congested.store(false, ordering: .relaxed)
        state.congestedSince = nil
        return true
    }
}
