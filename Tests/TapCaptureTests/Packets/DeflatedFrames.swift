import CZlib
import TapRecord
import TapTestKit
import XMPPCore

/// Writes the messages of one direction of a WebSocket with permessage-deflate (RFC 7692 §7.2.1).
final class DeflatedFrames {
    private let direction: Direction
    private let isFresh: Bool
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isInParts = false

    init(_ direction: Direction, _ windowBits: Int32, _ isFresh: Bool) {
        self.direction = direction
        self.isFresh = isFresh
        stream.initialize(to: z_stream())
        xmpptap_deflate_raw(stream, windowBits)
    }

    convenience init(_ direction: Direction, _ windowBits: Int, _ isFresh: Bool) {
        self.init(direction, Int32(windowBits), isFresh)
    }

    deinit {
        deflateEnd(stream)
        stream.deallocate()
    }

    /// Returns the frames of a message: every other message has two fragments with a ping between them.
    func frames(of text: String) -> [UInt8] {
        let payload = deflated(Array(text.utf8))
        isInParts.toggle()
        guard isInParts, payload.count > 4 else { return frame(payload, .text, isFirst: true) }
        return frame(Array(payload.prefix(3)), .text, isFinal: false, isFirst: true)
            + WebSocketConversation.frame("beat", .ping, from: direction)
            + frame(Array(payload.dropFirst(3)), .continuation)
    }

    private func frame(_ payload: [UInt8], _ opcode: WebSocketOpcode, isFinal: Bool = true, isFirst: Bool = false)
        -> [UInt8]
    {
        let key: UInt32 = 0x1234_5678
        var bytes: [UInt8] = []
        let role: WebSocketFrameWriter.Role = direction == .send ? .client(maskKey: key) : .server
        WebSocketFrameWriter.appendHeader(opcode, payloadLength: payload.count, isFinal: isFinal, as: role, to: &bytes)
        if isFirst { bytes[0] |= 0x40 }
        let start = bytes.count
        bytes += payload
        if direction == .send { WebSocketMask.apply(key, at: 0, to: &bytes, from: start) }
        return bytes
    }

    private func deflated(_ bytes: [UInt8]) -> [UInt8] {
        // zlib writes nothing for a second flush without input (RFC 7692 §7.2.3.6).
        guard !bytes.isEmpty else { return [0] }
        var (input, output) = (bytes, [UInt8](repeating: 0, count: bytes.count + 1024))
        input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { room in
                stream.pointee.next_in = input.baseAddress
                stream.pointee.avail_in = UInt32(input.count)
                stream.pointee.next_out = room.baseAddress
                stream.pointee.avail_out = UInt32(room.count)
                _ = deflate(stream, Z_SYNC_FLUSH)
            }
        }
        output.removeLast(Int(stream.pointee.avail_out) + 4)
        if isFresh { deflateReset(stream) }
        return output
    }

    /// The handshake, in which the peers agree on permessage-deflate with these parameters.
    static func handshake(_ parameters: String) -> [(Direction, [UInt8])] {
        WebSocketConversation.handshake.map { direction, text in
            let field =
                direction == .send
                ? "permessage-deflate; client_max_window_bits" : "permessage-deflate" + parameters
            return (direction, Array(text.utf8.dropLast(2)) + "Sec-WebSocket-Extensions: \(field)\r\n\r\n".utf8)
        }
    }
}
