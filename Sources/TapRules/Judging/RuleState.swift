internal import Synchronization
internal import TapRecord
package import XMPPCore

/// The state that rules keep for one session: marks and counters.
package struct RuleState: ~Copyable {
    /// Maximum number of marks, and of addresses with directed presence.
    static let maximumMarks = 1000

    package var marks: [String: Int64] = [:]
    /// The addresses to which the client has sent directed presence.
    private(set) package var directedPresence = DirectedPresence()
    /// The number of evaluations of each counting condition.
    package var counters: [Int: Int] = [:]
    package var generator: UInt64
    var checker = ItemChecker()
    /// The rules selected for the current item.
    package var selection = RuleSelection()
    /// The results of stateful conditions for the current item as bits: a leading 1, then one bit for each result, the
    /// last one lowest.
    private(set) package var answers: UInt32 = 1
    /// The remaining results from the first evaluation of a resent item, in the lowest `count` bits; the highest of
    /// these bits is the next result.
    private var recalled: (answers: UInt32, count: Int) = (0, 0)

    /// Creates the state of a new session.
    ///
    /// - Parameter seed: The seed of the random numbers for `PROBABILITY` and jitter: equal seeds give equal decisions.
    package init(seed: UInt64) { generator = seed }

    /// Starts the evaluation of an item.
    ///
    /// - Parameter answers: For a resent item, the value of ``answers`` after its first evaluation; its results are
    ///   reused.
    package mutating func begin(answering answers: UInt32 = 0) {
        self.answers = 1
        recalled = (answers, max(0, 31 - answers.leadingZeroBitCount))
    }

    /// Whether a stateful condition was evaluated for the current item.
    package var hasAnswered: Bool { answers > 1 }

    /// Returns the next result from the first evaluation of a resent item; nil if the condition must be evaluated.
    mutating func recall() -> Bool? {
        guard recalled.count > 0 else { return nil }
        recalled.count -= 1
        let answer = recalled.answers >> UInt32(recalled.count) & 1 == 1
        remember(answer)
        return answer
    }

    /// Stores the result of a stateful condition, up to 31 for one item.
    mutating func remember(_ answer: Bool) {
        if answers.leadingZeroBitCount > 0 { answers = answers << 1 | (answer ? 1 : 0) }
    }

    mutating func mark(_ name: String, at now: Int64) {
        if marks.count < Self.maximumMarks || marks[name] != nil { marks[name] = now }
    }

    mutating func unmark(_ name: String) { marks[name] = nil }

    /// Records that the client sends or ends directed presence with a stanza that is forwarded to the server.
    ///
    /// - Parameter bytes: The stanza.
    package mutating func observePresence(_ head: StanzaHead, _ bytes: Span<UInt8>) {
        guard head.kind == .presence else { return }
        let isAvailable = head.type == nil
        guard isAvailable || bytes.slice(head.type?.range ?? .empty).equals("unavailable") else { return }
        if let to = head.to?.text(in: bytes) {
            guard to.utf8.count <= DirectedPresence.maximumAddressBytes else { return }
            let address = RuleAddress(to).full
            if isAvailable { directedPresence.insert(address) } else { directedPresence.remove(address) }
        } else if !isAvailable {
            directedPresence = DirectedPresence()
        }
    }

    /// Restores the state of an earlier session when the client resumes it.
    package mutating func resume(marks: [String: Int64], directedPresence: DirectedPresence) {
        self.marks = marks
        self.directedPresence = directedPresence
    }

    /// Increments a counter and returns its value.
    mutating func count(_ counter: Int) -> Int {
        counters[counter, default: 0] += 1
        return counters[counter] ?? 0
    }

    /// Returns a random number in 0..<1 (SplitMix64).
    mutating func random() -> Double {
        generator &+= 0x9E37_79B9_7F4A_7C15
        var mixed = generator
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Double((mixed ^ mixed >> 31) >> 11) * 0x1p-53
    }
}

/// The prepared addresses to which a client has sent directed presence, bounded in number and bytes.
package struct DirectedPresence: Sendable, Hashable {
    /// The longest address in bytes (RFC 7622 §3.1: three parts of 1023 bytes, and two separators).
    static let maximumAddressBytes = 3071
    /// Maximum number of bytes of all addresses.
    static let maximumBytes = 256 << 10

    private var addresses: Set<[UInt8]> = []
    /// The number of bytes of all addresses.
    private(set) package var byteCount = 0

    package init() {}

    package var count: Int { addresses.count }

    func contains(_ address: [UInt8]) -> Bool { addresses.contains(address) }

    /// Adds an address, if it is not too long and there is space.
    mutating func insert(_ address: [UInt8]) {
        guard address.count <= Self.maximumAddressBytes, addresses.count < RuleState.maximumMarks,
            byteCount + address.count <= Self.maximumBytes, addresses.insert(address).inserted
        else { return }
        byteCount += address.count
    }

    mutating func remove(_ address: [UInt8]) {
        if addresses.remove(address) != nil { byteCount -= address.count }
    }
}

/// The number of hits of each rule in all sessions.
final class RuleHits: Sendable {
    private let counts: Mutex<[UInt64]>

    init(count: Int) { counts = Mutex(Array(repeating: 0, count: count)) }

    var values: [UInt64] { counts.withLock { $0 } }

    /// Counts a hit for each rule number.
    func count(_ rules: some Sequence<Int>) {
        counts.withLock { counts in
            for rule in rules where counts.indices.contains(rule) { counts[rule] &+= 1 }
        }
    }
}

/// The state that rules share between sessions: rates, additions to lists, marks of users. Each has its own lock.
final class RuleTables: Sendable {
    /// Maximum number of texts that rules can add to a list without `limit`.
    static let maximumAdded = 100_000
    /// Maximum number of users with marks.
    static let maximumUsers = 10_000
    /// Maximum size of a text in a list or of `LIMIT … on`, in bytes.
    static let maximumTextBytes = 3072

    /// The tables of all definitions; `rates` and `lists` are indexed by the numbers of the definitions.
    private struct Tables {
        var rates: [RateBuckets]
        var lists: [AddedTexts]
        var marks: UserMarks
        var created: CreatedStanzas
    }

    /// The number of evaluations of each shared counting condition.
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

    /// Takes over the state of earlier rules for unchanged definitions. Both rule sets share this state, because
    /// running sessions may still use the earlier rules.
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

    /// Counts an event; returns true if it exceeds the rate.
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
        guard text.count <= Self.maximumTextBytes, !definition.items.contains(text) else { return }
        tables.withLock { $0.lists[list] }.add(text, limit: definition.limit ?? Self.maximumAdded)
    }

    /// Increments a shared counter and returns its value.
    func count(_ counter: Int) -> Int {
        counters.withLock { counters in
            counters[counter, default: 0] += 1
            return counters[counter] ?? 0
        }
    }

    /// Stanzas that rules have created and that a server may deliver to a session.
    var created: CreatedStanzas { tables.withLock { $0.created } }

    /// Sets the mark of a user, or removes it if `now` is nil.
    func mark(_ user: [UInt8], _ name: String, at now: Int64?) {
        tables.withLock { $0.marks }.mark(user, name, at: now)
    }

    func mark(of user: [UInt8], _ name: String) -> Int64? { tables.withLock { $0.marks }.mark(of: user, name) }
}

/// The token buckets of a rate.
private final class RateBuckets: Sendable {
    private struct Contents {
        var single: TokenBucket?
        var keyed: [[UInt8]: TokenBucket] = [:]
        /// The time of the last removal of full buckets.
        var swept: Int64?
    }

    private let contents = Mutex(Contents())

    func isOver(_ rate: RuleDefinitions.Rate, _ key: [UInt8]?, at now: Int64) -> Bool {
        contents.withLock { contents in
            let full = TokenBucket(rate, at: now)
            guard let key else {
                var bucket = contents.single ?? full
                defer { contents.single = bucket }
                return !bucket.consumeToken(rate, at: now)
            }
            guard key.count <= RuleTables.maximumTextBytes else { return !rate.allowsOverflow }
            if contents.keyed[key] == nil, contents.keyed.count >= rate.entries {
                // Full buckets are removed, because they are equivalent to new ones.
                if contents.swept.map({ now.since($0) >= 1_000_000_000 }) ?? true {
                    contents.swept = now
                    contents.keyed = contents.keyed.filter { !$0.value.isFull(rate, at: now) }
                }
                if contents.keyed.count >= rate.entries {
                    guard rate.allowsOverflow else { return true }
                    contents.keyed.removeAll()
                }
            }
            return !contents.keyed[key, default: full].consumeToken(rate, at: now)
        }
    }
}

/// Texts that rules have added to a list, in order of addition.
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

/// Marks of users with the time at which they were set.
private final class UserMarks: Sendable {
    private let users = Mutex<[[UInt8]: [String: Int64]]>([:])

    func mark(_ user: [UInt8], _ name: String, at now: Int64?) {
        users.withLock { users in
            if now != nil {
                guard user.count <= RuleTables.maximumTextBytes,
                    users[user] != nil || users.count < RuleTables.maximumUsers,
                    (users[user]?.count ?? 0) < RuleState.maximumMarks || users[user]?[name] != nil
                else { return }
            }
            users[user, default: [:]][name] = now
            if users[user]?.isEmpty == true { users[user] = nil }
        }
    }

    func mark(of user: [UInt8], _ name: String) -> Int64? { users.withLock { $0[user]?[name] } }
}

extension Int64 {
    /// Returns the time since an earlier one; saturates, because recordings can contain any timestamps.
    func since(_ earlier: Int64) -> Int64 {
        let (difference, isOverflow) = subtractingReportingOverflow(earlier)
        return isOverflow ? (self < earlier ? .min : .max) : difference
    }
}

/// A token bucket as in Prosody: `rate` events per second, accumulated for up to `burst` seconds.
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

    /// Takes a token; returns false if there is none.
    mutating func consumeToken(_ rate: RuleDefinitions.Rate, at now: Int64) -> Bool {
        // As in Prosody, tokens are replenished only when there are none left.
        if tokens < 1 {
            tokens = tokens(rate, at: now)
            time = max(time, now)
        }
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }
}
