public import NIOCore
internal import NIOPosix
public import TapCore
internal import TapSecurity
internal import XMPPCore

/// The client of `demo`: logs in, fetches the roster, sends presence, pings, writes to itself, and leaves.
public struct DemoClient: Sendable {
    private let account: JID
    private let password: String
    private let authority: String?
    private let cryptography: any Cryptography

    /// - Parameters:
    ///   - account: A bare address such as `romeo@localhost`.
    ///   - password: Its password, in clear; it logs in with SCRAM-SHA-256, so the password is not sent.
    ///   - authority: A file with the one certificate that it trusts, in PEM: it insists on STARTTLS. Without, it stays in
    ///     clear.
    ///   - cryptography: Digests and random bytes.
    /// - Throws: ``JIDError`` where `account` is no address.
    public init(account: String, password: String, authority: String? = nil, cryptography: any Cryptography) throws {
        self.account = try JID(parsing: account).bare
        self.password = password
        self.authority = authority
        self.cryptography = cryptography
    }

    /// Runs the whole session against a server or the proxy before it.
    ///
    /// - Parameter timeout: How long the whole may take; default 10 seconds.
    /// - Returns: What was done, step by step.
    /// - Throws: ``DemoError`` with the step that failed; `NIOConnectionError` where nobody listens.
    public func run(
        host: String,
        port: Int,
        group: any EventLoopGroup,
        timeout: TimeAmount = .seconds(10)
    ) async throws -> [DemoStep] {
        var tls = ServerLegTLS()
        tls.trust = authority.map { .file($0) } ?? .system
        let context = try authority.map { _ in try TLSContext(tls) }
        let nonce = try SCRAMMechanism.makeNonce(cryptography)
        let loop = group.next()
        let promise = loop.makePromise(of: [DemoStep].self)
        do {
            _ = try await ClientBootstrap(group: loop)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .connectTimeout(timeout)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let session = DemoSession(
                            account: account,
                            password: password,
                            wantsTLS: context != nil,
                            nonce: nonce,
                            cryptography: cryptography,
                            parser: StanzaParser()
                        )
                        let handler = DemoHandler(session, context, timeout: timeout, promise: promise)
                        try channel.pipeline.syncOperations.addHandler(handler)
                    }
                }
                .connect(host: host, port: port).get()
        } catch {
            // Where no handler was installed nobody else keeps the promise.
            promise.fail(error)
        }
        return try await promise.futureResult.get()
    }
}

/// Carries bytes between the channel and the session, and keeps the promise of its outcome.
private final class DemoHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var session: DemoSession
    private let tls: TLSContext?
    private var handler: TLSHandler?
    private let timeout: TimeAmount
    private var promise: EventLoopPromise<[DemoStep]>?
    private var start = NIODeadline.now()
    private var expiry: Scheduled<Void>?

    init(
        _ session: consuming DemoSession,
        _ tls: TLSContext?,
        timeout: TimeAmount,
        promise: EventLoopPromise<[DemoStep]>
    ) {
        self.session = session
        self.tls = tls
        self.timeout = timeout
        self.promise = promise
    }

    func channelActive(context: ChannelHandlerContext) {
        start = .now()
        expiry = context.eventLoop.assumeIsolated().scheduleTask(in: timeout) {
            self.session.expired()
            self.settle(context)
        }
        send(session.header(), context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        send(session.receive(bytes.readableBytesUInt8Span, at: elapsed), context)
        if session.isTLSDue, handler == nil { secure(context) }
        settle(context)
    }

    private var elapsed: Double { Double((NIODeadline.now() - start).nanoseconds) / 1e9 }

    private func secure(_ context: ChannelHandlerContext) {
        guard let tls else { return }
        do {
            let target = ServerLegTarget(reference: try ServerReference(domain: session.account.domain))
            let handler = TLSHandler(try TLSEngine(tls, to: target))
            self.handler = handler
            try context.pipeline.syncOperations.addHandler(handler, position: .first)
            handler.start()
        } catch {
            session.failed("\(error)")
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event as? TLSHandler.Event {
        case .opened:
            let facts = handler?.engine.facts()
            let words = facts.map { "\($0.version), certificate issued by \($0.certificate?.issuer ?? "nobody")" }
            send(session.secured(words ?? "TLS", at: elapsed), context)
        case .failed(let fault):
            session.failed(fault.words(peer: "the server"))
            settle(context)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        session.disconnected()
        settle(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise?.fail(error)
        promise = nil
        expiry?.cancel()
        context.close(promise: nil)
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        guard !bytes.isEmpty else { return }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }

    private func settle(_ context: ChannelHandlerContext) {
        guard let outcome = session.outcome else { return }
        expiry?.cancel()
        promise?.completeWith(outcome.mapError { $0 as any Error })
        promise = nil
        context.close(promise: nil)
    }
}
