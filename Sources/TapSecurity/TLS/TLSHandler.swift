package import NIOCore

/// TLS in a channel: ciphertext on the side of the socket, plaintext on the other.
///
/// Can be added before any bytes have passed, or in the middle of a connection (STARTTLS); ``start(early:)`` begins the
/// handshake. It fires ``Event`` as user events, and `ChannelEvent.inputClosed` for close_notify. Closing the output
/// sends close_notify first, see ``sendsCloseNotify``; closing the whole channel sends nothing, so that a reset stays
/// one. It never closes the channel: after ``Event/failed(_:)`` that is up to the receiver of the event. Used on the
/// channel's event loop only.
package final class TLSHandler: ChannelDuplexHandler {
    /// Bytes from the socket.
    package typealias InboundIn = ByteBuffer
    /// Plaintext.
    package typealias InboundOut = ByteBuffer
    /// Plaintext.
    package typealias OutboundIn = ByteBuffer
    /// Bytes for the socket.
    package typealias OutboundOut = ByteBuffer

    /// The user events that the handler fires.
    package enum Event: Sendable, Hashable {
        /// The handshake has ended well; plaintext comes after this.
        case opened
        /// TLS messages were sent or received; only after ``TLSEngine/keepMessages()``.
        case messages([TLSMessage])
        /// The peer's connection ended without close_notify: its data may be truncated. The end of the
        /// input follows.
        case truncated
        /// TLS is over; the alert, if any, has been sent.
        case failed(TLSFault)
    }

    /// The connection's TLS, for its facts and its bindings; its bytes are the handler's.
    package let engine: TLSEngine
    /// Whether closing the output sends close_notify; default yes. False mirrors a peer that sent none.
    package var sendsCloseNotify = true
    /// Sends ciphertext another way than through the channel, and removes from the buffer what it has sent; the channel
    /// gets the rest. Default: there is none. To be set to nil when the channel is closed, if it holds the handler.
    package var shortcut: ((inout ByteBuffer) -> Void)?

    private var context: ChannelHandlerContext?
    private var reported = TLSEngine.State.handshaking
    private var hasStarted = false
    private var isReading = false
    /// Plaintext written before the handshake's end.
    private var early: [(ByteBuffer, EventLoopPromise<Void>?)] = []
    /// Succeeds with the next flush.
    private var promise: EventLoopPromise<Void>?

    /// A handler for one connection that has not begun.
    package init(_ engine: TLSEngine) { self.engine = engine }

    // MARK: What its owner wants

    /// Begins the handshake. To be called once the handler is in the pipeline of an active channel.
    ///
    /// - Parameter early: Ciphertext that came before the handler was there.
    package func start(early: ByteBuffer? = nil) {
        guard !hasStarted else { return }
        hasStarted = true
        if let early { engine.receive(early) }
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

    /// Says by close_notify that no more is written, where ``sendsCloseNotify`` wants that; once. For who closes the
    /// channel as a whole.
    package func finish() {
        guard sendsCloseNotify else { return }
        engine.finish()
        sendOutput()
    }

    // MARK: Inbound

    /// Keeps the context.
    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    /// Ends what is under way.
    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        failWrites()
    }

    /// Decrypts.
    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        engine.receive(unwrapInboundIn(data))
        guard hasStarted else { return }
        isReading = true
        advance()
    }

    /// Sends what the reads have caused.
    package func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        sendOutput()
        context.fireChannelReadComplete()
    }

    /// Tells the end of the socket's input, unless close_notify has reported it already.
    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .inputClosed? = event as? ChannelEvent else { return context.fireUserInboundEventTriggered(event) }
        switch engine.state {
        case .inputFinished: return
        case .handshaking:
            engine.transportEnded()
            tell()
        case .open: context.fireUserInboundEventTriggered(Event.truncated)
        case .failed: break
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Tells a handshake that will not end.
    package func channelInactive(context: ChannelHandlerContext) {
        failWrites()
        if hasStarted {
            engine.transportEnded()
            tell()
        }
        context.fireChannelInactive()
    }

    // MARK: Outbound

    /// Encrypts; before the handshake's end the plaintext waits for it.
    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        write(unwrapOutboundIn(data), promise: promise)
    }

    /// Sends what was encrypted since the last flush, in one piece.
    package func flush(context: ChannelHandlerContext) {
        sendOutput()
        context.flush()
    }

    /// Says by close_notify that no more is written, then closes.
    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output { finish() }
        context.close(mode: mode, promise: promise)
    }

    // MARK: Steps

    private func write(_ plaintext: ByteBuffer, promise: EventLoopPromise<Void>?) {
        // An empty write completes when all writes before it are done.
        guard plaintext.readableBytes > 0 else { return settle(promise) }
        switch engine.state {
        case .handshaking: early.append((plaintext, promise))
        case .open, .inputFinished, .failed: encrypt(plaintext.readableBytesUInt8Span, promise)
        }
    }

    private func advance() {
        guard let context else { return }
        var plaintext = ByteBuffer()
        engine.advance(into: &plaintext)
        tellMessages()
        // The alert is sent before the channel can be closed.
        if !isReading || engine.state.isFailed { sendOutput() }
        if reported == .handshaking { tellOpening() }
        if plaintext.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(plaintext)) }
        tell()
    }

    /// Tells the end of the handshake, which comes before the plaintext.
    private func tellOpening() {
        guard engine.isEstablished else { return }
        reported = .open
        context?.fireUserInboundEventTriggered(Event.opened)
        let early = self.early
        self.early = []
        for (plaintext, promise) in early { encrypt(plaintext.readableBytesUInt8Span, promise) }
        if !early.isEmpty { sendOutput() }
    }

    /// Tells the state, once each.
    private func tell() {
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
            return tell()
        }
        settle(promise)
    }

    private func settle(_ promise: EventLoopPromise<Void>?) {
        guard let promise else { return }
        if let first = self.promise {
            first.futureResult.cascade(to: promise)
        } else {
            self.promise = promise
        }
    }

    private func tellMessages() {
        let messages = engine.takeMessages()
        if !messages.isEmpty { context?.fireUserInboundEventTriggered(Event.messages(messages)) }
    }

    private func sendOutput() {
        guard let context else { return }
        tellMessages()
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
