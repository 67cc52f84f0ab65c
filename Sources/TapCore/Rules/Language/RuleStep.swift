internal import TapRecord
internal import XMPPCore

/// An action of a rule, as it was written.
enum RuleStep: Sendable {
    /// What `SET` puts at a path.
    enum Setting: Sendable {
        case text(RuleText)
        /// Each match is replaced.
        case replacing(pattern: Int, by: RuleText)
    }

    case pass
    case drop
    case bounce(StanzaCondition)
    case reply(RuleText)
    case redirect(RuleText)
    case copy(RuleText)
    case forward(RuleText)
    /// Children of that name, any where it is nil.
    case strip(StanzaPath.Step)
    case injectChild(RuleText)
    case set(StanzaPath, Setting)
    /// The whole stanza where the path is nil.
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

    /// Whether no action of the rule can follow.
    var isDecisive: Bool {
        switch self {
        case .pass, .drop, .bounce, .redirect, .return: true
        case .fault(let fault): fault.isDecisive
        default: false
        }
    }

    /// Whether it sends a stanza that a rule may be asked about when a server has delivered it. Errors are not answered.
    var createsStanza: Bool {
        switch self {
        case .reply, .redirect, .copy, .forward, .unsubscribeSender: true
        default: false
        }
    }

    /// Whether it can change what goes out: such a direction is not relayed in cut-through.
    var alters: Bool {
        switch self {
        case .pass, .mark, .unmark, .add, .log, .return, .jump, .trace, .record, .level, .redact: false
        default: true
        }
    }
}

/// Something that a rule breaks on purpose.
enum RuleFaultAction: Sendable, Hashable {
    /// Both connections are reset after so many bytes of the item.
    case cut(after: Int)
    /// Both connections are reset before the item.
    case reset
    /// The direction ends before the item; the other one stays open.
    case halfClose
    /// Nothing more passes in this direction for so many nanoseconds; nil is for ever.
    case stall(Int64?)
    /// From the item on, so many bytes pass each second in this direction.
    case throttle(Int)
    /// The item goes out in pieces of so many bytes, so many nanoseconds apart.
    case slice(Int, every: Int64)
    /// The receiver of the item gets a stream error, and the session ends.
    case streamError(StreamErrorCondition, text: String?)
    /// The client's login is answered with a failure of this condition.
    case saslFailure(String)
    /// An acknowledgement is dropped.
    case loseAck

    /// Whether the item does not go on.
    var isDecisive: Bool {
        switch self {
        case .stall, .throttle, .slice: false
        default: true
        }
    }
}

/// A stanza error of RFC 6120 §8.3.3 with its type.
struct StanzaCondition: Sendable, Hashable {
    var name: String
    var type: String
    var text: String?

    /// The conditions with the type that is usual for each.
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
