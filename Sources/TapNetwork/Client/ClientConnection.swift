internal import NIOCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Receives the events of a ``ClientConnection``, on its event loop.
protocol ClientOwner: AnyObject {
    /// Handles an action or event of the session. The connection has already performed sends and TLS starts.
    func handle(_ action: ClientSession.Action)
    /// Bytes of the streams were sent or received, inside TLS.
    func passes(_ direction: Direction, _ bytes: Span<UInt8>)
    /// A TLS handshake begins; `directly` means direct TLS, without STARTTLS.
    func tlsBegins(directly: Bool)
    /// The handshake succeeded. Returns whether to continue with the streams; false closes the connection.
    func tlsOpened(_ parameters: TLSParameters) -> Bool
    /// The TLS handshake failed; the session's ``ClientSession/Action/failed(_:)`` follows.
    func tlsFailed(_ fault: TLSFault)
    /// The channel is writable again after its buffer was full.
    func writable()
    /// The connection is closed.
    func closed()
}

extension ClientOwner {
    /// Does nothing: most owners send too little to fill the buffer.
    func writable() {}
}

/// Passes bytes between a channel and a ``ClientSession``, and starts TLS when the session asks for it.
///
/// A handler in the channel's pipeline; used on the channel's event loop only.
final class ClientConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// TLS parameters of the connection.
    struct TLS {
        var context: TLSContext
        var target: ServerLegTarget
        /// Whether the login may use channel binding.
        var binds = true
    }

    var session: ClientSession
    private let security: ClientSession.Security
    private let tls: TLS?
    /// TLS below the channel's other handlers, which was negotiated before this one was added.
    private let outerTLS: TLSHandler?
    private var handler: TLSHandler?
    private var context: ChannelHandlerContext?
    /// The receiver of events; nil after the connection has been closed.
    private var owner: (any ClientOwner)?
    private var hasStarted = false
    private var isPerforming = false
    private var isDirect: Bool { security == .direct }

    /// - Parameters:
    ///   - security: The same value as in the session.
    ///   - tls: TLS parameters; required unless `security` is `.clear`.
    ///   - outerTLS: TLS that is already negotiated, with `security` `.clear`: the session can bind to its channel.
    init(
        _ session: consuming ClientSession,
        _ security: ClientSession.Security,
        tls: TLS?,
        outerTLS: TLSHandler? = nil,
        owner: any ClientOwner
    ) {
        self.session = session
        self.security = security
        self.tls = tls
        self.outerTLS = outerTLS
        self.owner = owner
    }

    // MARK: Called by the owner

    /// Performs the session's pending actions; the owner calls this after each call of a session method.
    func perform() {
        guard !isPerforming else { return }
        isPerforming = true
        while let action = session.next() {
            switch action {
            case .send(let bytes): send(bytes)
            case .beginTLS: secure()
            case .announced, .offered, .authenticated, .bound, .resumed, .registered, .element, .ended, .failed:
                owner?.handle(action)
            }
        }
        isPerforming = false
    }

    /// Whether the connection is writable; if not, sent data is buffered in memory.
    var isWritable: Bool { context?.channel.isWritable ?? true }

    /// Sends data of the owner; only after resource binding.
    func send(_ bytes: [UInt8]) {
        guard let context, !bytes.isEmpty else { return }
        owner?.passes(.send, bytes.span)
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }

    /// Returns a future that completes when all data sent so far has been given to the system, or the connection is
    /// closed.
    func written(on loop: any EventLoop) -> EventLoopFuture<Void> {
        guard let context else { return loop.makeSucceededVoidFuture() }
        let promise = loop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(capacity: 0)), promise: promise)
        return promise.futureResult
    }

    /// Closes the connection; with TLS, sends a close_notify alert first.
    func close() {
        handler?.finish()
        context?.close(promise: nil)
    }

    // MARK: TLS

    private func secure() {
        guard let context, let tls, handler == nil else { return lose("TLS cannot start now") }
        owner?.tlsBegins(directly: isDirect)
        do {
            let handler = TLSHandler(try TLSEngine(tls.context, to: tls.target))
            self.handler = handler
            try context.pipeline.syncOperations.addHandler(handler, position: .first)
            handler.start()
        } catch {
            lose("\(error)")
        }
    }

    private func opened() {
        guard let engine = handler?.engine, let parameters = engine.parameters() else {
            return lose("the TLS handshake is not complete")
        }
        guard owner?.tlsOpened(parameters) == true else { return close() }
        let channel = channel(engine)
        if isDirect { session.start(channel) } else { session.secured(channel) }
        perform()
    }

    private func channel(_ engine: TLSEngine) -> ClientChannel {
        var channel = ClientChannel(engine)
        if tls?.binds == false { channel.bindings = [] }
        return channel
    }

    private func lose(_ reason: String) {
        session.disconnected(reason)
        perform()
    }

    // MARK: Events of NIO

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { start() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        owner = nil
    }

    func channelActive(context: ChannelHandlerContext) { start() }

    private func start() {
        guard !hasStarted else { return }
        hasStarted = true
        if isDirect { return secure() }
        session.start(outerTLS.map { channel($0.engine) } ?? ClientChannel())
        perform()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        // Discard plaintext after `<proceed/>` (CVE-2011-0411).
        if let handler, !handler.engine.isEstablished { return lose("plaintext received where TLS was expected") }
        owner?.passes(.recv, buffer.readableBytesUInt8Span)
        session.receive(buffer.readableBytesUInt8Span)
        perform()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSHandler.Event.opened: opened()
        case TLSHandler.Event.failed(let fault):
            owner?.tlsFailed(fault)
            lose(fault.explanation(peer: "the server"))
        case ChannelEvent.inputClosed: lose("the server closed the connection")
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable { owner?.writable() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        lose("the server closed the connection")
        owner?.closed()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        lose((error as? IOError)?.message ?? "\(error)")
        context.close(promise: nil)
    }
}

/// The reason why a client failed.
struct ClientFault: Error, Sendable, Hashable {
    /// The step that failed.
    enum Step: String, Sendable {
        case stream
        case startTLS = "starttls"
        case tls
        case mechanisms
        case login
        case bind
        case session
        case open = "stream-in-use"
    }

    /// The kind of failure, for programs.
    enum Code: Sendable, Hashable {
        /// The server refused; with the error condition, if there is one.
        case refused(String?)
        /// The server signed other data than the client saw (XEP-0474, XEP-0515).
        case altered
        /// The server broke the rules of the mechanism, or did not prove that it knows the password.
        case unproven
        /// The client cannot or will not continue, and the server is not at fault. Example: the password cannot be
        /// used.
        case unable
        /// The server violated the protocol, or ended the connection.
        case broken
        /// No answer arrived in time.
        case silent
        /// Only a part of an answer arrived in time.
        case incomplete
    }

    let step: Step
    let code: Code
    /// The problem, as a human-readable clause.
    let reason: String
}
