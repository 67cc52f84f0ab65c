internal import TapRecord
internal import XMPPCore

/// What rules say of one item.
struct Verdict {
    /// What happens to the item itself.
    enum Fate: Equatable {
        /// It goes on, as ``Verdict/edited`` where there is that.
        case pass
        /// It goes no further. What answers it is among the actions.
        case drop
        /// It breaks the session in this way.
        case fault(RuleFaultAction)
    }

    /// Something to be done beside that.
    enum Action: Equatable {
        /// xmpptap sends a stanza in this direction.
        case inject(Direction, [UInt8], Injection)
        /// The item waits so many nanoseconds.
        case delay(Int64)
        /// So many copies follow it.
        case duplicate(Int)
        /// It waits for a person.
        case pause
        /// A fault that the item survives.
        case fault(RuleFaultAction)
        case log(Level, String)
        /// The item's record is made, or not.
        case record(Bool)
        /// The level of its record.
        case level(Level)
        /// What its record does not show; the wire is not changed.
        case redact(StanzaPath)
    }

    /// Why a stanza is injected.
    enum Injection: String {
        case bounce, reply, redirect, copy, forward, unsubscribe
    }

    /// A problem with an action of a rule, for the log at warn.
    enum Remark: Equatable {
        /// The edit would not have been acceptable, and was left out.
        case editRefused(String)
        /// The stanza is encrypted or signed end to end: the receiver will see that it was changed.
        case opaque
        /// A request was dropped: its sender waits for an answer that never comes.
        case blackhole
        /// A pattern tried too many ways, and counted as not matching.
        case tooComplex
        /// More rules were asked than ``RuleSet/mostRules``; the rest was not.
        case tooManyRules
        /// The rule has sent the same stanza too often.
        case loop
        /// The action has no meaning here.
        case notHere(String)
    }

    /// A rule whose conditions held.
    struct Hit: Equatable {
        /// Its number in the rule set.
        var rule: Int
        var place: RulePlace
        var isTraced: Bool
        /// Its conditions, as they were written.
        var conditions: [String]
    }

    var fate = Fate.pass
    /// The rule that decided; nil where none did, and the item passes for that reason.
    var decidedBy: RulePlace?
    /// What goes out instead.
    var edited: [UInt8]?
    /// The rule that edited it last.
    var editedBy: RulePlace?
    /// In the order in which they were asked for, each with its rule.
    var actions: [(place: RulePlace, action: Action)] = []
    var hits: [Hit] = []
    var remarks: [(place: RulePlace, remark: Remark)] = []
    /// The rules that have created the stanza.
    var origins: [RulePlace] = []
    /// Tags of `TAG TRACE`.
    var tags: [String] = []
}
