import XMPPCore

/// Finds secrets in text that is shown otherwise: keys and tokens that travel in URLs.
///
/// - the fragment of an `aesgcm:` URL, which is the file's key (XEP-0454),
/// - `preauth=` in an address (XEP-0379, XEP-0401),
/// - parameters of a URL that are credentials by their name,
/// - the query of a URL that was met in an upload slot, or leads to an invitation.
enum SecretText {
    struct Find {
        var range: Range<Int>
        var kind: SecretKind
    }

    /// The secrets in a text, ascending. `isKnown` says whether a query has been met as a secret.
    static func find(in text: Span<UInt8>, isKnown: (Span<UInt8>) -> Bool) -> [Find] {
        var finds: [Find] = []
        var start = 0
        var isWorthIt = false
        for index in 0...text.count {
            if index < text.count {
                let byte = text[index]
                if byte > 0x20, byte != 0x22, byte != 0x3C, byte != 0x3E {
                    isWorthIt = isWorthIt || byte == 0x23 || byte == 0x3D
                    continue
                }
            }
            if isWorthIt { find(in: text, word: start..<index, isKnown, &finds) }
            start = index + 1
            isWorthIt = false
        }
        return finds
    }

    private static func find(
        in text: Span<UInt8>,
        word: Range<Int>,
        _ isKnown: (Span<UInt8>) -> Bool,
        _ finds: inout [Find]
    ) {
        var end = word.upperBound
        var fragment: Find?
        if let scheme = position(of: "aesgcm:", in: text, word),
            let sign = position(of: "#", in: text, scheme..<end), sign + 1 < end
        {
            fragment = Find(range: (sign + 1)..<end, kind: .fileKey)
            end = sign
        }
        defer { if let fragment { finds.append(fragment) } }

        if let scheme = position(of: "://", in: text, word.lowerBound..<end),
            let sign = position(of: "?", in: text, scheme..<end)
        {
            let query = (sign + 1)..<(position(of: "#", in: text, (sign + 1)..<end) ?? end)
            let isInvitation = position(of: "/invite", in: text, scheme..<sign) != nil
            let isHidden = Placeholder.end(in: text, at: query.lowerBound, before: end) != nil
            if !query.isEmpty, !isHidden, isInvitation || isKnown(text.extracting(query)) {
                finds.append(Find(range: query, kind: .urlQuery))
                return
            }
        }
        findParameters(in: text, word.lowerBound..<end, &finds)
    }

    /// `name=value` behind `?`, `&`, `;` or `#`; a preauth token also at the beginning of a word.
    private static func findParameters(in text: Span<UInt8>, _ word: Range<Int>, _ finds: inout [Find]) {
        var start = word.lowerBound
        while start < word.upperBound {
            var sign: Int?
            var end = start
            while end < word.upperBound, !isSeparator(text[end]) {
                end += 1
                guard sign == nil, text[end - 1] == 0x3D else { continue }
                sign = end - 1
                // A value that is hidden already has a separator in its placeholder.
                end = Placeholder.end(in: text, at: end, before: word.upperBound) ?? end
            }
            if let sign, sign + 1 < end {
                let name = text.extracting(start..<sign)
                let value = (sign + 1)..<end
                if equals(name, "preauth") {
                    finds.append(Find(range: value, kind: .preauthToken))
                } else if start > word.lowerBound, names.contains(where: { equals(name, $0) }) {
                    finds.append(Find(range: value, kind: .urlQuery))
                }
            }
            start = end + 1
        }
    }

    /// Parameters that are credentials, as the field's services and storage providers name them.
    private static let names: [StaticString] = [
        "token", "access_token", "refresh_token", "id_token", "auth_token", "sig", "signature", "hmac", "mac", "jwt",
        "password", "passwd", "pwd", "secret", "client_secret", "key", "api_key", "apikey", "auth", "authorization",
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
    ]

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == 0x3F || byte == 0x26 || byte == 0x3B || byte == 0x23
    }

    /// Whether a name is `other`, which is in small letters, in whatever case.
    private static func equals(_ name: Span<UInt8>, _ other: StaticString) -> Bool {
        name.count == other.utf8CodeUnitCount && position(of: other, in: name, 0..<name.count) == 0
    }

    /// Where `other`, in small letters, stands first within `range` in whatever case.
    private static func position(of other: StaticString, in text: Span<UInt8>, _ range: Range<Int>) -> Int? {
        let count = other.utf8CodeUnitCount
        guard range.count >= count else { return nil }
        for start in range.lowerBound...(range.upperBound - count) {
            var matched = 0
            while matched < count, lowered(text[start + matched]) == other.utf8Start[matched] { matched += 1 }
            if matched == count { return start }
        }
        return nil
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
    }
}
