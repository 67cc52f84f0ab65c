import TapRecord
package import XMPPCore

/// An action of a rule.
enum RuleStep: Sendable {
    /// The value of `SET`.
    enum Setting: Sendable {
        case text(RuleText)
        /// Each match of the pattern is replaced.
        case replacing(pattern: Int, by: RuleText)
    }

    case pass
    case drop
    case bounce(StanzaCondition)
    case reply(RuleText)
    case redirect(RuleText)
    case copy(RuleText)
    case forward(RuleText)
    /// Removes the children that match the step; a nil name matches any child.
    case strip(StanzaPath.Step)
    case injectChild(RuleText)
    case set(StanzaPath, Setting)
    /// Replaces the element at the path; the whole stanza if the path is nil.
    case replace(StanzaPath?, RuleText)
    case remove(StanzaPath)
    case mark(RuleTest.Marked, String)
    case unmark(RuleTest.Marked, String)
    case add(list: Int, RuleText)
    case unsubscribeSender
    case log(Level, RuleText)
    case `return`
    case jump(chain: Int)
    case trace(tag: String?)
    case delay(Int64, jitter: Int64)
    case duplicate(Int)
    case pause
    case record(Bool)
    case level(Level)
    case redact(StanzaPath)
    case fault(RuleFaultAction)

    /// Whether the action ends the evaluation, so that later actions of the rule are unreachable.
    var isDecisive: Bool {
        switch self {
        case .pass, .drop, .bounce, .redirect, .return: true
        case .fault(let fault): fault.isDecisive
        default: false
        }
    }

    /// Whether the action sends a stanza that a server may deliver to another session, whose rules then evaluate it.
    /// False for stanza errors, because they are not answered.
    var createsStanza: Bool {
        switch self {
        case .reply, .redirect, .copy, .forward, .unsubscribeSender: true
        default: false
        }
    }

    /// Whether the action can change the stream; directions with such rules are not relayed in cut-through mode.
    var alters: Bool {
        switch self {
        case .pass, .mark, .unmark, .add, .log, .return, .jump, .trace, .record, .level, .redact: false
        default: true
        }
    }
}

/// A fault that a rule injects.
package enum RuleFaultAction: Sendable, Hashable {
    /// Resets both connections after this number of bytes of the item.
    case cut(after: Int)
    /// Resets both connections before the item.
    case reset
    /// Closes the direction before the item; the other direction stays open.
    case halfClose
    /// Stops the direction for this time in nanoseconds; nil means forever.
    case stall(Int64?)
    /// Limits the direction from the item on, in bytes per second.
    case throttle(Int)
    /// Sends the item in pieces of this size in bytes, with this interval in nanoseconds.
    case slice(Int, every: Int64)
    /// Sends a stream error to the receiver of the item, and ends the session.
    case streamError(StreamErrorCondition, text: String?)
    /// Answers the client's authentication with this SASL error condition.
    case saslFailure(String)
    /// Drops an acknowledgement.
    case loseAck

    /// Whether the item is not forwarded.
    var isDecisive: Bool {
        switch self {
        case .stall, .throttle, .slice: false
        default: true
        }
    }
}

/// A stanza error condition (RFC 6120 §8.3.3) with its type.
struct StanzaCondition: Sendable, Hashable {
    var name: String
    var type: String
    var text: String?

    /// All conditions with their usual types.
    static let all: [(name: String, type: String)] = [
        ("bad-request", "modify"), ("conflict", "cancel"), ("feature-not-implemented", "cancel"), ("forbidden", "auth"),
        ("gone", "cancel"), ("internal-server-error", "cancel"), ("item-not-found", "cancel"),
        ("jid-malformed", "modify"), ("not-acceptable", "modify"), ("not-allowed", "cancel"),
        ("not-authorized", "auth"), ("payment-required", "auth"), ("policy-violation", "modify"),
        ("recipient-unavailable", "wait"), ("redirect", "modify"), ("registration-required", "auth"),
        ("remote-server-not-found", "cancel"), ("remote-server-timeout", "wait"), ("resource-constraint", "wait"),
        ("service-unavailable", "cancel"), ("subscription-required", "auth"), ("undefined-condition", "cancel"),
        ("unexpected-request", "wait"),
    ]
    static let types = ["auth", "cancel", "continue", "modify", "wait"]
    static let serviceUnavailable = StanzaCondition(name: "service-unavailable", type: "cancel")
}
