/// What can stand in an ``ExpectationSet``.
public protocol Expectable {
    /// What is known of both sides, and changes as items agree.
    associatedtype Context
    /// A key that is equal for items that may agree. The finer it is, the fewer are compared.
    var shape: UInt64 { get }
    /// Of several that agree, one of equal preference is taken first: a hash of what the item led to, where that is known.
    var preference: UInt64 { get }
    /// Keys by which an item that came is taken for a changed one that did not, the finest first.
    var likeness: [UInt64] { get }

    /// Whether a live item means what the recorded one means. Where it does, `context` has learned from both; where it does
    /// not, `context` is as it was.
    static func agree(recorded: Self, live: Self, _ context: inout Context) -> Bool
    /// Of two that ``agree(recorded:live:_:)``, how little is known of it: 0 where all values that differ from session to session
    /// are bound to each other, 1 for each that is the same text, ``literallyDifferent`` for each other. nil of two that do not
    /// agree. `context` stays as it was.
    static func strangeness(recorded: Self, live: Self, _ context: inout Context) -> Int?
}

extension Expectable {
    /// None.
    public var preference: UInt64 { 0 }

    /// More than all values of an item that are the same text.
    static var literallyDifferent: Int { 1 << 16 }
}

/// The items that are to come, in the order in which they may come (RFC 6120 §10.1): messages in order from one to the other, presence and
/// pushes in any order, answers each to its request.
///
/// An item is expected, with its window; live items are received. What of a window has not come when the window is closed is
/// overdue; it may still come. ``finish()`` tells what came late, in another order, changed, not at all, or unexpectedly.
public struct ExpectationSet<Item: Expectable> {
    /// In which order an item may come.
    public enum Lane: Sendable, Hashable {
        /// It answers the request of that key, which is the same for recorded and live items.
        case answer(UInt64)
        /// After those before it with that key: messages from one to the other.
        case ordered(UInt64)
        /// At any time.
        case any
    }

    /// What became of a live item; the number is that of the expected one.
    public enum Outcome: Sendable, Hashable {
        /// As expected.
        case matched(Int)
        /// As expected, but after one that was to come later.
        case reordered(Int)
        /// As expected, but its window was closed.
        case late(Int)
        /// The answer that was expected, but it means something else.
        case changed(Int)
        /// Nothing that was expected; `finish()` may still take it for something that was.
        case unexpected

        /// The number of the expected item; nil where there is none.
        public var number: Int? {
            switch self {
            case .matched(let number), .reordered(let number), .late(let number), .changed(let number): number
            case .unexpected: nil
            }
        }
    }

    /// Something that was not as recorded.
    public enum Finding {
        /// It did not come.
        case missing(Item)
        /// It was not recorded.
        case unexpected(Item)
        /// It means something else.
        case changed(recorded: Item, live: Item)
        /// It came after one that was to come later.
        case reordered(recorded: Item, live: Item)
        /// Its window was closed.
        case late(recorded: Item, live: Item)
    }

    fileprivate struct Expected {
        let item: Item
        let lane: Lane
        let window: Int32
        var isWaiting = true
        var isOverdue = false
        /// One of its lane that was to come later has come.
        var isPassed = false
    }

    /// Numbers of expected items, of which those that came are passed over.
    private struct Queue {
        var numbers: [Int] = []
        var first = 0

        /// The place of the first number that is not below `number`.
        func place(of number: Int) -> Int {
            var range = first..<numbers.count
            while !range.isEmpty {
                let middle = range.lowerBound + range.count / 2
                range = numbers[middle] < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
            }
            return range.lowerBound
        }
    }

    /// An ordered lane.
    private struct Order {
        var queue = Queue()
        /// The number of the last that came.
        var last = -1
        /// Where the next one is looked for first: behind those for which something else came, which has them changed rather than
        /// those behind them moved.
        var next = 0
        /// The arrival of the latest that came.
        var arrival = 0
    }

    /// Items of one lane that may be one.
    private struct Alike: Hashable {
        let lane: UInt64
        let shape: UInt64
    }

    private var expected: [Expected] = []
    private var answers: [UInt64: Queue] = [:]
    private var orders: [UInt64: Order] = [:]
    private var ordered: [Alike: Queue] = [:]
    private var free: [UInt64: Queue] = [:]
    /// The numbers of each window, and how many of them have not come.
    private var windows: [Int: (numbers: [Int], waiting: Int)] = [:]
    private var unexpected: [(item: Item, lane: Lane, arrival: Int)] = []
    /// How many live items have come.
    private var arrivals = 0
    private var findings: [Finding] = []

    /// How many equal candidates are compared with one live item.
    private let mostCandidates = 64
    /// How far ahead a live item is looked for.
    private let mostLooks = 4096

    /// Nothing expected.
    public init() {}

    /// Has an item expected. The windows of several calls do not have to ascend; the order of one lane is that of the calls.
    ///
    /// - Returns: the number by which ``Outcome`` tells it, from 0.
    @discardableResult
    public mutating func expect(_ item: Item, _ lane: Lane, window: Int = 0) -> Int {
        expected.append(Expected(item: item, lane: lane, window: Int32(truncatingIfNeeded: window)))
        enqueue(expected.count - 1)
        return expected.count - 1
    }

    private mutating func enqueue(_ number: Int) {
        let (item, lane, window) = (expected[number].item, expected[number].lane, Int(expected[number].window))
        windows[window, default: ([], 0)].numbers.append(number)
        windows[window, default: ([], 0)].waiting += 1
        switch lane {
        case .answer(let key): answers[key, default: Queue()].numbers.append(number)
        case .ordered(let key):
            orders[key, default: Order()].queue.numbers.append(number)
            ordered[Alike(lane: key, shape: item.shape), default: Queue()].numbers.append(number)
        case .any: free[item.shape, default: Queue()].numbers.append(number)
        }
    }

    /// The expected item of a number.
    public func item(_ number: Int) -> Item { expected[number].item }

    /// How many have not come, and how many came that were not expected.
    var openCount: Int { expected.count { $0.isWaiting } + unexpected.count }

    /// Whether everything of a window has come.
    public func isComplete(_ window: Int) -> Bool { (windows[window]?.waiting ?? 0) == 0 }

    /// Whether the item of a number has not come.
    public func isWaiting(_ number: Int) -> Bool { expected[number].isWaiting }

    /// Takes a live item.
    public mutating func receive(_ item: Item, _ lane: Lane, _ context: inout Item.Context) -> Outcome {
        arrivals += 1
        let outcome = match(item, lane, arrival: arrivals, &context)
        if outcome == .unexpected { unexpected.append((item, lane, arrivals)) }
        return outcome
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
            // What came before an earlier one of its lane was not expected yet when it came.
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
            return came(number, as: item, isReordered: isReordered)
        case .any:
            guard let queue = free[item.shape],
                let number = likeliest(item, queue.numbers[queue.first...], isPreferred: true, &context)
                    ?? likeliest(item, queue.numbers[queue.first...], isPreferred: false, &context)
            else { break }
            let first = passed(queue, number)
            free[item.shape]?.first = first
            return came(number, as: item)
        }
        return .unexpected
    }

    /// The place behind the numbers at the beginning of a queue that have come, `number` among them.
    private func passed(_ queue: Queue, _ number: Int) -> Int {
        var first = queue.first
        while first < queue.numbers.count, !expected[queue.numbers[first]].isWaiting || queue.numbers[first] == number {
            first += 1
        }
        return first
    }

    /// The first of an ordered lane that agrees, from a number on, or else before it.
    private func find(_ item: Item, _ alike: Alike, from number: Int, _ context: inout Item.Context) -> Int? {
        guard let queue = ordered[alike] else { return nil }
        let next = queue.place(of: number)
        return find(item, queue.numbers[next...], &context) ?? find(item, queue.numbers[queue.first..<next], &context)
    }

    private func find(_ item: Item, _ numbers: ArraySlice<Int>, _ context: inout Item.Context) -> Int? {
        var candidates = 0
        for number in numbers.prefix(mostLooks) where expected[number].isWaiting {
            if Item.agree(recorded: expected[number].item, live: item, &context) { return number }
            candidates += 1
            if candidates == mostCandidates { break }
        }
        return nil
    }

    /// Of those that agree the one of which most is known: the first one that can be bound would take another's values.
    private func likeliest(
        _ item: Item,
        _ numbers: ArraySlice<Int>,
        isPreferred: Bool,
        _ context: inout Item.Context
    ) -> Int? {
        var best: (number: Int, strangeness: Int)?
        var candidates = 0
        for number in numbers.prefix(mostLooks) where expected[number].isWaiting {
            let candidate = expected[number].item
            guard (candidate.preference == item.preference) == isPreferred else { continue }
            if let strangeness = Item.strangeness(recorded: candidate, live: item, &context),
                strangeness < best?.strangeness ?? .max
            {
                best = (number, strangeness)
                if strangeness == 0 { break }
            }
            candidates += 1
            if candidates == mostCandidates { break }
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
            take(number)
            findings.append(.changed(recorded: expected[number].item, live: item))
            return .changed(number)
        }
        return came(number, as: item)
    }

    private mutating func take(_ number: Int) {
        expected[number].isWaiting = false
        windows[Int(expected[number].window)]?.waiting -= 1
    }

    private mutating func came(_ number: Int, as live: Item, isReordered: Bool = false) -> Outcome {
        take(number)
        let recorded = expected[number].item
        if isReordered {
            findings.append(.reordered(recorded: recorded, live: live))
            return .reordered(number)
        }
        guard expected[number].isOverdue else { return .matched(number) }
        findings.append(.late(recorded: recorded, live: live))
        return .late(number)
    }

    /// Receives what was unexpected once more, because more is expected by now.
    ///
    /// - Parameter body: Called with each that came, and what became of it.
    public mutating func retry(_ context: inout Item.Context, _ body: (Item, Outcome, Self) -> Void = { _, _, _ in }) {
        // In their place: where nothing is as recorded they are as many as the items.
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

    /// Forgets what came as expected, so that only what is open takes memory. Numbers given before mean nothing then.
    public mutating func compact() {
        for order in orders.values {
            for number in order.queue.numbers[order.queue.first...] where number < order.last {
                expected[number].isPassed = true
            }
        }
        expected.removeAll { !$0.isWaiting }
        (answers, free, windows) = ([:], [:], [:])
        (orders, ordered) = (orders.mapValues { Order(arrival: $0.arrival) }, [:])
        for number in expected.indices { enqueue(number) }
    }

    /// Closes a window: what of it has not come is overdue.
    ///
    /// - Returns: what has not come, in order.
    @discardableResult
    public mutating func close(_ window: Int) -> [Item] {
        var overdue: [Item] = []
        for number in windows[window]?.numbers ?? [] where expected[number].isWaiting {
            expected[number].isOverdue = true
            overdue.append(expected[number].item)
        }
        return overdue
    }

    /// What was not as recorded. An item that did not come and one that was not recorded are one that has changed where they
    /// are alike; nothing is expected afterwards.
    public mutating func finish() -> [Finding] {
        var found: [Finding] = []
        finish { found.append($0) }
        return found
    }

    /// The same, one after the other: where nothing is as recorded the findings take as much memory as the items.
    mutating func finish(_ body: (Finding) -> Void) {
        (answers, orders, ordered, free, windows) = ([:], [:], [:], [:], [:])
        var missing = expected.indices.filter { expected[$0].isWaiting }
        for finding in findings { body(finding) }
        findings = []
        pair(&missing, body) { item, lane in
            guard case .ordered(let key) = lane else { return nil }
            return key
        }
        let levels = missing.reduce(0) { max($0, expected[$1].item.likeness.count) }
        for level in 0..<levels {
            pair(&missing, body) { item, _ in level < item.likeness.count ? item.likeness[level] : nil }
        }
        for number in missing { body(.missing(expected[number].item)) }
        for (item, _, _) in unexpected { body(.unexpected(item)) }
        self = ExpectationSet()
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

extension ExpectationSet: Sendable where Item: Sendable {}
extension ExpectationSet.Expected: Sendable where Item: Sendable {}
extension ExpectationSet.Finding: Sendable where Item: Sendable {}
