internal import NIOCore

/// The header that a proxy sends first on a connection (HAProxy's PROXY protocol, versions 1 and 2).
struct ProxyHeader: Sendable, Hashable {
    /// The origin of the connection.
    enum Origin: Sendable, Hashable {
        /// A client, with the addresses that it connected from and to.
        case client(source: SocketAddress, destination: SocketAddress)
        /// A client with unknown addresses, or with addresses other than IP, such as Unix sockets.
        case unknown
        /// The proxy itself, for example for a health check.
        case local
    }

    /// The twelve bytes at the start of a version 2 header.
    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// Maximum length of the unique ID in bytes.
    static let maximumIdentifierBytes = 128

    /// Types of the fields (TLVs) that may follow the addresses in version 2.
    enum Field {
        static let checksum: UInt8 = 0x03
        static let identifier: UInt8 = 0x05
    }

    /// The origin of the connection.
    var origin: Origin
    /// The proxy's unique ID of the connection, which only version 2 supports; opaque.
    var identifier: [UInt8]?

    init(_ origin: Origin, identifier: [UInt8]? = nil) {
        self.origin = origin
        self.identifier = identifier
    }

    /// Creates a header with the addresses of a client's connection; the origin is unknown unless both are IP
    /// addresses.
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
    /// Returns the header as sent on the connection.
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
        if let identifier, !identifier.isEmpty, identifier.count <= Self.maximumIdentifierBytes {
            body += [Field.identifier] + Self.number(identifier.count) + identifier
        }
        return Self.signature + [command, family] + Self.number(body.count) + body
    }

    private static func number(_ value: Int) -> [UInt8] {
        [UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value)]
    }

    /// Returns whether one address is IPv4 and the other IPv6. A header has only one address family, so the IPv4
    /// address is then mapped to IPv6 (RFC 4291 §2.5.5.2).
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
