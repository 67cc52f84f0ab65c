package import TapRecord

/// A search in a store or in recordings.
package struct SearchQuery: Sendable {
    /// A word, or the beginning of words.
    package struct Term: Sendable, Hashable {
        package let word: String
        /// Whether the word may continue.
        package let isPrefix: Bool
        /// The word between spaces, as ``Words/append(of:to:)`` makes it. A prefix has no space after it.
        fileprivate let bytes: [UInt8]

        init(word: String, isPrefix: Bool) {
            (self.word, self.isPrefix) = (word, isPrefix)
            bytes = [0x20] + word.utf8 + (isPrefix ? [] : [0x20])
        }
    }

    /// The words as typed.
    package let text: String
    /// All of them must occur in the body.
    package private(set) var terms: [Term]
    /// Runs of characters without spaces between words, which must occur in the body as they are.
    private var runs: [String] = []
    /// The bare address of the user; nil for any.
    package var account: String?
    /// The bare address of the peer; nil for any.
    package var peer: String?
    /// The bare addresses of two people who wrote to each other; nil for any.
    package var pair: (String, String)?
    /// The bare address of a room; nil for any.
    package var room: String?
    /// The times, one of which a stanza must have: its own, or that at which it was seen. Nil for any.
    package var times: Range<Timestamp>?
    /// The kinds of stanza. Without any, messages with a body.
    package var kinds: Set<AuditRow.Kind> = []

    /// - Parameter text: Words; `contr*` matches all words with that beginning. Empty matches any text.
    package init(words text: String) {
        self.text = text
        var terms: [Term] = []
        for part in text.split(whereSeparator: \.isWhitespace) {
            let (words, found) = Words.ofQuery(String(part))
            runs += found
            for (index, word) in words.enumerated() {
                // A single character of a script without spaces begins all pairs in which another follows it.
                let isPrefix = part.hasSuffix("*") && index == words.count - 1 || found.contains(word)
                terms.append(Term(word: word, isPrefix: isPrefix))
            }
        }
        self.terms = terms
    }

    /// The query for the stanzas around those that are found: the same filters, and any text.
    package var withoutWords: SearchQuery {
        var query = self
        (query.terms, query.runs) = ([], [])
        return query
    }

    /// Returns whether a session is looked for. It has an account and times, but is to no address.
    package func matches(_ session: AuditSession) -> Bool {
        guard account == nil || session.account == account, peer == nil, pair == nil, room == nil else { return false }
        guard let times else { return true }
        return [session.began, session.ended].contains { $0.map(times.contains) ?? false }
    }

    /// Returns whether a row is looked for.
    package func matches(_ row: AuditRow) -> Bool {
        guard kinds.isEmpty ? row.kind == .message && row.body != nil : kinds.contains(row.kind),
            account == nil || row.account == account,
            peer == nil || row.peer == peer,
            room == nil || row.isOfRoom && row.peer == room,
            times.map({ $0.contains(row.time) || $0.contains(row.seen) }) ?? true
        else { return false }
        if let (one, other) = pair {
            let ends = (row.sender, row.receiver)
            guard ends == (one, other) || ends == (other, one) else { return false }
        }
        guard !terms.isEmpty else { return true }
        guard let body = row.body else { return false }
        if !runs.isEmpty {
            let folded = Words.fold(body)
            guard runs.allSatisfy({ folded.contains($0) }) else { return false }
        }
        var words: [UInt8] = [0x20]
        words.reserveCapacity(body.utf8.count + 2)
        Words.append(of: body, to: &words)
        guard terms.count > Self.scannedTerms else {
            return terms.allSatisfy { Self.contains($0.bytes.span, in: words.span) }
        }
        // A text pasted as a query: to look for each of its words in all others would take the product of both.
        let sorted = words.split(separator: 0x20).sorted { $0.lexicographicallyPrecedes($1) }
        return terms.allSatisfy { term in
            let word = term.bytes.dropFirst()
            let exact = term.isPrefix ? word : word.dropLast()
            var (low, high) = (0, sorted.count)
            while low < high {
                let middle = (low + high) / 2
                if sorted[middle].lexicographicallyPrecedes(exact) { low = middle + 1 } else { high = middle }
            }
            guard low < sorted.count else { return false }
            return term.isPrefix ? sorted[low].starts(with: exact) : sorted[low].elementsEqual(exact)
        }
    }

    /// Returns whether a term, which begins with a space, is in words with a space before each.
    private static func contains(_ term: Span<UInt8>, in words: Span<UInt8>) -> Bool {
        guard term.count <= words.count else { return false }
        for start in 0...(words.count - term.count) where words[start] == 0x20 {
            var end = 0
            while end < term.count, words[start + end] == term[end] { end += 1 }
            if end == term.count { return true }
        }
        return false
    }

    /// The number of terms up to which each is looked for in all words.
    private static let scannedTerms = 16
}
