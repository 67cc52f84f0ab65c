internal import NIOCore
internal import TapRecord
package import TapSecurity

/// A host and a port, written as `HOST:PORT`, with an IPv6 address in brackets.
package struct Endpoint: Sendable, Hashable {
    /// A host name or an IP address; an IPv6 address without brackets.
    package var host: String
    /// The TCP port; 0 lets the system choose.
    package var port: Int

    /// Creates an endpoint; the parts are not checked.
    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Parses `HOST:PORT` or `[v6]:PORT` with a port from 1 to 65535.
    package init(_ text: String) throws(EndpointError) {
        try self.init(text, allowsZero: false)
    }

    /// Parses the address of a server that clients connect to, like ``init(_:)``. The port is optional; default
    /// `usualPort`, which is the port for clients unless given.
    package static func server(
        _ text: String,
        usualPort: Int = usualPort(for: .clients)
    ) throws(EndpointError) -> Endpoint {
        try Endpoint(text, allowsZero: false, usualPort: usualPort)
    }

    /// Returns the port of a server for clients, or for servers of other domains (RFC 6120 §14.7).
    package static func usualPort(for peers: ServerReference.Service) -> Int {
        switch peers {
        case .clients: 5222
        case .servers: 5269
        }
    }

    init(_ text: String, allowsZero: Bool, usualPort: Int? = nil) throws(EndpointError) {
        func error(_ code: EndpointError.Code) -> EndpointError { EndpointError(code: code, text: text) }

        guard !text.isEmpty else { throw error(.empty) }
        guard !text.hasPrefix("domain:") else { throw error(.domain) }
        guard !text.contains("://") else { throw error(.url) }
        let host: Substring
        let rest: Substring
        if text.hasPrefix("[") {
            guard let bracket = text.firstIndex(of: "]") else { throw error(.openBracket) }
            host = text[text.index(after: text.startIndex)..<bracket]
            rest = text[text.index(after: bracket)...]
            guard case .v6 = try? SocketAddress(ipAddress: String(host), port: 0) else {
                throw error(.badIPv6(String(host)))
            }
        } else {
            let colon = text.lastIndex(of: ":") ?? text.endIndex
            host = text[..<colon]
            rest = text[colon...]
            if host.contains(":") { throw error(.bareIPv6) }
            guard host.utf8.allSatisfy(Self.isHostByte) else { throw error(.badHost(String(host))) }
        }
        guard rest.first == ":" else {
            // A number alone is a port without a host.
            guard let usualPort, rest.isEmpty else { throw error(.missingPort) }
            guard !host.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { throw error(.missingHost) }
            self.host = String(host)
            port = usualPort
            return
        }
        guard !host.isEmpty else { throw error(.missingHost) }
        self.host = String(host)
        guard let port = Self.port(rest.dropFirst(), allowsZero: allowsZero) else {
            throw error(.badPort(String(rest.dropFirst()), allowsZero: allowsZero))
        }
        self.port = port
    }

    /// Whether the host is `localhost` or a loopback address.
    package var isLoopback: Bool {
        host.lowercased() == "localhost" || (try? SocketAddress(ipAddress: host, port: port))?.isLoopback == true
    }

    /// Parses a port in decimal digits; nil if the text is not a port.
    static func port(_ text: Substring, allowsZero: Bool) -> Int? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(text),
            allowsZero || port > 0
        else { return nil }
        return Int(port)
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
        default: byte >= 0x80
        }
    }
}

extension Endpoint: CustomStringConvertible {
    /// The text form that ``init(_:)`` parses.
    package var description: String { host.utf8.contains(0x3A) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The reason why an ``Endpoint`` or a ``ListenSpec`` was refused: the input, the problem and the remedy, in one line.
package struct EndpointError: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        case empty
        /// There is nothing after the `=` of a ``ListenSpec``.
        case missingUpstream
        /// There is no `:PORT` at the end.
        case missingPort
        /// A ``ListenSpec`` starts neither with a port nor with `HOST:PORT`.
        case missingListenPort
        /// The port is invalid.
        case badPort(String, allowsZero: Bool)
        /// There is nothing before `:PORT`.
        case missingHost
        /// The host contains characters that host names cannot contain.
        case badHost(String)
        /// An IPv6 address is not in brackets.
        case bareIPv6
        /// The text in brackets is not an IPv6 address.
        case badIPv6(String)
        /// The closing bracket is missing.
        case openBracket
        case url
        /// The text starts with `domain:`, but a server's address is required.
        case domain
        /// The domain is invalid; with the reason, for users.
        case badDomain(String)
        /// The text is not the URL of a WebSocket; with the reason, for users.
        case badWebURL(String)
        /// The URL begins with `ws://`, but the server is not on this machine.
        case clearWebURL
    }

    /// The kind of problem.
    package let code: Code
    /// The input.
    package let text: String
}

extension EndpointError: CustomStringConvertible {
    /// One line for users, such as `"localhost" has no port; write HOST:PORT, as in localhost:5222`.
    package var description: String {
        let shown = "\"\(LineBuffer.escaped(text))\""
        return switch code {
        case .empty: "the address is empty; write HOST:PORT, as in localhost:5222"
        case .missingUpstream: "\(shown) has no address after \"=\"; write PORT=HOST:PORT, as in 15222=localhost:5222"
        case .missingPort: "\(shown) has no port; write HOST:PORT, as in localhost:5222"
        case .missingListenPort:
            "\(shown) is not a port; write a port, as in 15222, or HOST:PORT, as in 127.0.0.1:15222"
        case .badPort(let port, let allowsZero):
            "\(shown) has the port \"\(LineBuffer.escaped(port))\"; a port is a number from \(allowsZero ? 0 : 1) to 65535"
        case .missingHost: "\(shown) has no host; write HOST:PORT, as in localhost:5222"
        case .badHost(let host):
            "\(shown) has the host \"\(LineBuffer.escaped(host))\", which is neither a host name nor an address; write HOST:PORT"
        case .bareIPv6: "\(shown) is an IPv6 address; write it in brackets, as in [::1]:5222"
        case .badIPv6(let host):
            "\(shown) has \"\(LineBuffer.escaped(host))\" in brackets, which is not an IPv6 address; write [v6]:PORT, as in [::1]:5222"
        case .openBracket: "\(shown) has no closing bracket; write [v6]:PORT, as in [::1]:5222"
        case .url: "\(shown) is a URL; write HOST:PORT, as in localhost:5222"
        case .domain: "\(shown) names a domain; write HOST:PORT, as in localhost:5222"
        case .badWebURL(let reason):
            "\(shown) is not the URL of a WebSocket: \(reason); write ws://HOST[:PORT][/PATH] or wss://HOST[:PORT][/PATH]"
        case .clearWebURL:
            "\(shown) has no TLS, which is allowed for servers on this machine only; write wss://"
        case .badDomain(let reason):
            "\(shown) is not a domain: \(LineBuffer.escaped(reason)); write the part of a JID after \"@\", as in example.org"
        }
    }
}
