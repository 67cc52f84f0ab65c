internal import CPcap
internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Reads a file of packets by several threads.
///
/// ```
///                      ┌─→ worker: TCP, TLS, sessions of connections a, c, d … ─┐
/// reader: TCP segments                                                          ├─→ who asks: records or lines, in order
///                      └─→ worker: TCP, TLS, sessions of connections b, e, f … ─┘
/// ```
///
/// The reader hands out segments in rounds; which worker has a connection follows from its ends. A worker makes the sessions
/// of its connections, and their records or the lines of these. They come in the order of the packets, with the numbers that
/// one thread would have given them: a worker counts its own, and how many each packet has brought. What sessions know of
/// each other (their numbers, those of secrets, resumption) is asked for in the order of the packets too: see
/// ``PacketTurns``. Bounded by the rounds that can wait in each queue, and by what ``TCPReassembler`` keeps, in each worker.
final class PacketPipeline {
    /// Sessions are made by at most so many threads: the reader keeps no more of them busy.
    private static let mostWorkers = 4
    /// Segments of a round, and bytes.
    private static let roundSegments = 1024
    private static let roundBytes = 256 << 10
    /// Rounds that wait for a worker, and whose records wait.
    private static let waitingRounds = 2

    /// The packets of a round for one worker.
    fileprivate struct Round: Sendable {
        struct Entry: Sendable {
            /// The number of the packet.
            let place: UInt64
            let at: Run.Instant
            let segment: TCPSegment
            /// The end of its bytes among those of the round.
            let end: Int
        }

        var entries: [Entry] = []
        /// The bytes of the segments, one behind the other.
        var bytes: [UInt8] = []
        /// Lines of a key log, each before the entry of this index.
        var keys: [(before: Int, lines: [UInt8])] = []
        /// The number of the last packet that was read.
        var place: UInt64 = 0
        /// What else was in the packets, behind the last of them.
        var ending: (counts: PacketDecoder.Counts, at: Run.Instant)?

        mutating func append(_ segment: TCPSegment, _ payload: Span<UInt8>, _ place: UInt64, at: Run.Instant) {
            bytes.append(payload)
            entries.append(Entry(place: place, at: at, segment: segment, end: bytes.count))
        }
    }

    /// The results of a worker for its part of a round.
    fileprivate struct Made: Sendable {
        struct Step {
            /// The number of the packet; a larger number for results after the last packet.
            let place: UInt64
            /// Numbers that records have taken, also those that are not told.
            let numbers: UInt64
            /// How many of the records, or of those with lines, are there up to the end of this one.
            let records: Int
        }

        var steps: [Step] = []
        var records: RecordBatch?
        var lines: FormedLines?
    }

    private let rounds: [Handoff<Round>]
    private var lanes: [Lane]
    /// Which lane's step is being given out.
    private var current: Int?
    private var sequence: UInt64 = 0
    private var hasEnded = false

    /// The results of a worker, and how far they were returned.
    fileprivate struct Lane {
        let made: Handoff<Made>
        var batch = Made()
        var step = 0
        /// Numbers that the worker has counted before the step.
        var counted: UInt64 = 0
        var numbers = RequestNumbers()
    }

    /// Threads that make sessions: one for each processor that this process may use.
    static var usualWorkers: Int {
        var mask = [UInt8](repeating: 0, count: 1024)
        guard xmpptap_getaffinity(0, mask.count, &mask) == 0 else { return 1 }
        return min(mostWorkers, mask.reduce(0) { $0 + $1.nonzeroBitCount })
    }

    /// Starts the threads; nil if that fails, or if a single worker would gain nothing.
    ///
    /// - Parameters:
    ///   - keys: Secrets of TLS. It is not to be used by others any more.
    ///   - makers: Make lines of the records, for ``nextLines()``; nil has the records given out by ``next()``.
    init?(
        _ input: PacketInput,
        _ keys: KeyLog,
        _ options: SessionOptions,
        workers: Int,
        makers: LineMaker.Factory? = nil
    ) {
        guard workers > 1 else { return nil }
        let turns = PacketTurns(workers)
        let rounds = (0..<workers).map { _ in Handoff<Round>(capacity: Self.waitingRounds) }
        let made = (0..<workers).map { _ in Handoff<Made>(capacity: Self.waitingRounds) }
        self.rounds = rounds
        lanes = made.map { Lane(made: $0) }
        let (run, tally) = (Run(), SessionTally())
        for number in 0..<workers {
            let (incoming, outgoing) = (rounds[number], made[number])
            // Each is confined to its thread from here on. The first has the caller's key log, the others a copy.
            nonisolated(unsafe) let own = number == 0 ? keys : keys.copy()
            let result = WorkerThread.start(named: "packets-\(number)") {
                let lines = makers.map { LineBatch($0()) }
                var options = options
                if let lines { options.recordLevel = RecordLevel(min(options.level, lines.level)) }
                var worker = PacketWorker(number, turns, run, tally, own, options, lines)
                worker.work(incoming, outgoing)
            }
            guard result == 0 else {
                abandon()
                return nil
            }
        }
        // Confined to that thread until it has told the end.
        nonisolated(unsafe) let confined = input
        let result = WorkerThread.start(named: "packets") { Self.read(confined, rounds) }
        guard result == 0 else {
            abandon()
            return nil
        }
    }

    deinit { abandon() }

    private func abandon() {
        for queue in rounds { queue.abandon() }
        for lane in lanes { lane.made.abandon() }
    }

    private static func read(_ input: PacketInput, _ queues: [Handoff<Round>]) {
        var found = FoundSegments(parts: queues.count)
        while !input.hasEnded {
            input.readOn { found.take($0, $1) }
            guard found.isFull, !input.hasEnded else { continue }
            guard found.push(to: queues, isLast: false) else { return }
        }
        guard found.push(to: queues, isLast: true) else { return }
        for queue in queues { queue.finish() }
    }

    /// The segments that the reader has found since it handed some out.
    private struct FoundSegments {
        private var decoder = PacketDecoder()
        private var parts: [Round]
        private var count = 0
        private var bytes = 0

        init(parts: Int) { self.parts = (0..<parts).map { _ in Round() } }

        var isFull: Bool { count >= PacketPipeline.roundSegments || bytes >= PacketPipeline.roundBytes }

        mutating func take(_ entry: PacketEntry, _ packet: Span<UInt8>) {
            switch entry {
            case .keys(let lines):
                for index in parts.indices { parts[index].keys.append((parts[index].entries.count, lines)) }
            case .packet(let head):
                guard let (segment, payload) = decoder.decode(head, packet) else { return }
                let part = segment.part(of: parts.count)
                let (at, place) = (decoder.now, decoder.counts.packets)
                switch payload {
                case .range(let range): parts[part].append(segment, packet.extracting(range), place, at: at)
                case .joined(let bytes): parts[part].append(segment, bytes.span, place, at: at)
                }
                count += 1
                bytes += packet.count
            }
        }

        /// - Returns: False if the consumers have ended.
        mutating func push(to queues: [Handoff<Round>], isLast: Bool) -> Bool {
            for (index, queue) in queues.enumerated() {
                let sizes = (entries: parts[index].entries.count, bytes: parts[index].bytes.count)
                var round = Round()
                swap(&round, &parts[index])
                round.place = decoder.counts.packets
                if isLast { round.ending = (decoder.counts, decoder.now) }
                guard queue.push(round) else { return false }
                guard !isLast else { continue }
                parts[index].entries.reserveCapacity(sizes.entries + sizes.entries / 4)
                parts[index].bytes.reserveCapacity(sizes.bytes + sizes.bytes / 4)
            }
            (count, bytes) = (0, 0)
            return true
        }
    }

    // MARK: Records and lines

    /// The next record; nil at the end.
    func next() -> RecordLine? {
        while !hasEnded {
            if let current, let line = lanes[current].next(after: sequence) { return line }
            if let current { sequence += lanes[current].endStep() }
            current = earliest()?.lane
            if current == nil { takeRound() }
        }
        return nil
    }

    /// The lines of a round; nil at the end.
    func nextLines() -> MergedLines? {
        takeRound()
        guard !hasEnded else { return nil }
        let parts = lanes.compactMap(\.batch.lines)
        // Without makers of lines, no lane has lines.
        guard parts.count == lanes.count else { return nil }
        var merged = MergedLines(of: parts)
        while let (lane, next) = earliest() { merged.append(lanes[lane].endSteps(before: next), ofPart: lane) }
        return merged
    }

    /// The lane with the next step, and the place of the first step of the others; nil at the end of the round.
    private func earliest() -> (lane: Int, next: UInt64)? {
        var found: (lane: Int, place: UInt64)?
        var next = UInt64.max
        for index in lanes.indices {
            guard let place = lanes[index].place else { continue }
            if let earlier = found {
                next = min(next, max(earlier.place, place))
                if earlier.place < place { continue }
            }
            found = (index, place)
        }
        return found.map { ($0.lane, next) }
    }

    private func takeRound() {
        for index in lanes.indices {
            guard let batch = lanes[index].made.pop() else { return hasEnded = true }
            lanes[index].begin(batch)
        }
    }
}

extension TCPSegment {
    /// Which of several parts a connection belongs to, the same for both directions.
    fileprivate func part(of count: Int) -> Int { Int((connectionHash >> 32) % UInt64(count)) }
}

/// One of the threads that make sessions.
private struct PacketWorker {
    private let number: Int
    private let turns: PacketTurns
    private let run: Run
    private let tally: SessionTally
    /// Makes lines of the records; nil if the records themselves are requested.
    private let lines: LineBatch?
    private var runner: SourceRunner
    private var source: PacketSource

    init(
        _ number: Int,
        _ turns: PacketTurns,
        _ run: Run,
        _ tally: SessionTally,
        _ keys: KeyLog,
        _ options: SessionOptions,
        _ lines: LineBatch?
    ) {
        self.number = number
        self.turns = turns
        self.tally = SessionTally(partOf: tally) { turns.wait(number) }
        self.run = Run(partOf: run) { turns.wait(number) }
        self.lines = lines
        runner = SourceRunner(run: self.run, options: options)
        source = PacketSource(keys: keys, tally: self.tally)
    }

    mutating func work(_ rounds: Handoff<PacketPipeline.Round>, _ queue: Handoff<PacketPipeline.Made>) {
        // Whoever waits for this one need not wait any more.
        defer { turns.end(number) }
        var size = 0
        while let round = rounds.pop() {
            let made: PacketPipeline.Made
            if var batch = lines {
                batch.begin(capacity: size + size / 4)
                let steps = read(round, into: &batch) { $0.count }
                let lines = batch.end()
                size = lines.text.count
                made = PacketPipeline.Made(steps: steps, lines: lines)
            } else {
                var batch = RecordBatch(capacity: size)
                let steps = read(round, into: &batch) { $0.count }
                size = batch.count
                made = PacketPipeline.Made(steps: steps, records: batch)
            }
            guard queue.push(made) else { return }
        }
        queue.finish()
    }

    /// - Parameter count: How many records there are, or records with lines.
    private mutating func read<Batch: RecordConsumer>(
        _ round: borrowing PacketPipeline.Round,
        into batch: inout Batch,
        _ count: (Batch) -> Int
    ) -> [PacketPipeline.Made.Step] {
        var steps: [PacketPipeline.Made.Step] = []
        steps.reserveCapacity(round.entries.count)
        var before = run.lastSequence
        /// Ends the step with the results of a place.
        func endStep(_ place: UInt64) {
            let last = run.lastSequence
            guard last > before else { return }
            steps.append(PacketPipeline.Made.Step(place: place, numbers: last - before, records: count(batch)))
            before = last
        }
        var keys = round.keys[...]
        let entries = round.entries.span
        let bytes = round.bytes.span
        var start = 0
        for index in entries.indices {
            let place = entries[index].place
            turns.reach(place, number)
            while let lines = keys.first, lines.before <= index {
                source.take(keys: lines.lines)
                keys.removeFirst()
            }
            let (at, end) = (entries[index].at, entries[index].end)
            source.take(entries[index].segment, bytes.extracting(start..<end), at: at, as: place) {
                connection,
                direction,
                bytes in
                if connection.runner == nil { connection.runner = connection.session.flatMap { runner.runner(of: $0) } }
                connection.runner?.receive(direction, bytes, at: at, to: &batch)
            }
            start = end
            while let input = source.next() { runner.take(input, to: &batch) }
            endStep(place)
        }
        for lines in keys { source.take(keys: lines.lines) }
        turns.reach(round.place &+ 1, number)
        guard let (counts, at) = round.ending else { return steps }
        // Of connections that are still open, in the order in which they began.
        while let connection = source.finishNext() {
            let place = round.place &+ 1 &+ connection
            turns.reach(place, number)
            while let input = source.next() { runner.take(input, to: &batch) }
            endStep(place)
        }
        guard number == 0 else { return steps }
        turns.reach(.max - 1, number)
        turns.wait(number)
        if let summary = CaptureNote.summary(counts, tally, at: at) { runner.take(summary, to: &batch) }
        endStep(.max - 1)
        return steps
    }
}

extension PacketPipeline.Lane {
    /// Where in the file the next step stands.
    var place: UInt64? { step < batch.steps.count ? batch.steps[step].place : nil }

    mutating func begin(_ batch: consuming PacketPipeline.Made) {
        self.batch = batch
        step = 0
    }

    /// The next record of the step, with its number in the file; nil at the end of the step.
    mutating func next(after sequence: UInt64) -> RecordLine? {
        guard let records = batch.records, records.given < batch.steps[step].records else { return nil }
        let offset = sequence &- counted
        return records.next { $0.renumber(&numbers, offset) }
    }

    /// Goes on to the next step; gives how many numbers this one has taken.
    mutating func endStep() -> UInt64 {
        let taken = batch.steps[step].numbers
        counted += taken
        step += 1
        return taken
    }

    /// Goes on to the first step at `place` or behind it, but one step at least; gives the records of those before.
    mutating func endSteps(before place: UInt64) -> Range<Int> {
        let start = step == 0 ? 0 : batch.steps[step - 1].records
        repeat { step += 1 } while step < batch.steps.count && batch.steps[step].place < place
        return start..<batch.steps[step - 1].records
    }
}

extension RecordLine {
    fileprivate mutating func renumber(_ numbers: inout RequestNumbers, _ offset: UInt64) {
        let own = record.sequence
        let answers = record.answers.map { numbers.take($0, of: record.session) ?? $0 }
        renumber(own &+ offset, answers: answers)
        if record.code == Record.Code.sessionEnded { numbers.forget(record.session) }
        guard record.kind == .stanza, let name = record.name, content.span.slice(name).equals("iq"),
            let type = record.type, case let word = content.span.slice(type), word.equals("get") || word.equals("set")
        else { return }
        numbers.note(own, own &+ offset, of: record.session)
    }
}

/// The numbers of requests, by those that a worker has counted for them: what answers them refers to it.
private struct RequestNumbers {
    /// Requests of a session that are kept: more than it pairs with answers.
    private static let most = 4_096

    fileprivate struct Requests {
        var numbers: [UInt64: UInt64] = [:]
        /// Those that were noted, oldest first; some have been answered.
        var noted: [UInt64] = []
    }

    private var sessions: [UInt64: Requests] = [:]

    mutating func note(_ own: UInt64, _ number: UInt64, of session: UInt64) {
        sessions[session, default: Requests()].note(own, number, most: Self.most)
    }

    mutating func take(_ own: UInt64, of session: UInt64) -> UInt64? {
        sessions[session]?.numbers.removeValue(forKey: own)
    }

    mutating func forget(_ session: UInt64) { sessions[session] = nil }
}

extension RequestNumbers.Requests {
    fileprivate mutating func note(_ own: UInt64, _ number: UInt64, most: Int) {
        numbers[own] = number
        noted.append(own)
        guard noted.count > 2 * most else { return }
        noted.removeAll { numbers[$0] == nil }
        for old in noted.prefix(max(0, noted.count - most)) { numbers[old] = nil }
        noted.removeFirst(max(0, noted.count - most))
    }
}

/// Lets the workers of a ``PacketPipeline`` do in the order of the inputs what sessions know of each other by.
///
/// Each says which input it is at. Who needs to know what the others have done waits until they are further: the one that is
/// furthest behind never waits.
final class PacketTurns: Sendable {
    private final class Position: Sendable {
        let place = Atomic<UInt64>(0)
    }

    private let positions: [Position]

    /// Looks at the others before this one lets them run for longer.
    private static let patience = 64

    init(_ workers: Int) { positions = (0..<workers).map { _ in Position() } }

    /// A worker is at this input, and has done what comes before it.
    func reach(_ place: UInt64, _ worker: Int) { positions[worker].place.store(place, ordering: .releasing) }

    /// A worker does nothing more.
    func end(_ worker: Int) { reach(.max, worker) }

    /// Waits until the others have done everything that comes before the input at which this worker is.
    func wait(_ worker: Int) {
        let own = positions[worker].place.load(ordering: .relaxed)
        for other in positions.indices where other != worker {
            var looks = 0
            while positions[other].place.load(ordering: .acquiring) < own {
                looks += 1
                if looks < Self.patience { sched_yield() } else { usleep(20) }
            }
        }
    }
}
