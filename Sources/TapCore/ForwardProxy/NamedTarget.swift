/// The target of a connection that a client requests from xmpptap as a proxy.
package struct NamedTarget: Sendable, Hashable {
    /// A host, as the client wrote it.
    package enum Host: Sendable, Hashable {
        /// A name, or an address as text without brackets. It is not resolved before the connection is made.
        case name(String)
        /// The 4 or 16 bytes of an IP address.
        case address([UInt8])
    }

    /// The host.
    package var host: Host
    /// The TCP port, from 1 to 65535.
    package var port: Int

    /// Creates a target; the parts are not checked.
    package init(host: Host, port: Int) {
        self.host = host
        self.port = port
    }

    /// Returns the host of these bytes; nil if they are not a host name and not an IP address as text.
    static func host(_ bytes: some Collection<UInt8>) -> Host? {
        guard !bytes.isEmpty, bytes.count <= 255, bytes.allSatisfy(isHostByte) else { return nil }
        return String(validating: bytes, as: UTF8.self).map { .name($0) }
    }

    /// Colons occur in IPv6 addresses. Bytes from 0x80 on occur in internationalized names in UTF-8.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: byte >= 0x80
        }
    }
}

/// How a proxy learns the target of a client's connection.
package enum ProxyRequestKind: String, Sendable, Hashable, CaseIterable {
    /// SOCKS version 5 (RFC 1928), command CONNECT.
    case socks5
    /// The HTTP method CONNECT (RFC 9110 §9.3.6).
    case connect
    /// The system redirected a connection that the client made to the target itself.
    case redirect

    /// The name for users.
    package var name: String {
        switch self {
        case .socks5: "SOCKS5"
        case .connect: "HTTP CONNECT"
        case .redirect: "redirection"
        }
    }
}
