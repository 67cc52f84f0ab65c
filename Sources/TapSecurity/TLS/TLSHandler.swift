package import NIOCore

/// A channel handler for TLS: ciphertext on the side of the socket, plaintext on the other side.
///
/// It can be added before any bytes have passed, or in the middle of a connection (STARTTLS); ``start(early:)`` begins
/// the handshake. It fires ``Event``s as user events, and `ChannelEvent.inputClosed` for close_notify. Closing the
/// output sends close_notify first (see ``sendsCloseNotify``). Closing the whole channel sends nothing, so that a reset
/// stays a reset. The handler never closes the channel: after ``Event/failed(_:)``, the receiver of the event decides.
/// Use it only on the channel's event loop.
package final class TLSHandler: ChannelDuplexHandler {
    /// Ciphertext from the socket.
    package typealias InboundIn = ByteBuffer
    /// Plaintext.
    package typealias InboundOut = ByteBuffer
    /// Plaintext.
    package typealias OutboundIn = ByteBuffer
    /// Ciphertext for the socket.
    package typealias OutboundOut = ByteBuffer

    /// The user events that the handler fires.
    package enum Event: Sendable, Hashable {
        /// The handshake is complete; plaintext follows.
        case opened
        /// The server has been verified, and requests a certificate: the handshake waits for ``TLSHandler/present(_:)``.
        case identityRequested
        /// TLS messages were sent or received; only after ``TLSEngine/keepMessages()``.
        case messages([TLSMessage])
        /// The peer's connection ended without close_notify: its data may be truncated. The end of the
        /// input follows.
        case truncated
        /// TLS has failed; the alert, if any, has been sent.
        case failed(TLSFault)
    }

    /// The TLS engine of the connection, for its parameters and channel bindings. Only the handler passes bytes through
    /// it.
    package let engine: TLSEngine
    /// Whether closing the output sends close_notify (default: true). False mirrors a peer that did not send it.
    package var sendsCloseNotify = true
    /// Sends ciphertext directly instead of through the channel, and removes the sent bytes from the buffer; the
    /// channel gets the rest. Default: nil. Set it to nil when the channel is closed if the closure references the
    /// handler.
    package var shortcut: ((inout ByteBuffer) -> Void)?

    private var context: ChannelHandlerContext?
    private var reported = TLSEngine.State.handshaking
    private var hasStarted = false
    private var hasReportedRequest = false
    private var isReading = false
    /// Plaintext that was written before the end of the handshake.
    private var early: [(ByteBuffer, EventLoopPromise<Void>?)] = []
    /// The promise that the next flush completes.
    private var promise: EventLoopPromise<Void>?

    /// Creates a handler for one connection, before its handshake.
    package init(_ engine: TLSEngine) { self.engine = engine }

    // MARK: Calls of the owner

    /// Begins the handshake. Call this when the handler is in the pipeline of an active channel.
    ///
    /// - Parameter early: Ciphertext that arrived before the handler was added.
    package func start(early: ByteBuffer? = nil) {
        guard !hasStarted else { return }
        hasStarted = true
        if let early { engine.receive(early) }
        advance()
    }

    /// Continues the handshake after ``Event/identityRequested`` with this certificate, or without one.
    package func present(_ identity: TLSIdentity?) {
        engine.present(identity)
        advance()
    }

    /// Encrypts plaintext for ``flush()``, like a write through the channel, for owners that bypass the pipeline.
    /// Before the end of the handshake the plaintext is buffered.
    package func write(_ plaintext: Span<UInt8>) {
        switch engine.state {
        case .handshaking:
            var buffer = ByteBuffer()
            buffer.writeBytes(plaintext.bytes)
            write(buffer, promise: nil)
        case .open, .inputFinished, .failed: encrypt(plaintext, nil)
        }
    }

    /// Sends what was encrypted since the last flush, in one piece.
    package func flush() { sendOutput() }

    /// Sends close_notify once, unless ``sendsCloseNotify`` is false. For owners that close the whole channel.
    package func finish() {
        guard sendsCloseNotify else { return }
        engine.finish()
        sendOutput()
    }

    // MARK: Inbound

    /// Stores the context.
    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// Fails pending writes.
    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        failWrites()
    }

    /// Decrypts received bytes.
    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        engine.receive(unwrapInboundIn(data))
        guard hasStarted else { return }
        isReading = true
        advance()
    }

    /// Sends the ciphertext that the reads have caused.
    package func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        sendOutput()
        context.fireChannelReadComplete()
    }

    /// Reports the end of the socket's input, unless close_notify has reported it already.
    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        switch engine.state {
        case .inputFinished: return
        case .handshaking:
            engine.transportEnded()
            reportState()
        case .open: context.fireUserInboundEventTriggered(Event.truncated)
        case .failed: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Reports the failure of an incomplete handshake.
    package func channelInactive(context: ChannelHandlerContext) {
        failWrites()
        if hasStarted {
            engine.transportEnded()
            reportState()
        }
        context.fireChannelInactive()
    }

    // MARK: Outbound

    /// Encrypts data. Before the handshake is complete, the data is stored.
    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        write(unwrapOutboundIn(data), promise: promise)
    }

    /// Sends what was encrypted since the last flush, in one piece.
    package func flush(context: ChannelHandlerContext) {
        sendOutput()
        context.flush()
    }

    /// Closes the channel. If only the output is closed, sends close_notify first.
    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output { finish() }
        context.close(mode: mode, promise: promise)
    }

    // MARK: Steps

    private func write(_ plaintext: ByteBuffer, promise: EventLoopPromise<Void>?) {
        // An empty write completes when all writes before it are done.
        guard plaintext.readableBytes > 0 else { return addPromise(promise) }
        switch engine.state {
        case .handshaking: early.append((plaintext, promise))
        case .open, .inputFinished, .failed: encrypt(plaintext.readableBytesUInt8Span, promise)
        }
    }

    private func advance() {
        guard let context else { return }
        var plaintext = ByteBuffer()
        engine.advance(into: &plaintext)
        reportMessages()
        // The alert is sent before the channel can be closed.
        if !isReading || engine.state.isFailed { sendOutput() }
        if reported == .handshaking { reportOpening() }
        if engine.awaitsIdentity, !hasReportedRequest {
            hasReportedRequest = true
            context.fireUserInboundEventTriggered(Event.identityRequested)
        }
        if plaintext.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(plaintext)) }
        reportState()
    }

    /// Reports the end of the handshake before any plaintext, and encrypts the plaintext that was written before.
    private func reportOpening() {
        guard engine.isEstablished else { return }
        reported = .open
        context?.fireUserInboundEventTriggered(Event.opened)
        let early = self.early
        self.early = []
        for (plaintext, promise) in early { encrypt(plaintext.readableBytesUInt8Span, promise) }
        if !early.isEmpty { sendOutput() }
    }

    /// Reports the state if it has changed.
    private func reportState() {
        let state = engine.state
        guard state != reported, let context else { return }
        reported = state
        switch state {
        case .handshaking, .open: break
        case .inputFinished: context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        case .failed(let fault):
            failWrites()
            context.fireUserInboundEventTriggered(Event.failed(fault))
        }
    }

    private func encrypt(_ plaintext: Span<UInt8>, _ promise: EventLoopPromise<Void>?) {
        guard engine.write(plaintext) else {
            promise?.fail(ChannelError.outputClosed)
            return reportState()
        }
        addPromise(promise)
    }

    private func addPromise(_ promise: EventLoopPromise<Void>?) {
        guard let promise else { return }
        if let first = self.promise {
            first.futureResult.cascade(to: promise)
        } else {
            self.promise = promise
        }
    }

    private func reportMessages() {
        let messages = engine.takeMessages()
        if !messages.isEmpty { context?.fireUserInboundEventTriggered(Event.messages(messages)) }
    }

    private func sendOutput() {
        guard let context else { return }
        reportMessages()
        var output = engine.takeOutput() ?? ByteBuffer()
        if output.readableBytes > 0 { shortcut?(&output) }
        guard output.readableBytes > 0 || promise != nil else { return }
        let promise = self.promise
        self.promise = nil
        context.writeAndFlush(wrapOutboundOut(output), promise: promise)
    }

    private func failWrites() {
        let early = self.early
        self.early = []
        for (_, promise) in early { promise?.fail(ChannelError.ioOnClosedChannel) }
        promise?.fail(ChannelError.ioOnClosedChannel)
        promise = nil
    }
}

extension TLSEngine.State {
    fileprivate var isFailed: Bool {
        if case .failed = self { true } else { false }
    }
}
