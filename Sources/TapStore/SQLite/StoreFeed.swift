internal import Foundation
internal import Glibc
internal import Synchronization
internal import TapRecord

/// Adds the records of a running proxy to a store, on a thread of its own.
///
/// A log in JSON writes the records to a pipe, from which this thread reads them: so the buffer, and its limit, are those of
/// every log: a slow store pauses the sessions as a slow disk does. If the store cannot be written, stanzas are dropped and
/// counted until it can, and the sessions continue.
package final class StoreFeed: Sendable {
    /// A change of the state of the store.
    package enum Event: Sendable {
        /// Rows cannot be written, and are dropped from now on.
        case failed(StoreFault)
        /// Rows are written again; with the number of those that were dropped.
        case recovered(dropped: Int)
    }

    /// Time between two attempts to write to a store that has failed, in seconds.
    private static let retryTime: TimeInterval = 5
    /// Time after which the rows of an incomplete batch are committed, in milliseconds.
    private static let commitTime: Int32 = 1000

    /// The path of the pipe, to be opened by a log. Call ``started()`` after that.
    package let destination: String
    private let sender: Int32
    private let dropped = Mutex(0)
    private let ended = DispatchSemaphore(value: 0)

    /// Opens a store, and begins to read.
    ///
    /// - Parameters:
    ///   - path: The store; it is created if it does not exist.
    ///   - run: The word of the run.
    ///   - onEvent: Called on the thread of the feed.
    package init(
        _ path: String,
        run: String,
        keepsXML: Bool,
        onEvent: @escaping @Sendable (Event) -> Void
    ) throws(StoreFault) {
        let store = try SQLiteStore.create(path)
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw StoreFault(code: .other("no pipe: \(String(cString: strerror(errno)))"), path: path)
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        sender = ends[1]
        destination = "/dev/fd/\(ends[1])"
        let maker = AuditRowMaker(run: run, keepsXML: keepsXML)
        // Used only by the thread from here on.
        nonisolated(unsafe) let input = FeedInput(store, maker, descriptor: ends[0], onEvent)
        let thread = Thread { [self] in
            let lost = input.run(commitTime: Self.commitTime, retryTime: Self.retryTime)
            dropped.withLock { $0 = lost }
            ended.signal()
        }
        thread.name = "store-writer"
        thread.start()
    }

    /// Closes this object's end of the pipe: the log has its own.
    package func started() { close(sender) }

    /// Waits until everything that the log has written is in the store. The log must have been closed.
    ///
    /// - Returns: The number of stanzas that were dropped.
    package func finish() -> Int {
        ended.wait()
        return dropped.withLock { $0 }
    }
}

/// The part of a ``StoreFeed`` that its thread uses.
private final class FeedInput {
    /// The store; nil after the end, when the file is closed.
    private var store: SQLiteStore?
    private let maker: AuditRowMaker
    private let descriptor: Int32
    private let onEvent: (StoreFeed.Event) -> Void
    private var buffer: [UInt8] = []
    private var dropped = 0
    private var droppedBefore = 0
    /// The time of the next attempt to write to a store that has failed; nil if it works.
    private var retry: Date?
    /// The time by which the rows added so far are committed; nil if there are none.
    private var commitDue: Date?

    init(
        _ store: SQLiteStore,
        _ maker: AuditRowMaker,
        descriptor: Int32,
        _ onEvent: @escaping (StoreFeed.Event) -> Void
    ) {
        self.store = store
        self.maker = maker
        self.descriptor = descriptor
        self.onEvent = onEvent
    }

    deinit { close(descriptor) }

    /// Reads until the end of the pipe; returns the number of stanzas that were dropped.
    func run(commitTime: Int32, retryTime: TimeInterval) -> Int {
        while true {
            var source = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let wait = commitDue.map { max(0, $0.timeIntervalSinceNow * 1000).rounded(.up) }
            let isReadable = poll(&source, 1, wait.map { Int32(min($0, Double(commitTime))) } ?? -1) > 0
            // Also while records keep arriving: otherwise a slow stream of them stays uncommitted until a batch is full.
            if let commitDue, Date() >= commitDue {
                self.commitDue = nil
                // A commit of no rows succeeds, which does not show that a store that has failed works again.
                if retry == nil { write(retryTime) { store throws(StoreFault) in try store.commit() } }
            }
            guard isReadable else { continue }
            guard readSome() else { break }
            addLines(retryTime)
            if commitDue == nil { commitDue = Date(timeIntervalSinceNow: Double(commitTime) / 1000) }
        }
        if retry == nil { write(retryTime) { store throws(StoreFault) in try store.commit() } }
        store = nil
        return dropped
    }

    /// Reads from the pipe; returns false at its end.
    private func readSome() -> Bool {
        let size = 256 << 10
        var count = 0
        buffer.reserveCapacity(buffer.count + size)
        let piece = [UInt8](unsafeUninitializedCapacity: size) { bytes, used in
            repeat { count = read(descriptor, bytes.baseAddress, size) } while count < 0 && errno == EINTR
            used = max(0, count)
        }
        buffer += piece
        return count > 0
    }

    private func addLines(_ retryTime: TimeInterval) {
        var start = 0
        while let end = buffer[start...].firstIndex(of: 0x0A) {
            let line = buffer[start..<end]
            start = end + 1
            // Skip headers.
            guard let record = try? RecordLine(json: Array(line).span.bytes), let row = maker.row(record) else {
                continue
            }
            if let retry, Date() < retry {
                dropped += 1
                continue
            }
            write(retryTime) { store throws(StoreFault) in try store.add(row) }
        }
        buffer.removeFirst(start)
    }

    /// Writes to the store, and handles a failure.
    private func write(_ retryTime: TimeInterval, _ body: (SQLiteStore) throws(StoreFault) -> Void) {
        guard let store else { return }
        do throws(StoreFault) {
            try body(store)
            guard retry != nil else { return }
            retry = nil
            onEvent(.recovered(dropped: dropped - droppedBefore))
            droppedBefore = dropped
        } catch {
            dropped += store.abandon()
            if retry == nil { onEvent(.failed(error)) }
            retry = Date(timeIntervalSinceNow: retryTime)
        }
    }
}
