import XMPPCore

/// Finds secrets in text that is otherwise shown: passwords, keys and tokens in URLs.
///
/// - the password before a URL's host,
/// - the fragment of an `aesgcm:` URL, which is the file's key (XEP-0454),
/// - `preauth=` in an address (XEP-0379, XEP-0401),
/// - URL parameters with the names of credentials,
/// - the whole query of a URL that leads to an invitation, to a host for uploads, or to an earlier upload slot,
/// - the token in the path of an invitation.
///
/// The query of any other URL is shown, except for parameters with the names of credentials.
struct SecretText {
    struct Find {
        var range: Range<Int>
        var kind: SecretKind
    }

    /// Maximum number of times that percent-encoding is decoded again, for URLs in parameters of URLs.
    private static let maximumDepth = 3

    private let registry: SecretRegistry
    private let depth: Int
    private(set) var finds: [Find] = []
    /// Number of bytes searched for URLs so far.
    private(set) var visits = 0

    private init(_ registry: SecretRegistry, depth: Int) {
        self.registry = registry
        self.depth = depth
    }

    /// Returns whether a text may contain a secret: a text without `#`, `=` and `/` contains none.
    static func mayContainSecret(_ text: Span<UInt8>) -> Bool {
        let raw = text.bytes
        var index = 0
        while index &+ 16 <= text.count {
            let block = raw.unsafeLoadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
            if (block.marks(0x23) .| block.marks(0x3D) .| block.marks(0x2F)).first < 16 { return true }
            index &+= 16
        }
        while index < text.count {
            if text[index] == 0x23 || text[index] == 0x3D || text[index] == 0x2F { return true }
            index &+= 1
        }
        return false
    }

    /// Returns the secrets in a text, in ascending order and not nested.
    static func find(in text: Span<UInt8>, _ registry: SecretRegistry) -> [Find] {
        search(text, registry).finds
    }

    /// Searches a text; the result contains the ``finds`` and the number of ``visits``.
    static func search(_ text: Span<UInt8>, _ registry: SecretRegistry, depth: Int = 0) -> SecretText {
        var search = SecretText(registry, depth: depth)
        var start = 0
        var signs: Signs = []
        for index in 0...text.count {
            if index < text.count {
                let byte = text[index]
                if byte > 0x20, byte != 0x22, byte != 0x3C, byte != 0x3E {
                    switch byte {
                    case 0x23: signs.insert(.fragment)
                    case 0x3D: signs.insert(.parameter)
                    case 0x2F where index > start + 1 && text[index - 1] == 0x2F && text[index - 2] == 0x3A:
                        signs.insert(.url)
                    default: break
                    }
                    continue
                }
            }
            if !signs.isEmpty { search.find(in: text, word: start..<index, signs) }
            start = index + 1
            signs = []
        }
        return search
    }

    /// The signs in a word: `#`, `=` and `://`. A word without them contains no secret. Base64 contains `=` only at its
    /// end.
    private struct Signs: OptionSet {
        let rawValue: UInt8
        static let fragment = Signs(rawValue: 1)
        static let parameter = Signs(rawValue: 2)
        static let url = Signs(rawValue: 4)
    }

    private mutating func find(in text: Span<UInt8>, word: Range<Int>, _ signs: Signs) {
        let first = finds.count
        var end = word.upperBound
        if signs.contains(.fragment), let scheme = text.position(of: "aesgcm:", word),
            let sign = text.position(of: "#", scheme..<end), sign + 1 < end
        {
            finds.append(Find(range: (sign + 1)..<end, kind: .fileKey))
            end = sign
        }
        if signs.contains(.url) { findURLs(in: text, word.lowerBound..<end) }
        if signs.contains(.parameter) { findParameters(in: text, word.lowerBound..<end) }
        if finds.count - first > 1 { merge(from: first) }
    }

    private mutating func findURLs(in text: Span<UInt8>, _ word: Range<Int>) {
        let end = word.upperBound
        var lastAt: Int?
        for index in word where text[index] == 0x40 { lastAt = index }
        var rest = word
        var isFirst = true
        while let url = URLParts(in: text, rest, lastAt: lastAt) {
            if let password = url.password { finds.append(Find(range: password, kind: .password)) }
            if isFirst { findQuery(of: url, in: text, before: end) }
            isFirst = false
            visits += url.visits
            // A password is hidden completely, so it is not searched again.
            rest = max(url.scheme.upperBound + 3, url.password?.upperBound ?? 0)..<end
        }
    }

    /// Sorts the finds of a word, and joins those that overlap or touch.
    private mutating func merge(from first: Int) {
        if SpanUnion.areSeparate(finds.count - first, { finds[first + $0].range }) { return }
        let ofWord = Array(finds[first...])
        let unions = SpanUnion.join(ofWord.map(\.range))
        finds.replaceSubrange(first..., with: unions.map { Find(range: $0.range, kind: ofWord[$0.longest].kind) })
    }

    // MARK: Queries and paths

    private mutating func findQuery(of url: URLParts, in text: Span<UInt8>, before end: Int) {
        let (path, found) = url.tail(in: text, before: end)
        let invitation = Invitation(text, path)
        if let token = invitation.token { finds.append(Find(range: token, kind: .inviteURL)) }
        if let whole = known(url.scheme.lowerBound..<(found ?? path).upperBound, in: text) {
            finds.append(Find(range: whole, kind: .inviteURL))
        }
        guard var query = found, !query.isEmpty else { return }
        // The query may begin with a placeholder, whose `#` is not the start of a fragment.
        if let hidden = Placeholder.end(in: text, at: query.lowerBound, before: end) {
            query = query.lowerBound..<(text.first(in: hidden..<end) { $0 == 0x23 } ?? end)
            guard hidden < query.upperBound else { return }
        }
        guard
            invitation.isOne || isForTokens(text.extracting(url.host)) || registry.knows(text.extracting(query))
                || registry.knowsSlot(host: text.extracting(url.host), path: text.extracting(path))
        else { return }
        finds.append(Find(range: query, kind: .urlQuery))
    }

    /// Returns the range of a URL that is known as a secret, without punctuation at its end; nil if it is unknown.
    private func known(_ url: Range<Int>, in text: Span<UInt8>) -> Range<Int>? {
        var end = url.upperBound
        while true {
            if registry.knows(text.extracting(url.lowerBound..<end)) { return url.lowerBound..<end }
            guard end > url.lowerBound, url.upperBound - end < 4, Self.isPunctuation(text[end - 1]) else { return nil }
            end -= 1
        }
    }

    private static func isPunctuation(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x21, 0x27, 0x29, 0x2C, 0x2E, 0x3A, 0x3B, 0x3F, 0x5D: true
        default: false
        }
    }

    /// Returns whether a host is for uploads or invitations according to its first label, or was an upload slot's host.
    private func isForTokens(_ host: Span<UInt8>) -> Bool {
        var end = 0
        while end < host.count, host[end] != 0x2E { end += 1 }
        let label = 0..<end
        if host.position(of: "upload", label) != nil || host.position(of: "invite", label) == 0 { return true }
        return registry.knowsSlot(host: host)
    }

    /// The parts of an invitation in a URL's path: `/invite?TOKEN`, `/invites/TOKEN/registration`.
    private struct Invitation {
        var isOne = false
        var token: Range<Int>?

        init(_ text: Span<UInt8>, _ path: Range<Int>) {
            var isNext = false
            var start = path.lowerBound
            while start < path.upperBound {
                var end = start
                while end < path.upperBound, text[end] != 0x2F { end += 1 }
                if isNext, start < end, Placeholder.end(in: text, at: start, before: text.count) == nil {
                    token = start..<end
                    return
                }
                let letters = PercentEncoding.decode(text.extracting(start..<end))
                isNext = Self.names.contains { letters.count == $0.utf8CodeUnitCount && Self.begins(letters, with: $0) }
                isOne = isOne || Self.begins(letters, with: "invite") || Self.begins(letters, with: "invitation")
                start = end + 1
            }
        }

        private static let names: [StaticString] = ["invite", "invites", "invitation", "invitations"]

        private static func begins(_ letters: [UInt8], with name: StaticString) -> Bool {
            letters.span.position(of: name, 0..<min(letters.count, name.utf8CodeUnitCount)) == 0
        }
    }

    // MARK: Parameters

    /// Finds secrets in `name=value` after `?`, `&`, `;` or `#`; a preauth token also at the beginning of a word.
    private mutating func findParameters(in text: Span<UInt8>, _ word: Range<Int>) {
        var start = word.lowerBound
        while start < word.upperBound {
            var sign: Int?
            var end = start
            while end < word.upperBound, !Self.isSeparator(text[end]) {
                end += 1
                guard sign == nil, text[end - 1] == 0x3D else { continue }
                sign = end - 1
                // The placeholder of an already hidden value contains a separator.
                end = Placeholder.end(in: text, at: end, before: word.upperBound) ?? end
            }
            if let sign, sign + 1 < end {
                let name = text.extracting(start..<sign)
                let value = (sign + 1)..<end
                if CredentialName.isPreauth(name) {
                    finds.append(Find(range: value, kind: .preauthToken))
                } else if start > word.lowerBound,
                    CredentialName.isParameter(name) || holdsSecret(text.extracting(value))
                {
                    finds.append(Find(range: value, kind: .urlQuery))
                }
            }
            start = end + 1
        }
    }

    /// Returns whether a value contains a percent-encoded secret, such as a redirection URL.
    private func holdsSecret(_ value: Span<UInt8>) -> Bool {
        guard value.indices.contains(where: { value[$0] == 0x25 }) else { return false }
        var text = PercentEncoding.decode(value)
        var count = value.count
        for level in depth..<Self.maximumDepth {
            guard text.count < count else { return false }
            if !Self.search(text.span, registry, depth: level + 1).finds.isEmpty { return true }
            count = text.count
            text = PercentEncoding.decode(text.span)
        }
        return false
    }

    private static func isSeparator(_ byte: UInt8) -> Bool {
        byte == 0x3F || byte == 0x26 || byte == 0x3B || byte == 0x23
    }
}
