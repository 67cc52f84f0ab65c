internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// The state that the connections of one web listener share on an event loop.
final class WebFront {
    let loop: RelayLoop
    let server: WebServer
    let path: String?
    let options: WebOptions
    let interception: Interception?
    let timeout: TimeAmount
    private let cryptography: any Cryptography

    init(
        _ loop: RelayLoop,
        _ server: WebServer,
        path: String?,
        _ options: WebOptions,
        _ interception: Interception?,
        timeout: TimeAmount,
        cryptography: any Cryptography
    ) {
        self.loop = loop
        self.server = server
        self.path = path
        self.options = options
        self.interception = interception
        self.timeout = timeout
        self.cryptography = cryptography
    }

    /// The options of sessions: TLS is that of HTTP, so that the session has none to negotiate.
    var sessionOptions: SessionOptions {
        var options = loop.context.options
        options.framing = .messages
        options.holdsProceed = false
        options.clientTLS = .auto
        options.serverTLS = .auto
        return options
    }

    /// The time for a handshake; nil without a limit.
    var handshakeTime: TimeAmount? { loop.context.options.loginTime.map { .nanoseconds($0) } }

    /// Returns the answer to a key (RFC 6455 §4.2.2); nil without SHA-1.
    func accept(_ key: String) -> String? {
        try? WebSocketHandshake.accept(key: key) { bytes throws in try cryptography.digest(.sha1, of: bytes) }
    }

    // MARK: The server

    /// Connects to the server, and calls `done` once, on the event loop. The connection does not read yet.
    func connect(_ done: @escaping (Result<WebConnection, WebConnection.Failure>) -> Void) {
        var security: WebConnection.Security?
        if server.isSecure {
            guard let interception else {
                return done(.failure(.init(words: "wss:// needs --tls intercept", fault: .unreachable)))
            }
            do throws(JIDError) {
                security = .init(
                    context: interception.serverLeg,
                    reference: try ServerReference(domain: server.name)
                )
            } catch {
                return done(.failure(.init(words: "the host of \(server): \(error)", fault: .unreachable)))
            }
        }
        WebConnection.connect(to: server.endpoint, security, timeout: timeout, on: loop.eventLoop) { [self] result in
            if case .failure(let failure) = result, failure.tls == nil {
                loop.context.metrics.connectionFailed()
            }
            done(result)
        }
    }

    // MARK: Records outside sessions

    func record(
        _ code: String,
        _ level: Level,
        _ message: Prose,
        _ channel: any Channel,
        details: Attributes? = nil
    ) {
        guard level <= loop.context.options.level else { return }
        let now = loop.context.clock.now()
        var record = Record(
            sequence: loop.context.run.nextSequence(),
            time: now.time,
            monotonic: now.monotonic,
            kind: level <= .warn ? .error : .note,
            level: level,
            part: .net
        )
        record.remote = channel.remoteAddress?.endpoint?.description
        record.leg = .client
        record.code = code
        record.message = message
        record.details = details
        let nothing: [UInt8] = []
        loop.records.write(loop.tools.redactor.redact(record), content: nothing.span)
    }

    // MARK: Checks of requests

    /// Returns why a request must not be served, because of its `Host` or `Origin` (cross-site requests, DNS
    /// rebinding); nil if it may.
    func obstacle(_ head: HTTPRequestHead) -> (status: HTTPResponseStatus, words: String)? {
        let host = head.headers.first(name: "host") ?? ""
        guard isOwn(host) else {
            return (
                .misdirectedRequest,
                "the host \"\(LineBuffer.escaped(host))\" is not served; name it by --allow-host"
            )
        }
        guard let origin = head.headers.first(name: "origin"), Self.isUpgrade(head) else { return nil }
        // A page that this listener has relayed.
        if let scheme = origin.firstRange(of: "://"), origin[scheme.upperBound...].lowercased() == host.lowercased() {
            return nil
        }
        guard options.origins.contains("*") || options.origins.contains(origin.lowercased()) else {
            return (
                .forbidden,
                "pages of \"\(LineBuffer.escaped(origin))\" must not open a WebSocket here; allow them by --allow-origin"
            )
        }
        return nil
    }

    private func isOwn(_ authority: String) -> Bool {
        var host = authority.lowercased()
        if let colon = host.lastIndex(of: ":"), host[host.index(after: colon)...].allSatisfy(\.isNumber) {
            host = String(host[..<colon])
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        if options.hosts.contains(host) || host == server.endpoint.host.lowercased() { return true }
        // A page can make a browser use another name for this machine, but not an address.
        return host == "localhost" || (try? SocketAddress(ipAddress: host, port: 0)) != nil
    }

    /// Returns whether a request is one for a WebSocket.
    static func isUpgrade(_ head: HTTPRequestHead) -> Bool {
        WebSocketHandshake.tokens(head.headers["upgrade"]).contains { $0.lowercased() == "websocket" }
    }

    /// Returns what is wrong with a request for a WebSocket; nil if it is right.
    func fault(_ head: HTTPRequestHead) -> (status: HTTPResponseStatus, words: String)? {
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
        if let path, Self.path(head) != path {
            return (.notFound, "WebSockets are at \(path)")
        }
        return nil
    }

    /// The path of a request, without the query.
    static func path(_ head: HTTPRequestHead) -> String { String(head.uri.prefix { $0 != "?" }) }

    // MARK: Forwarded requests

    /// Fields about a client's address. Servers believe them when they come from loopback: Prosody takes from them the
    /// address of a client, and whether its connection is secure. So a client must not write them.
    private static let claims = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip"]

    /// Returns the request as it is sent to the server.
    func forwarded(_ head: HTTPRequestHead) -> HTTPRequestHead {
        var forwarded = head
        for name in Self.claims + ["host", "connection", "keep-alive", "proxy-connection"] {
            forwarded.headers.remove(name: name)
        }
        var headers = HTTPHeaders([("Host", server.authority)])
        headers.add(contentsOf: forwarded.headers)
        headers.add(name: "Connection", value: "close")
        forwarded.headers = headers
        return forwarded
    }

    /// Returns the request for a WebSocket as it is sent to the server.
    func upgrade(_ head: HTTPRequestHead) throws -> WebSocketRequest {
        var upgrade = forwarded(head)
        if let target = server.target { upgrade.uri = target }
        return try WebSocketRequest(upgrade, cryptography: cryptography)
    }
}
