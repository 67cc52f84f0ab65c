internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity

/// A connection to the server of a web listener, for one request.
final class WebUpstream: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    /// The reason why the server cannot be used.
    struct Failure: Error {
        var explanation: Prose
        var fault: ConnectionFault
        var status: HTTPResponseStatus { fault == .timeout ? .gatewayTimeout : .badGateway }
    }

    let channel: any Channel
    private(set) var tls: TLSHandler?
    /// Receives the parts of the answer.
    var onPart: ((HTTPClientResponsePart) -> Void)?
    /// The connection has become writable, or no longer is.
    var onWritable: (() -> Void)?
    /// The connection has ended, with the reason as a clause; called once.
    var onEnd: ((String) -> Void)?

    private let encoder = HTTPRequestEncoder()
    private let decoder = ByteToMessageHandler(HTTPResponseDecoder(leftOverBytesStrategy: .forwardBytes))
    private var whenOpen: ((Result<WebUpstream, Failure>) -> Void)?

    private init(_ channel: any Channel) { self.channel = channel }

    /// The TLS of the connection; nil without TLS.
    var agreement: TLSAgreement? { tls.flatMap { $0.engine.parameters() }.map { TLSAgreement($0, .server) } }

    /// Connects to the server, and calls `done` once, on the event loop. The connection does not read yet.
    static func connect(_ front: WebFront, _ done: @escaping (Result<WebUpstream, Failure>) -> Void) {
        let server = front.server
        let dialer = Dialer(server.endpoint, timeout: front.timeout)
        dialer.connect(on: front.loop.eventLoop).assumeIsolated().whenComplete { result in
            switch result {
            case .failure(let error):
                front.loop.context.metrics.connectionFailed()
                done(.failure(Failure(explanation: Prose(dialer.message(for: error)), fault: Dialer.fault(of: error))))
            case .success(let channel):
                let upstream = WebUpstream(channel)
                do {
                    try upstream.open(front, done)
                } catch {
                    channel.close(promise: nil)
                    done(
                        .failure(
                            Failure(
                                explanation: "cannot use the connection to \(server): \(error)",
                                fault: .unreachable
                            )
                        )
                    )
                }
            }
        }
    }

    private func open(_ front: WebFront, _ done: @escaping (Result<WebUpstream, Failure>) -> Void) throws {
        let pipeline = channel.pipeline.syncOperations
        var handler: TLSHandler?
        if front.server.isSecure {
            guard let interception = front.interception else { throw TLSMissing() }
            var target = ServerLegTarget(reference: try ServerReference(domain: front.server.name))
            target.protocols = ["http/1.1"]
            handler = TLSHandler(try TLSEngine(interception.serverLeg, to: target))
        }
        try pipeline.addHandler(encoder)
        try pipeline.addHandler(decoder)
        try pipeline.addHandler(self)
        guard let handler else { return done(.success(self)) }
        tls = handler
        whenOpen = done
        try pipeline.addHandler(handler, position: .first)
        handler.start()
        setReading(true)
    }

    private struct TLSMissing: Error, CustomStringConvertible {
        var description: String { "wss:// needs --tls intercept" }
    }

    // MARK: Called by the owner

    var isWritable: Bool { channel.isWritable }

    func write(_ part: HTTPServerRequestPart) {
        switch part {
        case .head(let head): channel.write(HTTPClientRequestPart.head(head), promise: nil)
        case .body(let body): channel.write(HTTPClientRequestPart.body(.byteBuffer(body)), promise: nil)
        case .end(let trailers): channel.write(HTTPClientRequestPart.end(trailers), promise: nil)
        }
    }

    func flush() { channel.flush() }

    func setReading(_ isWanted: Bool) { try? channel.syncOptions?.setOption(.autoRead, value: isWanted) }

    func close() {
        onPart = nil
        onEnd = nil
        onWritable = nil
        tls?.finish()
        channel.close(promise: nil)
    }

    /// Removes HTTP from the connection, which a session uses from now on.
    func leave() {
        onPart = nil
        onEnd = nil
        onWritable = nil
        let pipeline = channel.pipeline.syncOperations
        pipeline.removeHandler(self, promise: nil)
        pipeline.removeHandler(decoder, promise: nil)
        pipeline.removeHandler(encoder, promise: nil)
    }

    // MARK: Events of NIO

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { onPart?(unwrapInboundIn(data)) }

    func channelWritabilityChanged(context: ChannelHandlerContext) { onWritable?() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSHandler.Event.opened:
            setReading(false)
            finish(.success(self))
        case TLSHandler.Event.failed(let fault):
            let explanation = Prose(fault.explanation(peer: "the server"))
            finish(.failure(Failure(explanation: explanation, fault: .unreachable)))
            end("\(explanation)")
        case ChannelEvent.inputClosed:
            // The end of an answer without a length is its end; the decoder reports that when the channel is closed.
            channel.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func finish(_ result: Result<WebUpstream, Failure>) {
        let whenOpen = whenOpen
        self.whenOpen = nil
        whenOpen?(result)
    }

    private func end(_ reason: String) {
        let onEnd = onEnd
        self.onEnd = nil
        channel.close(promise: nil)
        onEnd?(reason)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(.failure(Failure(explanation: "the connection to the server failed: \(error)", fault: .unreachable)))
        end("\(error)")
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.failure(Failure(explanation: "the server closed the connection", fault: .unreachable)))
        end("it closed the connection")
        context.fireChannelInactive()
    }
}
