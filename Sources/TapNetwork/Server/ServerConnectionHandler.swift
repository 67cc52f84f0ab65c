internal import NIOCore
internal import TapCore
internal import TapSecurity
internal import XMPPCore

struct ServerTLS {
    let context: TLSContext
    let identity: TLSIdentity
}

/// The core of the server, and the handlers of its connections. Used on one event loop only.
final class ServerState {
    private var core: ServerCore
    private var handlers: [ConnectionID: ServerConnectionHandler] = [:]
    /// Completes when the last connection is closed.
    private var onIdle: EventLoopPromise<Void>?

    let tls: ServerTLS?
    /// The connections whose request for a WebSocket has not been answered.
    private var requests: [ObjectIdentifier: any Channel] = [:]
    private let connectionLimit: Int

    init(_ core: ServerCore, _ tls: ServerTLS? = nil) {
        self.core = core
        self.tls = tls
        connectionLimit = core.directory.settings.connectionLimit
    }

    func connect(_ handler: ServerConnectionHandler, isSecure: Bool) -> ConnectionID {
        let connection = core.connect(isSecure: isSecure)
        handlers[connection] = handler
        return connection
    }

    /// Closes a new connection if it exceeds the limit.
    func limit(_ connection: ConnectionID) {
        if handlers.count > connectionLimit { perform(core.terminate(connection, .resourceConstraint)) }
    }

    func receive(_ bytes: ByteBuffer, from connection: ConnectionID) {
        perform(core.receive(bytes.readableBytesUInt8Span, from: connection))
    }

    func disconnected(_ connection: ConnectionID) {
        handlers[connection] = nil
        perform(core.disconnected(connection))
        guard handlers.isEmpty else { return }
        onIdle?.succeed()
        onIdle = nil
    }

    /// Counts a connection that will request a WebSocket, until it is closed or has one; returns nil if it exceeds the limit.
    func admitRequest(_ channel: any Channel) -> PendingConnection? {
        guard handlers.count + requests.count < connectionLimit else { return nil }
        requests[ObjectIdentifier(channel)] = channel
        return PendingConnection(on: channel.eventLoop) { [self] in requests[ObjectIdentifier(channel)] = nil }
    }

    var cryptography: any Cryptography { core.directory.cryptography }

    /// Closes a stream whose bytes could not be decoded.
    func fail(_ connection: ConnectionID, _ condition: StreamErrorCondition, _ text: String) {
        perform(core.fail(connection, condition, text))
    }

    func refused(_ refusal: ServerRefusal) { core.directory.responder?.refused(refusal) }

    /// Performs commands that were not caused by a connection's event, such as those of a timer.
    func performPending() { perform(core.performPending()) }

    func shutDown(on loop: any EventLoop) -> EventLoopFuture<Void> {
        perform(core.shutDown())
        for channel in requests.values { channel.close(promise: nil) }
        guard !handlers.isEmpty else { return loop.makeSucceededVoidFuture() }
        let promise = onIdle ?? loop.makePromise()
        onIdle = promise
        return promise.futureResult
    }

    /// Performs the core's commands: all writes first, then one flush for each connection that was written to.
    private func perform(_ commands: [ServerCommand]) {
        var written: [ServerConnectionHandler] = []
        for command in commands {
            switch command {
            case .write(let connection, let bytes):
                guard let handler = handlers[connection] else { continue }
                handler.write(bytes)
                if !written.contains(where: { $0 === handler }) { written.append(handler) }
            case .startTLS(let connection):
                guard let tls, let handler = handlers[connection] else { continue }
                handler.startTLS(tls)
            case .close(let connection): handlers[connection]?.close()
            case .terminate: assertionFailure("the core performs this itself")
            }
        }
        for handler in written where handler.flush() > BuiltInServer.pendingLimit {
            perform(core.terminate(handler.connection, .resourceConstraint))
        }
    }
}

/// Passes the bytes of one connection to the core and back; has no protocol state.
final class ServerConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Time for a client to close its side of the connection after the server has closed its own.
    private static let lingering = TimeAmount.seconds(2)

    private let state: ServerState
    private let isSecure: Bool
    private var context: ChannelHandlerContext?
    private var pending = 0
    private var isClosing = false
    private var isInputClosed = false
    /// The connection's number; meaningless before the channel is active.
    private(set) var connection = ConnectionID(number: 0)

    /// - Parameter isSecure: Whether the stream needs no STARTTLS.
    init(_ state: ServerState, isSecure: Bool = false) {
        self.state = state
        self.isSecure = isSecure
    }

    // MARK: From the core

    func write(_ bytes: [UInt8]) {
        guard let context, !isClosing else { return }
        pending += bytes.count
        let count = bytes.count
        context.write(wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)))
            .assumeIsolated().whenComplete { _ in self.wrote(count) }
    }

    private func wrote(_ count: Int) {
        pending -= count
        if pending == 0, isInputClosed { context?.close(promise: nil) }
    }

    /// Flushes the written data; returns the number of bytes that have not been sent yet.
    func flush() -> Int {
        context?.flush()
        return pending
    }

    /// Adds TLS to the connection: data sent or received from now on passes through it.
    func startTLS(_ tls: ServerTLS) {
        guard let context, !isClosing else { return }
        context.flush()
        do {
            let engine = try TLSEngine(tls.context, for: ClientLegOffer(identity: tls.identity))
            let handler = TLSHandler(engine)
            try context.pipeline.syncOperations.addHandler(handler, position: .first)
            handler.start()
        } catch {
            context.close(promise: nil)
        }
    }

    /// Closes the server's side, then waits briefly for the client to close its own.
    func close() {
        guard let context, !isClosing else { return }
        isClosing = true
        context.flush()
        context.channel.closeAfterAnswer()
    }

    // MARK: From the channel

    func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { connect(context) } }

    func channelActive(context: ChannelHandlerContext) { connect(context) }

    private func connect(_ context: ChannelHandlerContext) {
        guard self.context == nil else { return }
        self.context = context
        connection = state.connect(self, isSecure: isSecure)
        state.limit(connection)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        state.receive(unwrapInboundIn(data), from: connection)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        // Stop reading from a client that does not read its answers. While closing, keep reading, so that the
        // connection is not reset.
        let reads = context.channel.isWritable || isClosing
        _ = try? context.channel.syncOptions?.setOption(.autoRead, value: reads)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .failed(let fault)? = event as? TLSHandler.Event {
            state.refused(.tls(fault))
            return context.close(promise: nil)
        }
        guard case .some(ChannelEvent.inputClosed) = event as? ChannelEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        // The client has closed its side of the connection: only send the data that is already written.
        isInputClosed = true
        guard pending > 0 else { return context.close(promise: nil) }
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        state.disconnected(connection)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let failure = error as? WebSocketFailure, let condition = failure.condition {
            return state.fail(connection, condition, failure.description)
        }
        context.close(promise: nil)
    }
}
