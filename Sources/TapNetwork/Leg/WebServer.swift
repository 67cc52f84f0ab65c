internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// A server that is reached by WebSocket: `ws://HOST[:PORT][/PATH]`, or `wss://` with TLS (RFC 6455 §3).
package struct WebServer: Sendable, Hashable {
    /// The host, and the port: 80, or 443 with TLS, unless given.
    package var endpoint: Endpoint
    /// Whether the server uses TLS.
    package var isSecure: Bool
    /// The path and query to request instead of the client's; nil passes those of the client.
    package var target: String?
    /// The XMPP domain whose host-meta names the server. The certificate may be for this domain instead of the host, and
    /// the address must not be one that a stranger may not choose. Nil if the user named the server.
    package var domain: String?

    /// Parses a URL.
    package init(_ text: String) throws(EndpointError) {
        func error(_ reason: String) -> EndpointError {
            EndpointError(code: .badWebURL(reason), text: Self.withoutSecrets(text))
        }
        let rest: Substring
        if text.lowercased().hasPrefix("wss://") {
            (isSecure, rest) = (true, text.dropFirst(6))
        } else if text.lowercased().hasPrefix("ws://") {
            (isSecure, rest) = (false, text.dropFirst(5))
        } else {
            throw error("it begins neither with ws:// nor with wss://")
        }
        guard !rest.contains("#") else { throw error("it has a fragment, which RFC 6455 forbids") }
        guard !rest.contains(where: { $0.isWhitespace || $0.asciiValue.map { $0 < 0x21 || $0 == 0x7F } ?? true }) else {
            throw error("it contains characters that URLs cannot contain")
        }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { throw error("it contains a user name") }
        let path = rest.dropFirst(authority.count)
        target = path.isEmpty ? nil : path.first == "?" ? "/\(path)" : String(path)
        endpoint = try Endpoint(String(authority), allowsZero: false, usualPort: isSecure ? 443 : 80)
    }

    /// Returns a URL without query, fragment and user information.
    package static func withoutSecrets(_ url: String) -> String {
        let visible = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = visible.firstRange(of: "://"), let at = visible.lastIndex(of: "@"),
            at >= scheme.upperBound
        else { return String(visible) }
        return String(visible[..<scheme.upperBound] + visible[visible.index(after: at)...])
    }

    /// The value of the field `Host`: without the port if it is the usual one.
    var authority: String {
        let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        return endpoint.port == (isSecure ? 443 : 80) ? host : "\(host):\(endpoint.port)"
    }

    /// The name that the server's certificate must have.
    var name: String { endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host }

    /// Returns the identity that the server's certificate must prove.
    func reference() throws(JIDError) -> ServerReference {
        let host = try ServerReference(domain: name)
        guard let domain else { return host }
        return host.accepting(try ServerReference(domain: domain))
    }
}

extension WebServer: CustomStringConvertible {
    /// The URL, without the query, which may contain a token.
    package var description: String {
        let path = target.map { $0.prefix { $0 != "?" } } ?? ""
        return "\(isSecure ? "wss" : "ws")://\(authority)\(path)"
    }
}
