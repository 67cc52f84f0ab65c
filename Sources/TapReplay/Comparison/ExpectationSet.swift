/// An item of an ``ExpectationSet``.
package protocol Expectable {
    /// State shared by the comparisons, which changes when items agree.
    associatedtype Context
    /// A key that is equal for items that may agree. A finer key means fewer comparisons.
    var shape: UInt64 { get }
    /// A hash of the item's consequence, such as the answer to a request; 0 if unknown. Among candidates that agree,
    /// those with equal preferences are matched first.
    var preference: UInt64 { get }
    /// Keys by which an unexpected item is paired with a missing one, so that they count as changed. The most specific
    /// key is first.
    var likeness: [UInt64] { get }
    /// A form of the item that uses less memory, to be kept until the end.
    var compact: Self { get }

    /// Returns whether a live item means the same as the recorded one. If so, `context` has learned from both;
    /// otherwise it is unchanged.
    static func agree(recorded: Self, live: Self, _ context: inout Context) -> Bool
    /// Returns the uncertainty of the match of two items: 0 if all values that differ between sessions are already
    /// bound to each other, plus 1 for each new pair of values with equal texts, plus ``literallyDifferent`` for each
    /// other new pair. Returns nil if the items do not agree. `context` stays unchanged.
    static func uncertainty(recorded: Self, live: Self, _ context: inout Context) -> Int?
}

extension Expectable {
    /// No preference.
    package var preference: UInt64 { 0 }
    /// The item itself.
    package var compact: Self { self }

    /// The uncertainty of a pair of values with different texts. It exceeds the sum for all pairs with equal texts in
    /// one item.
    static var literallyDifferent: Int { 1 << 16 }
}

/// The items that are expected, with the order in which they may arrive (RFC 6120 §10.1): messages in order between two
/// entities, presence and pushes in any order, answers by the requests that they answer.
///
/// Each expected item belongs to a window. An item that has not arrived when its window is closed is overdue, but may
/// still arrive. ``finish()`` returns the items that were late, reordered, changed, missing or unexpected.
package struct ExpectationSet<Item: Expectable> {
    /// The ordering constraint of an item.
    package enum Lane: Sendable, Hashable {
        /// Answers the request with this key, which is the same for recorded and live items.
        case answer(UInt64)
        /// Arrives after the earlier items with this key: messages from one entity to another.
        case ordered(UInt64)
        /// May arrive at any time.
        case any
    }

    /// The result of receiving a live item; the number is that of the expected item.
    package enum Outcome: Sendable, Hashable {
        /// The item is as expected.
        case matched(Int)
        /// The item is as expected, but it arrived after an item that was expected later.
        case reordered(Int)
        /// The item is as expected, but it arrived after its window was closed.
        case late(Int)
        /// The expected answer arrived, but with another meaning.
        case changed(Int)
        /// The item was not expected; `finish()` may still pair it with a missing item.
        case unexpected

        /// The number of the expected item; nil if there is none.
        package var number: Int? {
            switch self {
            case .matched(let number), .reordered(let number), .late(let number), .changed(let number): number
            case .unexpected: nil
            }
        }
    }

    /// A difference from the expectation.
    package enum Finding {
        /// An expected item did not arrive.
        case missing(Item)
        /// An item arrived that was not expected.
        case unexpected(Item)
        /// An item has another meaning.
        case changed(recorded: Item, live: Item)
        /// An item arrived after one that was expected later.
        case reordered(recorded: Item, live: Item)
        /// An item arrived after its window was closed.
        case late(recorded: Item, live: Item)
    }

    fileprivate struct Expected {
        let item: Item
        let lane: Lane
        let window: Int32
        var isWaiting = true
        var isOverdue = false
        /// Whether a later item of its lane has arrived.
        var isPassed = false
    }

    /// Numbers of expected items. Items at the front that have arrived are before the index `first`.
    private struct Queue {
        var numbers: [Int] = []
        var first = 0

        /// Returns the index of the first number that is at least `number`.
        func place(of number: Int) -> Int {
            (first..<numbers.count).bisected { numbers[$0] < number }
        }
    }

    /// The state of an ordered lane.
    private struct Order {
        var queue = Queue()
        /// The number of the last item that arrived.
        var last = -1
        /// Index at which the next search starts. If another item arrived in place of an expected one, the search
        /// continues after the expected item: it counts as changed, and the items after it do not count as reordered.
        var next = 0
        /// The highest arrival number of a matched item of the lane.
        var arrival = 0
    }

    /// Key of items that may agree within one ordered lane.
    private struct Alike: Hashable {
        let lane: UInt64
        let shape: UInt64
    }

    private var expected: [Expected] = []
    private var answers: [UInt64: Queue] = [:]
    private var orders: [UInt64: Order] = [:]
    private var ordered: [Alike: Queue] = [:]
    private var free: [UInt64: Queue] = [:]
    /// Whether the expected items are sorted by window, so that those of a window are next to each other.
    private var isSorted = true
    private var unexpected: [(item: Item, lane: Lane, arrival: Int)] = []
    /// Number of unexpected items that are not kept, because there are too many.
    private(set) var omitted = 0
    /// Number of live items received.
    private var arrivals = 0
    private var findings: [Finding] = []

    /// Maximum number of candidates compared with one live item.
    private let maximumCandidates = 64
    /// Maximum number of expected items that are searched for one live item.
    private let maximumLooks = 4096
    /// Maximum number of unexpected items that are kept, beyond the number of expected items. Each of these may be
    /// missing and have arrived in a changed form.
    private let maximumUnexpected: Int

    /// Creates an empty set.
    ///
    /// - Parameter mostUnexpected: The number of unexpected items to keep, in addition to the number of expected items.
    package init(mostUnexpected: Int = .max) { self.maximumUnexpected = mostUnexpected }

    /// Reserves memory for a number of expected items.
    mutating func reserve(_ count: Int) { expected.reserveCapacity(count) }

    /// Adds an expected item. Windows may be given in any order; within a lane, the items are expected in the order of
    /// the calls.
    ///
    /// - Returns: The number that identifies the item in ``Outcome``, from 0.
    @discardableResult
    package mutating func expect(_ item: Item, _ lane: Lane, window: Int = 0) -> Int {
        let window = Int32(truncatingIfNeeded: window)
        isSorted = isSorted && expected.last.map { $0.window <= window } ?? true
        expected.append(Expected(item: item, lane: lane, window: window))
        enqueue(expected.count - 1)
        return expected.count - 1
    }

    private mutating func enqueue(_ number: Int) {
        let item = expected[number].item
        switch expected[number].lane {
        case .answer(let key): answers[key, default: Queue()].numbers.append(number)
        case .ordered(let key):
            orders[key, default: Order()].queue.numbers.append(number)
            ordered[Alike(lane: key, shape: item.shape), default: Queue()].numbers.append(number)
        case .any: free[item.shape, default: Queue()].numbers.append(number)
        }
    }

    /// Returns the expected item with a number.
    package func item(_ number: Int) -> Item { expected[number].item }

    /// Number of expected items that have not arrived, plus number of unexpected items.
    var openCount: Int { expected.count { $0.isWaiting } + unexpected.count }

    /// Returns whether all items of a window have arrived.
    package func isComplete(_ window: Int) -> Bool { waiting(in: window).isEmpty }

    /// Returns the numbers of a window's items that have not arrived.
    private func waiting(in window: Int) -> [Int] {
        let window = Int32(truncatingIfNeeded: window)
        var candidates = expected.indices
        if isSorted {
            let first = candidates.bisected { expected[$0].window < window }
            candidates = first..<(first..<candidates.upperBound).bisected { expected[$0].window == window }
        }
        return candidates.filter { expected[$0].window == window && expected[$0].isWaiting }
    }

    /// Returns whether an item has not arrived.
    package func isWaiting(_ number: Int) -> Bool { expected[number].isWaiting }

    /// Receives a live item and matches it with an expected one.
    package mutating func receive(_ item: Item, _ lane: Lane, _ context: inout Item.Context) -> Outcome {
        arrivals += 1
        let outcome = match(item, lane, arrival: arrivals, &context)
        guard outcome == .unexpected else { return outcome }
        if unexpected.count - expected.count < maximumUnexpected {
            unexpected.append((item.compact, lane, arrivals))
        } else {
            omitted += 1
        }
        return outcome
    }

    /// Removes the last received item if it was unexpected, so that it is not paired with a missing item.
    mutating func withdraw() {
        if unexpected.last?.arrival == arrivals { unexpected.removeLast() }
    }

    /// Removes the expected items that have not arrived and meet a condition, so that they are not paired with
    /// unexpected items.
    ///
    /// - Returns: The removed items, in order.
    mutating func withdrawMissing(where isMeant: (Item) -> Bool) -> [Item] {
        let numbers = expected.indices.filter { expected[$0].isWaiting && isMeant(expected[$0].item) }
        for number in numbers { stopWaiting(number) }
        return numbers.map { expected[$0].item }
    }

    private mutating func match(
        _ item: Item,
        _ lane: Lane,
        arrival: Int,
        _ context: inout Item.Context
    ) -> Outcome {
        switch lane {
        case .answer(let key): return match(item, answerTo: key, &context)
        case .ordered(let key):
            guard let order = orders[key] else { break }
            let next = max(order.queue.first, min(order.next, order.queue.numbers.count))
            let alike = Alike(lane: key, shape: item.shape)
            guard
                let number = find(
                    item,
                    alike,
                    from: next < order.queue.numbers.count ? order.queue.numbers[next] : .max,
                    &context
                )
            else {
                let skipped = order.queue.numbers[next...].firstIndex { expected[$0].isWaiting }
                orders[key]?.next = (skipped ?? next) + 1
                break
            }
            // Items that arrived early are matched later, after their expectation was added, so the arrival numbers
            // count too.
            let isReordered = number < order.last || expected[number].isPassed || arrival < order.arrival
            let first = passed(order.queue, number)
            orders[key]?.queue.first = first
            orders[key]?.next = max(order.next, first)
            orders[key]?.last = max(number, order.last)
            orders[key]?.arrival = max(arrival, order.arrival)
            if let queue = ordered[alike] {
                let first = passed(queue, number)
                ordered[alike]?.first = first
            }
            return match(number, as: item, isReordered: isReordered)
        case .any:
            guard let queue = free[item.shape],
                let number = likeliest(item, queue.numbers[queue.first...], isPreferred: true, &context)
                    ?? likeliest(item, queue.numbers[queue.first...], isPreferred: false, &context)
            else { break }
            let first = passed(queue, number)
            free[item.shape]?.first = first
            return match(number, as: item)
        }
        return .unexpected
    }

    /// Returns the index after the items at the front of a queue that have arrived; `number` counts as arrived.
    private func passed(_ queue: Queue, _ number: Int) -> Int {
        var first = queue.first
        while first < queue.numbers.count, !expected[queue.numbers[first]].isWaiting || queue.numbers[first] == number {
            first += 1
        }
        return first
    }

    /// Returns the first item of an ordered lane that agrees. The search starts at `number`, then covers the items
    /// before it.
    private func find(_ item: Item, _ alike: Alike, from number: Int, _ context: inout Item.Context) -> Int? {
        guard let queue = ordered[alike] else { return nil }
        let next = queue.place(of: number)
        return find(item, queue.numbers[next...], &context) ?? find(item, queue.numbers[queue.first..<next], &context)
    }

    private func find(_ item: Item, _ numbers: ArraySlice<Int>, _ context: inout Item.Context) -> Int? {
        var candidates = 0
        for number in numbers.prefix(maximumLooks) where expected[number].isWaiting {
            if Item.agree(recorded: expected[number].item, live: item, &context) { return number }
            candidates += 1
            if candidates == maximumCandidates { break }
        }
        return nil
    }

    /// Returns the candidate with the most certain match: the first one that agrees could bind values that belong to
    /// another.
    private func likeliest(
        _ item: Item,
        _ numbers: ArraySlice<Int>,
        isPreferred: Bool,
        _ context: inout Item.Context
    ) -> Int? {
        var best: (number: Int, strangeness: Int)?
        var candidates = 0
        for number in numbers.prefix(maximumLooks) where expected[number].isWaiting {
            let candidate = expected[number].item
            guard (candidate.preference == item.preference) == isPreferred else { continue }
            if let uncertainty = Item.uncertainty(recorded: candidate, live: item, &context),
                uncertainty < best?.strangeness ?? .max
            {
                best = (number, uncertainty)
                if uncertainty == 0 { break }
            }
            candidates += 1
            if candidates == maximumCandidates { break }
        }
        guard let best, Item.agree(recorded: expected[best.number].item, live: item, &context) else { return nil }
        return best.number
    }

    private mutating func match(_ item: Item, answerTo key: UInt64, _ context: inout Item.Context) -> Outcome {
        guard let queue = answers[key],
            let number = queue.numbers[queue.first...].first(where: { expected[$0].isWaiting })
        else { return .unexpected }
        let first = passed(queue, number)
        answers[key]?.first = first
        guard Item.agree(recorded: expected[number].item, live: item, &context) else {
            stopWaiting(number)
            findings.append(.changed(recorded: expected[number].item, live: item.compact))
            return .changed(number)
        }
        return match(number, as: item)
    }

    private mutating func stopWaiting(_ number: Int) {
        expected[number].isWaiting = false
    }

    private mutating func match(_ number: Int, as live: Item, isReordered: Bool = false) -> Outcome {
        stopWaiting(number)
        let recorded = expected[number].item
        if isReordered {
            findings.append(.reordered(recorded: recorded, live: live.compact))
            return .reordered(number)
        }
        guard expected[number].isOverdue else { return .matched(number) }
        findings.append(.late(recorded: recorded, live: live.compact))
        return .late(number)
    }

    /// Matches the unexpected items again, after more expected items were added.
    ///
    /// - Parameter body: Called with each item that matched and its outcome.
    package mutating func retry(_ context: inout Item.Context, _ body: (Item, Outcome, Self) -> Void = { _, _, _ in }) {
        // Compacts the array in place, because it may be as long as the recording.
        var kept = 0
        for index in unexpected.indices {
            let (item, lane, arrival) = unexpected[index]
            let outcome = match(item, lane, arrival: arrival, &context)
            if outcome == .unexpected {
                unexpected[kept] = (item, lane, arrival)
                kept += 1
            } else {
                body(item, outcome, self)
            }
        }
        unexpected.removeLast(unexpected.count - kept)
    }

    /// Removes the expected items that have arrived, so that memory use depends only on the open ones. Earlier numbers
    /// become invalid.
    package mutating func compact() {
        for order in orders.values {
            for number in order.queue.numbers[order.queue.first...] where number < order.last {
                expected[number].isPassed = true
            }
        }
        expected.removeAll { !$0.isWaiting }
        (answers, free) = ([:], [:])
        (orders, ordered) = (orders.mapValues { Order(arrival: $0.arrival) }, [:])
        for number in expected.indices { enqueue(number) }
    }

    /// Closes a window: its items that have not arrived are overdue.
    ///
    /// - Returns: The overdue items, in order.
    @discardableResult
    package mutating func close(_ window: Int) -> [Item] {
        var overdue: [Item] = []
        for number in waiting(in: window) {
            expected[number].isOverdue = true
            overdue.append(expected[number].item)
        }
        return overdue
    }

    /// Returns all differences and empties the set. A missing and an unexpected item with a common
    /// ``Expectable/likeness`` are reported as one changed item.
    package mutating func finish() -> [Finding] {
        var found: [Finding] = []
        finish { found.append($0) }
        return found
    }

    /// Calls `body` with each difference and empties the set. An array of all findings could be as large as the
    /// recording.
    mutating func finish(_ body: (Finding) -> Void) {
        (answers, orders, ordered, free) = ([:], [:], [:], [:])
        var missing = expected.indices.filter { expected[$0].isWaiting }
        for finding in findings { body(finding) }
        findings = []
        let levels = missing.reduce(0) { max($0, expected[$1].item.likeness.count) }
        for level in 0..<levels {
            pair(&missing, body) { item, _ in level < item.likeness.count ? item.likeness[level] : nil }
            // Equal places in an ordered lane rank below equal heads, and above the other keys of likeness.
            guard level == 0 else { continue }
            pair(&missing, body) { item, lane in
                guard case .ordered(let key) = lane else { return nil }
                return key
            }
        }
        for number in missing { body(.missing(expected[number].item)) }
        for (item, _, _) in unexpected { body(.unexpected(item)) }
        self = ExpectationSet(mostUnexpected: maximumUnexpected)
    }

    private mutating func pair(_ missing: inout [Int], _ body: (Finding) -> Void, _ key: (Item, Lane) -> UInt64?) {
        var queues: [UInt64: ArraySlice<Int>] = [:]
        for index in unexpected.indices {
            if let key = key(unexpected[index].item, unexpected[index].lane) { queues[key, default: []].append(index) }
        }
        guard !queues.isEmpty else { return }
        var paired: Set<Int> = []
        missing.removeAll { number in
            guard let key = key(expected[number].item, expected[number].lane), let index = queues[key]?.popFirst()
            else { return false }
            body(.changed(recorded: expected[number].item, live: unexpected[index].item))
            paired.insert(index)
            return true
        }
        var kept = 0
        for index in unexpected.indices where !paired.contains(index) {
            unexpected[kept] = unexpected[index]
            kept += 1
        }
        unexpected.removeLast(unexpected.count - kept)
    }
}

extension Range<Int> {
    /// Returns the first index for which the condition is false; it must be true for all before, and false for all after.
    func bisected(_ isBefore: (Int) -> Bool) -> Int {
        var range = self
        while !range.isEmpty {
            let middle = range.lowerBound + range.count / 2
            range = isBefore(middle) ? middle + 1..<range.upperBound : range.lowerBound..<middle
        }
        return range.lowerBound
    }
}

extension ExpectationSet: Sendable where Item: Sendable {}
extension ExpectationSet.Expected: Sendable where Item: Sendable {}
extension ExpectationSet.Finding: Sendable where Item: Sendable {}
