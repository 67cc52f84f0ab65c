package import TapRecord

/// The differences between the sessions of two recordings, found by digests of their items. Findings refer to records
/// by number, so that a report reads only those again.
package struct RecordingDifference: Sendable {
    /// The place of an item.
    package struct Place: Sendable, Hashable {
        /// The session.
        package let session: SessionKey
        /// The record's number within the run.
        package let sequence: UInt64
        /// Nanoseconds since the run began.
        package let at: Int64
        /// The direction of the item.
        package let direction: Direction
    }

    /// A difference.
    package struct Finding: Sendable {
        /// What differs.
        package var code: Divergence.Code
        /// The recorded item; nil if there is none.
        package var recorded: Place?
        /// The live item; nil if there is none.
        package var live: Place?
        /// The request that the items answer: the recorded one, or the live one if only the live side has an answer.
        /// Nil if the items are not answers, or if the request is unknown.
        package var request: Place?
        /// Number of answers that are missing or unexpected because of this finding.
        package var consequences = 0
        /// Round-trip times of both answers in nanoseconds; only for ``Divergence/Code/slower``.
        package var roundTrips: (recorded: Int64, live: Int64)?
        /// Pairs of values that conflict with earlier pairs.
        var collisions: [(VolatileValue, VolatileValue)] = []
    }

    /// The findings in the order of sessions and items, up to the requested maximum.
    package private(set) var findings: [Finding] = []
    /// Number of findings beyond the maximum, and number of slower answers among them.
    package private(set) var omitted = (all: 0, slower: 0)
    /// Number of compared items of both sides.
    package private(set) var compared = 0
    /// Number of items that cannot be compared: without XML, or redacted.
    package private(set) var undecided = 0

    /// Returns whether an answer is slower than recorded: its time is at least four times as long, and at least 500 ms
    /// longer. Both times are in nanoseconds.
    static func isSlower(_ live: Int64, than recorded: Int64) -> Bool {
        // A negative time comes from a clock that was set back.
        recorded >= 0 && live / 4 >= recorded && live - recorded >= 500_000_000
    }

    /// Compares the sessions of `pairs`; findings beyond the first `limit` are only counted.
    package init(
        recorded: RecordedDigests,
        live: RecordedDigests,
        pairs: SessionPairs,
        rules: NoiseRules,
        limit: Int = .max
    ) {
        let none = RecordedDigests.Session()
        for pair in pairs.pairs {
            var comparison = PairComparison(
                recorded: recorded.sessions[pair.recorded.key] ?? none,
                live: live.sessions[pair.live.key] ?? none,
                numbers: (recorded.numbers, live.numbers),
                keys: (pair.recorded.key, pair.live.key),
                rules: rules
            )
            comparison.run()
            let order = comparison.ordered()
            let shown = order.prefix(limit - findings.count)
            findings += shown.map { comparison.finding($0) }
            let rest = order.dropFirst(shown.count)
            omitted.all += rest.count
            omitted.slower += rest.count { $0.code == .slower }
            compared += comparison.recorded.items.count + comparison.live.items.count
            undecided += comparison.undecided
        }
    }
}

/// A digest as an item of an ``ExpectationSet``.
private struct DigestItem: Expectable {
    struct Context {
        let recorded: [VolatileValue]
        let live: [VolatileValue]
        let numbers: (recorded: [Double], live: [Double])
        let rules: [NoiseRules.Rule]
        var bindings = DigestBindings()
    }

    // The order of the properties avoids padding, because there is one value of this type for each item if all items
    // differ.
    let shape: UInt64
    let fine: UInt64
    /// The shape of the answer to a request; 0 if there is none.
    let preference: UInt64
    let loose: UInt32
    let content: UInt32
    let optional: UInt32
    let index: Int32
    let firstValue: UInt32
    let valueCount: UInt16

    init(_ item: RecordedDigests.Item, at index: Int, answer: UInt64 = 0) {
        preference = answer
        self.index = Int32(truncatingIfNeeded: index)
        shape = item.shape
        fine = item.likeness
        loose = item.loose
        content = item.content
        optional = item.optional
        firstValue = item.firstValue
        valueCount = item.valueCount
    }

    static func uncertainty(recorded: DigestItem, live: DigestItem, _ context: inout Context) -> Int? {
        let bindings = context.bindings.count
        guard agree(recorded: recorded, live: live, &context) else { return nil }
        let made = context.bindings.rollBack(to: bindings)
        return made.reduce(0) { $0 + ($1.0 == $1.1 ? 1 : literallyDifferent) }
    }

    var likeness: [UInt64] { [fine, UInt64(loose), UInt64(content)] }
    var values: Range<Int> { Int(firstValue)..<Int(firstValue) + Int(valueCount) }

    static func agree(recorded: DigestItem, live: DigestItem, _ context: inout Context) -> Bool {
        guard recorded.shape == live.shape, recorded.valueCount == live.valueCount else { return false }
        // Items with different optional elements count as changed here. They are compared exactly when they are read
        // again.
        guard recorded.optional == 0 || live.optional == 0 || recorded.optional == live.optional else { return false }
        guard collisions(recorded, live, context, limit: 1).isEmpty else { return false }
        let count = context.bindings.count
        for (one, other) in zip(recorded.values, live.values) {
            // Two values of one item can conflict with each other.
            guard context.bindings.bind(context.recorded[one], context.live[other]) else {
                context.bindings.rollBack(to: count)
                return false
            }
        }
        return true
    }

    /// Returns the pairs of values that conflict with earlier bindings, at most `limit`.
    static func collisions(
        _ recorded: DigestItem,
        _ live: DigestItem,
        _ context: Context,
        limit: Int = .max
    ) -> [(VolatileValue, VolatileValue)] {
        var collisions: [(VolatileValue, VolatileValue)] = []
        guard recorded.valueCount == live.valueCount else { return [] }
        for (one, other) in zip(recorded.values, live.values) where collisions.count < limit {
            let (value, counterpart) = (context.recorded[one], context.live[other])
            if let number = value.number, let otherNumber = counterpart.number {
                guard case .number(let tolerance) = context.rules[number.rule].action else { continue }
                let distance = context.numbers.recorded[number.index] - context.numbers.live[otherNumber.index]
                if !(abs(distance) <= tolerance) { collisions.append((value, counterpart)) }
            } else if !context.bindings.allows(value, counterpart) {
                collisions.append((value, counterpart))
            }
        }
        return collisions
    }
}

/// Bindings like ``ValueBindings``, between hashes.
private struct DigestBindings {
    private var toLive: [VolatileValue: VolatileValue] = [:]
    private var toRecorded: [VolatileValue: VolatileValue] = [:]
    private var journal: [(VolatileValue, VolatileValue)] = []
    var count: Int { journal.count }

    func allows(_ recorded: VolatileValue, _ live: VolatileValue) -> Bool {
        let bound = toLive[recorded]
        return bound == nil ? toRecorded[live] == nil : bound == live
    }

    mutating func bind(_ recorded: VolatileValue, _ live: VolatileValue) -> Bool {
        if recorded.number != nil { return true }
        if let bound = toLive[recorded] { return bound == live }
        guard toRecorded[live] == nil else { return false }
        toLive[recorded] = live
        toRecorded[live] = recorded
        journal.append((recorded, live))
        return true
    }

    /// Removes all bindings except the first `count`.
    ///
    /// - Returns: The removed bindings.
    @discardableResult
    mutating func rollBack(to count: Int) -> [(VolatileValue, VolatileValue)] {
        let undone = Array(journal[count...])
        for (recorded, live) in undone {
            toLive[recorded] = nil
            toRecorded[live] = nil
        }
        journal.removeLast(undone.count)
        return undone
    }

    /// Makes the bindings so far permanent.
    mutating func commit() { journal.removeAll(keepingCapacity: true) }
}

/// Compares one recorded session with one live session.
private struct PairComparison {
    typealias Item = RecordedDigests.Item
    typealias Finding = RecordingDifference.Finding

    /// A finding. It is kept in 20 bytes, because there is one finding for each item if all items differ.
    struct Difference {
        let code: Divergence.Code
        /// The indices of both items; -1 if there is none.
        var recorded: Int32 = -1
        var live: Int32 = -1
        /// Index of the finding's first collision in ``collisions``.
        var firstCollision: UInt32 = 0
        var collisionCount: UInt16 = 0
    }

    let recorded: RecordedDigests.Session
    let live: RecordedDigests.Session
    let keys: (recorded: SessionKey, live: SessionKey)
    private var differences: [Difference] = []
    private var collisions: [(VolatileValue, VolatileValue)] = []
    /// Number of answers that are missing or unexpected because of their request, by the request's index.
    private var consequences: [Int32: Int] = [:]
    private var liveConsequences: [Int32: Int] = [:]
    private(set) var undecided: Int
    private var context: DigestItem.Context
    /// The live request of each recorded one, and the recorded request of each live one; -1 if there is none.
    private var liveRequest: [Int32]
    private var recordedRequest: [Int32]
    /// The shape of the answer to each request, 0 for other items: among equal requests, those with equal answers are
    /// paired.
    private let answers: [UInt64]
    private let liveAnswers: [UInt64]

    init(
        recorded: RecordedDigests.Session,
        live: RecordedDigests.Session,
        numbers: ([Double], [Double]),
        keys: (SessionKey, SessionKey),
        rules: NoiseRules
    ) {
        self.recorded = recorded
        self.live = live
        self.keys = keys
        context = DigestItem.Context(
            recorded: recorded.values,
            live: live.values,
            numbers: numbers,
            rules: rules.rules
        )
        liveRequest = Array(repeating: -1, count: recorded.items.count)
        recordedRequest = Array(repeating: -1, count: live.items.count)
        answers = Self.answers(recorded.items)
        liveAnswers = Self.answers(live.items)
        undecided = recorded.unreadable + live.unreadable
        undecided += recorded.items.count { $0.isUndecided } + live.items.count { $0.isUndecided }
    }

    private static func answers(_ items: [Item]) -> [UInt64] {
        var answers: [UInt64] = Array(repeating: 0, count: items.count)
        for item in items where item.request >= 0 { answers[Int(item.request)] = item.shape }
        return answers
    }

    mutating func run() {
        compareAllButAnswers()
        compareAnswers()
    }

    /// Returns the differences in the order of the recording. Differences without a recorded item are sorted by their
    /// live time.
    func ordered() -> [Difference] {
        let began = (recorded.items.first?.at ?? 0, live.items.first?.at ?? 0)
        func time(_ difference: Difference) -> Int64 {
            if difference.recorded >= 0 { return recorded.items[Int(difference.recorded)].at &- began.0 }
            return live.items[Int(difference.live)].at &- began.1
        }
        let times = differences.map(time)
        return differences.indices.sorted { (times[$0], $0) < (times[$1], $1) }.map { differences[$0] }
    }

    func finding(_ difference: Difference) -> Finding {
        let (one, other) = (difference.recorded, difference.live)
        let first = Int(difference.firstCollision)
        var finding = Finding(
            code: difference.code,
            recorded: one < 0 ? nil : place(one, isRecorded: true),
            live: other < 0 ? nil : place(other, isRecorded: false),
            consequences: (one < 0 ? liveConsequences[other] : consequences[one]) ?? 0,
            collisions: Array(collisions[first..<(first + Int(difference.collisionCount))])
        )
        let request = one < 0 ? live.items[Int(other)].request : recorded.items[Int(one)].request
        if request >= 0 { finding.request = place(request, isRecorded: one >= 0) }
        if difference.code == .slower { finding.roundTrips = roundTrips(one, other) }
        return finding
    }

    /// Returns the round-trip times of two answers, in nanoseconds.
    private func roundTrips(_ one: Int32, _ other: Int32) -> (recorded: Int64, live: Int64) {
        let (answer, liveAnswer) = (recorded.items[Int(one)], live.items[Int(other)])
        return (
            answer.at &- recorded.items[Int(answer.request)].at,
            liveAnswer.at &- live.items[Int(liveAnswer.request)].at
        )
    }

    private func place(_ index: Int32, isRecorded: Bool) -> RecordingDifference.Place {
        let item = isRecorded ? recorded.items[Int(index)] : live.items[Int(index)]
        return RecordingDifference.Place(
            session: isRecorded ? keys.recorded : keys.live,
            sequence: item.sequence,
            at: item.at,
            direction: item.direction
        )
    }

    private func lane(_ item: Item) -> ExpectationSet<DigestItem>.Lane {
        item.role == .message ? .ordered(item.pair) : .any
    }

    // MARK: Requests, messages, presence

    private mutating func compareAllButAnswers() {
        var set = ExpectationSet<DigestItem>()
        var (ours, theirs) = (0, 0)
        var step = 4096
        while ours < recorded.items.count || theirs < live.items.count {
            let (end, liveEnd) = (min(ours + step, recorded.items.count), min(theirs + step, live.items.count))
            for index in ours..<end where recorded.items[index].request < 0 {
                let item = recorded.items[index]
                set.expect(DigestItem(item, at: index, answer: answers[index]), lane(item))
            }
            var matched: [(Int32, Int32)] = []
            set.retry(&context) { item, outcome, set in
                if let number = outcome.number { matched.append((set.item(number).index, item.index)) }
            }
            for index in theirs..<liveEnd where live.items[index].request < 0 {
                let item = DigestItem(live.items[index], at: index, answer: liveAnswers[index])
                let outcome = set.receive(item, lane(live.items[index]), &context)
                if let number = outcome.number { matched.append((set.item(number).index, item.index)) }
            }
            for (one, other) in matched { join(one, other) }
            context.bindings.commit()
            (ours, theirs) = (end, liveEnd)
            set.compact()
            // The step grows with the number of open items, so that many open items are not searched for a few new
            // ones.
            step = max(4096, set.openCount)
        }
        set.finish { finding in
            switch finding {
            case .missing(let item): differences.append(Difference(code: .missing, recorded: item.index))
            case .unexpected(let item): differences.append(Difference(code: .unexpected, live: item.index))
            case .reordered(let one, let other), .late(let one, let other):
                differences.append(Difference(code: .reordered, recorded: one.index, live: other.index))
            case .changed(let one, let other):
                addChanged(one, other)
                join(one.index, other.index)
            }
        }
    }

    private mutating func addChanged(_ one: DigestItem, _ other: DigestItem) {
        let pairs = one.shape == other.shape ? DigestItem.collisions(one, other, context) : []
        differences.append(
            Difference(
                code: .changed,
                recorded: one.index,
                live: other.index,
                firstCollision: UInt32(truncatingIfNeeded: collisions.count),
                collisionCount: UInt16(clamping: pairs.count)
            )
        )
        collisions += pairs
    }

    private mutating func join(_ one: Int32, _ other: Int32) {
        guard recorded.items[Int(one)].role == .request, live.items[Int(other)].role == .request else { return }
        liveRequest[Int(one)] = other
        recordedRequest[Int(other)] = one
    }

    // MARK: Answers

    private mutating func compareAnswers() {
        var liveAnswer: [Int32: Int32] = [:]
        for (index, item) in live.items.enumerated() where item.request >= 0 {
            liveAnswer[item.request] = Int32(truncatingIfNeeded: index)
        }
        for (index, item) in recorded.items.enumerated() where item.request >= 0 {
            let request = liveRequest[Int(item.request)]
            guard request >= 0 else {
                consequences[item.request, default: 0] += 1
                continue
            }
            let answer = Int32(truncatingIfNeeded: index)
            guard let other = liveAnswer.removeValue(forKey: request) else {
                differences.append(Difference(code: .missing, recorded: answer))
                continue
            }
            compare(answer, other)
        }
        for (request, answer) in liveAnswer.sorted(by: { $0.value < $1.value }) {
            guard recordedRequest[Int(request)] >= 0 else {
                liveConsequences[request, default: 0] += 1
                continue
            }
            differences.append(Difference(code: .unexpected, live: answer))
        }
    }

    private mutating func compare(_ answer: Int32, _ other: Int32) {
        let item = DigestItem(recorded.items[Int(answer)], at: Int(answer))
        let liveItem = DigestItem(live.items[Int(other)], at: Int(other))
        guard DigestItem.agree(recorded: item, live: liveItem, &context) else { return addChanged(item, liveItem) }
        context.bindings.commit()
        let took = roundTrips(answer, other)
        guard RecordingDifference.isSlower(took.live, than: took.recorded) else { return }
        differences.append(Difference(code: .slower, recorded: answer, live: other))
    }
}
