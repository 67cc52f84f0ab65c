public import NIOCore
internal import TapSecurity

/// How many clients a proxy serves, and how long they may take. What concerns the stream itself is in
/// ``TapCore/SessionOptions``.
public struct ProxyLimits: Sendable, Hashable {
    /// Connections at once. Default none; two descriptors are needed for each.
    public var connections: Int?
    /// Connections at once from one address. Default none.
    public var connectionsPerAddress: Int?
    /// From the connection to an open session. Of TLS passed through the login cannot be seen: the server's ServerHello ends
    /// this limit, and of other bytes that cannot be read the server's answer. Default 60 s.
    public var login: TimeAmount?
    /// Certificate authorities in the folder from which on none is made on demand. Default 64.
    public var authorities = AuthorityProvider.usualLimit
    /// Without a byte in either direction. Default none: the system's keep-alive notices peers that are gone.
    public var idle: TimeAmount?

    /// Limits with the default of each.
    public init(
        connections: Int? = nil,
        connectionsPerAddress: Int? = nil,
        login: TimeAmount? = .seconds(60),
        idle: TimeAmount? = nil
    ) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
        self.login = login
        self.idle = idle
    }

    /// How often sessions have to be looked at; nil if time does not matter.
    var interval: TimeAmount? {
        guard let least = [login, idle].compactMap({ $0 }).min() else { return nil }
        return min(.seconds(1), max(.milliseconds(10), .nanoseconds(least.nanoseconds / 4)))
    }
}
