internal import Glibc
internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity

/// One connection of a session: passes NIO's events to the session's driver, and the driver's output to NIO.
///
/// It is the only handler of its channel, except for TLS. It retains the driver while it is in the channel's pipeline,
/// that is until the channel is closed. All methods may be called in any state, and from inside the driver's methods;
/// calls that do not fit the state are ignored.
final class LegHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How to close the output after all data is written.
    private enum CloseMode {
        case none
        case finish
        case reset
    }

    /// Size in bytes up to which a write is joined to the previous one; larger writes cost less to send separately than
    /// to copy.
    private static let joinable = 8192
    /// Maximum number of pieces of a shape that are sent in one turn of the event loop.
    private static let piecesAtOnce = 64
    /// Seconds without sent or received data after which a connection is closed, once our FIN has been sent.
    static let lingerSilence = 5
    /// ``lingerSilence`` while the program is stopping and its user waits.
    static let lingerSilenceAtStop = 2
    /// Seconds to wait for the peer's FIN after ours.
    static let lingerTime = 30
    /// Maximum number of bytes read and discarded after our FIN. If the connection were closed with unread bytes, the
    /// system would send an RST, and the peer would lose data in transit.
    static let lingerBytes = 16 << 20
    /// Seconds without progress after which a connection with unsent output is closed.
    static let drainSilence = 30

    let leg: Leg
    /// Number of bytes passed to ``write(_:)`` so far.
    private(set) var written: UInt64 = 0
    /// Whether the connection's input has ended.
    private(set) var isInputOver = false
    /// Whether all data has been written and a FIN sent.
    private(set) var isOutputOver = false

    /// TLS on this connection, if it is intercepted.
    private(set) var tls: TLSHandler?

    private var driver: SessionDriver?
    private var context: ChannelHandlerContext?
    private var closeMode = CloseMode.none
    private var isReading = false
    /// Writes directly to the socket; nil if that is not possible.
    private var socket: DirectSocketWriter?
    /// Bytes for the next flush, to be sent directly on the socket; only while the channel's queue is empty.
    private var unflushed: ByteBuffer?
    /// Whether the channel's queue may contain data, which must be sent first.
    private var isQueued = false
    /// Whether the channel's queue contains data that has not been flushed.
    private var hasUnflushed = false
    private var isClosing = false
    /// Output that the shape delays; nil if the leg has no shape.
    private var shaped: ShapedOutput?
    private var shapeTimer: Scheduled<Void>?
    /// Number of bytes received and discarded after the session's end.
    private var discarded = 0
    /// Number of consecutive calls of ``isStuck(resets:isStopping:)`` that found no progress, and the state at the last
    /// call.
    private var idleLooks = 0
    private var lastLook = (unsent: 0, discarded: 0)
    /// Number of calls of ``isStuck(resets:isStopping:)`` since our FIN.
    private var lingerLooks = 0

    init(_ leg: Leg) { self.leg = leg }

    var isOpen: Bool { context != nil }
    /// The peer's address; nil without a connection.
    var address: SocketAddress? { context?.remoteAddress }
    /// Whether more can be written without buffering it in memory; true without a connection.
    var isWritable: Bool { isChannelWritable && (shaped?.count ?? 0) < ShapedOutput.limit }
    private var isChannelWritable = true

    /// Adds this handler to a channel, on its event loop. `tls` is the handler of TLS that is in the channel already.
    func join(_ channel: any Channel, _ driver: SessionDriver, tls: TLSHandler? = nil) throws {
        try channel.pipeline.syncOperations.addHandler(self)
        socket = DirectSocketWriter(channel)
        self.driver = driver
        if let tls { use(tls) }
    }

    private func use(_ handler: TLSHandler) {
        handler.shortcut = { [self] ciphertext in
            sendPast(&ciphertext)
            if ciphertext.readableBytes > 0 { isQueued = true }
        }
        tls = handler
    }

    /// Adds TLS to the connection: data written or received from now on passes through it. ``TLSHandler/start(early:)``
    /// starts the handshake.
    func secure(_ engine: TLSEngine) throws {
        guard let context, tls == nil else { throw ChannelError.ioOnClosedChannel }
        // Data written before TLS is sent without it.
        if let waiting = shaped?.takeAll() { put(waiting.span) }
        flush()
        let handler = TLSHandler(engine)
        try context.pipeline.syncOperations.addHandler(handler, position: .first)
        use(handler)
    }

    // MARK: Called by the driver

    /// Starts or stops reading. After a stop, reads in progress still arrive, and once the peer has sent its FIN, all
    /// data that the system holds.
    func setReading(_ isWanted: Bool) {
        // After TLS has ended, the connection's own end still follows. If bytes before it stay unread, closing the
        // connection sends an RST.
        guard isWanted != isReading, !isInputOver || tls != nil, let context else { return }
        isReading = isWanted
        try? context.channel.syncOptions?.setOption(.autoRead, value: isWanted)
    }

    /// Queues bytes for ``flush()``.
    func write(_ buffer: ByteBuffer) {
        guard let context, closeMode == .none else { return }
        written += UInt64(buffer.readableBytes)
        if shaped != nil { return wait(buffer.readableBytesUInt8Span) }
        if let tls { return tls.write(buffer.readableBytesUInt8Span) }
        put(buffer, context)
    }

    private func put(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        guard !isQueued, socket != nil else { return queue(buffer, context) }
        guard var waiting = unflushed.take() else { return unflushed = buffer }
        if buffer.readableBytes <= Self.joinable {
            waiting.writeImmutableBuffer(buffer)
            return unflushed = waiting
        }
        sendPast(&waiting)
        guard waiting.readableBytes > 0 else { return unflushed = buffer }
        queue(waiting, context)
        queue(buffer, context)
    }

    func write(_ bytes: Span<UInt8>) {
        guard closeMode == .none else { return }
        written += UInt64(bytes.count)
        if shaped != nil { return wait(bytes) }
        put(bytes)
    }

    private func put(_ bytes: Span<UInt8>) {
        guard let context, !bytes.isEmpty else { return }
        if let tls { return tls.write(bytes) }
        if bytes.count <= Self.joinable, unflushed != nil {
            unflushed?.writeBytes(bytes.bytes)
        } else {
            var buffer = context.channel.allocator.buffer(capacity: bytes.count)
            buffer.writeBytes(bytes.bytes)
            put(buffer, context)
        }
    }

    // MARK: Shape

    /// Applies a shape to later writes; nil ends shaping after the waiting bytes are sent.
    func shape(_ shape: LinkShape?) {
        guard context != nil, closeMode == .none else { return }
        if shaped == nil {
            shaped = shape.map { ShapedOutput($0) }
        } else {
            shaped?.change(to: shape)
            if shaped?.isOver == true { shaped = nil }
        }
    }

    private func wait(_ bytes: Span<UInt8>) { shaped?.append(bytes) }

    /// Sends the pieces that may be sent now, each in a separate write, and schedules the next one.
    private func sendPieces() {
        shapeTimer?.cancel()
        shapeTimer = nil
        let wasWritable = isWritable
        var pause: Int64? = 0
        // Pieces without a pause between them must not block the event loop.
        for _ in 0..<Self.piecesAtOnce where pause == 0 {
            guard isChannelWritable else {
                // ``channelWritabilityChanged(context:)`` continues.
                shaped?.rest()
                pause = nil
                break
            }
            let now = Int64(clamping: NIODeadline.now().uptimeNanoseconds)
            guard let (piece, next) = shaped?.takePiece(at: now) else {
                pause = nil
                break
            }
            put(piece.span)
            push()
            pause = next.map { max(0, $0 - now) }
        }
        if let pause { sendPieces(in: pause) }
        if shaped?.isOver == true { shaped = nil }
        if closeMode != .none { whenAllIsWritten() }
        if isWritable, !wasWritable { driver?.writabilityChanged(leg) }
    }

    private func sendPieces(in wait: Int64) {
        shapeTimer = context?.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(wait)) { [self] in sendPieces() }
    }

    // MARK: Writing

    func flush() {
        if shaped != nil, shapeTimer == nil { return sendPieces() }
        push()
    }

    /// Sends the queued data.
    private func push() {
        guard let context else { return }
        if let tls { return tls.flush() }
        if var buffer = unflushed.take() {
            sendPast(&buffer)
            if buffer.readableBytes > 0 { queue(buffer, context) }
        }
        guard hasUnflushed else { return }
        hasUnflushed = false
        context.flush()
        isQueued = socket == nil || context.channel.unsentBytes > 0
    }

    /// Sends directly on the socket, if the channel's queue is empty. Bytes that the system does not accept stay in the
    /// buffer. The caller has to queue them and all later bytes in the channel, which also handles errors.
    private func sendPast(_ buffer: inout ByteBuffer) {
        guard let context, context.channel.isActive, let socket else { return }
        if isQueued { isQueued = context.channel.unsentBytes > 0 }
        if !isQueued { socket.send(&buffer) }
    }

    private func queue(_ buffer: ByteBuffer, _ context: ChannelHandlerContext) {
        isQueued = true
        hasUnflushed = true
        context.write(wrapOutboundOut(buffer), promise: nil)
    }

    /// Sends a FIN after all written data. If the peer's FIN has arrived, this closes the connection.
    func finish() {
        guard closeMode == .none else { return }
        closeMode = .finish
        whenAllIsWritten()
    }

    /// Closes the connection with an RST after all written data.
    func resetWhenWritten() {
        guard closeMode != .reset else { return }
        let isWaiting = closeMode == .finish && !isOutputOver
        closeMode = .reset
        if !isWaiting { whenAllIsWritten() }
    }

    /// Closes the connection, and discards unsent data.
    func close() {
        guard !isClosing, let context else { return }
        isClosing = true
        dropShape()
        if closeMode == .reset { context.channel.resetOnClose() }
        context.close(promise: nil)
    }

    /// Counts bytes received after the session's end. Closes the connection above ``lingerBytes``, because the peer has
    /// apparently not noticed the end.
    func discard(_ count: Int) {
        // Before our own output is sent, closing would discard it.
        guard isOutputOver else { return }
        discarded += count
        if discarded > Self.lingerBytes { close() }
    }

    /// Returns whether an ending connection can be closed, because the peer has not accepted remaining data or answered
    /// our FIN for too long. Called once a second.
    func isStuck(resets: Bool, isStopping: Bool) -> Bool {
        guard let context else { return false }
        let inSystem = context.channel.isActive ? socket?.unacknowledgedBytes ?? 0 : 0
        let waiting = shaped?.count ?? 0
        let look = (unsent: context.channel.unsentBytes + inSystem + waiting, discarded: discarded)
        // Bytes delayed by a shape are not a sign of a stuck peer.
        idleLooks = look == lastLook && (waiting == 0 || !isChannelWritable) ? idleLooks + 1 : 0
        lastLook = look
        if resets { return idleLooks >= 1 }
        guard isOutputOver else { return idleLooks >= Self.drainSilence }
        lingerLooks += 1
        return idleLooks >= (isStopping ? Self.lingerSilenceAtStop : Self.lingerSilence)
            || lingerLooks >= Self.lingerTime
    }

    private func whenAllIsWritten() {
        guard let context else { return }
        if let shaped, shaped.count > 0 {
            // ``sendPieces()`` calls this again after the waiting bytes have been sent.
            if shapeTimer == nil, isChannelWritable { sendPieces() }
            return
        }
        shaped = nil
        if closeMode == .finish { tls?.finish() }
        push()
        if socket != nil, !isQueued { return closeOutput() }
        isQueued = true
        // If a channel's input has ended, NIO drops unwritten data when its output is closed: wait for the write.
        let promise = context.eventLoop.makePromise(of: Void.self)
        // If the write fails, the connection is lost.
        promise.futureResult.assumeIsolated().whenSuccess { [self] in closeOutput() }
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: promise)
    }

    private func closeOutput() {
        guard let context, !isClosing else { return }
        if closeMode == .reset { return close() }
        isOutputOver = true
        // NIO closes both directions if the peer's FIN has arrived.
        context.close(mode: .output, promise: nil)
    }

    // MARK: Events of NIO

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        unflushed = nil
        driver = nil
        tls?.shortcut = nil
        dropShape()
    }

    private func dropShape() {
        shaped = nil
        shapeTimer?.cancel()
        shapeTimer = nil
    }

    func channelActive(context: ChannelHandlerContext) { driver?.activated(leg) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        driver?.received(leg, unwrapInboundIn(data), records: tls?.engine.recordStarts)
    }

    func channelReadComplete(context: ChannelHandlerContext) { driver?.readCompleted(leg) }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        isChannelWritable = context.channel.isWritable
        if isChannelWritable, shaped != nil, shapeTimer == nil { sendPieces() }
        driver?.writabilityChanged(leg)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? TLSHandler.Event { driver?.handleTLS(leg, event) }
        if case .inputClosed? = event as? ChannelEvent { inputEnded(.finished) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // NIO closes the channel after this.
        inputEnded(Self.end(for: error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        unflushed = nil
        isChannelWritable = true
        dropShape()
        guard let driver else { return }
        if !isClosing {
            // No event preceded the close: either the peer sent its FIN after ours, or a write failed.
            if isInputOver {
                if !isOutputOver { driver.ended(leg, .reset) }
            } else {
                inputEnded(isOutputOver ? .finished : .reset)
            }
        }
        driver.closed(leg)
    }

    private func inputEnded(_ end: LegEnd) {
        guard !isInputOver else { return }
        isInputOver = true
        driver?.ended(leg, end)
    }

    private static func end(for error: any Error) -> LegEnd {
        guard let error = error as? IOError else { return .failed("\(error)") }
        switch error.errnoCode {
        case ECONNRESET, EPIPE: return .reset
        default: return .failed(error.message)
        }
    }
}
