internal import TapCore
internal import TapRecord

/// Returns whether a value is a valid nonce: printable ASCII without a comma.
func isNonce(_ value: some Sequence<UInt8>) -> Bool {
    var isEmpty = true
    for byte in value {
        guard 0x21...0x7e ~= byte, byte != UInt8(ascii: ",") else { return false }
        isEmpty = false
    }
    return !isEmpty
}

/// Encodes a name for a message: `,` and `=` become `=2C` and `=3D`.
func encodeName(_ name: String) -> String {
    // Iterates over scalars: a comma with a combining mark is one `Character`, but still a comma on the wire.
    name.unicodeScalars.reduce(into: "") { encoded, scalar in
        switch scalar {
        case "=": encoded += "=3D"
        case ",": encoded += "=2C"
        default: encoded.unicodeScalars.append(scalar)
        }
    }
}

/// Parses an iteration count: decimal without sign or leading zero.
func decodeIterations(_ value: ArraySlice<UInt8>) -> Int? {
    guard value.first != UInt8(ascii: "0"), value.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
        return nil
    }
    return Int(String(decoding: value, as: UTF8.self))
}

/// Decodes base64. Only canonical encodings are accepted, so that two texts cannot represent the same proof.
func decodeBase64(_ value: ArraySlice<UInt8>) -> [UInt8]? {
    Base64.decode(value.span.bytes)
}

/// Why an exchange fails. The text is the value for `e=` if RFC 5802 §7 defines one.
struct Refusal: Error {
    let condition: SASLCondition
    let text: String
    /// Whether the peer violated the mechanism or failed to authenticate.
    var isPeerAtFault = true

    /// The message violates the mechanism.
    static func malformed(_ text: String) -> Refusal { Refusal(condition: .malformedRequest, text: text) }
    /// A value is not valid base64.
    static func encoding(_ text: String) -> Refusal { Refusal(condition: .incorrectEncoding, text: text) }
    /// The message is well-formed, but the peer failed to authenticate.
    static func denied(_ text: String) -> Refusal { Refusal(condition: .notAuthorized, text: text) }
    /// The peer is not at fault: our limits, keys or names end the exchange, or the peer refused it.
    static func own(_ text: String) -> Refusal {
        Refusal(condition: .notAuthorized, text: text, isPeerAtFault: false)
    }
    /// The cryptographic library failed.
    static func `internal`(_ error: any Error) -> Refusal {
        Refusal(condition: .temporaryAuthFailure, text: "\(error)", isPeerAtFault: false)
    }
}
