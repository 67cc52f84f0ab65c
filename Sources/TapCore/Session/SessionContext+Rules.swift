internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Manages the rules of a session, and the relay modes that the rules require.
extension SessionContext {
    /// Replaces the rules from the next item on.
    ///
    /// - Parameter isResumable: Whether stanzas can be retransmitted on another connection. The old rules are kept to
    ///   decide on these.
    mutating func replaceRules(by set: RuleSet?, isResumable: Bool) {
        guard !options.isRecorded, !options.isObserved else { return }
        if let rules {
            rules.replace(by: set ?? RuleSet(), isResumable ? streamManagement?.ledgers : nil)
        } else if let set {
            rules = SessionRules(set, self, localTime: options.rules?.localTime)
        }
        for direction in Direction.allCases {
            rules?.shape(direction, nil, &self)
            updateRelayMode(direction)
        }
    }

    /// Holds the next stanzas; nil ends the pause.
    mutating func pause(_ pause: StanzaPause?) {
        guard !options.isRecorded, !options.isObserved else { return }
        if rules == nil, pause != nil { rules = SessionRules(RuleSet(), self) }
        rules?.pause = pause.map { PendingPause($0, session: number) }
        for direction in Direction.allCases { updateRelayMode(direction) }
    }

    /// Returns why stanzas of a direction, or of both directions for nil, cannot be held; nil if they can be held in at
    /// least one.
    func obstacle(toPausing direction: Direction?) -> InjectionFault? {
        let obstacles = (direction.map { [$0] } ?? Direction.allCases).map { obstacle($0) }
        return obstacles.contains(nil) ? nil : obstacles.first ?? nil
    }

    /// Removes replaced rules that are no longer needed.
    mutating func forgetEarlierRules() {
        guard let rules, !rules.earlier.isEmpty else { return }
        if let streamManagement { rules.forgetEarlier(streamManagement.ledgers) }
        for direction in Direction.allCases where !directions[direction].isHeld { updateRelayMode(direction) }
    }
}
