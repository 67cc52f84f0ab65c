public import TapRecord
import XMPPCore

// Rule files: the last word on each item.
extension Session {
    /// Items that a rule holds for a person, the oldest first.
    public var heldItems: [HeldItem] { [] }

    /// Asks other rules from the next item on.
    mutating func replaceRules(by set: RuleSet?) {
        guard recording == nil else { return }
        rules = set.map { SessionRules($0, seed: number) }
    }

    /// A person has decided on an item that is held.
    mutating func releaseHeld(_ number: UInt64, _ release: HeldRelease) {
        note(.note, .warn, code: "not-held", "no stanza with the number \(number) is held", part: .rules)
    }
}
