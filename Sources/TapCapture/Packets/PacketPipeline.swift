internal import CPcap
internal import Glibc
internal import Synchronization
internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Reads a file of packets by several threads.
///
/// ```
///                        ┌─→ worker: sessions 1, 3, 5 … ─┐
/// reader: packets, TCP, TLS                              ├─→ who asks: records in order, numbered
///                        └─→ worker: sessions 2, 4, 6 … ─┘
/// ```
///
/// The reader hands out what was found in rounds of some hundred inputs; each worker makes its sessions of its part of a
/// round. The records come in the order of the inputs, with the numbers that one thread would have given them: a worker
/// counts its own, and how many each input has brought. What sessions know of each other (numbers of secrets, resumption)
/// is asked for in the order of the inputs too: see ``PacketTurns``. Bounded by the rounds that can wait in each queue.
final class PacketPipeline {
    /// Sessions are made by at most so many threads: the reader keeps no more of them busy.
    private static let mostWorkers = 4
    /// Inputs of a round, and bytes.
    private static let roundInputs = 256
    private static let roundBytes = 128 << 10
    /// Rounds that wait for a worker, and whose records wait.
    private static let waitingRounds = 2

    /// What was found next, of a worker's sessions.
    fileprivate struct Round: Sendable {
        var inputs: [SourceInput] = []
        /// The place of each in the file.
        var places: [UInt64] = []
        /// The place behind the round.
        var end: UInt64 = 0
    }

    /// What a worker has made of its part of a round.
    fileprivate struct Made: Sendable {
        struct Step {
            let place: UInt64
            /// Numbers that records have taken, also those that are not told.
            let numbers: UInt64
            /// How many of the records are there up to the end of this one.
            let records: Int
        }

        var steps: [Step] = []
        var records: RecordBatch
    }

    private let rounds: [Handoff<Round>]
    // Of who asks for records, and of nobody else: exclusive access is not checked at each of them.
    @exclusivity(unchecked) private var lanes: [Lane]
    /// Which lane's step is being given out.
    @exclusivity(unchecked) private var current: Int?
    @exclusivity(unchecked) private var sequence: UInt64 = 0
    @exclusivity(unchecked) private var hasEnded = false

    /// What comes of a worker, and how far it was given out.
    fileprivate struct Lane {
        let made: Handoff<Made>
        var batch = Made(records: RecordBatch())
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

    /// Starts the threads; nil where that fails, or where a single worker would gain nothing.
    init?(_ input: PacketInput, _ options: SessionOptions, workers: Int) {
        guard workers > 1 else { return nil }
        let turns = PacketTurns(workers)
        let rounds = (0..<workers).map { _ in Handoff<Round>(capacity: Self.waitingRounds) }
        let made = (0..<workers).map { _ in Handoff<Made>(capacity: Self.waitingRounds) }
        self.rounds = rounds
        lanes = made.map { Lane(made: $0) }
        let run = Run()
        for worker in 0..<workers {
            let (incoming, outgoing) = (rounds[worker], made[worker])
            let result = WorkerThread.start(named: "packets-\(worker)") {
                Self.work(worker, incoming, outgoing, turns, run, options)
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

    // MARK: Threads

    private static func read(_ input: PacketInput, _ queues: [Handoff<Round>]) {
        var parts = queues.map { _ in Round() }
        var place: UInt64 = 0
        var (count, bytes) = (0, 0)
        while true {
            while let found = input.source.next() {
                if case .received(_, let content, _) = found.kind { bytes += content.count }
                let part = Int(found.session % UInt64(queues.count))
                parts[part].places.append(place)
                parts[part].inputs.append(found)
                place += 1
                count += 1
            }
            if count >= roundInputs || bytes >= roundBytes || input.hasEnded {
                for (queue, part) in zip(queues, parts) {
                    var round = part
                    round.end = place
                    guard queue.push(round) else { return }
                }
                for index in parts.indices {
                    parts[index] = Round()
                    parts[index].inputs.reserveCapacity(count)
                    parts[index].places.reserveCapacity(count)
                }
                (count, bytes) = (0, 0)
            }
            guard !input.hasEnded else { break }
            input.readOn()
        }
        for queue in queues { queue.finish() }
    }

    private static func work(
        _ worker: Int,
        _ rounds: Handoff<Round>,
        _ queue: Handoff<Made>,
        _ turns: PacketTurns,
        _ run: Run,
        _ options: SessionOptions
    ) {
        let own = Run(partOf: run) { turns.wait(worker) }
        var runner = SourceRunner(run: own, options: options)
        // Whoever waits for this one need not wait any more.
        defer { turns.end(worker) }
        var capacity = 0
        while let round = rounds.pop() {
            let records = RecordBatch(capacity: capacity)
            var made = Made(records: records)
            made.steps.reserveCapacity(round.inputs.count)
            // Borrowed: each copy would count a reference more of an input's bytes.
            let inputs = round.inputs.span
            for index in inputs.indices {
                let place = round.places[index]
                turns.reach(place, worker)
                let before = own.lastSequence
                runner.take(inputs[index]) { records.append($0) }
                let numbers = own.lastSequence - before
                guard numbers > 0 else { continue }
                made.steps.append(Made.Step(place: place, numbers: numbers, records: records.count))
            }
            turns.reach(round.end, worker)
            capacity = records.count
            guard queue.push(made) else { return }
        }
        queue.finish()
    }

    // MARK: Records

    /// The next record; nil at the end.
    func next() -> RecordLine? {
        while !hasEnded {
            if let current, let line = lanes[current].next(after: sequence) { return line }
            if let current { sequence += lanes[current].endStep() }
            current = earliest()
            if current == nil { takeRound() }
        }
        return nil
    }

    /// The lane whose step comes next; nil at the end of the round.
    private func earliest() -> Int? {
        var found: (lane: Int, place: UInt64)?
        for index in lanes.indices {
            guard let place = lanes[index].place else { continue }
            if let earlier = found, earlier.place < place { continue }
            found = (index, place)
        }
        return found?.lane
    }

    private func takeRound() {
        for index in lanes.indices {
            guard let batch = lanes[index].made.pop() else { return hasEnded = true }
            lanes[index].begin(batch)
        }
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
        guard batch.records.given < batch.steps[step].records else { return nil }
        let offset = sequence &- counted
        return batch.records.next { $0.renumber(&numbers, offset) }
    }

    /// Goes on to the next step; gives how many numbers this one has taken.
    mutating func endStep() -> UInt64 {
        let taken = batch.steps[step].numbers
        counted += taken
        step += 1
        return taken
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
