/// Names of elements and attributes that may contain a secret: the cheap first filter before redaction.
///
/// A match only causes a closer check of the item; the rules that decide are structural and belong to redaction, and
/// each of them applies only to names that match here.
package enum SecretNames {
    /// The name of an element in one namespace, or in any namespace if `namespace` is nil.
    struct Name {
        var name: StaticString
        var namespace: Namespace?

        init(_ name: StaticString, _ namespace: Namespace? = nil) {
            self.name = name
            self.namespace = namespace
        }
    }

    static let elements: [Name] = [
        // Passwords, keys and tokens of any kind.
        Name("password"), Name("passwd"), Name("passphrase"), Name("passcode"), Name("pass"), Name("pwd"),
        Name("credential"), Name("secret"), Name("shared-secret"), Name("key"), Name("token"),
        Name("secretkey"), Name("private-key"), Name("private_key"), Name("server-key"),
        Name("stored-key"), Name("oauth"), Name("auth"), Name("initial-response"), Name("response"),
        // Component handshake, data forms, HTTP headers and upload slots.
        Name("handshake"), Name("field"), Name("header"), Name("put"), Name("get"),
        // Values with their names beside them.
        Name("property"), Name("param"), Name("parameter"), Name("member"), Name("setting"),
        // Elements that contain secrets only in these namespaces; their names are common in other namespaces.
        Name("enabled", .streamManagement), Name("enabled", .streamManagement2),
        Name("resume", .streamManagement), Name("resume", .streamManagement2),
        Name("resumed", .streamManagement), Name("resumed", .streamManagement2),
        Name("service", .serviceDiscoveryExternal), Name("service", .serviceDiscoveryExternal1),
        Name("confirm", .httpAuth), Name("affiliation", .pubsub),
    ]

    /// Namespaces of which every element is checked.
    static let namespaces: [Namespace] = [
        .sasl, .sasl2, .sasl2Legacy, .fast, .isr, .scramUpgrade, .iqAuth, .dialback, .push, .oauth, .omemo, .omemo1,
        .omemoLegacy,
        .encryptedFiles, .httpBind, .preauth, .register,
    ]

    static let attributes: [StaticString] = [
        "password", "passwd", "pwd", "ufrag", "token", "secret", "previd", "newkey", "key-params", "access_token",
        "passphrase", "passcode", "credential",
    ]

    /// Returns whether bytes, which need not be XML, contain one of the names, or a sign of a key in a URL: `#` or `=`
    /// in possible text; a query, a user name or an invitation after `//`. Called before a piece of unparsable data is
    /// shown.
    ///
    /// Returns true in doubt: every word of the bytes is compared, in any namespace. A `=` before a quote belongs to an
    /// attribute; any other `=` is a sign.
    package static func mayOccur(in bytes: Span<UInt8>) -> Bool {
        for namespace in namespaces where contains(namespace.uri, bytes) { return true }
        var start = 0
        var isInURL = false
        for index in 0...bytes.count {
            if index < bytes.count {
                let byte = bytes[index]
                switch byte {
                case 0x2F where index > 0 && bytes[index - 1] == 0x2F: isInURL = true
                case 0x2F where isInURL: if TextScan.holds("invit", bytes, at: index + 1) { return true }
                // `?` begins a query and `@` follows a user name; `%` may encode either character.
                case 0x25, 0x3F, 0x40: if isInURL { return true }
                case 0...0x20, 0x22, 0x3C, 0x3E: isInURL = false
                default: break
                }
                if byte >= 0x80 || byte != 0x3A && XMLCharacters.isName(byte) { continue }
                if byte == 0x23 || byte == 0x3D && !isAttributeSign(bytes, at: index) { return true }
            }
            let word = bytes.extracting(start..<index)
            if sieve.contains(attribute: word) { return true }
            for candidate in elements where word.equals(candidate.name) { return true }
            for candidate in elsewhere where word.equals(candidate) { return true }
            start = index + 1
        }
        return false
    }

    /// Names of elements that the filter recognises by their namespace instead.
    private static let elsewhere: [StaticString] = [
        "authenticate", "challenge", "success", "additional-data", "task-data",
        "next", "continue", "user-agent", "device", "hash", "digest", "result", "verify", "enable", "disable",
        "notification", "payload", "iv", "isr-enabled", "inst-resume", "inst-resumed", "preauth",
    ]

    private static func contains(_ text: StaticString, _ bytes: Span<UInt8>) -> Bool {
        let count = text.utf8CodeUnitCount
        guard count > 0, bytes.count >= count else { return false }
        for start in 0...(bytes.count - count) where bytes[start] == text.utf8Start[0] {
            if bytes.extracting(start..<(start + count)).equals(text) { return true }
        }
        return false
    }

    private static func isAttributeSign(_ bytes: Span<UInt8>, at index: Int) -> Bool {
        guard index + 1 < bytes.count else { return true }
        return bytes[index + 1] == 0x22 || bytes[index + 1] == 0x27
    }

    /// Returns whether a name may be a credential's in any spelling, such as `apikey`, `api-key` and `x_ApiKey`.
    ///
    /// For names that no protocol defines: those in unknown namespaces and of unknown children of stanzas.
    package static func mayBeCredential(_ name: Span<UInt8>) -> Bool { sieve.mayBeCredential(name) }

    /// Returns whether RFC 6120 or RFC 6121 defines this child of a stanza. Nearly every child in the stream's
    /// namespace is one of these.
    @inline(__always)
    fileprivate static func isChildOfStanzas(_ name: Span<UInt8>) -> Bool {
        switch name.count {
        case 4: name.equals("body") || name.equals("show")
        case 5: name.equals("error")
        case 6: name.equals("status") || name.equals("thread")
        case 7: name.equals("subject")
        case 8: name.equals("priority")
        default: false
        }
    }

    /// The roots of credentials' names: each name contains one of them, ignoring case and separators.
    private static let roots: [StaticString] = [
        "pass", "token", "secret", "credential", "key", "auth", "pw", "pin", "otp", "jwt", "cookie",
    ]

    /// Each root contains one of these letters: c, k, p, u, w. `body` and `message` contain none of them.
    private static let commonLetters: UInt32 = 1 << 3 | 1 << 11 | 1 << 16 | 1 << 21 | 1 << 23

    /// Returns whether a root begins at `start`, ignoring separators (neither letters nor digits) between its letters.
    private static func begins(_ name: Span<UInt8>, at start: Int, with root: StaticString) -> Bool {
        var matched = 0
        var index = start
        while matched < root.utf8CodeUnitCount {
            guard index < name.count else { return false }
            let byte = name[index]
            if byte | 0x20 == root.utf8Start[matched] {
                matched += 1
            } else if matched == 0 || byte >= 0x80 || (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 {
                return false
            }
            index += 1
        }
        return true
    }

    /// A set of names, as one bit per hash of length, first, middle and last byte without case: nearly every other name
    /// is rejected at once. With these factors, only one of 166 names that are common in XMPP passes.
    private struct Bits {
        private var words = InlineArray<16, UInt64>(repeating: 0)

        init(_ names: [StaticString]) {
            for name in names {
                let count = name.utf8CodeUnitCount
                let hash = Self.hash(
                    count,
                    name.utf8Start[0],
                    name.utf8Start[count >> 1],
                    name.utf8Start[count - 1]
                )
                words[hash >> 6] |= 1 << UInt64(hash & 63)
            }
        }

        @inline(__always)
        private static func hash(_ count: Int, _ first: UInt8, _ middle: UInt8, _ last: UInt8) -> Int {
            (count &* 43 &+ Int(first | 0x20) &* 60 &+ Int(middle | 0x20) &* 34 &+ Int(last | 0x20) &* 9) & 1023
        }

        @inline(__always)
        func mayContain(_ name: Span<UInt8>) -> Bool {
            guard !name.isEmpty else { return false }
            let hash = Self.hash(name.count, name[0], name[name.count &>> 1], name[name.count &- 1])
            return (words[hash >> 6] &>> UInt64(hash & 63)) & 1 == 1
        }
    }

    /// The filter, made once and referenced by each scanner.
    final class Sieve: Sendable {
        private let elements: Bits
        private let attributes: Bits
        private let namespaces: (UInt64, UInt64)
        /// The roots of credentials' names, each with a bit set of its letters.
        private let roots: [(root: StaticString, letters: UInt32)]
        /// The ``Tag/nameBit(count:first:last:)`` of each attribute in the catalogue.
        let attributeBits: UInt64

        fileprivate init() {
            elements = Bits(SecretNames.elements.map(\.name))
            attributes = Bits(SecretNames.attributes)
            var bits: (UInt64, UInt64) = (0, 0)
            for namespace in SecretNames.namespaces {
                let bit: UInt64 = 1 << UInt64(namespace.rawValue & 63)
                if namespace.rawValue < 64 { bits.0 |= bit } else { bits.1 |= bit }
            }
            namespaces = bits
            roots = SecretNames.roots.map { root in
                (root, root.description.utf8.reduce(0) { $0 | 1 << UInt32($1 & 31) })
            }
            attributeBits = SecretNames.attributes.reduce(0) { bits, name in
                let count = name.utf8CodeUnitCount
                return bits | Tag.nameBit(count: count, first: name.utf8Start[0], last: name.utf8Start[count - 1])
            }
        }

        /// Returns whether an element is in the catalogue. See ``mayBeCredential(_:)`` for other elements.
        @inline(__always)
        func contains(element name: Span<UInt8>, _ namespace: Namespace) -> Bool {
            let word = namespace.rawValue < 64 ? namespaces.0 : namespaces.1
            if (word >> UInt64(namespace.rawValue & 63)) & 1 == 1 { return true }
            guard elements.mayContain(name) else { return false }
            for candidate in SecretNames.elements where name.equalsIgnoringCase(candidate.name) {
                if candidate.namespace == nil || candidate.namespace == namespace { return true }
            }
            return false
        }

        /// Returns whether the name of an element that no protocol defines may be a credential's.
        @inline(__always)
        func mayBeCredential(element name: Span<UInt8>, _ namespace: Namespace) -> Bool {
            guard namespace.hasUnknownNames else { return false }
            return !(namespace.isContent && SecretNames.isChildOfStanzas(name)) && mayBeCredential(name)
        }

        func mayBeCredential(_ name: Span<UInt8>) -> Bool {
            var letters: UInt32 = 0
            for index in name.indices { letters |= 1 &<< UInt32(name[index] & 31) }
            guard letters & SecretNames.commonLetters != 0 else { return false }
            for (root, rootLetters) in roots where letters & rootLetters == rootLetters {
                for start in name.indices where SecretNames.begins(name, at: start, with: root) { return true }
            }
            return false
        }

        /// Returns whether an attribute is in the catalogue.
        @inline(__always)
        func contains(attribute name: Span<UInt8>) -> Bool {
            guard attributes.mayContain(name) else { return false }
            for candidate in SecretNames.attributes where name.equalsIgnoringCase(candidate) { return true }
            return false
        }
    }

    static let sieve = Sieve()
}
