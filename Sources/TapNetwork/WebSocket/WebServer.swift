internal import TapRecord

/// A server that is reached by WebSocket: `ws://HOST[:PORT][/PATH]`, or `wss://` with TLS (RFC 6455 §3).
package struct WebServer: Sendable, Hashable {
    /// The host, and the port: 80, or 443 with TLS, unless given.
    package var endpoint: Endpoint
    /// Whether the server uses TLS.
    package var isSecure: Bool
    /// The path and query to request instead of the client's; nil passes those of the client.
    package var target: String?

    /// Parses a URL.
    package init(_ text: String) throws(EndpointError) {
        func error(_ reason: String) -> EndpointError { EndpointError(code: .badWebURL(reason), text: text) }
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

    /// The value of the field `Host`: without the port if it is the usual one.
    var authority: String {
        let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        return endpoint.port == (isSecure ? 443 : 80) ? host : "\(host):\(endpoint.port)"
    }

    /// The name that the server's certificate must have.
    var name: String { endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host }
}

extension WebServer: CustomStringConvertible {
    /// The URL, without the query, which may contain a token.
    package var description: String {
        let path = target.map { $0.prefix { $0 != "?" } } ?? ""
        return "\(isSecure ? "wss" : "ws")://\(authority)\(path)"
    }
}

/// Where to listen for WebSockets, in the form `[HOST:]PORT[/PATH][=URL]`.
package struct WebListenSpec: Sendable, Hashable {
    /// The address.
    package var place: ListenSpec
    /// The path of WebSockets; nil accepts any.
    package var path: String?
    /// The server; nil means the default one.
    package var server: WebServer?

    /// Parses a specification.
    package init(_ text: String) throws(EndpointError) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let address = parts.first ?? ""
        if parts.count > 1 { server = try WebServer(parts[1]) }
        let host = address.prefix { $0 != "/" }
        let path = address.dropFirst(host.count)
        self.path = path.isEmpty ? nil : String(path)
        place = try ListenSpec(String(host))
    }
}

extension WebListenSpec: CustomStringConvertible {
    /// The text form that ``init(_:)`` parses.
    package var description: String { "\(place)\(path ?? "")\(server.map { "=\($0)" } ?? "")" }
}

/// How clients of web listeners are treated.
package struct WebOptions: Sendable, Hashable {
    /// The values of `Origin` that may open a WebSocket, apart from clients without one; `*` accepts all. Default: none.
    package var origins: Set<String> = []
    /// The values of `Host` that are accepted, besides addresses and local names. Default: none.
    package var hosts: Set<String> = []
    /// Whether xmpptap answers requests for host-meta (XEP-0156) with its own address. Default: false.
    package var answersHostMeta = false

    /// Creates options with default values.
    package init() {}
}
