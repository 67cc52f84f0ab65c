internal import Synchronization

/// A rule with its number of hits in all sessions.
package struct RuleStatus: Sendable, Hashable {
    /// The place of the rule.
    package let place: RulePlace
    /// How often the conditions of the rule were true.
    package let hits: UInt64
    /// Whether the rule is evaluated.
    package let isOn: Bool
}

/// Which rules of a set are evaluated; all sessions share it.
final class RuleSwitches: Sendable {
    private final class Switch: Sendable { let isOn = Atomic(true) }

    private let switches: [Switch]
    private let hasChanged = Atomic(false)

    init(count: Int) { switches = (0..<count).map { _ in Switch() } }

    /// Whether a rule was ever switched. The results of conditions that were stored before may be those of other rules.
    var wereUsed: Bool { hasChanged.load(ordering: .relaxed) }

    /// Returns whether a rule is evaluated. The number must be that of a rule.
    func isOn(_ rule: Int) -> Bool { switches[rule].isOn.load(ordering: .relaxed) }

    func set(_ rule: Int, _ isOn: Bool) {
        hasChanged.store(true, ordering: .relaxed)
        switches[rule].isOn.store(isOn, ordering: .relaxed)
    }
}
