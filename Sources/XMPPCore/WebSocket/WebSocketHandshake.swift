/// Checks of the opening handshake (RFC 6455 §4, RFC 7395 §3.1), on the values of header fields.
package enum WebSocketHandshake {
    /// The subprotocol of XMPP, in `Sec-WebSocket-Protocol` (RFC 7395 §3.1).
    package static let subprotocol = "xmpp"

    /// Returns whether a value of `Sec-WebSocket-Key` is the base64 form of 16 bytes (RFC 6455 §4.1).
    package static func isKey(_ value: String) -> Bool {
        let key = Array(trimmed(value))
        guard key.count == 24, key[22] == 0x3D, key[23] == 0x3D else { return false }
        for byte in key.prefix(22) where !alphabet.contains(byte) { return false }
        // Sixteen bytes leave two bits of the last digit.
        return alphabet.firstIndex(of: key[21]).map { $0 & 15 == 0 } ?? false
    }

    /// Returns the value of `Sec-WebSocket-Accept` with which a server answers a key (RFC 6455 §4.2.2).
    ///
    /// - Parameters:
    ///   - key: The value of `Sec-WebSocket-Key`; white space around it is ignored.
    ///   - sha1: Returns the SHA-1 digest of its argument: 20 bytes.
    /// - Throws: The error of `sha1`.
    package static func accept<Failure>(
        key: String,
        sha1: (Span<UInt8>) throws(Failure) -> [UInt8]
    ) throws(Failure) -> String {
        let input = Array(trimmed(key)) + Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
        return base64(try sha1(input.span))
    }

    /// Returns the tokens of a list in one or more header fields: `Upgrade`, `Connection`, `Sec-WebSocket-Protocol`.
    /// Empty elements are omitted (RFC 9110 §5.6.1).
    package static func tokens(_ fields: [String]) -> [String] {
        fields.flatMap { field in
            field.utf8.split(separator: 0x2C).map { String(decoding: trimmed($0), as: UTF8.self) }.filter {
                !$0.isEmpty
            }
        }
    }

    /// A subprotocol that is not negotiated as RFC 7395 §3.1 requires. The raw value is stable.
    package enum SubprotocolFault: String, Sendable, CaseIterable {
        /// The client does not offer `xmpp`. Some servers accept this.
        case notOffered = "subprotocol-not-offered"
        /// The server answers none.
        case notAnswered = "subprotocol-not-answered"
        /// The server answers more than one name: browsers end such a connection.
        case several = "subprotocol-several"
        /// The server answers another name than `xmpp`.
        case other = "subprotocol-other"
    }

    /// Checks the fields `Sec-WebSocket-Protocol` of a request, and of its answer with status 101; nil without a fault.
    package static func subprotocolFault(offered: [String], answered: [String]) -> SubprotocolFault? {
        let answer = tokens(answered)
        guard tokens(offered).contains(subprotocol) else { return .notOffered }
        guard let first = answer.first else { return .notAnswered }
        guard answer.count == 1 else { return .several }
        return first == subprotocol ? nil : .other
    }

    // MARK: Text

    private static func trimmed(_ text: String) -> Substring.UTF8View { trimmed(text.utf8[...]) }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        var rest = text
        while let first = rest.first, first == 0x20 || first == 0x09 { rest.removeFirst() }
        while let last = rest.last, last == 0x20 || last == 0x09 { rest.removeLast() }
        return rest
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    private static func base64(_ bytes: [UInt8]) -> String {
        var output: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var number: UInt32 = 0
            for byte in group { number = number << 8 | UInt32(byte) }
            number <<= UInt32(8 * (3 - group.count))
            for digit in 0..<4 {
                let value = Int(number >> UInt32(18 - 6 * digit)) & 63
                output.append(digit <= group.count ? alphabet[value] : 0x3D)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }
}
