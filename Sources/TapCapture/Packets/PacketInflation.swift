internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Removes the compression of a captured WebSocket (permessage-deflate, RFC 7692): sessions read plain frames only.
///
/// Pieces of compressed messages become fragments, so that no whole message has to be stored.
final class PacketInflation {
    /// The reason why the rest of a direction cannot be decoded.
    struct Failure {
        var text: Prose
        /// Number of received bytes that were not decoded.
        var undecoded: Int
    }

    /// The state of one direction. A class, since the decoder of frames cannot be copied.
    private final class Flow {
        var frames: WebSocketFrameDecoder
        let inflater: MessageInflater?
        let role: WebSocketFrameWriter.Role
        /// Bytes of an incomplete header or control frame.
        var stored: [UInt8] = []
        /// Whether a fragment of the current message was written.
        var hasBegun = false

        init(_ parameters: PerMessageDeflate, _ sender: WebSocketSender, _ role: WebSocketFrameWriter.Role) {
            frames = WebSocketFrameDecoder(sender, messageBytes: PacketInflation.messageBytes)
            frames.acceptsCompression = true
            inflater = MessageInflater(
                keepsContext: parameters.keepsContext(from: sender),
                messageBytes: PacketInflation.messageBytes
            )
            self.role = role
        }
    }

    /// The code of remarks about messages that cannot be decompressed.
    static let code = "websocket-compression"
    /// The remark about bytes that were not captured.
    static let lost: Prose =
        "compressed messages cannot be decoded after missing bytes; the rest of this direction is not decoded"
    /// Maximum number of decompressed bytes of one message: that of messages which are not compressed.
    static let messageBytes = 16 << 20

    private let send: Flow
    private let recv: Flow

    /// Creates the state of a WebSocket whose peers have agreed on these parameters.
    init(_ parameters: PerMessageDeflate) {
        // A mask of zeros changes no byte.
        send = Flow(parameters, .client, .client(maskKey: 0))
        recv = Flow(parameters, .server, .server)
    }

    /// Returns the frames of received bytes without compression, and the fault after them; nil if there is none. Do
    /// not call it again after a fault.
    func receive(_ direction: Direction, _ bytes: [UInt8]) -> (frames: [UInt8], failure: Failure?) {
        direction == .send ? Self.receive(bytes, send) : Self.receive(bytes, recv)
    }

    private static func receive(_ bytes: [UInt8], _ flow: Flow) -> (frames: [UInt8], failure: Failure?) {
        let input = flow.stored + bytes
        flow.stored = []
        var (start, output): (Int, [UInt8]) = (0, [])
        while true {
            var payload: [UInt8] = []
            switch flow.frames.next(input.span.extracting(start...), into: &payload) {
            case .incomplete:
                flow.stored = Array(input[start...])
                return (output, nil)
            case .header(let length): start += length
            case .control(let length):
                start += length
                write(flow.frames.frame.opcode, flow.frames.controlPayload, isFinal: true, flow.role, &output)
            case .payload(let length, let endsMessage):
                do throws(MessageInflater.Fault) {
                    try write(payload, endsMessage: endsMessage, flow, &output)
                } catch {
                    let text: Prose =
                        switch error {
                        case .damaged: "a compressed message is damaged"
                        case .tooLong: "a compressed message has more than \(messageBytes) bytes"
                        }
                    return (output, failure(text, flow, undecoded: input.count - start))
                }
                start += length
            case .fault(let fault):
                return (output, failure(Prose(fault.explanation), flow, undecoded: input.count - start))
            }
        }
    }

    private static func failure(_ text: Prose, _ flow: Flow, undecoded: Int) -> Failure {
        let text: Prose =
            "\(text), at byte \(flow.frames.offset) of the WebSocket; the rest of this direction is not decoded"
        return Failure(text: text, undecoded: undecoded)
    }

    /// Writes a piece of a message as a fragment.
    private static func write(
        _ payload: [UInt8],
        endsMessage: Bool,
        _ flow: Flow,
        _ output: inout [UInt8]
    ) throws(MessageInflater.Fault) {
        var content = payload
        if flow.frames.isMessageCompressed {
            guard let inflater = flow.inflater else { throw .damaged }
            content = []
            try inflater.inflate(payload, endsMessage: endsMessage, into: &content)
        }
        guard endsMessage || !content.isEmpty else { return }
        let opcode = flow.hasBegun ? .continuation : flow.frames.messageKind
        write(opcode, content.span, isFinal: endsMessage, flow.role, &output)
        flow.hasBegun = !endsMessage
    }

    private static func write(
        _ opcode: WebSocketOpcode,
        _ content: Span<UInt8>,
        isFinal: Bool,
        _ role: WebSocketFrameWriter.Role,
        _ output: inout [UInt8]
    ) {
        WebSocketFrameWriter.appendHeader(
            opcode,
            payloadLength: content.count,
            isFinal: isFinal,
            as: role,
            to: &output
        )
        output.append(content)
    }
}
