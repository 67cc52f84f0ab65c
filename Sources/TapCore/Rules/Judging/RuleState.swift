internal import Synchronization
internal import TapRecord
internal import XMPPCore

/// What rules remember of one session: its marks, and how often a rule was asked.
struct RuleState: ~Copyable {
    /// Most marks of a session.
    static let mostMarks = 1000

    var marks: [String: Int64] = [:]
    /// Addresses to which the client has sent directed presence, prepared.
    private(set) var directedPresence: Set<[UInt8]> = []
    /// How often each counter of the rules was asked.
    var counters: [Int: Int] = [:]
    var generator: UInt64
    var checker = ItemChecker()
    /// Which rules are asked about the item at hand.
    var selection = RuleSelection()
    /// What stateful conditions have answered about the item at hand, the last in the lowest bit, behind a 1.
    private(set) var answers: UInt32 = 1
    /// What they answered when the item came before: the next is the highest of so many bits.
    private var recalled: (answers: UInt32, count: Int) = (0, 0)

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

    /// Takes note of presence that the client has sent to an address, or of its end.
    mutating func notePresence(to address: [UInt8], isAvailable: Bool) {
        guard isAvailable else { return _ = directedPresence.remove(address) }
        if directedPresence.count < Self.mostMarks { directedPresence.insert(address) }
    }

    /// Presence is no longer shown to anybody.
    mutating func endPresence() { directedPresence = [] }

    /// Restores the state of the session that this one resumes.
    mutating func resume(marks: [String: Int64], directedPresence: Set<[UInt8]>) {
        self.marks = marks
        self.directedPresence = directedPresence
    }

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

/// What rules remember beyond sessions: rates, what was added to lists, marks of users. Each has a lock, taken only by rules
/// that ask for it.
final class RuleTables: Sendable {
    /// The most texts that rules can add to a list without `limit`.
    static let mostAdded = 100_000
    /// The most users with marks.
    static let mostUsers = 10_000
    /// The longest text of a list or of `LIMIT … on`, in bytes.
    static let mostTextBytes = 3072

    /// By the numbers of the definitions.
    private struct Tables {
        var rates: [RateBuckets]
        var lists: [AddedTexts]
        var marks: UserMarks
        var created: CreatedStanzas
    }

    /// How often each counter that all sessions share was asked.
    private let counters = Mutex<[Int: Int]>([:])

    private let tables: Mutex<Tables>
    private let definitions: RuleDefinitions

    init(_ definitions: RuleDefinitions) {
        self.definitions = definitions
        tables = Mutex(
            Tables(
                rates: definitions.rates.values.map { _ in RateBuckets() },
                lists: definitions.lists.values.map { _ in AddedTexts() },
                marks: UserMarks(),
                created: CreatedStanzas()
            )
        )
    }

    /// Goes on with what the rules of before remember, as far as it is defined by the same words. Both share it while sessions
    /// still ask those.
    func share(with earlier: RuleTables) {
        let old = earlier.tables.withLock { $0 }
        tables.withLock { tables in
            tables.marks = old.marks
            tables.created = old.created
            for (number, name) in definitions.rates.names.enumerated() {
                guard let same = earlier.definitions.rates.index(of: name),
                    earlier.definitions.rates.values[same].source == definitions.rates.values[number].source
                else { continue }
                tables.rates[number] = old.rates[same]
            }
            for (number, name) in definitions.lists.names.enumerated() {
                guard let same = earlier.definitions.lists.index(of: name),
                    earlier.definitions.lists.values[same].source == definitions.lists.values[number].source
                else { continue }
                tables.lists[number] = old.lists[same]
            }
        }
    }

    /// Counts an event against a rate; true where there were too many.
    func isOver(_ rate: Int, _ key: [UInt8]?, at now: Int64) -> Bool {
        tables.withLock { $0.rates[rate] }.isOver(definitions.rates.values[rate], key, at: now)
    }

    func contains(_ list: Int, _ text: [UInt8]) -> Bool {
        let definition = definitions.lists.values[list]
        let text = definition.filtered(text)
        return definition.items.contains(text) || tables.withLock { $0.lists[list] }.contains(text)
    }

    func add(_ text: [UInt8], to list: Int) {
        let definition = definitions.lists.values[list]
        let text = definition.filtered(text)
        guard text.count <= Self.mostTextBytes, !definition.items.contains(text) else { return }
        tables.withLock { $0.lists[list] }.add(text, limit: definition.limit ?? Self.mostAdded)
    }

    /// How often this counter has been asked by all sessions, this time included.
    func count(_ counter: Int) -> Int {
        counters.withLock { counters in
            counters[counter, default: 0] += 1
            return counters[counter] ?? 0
        }
    }

    /// Stanzas that rules have created and that may come back from a server.
    var created: CreatedStanzas { tables.withLock { $0.created } }

    /// Marks a user, or takes the mark away where there is no time.
    func mark(_ user: [UInt8], _ name: String, at now: Int64?) {
        tables.withLock { $0.marks }.mark(user, name, at: now)
    }

    func mark(of user: [UInt8], _ name: String) -> Int64? { tables.withLock { $0.marks }.mark(of: user, name) }
}

/// What was taken from a rate.
private final class RateBuckets: Sendable {
    private struct Contents {
        var single: TokenBucket?
        var keyed: [[UInt8]: TokenBucket] = [:]
        /// When full buckets were last looked for.
        var swept: Int64?
    }

    private let contents = Mutex(Contents())

    func isOver(_ rate: RuleDefinitions.Rate, _ key: [UInt8]?, at now: Int64) -> Bool {
        contents.withLock { contents in
            let full = TokenBucket(rate, at: now)
            guard let key else {
                var bucket = contents.single ?? full
                defer { contents.single = bucket }
                return !bucket.take(rate, at: now)
            }
            guard key.count <= RuleTables.mostTextBytes else { return !rate.allowsOverflow }
            if contents.keyed[key] == nil, contents.keyed.count >= rate.entries {
                // A bucket that is full again says nothing that a new one would not.
                if contents.swept.map({ now.since($0) >= 1_000_000_000 }) ?? true {
                    contents.swept = now
                    contents.keyed = contents.keyed.filter { !$0.value.isFull(rate, at: now) }
                }
                if contents.keyed.count >= rate.entries {
                    guard rate.allowsOverflow else { return true }
                    contents.keyed.removeAll()
                }
            }
            return !contents.keyed[key, default: full].take(rate, at: now)
        }
    }
}

/// Texts that were added to a list, in this order.
private final class AddedTexts: Sendable {
    private struct Contents {
        var texts: Set<[UInt8]> = []
        var order: [[UInt8]] = []
        var first = 0
    }

    private let contents = Mutex(Contents())

    func contains(_ text: [UInt8]) -> Bool { contents.withLock { $0.texts.contains(text) } }

    func add(_ text: [UInt8], limit: Int) {
        contents.withLock { contents in
            guard contents.texts.insert(text).inserted else { return }
            contents.order.append(text)
            while contents.texts.count > limit {
                contents.texts.remove(contents.order[contents.first])
                contents.first += 1
            }
            if contents.first > contents.order.count / 2 {
                contents.order.removeFirst(contents.first)
                contents.first = 0
            }
        }
    }
}

/// Marks of users, and when they were set.
private final class UserMarks: Sendable {
    private let users = Mutex<[[UInt8]: [String: Int64]]>([:])

    func mark(_ user: [UInt8], _ name: String, at now: Int64?) {
        users.withLock { users in
            if now != nil {
                guard users[user] != nil || users.count < RuleTables.mostUsers,
                    (users[user]?.count ?? 0) < RuleState.mostMarks
                else { return }
            }
            users[user, default: [:]][name] = now
            if users[user]?.isEmpty == true { users[user] = nil }
        }
    }

    func mark(of user: [UInt8], _ name: String) -> Int64? { users.withLock { $0[user]?[name] } }
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
