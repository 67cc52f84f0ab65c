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
    /// The pause that holds the item; nil if a rule holds it.
    package let pause: StanzaPause.Description?
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

    /// The user of a pause.
    package enum Owner: Sendable, Hashable {
        /// The control socket. The pause lasts until its stanzas have come, or until it is ended.
        case control
        /// The page in the browser. The pause also ends with the last page.
        case page
    }

    /// A pause as the user sees it.
    package struct Description: Sendable, Hashable {
        /// The user of the pause.
        package let owner: Owner
        /// The direction of the stanzas; nil for both directions.
        package let direction: Direction?
        /// The conditions or the filter as typed; empty if every stanza is held.
        package let text: String
        /// Whether ``text`` is a filter.
        package let isFilter: Bool
    }

    /// A pause with stanzas left to hold.
    package struct Pending: Sendable, Hashable {
        /// The pause as the user sees it.
        package let pause: Description
        /// The number of stanzas that are still to be held.
        package let left: Int
    }

    /// The pause as the user sees it.
    package let description: Description
    let count: Int
    /// A rule set with one rule that has the action PAUSE; nil without conditions.
    let rules: RuleSet?
    /// The filter for the stanzas; nil if there is none.
    let filter: RecordFilter?

    var direction: Direction? { description.direction }

    /// Creates a pause that holds the stanzas that a filter selects.
    ///
    /// - Parameters:
    ///   - direction: The direction of the stanzas; nil for both directions.
    ///   - count: The number of stanzas to hold, from 1 to ``maximumStanzas``.
    ///   - owner: The user of the pause.
    /// - Throws: ``FilterFault`` if the filter has a condition on what becomes known after a stanza has arrived.
    package init(
        _ direction: Direction?,
        count: Int = 1,
        filter: RecordFilter,
        owner: Owner = .control
    ) throws(FilterFault) {
        if let fault = filter.laterCondition { throw fault }
        description = Description(owner: owner, direction: direction, text: filter.text, isFilter: true)
        self.count = count
        self.filter = filter
        rules = nil
    }

    /// Creates a pause from the conditions of a rule, one per line; an empty text holds every stanza.
    ///
    /// - Parameters:
    ///   - direction: The direction of the stanzas; nil for both directions.
    ///   - count: The number of stanzas to hold, from 1 to ``maximumStanzas``.
    ///   - owner: The user of the pause.
    /// - Throws: ``Unusable`` for invalid conditions, and for conditions that only rule files support: the time of day
    ///   and round trips.
    package init(
        _ direction: Direction?,
        count: Int = 1,
        conditions: String = "",
        owner: Owner = .control
    ) throws(Unusable) {
        description = Description(owner: owner, direction: direction, text: conditions, isFilter: false)
        self.count = count
        filter = nil
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
