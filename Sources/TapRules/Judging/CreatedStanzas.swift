internal import Synchronization
package import XMPPCore

/// Stanzas that rules have created (`REPLY`, `COPY`, `FORWARD`, `REDIRECT`, `UNSUBSCRIBE SENDER`) and that a server may
/// deliver to a session.
///
/// Prevents two kinds of loops. A delivered stanza is not evaluated by the rules that created it, so that two clients
/// of one proxy do not answer each other forever. And the rate of identical stanzas of a rule is limited, because a
/// loop may include another proxy.
final class CreatedStanzas: Sendable {
    /// The parts of a stanza that servers do not change.
    struct Key: Hashable {
        var kind: StanzaHead.Kind
        var type: [UInt8]
        var id: [UInt8]
        /// The bare JID.
        var from: [UInt8]
        /// The bare JID.
        var to: [UInt8]
        /// The text of the body; empty if the stanza has an id.
        var body: [UInt8]
    }

    private struct Entry {
        /// The rules that created the stanza, and the rules that created the stanza that triggered them.
        var rules: [RulePlace]
        /// Number of times that the stanza was created.
        var count: Int
        /// Number of deliveries per session.
        var seen: [UInt64: Int] = [:]
        var time: Int64
    }

    private struct Contents {
        var entries: [Key: Entry] = [:]
        var buckets: [Bucket: TokenBucket] = [:]
    }

    private struct Bucket: Hashable {
        var rule: RulePlace
        /// The sender of the stanza that triggered the rule, as written.
        var sender: [UInt8]
        var key: Key
    }

    /// The rate limit for identical stanzas that one rule creates for one sender.
    static let rate = RuleDefinitions.Rate(rate: 1, burst: 20)
    /// How long a created stanza is remembered, in nanoseconds.
    static let lifetime: Int64 = 60_000_000_000
    /// Maximum number of distinct remembered stanzas.
    static let maximumCount = 4096

    private let contents = Mutex(Contents())

    /// Records a stanza that a rule creates; returns false if the rate limit is exceeded.
    ///
    /// - Parameters:
    ///   - sender: The sender of the stanza that triggered the rule.
    ///   - origins: The rules that created the triggering stanza; empty if a peer created it.
    func create(_ key: Key, by rule: RulePlace, for sender: [UInt8], _ origins: [RulePlace], at now: Int64) -> Bool {
        contents.withLock { contents in
            if contents.entries.count >= Self.maximumCount || contents.buckets.count >= Self.maximumCount {
                contents.entries = contents.entries.filter { now.since($0.value.time) < Self.lifetime }
                contents.buckets = contents.buckets.filter { !$0.value.isFull(Self.rate, at: now) }
            }
            let bucket = Bucket(rule: rule, sender: sender, key: key)
            if contents.buckets[bucket] != nil || contents.buckets.count < Self.maximumCount {
                let full = TokenBucket(Self.rate, at: now)
                guard contents.buckets[bucket, default: full].consumeToken(Self.rate, at: now) else { return false }
            }
            guard contents.entries[key] != nil || contents.entries.count < Self.maximumCount else { return true }
            var entry = contents.entries[key] ?? Entry(rules: [], count: 0, time: now)
            if now.since(entry.time) >= Self.lifetime { entry = Entry(rules: [], count: 0, time: now) }
            for rule in [rule] + origins where !entry.rules.contains(rule) { entry.rules.append(rule) }
            entry.count += 1
            entry.time = now
            contents.entries[key] = entry
            return true
        }
    }

    /// Returns the rules that created a stanza that a session receives; empty if no rule did. A session counts at most
    /// one delivery for each creation.
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

extension RuleEvaluation {
    /// Returns the properties that identify a stanza after delivery by a server.
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
    /// Records a stanza that a rule creates; returns false if the rate limit is exceeded.
    package func create(
        _ item: RuleItem,
        tree: () -> Element?,
        by rule: RulePlace,
        for sender: [UInt8],
        _ origins: [RulePlace],
        context: RuleContext
    ) -> Bool {
        var judgement = RuleEvaluation(self, item, context)
        return tables.created.create(judgement.createdKey(tree), by: rule, for: sender, origins, at: context.now)
    }
}
