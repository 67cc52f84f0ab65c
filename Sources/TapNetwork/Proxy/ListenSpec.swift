internal import NIOCore

/// Where to listen and what to relay to, in the form `[HOST:]PORT[=UPSTREAM]`.
///
/// Examples: `15222`, `127.0.0.1:15222`, `[::1]:0`, `15222=xmpp.example.org:5222`, `15222=domain:example.org`.
package struct ListenSpec: Sendable, Hashable {
    /// The default port to listen on; XMPP servers do not use it.
    package static let defaultPort = 15222
    /// The default port to listen on for servers.
    package static let defaultServerPort = 15269

    /// The address to listen on; nil means both loopback addresses, 127.0.0.1 and ::1, on the same port.
    package var host: String?
    /// The port; 0 lets the system choose one.
    package var port: Int
    /// The server for clients of this listener; nil means the proxy's default server.
    package var upstream: Upstream?
    /// How a connection to this listener begins. Not a part of the text form.
    package var entry = Entry.stream

    /// How a connection to a listener begins.
    package enum Entry: Sendable, Hashable {
        /// With the first bytes for the server.
        case stream
        /// With a request for a target: SOCKS version 5 or HTTP CONNECT. The upstream lists the servers.
        case request
        /// With the first bytes for the server, to which the client has connected: the system redirected the connection
        /// to xmpptap. The upstream lists the servers.
        case redirect
    }

    /// Creates a specification; the parts are not checked.
    package init(host: String? = nil, port: Int = ListenSpec.defaultPort, upstream: Upstream? = nil) {
        self.host = host
        self.port = port
        self.upstream = upstream
    }

    /// Returns the same specification with another beginning of its connections.
    package func with(_ entry: Entry) -> ListenSpec {
        var copy = self
        copy.entry = entry
        return copy
    }

    /// Parses `[HOST:]PORT[=UPSTREAM]`.
    package init(_ text: String) throws(EndpointError) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let place = parts.first ?? ""
        if parts.count > 1 {
            guard !parts[1].isEmpty else { throw EndpointError(code: .missingUpstream, text: text) }
            upstream = try Upstream(parts[1])
        }
        if !place.isEmpty, place.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            guard let port = Endpoint.port(place[...], allowsZero: true) else {
                throw EndpointError(code: .badPort(place, allowsZero: true), text: text)
            }
            self.port = port
            return
        }
        do throws(EndpointError) {
            let endpoint = try Endpoint(place, allowsZero: true)
            host = endpoint.host
            port = endpoint.port
        } catch {
            throw EndpointError(code: error.code == .missingPort ? .missingListenPort : error.code, text: text)
        }
    }
}

extension ListenSpec {
    /// Returns whether both specifications use the same address and port. Host names are not resolved, except local
    /// ones, and compared as names.
    package func overlaps(_ other: ListenSpec) -> Bool {
        guard port == other.port, port != 0 else { return false }
        guard let addresses, let others = other.addresses else { return host?.lowercased() == other.host?.lowercased() }
        return addresses.contains { address in
            others.contains { other in
                guard address.protocol == other.protocol else { return false }
                return address.ipAddress == other.ipAddress || address.isWildcard || other.isWildcard
            }
        }
    }

    /// The addresses; nil if the host name must be resolved.
    private var addresses: [SocketAddress]? {
        guard let name = LocalName(host ?? "localhost") else {
            return host.flatMap { try? SocketAddress(ipAddress: $0, port: port) }.map { [$0] }
        }
        return name.addresses(port: port)
    }
}

extension ListenSpec: CustomStringConvertible {
    /// The text form that ``init(_:)`` parses.
    package var description: String {
        let place = host.map { Endpoint(host: $0, port: port).description } ?? String(port)
        return upstream.map { "\(place)=\($0)" } ?? place
    }
}
