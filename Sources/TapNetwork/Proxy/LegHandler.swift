internal import Glibc
internal import NIOCore
internal import TapCore
internal import TapRecord
internal import TapSecurity

/// One connection of a session: passes NIO's events to the session's driver, and the driver's output to NIO.
///
/// The only handler of its channel, except for TLS. Retains the driver while it is in the channel's pipeline, that is
/// until the channel is closed. All methods may be called in any state and from inside any of the driver's; calls that
/// do not fit the state are ignored.
final class LegHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// How to close the output after all data is written.
    private enum CloseMode {
        case none
        case finish
        case reset
    }

    /// Bytes up to which a write joins the one before it; a larger one costs less to send apart than to copy.
    private static let joinable = 8192
    /// Pieces of a shape that are sent without a look at anything else.
    private static let piecesAtOnce = 64
    /// Seconds for which a connection that has had our FIN is waited for while it neither takes nor sends anything.
    static let lingerSilence = 5
    /// The same while the program stops and its user waits for that.
    static let lingerSilenceAtStop = 2
    /// Seconds to wait for the peer's FIN after ours.
    static let lingerTime = 30
    /// Maximum number of bytes read and discarded after our FIN. If the connection were closed with unread bytes, the
    /// system would send an RST, and the peer would lose data in transit.
    static let lingerBytes = 16 << 20
    /// Seconds without progress after which a connection with unsent output is given up.
    static let drainSilence = 30

    let leg: Leg
    /// Bytes that were given to it to write.
    private(set) var written: UInt64 = 0
    /// The connection will bring no more bytes.
    private(set) var isInputOver = false
    /// All has been written, and the peer knows by a FIN that no more will come.
    private(set) var isOutputOver = false

    /// TLS on this connection, if it is intercepted.
    private(set) var tls: TLSHandler?

    private var driver: SessionDriver?
    private var context: ChannelHandlerContext?
    private var closeMode = CloseMode.none
    private var isReading = false
    /// Writes past the channel, if possible.
    private var socket: DirectSocketWriter?
    /// Bytes to be sent past the channel with the next flush; only while its queue is empty.
    private var unflushed: ByteBuffer?
    /// The channel has, or may have, something in its queue, which goes first.
    private var isQueued = false
    /// Some of it waits for a flush.
    private var hasUnflushed = false
    private var isClosing = false
    /// Output that the shape delays; nil if the leg has no shape.
    private var shaped: ShapedOutput?
    private var shapeTimer: Scheduled<Void>?
    /// Bytes that were thrown away.
    private var discarded = 0
    /// How often in a row ``isStuck(resets:isStopping:)`` found no progress, and the state it found last.
    private var idleLooks = 0
    private var lastLook = (unsent: 0, discarded: 0)
    /// How often it looked since our FIN.
    private var lingerLooks = 0

    init(_ leg: Leg) { self.leg = leg }

    var isOpen: Bool { context != nil }
    /// The peer's address; nil without a connection.
    var address: SocketAddress? { context?.remoteAddress }
    /// Whether more may be written without waiting; true without a connection.
    var isWritable: Bool { isChannelWritable && (shaped?.count ?? 0) < ShapedOutput.limit }
    private var isChannelWritable = true

    /// Adds this handler to a channel, on its event loop.
    func join(_ channel: any Channel, _ driver: SessionDriver) throws {
        try channel.pipeline.syncOperations.addHandler(self)
        socket = DirectSocketWriter(channel)
        self.driver = driver
    }

    /// Sends everything written or received from now on through TLS, which ``TLSHandler/start(early:)`` begins.
    func secure(_ engine: TLSEngine) throws {
        guard let context, tls == nil else { throw ChannelError.ioOnClosedChannel }
        // Data written before TLS is sent without it.
        if let waiting = shaped?.takeAll() { put(waiting.span) }
        flush()
        let handler = TLSHandler(engine)
        try context.pipeline.syncOperations.addHandler(handler, position: .first)
        handler.shortcut = { [self] ciphertext in
            sendPast(&ciphertext)
            if ciphertext.readableBytes > 0 { isQueued = true }
        }
        tls = handler
    }

    // MARK: Called by the driver

    /// Reads, or leaves what comes to the system. Reads that are on their way still arrive, and so does all that the
    /// system holds once the peer has sent its FIN.
    func setReading(_ isWanted: Bool) {
        // Behind the end of TLS the connection's own is still to come, and bytes left unread before it make a close a reset.
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

    /// Applies a shape to later writes; nil ends shaping after the waiting bytes.
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

    /// Sends the overdue pieces, each in a separate write, and schedules the others.
    private func sendPieces() {
        shapeTimer?.cancel()
        shapeTimer = nil
        let wasWritable = isWritable
        var pause: Int64? = 0
        // Pieces without a pause between them are not to keep the loop from others.
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

    /// Sends past the channel, if its queue is empty. Bytes that the system does not accept now remain, and have to be
    /// queued in the channel, as do later bytes. Errors of the connection are left to the channel.
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

    /// Sends a FIN after all that was written; with that the connection is closed if the peer's has come.
    func finish() {
        guard closeMode == .none else { return }
        closeMode = .finish
        whenAllIsWritten()
    }

    /// Closes with an RST after all that was written.
    func resetWhenWritten() {
        guard closeMode != .reset else { return }
        let isWaiting = closeMode == .finish && !isOutputOver
        closeMode = .reset
        if !isWaiting { whenAllIsWritten() }
    }

    /// Closes, and discards unsent data.
    func close() {
        guard !isClosing, let context else { return }
        isClosing = true
        dropShape()
        if closeMode == .reset { context.channel.resetOnClose() }
        context.close(promise: nil)
    }

    /// Counts bytes received after the session's end, up to ``lingerBytes``. A peer that sends more has not noticed the
    /// end, and is closed.
    func discard(_ count: Int) {
        // Until our own output is sent, a close would discard data in transit.
        guard isOutputOver else { return }
        discarded += count
        if discarded > Self.lingerBytes { close() }
    }

    /// Called once a second while the connection is ending. Returns whether the peer has accepted none of the remaining
    /// data, or has not answered a FIN, for so long that the connection can be given up.
    func isStuck(resets: Bool, isStopping: Bool) -> Bool {
        guard let context else { return false }
        let inSystem = context.channel.isActive ? socket?.unacknowledgedBytes ?? 0 : 0
        let waiting = shaped?.count ?? 0
        let look = (unsent: context.channel.unsentBytes + inSystem + waiting, discarded: discarded)
        // Bytes that a shape delays do not wait for the peer.
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
            // It comes back when that is out.
            if shapeTimer == nil, isChannelWritable { sendPieces() }
            return
        }
        shaped = nil
        if closeMode == .finish { tls?.finish() }
        push()
        if socket != nil, !isQueued { return closeOutput() }
        isQueued = true
        // NIO drops unwritten data if the output of a channel with a finished input is closed, so wait for it.
        let promise = context.eventLoop.makePromise(of: Void.self)
        // If it fails, the connection is gone.
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

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { driver?.received(leg, unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) { driver?.readCompleted(leg) }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        isChannelWritable = context.channel.isWritable
        if isChannelWritable, shaped != nil, shapeTimer == nil { sendPieces() }
        driver?.writabilityChanged(leg)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? TLSHandler.Event { driver?.told(leg, event) }
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
            // No word came before: either the FIN of a peer that has had ours, or a write that failed.
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
        default: return .failed(error.words)
        }
    }
}
