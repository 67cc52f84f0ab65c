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
    let access: WebAccess
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
        access = WebAccess(options: options, ownHost: server.endpoint.host, path: path, hasPages: true)
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
                return done(.failure(.init(explanation: "wss:// needs --tls intercept", fault: .unreachable)))
            }
            do throws(JIDError) {
                var reference = try ServerReference(domain: server.name)
                if let domain = server.domain { reference = reference.accepting(try ServerReference(domain: domain)) }
                security = .init(context: interception.serverLeg, reference: reference)
            } catch {
                return done(.failure(.init(explanation: "the host of \(server): \(error)", fault: .unreachable)))
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
