internal import CPcap
internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Forms the lines of a text log of a file of packets on several threads.
///
/// ```
///                      ┌─→ worker: PacketSessions, lines of connections a, c, d … ─┐
/// reader: TCP segments                                                             ├─→ nextLines(): in order
///                      └─→ worker: PacketSessions, lines of connections b, e, f … ─┘
/// ```
///
/// The reader hands out segments in rounds; the ends of a connection determine its worker. The lines come in the order of the
/// packets: a worker counts the lines of each packet. Sessions access shared state (their numbers, those of secrets,
/// resumption) in the order of the packets too: see ``PacketTurns``. Bounded by the rounds that can wait in each queue, and
/// by the buffers of ``TCPReassembler`` in each worker.
final class PacketLines {
    /// Sessions are made by at most so many threads: the reader keeps no more of them busy.
    private static let mostWorkers = 4
    /// Segments of a round, and bytes.
    private static let roundSegments = 1024
    private static let roundBytes = 256 << 10
    /// Rounds that wait for a worker, and whose lines wait.
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
            /// Number of records with lines up to the end of this step.
            let records: Int
        }

        var steps: [Step]
        let lines: FormedLines
    }

    private let rounds: [Handoff<Round>]
    private let made: [Handoff<Made>]

    /// The results of a worker for a round, and how far they were merged.
    fileprivate struct Lane {
        let made: Made
        var step = 0
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
    ///   - keys: Secrets of TLS. It must not be used elsewhere from here on.
    ///   - makers: Make the lines of the records.
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
        let made = (0..<workers).map { _ in Handoff<Made>(capacity: Self.waitingRounds) }
        self.rounds = rounds
        self.made = made
        let (run, tally) = (Run(), SessionTally())
        for number in 0..<workers {
            let (incoming, outgoing) = (rounds[number], made[number])
            // Each is confined to its thread from here on. The first has the caller's key log, the others a copy.
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
        for queue in made { queue.abandon() }
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

        var isFull: Bool { count >= PacketLines.roundSegments || bytes >= PacketLines.roundBytes }

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

    /// The lines of a round; nil at the end.
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

    /// The lane with the next step, and the place of the first step of the others; nil at the end of the round.
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
    /// Which of several parts a connection belongs to, the same for both directions.
    fileprivate func part(of count: Int) -> Int { Int((connectionHash >> 32) % UInt64(count)) }
}

/// One of the threads that make sessions and form lines.
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

    mutating func work(_ rounds: Handoff<PacketLines.Round>, _ queue: Handoff<PacketLines.Made>) {
        // The others do not wait for an ended worker.
        defer { turns.end(number) }
        var size = 0
        while let round = rounds.pop() {
            lines.begin(capacity: size + size / 4)
            let steps = read(round)
            let lines = lines.end()
            size = lines.text.count
            guard queue.push(PacketLines.Made(steps: steps, lines: lines)) else { return }
        }
        queue.finish()
    }

    private mutating func read(_ round: borrowing PacketLines.Round) -> [PacketLines.Made.Step] {
        var steps: [PacketLines.Made.Step] = []
        steps.reserveCapacity(round.entries.count)
        /// Ends the step with the lines of a place.
        func endStep(_ place: UInt64) {
            guard lines.count > steps.last?.records ?? 0 else { return }
            steps.append(PacketLines.Made.Step(place: place, records: lines.count))
        }
        var keys = round.keys[...]
        let entries = round.entries.span
        let bytes = round.bytes.span
        var start = 0
        for index in entries.indices {
            let (place, end) = (entries[index].place, entries[index].end)
            turns.reach(place, number)
            while let lines = keys.first, lines.before <= index {
                sessions.take(keys: lines.lines)
                keys.removeFirst()
            }
            sessions.take(
                entries[index].segment,
                bytes.extracting(start..<end),
                at: entries[index].at,
                as: place,
                to: &lines
            )
            start = end
            endStep(place)
        }
        for lines in keys { sessions.take(keys: lines.lines) }
        turns.reach(round.place &+ 1, number)
        guard let (counts, at) = round.ending else { return steps }
        // Of connections that are still open, in the order in which they began.
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

    /// Goes on to the first step at `place` or behind it, but one step at least; gives the records of those before.
    fileprivate mutating func endSteps(before place: UInt64) -> Range<Int> {
        let start = step == 0 ? 0 : made.steps[step - 1].records
        repeat { step += 1 } while step < made.steps.count && made.steps[step].place < place
        return start..<made.steps[step - 1].records
    }
}

/// Lets the workers of a ``PacketLines`` do in the order of the inputs what sessions know of each other by.
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
