internal import Glibc
internal import Synchronization
internal import TapCapture
package import TapRecord

/// Rows on their way to the shards of a store, in files, so that neither the end of the program nor that of a server loses them.
///
/// ```
/// thread of the store ── blocks ──→ open segment of a shard ──→ closed segments ──→ thread of the shard ──→ server
/// ```
///
/// A segment is closed when it is large, or when its shard's thread is idle and it is ``Configuration/interval`` old: while a server is away, its
/// segments grow. It is one batch, which is deleted when the server has confirmed it. The folders of earlier runs are sent first.
package final class Spool: @unchecked Sendable {  // Sendable: `state` is guarded by the monitor.
    /// The behaviour of a full spool.
    package enum WhenFull: Sendable, Hashable {
        /// The oldest segment is deleted, and a row of the store says so.
        case drop
        /// Rows are not accepted.
        case refuse
        /// The writer waits, for rows that can be read again.
        case wait
    }

    package struct Configuration: Sendable, Hashable {
        /// The folder of the spool.
        package var folder: String
        /// The maximum number of bytes of its segments.
        package var limit: Int64 = 1_000_000_000
        package var whenFull = WhenFull.drop
        /// The age at which a segment is sent.
        package var interval = Duration.seconds(5)

        package init(folder: String) { self.folder = folder }
    }

    /// An event, sent from one of the threads of a spool.
    package enum Event: Sendable {
        /// Rows cannot be sent: they wait in the spool's folder.
        case waiting(StoreFault, folder: String)
        /// Rows are sent again.
        case sending(shard: String)
        /// Stanzas were deleted because the spool was full.
        case dropped(stanzas: Int, folder: String)
        /// A server does not accept rows, which are now in a file.
        case rejected(rows: Int, StoreFault, file: String)
        /// A segment is damaged. The rest of it was sent, and the file has another name now.
        case damaged(file: String)
        /// The program ends before all rows are sent.
        case left(stanzas: Int, folder: String)
        /// An earlier run has left rows, perhaps for another store, or was of another version of xmpptap.
        case skipped(folder: String)
        /// Rows that are older than a limit cannot be deleted.
        case notDeleted(StoreFault)
    }

    /// The state of a spool.
    package struct Figures: Sendable, Hashable {
        /// Number of bytes of all segments.
        package var bytes: Int64 = 0
        /// The time at which the oldest row that is not sent was seen.
        package var oldest: Timestamp?
        /// Number of batches sent, and of attempts that failed.
        package var batches: UInt64 = 0
        package var retries: UInt64 = 0
        /// Number of stanzas sent, refused by a server, and deleted because the spool was full.
        package var sent: UInt64 = 0
        package var rejected: UInt64 = 0
        package var dropped: UInt64 = 0
    }

    private struct Shard {
        var closed: [SpoolSegment] = []
        var open: SpoolFile?
        var sending: SpoolSegment?
        /// Gaps that are not in a segment yet.
        var gaps: [StoreGap] = []
        /// Why its rows cannot be sent, and since when on the monotonic clock.
        var failure: (fault: StoreFault, since: Int64)?
    }

    private struct State {
        var shards: [Shard]
        var figures = Figures()
        var number = 0
        var isClosing = false
        var senders = 0
        /// Events that are sent after the lock is released.
        var events: [Event] = []
    }

    /// The number of bytes, of rows and of their bytes without compression at which a segment is closed.
    private static let (segmentSize, segmentRows, rowBytes): (Int64, Int, Int64) = (8_000_000, 100_000, 64_000_000)
    /// How long a writer of recordings waits for a server that is away, in nanoseconds.
    private static let patience: Int64 = 30_000_000_000

    /// The folder of this run; nil if only the folders of earlier runs are sent.
    private let folder: SpoolFolder?
    private let configuration: Configuration
    private let segmentSize: Int64
    private var interval: Int64 { configuration.interval.wholeNanoseconds }
    private let monitor = Monitor()
    private var state: State
    /// A copy for other threads: the lock of ``state`` is held while files are written.
    private let shown = Mutex(Figures())
    private let onEvent: @Sendable (Event) -> Void

    /// Creates the folder of a run, and finds what earlier runs have left for the same store.
    init(
        _ configuration: Configuration,
        _ about: SpoolFolder.About,
        _ onEvent: @escaping @Sendable (Event) -> Void
    ) throws(StoreFault) {
        self.configuration = configuration
        self.onEvent = onEvent
        segmentSize = max(1000, min(Self.segmentSize, configuration.limit / 8))
        let earlier = SpoolFolder.all(in: configuration.folder)
        let folder = try SpoolFolder.create(in: configuration.folder, about)
        self.folder = folder
        state = State(shards: Array(repeating: Shard(), count: about.shards))
        for path in earlier.others { onEvent(.skipped(folder: path)) }
        for folder in earlier.free {
            if folder.about.isFor(sameAs: about) {
                adopt(folder)
            } else if !folder.segments().isEmpty {
                onEvent(.skipped(folder: folder.path))
            }
        }
        publish()
    }

    /// A spool to which nothing is added: it only sends the rows of earlier runs in some folders.
    init(
        sending folders: [SpoolFolder],
        shards: Int,
        _ configuration: Configuration,
        _ onEvent: @escaping @Sendable (Event) -> Void
    ) {
        self.configuration = configuration
        self.onEvent = onEvent
        folder = nil
        segmentSize = Self.segmentSize
        state = State(shards: Array(repeating: Shard(), count: shards))
        for folder in folders { adopt(folder) }
        state.isClosing = true
    }

    private func adopt(_ folder: SpoolFolder) {
        let segments = folder.segments().filter { state.shards.indices.contains($0.shard) }
        for segment in segments {
            state.shards[segment.shard].closed.append(segment)
            state.figures.bytes += segment.bytes
        }
        if segments.isEmpty { folder.removeIfEmpty() }
    }

    package var figures: Figures { shown.withLock { $0 } }

    private func publish() {
        var figures = state.figures
        figures.oldest = state.shards.lazy.compactMap { shard in
            [shard.sending, shard.closed.first, shard.open?.segment].compactMap { $0?.time }.min()
        }.min()
        shown.withLock { $0 = figures }
    }

    /// Runs `body` with the lock held, then sends the events.
    private func change<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        defer {
            let events = monitor.withLock {
                publish()
                defer { state.events = [] }
                return state.events
            }
            for event in events { onEvent(event) }
        }
        return try monitor.withLock(body)
    }

    // MARK: For the writer

    /// A block that is to be added.
    struct Addition {
        var shard: Int
        var facts: SpoolBlock.Facts
        var bytes: [UInt8]
    }

    /// Adds blocks. If that fails, some of them may have been added: adding them again makes duplicates, which a store removes.
    func append(_ additions: [Addition]) throws(StoreFault) {
        try change { () throws(StoreFault) in
            for addition in additions where state.shards.indices.contains(addition.shard) {
                try makeSpace(for: Int64(addition.bytes.count), in: addition.shard)
                do throws(StoreFault) {
                    try write(addition)
                } catch {
                    guard error.code == .full, configuration.whenFull == .drop, dropOldest() else { throw error }
                    try write(addition)
                }
            }
        }
    }

    private func write(_ addition: Addition) throws(StoreFault) {
        let shard = addition.shard
        let file: SpoolFile
        if let open = state.shards[shard].open {
            file = open
        } else {
            guard let folder else { throw StoreFault(code: .readOnly, path: configuration.folder) }
            state.number += 1
            file = try SpoolFile(SpoolSegment(folder, shard: shard, number: state.number))
            state.shards[shard].open = file
            state.figures.bytes += file.segment.bytes
            monitor.signal(.work)
        }
        let before = file.segment.bytes
        try file.append(addition.facts, addition.bytes, syncsAlways: configuration.whenFull == .refuse)
        state.figures.bytes += file.segment.bytes - before
        if addition.facts.table != .gap { try addGaps(shard) }
        let segment = file.segment
        if segment.bytes >= segmentSize || segment.rows >= Self.segmentRows || segment.rowBytes >= Self.rowBytes {
            close(shard)
        }
    }

    /// Adds the rows of gaps to a shard's segment.
    private func addGaps(_ shard: Int) throws(StoreFault) {
        while let gap = state.shards[shard].gaps.first {
            let (facts, bytes) = gap.block
            try write(Addition(shard: shard, facts: facts, bytes: bytes))
            state.shards[shard].gaps.removeFirst()
        }
    }

    /// Closes the open segment of a shard.
    private func close(_ shard: Int) {
        guard let file = state.shards[shard].open else { return }
        file.synchronize()
        state.shards[shard].closed.append(file.segment)
        state.shards[shard].open = nil
        monitor.signal(.work)
    }

    /// - Parameter count: The number of bytes of a block, besides those of the gaps and of the header that are written with it.
    private func makeSpace(for count: Int64, in shard: Int) throws(StoreFault) {
        guard count <= configuration.limit else { throw StoreFault(code: .spoolFull, path: configuration.folder) }
        func otherBytes() -> Int64 {
            let header = state.shards[shard].open == nil ? Int64(SpoolSegment.header.count) : 0
            return state.shards[shard].gaps.reduce(header) { $0 + Int64($1.block.bytes.count) }
        }
        while state.figures.bytes + count + otherBytes() > configuration.limit {
            switch configuration.whenFull {
            case .refuse: throw StoreFault(code: .spoolFull, path: configuration.folder)
            case .drop: guard dropOldest() else { throw StoreFault(code: .spoolFull, path: configuration.folder) }
            case .wait:
                for shard in state.shards {
                    guard let failure = shard.failure, Monitor.now - failure.since > Self.patience else { continue }
                    throw failure.fault
                }
                for shard in state.shards.indices { close(shard) }
                monitor.wait(for: .progress, until: Monitor.now + 1_000_000_000)
            }
        }
    }

    /// Deletes the oldest segment that is not being sent, and adds a row that says so; returns false if there is none.
    private func dropOldest() -> Bool {
        // Rows of recordings name other runs, which a gap could not; those of gaps alone free no space.
        func place(_ shard: Int) -> Int? {
            state.shards[shard].closed.firstIndex { !$0.isOfGaps && !$0.folder.about.isOfRecordings }
        }
        func oldest() -> (shard: Int, place: Int)? {
            let all = state.shards.indices.compactMap { shard in place(shard).map { (shard: shard, place: $0) } }
            return all.min { one, other in
                let first = state.shards[one.shard].closed[one.place].time ?? Timestamp(nanoseconds: 0)
                return first < state.shards[other.shard].closed[other.place].time ?? Timestamp(nanoseconds: 0)
            }
        }
        if oldest() == nil { for shard in state.shards.indices { close(shard) } }
        guard let (shard, place) = oldest() else { return false }
        let segment = state.shards[shard].closed.remove(at: place)
        var gaps = state.shards[shard].gaps + ((try? segment.read())?.gaps ?? [])
        remove(segment)
        state.figures.dropped += UInt64(segment.stanzas)
        if let gap = StoreGap(segment, "the spool was full") { gaps.append(gap) }
        // They are written with the next rows: now, the disk may be full.
        state.shards[shard].gaps = StoreGap.joined(gaps)
        if segment.stanzas > 0 {
            state.events.append(.dropped(stanzas: segment.stanzas, folder: configuration.folder))
        }
        return true
    }

    private func remove(_ segment: SpoolSegment) {
        unlink(segment.path)
        state.figures.bytes -= segment.bytes
        guard segment.folder !== folder else { return }
        segment.folder.removeIfEmpty()
    }

    // MARK: For the threads that send

    /// Counts a thread that sends.
    func begin() { monitor.withLock { state.senders += 1 } }

    /// Waits for the next segment of a shard; nil if the spool is closed and no segment is left, or `wakeTime` is reached.
    func next(_ shard: Int, until wakeTime: Int64 = .max) -> SpoolSegment? {
        monitor.withLock {
            while true {
                if !state.shards[shard].closed.isEmpty {
                    let segment = state.shards[shard].closed.removeFirst()
                    state.shards[shard].sending = segment
                    return segment
                }
                let began = state.shards[shard].open?.began
                if let began, state.isClosing || Monitor.now >= began + interval {
                    close(shard)
                    continue
                }
                guard !state.isClosing, Monitor.now < wakeTime else { return nil }
                let time = min(began.map { $0 + interval } ?? .max, wakeTime)
                monitor.wait(for: .work, until: time == .max ? nil : time)
            }
        }
    }

    /// Whether the spool is closed.
    var isClosing: Bool { monitor.withLock { state.isClosing } }

    /// Deletes a segment that its server has confirmed.
    ///
    /// - Parameters:
    ///   - rejected: The number of stanzas that the server has refused.
    ///   - name: The server.
    func confirm(_ segment: SpoolSegment, _ contents: SpoolSegment.Contents, rejected: Int, name: String) {
        change {
            if contents.isDamaged {
                rename(segment.path, "\(segment.path).damaged")
                state.events.append(.damaged(file: "\(segment.path).damaged"))
            }
            remove(segment)
            let stanzas = contents.blocks.reduce(0) { $0 + ($1.facts.table == .stanza ? $1.facts.rows : 0) }
            state.figures.batches += 1
            state.figures.sent += UInt64(max(0, stanzas - rejected))
            end(shard: segment.shard, name: name)
        }
    }

    /// Continues without a segment whose file does not exist any more.
    func lose(_ segment: SpoolSegment, name: String) {
        change {
            state.figures.bytes -= segment.bytes
            state.figures.dropped += UInt64(segment.stanzas)
            if let gap = StoreGap(segment, "a file of the spool was deleted") {
                state.shards[segment.shard].gaps.append(gap)
            }
            state.events.append(.dropped(stanzas: segment.stanzas, folder: configuration.folder))
            end(shard: segment.shard, name: name)
        }
    }

    private func end(shard: Int, name: String) {
        state.shards[shard].sending = nil
        if state.shards[shard].failure != nil {
            state.shards[shard].failure = nil
            state.events.append(.sending(shard: name))
        }
        monitor.signal(.progress)
    }

    /// Counts rows that a server does not accept.
    func reject(rows: Int, stanzas: Int, _ fault: StoreFault, file: String) {
        change {
            state.figures.rejected += UInt64(stanzas)
            state.events.append(.rejected(rows: rows, fault, file: file))
        }
    }

    /// Counts a failed attempt to send a segment, and waits; returns false if the spool is closed, so that the segment is left.
    func wait(_ segment: SpoolSegment, after fault: StoreFault, until deadline: Int64) -> Bool {
        let isClosing = change {
            state.figures.retries += 1
            // "Connection refused" can become "the login was refused".
            if state.shards[segment.shard].failure?.fault != fault {
                state.events.append(.waiting(fault, folder: configuration.folder))
            }
            let since = state.shards[segment.shard].failure?.since ?? Monitor.now
            state.shards[segment.shard].failure = (fault, since)
            monitor.signal(.progress)
            return state.isClosing && !(configuration.whenFull == .wait && Monitor.now - since < Self.patience)
        }
        guard !isClosing else { return false }
        monitor.withLock {
            while Monitor.now < deadline, !state.isClosing || configuration.whenFull == .wait {
                monitor.wait(for: .work, until: deadline)
            }
        }
        return true
    }

    /// Reports that rows which are older than a limit cannot be deleted.
    func reportNotDeleted(_ fault: StoreFault) { change { state.events.append(.notDeleted(fault)) } }

    /// Ends a thread that sends; puts back its segment.
    func end(_ segment: SpoolSegment?) {
        monitor.withLock {
            if let segment {
                state.shards[segment.shard].closed.insert(segment, at: 0)
                state.shards[segment.shard].sending = nil
            }
            state.senders -= 1
            monitor.signal(.progress)
        }
    }

    // MARK: The end

    /// Closes all segments, and waits until the threads have sent them or have given up.
    ///
    /// - Parameter deadline: The time on the clock of ``Monitor`` until which it waits; `.max` for no limit.
    /// - Returns: The fault because of which rows are left in the folder; nil if all are sent.
    func close(until deadline: Int64) -> StoreFault? {
        change {
            state.isClosing = true
            for shard in state.shards.indices {
                try? addGaps(shard)
                close(shard)
            }
            monitor.signal(.work)
            while state.senders > 0, Monitor.now < deadline {
                monitor.wait(for: .progress, until: deadline == .max ? nil : deadline)
            }
            var left = 0
            var hasRest = false
            var fault: StoreFault?
            for shard in state.shards {
                let rest = shard.closed + [shard.sending].compactMap(\.self)
                hasRest = hasRest || !rest.isEmpty
                left += rest.reduce(0) { $0 + $1.stanzas }
                fault = fault ?? shard.failure?.fault
            }
            guard hasRest else {
                folder?.removeIfEmpty()
                return nil
            }
            if state.senders == 0 { folder?.release() }
            state.events.append(.left(stanzas: left, folder: configuration.folder))
            return fault ?? StoreFault(code: .unreachable("it is too slow"), path: configuration.folder)
        }
    }
}
