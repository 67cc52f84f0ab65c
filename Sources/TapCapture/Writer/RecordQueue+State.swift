internal import Glibc

// What the queue holds, all of it guarded by its monitor.
extension RecordQueue {
    /// Whole records, one after the other.
    struct Batch {
        var bytes: [UInt8] = []
        /// Where each record ends.
        var ends: [Int] = []

        mutating func add(_ line: RawSpan) {
            line.withUnsafeBytes { bytes.append(contentsOf: $0) }
            if bytes.last != 0x0A { bytes.append(0x0A) }
            ends.append(bytes.count)
        }

        /// Empties the batch and keeps its memory: under load the next one is as large.
        mutating func clear() {
            bytes.removeAll(keepingCapacity: true)
            ends.removeAll(keepingCapacity: true)
        }

        /// Gives the memory of a burst back; of an empty batch, when there is nothing to do.
        mutating func shrink() {
            guard bytes.isEmpty, bytes.capacity > 1 << 20 else { return }
            bytes = []
            ends = []
        }
    }

    /// What the thread is asked for beside writing.
    struct Requests {
        var reopens = false
        var closes = false
    }

    enum Mode {
        case working
        /// Records wait; when the buffer is full they are dropped.
        case failing
        /// It will never work again: everything is dropped.
        case broken
    }

    struct State {
        var filling = Batch()
        /// Bytes of the other batch that are not written yet.
        var writing = 0
        var mode = Mode.working
        /// Dropped since writing began to fail. Once one is dropped all are until it works again: the gap is one.
        var loss = RecordWriter.Loss()
        /// Records taken and records written or given up, for flushing.
        var accepted: UInt64 = 0
        var settled: UInt64 = 0
        var reopens = false
        var flushes = false
        var closes = false
        var isAbandoned = false
        var isClosed = false
        /// How the thread waits: for the first byte, or for more to come.
        var isIdle = false
        var isCollecting = false
        var thread: pthread_t?
        var counters = RecordWriter.Counters()
        /// When sources were asked to stop reading, where they are.
        var congestedSince: Int64?

        var pending: Int { filling.bytes.count + writing }

        /// Empties a batch that is written and exchanges it for the one that is filled.
        mutating func swapBatches(_ batch: inout Batch) {
            batch.clear()
            swap(&batch, &filling)
            writing = batch.bytes.count
        }

        mutating func drop(records: Int, bytes: Int) {
            loss.add(records: records, bytes: bytes)
            counters.dropped.add(records: records, bytes: bytes)
        }
    }
}
