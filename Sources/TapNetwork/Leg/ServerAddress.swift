/// The address of a server for xmpptap's own clients: of a TCP port, or the URL of a WebSocket.
package enum ServerAddress: Sendable, Hashable {
    case tcp(Endpoint)
    case webSocket(WebServer)

    /// Parses `HOST[:PORT]`, or a URL that begins with `ws://` or `wss://`.
    package init(_ text: String) throws(EndpointError) {
        guard text.contains("://") else {
            self = .tcp(try Endpoint.server(text))
            return
        }
        let server = try WebServer(text)
        guard server.isSecure || server.endpoint.isLoopback else {
            throw EndpointError(code: .clearWebURL, text: server.description)
        }
        self = .webSocket(server)
    }

    /// Host and port.
    package var endpoint: Endpoint {
        get {
            switch self {
            case .tcp(let endpoint): endpoint
            case .webSocket(let server): server.endpoint
            }
        }
        set {
            switch self {
            case .tcp: self = .tcp(newValue)
            case .webSocket(var server):
                server.endpoint = newValue
                self = .webSocket(server)
            }
        }
    }
}

extension ServerAddress: CustomStringConvertible {
    /// The text form that ``init(_:)`` parses, without the query of a URL.
    package var description: String {
        switch self {
        case .tcp(let endpoint): endpoint.description
        case .webSocket(let server): server.description
        }
    }
}
