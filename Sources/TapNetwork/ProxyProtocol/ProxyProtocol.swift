package import NIOCore

/// The use of the PROXY protocol: to receive the client's address from a proxy in front, and to send it to the server.
package struct ProxyProtocol: Sendable, Hashable {
    /// The versions of the header.
    package enum Version: Sendable, Hashable {
        /// A line of text.
        case v1
        /// Binary, extensible with further fields.
        case v2
    }

    /// Whether every client connection must start with a header. Default: false; then headers are refused, because a
    /// client could claim any address.
    package var accepts: Bool
    /// The networks that may send headers; other connections are refused. Default: empty, which allows all networks;
    /// this is safe only if the proxy alone can reach the listener.
    package var senders: [AddressRange]
    /// Time limit for a client's header. Default: 5 s.
    package var timeout: TimeAmount
    /// The version of the header sent on each server connection. Default: nil, no header.
    package var sends: Version?

    /// Creates the settings; by default, the protocol is not used.
    package init(
        accepts: Bool = false,
        senders: [AddressRange] = [],
        timeout: TimeAmount = .seconds(5),
        sends: Version? = nil
    ) {
        self.accepts = accepts
        self.senders = senders
        self.timeout = timeout
        self.sends = sends
    }
}

/// The addresses of a session's client connection, and the proxy in front of it.
struct AcceptedConnection: Sendable {
    /// The client's address, which is used for the log, for limits, and for the server.
    var remote: SocketAddress?
    /// The address that the client connected to.
    var destination: SocketAddress?
    /// The proxy that sent the header; nil if the client connected directly.
    var relay: SocketAddress?
    /// The proxy's unique ID of the connection.
    var identifier: [UInt8]?

    /// Creates the addresses of a client that connected directly.
    init(_ channel: any Channel) {
        remote = channel.remoteAddress
        destination = channel.localAddress
    }

    /// Creates the addresses from a header; if it has none, from the channel.
    init(_ channel: any Channel, _ header: ProxyHeader) {
        self.init(channel)
        identifier = header.identifier
        guard case .client(let source, let destination) = header.origin, source != remote else { return }
        relay = remote
        remote = source
        self.destination = destination
    }

    /// Returns the header for the server, for the session with this number.
    func header(session number: UInt64) -> ProxyHeader {
        ProxyHeader(
            source: remote,
            destination: destination,
            identifier: identifier ?? Array("xmpptap-\(number)".utf8)
        )
    }
}

/// A single IP address, or a network: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`.
package struct AddressRange: Sendable, Hashable {
    private let bytes: [UInt8]
    private let bits: Int

    /// Parses an address, with or without `/BITS`; nil if it is invalid.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, !first.contains("%"),
            let address = try? SocketAddress(ipAddress: String(first), port: 0)
        else { return nil }
        let bytes = Self.plain(address)
        // Refuse a prefix length after an IPv4-mapped IPv6 address: it would count the bits of the IPv6 address.
        guard parts.count == 1 || bytes.count == address.packedAddress.count else { return nil }
        var bits = bytes.count * 8
        if parts.count > 1 {
            guard !parts[1].isEmpty, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let count = Int(parts[1]),
                count <= bits
            else { return nil }
            bits = count
        }
        self.bytes = bytes
        self.bits = bits
    }

    func contains(_ address: SocketAddress) -> Bool {
        let other = Self.plain(address)
        guard other.count == bytes.count, !bytes.isEmpty else { return false }
        let whole = bits / 8
        guard other.prefix(whole) == bytes.prefix(whole) else { return false }
        let rest = bits % 8
        guard rest > 0 else { return true }
        return (other[whole] ^ bytes[whole]) >> UInt8(8 - rest) == 0
    }

    /// Returns the bytes of an address. For an IPv4-mapped IPv6 address, as reported by dual-stack sockets, these are
    /// the bytes of the IPv4 address.
    private static func plain(_ address: SocketAddress) -> [UInt8] {
        let bytes = address.packedAddress
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        return bytes.count == 16 && bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
    }
}
