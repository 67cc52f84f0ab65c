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

extension WebListenSpec {
    /// Returns the schemes and the path of the listener's URL, to follow its address in a message.
    package func note(hasTLS: Bool) -> String { " for ws\(hasTLS ? " and wss" : "")\(path.map { " at \($0)" } ?? "")" }
}

extension WebListenSpec: CustomStringConvertible {
    /// The text form that ``init(_:)`` parses.
    package var description: String { "\(place)\(path ?? "")\(server.map { "=\($0)" } ?? "")" }
}
