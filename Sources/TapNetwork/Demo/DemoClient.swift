package import NIOCore
internal import NIOPosix
package import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// The client of `demo`: logs in, fetches the roster, sends presence, pings the server, sends itself a message, and
/// closes.
package struct DemoClient: Sendable {
    private let account: JID
    private let password: String
    private let authority: String?
    private let cryptography: any Cryptography

    /// - Parameters:
    ///   - account: A bare address such as `romeo@localhost`.
    ///   - password: The account's password in clear text; the client logs in with SCRAM, so it is not sent.
    ///   - authority: A PEM file with the only trust anchor of the client, which then requires STARTTLS. If nil, the
    ///     client does not use TLS.
    ///   - cryptography: Digests and random bytes.
    /// - Throws: ``JIDError`` if `account` is not a valid address.
    package init(account: String, password: String, authority: String? = nil, cryptography: any Cryptography) throws {
        self.account = try JID(parsing: account).bare
        self.password = password
        self.authority = authority
        self.cryptography = cryptography
    }

    /// Runs the whole session with a server, or through a proxy.
    ///
    /// - Parameter timeout: Time limit for the whole session; default 10 seconds.
    /// - Returns: The results, step by step.
    /// - Throws: ``DemoError`` with the step that failed; `NIOConnectionError` if the connection is refused.
    package func run(
        host: String,
        port: Int,
        group: any EventLoopGroup,
        timeout: TimeAmount = .seconds(10)
    ) async throws -> [DemoStep] {
        let nonce = try SCRAMMechanism.makeNonce(cryptography)
        let context = try authority.map { path in
            var options = ServerLegTLS()
            options.trust = .file(path)
            return try TLSContext(options)
        }
        let target = ServerLegTarget(reference: try ServerReference(domain: account.domain))
        let security: ClientSession.Security = context == nil ? .clear : .startTLS(isRequired: true)
        let loop = group.next()
        let promise = loop.makePromise(of: [DemoStep].self)
        do {
            _ = try await ClientBootstrap(group: loop)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .connectTimeout(timeout)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let run = DemoConversation(password: password, nonce: nonce, promise: promise)
                        let session = ClientSession(
                            account: account,
                            resource: "demo",
                            security: security,
                            cryptography: cryptography,
                            parser: StanzaParser()
                        )
                        // No channel binding: the proxy that the demo shows terminates TLS, so that the login would
                        // fail.
                        let tls = context.map { ClientConnection.TLS(context: $0, target: target, binds: false) }
                        let connection = ClientConnection(session, security, tls: tls, owner: run)
                        run.begin(connection, on: channel.eventLoop, timeout: timeout)
                        try channel.pipeline.syncOperations.addHandler(connection)
                    }
                }
                .connect(host: host, port: port).get()
        } catch {
            // No handler exists that could complete the promise.
            promise.fail(error)
        }
        return try await promise.futureResult.get()
    }
}

/// Runs the demo's script over one connection, and completes the promise with the outcome.
private final class DemoConversation: ClientOwner {
    private let password: String
    private let nonce: String
    private var promise: EventLoopPromise<[DemoStep]>?
    /// The connection, which owns this object until it is closed.
    private weak var connection: ClientConnection?
    private var script: DemoScript?
    private var mechanism = ""
    private var steps: [DemoStep] = []
    private var start = NIODeadline.now()
    private var expiry: Scheduled<Void>?

    init(password: String, nonce: String, promise: EventLoopPromise<[DemoStep]>) {
        self.password = password
        self.nonce = nonce
        self.promise = promise
    }

    func begin(_ connection: ClientConnection, on eventLoop: any EventLoop, timeout: TimeAmount) {
        self.connection = connection
        start = .now()
        expiry = eventLoop.assumeIsolated().scheduleTask(in: timeout) { [self] in
            self.connection?.session.expired()
            self.connection?.perform()
        }
    }

    func handle(_ action: ClientSession.Action) {
        switch action {
        case .offered(let features): login(features)
        case .authenticated: addStep("login", "\(mechanism), server signature verified")
        case .bound(let jid, _):
            addStep("bind", jid.description)
            let script = DemoScript(jid)
            self.script = script
            connection?.send(script.opening)
        case .element(let element, _): receive(element)
        case .ended:
            addStep("close", "the server closed its stream too")
            finish(.success(steps))
        case .failed(let fault): finish(.failure(DemoError(step: fault.step.rawValue, reason: fault.reason)))
        case .send, .beginTLS, .announced, .resumed, .registered: break
        }
    }

    private func login(_ features: StreamFeatures) {
        guard let connection else { return }
        addStep("stream", "\(connection.session.account.domain) offers \(features.mechanisms.joined(separator: ", "))")
        guard let choice = LoginChoice.strongest(of: features, on: connection.session.channel) else {
            return finish(.failure(DemoError(step: "login", reason: "the server does not offer SCRAM")))
        }
        mechanism = choice.mechanism
        connection.session.authenticate(choice, password: password, nonce: nonce)
        connection.perform()
    }

    private func receive(_ element: Element) {
        do throws(DemoError) {
            guard let (title, detail, next) = try script?.receive(element) else { return }
            addStep(title, detail)
            if let next { return connection?.send(next) ?? () }
            script = nil
            connection?.session.close()
            connection?.perform()
        } catch {
            finish(.failure(error))
        }
    }

    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {}
    func tlsBegins(directly: Bool) {}
    func tlsFailed(_ fault: TLSFault) {}
    func closed() {}

    func tlsOpened(_ parameters: TLSParameters) -> Bool {
        addStep("tls", "\(parameters.version), certificate issued by \(parameters.certificate?.issuer ?? "unknown")")
        return true
    }

    private func addStep(_ title: String, _ detail: String) {
        let time = Double((NIODeadline.now() - start).nanoseconds) / 1e9
        steps.append(DemoStep(title: title, detail: detail, time: time))
    }

    private func finish(_ outcome: Result<[DemoStep], DemoError>) {
        expiry?.cancel()
        promise?.completeWith(outcome.mapError { $0 as any Error })
        promise = nil
        connection?.close()
    }
}
