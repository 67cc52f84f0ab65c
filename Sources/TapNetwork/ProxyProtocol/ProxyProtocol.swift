public import NIOCore

/// What a proxy does of the PROXY protocol: to learn from one before it whose a connection is, and to tell the server.
public struct ProxyProtocol: Sendable, Hashable {
    /// The version of the header for servers; nil for none.
    public enum Sending: Sendable, Hashable {
        /// As a line of text.
        case v1
        /// In binary.
        case v2
    }

    /// Every client's connection has to begin with a header. Default no: then none may, since whoever sends one claims
    /// any address.
    public var accepts: Bool
    /// Whose headers are taken; others are turned away. Default all, which is right where only the proxy reaches the
    /// listener.
    public var senders: [AddressRange]
    /// How long a client's header may take. Default 5 s.
    public var timeout: TimeAmount
    /// Every server's connection begins with a header in this form. Default none.
    public var sends: Sending?

    /// By default the protocol is not used.
    public init(
        accepts: Bool = false,
        senders: [AddressRange] = [],
        timeout: TimeAmount = .seconds(5),
        sends: Sending? = nil
    ) {
        self.accepts = accepts
        self.senders = senders
        self.timeout = timeout
        self.sends = sends
    }
}

extension ProxyProtocol.Sending {
    var version: ProxyHeader.Version { self == .v1 ? .v1 : .v2 }
}

/// Who a session's client is, and by which way it has come.
struct AcceptedConnection: Sendable {
    /// The client's address, for the log, limits and the server.
    var remote: SocketAddress?
    /// The address it has connected to.
    var destination: SocketAddress?
    /// The proxy that sent the header; nil if the client connected directly.
    var relay: SocketAddress?
    /// What that proxy calls the connection.
    var identifier: [UInt8]?

    /// A client that has connected itself.
    init(_ channel: any Channel) {
        remote = channel.remoteAddress
        destination = channel.localAddress
    }

    /// The addresses in a header, or the channel's own if the header has none.
    init(_ channel: any Channel, _ header: ProxyHeader) {
        self.init(channel)
        identifier = header.identifier
        guard case .client(let source, let destination) = header.origin, source != remote else { return }
        relay = remote
        remote = source
        self.destination = destination
    }

    /// The header for the server of the session with this number.
    func header(session number: UInt64) -> ProxyHeader {
        ProxyHeader(
            source: remote,
            destination: destination,
            identifier: identifier ?? Array("xmpptap-\(number)".utf8)
        )
    }
}
