package import TapRecord
internal import XMPPCore

/// The result of evaluating rules for one item.
package struct Verdict {
    /// The decision about the item itself.
    package enum Decision: Equatable {
        /// The item is forwarded, as ``Verdict/edited`` if that is set.
        case pass
        /// The item is dropped. Replies to it are among the actions.
        case drop
        /// The item triggers a fault of the connection.
        case fault(RuleFaultAction)
    }

    /// A side effect.
    package enum Action: Equatable {
        /// xmpptap sends a stanza in this direction.
        case inject(Direction, [UInt8], Injection)
        /// The item is delayed, in nanoseconds.
        case delay(Int64)
        /// Copies of the item are sent after it.
        case duplicate(Int)
        /// The item is held until the user releases it.
        case pause
        /// A fault that does not stop the item.
        case fault(RuleFaultAction)
        case log(Level, String)
        /// Whether the item is recorded.
        case record(Bool)
        /// The level of the item's record.
        case level(Level)
        /// Redacts the path in the record; the stream is not changed.
        case redact(StanzaPath)
    }

    /// The reason for injecting a stanza.
    package enum Injection: String {
        case bounce, reply, redirect, copy, forward, unsubscribe
    }

    /// A problem with an action, logged at level warn.
    package enum Remark: Equatable {
        /// The edit was refused because its result is invalid.
        case editRefused(String)
        /// The stanza is encrypted or signed end to end; the receiver can detect the edit.
        case opaque
        /// An iq request was dropped; its sender gets no response.
        case blackhole
        /// A pattern exceeded the step limit; the rule or the replacement is skipped.
        case tooComplex
        /// The limit ``RuleSet/maximumRules`` was reached; the remaining rules were skipped.
        case tooManyRules
        /// The rule has sent the same stanza too often.
        case loop
        /// The action does not apply to the item.
        case notHere(String)
    }

    /// A rule with true conditions.
    package struct Hit: Equatable {
        /// The number of the rule in the rule set.
        var rule: Int
        package var place: RulePlace
        package var isTraced: Bool
        /// The source text of the rule's conditions.
        package var conditions: [String]
    }

    package var decision = Decision.pass
    /// The rule that decided; nil if the item passes because no rule decided.
    package var decidedBy: RulePlace?
    /// The edited item; nil if it is unedited.
    package var edited: [UInt8]?
    /// The rule that edited the item last.
    package var editedBy: RulePlace?
    /// The actions in order, each with its rule.
    package var actions: [(place: RulePlace, action: Action)] = []
    package var hits: [Hit] = []
    package var remarks: [(place: RulePlace, remark: Remark)] = []
    /// The rules that created the stanza; empty if no rule did.
    package var origins: [RulePlace] = []
    /// Tags of `TAG TRACE`.
    package var tags: [String] = []
}
