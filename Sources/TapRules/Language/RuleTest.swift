import TapRecord
import XMPPCore

/// A condition of a rule, possibly negated by `NOT`.
struct RuleCondition: Sendable {
    var test: RuleTest
    var isNegated = false
}

/// The test of a condition. Definitions are referenced by index in ``RuleDefinitions``. Indirect, so that copying a
/// rule copies only a reference to the payload.
indirect enum RuleTest: Sendable {
    /// Maximum size of a pattern made from a text with expressions, in bytes.
    static let maximumPatternBytes = 1024

    /// One of the two addresses of a stanza.
    enum Side: Sendable { case from, to }

    /// How a stanza crosses the boundary of a zone.
    enum Crossing: Sendable { case entering, leaving, either }

    enum Marked: Sendable { case origin, user }

    /// The counter of `EVERY` and `NTH`, in the state of each session or shared by all sessions.
    enum Counter: Sendable {
        case session(Int)
        case shared(Int)
    }

    /// The comparison of `INSPECT`.
    enum Inspection: Sendable {
        case exists
        case equals(RuleText)
        case contains(RuleText)
        case lua(LuaPattern)
        /// The pattern contains expressions; it is parsed for each stanza.
        case luaText(RuleText)
        case regular(RegularExpression)
    }

    case kind(RuleKinds)
    case type([[UInt8]])
    case payload(NamespaceKey)
    case inspect(StanzaPath, Inspection)
    case address(Side, AddressPattern)
    /// Matches `from` or `to`.
    case with(AddressPattern)
    case exactly(Side, RuleText)
    case fullJID(Side)
    case toSelf
    case clientAddress([AddressNetwork])
    case zone(Int, Crossing)
    case inRoster
    case inRosterGroup(String)
    case subscribed
    case pendingSubscription
    /// The client has sent directed presence to the sender of the stanza.
    case sentDirectedPresence
    /// Ranges in minutes since midnight, without their ends; a range that ends before its start crosses midnight.
    case time([(start: Int, end: Int)])
    /// Bit set of weekdays; bit 0 is Sunday.
    case day(UInt8)
    case limit(rate: Int, on: RuleText?)
    /// The mark was set within this time in nanoseconds; nil means at any time.
    case marked(Marked, String, within: Int64?)
    case list(Int, RuleText)
    case scan(search: Int, pattern: Int, list: Int)
    case count(pattern: Int, search: Int, Comparison, Int)
    case direction(Direction)
    case phase(Set<RulePhase>)
    case session(Set<UInt64>)
    case sessionAddress(AddressPattern)
    case element(StanzaPath.Step)
    case size(Comparison, Int)
    case roundTrip(Comparison, Int64)
    case origin(Origin)
    case transport(RuleTransport)
    /// True on every n-th evaluation.
    case every(Int, counter: Counter)
    /// True on the evaluations with these numbers, counted from 1.
    case nth([Int], counter: Counter)
    case probability(Double)

    /// Whether the result depends on earlier evaluations or on random numbers.
    var isStateful: Bool {
        switch self {
        case .limit, .marked, .list, .scan, .sentDirectedPresence, .every, .nth, .probability: true
        default: false
        }
    }
}

/// A set of kinds of top-level elements.
struct RuleKinds: OptionSet, Sendable, Hashable {
    let rawValue: UInt8

    static let message = RuleKinds(rawValue: 1)
    static let presence = RuleKinds(rawValue: 2)
    static let iq = RuleKinds(rawValue: 4)
    static let nonza = RuleKinds(rawValue: 8)
    static let stanzas: RuleKinds = [.message, .presence, .iq]
    static let all: RuleKinds = [.stanzas, .nonza]

    init(rawValue: UInt8) { self.rawValue = rawValue }

    init(_ kind: StanzaHead.Kind) {
        switch kind {
        case .message: self = .message
        case .presence: self = .presence
        case .iq: self = .iq
        case .nonza: self = .nonza
        }
    }
}

/// The phase of a session.
package enum RulePhase: String, Sendable, CaseIterable {
    /// Opening of streams, and negotiation of features and TLS.
    case opening
    /// Authentication.
    case authenticating
    /// Authenticated, before resource binding or resumption.
    case binding
    /// After resource binding or resumption.
    case open
    /// After the first closing stream tag.
    case closing

    /// Whether the phase is before the end of the login.
    package var isHandshake: Bool { self == .opening || self == .authenticating || self == .binding }
}

/// The transport of the client's connection.
package enum RuleTransport: String, Sendable, CaseIterable {
    /// Unencrypted.
    case tcp
    /// TLS, direct or by STARTTLS.
    case tls
}
