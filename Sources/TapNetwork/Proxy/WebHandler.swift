internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// The requests of one client of a web listener: one for a WebSocket becomes a session, all others are relayed.
///
/// Each request gets its own connection to the server, and one is handled at a time.
final class WebHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        /// No request is being handled.
        case idle
        /// A request is relayed.
        case relaying(Exchange)
        /// A WebSocket was requested.
        case upgrading(Upgrade)
        /// The rest of a request is ignored, and the connection is closed after the answer.
        case refusing
        case over
    }

    /// A request that is relayed, and its answer.
    private final class Exchange {
        let head: HTTPRequestHead
        var upstream: WebConnection?
        /// Parts of the request that arrived before the server was connected.
        var waiting: [HTTPServerRequestPart] = []
        var sent = 0
        var received = 0
        var status: HTTPResponseStatus?
        /// Reads the bodies of BOSH; nil if the request cannot be one.
        var bosh: BOSHExchange?
        /// Whether the whole request has arrived.
        var isRequestOver = false

        init(_ head: HTTPRequestHead) { self.head = head }
    }

    /// A request for a WebSocket.
    private final class Upgrade {
        let head: HTTPRequestHead
        let driver: SessionDriver
        var request: WebSocketRequest
        var upstream: WebConnection?

        init(_ head: HTTPRequestHead, _ driver: SessionDriver, _ request: WebSocketRequest) {
            self.head = head
            self.driver = driver
            self.request = request
        }
    }

    /// Time that an idle connection stays open.
    private static let idleTime = TimeAmount.seconds(75)

    private let front: WebFront
    private let accepted: AcceptedConnection
    private let tls: TLSHandler?
    private let decoder: ByteToMessageHandler<HTTPRequestDecoder>
    private let encoder = HTTPResponseEncoder()
    private let pipelining = HTTPServerPipelineHandler()
    private var state = State.idle
    private var context: ChannelHandlerContext?
    private var timer: Scheduled<Void>?
    private var isInputOver = false

    init(_ front: WebFront, _ accepted: AcceptedConnection, tls: TLSHandler?) {
        self.front = front
        self.accepted = accepted
        self.tls = tls
        decoder = ByteToMessageHandler(HTTPRequestDecoder(leftOverBytesStrategy: .forwardBytes))
    }

    /// Adds the handlers of HTTP and this one.
    func addHTTP(to channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(encoder)
        try pipeline.addHandler(decoder)
        try pipeline.addHandler(pipelining)
        try pipeline.addHandler(self)
    }

    func begin() { arm(front.handshakeTime) }

    private func arm(_ time: TimeAmount?) {
        timer?.cancel()
        timer = time.map { time in
            front.loop.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in expire() }
        }
    }

    private func expire() {
        switch state {
        case .idle, .refusing: close()
        case .upgrading(let upgrade):
            fail(upgrade, .gatewayTimeout, "no answer to the request for a WebSocket in time", nil)
        // A long poll may take minutes.
        case .relaying, .over: break
        }
    }

    // MARK: Events of NIO

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        switch (state, part) {
        case (.idle, .head(let head)): begin(head)
        case (.relaying(let exchange), _): relay(part, exchange)
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if case .relaying(let exchange) = state { exchange.upstream?.flush() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if case .relaying(let exchange) = state { exchange.upstream?.setReading(context.channel.isWritable) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case ChannelEvent.inputClosed, TLSHandler.Event.failed:
            isInputOver = true
            switch state {
            case .idle: close()
            case .upgrading(let upgrade): abandon(upgrade)
            // The answer is still sent.
            case .relaying, .refusing: break
            case .over: context.fireUserInboundEventTriggered(event)
            }
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if case .over = state { return context.fireErrorCaught(error) }
        if error is HTTPParserError {
            front.loop.record(
                accepted.remote,
                "http-malformed",
                .warn,
                "a malformed HTTP request: \(LineBuffer.escaped("\(error)"))"
            )
            switch state {
            case .idle: return answer(.badRequest, "malformed HTTP request")
            case .relaying(let exchange) where exchange.status == nil:
                end()
                return answer(.badRequest, "malformed HTTP request")
            // An answer has begun: there cannot be a second one.
            case .relaying, .upgrading, .refusing, .over: break
            }
        }
        end()
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .over = state {} else { end() }
        context.fireChannelInactive()
    }

    /// Ends what is in progress, because the client has gone.
    private func end() {
        timer?.cancel()
        switch state {
        case .relaying(let exchange):
            exchange.upstream?.close()
            exchange.bosh?.lost()
            report(exchange)
        case .upgrading(let upgrade): abandon(upgrade)
        case .idle, .refusing, .over: break
        }
        state = .over
    }

    private func abandon(_ upgrade: Upgrade) {
        state = .over
        timer?.cancel()
        upgrade.upstream?.close()
        upgrade.driver.failWebSocket("the client disconnected before the WebSocket was open", nil)
        close()
    }

    private func close() {
        timer?.cancel()
        tls?.finish()
        context?.close(promise: nil)
    }

    // MARK: Answers of xmpptap

    /// Answers with a text, and closes the connection.
    private func answer(_ status: HTTPResponseStatus, _ text: String) { send(HTTPAnswer(status, text)) }

    private func send(_ answer: HTTPAnswer) {
        guard let context else { return }
        timer?.cancel()
        state = .refusing
        answer.send(context, tls)
    }

    private func write(_ part: HTTPServerResponsePart) { context?.write(wrapOutboundOut(part), promise: nil) }

    // MARK: Requests

    private func begin(_ head: HTTPRequestHead) {
        timer?.cancel()
        if let (status, explanation) = front.access.obstacle(head) {
            front.loop.record(
                accepted.remote,
                "web-refused",
                .warn,
                "refused a request: \(explanation)",
                details: Self.details(head)
            )
            return answer(status, explanation)
        }
        if WebAccess.isUpgrade(head) {
            if let (status, explanation) = front.access.fault(head) {
                front.loop.record(
                    accepted.remote,
                    "websocket-malformed",
                    .warn,
                    "refused a request for a WebSocket: \(explanation)",
                    details: Self.details(head)
                )
                return answer(status, explanation)
            }
            return upgrade(head)
        }
        if front.access.options.answersHostMeta,
            let (text, type) = HostMeta.answer(head, isSecure: tls != nil, front.access.path)
        {
            return send(HTTPAnswer(.ok, text, type: type, ["Access-Control-Allow-Origin": "*"]))
        }
        let exchange = Exchange(head)
        exchange.waiting = [.head(front.forwarded(head))]
        exchange.bosh = BOSHExchange(front, head, accepted.remote, tls)
        state = .relaying(exchange)
        connect(exchange)
    }

    private static func details(_ head: HTTPRequestHead) -> Attributes {
        ["method": .string(head.method.rawValue), "path": .string(WebAccess.path(head))]
    }

    // MARK: Relayed requests

    private func connect(_ exchange: Exchange) {
        setReading(false)
        // The bodies of BOSH become records.
        if exchange.bosh != nil, front.loop.records.isCongested { return wait(exchange) }
        front.connect { [self] result in
            guard case .relaying(let current) = state, current === exchange else {
                if case .success(let upstream) = result { upstream.close() }
                return
            }
            switch result {
            case .success(let upstream):
                exchange.upstream = upstream
                let tls = upstream.tls.flatMap { $0.engine.parameters() }.map { TLSAgreement($0, .server) }
                exchange.bosh?.connected(tls)
                upstream.onPart = { [self] part in received(part, exchange) }
                upstream.onWritable = { [self] in setReading(upstream.isWritable) }
                upstream.onEnd = { [self] _ in lost(exchange) }
                for part in exchange.waiting { upstream.write(part) }
                exchange.waiting = []
                upstream.flush()
                upstream.setReading(true)
                setReading(true)
            case .failure(let failure):
                exchange.status = .badGateway
                exchange.bosh?.failed(failure)
                report(exchange)
                answer(.badGateway, "\(failure.explanation)")
            }
        }
    }

    /// Connects when the sinks have space again.
    private func wait(_ exchange: Exchange) {
        front.loop.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(5)) { [self] in
            guard case .relaying(let current) = state, current === exchange else { return }
            connect(exchange)
        }
    }

    private func setReading(_ isWanted: Bool) {
        try? context?.channel.syncOptions?.setOption(.autoRead, value: isWanted)
    }

    private func relay(_ part: HTTPServerRequestPart, _ exchange: Exchange) {
        if case .body(let body) = part { exchange.sent += body.readableBytes }
        exchange.bosh?.sent(part)
        if case .end = part { exchange.isRequestOver = true }
        guard let upstream = exchange.upstream else { return exchange.waiting.append(part) }
        upstream.write(part)
        setReading(upstream.isWritable)
    }

    private func received(_ part: HTTPClientResponsePart, _ exchange: Exchange) {
        guard case .relaying(let current) = state, current === exchange, let context else { return }
        exchange.bosh?.received(part)
        switch part {
        case .head(var head):
            exchange.status = head.status
            for name in ["connection", "keep-alive", "proxy-connection"] { head.headers.remove(name: name) }
            head.version = .http1_1
            if !exchange.head.isKeepAlive { head.headers.add(name: "Connection", value: "close") }
            write(.head(head))
        case .body(let body):
            exchange.received += body.readableBytes
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        case .end(let trailers):
            exchange.upstream?.onEnd = nil
            exchange.upstream?.close()
            report(exchange)
            state = .idle
            let written = context.eventLoop.makePromise(of: Void.self)
            // After an early answer, the rest of the request is not read.
            if !exchange.head.isKeepAlive || !exchange.isRequestOver || isInputOver {
                state = .refusing
                written.futureResult.assumeIsolated().whenComplete { [self] _ in close() }
            } else {
                arm(Self.idleTime)
            }
            context.writeAndFlush(wrapOutboundOut(.end(trailers)), promise: written)
            setReading(true)
        }
    }

    /// Handles the end of the server's connection before the end of its answer.
    private func lost(_ exchange: Exchange) {
        guard case .relaying(let current) = state, current === exchange else { return }
        let hasAnswered = exchange.status != nil
        exchange.bosh?.lost()
        report(exchange)
        if hasAnswered {
            state = .over
            close()
        } else {
            answer(.badGateway, "the server closed the connection without an answer")
        }
    }

    private func report(_ exchange: Exchange) {
        front.loop.context.metrics.httpRequest()
        let status = exchange.status.map { "\($0.code)" } ?? "no answer"
        front.loop.record(
            accepted.remote,
            "http-request",
            .verbose,
            "\(exchange.head.method.rawValue) \(LineBuffer.escaped(WebAccess.path(exchange.head))): \(status)",
            details: [
                "sent": .integer(Int64(exchange.sent)), "received": .integer(Int64(exchange.received)),
            ]
        )
    }

    // MARK: WebSockets

    private func upgrade(_ head: HTTPRequestHead) {
        guard let request = try? front.upgrade(head) else { return answer(.internalServerError, "no SHA-1") }
        let driver = SessionDriver(
            loop: front.loop,
            route: .web(front.server),
            accepted: accepted,
            options: front.sessionOptions
        )
        let upgrade = Upgrade(head, driver, request)
        state = .upgrading(upgrade)
        if let refusal = driver.beginWebSocket() { return fail(upgrade, .serviceUnavailable, refusal.text, nil) }
        arm(front.handshakeTime)
        // The client must wait for the answer (RFC 6455 §4.1); early bytes stay in the socket.
        setReading(false)
        front.connect { [self] result in
            guard case .upgrading = state else {
                if case .success(let upstream) = result { upstream.close() }
                return
            }
            switch result {
            case .success(let upstream):
                upgrade.upstream = upstream
                upstream.onPart = { [self] part in received(part, upgrade) }
                upstream.onEnd = { [self] reason in
                    fail(upgrade, .badGateway, "the server ended the handshake: \(reason)", nil)
                }
                upstream.write(.head(upgrade.request.head))
                upstream.write(.end(nil))
                upstream.flush()
                upstream.setReading(true)
            case .failure(let failure):
                fail(upgrade, failure.status, "\(failure.explanation)", failure.fault, failure.tls)
            }
        }
    }

    private func received(_ part: HTTPClientResponsePart, _ upgrade: Upgrade) {
        guard case .upgrading = state else { return }
        switch upgrade.request.receive(part) {
        case nil: break
        case .opened(let answer): open(upgrade, answer)
        case .refused(let refusal): pass(refusal, upgrade)
        case .invalid(let reason): fail(upgrade, .badGateway, reason, nil)
        }
    }

    /// Passes the refusal of a server on.
    private func pass(_ refusal: WebSocketRefusal, _ upgrade: Upgrade) {
        finish(upgrade, refusal.explanation(address: "in --upstream"), nil)
        send(HTTPAnswer(refusal))
    }

    private func fail(
        _ upgrade: Upgrade,
        _ status: HTTPResponseStatus,
        _ explanation: String,
        _ fault: ConnectionFault?,
        _ tls: TLSFault? = nil
    ) {
        guard case .upgrading = state else { return }
        finish(upgrade, explanation, fault, tls)
        answer(status, explanation)
    }

    private func finish(
        _ upgrade: Upgrade,
        _ explanation: String,
        _ fault: ConnectionFault?,
        _ tls: TLSFault? = nil
    ) {
        timer?.cancel()
        state = .refusing
        upgrade.upstream?.onEnd = nil
        upgrade.upstream?.close()
        upgrade.driver.failWebSocket(explanation, fault, tls)
    }

    /// Answers the client, and hands both connections to the session.
    private func open(_ upgrade: Upgrade, _ answer: HTTPResponseHead) {
        guard let context, let upstream = upgrade.upstream else { return }
        let key = upgrade.head.headers["sec-websocket-key"].first ?? ""
        guard let accept = try? front.cryptography.webSocketAccept(key) else {
            return fail(upgrade, .internalServerError, "no SHA-1", nil)
        }
        timer?.cancel()
        state = .over
        var head = HTTPResponseHead(version: .http1_1, status: .switchingProtocols, headers: answer.headers)
        head.headers.replaceOrAdd(name: "Sec-WebSocket-Accept", value: accept)
        head.headers.replaceOrAdd(name: "Connection", value: "Upgrade")
        head.headers.replaceOrAdd(name: "Upgrade", value: "websocket")
        upstream.setReading(false)
        let channel = context.channel
        let written = context.eventLoop.makePromise(of: Void.self)
        written.futureResult.assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success:
                // The decoder of the answer may be in use.
                channel.eventLoop.assumeIsolated().execute { [self] in
                    handOver(upgrade, upstream, channel, facts(upgrade, answer))
                }
            case .failure:
                upstream.close()
                upgrade.driver.failWebSocket("the client disconnected before the WebSocket was open", nil)
                channel.close(promise: nil)
            }
        }
        write(.head(head))
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
    }

    private func facts(_ upgrade: Upgrade, _ answer: HTTPResponseHead) -> WebSocketUpgrade {
        var facts = WebSocketUpgrade(path: WebAccess.path(upgrade.head))
        facts.origin = upgrade.head.headers.first(name: "origin")
        facts.offered = upgrade.head.headers["sec-websocket-protocol"]
        facts.answered = answer.headers["sec-websocket-protocol"]
        let offered = upgrade.head.headers["sec-websocket-extensions"]
        facts.removedExtensions = WebSocketExtension.parse(offered)?.map(\.name) ?? (offered.isEmpty ? [] : ["unknown"])
        if let server = answer.headers.first(name: "server") { facts.details["server"] = .string(server) }
        facts.clientTLS = tls.flatMap { $0.engine.parameters() }.map { TLSAgreement($0, .client) }
        return facts
    }

    private func handOver(
        _ upgrade: Upgrade,
        _ upstream: WebConnection,
        _ channel: any Channel,
        _ facts: WebSocketUpgrade
    ) {
        var facts = facts
        facts.serverTLS = upstream.tls?.engine.parameters().map { TLSAgreement($0, .server) }
        do {
            let pipeline = channel.pipeline.syncOperations
            try upgrade.driver.openWebSocket(channel, tls, upstream.channel, upstream.tls, facts)
            // The handlers of HTTP pass on what they have read beyond the heads. Those of the server's connection are
            // removed first: they must not see what an early client has sent.
            upstream.leave()
            pipeline.removeHandler(self, promise: nil)
            pipeline.removeHandler(pipelining, promise: nil)
            pipeline.removeHandler(decoder, promise: nil)
            pipeline.removeHandler(encoder, promise: nil)
        } catch {
            upstream.close()
            channel.close(promise: nil)
            upgrade.driver.failWebSocket("cannot use the connections: \(error)", .unreachable)
        }
    }
}
