import XMPPCore

/// A SASL message from a stream: its decoded base64, and its kind.
package struct SASLMessage {
    /// The role of a message in an exchange, by the element that carries it.
    package enum Role: Sendable {
        /// The client's first message.
        case initial
        case challenge
        case response
        /// The server's last message, which is sent inside the `success` element.
        case success
    }

    /// The contents of a text as a SASL message.
    package enum Text: Equatable {
        /// The element was empty: no message.
        case none
        /// `=`: a message without bytes (RFC 6120 §6.4.2).
        case empty
        case bytes([UInt8])
        /// A placeholder replaced the message.
        case placeholder
        case malformed
    }

    /// Reads the text of an element; white space around and in it is ignored.
    package static func read(_ text: Span<UInt8>) -> Text {
        var start = 0
        var end = text.count
        while start < end, isWhitespace(text[start]) { start += 1 }
        while end > start, isWhitespace(text[end - 1]) { end -= 1 }
        let trimmed = text.extracting(start..<end)
        guard !trimmed.isEmpty else { return .none }
        if trimmed.equals("=") { return .empty }
        if Placeholder.isPlaceholder(trimmed) { return .placeholder }
        return Base64.decode(trimmed.bytes, ignoringWhitespace: true).map { .bytes($0) } ?? .malformed
    }

    private static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }

    /// Returns the kind of secret in a message, by the mechanism if it is known, otherwise by the message itself.
    ///
    /// The kind is used only in the placeholder: every message is hidden, regardless of its kind.
    static func kind(_ text: Span<UInt8>, _ role: Role, mechanism: SASLMechanism) -> SecretKind {
        guard case .bytes(let bytes) = read(text) else { return kind(role) }
        switch mechanism {
        case .oauth: return .saslOAuth
        case .hashedToken: return .saslHashedToken
        case .external: return .saslExternal
        case .anonymous: return .saslAnonymous
        case .plain: return .saslPlain
        case .scram, .digestMD5, .other: break
        }
        let message = bytes.span
        switch role {
        case .initial, .response:
            if begins(message, "c=") { return .saslScramProof }
            if begins(message, "username=") || begins(message, "realm=") { return .saslDigestResponse }
            let isGS2 = begins(message, "n,") || begins(message, "y,") || begins(message, "p=")
            if isGS2 { return bytes.contains(0x01) ? .saslOAuth : .saslScramFirst }
            if mechanism == .digestMD5 { return .saslDigestResponse }
        case .challenge:
            if begins(message, "r=") { return .saslScramChallenge }
            if begins(message, "v=") { return .saslScramVerifier }
            if begins(message, "realm=") || begins(message, "nonce=") || begins(message, "rspauth=") {
                return .saslDigestChallenge
            }
        case .success:
            if begins(message, "v=") { return .saslScramVerifier }
            if begins(message, "rspauth=") { return .saslDigestChallenge }
            if begins(message, "r=") { return .saslScramChallenge }
        }
        return kind(role)
    }

    private static func kind(_ role: Role) -> SecretKind {
        switch role {
        case .initial: .saslInitial
        case .challenge: .saslChallenge
        case .response: .saslResponse
        case .success: .saslSuccess
        }
    }

    static func begins(_ bytes: Span<UInt8>, _ prefix: StaticString) -> Bool {
        let count = prefix.utf8CodeUnitCount
        return bytes.count >= count && bytes.extracting(0..<count).equals(prefix)
    }
}

/// The families of supported SASL mechanisms.
package enum SASLMechanism: Sendable, Hashable {
    case plain
    /// RFC 5802 and similar mechanisms, any hash, with or without `-PLUS`.
    case scram
    /// RFC 4422 appendix A.
    case external
    /// RFC 4505.
    case anonymous
    /// OAUTHBEARER (RFC 7628), X-OAUTH2 and the tokens of individual services.
    case oauth
    /// RFC 2831.
    case digestMD5
    /// HT-* (XEP-0484).
    case hashedToken
    case other

    /// Creates the family of a mechanism's name, ignoring case.
    init(_ name: Span<UInt8>) {
        var upper: [UInt8] = []
        upper.append(name)
        for index in upper.indices where upper[index] >= 0x61 && upper[index] <= 0x7A { upper[index] &= 0xDF }
        let name = upper.span
        if name.equals("PLAIN") {
            self = .plain
        } else if SASLMessage.begins(name, "SCRAM-") {
            self = .scram
        } else if name.equals("EXTERNAL") {
            self = .external
        } else if name.equals("ANONYMOUS") {
            self = .anonymous
        } else if name.equals("DIGEST-MD5") {
            self = .digestMD5
        } else if SASLMessage.begins(name, "HT-") {
            self = .hashedToken
        } else if name.equals("OAUTHBEARER") || name.equals("X-OAUTH2") || name.equals("OAUTH10A")
            || name.equals("X-GOOGLE-TOKEN") || name.equals("X-FACEBOOK-PLATFORM") || name.equals("X-MESSENGER-OAUTH2")
        {
            self = .oauth
        } else {
            self = .other
        }
    }

    /// Creates the family of a mechanism's name.
    package init(_ name: String) {
        self.init(Array(name.utf8).span)
    }
}
