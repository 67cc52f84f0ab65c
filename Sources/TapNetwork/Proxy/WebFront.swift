internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// A web listener of a proxy, as one of its connections uses it.
final class WebFront {
    let loop: RelayLoop
    let server: WebServer
    let access: WebAccess
    let interception: Interception?
    let timeout: TimeAmount
    let cryptography: any Cryptography

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

    // MARK: The server

    /// Connects to the server, and calls `done` once, on the event loop. The connection does not read yet.
    func connect(_ done: @escaping (Result<WebConnection, WebConnection.Failure>) -> Void) {
        WebConnection.connect(to: server, interception?.serverLeg, timeout: timeout, on: loop.eventLoop) {
            [self] result in
            if case .failure(let failure) = result, failure.tls == nil {
                loop.context.metrics.connectionFailed()
            }
            done(result)
        }
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

extension WebFront: WebEntryDelegate {
    var entryTime: TimeAmount? { handshakeTime }

    var offersTLS: Bool { interception != nil }

    func admit(_ channel: any Channel) -> PendingConnection? { loop.admit() }

    func findTLS(for hello: ClientHello, _ done: @escaping (Result<WebEntry.TLS, WebEntry.Refusal>) -> Void) {
        guard let interception else { return done(.failure(.init("tls-off", "TLS is passed through"))) }
        let name = hello.serverName
        // The server is not verified yet, so a client must not choose the name of a certificate.
        guard name.map(access.isOwn) ?? true else {
            let name = LineBuffer.escaped(name ?? "")
            return done(
                .failure(
                    .init("web-refused", "the server name \"\(name)\" (SNI) is not served; name it by --allow-host")
                )
            )
        }
        interception.certificate(
            for: name ?? server.name,
            isNamed: name != nil,
            like: nil,
            at: loop.context.clock.now().time,
            on: loop.eventLoop
        ).assumeIsolated().whenComplete { [self] result in
            done(
                result.mapError { error in
                    .init("no-certificate", Prose((error as? IdentityFailure)?.message ?? "\(error)"))
                }.flatMap { shown in tls(interception, shown) }
            )
        }
    }

    private func tls(
        _ interception: Interception,
        _ shown: ShownCertificate
    ) -> Result<WebEntry.TLS, WebEntry.Refusal> {
        var offer = ClientLegOffer(identity: shown.identity)
        offer.protocols = .chosen(["http/1.1"])
        do throws(OpenSSLError) {
            let engine = try TLSEngine(interception.clientLeg, for: offer)
            return .success(WebEntry.TLS(engine: engine) { [self] fault in explanation(fault, engine, shown) })
        } catch {
            return .failure(.init("tls-failed", "\(error)"))
        }
    }

    /// Returns the reason why TLS with the client failed, with the certificate that it refused and the remedy.
    private func explanation(_ fault: TLSFault, _ engine: TLSEngine, _ shown: ShownCertificate) -> Prose {
        let reason = fault.explanation(peer: "the client")
        guard fault.isRefusedCertificate || fault.code == .endedInHandshake, engine.hasShownIdentity else {
            return Prose(reason)
        }
        var trust = shown.authority.flatMap { interception?.trust($0) }
        trust?.isUnconfirmed = fault.alertReceived != .unknownCA
        let advice = trust.flatMap { loop.context.options.advice?(.trustAuthority($0)) }.map { "; \($0)" } ?? ""
        return Prose("\(reason); xmpptap presented the \(shown.identity.certificate.summary)\(advice)")
    }

    func begin(
        _ channel: any Channel,
        _ accepted: AcceptedConnection,
        _ tls: TLSHandler?,
        _ pending: PendingConnection
    ) throws {
        // A connection of HTTP may stay open for long without a session.
        pending.end()
        let handler = WebHandler(self, accepted, tls: tls)
        try handler.addHTTP(to: channel)
        handler.begin()
    }

    func refused(_ refusal: WebEntry.Refusal, _ accepted: AcceptedConnection) {
        loop.refused(accepted.remote, refusal.code, refusal.reason)
    }
}
