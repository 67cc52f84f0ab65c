internal import Synchronization
internal import TapRecord
internal import XMPPCore

/// What rules remember of one session: its marks, and how often a rule was asked.
struct RuleState: ~Copyable {
    /// Most marks of a session.
    static let mostMarks = 1000

    fileprivate(set) var marks: [String: Int64] = [:]
    private var counters: [Int: Int] = [:]
    private var generator: UInt64
    var checker = ItemChecker()
    /// Which rules are asked about the item at hand.
    var selection = RuleSelection()
    /// What stateful conditions have answered about the item at hand, the last in the lowest bit, behind a 1.
    private(set) var answers: UInt32 = 1
    /// What they answered when the item came before: the next is the highest of so many bits.
    private var recalled: (answers: UInt32, count: Int) = (0, 0)

    /// What a session leaves to the one that resumes it.
    struct Memory: Sendable {
        fileprivate var marks: [String: Int64]
        fileprivate var counters: [Int: Int]
        fileprivate var generator: UInt64
        /// Whose counters they are.
        fileprivate var tables: ObjectIdentifier
    }

    /// What is to be left to another session with these rules.
    func memory(of set: RuleSet) -> Memory {
        Memory(marks: marks, counters: counters, generator: generator, tables: ObjectIdentifier(set.tables))
    }

    /// Goes on where another session has ended. The counters of other rules count something else.
    mutating func resume(_ memory: Memory, with set: RuleSet) {
        marks = memory.marks
        guard memory.tables == ObjectIdentifier(set.tables) else { return }
        counters = memory.counters
        generator = memory.generator
    }

    /// Other rules are asked from now on, with counters of their own.
    mutating func forgetCounters() { counters = [:] }

    /// The state of a session that begins.
    ///
    /// - Parameter seed: What `PROBABILITY` and jitter begin with: the same seed gives the same decisions.
    init(seed: UInt64) { generator = seed }

    /// An item is judged.
    ///
    /// - Parameter answers: Of one that comes again, what ``answers`` was then; so far these are given again.
    mutating func begin(answering answers: UInt32 = 0) {
        self.answers = 1
        recalled = (answers, max(0, 31 - answers.leadingZeroBitCount))
    }

    /// Whether a stateful condition was asked about the item at hand.
    var hasAnswered: Bool { answers > 1 }

    /// What the next stateful condition answered when the item came before; nil where it is to be asked.
    mutating func recall() -> Bool? {
        guard recalled.count > 0 else { return nil }
        recalled.count -= 1
        let answer = recalled.answers >> UInt32(recalled.count) & 1 == 1
        remember(answer)
        return answer
    }

    /// Keeps the answer of a stateful condition. Of one item no more than 31 are kept.
    mutating func remember(_ answer: Bool) {
        if answers.leadingZeroBitCount > 0 { answers = answers << 1 | (answer ? 1 : 0) }
    }

    mutating func mark(_ name: String, at now: Int64) {
        if marks.count < Self.mostMarks || marks[name] != nil { marks[name] = now }
    }

    mutating func unmark(_ name: String) { marks[name] = nil }

    /// How often this counter has been asked, this time included.
    mutating func count(_ counter: Int) -> Int {
        counters[counter, default: 0] += 1
        return counters[counter] ?? 0
    }

    /// A number from 0 up to 1 (SplitMix64).
    mutating func random() -> Double {
        generator &+= 0x9E37_79B9_7F4A_7C15
        var mixed = generator
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Double((mixed ^ mixed >> 31) >> 11) * 0x1p-53
    }
}

/// How often each rule was hit, by all sessions.
final class RuleHits: Sendable {
    private let counts: Mutex<[UInt64]>

    init(count: Int) { counts = Mutex(Array(repeating: 0, count: count)) }

    var values: [UInt64] { counts.withLock { $0 } }

    /// Counts rules by their numbers.
    func count(_ rules: some Sequence<Int>) {
        counts.withLock { counts in
            for rule in rules where counts.indices.contains(rule) { counts[rule] &+= 1 }
        }
    }
}

/// What rules remember beyond sessions: rates, what was added to lists, marks of users. One lock, taken only by rules that
/// ask for it.
final class RuleTables: Sendable {
    /// Texts that rules can add to a list without a limit of its own.
    static let mostAdded = 100_000
    /// Users with marks.
    static let mostUsers = 10_000
    /// The longest text that can be added to a list or can have a separate bucket.
    static let mostTextBytes = 3072

    private struct Contents {
        var single: [Int: TokenBucket] = [:]
        var keyed: [Int: [[UInt8]: TokenBucket]] = [:]
        /// When full buckets of a rate were last looked for.
        var swept: [Int: Int64] = [:]
        var added: [Int: AddedTexts] = [:]
        var users: [[UInt8]: [String: Int64]] = [:]
    }

    /// Texts in the order in which they were added.
    private struct AddedTexts {
        var texts: Set<[UInt8]> = []
        var order: [[UInt8]] = []
        var first = 0

        mutating func add(_ text: [UInt8], limit: Int) {
            guard texts.insert(text).inserted else { return }
            order.append(text)
            while texts.count > limit {
                texts.remove(order[first])
                first += 1
            }
            if first > order.count / 2 {
                order.removeFirst(first)
                first = 0
            }
        }
    }

    private let contents = Mutex(Contents())
    private let definitions: RuleDefinitions

    init(_ definitions: RuleDefinitions) { self.definitions = definitions }

    /// Counts an event against a rate; true where there were too many.
    func isOver(_ rate: Int, _ key: [UInt8]?, at now: Int64) -> Bool {
        let definition = definitions.rates.values[rate]
        return contents.withLock { contents in
            let full = TokenBucket(definition, at: now)
            guard let key else { return !contents.single[rate, default: full].take(definition, at: now) }
            guard key.count <= Self.mostTextBytes else { return !definition.allowsOverflow }
            var buckets = contents.keyed.removeValue(forKey: rate) ?? [:]
            defer { contents.keyed[rate] = buckets }
            if buckets[key] == nil, buckets.count >= definition.entries {
                // A bucket that is full again says nothing that a new one would not.
                if contents.swept[rate].map({ now.since($0) >= 1_000_000_000 }) ?? true {
                    contents.swept[rate] = now
                    buckets = buckets.filter { !$0.value.isFull(definition, at: now) }
                }
                if buckets.count >= definition.entries {
                    guard definition.allowsOverflow else { return true }
                    buckets.removeAll()
                }
            }
            return !buckets[key, default: full].take(definition, at: now)
        }
    }

    func contains(_ list: Int, _ text: [UInt8]) -> Bool {
        let definition = definitions.lists.values[list]
        let text = definition.filtered(text)
        if definition.items.contains(text) { return true }
        return contents.withLock { $0.added[list]?.texts.contains(text) ?? false }
    }

    func add(_ text: [UInt8], to list: Int) {
        let definition = definitions.lists.values[list]
        let text = definition.filtered(text)
        guard text.count <= Self.mostTextBytes, !definition.items.contains(text) else { return }
        contents.withLock { $0.added[list, default: AddedTexts()].add(text, limit: definition.limit ?? Self.mostAdded) }
    }

    /// Marks a user, or takes the mark away where there is no time.
    func mark(_ user: [UInt8], _ name: String, at now: Int64?) {
        contents.withLock { contents in
            if now != nil {
                guard contents.users[user] != nil || contents.users.count < Self.mostUsers,
                    (contents.users[user]?.count ?? 0) < RuleState.mostMarks
                else { return }
            }
            contents.users[user, default: [:]][name] = now
            if contents.users[user]?.isEmpty == true { contents.users[user] = nil }
        }
    }

    func mark(of user: [UInt8], _ name: String) -> Int64? { contents.withLock { $0.users[user]?[name] } }
}

extension Int64 {
    /// The time since an earlier one, at most the largest number: times of a recording can be anything.
    func since(_ earlier: Int64) -> Int64 {
        let (difference, isOverflow) = subtractingReportingOverflow(earlier)
        return isOverflow ? (self < earlier ? .min : .max) : difference
    }
}

/// A token bucket as Prosody's: so many events a second, saved up for the seconds of the burst.
struct TokenBucket {
    private var tokens: Double
    private var time: Int64

    init(_ rate: RuleDefinitions.Rate, at now: Int64) {
        tokens = rate.rate * rate.burst
        time = now
    }

    private func tokens(_ rate: RuleDefinitions.Rate, at now: Int64) -> Double {
        min(rate.rate * rate.burst, tokens + rate.rate * Double(max(0, now.since(time))) / 1e9)
    }

    func isFull(_ rate: RuleDefinitions.Rate, at now: Int64) -> Bool { tokens(rate, at: now) >= rate.rate * rate.burst }

    /// Takes a token; false where there is none.
    mutating func take(_ rate: RuleDefinitions.Rate, at now: Int64) -> Bool {
        // Like Prosody's: what time has brought is added only when it is needed.
        if tokens < 1 {
            tokens = tokens(rate, at: now)
            time = max(time, now)
        }
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
