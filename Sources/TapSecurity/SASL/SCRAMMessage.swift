internal import TapCore
internal import TapRecord

/// A nonce is printable ASCII without a comma.
func isNonce(_ value: some Sequence<UInt8>) -> Bool {
    var isEmpty = true
    for byte in value {
        guard 0x21...0x7e ~= byte, byte != UInt8(ascii: ",") else { return false }
        isEmpty = false
    }
    return !isEmpty
}

/// A name as it stands in a message: `,` and `=` are written `=2C` and `=3D`.
func encodeName(_ name: String) -> String {
    // By scalars: a comma with a combining mark is one character, and on the wire a comma all the same.
    name.unicodeScalars.reduce(into: "") { encoded, scalar in
        switch scalar {
        case "=": encoded += "=3D"
        case ",": encoded += "=2C"
        default: encoded.unicodeScalars.append(scalar)
        }
    }
}

/// A count of iterations: decimal without sign or leading zero.
func decodeIterations(_ value: ArraySlice<UInt8>) -> Int? {
    guard value.first != UInt8(ascii: "0"), value.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else {
        return nil
    }
    return Int(String(decoding: value, as: UTF8.self))
}

/// The bytes a value stands for. Only what an encoder writes is taken, so that no two texts pass for one proof.
func decodeBase64(_ value: ArraySlice<UInt8>) -> [UInt8]? {
    Base64.decode(value.span.bytes)
}

/// Why an exchange ends in failure. Where RFC 5802 §7 has a value for `e=`, the text is that value.
struct Refusal: Error {
    let condition: SASLCondition
    let text: String
    /// The peer broke the mechanism's rules, or did not prove itself.
    var isPeerAtFault = true

    /// The message breaks the mechanism's rules.
    static func malformed(_ text: String) -> Refusal { Refusal(condition: .malformedRequest, text: text) }
    /// A value that should be base64 is not.
    static func encoding(_ text: String) -> Refusal { Refusal(condition: .incorrectEncoding, text: text) }
    /// The message is well-formed, and the peer is not who it says.
    static func denied(_ text: String) -> Refusal { Refusal(condition: .notAuthorized, text: text) }
    /// The peer did what it may: it is our own bounds, keys or names that end the exchange, or its refusal.
    static func own(_ text: String) -> Refusal {
        Refusal(condition: .notAuthorized, text: text, isPeerAtFault: false)
    }
    /// The cryptographic library failed.
    static func `internal`(_ error: any Error) -> Refusal {
        Refusal(condition: .temporaryAuthFailure, text: "\(error)", isPeerAtFault: false)
    }
}
