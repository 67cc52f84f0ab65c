internal import Synchronization
internal import XMPPCore

/// Stanzas that rules have created (`REPLY`, `COPY`, `FORWARD`, `REDIRECT`, `UNSUBSCRIBE SENDER`), as a server delivers them.
///
/// Two uses. A stanza that comes back is not given to the rules that have created it, so that two clients of one proxy do not
/// answer each other for ever. And a rule that creates the same stanza again and again is stopped: the loop may lead through
/// another proxy, which does not know of it.
final class CreatedStanzas: Sendable {
    /// The parts of a stanza that a server does not change.
    struct Key: Hashable {
        var kind: StanzaHead.Kind
        var type: [UInt8]
        var id: [UInt8]
        /// Bare.
        var from: [UInt8]
        /// Bare.
        var to: [UInt8]
        /// The text of the body. Empty if an id tells stanzas apart.
        var body: [UInt8]
    }

    private struct Entry {
        /// The rules that have created it, and those that created the stanzas it goes back to.
        var rules: [RulePlace]
        /// How many of it were created.
        var count: Int
        /// How many of it each session has seen.
        var seen: [UInt64: Int] = [:]
        var time: Int64
    }

    private struct Contents {
        var entries: [Key: Entry] = [:]
        var buckets: [Bucket: TokenBucket] = [:]
    }

    private struct Bucket: Hashable {
        var rule: RulePlace
        /// The sender of the stanza that the rule was asked about, as written.
        var sender: [UInt8]
        var key: Key
    }

    /// Equal stanzas that one rule creates for one sender: so many at once, and so many each second.
    static let rate = RuleDefinitions.Rate(rate: 1, burst: 20)
    /// How long a stanza is known, in nanoseconds.
    static let lifetime: Int64 = 60_000_000_000
    /// The most different stanzas that are known.
    static let most = 4096

    private let contents = Mutex(Contents())

    /// Takes note of a stanza that a rule creates; false if it has created the same one too often.
    ///
    /// - Parameters:
    ///   - sender: The sender of the stanza that the rule was asked about.
    ///   - origins: The rules that have created that.
    func create(_ key: Key, by rule: RulePlace, for sender: [UInt8], _ origins: [RulePlace], at now: Int64) -> Bool {
        contents.withLock { contents in
            if contents.entries.count >= Self.most || contents.buckets.count >= Self.most {
                contents.entries = contents.entries.filter { now.since($0.value.time) < Self.lifetime }
                contents.buckets = contents.buckets.filter { !$0.value.isFull(Self.rate, at: now) }
            }
            let bucket = Bucket(rule: rule, sender: sender, key: key)
            if contents.buckets[bucket] != nil || contents.buckets.count < Self.most {
                let full = TokenBucket(Self.rate, at: now)
                guard contents.buckets[bucket, default: full].take(Self.rate, at: now) else { return false }
            }
            guard contents.entries[key] != nil || contents.entries.count < Self.most else { return true }
            var entry = contents.entries[key] ?? Entry(rules: [], count: 0, time: now)
            if now.since(entry.time) >= Self.lifetime { entry = Entry(rules: [], count: 0, time: now) }
            for rule in [rule] + origins where !entry.rules.contains(rule) { entry.rules.append(rule) }
            entry.count += 1
            entry.time = now
            contents.entries[key] = entry
            return true
        }
    }

    /// The rules that have created a stanza that a session meets. It meets each created stanza once.
    func rules(of key: Key, session: UInt64, at now: Int64) -> [RulePlace] {
        contents.withLock { contents in
            guard let entry = contents.entries[key], now.since(entry.time) < Self.lifetime,
                entry.seen[session, default: 0] < entry.count
            else { return [] }
            contents.entries[key]?.seen[session, default: 0] += 1
            return entry.rules
        }
    }

    var isEmpty: Bool { contents.withLock { $0.entries.isEmpty } }
}

extension Judgement {
    /// What tells a stanza apart from others when a server has delivered it.
    mutating func createdKey(_ tree: () -> Element?) -> CreatedStanzas.Key {
        let id = attribute(.id) ?? []
        let body = id.isEmpty ? element(tree)?.firstChild { $0.isNamed("body") }?.plainText : nil
        let (from, to) = (address(.from)?.bare, address(.to)?.bare)
        return CreatedStanzas.Key(
            kind: item.head.kind,
            type: attribute(.type) ?? [],
            id: id,
            from: from ?? [],
            to: to ?? [],
            body: body ?? []
        )
    }
}

extension RuleSet {
    /// Takes note of a stanza that a rule creates; false if it has created the same one too often.
    func create(
        _ item: RuleItem,
        tree: () -> Element?,
        by rule: RulePlace,
        for sender: [UInt8],
        _ origins: [RulePlace],
        context: RuleContext
    ) -> Bool {
        var judgement = Judgement(self, item, context)
        return tables.created.create(judgement.createdKey(tree), by: rule, for: sender, origins, at: context.now)
    }
}
