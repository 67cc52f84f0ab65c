internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// Reads the PROXY header of a client's connection, and then starts the session.
///
/// A connection is closed, with a record, if its header is missing, malformed or late. A connection of the proxy itself
/// becomes a session only if data follows the header, so that health checks are not recorded.
final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private enum Stage {
        case reading
        /// The header contains no client, and no data has followed yet.
        case idle(ProxyHeader)
        case over
    }

    private let loop: RelayLoop
    private let options: ProxyProtocol
    private let begin: (any Channel, ProxyHeader) throws -> Void
    private var stage = Stage.reading
    private var reader = ProxyHeaderReader()
    private var pending: PendingConnection?

    /// - Parameter begin: Starts what follows the header on the channel, which is active.
    init(
        loop: RelayLoop,
        options: ProxyProtocol,
        begin: @escaping (any Channel, ProxyHeader) throws -> Void
    ) {
        self.loop = loop
        self.options = options
        self.begin = begin
    }

    func channelActive(context: ChannelHandlerContext) {
        guard case .reading = stage, let pending = loop.admit() else {
            stage = .over
            return context.close(promise: nil)
        }
        self.pending = pending
        let channel = context.channel
        guard options.senders.isEmpty || channel.remoteAddress.map(isSender) ?? true else {
            let advice = loop.context.options.advice.map { "; \($0(.allowSender))" }
            return refuse(channel, "its address is not an allowed sender of PROXY headers\(advice ?? "")")
        }
        pending.limit(to: options.timeout) { [self] in
            let milliseconds = options.timeout.nanoseconds / 1_000_000
            refuse(channel, "no PROXY header within \(milliseconds) ms")
        }
        try? channel.syncOptions?.setOption(.autoRead, value: true)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        switch stage {
        case .over: context.fireChannelRead(data)
        case .idle(let header): handOver(context, header, buffer)
        case .reading:
            switch reader.append(buffer.readableBytesView) {
            case .needMore: break
            case .fault(let reason): refuse(context.channel, reason)
            case .header(let header, let rest):
                var buffer = buffer
                buffer.moveReaderIndex(to: buffer.writerIndex - rest)
                if rest > 0 || !isOfProxy(header, context.channel) {
                    handOver(context, header, buffer)
                } else {
                    stage = .idle(header)
                }
            }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        switch stage {
        case .over: context.fireUserInboundEventTriggered(event)
        case .idle: refuse(context.channel, nil)
        case .reading: refuse(context.channel, "the connection ended before a complete PROXY header")
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard isWaiting else { return context.fireErrorCaught(error) }
        refuse(context.channel, "the connection failed before a complete PROXY header")
    }

    func channelInactive(context: ChannelHandlerContext) {
        guard isWaiting else { return context.fireChannelInactive() }
        stopWaiting()
    }

    /// Returns whether the connection is the proxy's own, such as a health check. In version 1, a proxy sends its own
    /// address for these.
    private func isOfProxy(_ header: ProxyHeader, _ channel: any Channel) -> Bool {
        // A channel without a peer address has already been reset, as health checks often are.
        guard case .client(let source, _) = header.origin, let peer = channel.remoteAddress else { return true }
        return source == peer
    }

    private func isSender(_ address: SocketAddress) -> Bool { options.senders.contains { $0.contains(address) } }

    private var isWaiting: Bool { if case .over = stage { false } else { true } }

    /// Starts the session, and passes it the data that followed the header.
    private func handOver(_ context: ChannelHandlerContext, _ header: ProxyHeader, _ rest: ByteBuffer) {
        stopWaiting()
        do {
            try context.channel.syncOptions?.setOption(.autoRead, value: false)
            try begin(context.channel, header)
        } catch {
            return context.close(promise: nil)
        }
        if rest.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(rest)) }
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    /// Closes the connection, and records the reason, if there is one.
    private func refuse(_ channel: any Channel, _ reason: String?) {
        guard isWaiting else { return }
        if case .reading = stage, let reason {
            loop.refused(channel.remoteAddress, "bad-proxy-header", Prose(reason))
        }
        stopWaiting()
        channel.close(promise: nil)
    }

    private func stopWaiting() {
        stage = .over
        pending?.end()
    }
}
