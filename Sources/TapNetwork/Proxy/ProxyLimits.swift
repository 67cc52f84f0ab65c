internal import TapSecurity

/// How many clients a proxy serves. What concerns a session itself, and how long that may take, is in
/// ``TapCore/SessionOptions``.
public struct ProxyLimits: Sendable, Hashable {
    /// Connections at once. Default none; two descriptors are needed for each.
    public var connections: Int?
    /// Connections at once from one address. Default none.
    public var connectionsPerAddress: Int?
    /// Certificate authorities in the folder from which on none is made on demand. Default 64.
    public var authorities = AuthorityProvider.usualLimit

    /// Limits with the default of each.
    public init(connections: Int? = nil, connectionsPerAddress: Int? = nil) {
        self.connections = connections
        self.connectionsPerAddress = connectionsPerAddress
    }
}
