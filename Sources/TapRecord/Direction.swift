/// The direction of bytes, named from the initiator: the client, component or initiating server.
public enum Direction: UInt8, Sendable, Hashable, CaseIterable {
    /// From the initiator to the server.
    case send
    /// From the server to the initiator.
    case recv

    /// The opposite direction.
    package var opposite: Direction { self == .send ? .recv : .send }
    /// The leg on which bytes of this direction arrive.
    package var source: Leg { self == .send ? .client : .server }
    /// The leg on which bytes of this direction leave.
    package var destination: Leg { source.other }
    /// `send` or `recv`, as in JSON.
    package var name: StaticString { self == .send ? "send" : "recv" }
}

/// One of the two TCP connections of a session.
package enum Leg: UInt8, Sendable, Hashable, CaseIterable {
    /// Between the client and the proxy.
    case client
    /// Between the proxy and the server.
    case server

    /// The other connection.
    package var other: Leg { self == .client ? .server : .client }
    /// The direction of the bytes that arrive on this leg.
    package var inbound: Direction { self == .client ? .send : .recv }
    /// `client` or `server`, as in JSON.
    package var name: StaticString { self == .client ? "client" : "server" }
}

/// The originator of an item's bytes.
package enum Origin: UInt8, Sendable, Hashable {
    /// The client or the server.
    case peer
    case tap
}
