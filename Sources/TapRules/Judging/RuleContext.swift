package import TapRecord
package import XMPPCore

/// A top-level element of a stream as the rules see it: its head and its bytes. The tree is parsed only if a rule needs
/// it.
package struct RuleItem: ~Escapable {
    let direction: Direction
    let head: StanzaHead
    let bytes: Span<UInt8>

    @_lifetime(copy bytes)
    package init(_ direction: Direction, _ head: StanzaHead, _ bytes: Span<UInt8>) {
        self.direction = direction
        self.head = head
        self.bytes = bytes
    }
}

/// Properties of the session, and of the item apart from its XML, that rules can test.
package struct RuleContext {
    /// Number of the session within the run.
    package var session: UInt64 = 0
    /// The bound full JID; nil until it is known.
    package var jid: String?
    /// The domain that the client requested.
    package var domain: String?
    /// The namespace of stanzas in this stream.
    package var content = Namespace.client
    package var phase = RulePhase.open
    package var transport = RuleTransport.tcp
    /// The client's IP address without the port.
    package var clientAddress: String?
    /// The sender of the item: a peer or xmpptap.
    package var origin = Origin.peer
    /// For an iq response, the time since its request in nanoseconds.
    package var roundTrip: Int64?
    /// The time of a monotonic clock, in nanoseconds.
    package var now: Int64 = 0
    package var localTime = RuleLocalTime()
    /// The roster as seen so far; nil if no rule needs it.
    package var roster: Roster?
    /// Maximum size of a stanza, or of a text of a rule, in bytes.
    package var maximumBytes = StreamLimits.authenticated.itemBytes
    /// Maximum stanza sizes that the server and the client have advertised (XEP-0478), in bytes.
    package var receiverBytes = (server: Int.max, client: Int.max)

    /// Creates the context of an open session about which nothing else is known.
    package init() {}

    /// Returns the maximum size of a stanza in a direction, in bytes.
    func maximumBytes(_ direction: Direction) -> Int {
        min(maximumBytes, direction == .send ? receiverBytes.server : receiverBytes.client)
    }

    /// Returns the host of `HOST:PORT`, without the brackets of an IPv6 address.
    package static func host(_ remote: String) -> String {
        guard let colon = remote.lastIndex(of: ":") else { return remote }
        return String(remote[..<colon].filter { $0 != "[" && $0 != "]" })
    }
}

/// The user's local time, which the caller supplies.
package struct RuleLocalTime: Sendable, Hashable {
    /// Minutes since midnight.
    package var minute: Int
    /// The day of the week; 0 is Sunday.
    package var weekday: Int

    /// Creates a time; the default is Sunday, midnight.
    package init(minute: Int = 0, weekday: Int = 0) {
        self.minute = minute
        self.weekday = weekday
    }
}
