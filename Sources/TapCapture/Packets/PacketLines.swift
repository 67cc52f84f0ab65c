internal import CPcap
internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Forms the lines of a text log from a capture file, on several threads.
///
/// ```
///                      ┌─→ worker: PacketSessions, lines of connections a, c, d … ─┐
/// reader: TCP segments                                                             ├─→ nextLines(): in order
///                      └─→ worker: PacketSessions, lines of connections b, e, f … ─┘
/// ```
///
/// The reader hands out segments in rounds; the endpoints of a connection determine its worker. The lines are returned
/// in the order of the packets: for this, a worker notes how many records each packet caused. Sessions also access
/// shared state (session numbers, numbers of secrets, stream resumption) in the order of the packets: see
/// ``PacketTurns``. Memory is bounded by the capacity of the queues, and by the buffers of ``TCPReassembler`` in each
/// worker.
final class PacketLines {
    /// Maximum number of workers: the reader cannot keep more of them busy.
    private static let maximumWorkers = 4
    /// Number of segments after which a round is handed out.
    private static let roundSegments = 1024
    /// Bytes of packets after which a round is handed out.
    private static let roundBytes = 256 << 10
    /// Maximum number of rounds in each queue of a worker: its input, and its results.
    private static let waitingRounds = 2

    /// The packets of a round for one worker.
    fileprivate struct Round: Sendable {
        struct Entry: Sendable {
            /// The number of the packet in the capture.
            let place: UInt64
            let at: Run.Instant
            let segment: TCPSegment
            /// The end of the segment's bytes in the bytes of the round.
            let end: Int
        }

        var entries: [Entry] = []
        /// The concatenated bytes of the segments.
        var bytes: [UInt8] = []
        /// Lines of a key log, each to be read before the entry with the index `before`.
        var keys: [(before: Int, lines: [UInt8])] = []
        /// The number of the last packet that the reader has read.
        var place: UInt64 = 0
        /// The counts of all packets, and the time of the last one; nil unless this is the last round.
        var ending: (counts: PacketDecoder.Counts, at: Run.Instant)?

        mutating func append(_ segment: TCPSegment, _ payload: Span<UInt8>, _ place: UInt64, at: Run.Instant) {
            bytes.append(payload)
            entries.append(Entry(place: place, at: at, segment: segment, end: bytes.count))
        }
    }

    /// The lines that a worker has formed for its part of a round.
    fileprivate struct FormedRound: Sendable {
        struct Step {
            /// The number of the packet; a larger number for results after the last packet.
            let place: UInt64
            /// Number of records in the round up to the end of this step.
            let records: Int
        }

        var steps: [Step]
        let lines: FormedLines
    }

    private let rounds: [Handoff<Round>]
    private let made: [Handoff<FormedRound>]

    /// The lines of a worker for a round, and the number of steps that were merged.
    fileprivate struct Lane {
        let made: FormedRound
        var step = 0
    }

    /// The default number of workers: one for each processor that this process may use, at most 4.
    static var usualWorkers: Int {
        var mask = [UInt8](repeating: 0, count: 1024)
        guard xmpptap_getaffinity(0, mask.count, &mask) == 0 else { return 1 }
        return min(maximumWorkers, mask.reduce(0) { $0 + $1.nonzeroBitCount })
    }

    /// Starts the threads; nil if that fails, or if there are fewer than two workers.
    ///
    /// - Parameters:
    ///   - keys: TLS secrets. The caller must not use the key log afterwards.
    ///   - makers: Creates the maker of lines for each worker.
    init?(
        _ input: PacketInput,
        _ keys: KeyLog,
        _ options: SessionOptions,
        workers: Int,
        makers: @escaping LineMaker.Factory
    ) {
        guard workers > 1 else { return nil }
        let turns = PacketTurns(workers)
        let rounds = (0..<workers).map { _ in Handoff<Round>(capacity: Self.waitingRounds) }
        let made = (0..<workers).map { _ in Handoff<FormedRound>(capacity: Self.waitingRounds) }
        self.rounds = rounds
        self.made = made
        let (run, tally) = (Run(), SessionTally())
        for number in 0..<workers {
            let (incoming, outgoing) = (rounds[number], made[number])
            // From here on, each key log is used by one thread only: the caller's by the first worker, copies by the
            // others.
            nonisolated(unsafe) let own = number == 0 ? keys : keys.copy()
            let result = WorkerThread.start(named: "packets-\(number)") {
                let lines = LineBatch(makers())
                var options = options
                options.recordLevel = RecordLevel(min(options.level, lines.level))
                var worker = PacketWorker(number, turns, run, tally, own, options, lines)
                worker.work(incoming, outgoing)
            }
            guard result == 0 else {
                abandon()
                return nil
            }
        }
        // Only that thread uses the input until it has handed out the last round.
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
        for queue in made { queue.abandon() }
    }

    private static func read(_ input: PacketInput, _ queues: [Handoff<Round>]) {
        var found = FoundSegments(parts: queues.count)
        while !input.hasEnded {
            input.readOn { found.add($0, $1) }
            guard found.isFull, !input.hasEnded else { continue }
            guard found.push(to: queues, isLast: false) else { return }
        }
        guard found.push(to: queues, isLast: true) else { return }
        for queue in queues { queue.finish() }
    }

    /// The segments found since the reader last handed out a round.
    private struct FoundSegments {
        private var decoder = PacketDecoder()
        private var parts: [Round]
        private var count = 0
        private var bytes = 0

        init(parts: Int) { self.parts = (0..<parts).map { _ in Round() } }

        var isFull: Bool { count >= PacketLines.roundSegments || bytes >= PacketLines.roundBytes }

        mutating func add(_ entry: PacketEntry, _ packet: Span<UInt8>) {
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

        /// - Returns: False if a queue was abandoned.
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

    /// Returns the lines of the next round; nil at the end.
    func nextLines() -> MergedLines? {
        var lanes: [Lane] = []
        for queue in made {
            guard let made = queue.pop() else { return nil }
            lanes.append(Lane(made: made))
        }
        var merged = MergedLines(of: lanes.map(\.made.lines))
        while let (lane, next) = Self.earliest(lanes) {
            merged.append(lanes[lane].endSteps(before: next), ofPart: lane)
        }
        return merged
    }

    /// Returns the lane whose next step is the earliest, and the place of the earliest next step of the others; nil at
    /// the end of the round.
    private static func earliest(_ lanes: [Lane]) -> (lane: Int, next: UInt64)? {
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
}

extension TCPSegment {
    /// Returns which of `count` parts a connection belongs to, the same for both directions.
    fileprivate func part(of count: Int) -> Int { Int((connectionHash >> 32) % UInt64(count)) }
}

/// A worker, which makes the sessions of its connections and forms their lines on its own thread.
private struct PacketWorker {
    private let number: Int
    private let turns: PacketTurns
    private var lines: LineBatch
    private var sessions: PacketSessions

    init(
        _ number: Int,
        _ turns: PacketTurns,
        _ run: Run,
        _ tally: SessionTally,
        _ keys: KeyLog,
        _ options: SessionOptions,
        _ lines: LineBatch
    ) {
        self.number = number
        self.turns = turns
        self.lines = lines
        sessions = PacketSessions(
            PacketSource(keys: keys, tally: SessionTally(partOf: tally) { turns.wait(number) }),
            Run(partOf: run) { turns.wait(number) },
            options
        )
    }

    mutating func work(_ rounds: Handoff<PacketLines.Round>, _ queue: Handoff<PacketLines.FormedRound>) {
        // The other workers do not wait for a worker that has ended.
        defer { turns.end(number) }
        var size = 0
        while let round = rounds.pop() {
            lines.begin(capacity: size + size / 4)
            let steps = read(round)
            let lines = lines.end()
            size = lines.text.count
            guard queue.push(PacketLines.FormedRound(steps: steps, lines: lines)) else { return }
        }
        queue.finish()
    }

    private mutating func read(_ round: borrowing PacketLines.Round) -> [PacketLines.FormedRound.Step] {
        var steps: [PacketLines.FormedRound.Step] = []
        steps.reserveCapacity(round.entries.count)
        /// Ends a step at `place`, if lines were formed since the last step.
        func endStep(_ place: UInt64) {
            guard lines.count > steps.last?.records ?? 0 else { return }
            steps.append(PacketLines.FormedRound.Step(place: place, records: lines.count))
        }
        var keys = round.keys[...]
        let entries = round.entries.span
        let bytes = round.bytes.span
        var start = 0
        for index in entries.indices {
            let (place, end) = (entries[index].place, entries[index].end)
            turns.reach(place, number)
            while let lines = keys.first, lines.before <= index {
                sessions.add(keys: lines.lines)
                keys.removeFirst()
            }
            sessions.process(
                entries[index].segment,
                bytes.extracting(start..<end),
                at: entries[index].at,
                as: place,
                to: &lines
            )
            start = end
            endStep(place)
        }
        for lines in keys { sessions.add(keys: lines.lines) }
        turns.reach(round.place &+ 1, number)
        guard let (counts, at) = round.ending else { return steps }
        // The connections that are still open end in the order in which they began.
        while let connection = sessions.finishNext() {
            let place = round.place &+ 1 &+ connection
            turns.reach(place, number)
            sessions.run(to: &lines)
            endStep(place)
        }
        guard number == 0 else { return steps }
        turns.reach(.max - 1, number)
        turns.wait(number)
        sessions.summarise(counts, at: at, to: &lines)
        endStep(.max - 1)
        return steps
    }
}

extension PacketLines.Lane {
    /// The number of the packet of the next step; nil at the end of the round.
    fileprivate var place: UInt64? { step < made.steps.count ? made.steps[step].place : nil }

    /// Advances by one step, and past later steps that are before `place`; returns the range of their records.
    fileprivate mutating func endSteps(before place: UInt64) -> Range<Int> {
        let start = step == 0 ? 0 : made.steps[step - 1].records
        repeat { step += 1 } while step < made.steps.count && made.steps[step].place < place
        return start..<made.steps[step - 1].records
    }
}

/// Lets the workers of a ``PacketLines`` access state that sessions share in the order of the packets.
///
/// Each worker states the place that it has reached. A worker that needs the earlier results of the others waits until
/// they have reached its own place: the worker that is furthest behind never waits.
final class PacketTurns: Sendable {
    private final class Position: Sendable {
        let place = Atomic<UInt64>(0)
    }

    private let positions: [Position]

    /// Number of checks of another worker's place during which this thread only yields; then it sleeps between checks.
    private static let spinLimit = 64

    init(_ workers: Int) { positions = (0..<workers).map { _ in Position() } }

    /// Records that a worker has reached a place, and has done everything before it.
    func reach(_ place: UInt64, _ worker: Int) { positions[worker].place.store(place, ordering: .releasing) }

    /// Records that a worker has ended.
    func end(_ worker: Int) { reach(.max, worker) }

    /// Waits until the other workers have done everything before the place of this worker.
    func wait(_ worker: Int) {
        let own = positions[worker].place.load(ordering: .relaxed)
        for other in positions.indices where other != worker {
            var looks = 0
            while positions[other].place.load(ordering: .acquiring) < own {
                looks += 1
                if looks < Self.spinLimit { sched_yield() } else { usleep(20) }
            }
        }
    }
}
