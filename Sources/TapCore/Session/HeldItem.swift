package import TapRecord
package import TapRules

/// An item that is held for the user, as are all later items of its direction: see ``Session/heldItems``.
package struct HeldItem: Sendable, Hashable {
    /// The number of the item within the session, from 1.
    package let number: UInt64
    /// The direction of the item.
    package let direction: Direction
    /// The whole item, as it would be forwarded. It is not redacted.
    package let bytes: [UInt8]
    /// The rule that holds the item; nil if a ``StanzaPause`` holds it.
    package let rule: RulePlace?
    /// The time at which the item arrived.
    package let since: Run.Instant
    /// The time at which the item is forwarded automatically, in nanoseconds of the run.
    package let deadline: Int64
}

/// A request to hold stanzas for the user on arrival: see ``SessionInput/pause(_:)``.
package struct StanzaPause: Sendable {
    /// The largest number of stanzas in one request.
    package static let maximumStanzas = 1000

    /// The error for conditions of a pause that are invalid.
    package struct Unusable: Error, CustomStringConvertible {
        /// The mistakes in the conditions, separated by `; `.
        package let description: String
    }

    let direction: Direction?
    let count: Int
    /// A rule set with one rule that has the action PAUSE; nil holds every stanza.
    let rules: RuleSet?

    /// Creates a pause from the conditions of a rule, one per line; an empty text holds every stanza.
    ///
    /// - Parameters:
    ///   - direction: The direction of the stanzas; nil for both directions.
    ///   - count: The number of stanzas to hold, from 1 to ``maximumStanzas``.
    /// - Throws: ``Unusable`` for invalid conditions, and for conditions that only rule files support: the time of day
    ///   and round trips.
    package init(_ direction: Direction?, count: Int = 1, conditions: String = "") throws(Unusable) {
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
        guard set.isOneAction else {
            throw Unusable(description: "only conditions can be given")
        }
        guard !set.needsTime, !set.needsRoundTrip else {
            throw Unusable(description: "TIME, DAY and ROUND TRIP can only be asked by rule files")
        }
        rules = set
    }
}

/// What to do with a held item: see ``SessionInput/release(_:_:)``.
package enum HeldRelease: Sendable, Hashable {
    /// Forward the item.
    case pass
    /// Drop the item.
    case drop
    /// Forward this whole element instead. If it cannot replace the item, the request is refused, and the item stays
    /// held.
    case replace([UInt8])
}
