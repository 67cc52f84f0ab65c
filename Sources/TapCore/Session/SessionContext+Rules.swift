internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// The rules of a session, and the relay modes that they need.
extension SessionContext {
    /// Replaces the rules from the next item on.
    ///
    /// - Parameter isResumable: Stanzas can be sent again on another connection: the old rules decide on these.
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

    /// Holds the next stanzas; nil ends that.
    mutating func pause(_ pause: StanzaPause?) {
        guard !options.isRecorded, !options.isObserved else { return }
        if rules == nil, pause != nil { rules = SessionRules(RuleSet(), self) }
        rules?.pause = pause.map { PendingPause($0, session: number) }
        for direction in Direction.allCases { updateRelayMode(direction) }
    }

    /// Why stanzas of a direction, or of both, cannot be held; nil if they can.
    func obstacle(toPausing direction: Direction?) -> InjectionFault? {
        let obstacles = (direction.map { [$0] } ?? Direction.allCases).map { obstacle($0) }
        return obstacles.contains(nil) ? nil : obstacles.first ?? nil
    }

    /// Forgets replaced rules that are no longer needed.
    mutating func forgetEarlierRules() {
        guard let rules, !rules.earlier.isEmpty else { return }
        if let streamManagement { rules.forgetEarlier(streamManagement.ledgers) }
        for direction in Direction.allCases where !directions[direction].isHeld { updateRelayMode(direction) }
    }
}
