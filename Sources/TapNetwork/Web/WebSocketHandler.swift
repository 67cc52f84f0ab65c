internal import NIOCore
internal import TapSecurity
internal import XMPPCore

/// A channel handler for XMPP over WebSocket (RFC 7395), after the HTTP handshake: frames on the side of the socket, a
/// stream of RFC 6120 on the other side.
///
/// Pings are answered here. Closing the channel sends a close frame first if the stream is closed or the peer violates
/// the protocol, and none otherwise: so that a session can be resumed, its connection ends without one. After an
/// ``WebSocketFailure``, the receiver of the error closes the channel. Use it on the channel's event loop only.
final class WebSocketHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The endpoint that this handler is.
    enum Role {
        /// The client; frames are masked.
        case client
        /// The server. Before the login, the limits are those of clients that are not authenticated.
        case server
    }

    private let role: Role
    /// The TLS of the connection, below this handler; nil without TLS.
    private let tls: TLSHandler?
    private var context: ChannelHandlerContext?
    private var frames: WebSocketFrameDecoder
    private var translator: StreamTranslator
    /// Received bytes that are not decoded yet: less than a frame's header, unless ``hasBegun`` is false.
    private var received = ByteBuffer()
    private var payload: [UInt8] = []
    private var hasBegun = false
    /// Whether `<close/>` was sent or received.
    private var (hasSentClose, hasReceivedClose) = (false, false)
    /// Whether a close frame was sent.
    private var hasSentCloseFrame = false
    /// The code to close the connection with, because the peer violated the protocol.
    private var failureCode: WebSocketCloseCode?
    /// Whether no more frames are decoded: after a fault or a close frame.
    private var isInputOver = false

    init(_ role: Role, tls: TLSHandler?) {
        self.role = role
        self.tls = tls
        let limits: StreamLimits = role == .client ? .authenticated : .unauthenticated
        frames = WebSocketFrameDecoder(role == .client ? .server : .client, messageBytes: limits.itemBytes)
        translator = StreamTranslator(limits: limits)
    }

    /// Begins to decode; call it when the handler of the stream is in the channel.
    func begin() {
        hasBegun = true
        decode()
    }

    private var writer: WebSocketFrameWriter.Role {
        switch role {
        case .client: .client(maskKey: .random(in: .min ... .max))
        case .server: .server
        }
    }

    // MARK: Inbound

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isInputOver else { return }
        var buffer = unwrapInboundIn(data)
        received.writeBuffer(&buffer)
        if hasBegun { decode() }
    }

    /// Decodes the received bytes, then forwards their stream in one piece: its receiver may close the channel.
    private func decode() {
        var stream: [UInt8] = []
        var failure: WebSocketFailure?
        var isClosed = false
        decoding: while !isInputOver {
            let signal = frames.next(received.readableBytesUInt8Span, into: &payload)
            switch signal {
            case .incomplete: break decoding
            case .header(let length):
                received.moveReaderIndex(forwardBy: length)
                guard frames.frame.opcode != .binary else {
                    failure = WebSocketFailure(.unsupportedData, "a binary message")
                    break decoding
                }
            case .payload(let length, let endsMessage):
                received.moveReaderIndex(forwardBy: length)
                failure = translate(endsMessage: endsMessage, &stream)
                if failure != nil { break decoding }
            case .control(let length):
                failure = handleControl()
                isClosed = frames.isClosed
                received.moveReaderIndex(forwardBy: length)
            case .fault(let fault):
                failure = WebSocketFailure(fault.closeCode, fault.explanation)
                break decoding
            }
        }
        if failure != nil { isInputOver = true }
        if isInputOver { received.clear() } else { received.discardReadBytes() }
        guard let context else { return }
        if !stream.isEmpty { context.fireChannelRead(wrapInboundOut(context.channel.allocator.buffer(bytes: stream))) }
        // The receiver may have closed the channel.
        guard self.context != nil else { return }
        if let failure {
            failureCode = failure.code
            context.fireErrorCaught(failure)
        } else if isClosed {
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        }
    }

    private func translate(endsMessage: Bool, _ stream: inout [UInt8]) -> WebSocketFailure? {
        var bytes: [UInt8] = []
        defer { payload.removeAll(keepingCapacity: payload.capacity <= 1 << 16) }
        do throws(ScanFault) {
            try translator.translate(message: payload.span, endsMessage: endsMessage) { bytes += $0 }
        } catch {
            return WebSocketFailure(error)
        }
        if bytes == Self.streamEnd {
            hasReceivedClose = true
            if let failure = redirection() { return failure }
        }
        stream += bytes
        return nil
    }

    /// Returns the failure of a client that the server sends to another address (RFC 7395 §3.6.1).
    private func redirection() -> WebSocketFailure? {
        let name = Array("see-other-uri".utf8)
        let message = payload
        guard role == .client, !hasSentClose, message.firstRange(of: name) != nil else { return nil }
        do throws(StanzaParser.Failure) {
            let close = try StanzaParser().parse(StreamDecoder.element(ofMessage: message.span), root: [])
            return close.attribute("see-other-uri").map { WebSocketFailure(redirectedTo: $0) }
        } catch {
            return nil
        }
    }

    private static let streamEnd = Array("</stream:stream>".utf8)

    /// Handles a control frame; returns the failure if it ends an open stream.
    private func handleControl() -> WebSocketFailure? {
        switch frames.frame.opcode {
        case .ping:
            var output: [UInt8] = []
            if WebSocketFrameWriter.append(pong: frames.controlPayload, as: writer, to: &output) { send(output) }
        case .close:
            isInputOver = true
            let code = frames.closeCode
            var bytes: [UInt8] = []
            bytes.append(frames.closeReason)
            let reason = String(decoding: bytes, as: UTF8.self)
            sendCloseFrame(code.isAllowedOnWire ? code : .noStatus)
            guard !hasReceivedClose, !hasSentClose else { return nil }
            return WebSocketFailure(closedBy: role == .client ? "server" : "client", code, reason)
        default: break
        }
        return nil
    }

    // MARK: Outbound

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let stream = unwrapOutboundIn(data)
        var output: [UInt8] = []
        var isAuthenticated = false
        do throws(ScanFault) {
            try translator.translate(stream: stream.readableBytesUInt8Span) { message in
                if message.starts(with: Self.close) { hasSentClose = true }
                if message.starts(with: Self.success) { isAuthenticated = true }
                WebSocketFrameWriter.append(message: message.span, as: writer, to: &output)
            }
        } catch {
            // Stanzas of a recording may be malformed; those before the malformed one are sent.
            if !output.isEmpty, !hasSentCloseFrame {
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: output)), promise: nil)
            }
            promise?.fail(WebSocketFailure(error))
            return context.fireErrorCaught(WebSocketFailure(sending: error))
        }
        if isAuthenticated, role == .server {
            translator.limits = .authenticated
            frames.messageBytes = StreamLimits.authenticated.itemBytes
        }
        guard !hasSentCloseFrame else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        // An empty write completes after the previous ones.
        context.write(wrapOutboundOut(context.channel.allocator.buffer(bytes: output)), promise: promise)
    }

    private static let close = Array("<close ".utf8)
    private static let success = Array("<success ".utf8)

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode != .input {
            if hasSentClose || failureCode != nil { sendCloseFrame(failureCode ?? .normal) }
            if mode == .all { tls?.finish() }
        }
        context.close(mode: mode, promise: promise)
    }

    private func sendCloseFrame(_ code: WebSocketCloseCode) {
        guard !hasSentCloseFrame else { return }
        hasSentCloseFrame = true
        var output: [UInt8] = []
        if WebSocketFrameWriter.append(close: code, as: writer, to: &output) { send(output) }
    }

    private func send(_ frames: [UInt8]) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(bytes: frames)), promise: nil)
    }
}

/// The reason why a WebSocket cannot be used any longer.
struct WebSocketFailure: Error, CustomStringConvertible {
    /// The code of the close frame that is the answer; nil if the peer has sent one.
    let code: WebSocketCloseCode?
    /// The stream error that is the answer, if frames can still be sent.
    let condition: StreamErrorCondition?
    /// The reason, as a clause.
    let description: String

    init(_ code: WebSocketCloseCode, _ explanation: String) {
        self.code = code
        condition = nil
        description = "malformed WebSocket: \(explanation)"
    }

    /// A message that is not an element, `<open/>` or `<close/>`.
    init(_ fault: ScanFault) {
        code = .normal
        condition = fault.condition
        description = "malformed WebSocket message: \(fault.explanation)"
    }

    /// A stanza of this program that cannot be sent as a message.
    init(sending fault: ScanFault) {
        code = .normal
        condition = nil
        description = "cannot send this as a message of a WebSocket: \(fault.explanation)"
    }

    init(redirectedTo address: String) {
        code = .normal
        condition = nil
        description = "the server redirects to \(WebServer.withoutSecrets(address).prefix(200)); use that URL"
    }

    /// - Parameter peer: "server" or "client".
    init(closedBy peer: String, _ code: WebSocketCloseCode, _ reason: String) {
        self.code = nil
        condition = nil
        let number = code == .noStatus ? "without a code" : "with code \(code.rawValue)"
        description =
            "the \(peer) closed the WebSocket \(number)\(reason.isEmpty ? "" : " (\(reason))") before the stream"
    }
}
