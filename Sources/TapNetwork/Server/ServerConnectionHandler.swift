internal import NIOCore
internal import TapSecurity
internal import XMPPCore

struct ServerTLS {
    let context: TLSContext
    let identity: TLSIdentity
}

/// The core and the channels of its connections; lives on one event loop.
final class ServerState {
    private var core: ServerCore
    private var handlers: [ConnectionID: ServerConnectionHandler] = [:]
    /// The promise that the close of the last connection fulfils.
    private var onIdle: EventLoopPromise<Void>?

    private let tls: ServerTLS?
    private let connectionLimit: Int

    init(_ core: ServerCore, _ tls: ServerTLS? = nil) {
        self.core = core
        self.tls = tls
        connectionLimit = core.directory.settings.connectionLimit
    }

    func connect(_ handler: ServerConnectionHandler) -> ConnectionID {
        let connection = core.connect()
        handlers[connection] = handler
        return connection
    }

    /// Ends a new connection if it is one too many.
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

    func refused(_ refusal: ServerRefusal) { core.directory.responder?.refused(refusal) }

    /// Performs what was caused by no connection, as by a timer.
    func settle() { perform(core.settle()) }

    func shutDown(on loop: any EventLoop) -> EventLoopFuture<Void> {
        perform(core.shutDown())
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

/// Carries the bytes of one connection to the core and back; keeps no state of the protocol.
final class ServerConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How long a client may take to close its side after the server has closed its own.
    private static let lingering = TimeAmount.seconds(2)

    private let state: ServerState
    private var context: ChannelHandlerContext?
    private var pending = 0
    private var isClosing = false
    private var isInputClosed = false
    /// The connection's number; has no meaning before the channel is active.
    private(set) var connection = ConnectionID(number: 0)

    init(_ state: ServerState) { self.state = state }

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

    /// Sends the written data; returns the number of bytes that still wait.
    func flush() -> Int {
        context?.flush()
        return pending
    }

    /// Sends everything written or received from now on through TLS.
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

    /// Closes the server's side, then waits a little for the client to close its own: closing at once with unread bytes
    /// in the socket would reset the connection, and the client might never read why.
    func close() {
        guard let context, !isClosing else { return }
        isClosing = true
        context.flush()
        _ = try? context.channel.syncOptions?.setOption(.autoRead, value: true)
        context.close(mode: .output, promise: nil)
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }

    // MARK: From the channel

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        connection = state.connect(self)
        state.limit(connection)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        state.receive(unwrapInboundIn(data), from: connection)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        // Who does not read its answers is not read from; a client that is going is read to the end all the same.
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
        // The client is gone without closing its stream; only data written before is still sent.
        isInputClosed = true
        guard pending > 0 else { return context.close(promise: nil) }
        context.eventLoop.assumeIsolated().scheduleTask(in: Self.lingering) { context.close(promise: nil) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        state.disconnected(connection)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
