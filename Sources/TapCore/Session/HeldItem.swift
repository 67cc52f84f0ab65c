public import TapRecord

/// An item that is held for a person, and all that follows it in its direction: see ``Session/heldItems``.
public struct HeldItem: Sendable, Hashable {
    /// Its number within the session, from 1.
    public let number: UInt64
    /// Which way it goes.
    public let direction: Direction
    /// The whole item, as it would go out. Nothing is redacted.
    public let bytes: [UInt8]
    /// The rule that holds it; nil of one that a ``StanzaPause`` holds.
    public let rule: RulePlace?
    /// When it came.
    public let since: Run.Instant
    /// When it passes by itself, in nanoseconds of the run.
    public let deadline: Int64
}

/// Stanzas that are to be held for a person, as they come: see ``SessionInput/pause(_:)``.
public struct StanzaPause: Sendable {
    /// Stanzas that can be asked for at once.
    public static let mostStanzas = 1000

    /// Why there is no such pause.
    public struct Unusable: Error, CustomStringConvertible {
        /// Each mistake in the conditions, separated by `; `.
        public let description: String
    }

    let direction: Direction?
    let count: Int
    /// One rule with the action PAUSE; nil holds any stanza.
    let rules: RuleSet?

    /// Takes the conditions of a rule, one per line; empty text holds any stanza.
    ///
    /// - Parameters:
    ///   - direction: Nil is both.
    ///   - count: 1 to ``mostStanzas``.
    /// - Throws: ``Unusable`` for what is no condition, and for those that need what only rules are given: the time of day
    ///   and round trips.
    public init(_ direction: Direction?, count: Int = 1, conditions: String = "") throws(Unusable) {
        self.direction = direction
        self.count = count
        guard !conditions.isEmpty else {
            rules = nil
            return
        }
        let set: RuleSet
        do throws(RuleSet.LoadError) {
            set = try RuleSet([RuleSource(name: "condition", text: "\(conditions)\nPAUSE.\n")])
        } catch {
            throw Unusable(description: error.faults.map { "\($0)" }.joined(separator: "; "))
        }
        guard set.rules.count == 1, set.rules[0].steps.count == 1, set.rules[0].chain == RuleChain("both") else {
            throw Unusable(description: "only conditions can be given")
        }
        guard !set.asksTime, !set.asksRoundTrip else {
            throw Unusable(description: "TIME, DAY and ROUND TRIP can only be asked by rule files")
        }
        rules = set
    }
}

/// What becomes of an item that was held: see ``SessionInput/release(_:_:)``.
public enum HeldRelease: Sendable, Hashable {
    /// It goes on.
    case pass
    /// It goes no further.
    case drop
    /// One other whole element goes on in its place. One that cannot stand there is refused, and the item stays held.
    case replace([UInt8])
}
