internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// A web listener of the built-in server.
final class ServerWebListener: WebEntryDelegate {
    private let state: ServerState
    private let access: WebAccess

    init(_ state: ServerState, _ access: WebAccess) {
        self.state = state
        self.access = access
    }

    var entryTime: TimeAmount? { ServerWebHandler.timeLimit }

    var offersTLS: Bool { state.tls != nil }

    func admit(_ channel: any Channel) -> PendingConnection? { state.admitRequest(channel) }

    func findTLS(for hello: ClientHello, _ done: @escaping (Result<WebEntry.TLS, WebEntry.Refusal>) -> Void) {
        guard let tls = state.tls else { return done(.failure(.init("tls-off", "the server has no certificate"))) }
        var offer = ClientLegOffer(identity: tls.identity)
        offer.protocols = .chosen(["http/1.1"])
        do throws(OpenSSLError) {
            let engine = try TLSEngine(tls.context, for: offer)
            done(.success(WebEntry.TLS(engine: engine) { Prose($0.explanation(peer: "the client")) }))
        } catch {
            done(.failure(.init("tls-failed", "\(error)")))
        }
    }

    func begin(
        _ channel: any Channel,
        _ accepted: AcceptedConnection,
        _ tls: TLSHandler?,
        _ pending: PendingConnection
    ) throws {
        try ServerWebHandler(state, access, tls, pending).addHTTP(to: channel)
    }

    func refused(_ refusal: WebEntry.Refusal, _ accepted: AcceptedConnection) {
        state.refused(refusal.fault.map { .tls($0) } ?? .web("\(refusal.reason)"))
    }
}

/// Answers the first request of a client: one for a WebSocket is followed by a stream, others are refused.
final class ServerWebHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// Time limit for TLS, and again for the request.
    static let timeLimit = TimeAmount.seconds(30)

    private let state: ServerState
    private let access: WebAccess
    private let tls: TLSHandler?
    private let pending: PendingConnection
    private let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
    private let encoder = HTTPResponseEncoder()
    private var head: HTTPRequestHead?
    private var isAnswered = false
    private var isInputOver = false

    init(_ state: ServerState, _ access: WebAccess, _ tls: TLSHandler?, _ pending: PendingConnection) {
        self.state = state
        self.access = access
        self.tls = tls
        self.pending = pending
    }

    /// Adds the handlers of HTTP and this one.
    func addHTTP(to channel: any Channel) throws {
        pending.limit(to: Self.timeLimit) { [state] in
            state.refused(.web("no request in time"))
            channel.close(promise: nil)
        }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(encoder)
        try pipeline.addHandler(decoder)
        try pipeline.addHandler(self)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAnswered else { return }
        switch unwrapInboundIn(data) {
        case .head(let head): receive(head, context)
        case .body: break
        case .end: if let head { open(head, context) }
        }
    }

    private func receive(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        if let (status, explanation) = access.obstacle(head) { return refuse(status, explanation, context) }
        guard WebAccess.isUpgrade(head) else {
            if let (status, explanation) = access.pathFault(head) { return refuse(status, explanation, context) }
            return refuse(.upgradeRequired, "only WebSockets are served here", context)
        }
        if let (status, explanation) = access.fault(head) { return refuse(status, explanation, context) }
        let offered = WebSocketHandshake.tokens(head.headers["sec-websocket-protocol"])
        guard offered.contains(WebSocketHandshake.subprotocol) else {
            return refuse(.notImplemented, "the subprotocol xmpp is not offered (RFC 7395)", context)
        }
        self.head = head
    }

    private func refuse(_ status: HTTPResponseStatus, _ explanation: String, _ context: ChannelHandlerContext) {
        isAnswered = true
        state.refused(.web("HTTP \(status.code): \(explanation)"))
        HTTPAnswer(status, explanation).send(context, tls)
    }

    private func write(_ part: HTTPServerResponsePart, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(part), promise: nil)
    }

    private func open(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        isAnswered = true
        let key = head.headers["sec-websocket-key"].first ?? ""
        guard let accept = try? state.cryptography.webSocketAccept(key) else { return context.close(promise: nil) }
        let headers: HTTPHeaders = [
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Accept": accept,
            "Sec-WebSocket-Protocol": WebSocketHandshake.subprotocol,
        ]
        write(.head(HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: headers)), context)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // The decoder of the request is in use.
        let channel = context.channel
        context.eventLoop.assumeIsolated().execute { [self] in
            do { try handOver(channel) } catch { channel.close(promise: nil) }
        }
    }

    /// Continues with frames.
    private func handOver(_ channel: any Channel) throws {
        pending.end()
        guard !isInputOver else { return channel.close(promise: nil) }
        let pipeline = channel.pipeline.syncOperations
        let frames = WebSocketHandler(.server, tls: tls)
        try pipeline.addHandler(frames)
        try pipeline.addHandler(ServerConnectionHandler(state, isSecure: true))
        pipeline.removeHandler(encoder, promise: nil)
        pipeline.removeHandler(self, promise: nil)
        // The decoder forwards bytes after the request when it is removed: they are frames.
        pipeline.removeHandler(decoder, promise: nil)
        frames.begin()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed, TLSHandler.Event.failed:
            isInputOver = true
            // An answer is sent first.
            if !isAnswered { context.close(promise: nil) }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        pending.end()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !isAnswered else { return context.close(promise: nil) }
        refuse(.badRequest, "malformed HTTP request", context)
    }
}
