internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Reads the first bytes of a connection to the server's web listener: a ClientHello is answered by TLS, HTTP follows.
///
/// Clear text is accepted from this machine only, unless the server has no certificate.
final class ServerWebEntry: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    /// Time limit for everything before the WebSocket is open.
    static let timeLimit = TimeAmount.seconds(30)

    private enum Stage {
        case reading
        case handshake(TLSHandler)
        case over
    }

    private let state: ServerState
    private let access: WebAccess
    private var stage = Stage.reading
    private var timer: Scheduled<Void>?

    init(_ state: ServerState, _ access: WebAccess) {
        self.state = state
        self.access = access
    }

    func channelActive(context: ChannelHandlerContext) {
        guard state.admitRequest() else {
            stage = .over
            return context.close(promise: nil)
        }
        let channel = context.channel
        timer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.timeLimit) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .reading = stage else { return context.fireChannelRead(data) }
        let buffer = unwrapInboundIn(data)
        guard let first = buffer.getInteger(at: buffer.readerIndex, as: UInt8.self) else { return }
        do {
            if first == 0x16, let tls = state.tls {
                var offer = ClientLegOffer(identity: tls.identity)
                offer.protocols = .chosen(["http/1.1"])
                let handler = TLSHandler(try TLSEngine(tls.context, for: offer))
                try context.pipeline.syncOperations.addHandler(handler, position: .first)
                stage = .handshake(handler)
                return handler.start(early: buffer)
            }
            guard state.tls == nil || context.channel.remoteAddress?.isLoopback != false else {
                state.refused(.web("clear text from another machine; use wss://"))
                return leave(context)
            }
            try begin(context, tls: nil)
            context.fireChannelRead(data)
        } catch {
            leave(context)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (stage, event) {
        case (.handshake(let handler), TLSHandler.Event.opened):
            do { try begin(context, tls: handler) } catch { leave(context) }
        case (.handshake, TLSHandler.Event.failed(let fault)):
            state.refused(.tls(fault))
            leave(context)
        case (.over, _): context.fireUserInboundEventTriggered(event)
        case (_, ChannelEvent.inputClosed): leave(context)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// Continues with HTTP.
    private func begin(_ context: ChannelHandlerContext, tls: TLSHandler?) throws {
        stage = .over
        let handler = ServerWebHandler(state, access, tls: tls, timer: timer)
        timer = nil
        try handler.addHTTP(to: context.channel)
    }

    private func leave(_ context: ChannelHandlerContext) {
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if timer != nil { state.endRequest() }
        timer?.cancel()
        timer = nil
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .over = stage { context.fireErrorCaught(error) } else { leave(context) }
    }
}

/// Answers the first request of a client: one for a WebSocket is followed by a stream, others are refused.
final class ServerWebHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let state: ServerState
    private let access: WebAccess
    private let tls: TLSHandler?
    private var timer: Scheduled<Void>?
    private let decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
    private let encoder = HTTPResponseEncoder()
    private var head: HTTPRequestHead?
    private var isAnswered = false
    private var isCounted = true
    private var isInputOver = false

    /// - Parameter timer: The time limit, which this handler cancels.
    init(_ state: ServerState, _ access: WebAccess, tls: TLSHandler?, timer: Scheduled<Void>?) {
        self.state = state
        self.access = access
        self.tls = tls
        self.timer = timer
    }

    /// Adds the handlers of HTTP and this one.
    func addHTTP(to channel: any Channel) throws {
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
        if let (status, words) = access.obstacle(head) { return refuse(status, words, context) }
        guard WebAccess.isUpgrade(head) else {
            if let (status, words) = access.pathFault(head) { return refuse(status, words, context) }
            return refuse(.upgradeRequired, "only WebSockets are served here", context)
        }
        if let (status, words) = access.fault(head) { return refuse(status, words, context) }
        let offered = WebSocketHandshake.tokens(head.headers["sec-websocket-protocol"])
        guard offered.contains(WebSocketHandshake.subprotocol) else {
            return refuse(.notImplemented, "the subprotocol xmpp is not offered (RFC 7395)", context)
        }
        self.head = head
    }

    private func refuse(_ status: HTTPResponseStatus, _ words: String, _ context: ChannelHandlerContext) {
        isAnswered = true
        state.refused(.web("HTTP \(status.code): \(words)"))
        let body = context.channel.allocator.buffer(string: "xmpptap: \(words)\n")
        var headers: HTTPHeaders = [
            "Content-Type": "text/plain; charset=utf-8", "Content-Length": "\(body.readableBytes)",
            "Connection": "close",
        ]
        if status == .upgradeRequired {
            headers.add(name: "Upgrade", value: "websocket")
            headers.replaceOrAdd(name: "Connection", value: "Upgrade, close")
            headers.add(name: "Sec-WebSocket-Version", value: "13")
        }
        write(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers)), context)
        write(.body(.byteBuffer(body)), context)
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
        let channel = context.channel
        // The rest of the request is read first, for a short time: a reset could discard the answer.
        written.futureResult.assumeIsolated().whenComplete { [tls] _ in
            tls?.finish()
            channel.close(mode: .output, promise: nil)
            channel.eventLoop.assumeIsolated().scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
        }
    }

    private func write(_ part: HTTPServerResponsePart, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(part), promise: nil)
    }

    private func open(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        isAnswered = true
        let key = head.headers["sec-websocket-key"].first ?? ""
        guard let accept = state.accept(key) else { return context.close(promise: nil) }
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
        stopCounting()
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

    private func stopCounting() {
        timer?.cancel()
        timer = nil
        guard isCounted else { return }
        isCounted = false
        state.endRequest()
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
        stopCounting()
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard error is HTTPParserError, !isAnswered else { return context.close(promise: nil) }
        refuse(.badRequest, "malformed HTTP request", context)
    }
}
