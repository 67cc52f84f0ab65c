internal import NIOCore

/// The header that a proxy sends first on a connection (the PROXY protocol of HAProxy, versions 1 and 2).
struct ProxyHeader: Sendable, Hashable {
    /// The origin of the connection.
    enum Origin: Sendable, Hashable {
        /// A client's, with the addresses it has connected from and to.
        case client(source: SocketAddress, destination: SocketAddress)
        /// A client with unknown addresses, or with addresses of another family, such as Unix sockets.
        case unknown
        /// The proxy's own, such as to see whether the server is up.
        case local
    }

    /// The twelve bytes with which a header of version 2 begins.
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// The maximum length of a unique identifier.
    static let mostIdentifierBytes = 128

    /// Types of the fields that may follow the addresses in version 2.
    enum Field {
        static let checksum: UInt8 = 0x03
        static let identifier: UInt8 = 0x05
    }

    /// The origin of the connection.
    var origin: Origin
    /// The proxy's identifier of the connection, in version 2; opaque.
    var identifier: [UInt8]?

    init(_ origin: Origin, identifier: [UInt8]? = nil) {
        self.origin = origin
        self.identifier = identifier
    }

    /// Creates a header with the addresses of a client's connection; unknown if they are not two IP addresses.
    init(source: SocketAddress?, destination: SocketAddress?, identifier: [UInt8]? = nil) {
        self.identifier = identifier
        guard let source, let destination, !source.packedAddress.isEmpty, !destination.packedAddress.isEmpty else {
            origin = .unknown
            return
        }
        origin = .client(source: source, destination: destination)
    }
}

// MARK: Writing

extension ProxyHeader {
    /// The header as sent on the wire.
    func bytes(_ version: ProxyProtocol.Version) -> [UInt8] { version == .v1 ? line : block }

    private var line: [UInt8] {
        guard case .client(let source, let destination) = origin,
            let from = Self.address(source, asIPv6: Self.areMixed(source, destination)),
            let to = Self.address(destination, asIPv6: Self.areMixed(source, destination))
        else { return Array("PROXY UNKNOWN\r\n".utf8) }
        let family = from.text.contains(":") ? "TCP6" : "TCP4"
        return Array("PROXY \(family) \(from.text) \(to.text) \(source.port ?? 0) \(destination.port ?? 0)\r\n".utf8)
    }

    private var block: [UInt8] {
        var body: [UInt8] = []
        var (command, family): (UInt8, UInt8) = (0x21, 0x00)
        switch origin {
        case .local: command = 0x20
        case .unknown: break
        case .client(let source, let destination):
            let areMixed = Self.areMixed(source, destination)
            guard let from = Self.address(source, asIPv6: areMixed),
                let to = Self.address(destination, asIPv6: areMixed)
            else { break }
            family = from.packed.count == 16 ? 0x21 : 0x11
            body = from.packed + to.packed + Self.number(source.port ?? 0) + Self.number(destination.port ?? 0)
        }
        if let identifier, !identifier.isEmpty, identifier.count <= Self.mostIdentifierBytes {
            body += [Field.identifier] + Self.number(identifier.count) + identifier
        }
        return Self.signature + [command, family] + Self.number(body.count) + body
    }

    private static func number(_ value: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
    }

    /// A header has one family: with one address of each, the IPv4 address is mapped to IPv6 (RFC 4291 §2.5.5.2).
    private static func areMixed(_ one: SocketAddress, _ other: SocketAddress) -> Bool {
        one.packedAddress.count != other.packedAddress.count
    }

    private static func address(_ address: SocketAddress, asIPv6: Bool) -> (packed: [UInt8], text: String)? {
        let packed = address.packedAddress
        guard let text = address.ipAddress, !packed.isEmpty else { return nil }
        guard asIPv6, packed.count == 4 else { return (packed, text) }
        return ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF] + packed, "::ffff:\(text)")
    }
}
