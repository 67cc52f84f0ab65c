internal import TapRecord
internal import XMPPCore

/// An element at the top of a stream, as rules are shown it: its head and its bytes. Its tree is asked for only if a rule
/// looks inside.
struct RuleItem: ~Escapable {
    let direction: Direction
    let head: StanzaHead
    let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    init(_ direction: Direction, _ head: StanzaHead, _ bytes: Span<UInt8>) {
        self.direction = direction
        self.head = head
        self.bytes = bytes
    }
}

/// What rules can know of the session and the moment, beside the item.
struct RuleContext {
    /// Number of the session within the run.
    var session: UInt64 = 0
    /// The bound full JID, once known.
    var jid: String?
    /// The domain that the client asked for.
    var domain: String?
    /// The namespace of stanzas in this stream.
    var content = Namespace.client
    var phase = RulePhase.open
    var transport = RuleTransport.tcp
    /// The client's IP address, without its port.
    var clientAddress: String?
    /// Who made the item.
    var origin = Origin.peer
    /// Nanoseconds that its answer took, of an iq answer.
    var roundTrip: Int64?
    /// Any clock that never goes back, in nanoseconds.
    var now: Int64 = 0
    var localTime = RuleLocalTime()
    /// What it has shown of the roster; nil where no rule asks for it.
    var roster: Roster?
    /// The most bytes that a stanza, or a text of a rule, may have.
    var mostBytes = StreamLimits.authenticated.itemBytes
    /// The most bytes that the server and the client have said to accept in one stanza (XEP-0478).
    var receiverBytes = (server: Int.max, client: Int.max)

    /// The most bytes of a stanza that goes out by a direction.
    func mostBytes(_ direction: Direction) -> Int {
        min(mostBytes, direction == .send ? receiverBytes.server : receiverBytes.client)
    }

    /// The address of `HOST:PORT`, without the brackets of IPv6.
    static func host(_ remote: String) -> String {
        guard let colon = remote.lastIndex(of: ":") else { return remote }
        return String(remote[..<colon].filter { $0 != "[" && $0 != "]" })
    }
}

/// The time of day where the user is, which the core cannot know.
public struct RuleLocalTime: Sendable, Hashable {
    /// Minutes since midnight.
    public var minute: Int
    /// 0 is Sunday.
    public var weekday: Int

    /// A time of day; default Sunday, midnight.
    public init(minute: Int = 0, weekday: Int = 0) {
        self.minute = minute
        self.weekday = weekday
    }
}
