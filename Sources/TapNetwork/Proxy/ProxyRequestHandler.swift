internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// How the clients of a listener name their targets, and how these are reached.
struct NamedTargets: Sendable {
    let dialer: TargetDialer
    let options: TargetOptions
    /// Whether the system redirects the connections, so that they begin without a request.
    let isRedirected: Bool
}

/// Reads a client's request for a target (SOCKS or HTTP CONNECT), connects to the target, answers, and then starts the
/// session.
///
/// A request that is not carried out is answered in the client's protocol and recorded; no session starts. Data that
/// follows the request is kept for the session.
final class ProxyRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Stage {
        case idle
        case reading
        case connecting(TargetSearch)
        /// The refusal is sent. Input is discarded until the client closes the connection.
        case refusing
        case over
    }

    /// Time after which a connection of xmpptap itself is known to be established. Without it, loops of 70 connections
    /// were made before one was recognised.
    private static let ownConnectionTime = TimeAmount.milliseconds(10)

    private let loop: RelayLoop
    private let accepted: AcceptedConnection
    private let targets: NamedTargets
    private let begin: (any Channel, ReachedTarget) throws -> Void
    private var stage = Stage.idle
    private var reader: ProxyRequestReader
    private var pending: PendingConnection?
    /// Whether the client has sent data. Without any, the connection is a port check.
    private var hasInput = false
    /// Data that arrived after the request, and whether the client's input has ended after it.
    private var early = ByteBuffer()
    private var hasEnded = false

    /// - Parameter begin: Creates and activates a session for the channel.
    init(
        loop: RelayLoop,
        accepted: AcceptedConnection,
        targets: NamedTargets,
        begin: @escaping (any Channel, ReachedTarget) throws -> Void
    ) {
        self.loop = loop
        self.accepted = accepted
        self.targets = targets
        self.begin = begin
        reader = ProxyRequestReader(
            users: targets.options.users,
            requiresLogin: !(accepted.remote?.isLoopback ?? true)
        )
    }

    // MARK: Events of the connection

    func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { start(context) } }

    func channelActive(context: ChannelHandlerContext) { start(context) }

    private func start(_ context: ChannelHandlerContext) {
        guard case .idle = stage else { return }
        guard let pending = loop.admit() else {
            stage = .over
            return context.close(promise: nil)
        }
        self.pending = pending
        stage = .reading
        if targets.isRedirected { return connectToDestination(context) }
        pending.limit(to: targets.options.requestTimeout) { [self] in
            let milliseconds = targets.options.requestTimeout.nanoseconds / 1_000_000
            refuse(context, Refusal.badRequest, "no request for a target within \(milliseconds) ms", [])
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch stage {
        case .reading: read(context, unwrapInboundIn(data))
        case .connecting: early.writeImmutableBuffer(unwrapInboundIn(data))
        case .idle, .refusing: break
        case .over: context.fireChannelRead(data)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        switch stage {
        case .reading:
            let reason = "the connection ended before a complete request for a target"
            refuse(context, Refusal.badRequest, reason, [], isNormal: !hasInput)
        case .connecting: hasEnded = true
        case .refusing: context.close(promise: nil)
        case .idle, .over: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // NIO closes the channel after this.
        if case .over = stage { context.fireErrorCaught(error) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        switch stage {
        case .over: return context.fireChannelInactive()
        case .reading:
            let reason = "the connection failed before a complete request for a target"
            loop.refused(accepted.remote, Refusal.badRequest, Prose(reason), hasInput ? .warn : .info)
        case .connecting(let search):
            search.cancel()
            loop.refused(
                accepted.remote,
                Refusal.clientLeft,
                "the client disconnected before the target was connected"
            )
        case .idle, .refusing: break
        }
        pending?.end()
        stage = .over
    }

    // MARK: Request

    /// Connects to the target from which the system redirected the connection.
    private func connectToDestination(_ context: ChannelHandlerContext) {
        guard let destination = context.channel.originalDestination else {
            return refuse(context, Refusal.notRedirected, "the connection was not redirected to this port", [])
        }
        let target = NamedTarget(destination)
        guard accepted.remote?.isOfThisMachine == true else { return connect(context, .redirect, target) }
        // If the rules do not exclude xmpptap's user, this can be a connection of xmpptap itself, whose event loop does
        // not know yet that it is established.
        pending?.limit(to: Self.ownConnectionTime) { [self] in
            guard targets.dialer.own.contains(accepted.remote) else { return connect(context, .redirect, target) }
            refuseOwnConnection(context, destination.endpoint)
        }
    }

    private func refuseOwnConnection(_ context: ChannelHandlerContext, _ target: Endpoint?) {
        let reason = "xmpptap itself made this connection; exclude its user from the redirection"
        let failure = TargetFailure(code: .loop, outcome: .notAllowed, reason: reason)
        refuse(context, .redirect, target ?? Endpoint(host: "?", port: 0), failure)
    }

    private func read(_ context: ChannelHandlerContext, _ buffer: ByteBuffer) {
        hasInput = true
        reader.append(buffer.readableBytesView)
        while case .reading = stage {
            switch reader.next() {
            case .needMore: return
            case .answer(let bytes): write(context, bytes)
            case .refused(let refusal):
                refuse(
                    context,
                    refusal.code.rawValue,
                    refusal.reason,
                    refusal.answer,
                    isNormal: refusal.code == .loginRequired
                )
            case .request(let kind, let target): connect(context, kind, target)
            }
        }
    }

    private func connect(_ context: ChannelHandlerContext, _ kind: ProxyRequestKind, _ named: NamedTarget) {
        guard let target = Endpoint(named) else {
            let answer = ProxyOutcome.failed.answer(kind, text: "invalid address")
            return refuse(context, Refusal.badRequest, "the request has an invalid address", answer)
        }
        pending?.limit(to: nil) {}
        try? context.channel.syncOptions?.setOption(.autoRead, value: false)
        early = ByteBuffer(bytes: reader.rest)
        let search = TargetSearch(
            targets.dialer,
            target: target,
            isLocalClient: accepted.remote?.isLoopback ?? true,
            on: loop.eventLoop
        ) { [self] result in
            guard case .connecting = stage else {
                if case .success(let reached) = result { reached.channel.close(promise: nil) }
                return
            }
            switch result {
            case .failure(let failure): refuse(context, kind, target, failure)
            // The connection can be known by now.
            case .success(let reached) where targets.isRedirected && targets.dialer.own.contains(accepted.remote):
                reached.channel.close(promise: nil)
                refuseOwnConnection(context, target)
            case .success(let reached):
                let local = reached.channel.localAddress.map { (address: $0.packedAddress, port: $0.port ?? 0) }
                write(context, ProxyOutcome.connected.answer(kind, text: "", local: local))
                handOver(
                    context,
                    ReachedTarget(
                        request: Record.Beginning.Request(
                            code: kind.rawValue,
                            name: kind.name,
                            target: LineBuffer.escaped(target.description)
                        ),
                        channel: reached.channel,
                        steps: reached.steps,
                        isBlind: reached.isBlind,
                        upstreamName: targets.dialer.upstreamName
                    )
                )
            }
        }
        stage = .connecting(search)
        search.start()
    }

    /// Starts the session, and passes it the data that followed the request.
    private func handOver(_ context: ChannelHandlerContext, _ target: ReachedTarget) {
        pending?.end()
        stage = .over
        do {
            try begin(context.channel, target)
        } catch {
            target.channel.close(promise: nil)
            return context.close(promise: nil)
        }
        // In one piece: the first bytes can add TLS in front of this handler, which would not get a second piece.
        if early.readableBytes > 0 {
            context.fireChannelRead(wrapInboundOut(early))
            context.fireChannelReadComplete()
        }
        let pipeline = context.pipeline
        pipeline.syncOperations.removeHandler(self, promise: nil)
        if hasEnded { pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    }

    // MARK: Refusals

    /// Codes of records about requests that the reader does not refuse.
    private enum Refusal {
        static let badRequest = ProxyRequestReader.Refusal.Code.badRequest.rawValue
        static let clientLeft = "proxy-client-left"
        static let notRedirected = "not-redirected"
    }

    /// Refuses a request for a target that is not reached.
    private func refuse(
        _ context: ChannelHandlerContext,
        _ kind: ProxyRequestKind,
        _ target: Endpoint,
        _ failure: TargetFailure
    ) {
        if failure.code == .unreachable { loop.context.metrics.connectionFailed() }
        let name = LineBuffer.escaped(target.description)
        let reason = "no connection to \(name): \(failure.reason)"
        let advice = failure.code == .notListed ? loop.context.options.advice.map { "; \($0(.listTarget))" } : nil
        refuse(
            context,
            failure.code.rawValue,
            "\(kind.name) to \(name): \(failure.reason)\(advice ?? "")",
            failure.outcome.answer(kind, text: reason)
        )
    }

    /// Sends an answer, records the reason, and closes the connection.
    private func refuse(
        _ context: ChannelHandlerContext,
        _ code: String,
        _ reason: String,
        _ answer: [UInt8],
        isNormal: Bool = false
    ) {
        loop.refused(accepted.remote, code, Prose(reason), isNormal ? .info : .warn)
        pending?.end()
        stage = .refusing
        early = ByteBuffer()
        // The nearest that a redirected client can get to a refused connection.
        if targets.isRedirected { context.channel.resetOnClose() }
        guard !answer.isEmpty, !hasEnded else {
            if !answer.isEmpty { write(context, answer) }
            return context.close(promise: nil)
        }
        write(context, answer)
        context.channel.closeAfterAnswer()
    }

    private func write(_ context: ChannelHandlerContext, _ bytes: [UInt8]) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }
}
