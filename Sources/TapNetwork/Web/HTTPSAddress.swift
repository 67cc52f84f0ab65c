internal import TapRecord

/// The URL of a page: `https://HOST[:PORT][/PATH]`.
package struct HTTPSAddress: Sendable, Hashable {
    /// Host, port, path and query.
    let server: WebServer

    /// Parses a URL.
    package init(_ text: String) throws(EndpointError) {
        guard text.lowercased().hasPrefix("https://") else {
            throw EndpointError(
                code: .badWebURL("it does not begin with https://"),
                text: WebServer.withoutSecrets(text)
            )
        }
        server = try WebServer("wss://\(text.dropFirst("https://".count))")
    }

    /// The host, without the port.
    package var host: String { server.endpoint.host }

    /// Returns the address that a redirection names: a URL, or a path of the same host.
    func redirected(to location: String) throws(EndpointError) -> HTTPSAddress {
        if location.hasPrefix("//") { return try HTTPSAddress("https:\(location)") }
        if location.hasPrefix("/") { return try HTTPSAddress("https://\(server.authority)\(location)") }
        return try HTTPSAddress(location)
    }

    /// Returns the address with another path.
    func with(path: String) -> HTTPSAddress {
        var other = server
        other.target = path
        return HTTPSAddress(other)
    }

    private init(_ server: WebServer) { self.server = server }
}

extension HTTPSAddress: CustomStringConvertible {
    /// The URL, without the query, which may contain a token.
    package var description: String { "https\(server.description.dropFirst("wss".count))" }
}
