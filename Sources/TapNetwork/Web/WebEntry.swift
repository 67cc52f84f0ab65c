internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity

/// The owner of a ``WebEntry``: a web listener of a proxy, or of the built-in server.
protocol WebEntryDelegate: AnyObject {
    /// Time for TLS, or for the first bytes of a request; nil without a limit.
    var entryTime: TimeAmount? { get }
    /// Whether clients can use TLS, which clients on other machines then must.
    var offersTLS: Bool { get }

    /// Counts a connection; returns nil if it exceeds a limit.
    func admit(_ channel: any Channel) -> PendingConnection?

    /// Finds the TLS for a client. Calls `done` once, on the event loop.
    func findTLS(for hello: ClientHello, _ done: @escaping (Result<WebEntry.TLS, WebEntry.Refusal>) -> Void)

    /// Adds the handlers of HTTP, with the given TLS below them. The delegate ends `pending`.
    func begin(_ channel: any Channel, _ accepted: AcceptedConnection, _ tls: TLSHandler?, _ pending: PendingConnection)
        throws

    /// Reports that a connection is closed before a request.
    func refused(_ refusal: WebEntry.Refusal, _ accepted: AcceptedConnection)
}

/// Reads the first bytes of a connection to a web listener: a ClientHello is answered by TLS, HTTP follows.
final class WebEntry: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// The TLS for a client.
    struct TLS {
        let engine: TLSEngine
        /// Returns the description of a failure, with the remedy.
        let explanation: (TLSFault) -> Prose
    }

    /// The reason why a connection is closed before a request.
    struct Refusal: Error {
        let code: String
        /// The reason, as a clause.
        let reason: Prose
        /// The failure of TLS, if that is the reason.
        var fault: TLSFault?

        init(_ code: String, _ reason: Prose, _ fault: TLSFault? = nil) {
            self.code = code
            self.reason = reason
            self.fault = fault
        }
    }

    private enum Stage {
        case idle
        case reading
        /// The TLS for the client is being found.
        case finding
        case handshake(TLSHandler, TLS)
        case over
    }

    private let delegate: any WebEntryDelegate
    private let accepted: AcceptedConnection
    private var pending: PendingConnection?
    private var stage = Stage.idle
    private var reader = ClientHelloReader()
    private var early = ByteBuffer()
    private var context: ChannelHandlerContext?

    init(_ delegate: any WebEntryDelegate, _ accepted: AcceptedConnection) {
        self.delegate = delegate
        self.accepted = accepted
    }

    // MARK: Events of NIO

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { start(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) { start(context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        switch stage {
        case .idle: break
        case .over, .handshake: context.fireChannelRead(data)
        case .finding: early.writeBuffer(&buffer)
        case .reading:
            let result = reader.append(buffer.readableBytesUInt8Span)
            early.writeBuffer(&buffer)
            handle(result, context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (stage, event) {
        case (.handshake(let handler, _), TLSHandler.Event.opened): begin(context, handler)
        case (.handshake(_, let tls), TLSHandler.Event.failed(let fault)):
            refuse(Refusal("tls-failed", tls.explanation(fault), fault))
        case (.over, _): context.fireUserInboundEventTriggered(event)
        case (_, ChannelEvent.inputClosed): refuse(nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .over = stage { context.fireErrorCaught(error) } else { refuse(nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .over = stage { context.fireChannelInactive() } else { refuse(nil) }
    }

    // MARK: Steps

    private func start(_ context: ChannelHandlerContext) {
        guard case .idle = stage else { return }
        guard let pending = delegate.admit(context.channel) else {
            stage = .over
            return context.close(promise: nil)
        }
        self.pending = pending
        stage = .reading
        pending.limit(to: delegate.entryTime) { [self] in refuse(Refusal("web-timeout", "no request in time")) }
        setReading(true, context)
    }

    private func handle(_ result: ClientHelloReader.Result, _ context: ChannelHandlerContext) {
        if result != .needMore, result != .notTLS, !delegate.offersTLS {
            return refuse(Refusal("tls-off", "TLS, but the listener has none: it needs --tls intercept"))
        }
        switch result {
        case .needMore: return
        case .notTLS:
            // The address in a PROXY header says nothing about the connection over which the request comes.
            guard !delegate.offersTLS || context.channel.remoteAddress?.isLoopback != false else {
                return refuse(
                    Refusal("web-clear", "HTTP without TLS is accepted from this machine only; use wss:// or https://")
                )
            }
            begin(context, nil)
        case .malformed(let reason): refuse(Refusal("malformed-client-hello", "malformed ClientHello: \(reason)"))
        case .hello(let hello):
            stage = .finding
            setReading(false, context)
            delegate.findTLS(for: hello) { [self] result in
                switch result {
                case .success(let tls): secure(tls)
                case .failure(let refusal): refuse(refusal)
                }
            }
        }
    }

    private func secure(_ tls: TLS) {
        guard let context, case .finding = stage else { return }
        let handler = TLSHandler(tls.engine)
        do {
            try context.pipeline.syncOperations.addHandler(handler, position: .first)
        } catch {
            return refuse(nil)
        }
        stage = .handshake(handler, tls)
        let hello = early
        early = ByteBuffer()
        handler.start(early: hello)
        setReading(true, context)
    }

    private func setReading(_ isWanted: Bool, _ context: ChannelHandlerContext) {
        try? context.channel.syncOptions?.setOption(.autoRead, value: isWanted)
    }

    /// Continues with HTTP.
    private func begin(_ context: ChannelHandlerContext, _ tls: TLSHandler?) {
        guard let pending else { return }
        stage = .over
        pending.limit(to: nil) {}
        do {
            try delegate.begin(context.channel, accepted, tls, pending)
        } catch {
            pending.end()
            return context.close(promise: nil)
        }
        if early.readableBytes > 0 { context.fireChannelRead(NIOAny(early)) }
        early = ByteBuffer()
        context.fireChannelReadComplete()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    /// Closes the connection, and reports the reason, if there is one.
    private func refuse(_ refusal: Refusal?) {
        if case .over = stage { return }
        stage = .over
        pending?.end()
        if let refusal { delegate.refused(refusal, accepted) }
        context?.close(promise: nil)
    }
}
