/// Writes frames (RFC 6455 §5): always unfragmented, uncompressed, with the length in its shortest form.
package enum WebSocketFrameWriter {
    /// The endpoint as which a frame is written.
    package enum Role: Sendable, Hashable {
        /// Frames are masked. The key must be unpredictable, and a new one for each frame (§5.3); its first byte on the
        /// wire is the most significant one.
        case client(maskKey: UInt32)
        /// Frames are not masked.
        case server
    }

    /// Maximum number of bytes of a reason in a close frame.
    package static let reasonBytes = WebSocketFrameDecoder.controlBytes - 2

    /// Appends a whole message to `output`.
    package static func append(
        message payload: Span<UInt8>,
        isBinary: Bool = false,
        as role: Role,
        to output: inout [UInt8]
    ) {
        append(isBinary ? .binary : .text, payload, role, &output)
    }

    /// Appends a ping to `output`; returns false without changes if the payload is longer than 125 bytes.
    package static func append(ping payload: Span<UInt8>, as role: Role, to output: inout [UInt8]) -> Bool {
        append(control: .ping, payload, role, &output)
    }

    /// Appends a pong to `output`; returns false without changes if the payload is longer than 125 bytes.
    package static func append(pong payload: Span<UInt8>, as role: Role, to output: inout [UInt8]) -> Bool {
        append(control: .pong, payload, role, &output)
    }

    /// Appends a close frame to `output`; a reason longer than 123 bytes is cut at a code point.
    ///
    /// - Parameter code: ``WebSocketCloseCode/noStatus`` for a frame without code and reason. Returns false without
    ///   changes for any other code that must not be sent (§7.4.1): end the connection without a close frame.
    package static func append(
        close code: WebSocketCloseCode,
        reason: String = "",
        as role: Role,
        to output: inout [UInt8]
    ) -> Bool {
        var payload: [UInt8] = []
        if code != .noStatus {
            guard code.isAllowedOnWire else { return false }
            payload = [UInt8(truncatingIfNeeded: code.rawValue &>> 8), UInt8(truncatingIfNeeded: code.rawValue)]
            for scalar in reason.unicodeScalars {
                let bytes = UTF8.encode(scalar)
                guard let bytes, payload.count + bytes.count <= WebSocketFrameDecoder.controlBytes else { break }
                payload += bytes
            }
        }
        return append(control: .close, payload.span, role, &output)
    }

    /// Appends the header of a frame whose payload the caller appends, masked by ``WebSocketMask`` for a client.
    ///
    /// - Parameter isFinal: Whether the frame is the last of its message: for callers that keep a sender's fragments.
    package static func appendHeader(
        _ opcode: WebSocketOpcode,
        payloadLength: Int,
        isFinal: Bool = true,
        as role: Role,
        to output: inout [UInt8]
    ) {
        let length = max(0, payloadLength)
        let maskBit: UInt8 = if case .client = role { 0x80 } else { 0 }
        output.append(opcode.rawValue | (isFinal ? 0x80 : 0))
        switch length {
        case ...125: output.append(maskBit | UInt8(truncatingIfNeeded: length))
        case ...0xFFFF:
            output.append(maskBit | 126)
            appendNumber(UInt64(length), bytes: 2, to: &output)
        default:
            output.append(maskBit | 127)
            appendNumber(UInt64(length), bytes: 8, to: &output)
        }
        if case .client(let key) = role { appendNumber(UInt64(key), bytes: 4, to: &output) }
    }

    private static func append(control: WebSocketOpcode, _ payload: Span<UInt8>, _ role: Role, _ output: inout [UInt8])
        -> Bool
    {
        guard payload.count <= WebSocketFrameDecoder.controlBytes else { return false }
        append(control, payload, role, &output)
        return true
    }

    private static func append(_ opcode: WebSocketOpcode, _ payload: Span<UInt8>, _ role: Role, _ output: inout [UInt8])
    {
        appendHeader(opcode, payloadLength: payload.count, as: role, to: &output)
        let start = output.count
        output.append(payload)
        if case .client(let key) = role { WebSocketMask.apply(key, at: 0, to: &output, from: start) }
    }

    private static func appendNumber(_ number: UInt64, bytes: Int, to output: inout [UInt8]) {
        for place in 0..<bytes {
            output.append(UInt8(truncatingIfNeeded: number &>> UInt64((bytes &- 1 &- place) &* 8)))
        }
    }
}
