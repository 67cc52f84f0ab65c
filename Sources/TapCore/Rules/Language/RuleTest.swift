internal import TapRecord
internal import XMPPCore

/// A condition of a rule, with `NOT` where it was written.
struct RuleCondition: Sendable {
    var test: RuleTest
    var isNegated = false
}

/// What a condition asks. Definitions are named by their index in ``RuleDefinitions``. Indirect, since a rule that is asked is
/// copied: its payload is then a reference.
indirect enum RuleTest: Sendable {
    /// The longest pattern that a text with expressions can become.
    static let mostPatternBytes = 1024

    /// One of the two addresses of a stanza.
    enum Side: Sendable { case from, to }

    /// Of a stanza and a zone.
    enum Crossing: Sendable { case entering, leaving, either }

    enum Marked: Sendable { case origin, user }

    /// Where `EVERY` and `NTH` count: the place in the state of each session, or in what all sessions share.
    enum Counter: Sendable {
        case session(Int)
        case shared(Int)
    }

    /// What `INSPECT` compares the text at its path with.
    enum Inspection: Sendable {
        case exists
        case equals(RuleText)
        case contains(RuleText)
        case lua(LuaPattern)
        /// The pattern holds expressions: it is made for each stanza.
        case luaText(RuleText)
        case regular(RegularExpression)
    }

    case kind(RuleKinds)
    case type([[UInt8]])
    case payload(NamespaceKey)
    case inspect(StanzaPath, Inspection)
    case address(Side, AddressPattern)
    /// Either address.
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
    /// The client has sent presence to the sender's own address.
    case sentDirectedPresence
    /// Minutes of the day, the end excluded; one that ends before it begins passes midnight.
    case time([(start: Int, end: Int)])
    /// Bits of the days from Sunday on.
    case day(UInt8)
    case limit(rate: Int, on: RuleText?)
    /// Within the last so many nanoseconds; nil is ever.
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
    /// Every so many times that it is asked.
    case every(Int, counter: Counter)
    /// The times at which it holds.
    case nth([Int], counter: Counter)
    case probability(Double)

    /// Whether the answer depends on what was asked before, or on chance.
    var isStateful: Bool {
        switch self {
        case .limit, .marked, .list, .scan, .sentDirectedPresence, .every, .nth, .probability: true
        default: false
        }
    }
}

/// A set of the kinds of elements at the top of a stream.
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

/// How far a session has come, as rules see it.
enum RulePhase: String, Sendable, CaseIterable {
    /// Streams are being opened, features and TLS negotiated.
    case opening
    /// Authentication is under way.
    case authenticating
    /// Authenticated; a resource is to be bound or a stream resumed.
    case binding
    /// Stanzas flow.
    case open
    /// One side has closed its stream.
    case closing

    /// Whether stanzas do not flow yet.
    var isHandshake: Bool { self == .opening || self == .authenticating || self == .binding }
}

/// What the client's connection is.
enum RuleTransport: String, Sendable, CaseIterable {
    /// No encryption.
    case tcp
    /// TLS, from the beginning or by STARTTLS.
    case tls
}
