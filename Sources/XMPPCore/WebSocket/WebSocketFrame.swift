/// The endpoint that sends the frames of one direction (RFC 6455 §5.1): a client masks every frame, a server none.
package enum WebSocketSender: Sendable, Hashable {
    case client, server
}

/// The kind of a frame (RFC 6455 §5.2). The raw value is the opcode on the wire; other values are reserved.
package enum WebSocketOpcode: UInt8, Sendable, Hashable, CaseIterable {
    case continuation = 0
    case text = 1
    case binary = 2
    case close = 8
    case ping = 9
    case pong = 10

    /// Whether frames of this kind are control frames: at most 125 bytes of payload, never fragmented (§5.5).
    package var isControl: Bool { rawValue >= 8 }
}

/// The header of one frame (RFC 6455 §5.2).
package struct WebSocketFrame: Sendable, Hashable {
    /// The kind of frame.
    package var opcode: WebSocketOpcode
    /// Whether the frame is the last of its message. Always true for control frames.
    package var isFinal: Bool
    /// Whether RSV1 is set: the payload of the message is compressed (RFC 7692 §6). False unless the decoder accepts
    /// compressed messages.
    package var isCompressed: Bool
    /// The masking key, its first byte on the wire in the most significant byte; nil if the frame is not masked.
    package var maskKey: UInt32?
    /// Number of bytes of payload, as announced.
    package var payloadLength: Int
    /// Number of bytes of the header: 2 to 14.
    package var headerLength: Int
    /// Offset of the header's first byte, from the first byte after the handshake in this direction.
    package var offset: UInt64

    /// Creates the header of an unmasked, final frame without payload.
    package init(_ opcode: WebSocketOpcode, at offset: UInt64 = 0) {
        self.opcode = opcode
        isFinal = true
        isCompressed = false
        maskKey = nil
        payloadLength = 0
        headerLength = 2
        self.offset = offset
    }
}

/// The status code of a close frame (RFC 6455 §7.4, and IANA's registry of close codes).
package struct WebSocketCloseCode: RawRepresentable, Sendable, Hashable {
    /// The number of the code.
    package var rawValue: UInt16

    /// Creates a code, which may be one that must not be sent.
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package static let normal = WebSocketCloseCode(rawValue: 1000)
    package static let goingAway = WebSocketCloseCode(rawValue: 1001)
    package static let protocolError = WebSocketCloseCode(rawValue: 1002)
    package static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
    /// Stands for a close frame without a code; never on the wire.
    package static let noStatus = WebSocketCloseCode(rawValue: 1005)
    /// Stands for a connection that ended without a close frame; never on the wire.
    package static let abnormal = WebSocketCloseCode(rawValue: 1006)
    package static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
    package static let policyViolation = WebSocketCloseCode(rawValue: 1008)
    package static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
    package static let internalError = WebSocketCloseCode(rawValue: 1011)
    /// Stands for a failed TLS handshake; never on the wire.
    package static let failedTLS = WebSocketCloseCode(rawValue: 1015)

    /// Whether a close frame may carry the code: registered codes from 1000 to 1014 except 1004, 1005 and 1006, codes of
    /// libraries from 3000, and private ones up to 4999. All others are reserved (§7.4.2).
    package var isAllowedOnWire: Bool {
        switch rawValue {
        case 1000...1003, 1007...1014, 3000...4999: true
        default: false
        }
    }
}
