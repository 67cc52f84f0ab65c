internal import NIOCore
internal import NIOHTTP1
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// A connection to a web server, for one request.
final class WebConnection: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundOut = HTTPClientRequestPart

    /// The reason why the server cannot be used.
    struct Failure: Error {
        var explanation: Prose
        var fault: ConnectionFault
        /// The failure of TLS, if that is the reason.
        var tls: TLSFault?
        /// Whether the server accepted the connection.
        var isOpen = true
        var status: HTTPResponseStatus { fault == .timeout ? .gatewayTimeout : .badGateway }
    }

    /// How TLS is begun, and which identity the server's certificate must prove.
    private struct Security {
        var context: TLSContext
        var reference: ServerReference
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
    private var expiry: Scheduled<Void>?
    private var whenOpen: ((Result<WebConnection, Failure>) -> Void)?

    private init(_ channel: any Channel) { self.channel = channel }

    /// Connects to the server, and calls `done` once, on the event loop. The connection does not read yet.
    ///
    /// - Parameters:
    ///   - tls: How the server's certificate is verified; used for `wss://` only.
    ///   - reference: The identity that the certificate must prove; nil means that of the server.
    static func connect(
        to server: WebServer,
        _ tls: TLSContext?,
        reference: ServerReference? = nil,
        timeout: TimeAmount,
        on loop: any EventLoop,
        _ done: @escaping (Result<WebConnection, Failure>) -> Void
    ) {
        let endpoint = server.endpoint
        var security: Security?
        if server.isSecure {
            guard let tls else {
                return done(.failure(Failure(explanation: "wss:// needs --tls intercept", fault: .unreachable)))
            }
            do throws(JIDError) {
                let reference = if let reference { reference } else { try server.reference() }
                security = Security(context: tls, reference: reference)
            } catch {
                return done(.failure(Failure(explanation: "the host of \(server): \(error)", fault: .unreachable)))
            }
        }
        let dialer = Dialer(endpoint, timeout: timeout)
        dialer.connect(on: loop).assumeIsolated().whenComplete { result in
            switch result {
            case .failure(let error):
                let explanation = Prose(dialer.message(for: error))
                done(.failure(Failure(explanation: explanation, fault: Dialer.fault(of: error), isOpen: false)))
            case .success(let channel):
                if let reason = server.refusal(of: channel.remoteAddress) {
                    channel.close(promise: nil)
                    return done(.failure(Failure(explanation: reason, fault: .unreachable, isOpen: false)))
                }
                let connection = WebConnection(channel)
                do {
                    try connection.open(security, timeout, done)
                } catch {
                    channel.close(promise: nil)
                    done(
                        .failure(
                            Failure(
                                explanation: "cannot use the connection to \(endpoint): \(error)",
                                fault: .unreachable
                            )
                        )
                    )
                }
            }
        }
    }

    private func open(
        _ security: Security?,
        _ timeout: TimeAmount,
        _ done: @escaping (Result<WebConnection, Failure>) -> Void
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        var handler: TLSHandler?
        if let security {
            var target = ServerLegTarget(reference: security.reference)
            target.protocols = ["http/1.1"]
            handler = TLSHandler(try TLSEngine(security.context, to: target))
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
        expiry = channel.eventLoop.assumeIsolated().scheduleTask(in: timeout) { [self] in
            let seconds = timeout.nanoseconds / 1_000_000_000
            finish(
                .failure(
                    Failure(
                        explanation: "no end of the TLS handshake within \(seconds) s; the port may be one without TLS",
                        fault: .timeout
                    )
                )
            )
            channel.close(promise: nil)
        }
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

    /// Removes HTTP from the connection; other handlers of the channel use it from now on. Not during ``onPart``.
    ///
    /// - Returns: A future that completes when the decoder is removed, which is later: until then, nothing must be
    ///   written to the channel. The next handler receives the bytes after the answer.
    @discardableResult
    func leave() -> EventLoopFuture<Void> {
        onPart = nil
        onEnd = nil
        onWritable = nil
        let pipeline = channel.pipeline.syncOperations
        let removed = channel.eventLoop.makePromise(of: Void.self)
        pipeline.removeHandler(self, promise: nil)
        pipeline.removeHandler(decoder, promise: removed)
        pipeline.removeHandler(encoder, promise: nil)
        return removed.futureResult
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
            finish(.failure(Failure(explanation: explanation, fault: .unreachable, tls: fault)))
            end("\(explanation)")
        case ChannelEvent.inputClosed:
            // The end of an answer without a length is its end; the decoder reports that when the channel is closed.
            channel.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func finish(_ result: Result<WebConnection, Failure>) {
        expiry?.cancel()
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
        let reason = Self.explanation(error)
        finish(.failure(Failure(explanation: "the connection to the server failed: \(reason)", fault: .unreachable)))
        end(reason)
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.failure(Failure(explanation: "the server closed the connection", fault: .unreachable)))
        end("it closed the connection")
        context.fireChannelInactive()
    }

    private static func explanation(_ error: any Error) -> String {
        switch error {
        case HTTPParserError.headerOverflow: "the header of its answer is longer than 80 KiB"
        case HTTPParserError.invalidEOFState: "its answer is cut off"
        case let error as HTTPParserError: "its answer is not HTTP (\(error))"
        case let error as IOError: error.message
        default: "\(error)"
        }
    }
}

extension WebServer {
    /// Returns why the server must not be used at an address, because a stranger has named it; nil if it may.
    fileprivate func refusal(of address: SocketAddress?) -> Prose? {
        guard let domain, let address else { return nil }
        let isOther = endpoint.host.lowercased() != domain.lowercased()
        let refusal = TargetPolicy(resolver: nil).refusal(of: address, domain: domain, isFromRecord: isOther)
        return refusal.map { reason in
            """
            host-meta of \(domain) names \(self), whose address \(address.ipAddress ?? "?") is \(reason); to use it, give \
            its URL on the command line
            """
        }
    }
}
