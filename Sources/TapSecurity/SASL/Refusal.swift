internal import TapCore

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
