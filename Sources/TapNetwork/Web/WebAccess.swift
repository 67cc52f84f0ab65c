internal import NIOCore
internal import NIOHTTP1
internal import TapRecord
internal import XMPPCore

/// How clients of web listeners are treated.
package struct WebOptions: Sendable, Hashable {
    /// The values of `Origin` that are accepted, apart from clients without one; `*` accepts all. Default: none.
    package var origins: Set<String> = []
    /// The values of `Host` that are accepted, besides addresses and local names. Default: none.
    package var hosts: Set<String> = []
    /// Whether xmpptap answers requests for host-meta (XEP-0156) with its own address. Default: false.
    package var answersHostMeta = false

    /// Creates options with default values.
    package init() {}
}

/// The checks of requests to a web listener.
struct WebAccess: Sendable {
    var options: WebOptions
    /// A value of `Host` that is accepted besides those of the options.
    var ownHost: String
    /// The path of WebSockets; nil accepts any.
    var path: String?
    /// Whether the listener serves pages, which may then use it.
    var hasPages = false

    /// Returns why a request must not be served, because of its `Host` or `Origin` (cross-site requests, DNS
    /// rebinding); nil if it may.
    func obstacle(_ head: HTTPRequestHead) -> (status: HTTPResponseStatus, explanation: String)? {
        let host = head.headers.first(name: "host") ?? ""
        guard isOwn(host) else {
            return (
                .misdirectedRequest,
                "the host \"\(LineBuffer.escaped(host))\" is not served; name it by --allow-host"
            )
        }
        guard let origin = head.headers.first(name: "origin") else { return nil }
        // A page of this listener.
        if hasPages, let scheme = origin.firstRange(of: "://"),
            origin[scheme.upperBound...].lowercased() == host.lowercased()
        {
            return nil
        }
        guard options.origins.contains("*") || options.origins.contains(origin.lowercased()) else {
            return (
                .forbidden,
                "pages of \"\(LineBuffer.escaped(origin))\" are not allowed here; allow them by --allow-origin"
            )
        }
        return nil
    }

    /// Returns whether clients may use a host, with or without a port, for this listener.
    func isOwn(_ authority: String) -> Bool {
        var host = authority.lowercased()
        if let colon = host.lastIndex(of: ":"), host[host.index(after: colon)...].allSatisfy(\.isNumber) {
            host = String(host[..<colon])
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if options.hosts.contains(host) || host == ownHost.lowercased() { return true }
        // A page can make a browser use another name for this machine, but not an address.
        return host == "localhost" || (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    /// Returns whether a request is one for a WebSocket.
    static func isUpgrade(_ head: HTTPRequestHead) -> Bool {
        WebSocketHandshake.tokens(head.headers["upgrade"]).contains { $0.lowercased() == "websocket" }
    }

    /// Returns what is wrong with a request for a WebSocket; nil if it is right.
    func fault(_ head: HTTPRequestHead) -> (status: HTTPResponseStatus, explanation: String)? {
        let headers = head.headers
        guard head.method == .GET, head.version == .http1_1 else {
            return (.badRequest, "a WebSocket is requested by GET with HTTP/1.1")
        }
        guard WebSocketHandshake.tokens(headers["connection"]).contains(where: { $0.lowercased() == "upgrade" }) else {
            return (.badRequest, "the field Connection has no Upgrade; a proxy on the way may have removed it")
        }
        guard headers.first(name: "sec-websocket-version") == "13" else {
            return (.upgradeRequired, "the field Sec-WebSocket-Version is not 13")
        }
        guard headers["sec-websocket-key"].count == 1, WebSocketHandshake.isKey(headers["sec-websocket-key"][0]) else {
            return (.badRequest, "the field Sec-WebSocket-Key is not the base64 form of 16 bytes")
        }
        return pathFault(head)
    }

    /// Returns why there is nothing at the path of a request; nil if WebSockets are there.
    func pathFault(_ head: HTTPRequestHead) -> (status: HTTPResponseStatus, explanation: String)? {
        guard let path, Self.path(head) != path else { return nil }
        return (.notFound, "WebSockets are at \(path)")
    }

    /// The path of a request, without the query.
    static func path(_ head: HTTPRequestHead) -> String { String(head.uri.prefix { $0 != "?" }) }
}
