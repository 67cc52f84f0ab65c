internal import TapRecord
import XMPPCore

/// What a session has of rules.
///
/// A class that a session has only where there are rules: of others it is one empty reference.
final class SessionRules {
    var set: RuleSet
    var state: RuleState

    init(_ set: RuleSet, seed: UInt64) {
        self.set = set
        state = RuleState(seed: seed)
    }
}
