package import NIOCore

/// The use of the PROXY protocol: to learn the client's address from a proxy in front, and to send it to the server.
package struct ProxyProtocol: Sendable, Hashable {
    /// The two forms of a header.
    package enum Version: Sendable, Hashable {
        /// A line of text.
        case v1
        /// Binary, with fields that can be added.
        case v2
    }

    /// Every client's connection has to begin with a header. Default no: then none may, since whoever sends one claims
    /// any address.
    package var accepts: Bool
    /// The networks that may send headers; other connections are refused. Default all, which is right if only the
    /// proxy can reach the listener.
    package var senders: [AddressRange]
    /// How long a client's header may take. Default 5 s.
    package var timeout: TimeAmount
    /// Every server's connection begins with a header in this form. Default none.
    package var sends: Version?

    /// By default the protocol is not used.
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

/// The address of a session's client, and the proxy that it came through.
struct AcceptedConnection: Sendable {
    /// The client's address, for the log, limits and the server.
    var remote: SocketAddress?
    /// The address it has connected to.
    var destination: SocketAddress?
    /// The proxy that sent the header; nil if the client connected directly.
    var relay: SocketAddress?
    /// The proxy's identifier of the connection.
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

/// One IP address, or all that begin with the same bits, as people write them: `192.0.2.7`, `192.0.2.0/24`, `2001:db8::/32`.
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
        // An IPv4-mapped IPv6 address must not have a prefix length, which would count from another start.
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

    /// The bytes of an address; of IPv4 in IPv6, as a socket for both families has it, those of IPv4.
    private static func plain(_ address: SocketAddress) -> [UInt8] {
        let bytes = address.packedAddress
        let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
        return bytes.count == 16 && bytes.starts(with: mapped) ? Array(bytes.dropFirst(12)) : bytes
    }
}
