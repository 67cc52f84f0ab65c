/// The reason why bytes are not acceptable WebSocket frames (RFC 6455): the violated rule, and the offset.
package struct WebSocketFault: Error, Sendable, Hashable {
    /// The violated rule. The raw value is stable: logs, captures and tests depend on it.
    package enum Code: String, Sendable, CaseIterable {
        case reservedBit = "reserved-bit"
        case reservedOpcode = "reserved-opcode"
        case unmaskedFrame = "unmasked-frame"
        case maskedFrame = "masked-frame"
        case fragmentedControl = "fragmented-control-frame"
        case controlTooLong = "limit-control-frame"
        case unexpectedContinuation = "unexpected-continuation"
        case unfinishedMessage = "unfinished-message"
        case lengthNotMinimal = "length-not-minimal"
        case lengthOverflow = "length-overflow"
        case messageTooLong = "limit-message"
        case malformedClose = "malformed-close"
        case closeCode = "close-code"
        case invalidUTF8 = "invalid-utf-8"
        case afterClose = "after-close"
    }

    /// The violated rule.
    package var code: Code
    /// Offset of the offending byte, from the first byte after the handshake in this direction.
    package var offset: UInt64
    /// The exceeded limit in bytes; 0 if the fault is not a limit.
    package var limit: Int

    package init(_ code: Code, at offset: UInt64, limit: Int = 0) {
        self.code = code
        self.offset = offset
        self.limit = limit
    }

    /// The code of the close frame that a receiver sends for this fault (RFC 6455 §7.4.1).
    package var closeCode: WebSocketCloseCode {
        switch code {
        case .invalidUTF8: .invalidPayload
        case .messageTooLong: .messageTooBig
        default: .protocolError
        }
    }

    /// A description of the fault as one clause, for people.
    package var explanation: String {
        switch code {
        case .reservedBit: "a reserved bit is set, but no extension that defines it was negotiated"
        case .reservedOpcode: "a frame with a reserved opcode"
        case .unmaskedFrame: "a frame of the client without a mask"
        case .maskedFrame: "a frame of the server with a mask"
        case .fragmentedControl: "a fragmented control frame"
        case .controlTooLong: "a control frame with more than \(limit) bytes of payload"
        case .unexpectedContinuation: "a continuation frame, but no message is unfinished"
        case .unfinishedMessage: "a new message before the last fragment of the previous one"
        case .lengthNotMinimal: "a payload length that is not in its shortest form"
        case .lengthOverflow: "a payload length of 2^63 bytes or more"
        case .messageTooLong: "a message longer than \(limit) bytes"
        case .malformedClose: "a close frame with one byte of payload"
        case .closeCode: "a close frame with a code that must not be sent"
        case .invalidUTF8: "invalid UTF-8"
        case .afterClose: "bytes after the close frame"
        }
    }
}
