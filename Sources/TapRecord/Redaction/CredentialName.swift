import XMPPCore

/// Common names of credentials: in forms, properties and parameters of URLs, in any spelling.
enum CredentialName {
    /// Returns the secret in a form field or property with this name; nil if there is none.
    ///
    /// Case and separators are ignored: `pass_word`, `new-pass` and `userPassword` are passwords.
    static func kind(of name: [UInt8]) -> SecretKind? {
        let letters = letters(of: name.span)
        let text = letters.span
        if text.holds("passwordprotected") { return nil }
        if text.holds(one: passwords) { return .password }
        if text.equals("landingurl") { return .inviteURL }
        if text.holds(one: secrets) || secretNames.contains(where: { text.equals($0) }) { return .formSecret }
        if text.ends(with: "pass"), !innocent.contains(where: { text.ends(with: $0) }) { return .password }
        return holdsWord(name) ? .formSecret : nil
    }

    /// Returns the secret in an element with this name that no protocol defines; nil if the name is not a credential's.
    static func kind(ofElement name: Span<UInt8>) -> SecretKind? {
        guard SecretNames.mayBeCredential(name) else { return nil }
        let bytes = name.indices.map { name[$0] }
        guard let kind = kind(of: bytes) else { return nil }
        guard kind == .formSecret else { return kind }
        let letters = letters(of: name)
        if letters.span.holds("privatekey") || letters.span.holds("secretkey") { return .secretKey }
        return letters.span.holds("token") ? .token : .key
    }

    /// Returns the secret in an attribute with this name that no protocol defines; nil if the name is not a
    /// credential's. `key` alone is excluded: list entries use it.
    static func kind(ofAttribute name: Span<UInt8>) -> SecretKind? {
        name.equalsIgnoringCase("key") ? nil : kind(ofElement: name)
    }

    /// Returns whether a word of a text, which need not be XML, is the name of a credential.
    static func occurs(in text: Span<UInt8>) -> Bool {
        var start = 0
        for index in 0...text.count {
            if index < text.count {
                let byte = text[index]
                if byte >= 0x80 || byte.isLetterOrDigit || byte == 0x2D || byte == 0x5F || byte == 0x2E { continue }
            }
            if kind(ofElement: text.extracting(start..<index)) != nil { return true }
            start = index + 1
        }
        return false
    }

    /// Returns whether the name of a URL parameter, which may be percent-encoded, is the name of a credential.
    static func isParameter(_ name: Span<UInt8>) -> Bool {
        let letters = letters(of: name)
        let text = letters.span
        return parameters.contains { text.equals($0) } || parameterEndings.contains { text.ends(with: $0) }
    }

    /// Returns whether a URL parameter, whose name may be percent-encoded, contains a pre-authentication token
    /// (XEP-0379, XEP-0401).
    static func isPreauth(_ name: Span<UInt8>) -> Bool {
        let letters = letters(of: name)
        return letters.span.equals("preauth")
    }

    private static let passwords: [StaticString] = ["password", "passwd", "passphrase", "passcode", "passwort"]
    private static let secrets: [StaticString] = [
        "secret", "token", "credential", "privatekey", "apikey", "accesskey", "signingkey", "encryptionkey", "passkey",
        "oauth",
    ]
    private static let secretNames: [StaticString] = [
        "key", "authdata", "authorization", "jwt", "cookie",
    ]
    private static let secretWords: [StaticString] = ["pass", "pwd", "pw", "pin", "otp", "totp"]
    /// Words that end with "pass" but do not mean a password.
    private static let innocent: [StaticString] = ["bypass", "compass", "trespass", "surpass"]

    /// Parameters that are credentials, as common services and storage providers name them.
    private static let parameters: [StaticString] = [
        "token", "sig", "signature", "hmac", "mac", "jwt", "passwd", "pwd", "pass", "passphrase", "passcode", "secret",
        "key", "apikey", "auth", "authorization", "credential", "credentials",
    ]
    /// Endings of the names of credential parameters: `client_secret`, `X-Amz-Signature`.
    private static let parameterEndings: [StaticString] = [
        "token", "secret", "password", "signature", "credential", "apikey",
    ]

    /// Returns the letters and digits of a name, including percent-encoded ones, in lower case.
    private static func letters(of name: Span<UInt8>) -> [UInt8] {
        var letters: [UInt8] = []
        letters.reserveCapacity(name.count)
        PercentEncoding.forEach(name) { byte in
            if byte >= 0x80 || byte.isLetterOrDigit { letters.append(byte.lowered) }
        }
        return letters
    }

    /// Returns whether one of the words of a name is the name of a credential. Digits are ignored: the words of
    /// `userPass2` are `user` and `pass`.
    private static func holdsWord(_ name: [UInt8]) -> Bool {
        var word: [UInt8] = []
        var wasSmall = false
        for byte in name {
            let isCapital = byte &- 0x41 < 26
            if !(byte >= 0x80 || byte.isLetterOrDigit) || isCapital && wasSmall {
                if isWord(word) { return true }
                word.removeAll(keepingCapacity: true)
            }
            wasSmall = byte &- 0x61 < 26
            if byte >= 0x80 || isCapital || wasSmall { word.append(byte.lowered) }
        }
        return isWord(word)
    }

    private static func isWord(_ word: [UInt8]) -> Bool { secretWords.contains { word.span.equals($0) } }
}

/// Percent-encoding of URLs (RFC 3986 §2.1).
enum PercentEncoding {
    /// Calls `body` with each decoded byte; a percent sign without two digits is literal.
    static func forEach(_ text: Span<UInt8>, _ body: (UInt8) -> Void) {
        var index = 0
        while index < text.count {
            if text[index] == 0x25, index + 2 < text.count, let high = text[index + 1].hexadecimalValue,
                let low = text[index + 2].hexadecimalValue
            {
                body(high << 4 | low)
                index += 3
            } else {
                body(text[index])
                index += 1
            }
        }
    }

    /// Decodes percent-encoding.
    static func decode(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        forEach(text) { bytes.append($0) }
        return bytes
    }
}

extension UInt8 {
    var lowered: UInt8 { self &- 0x41 < 26 ? self | 0x20 : self }

    var isLetterOrDigit: Bool { lowered &- 0x61 < 26 || self &- 0x30 < 10 }

    var hexadecimalValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }
}

extension Span<UInt8> {
    /// Returns whether these bytes contain one of the words.
    func holds(one words: [StaticString]) -> Bool {
        for word in words where holds(word) { return true }
        return false
    }

    /// Returns whether these bytes contain the word.
    func holds(_ word: StaticString) -> Bool {
        let length = word.utf8CodeUnitCount
        guard length > 0, count >= length else { return false }
        let first = word.utf8Start[0]
        for start in 0...(count - length) where self[start] == first {
            if extracting(start..<(start + length)).equals(word) { return true }
        }
        return false
    }

    /// Returns whether these bytes end with the word.
    func ends(with word: StaticString) -> Bool {
        let length = word.utf8CodeUnitCount
        return count >= length && extracting((count - length)..<count).equals(word)
    }
}
