/// The ranges of a URL's parts in a text (RFC 3986 §3).
struct URLParts {
    let scheme: Range<Int>
    /// The password of the user before the host.
    let password: Range<Int>?
    let host: Range<Int>
    /// The number of bytes searched to find the parts.
    let visits: Int

    /// Finds the URL with the first `://` within `range`; nil if there is none.
    ///
    /// - Parameters:
    ///   - range: From the earliest start of the scheme to the end of the word.
    ///   - lastAt: The offset of the last `@` of the word; nil if there is none.
    init?(in text: Span<UInt8>, _ range: Range<Int>, lastAt: Int?) {
        guard let colon = text.position(of: "://", range) else { return nil }
        var start = colon
        while start > range.lowerBound, Self.isScheme(text[start - 1]) { start -= 1 }
        scheme = start..<colon
        let begin = colon + 3
        let stop = Self.endOfAuthority(text, begin..<range.upperBound)
        let colonBehindUser = text.first(in: begin..<stop) { $0 == 0x3A }
        var at: Int?
        for index in begin..<stop where text[index] == 0x40 { at = index }
        // An unencoded password may contain characters that end an authority. Such a password is assumed if no host
        // with a port precedes these characters, or if paths of the scheme contain no `@`.
        if at == nil, let lastAt, lastAt > stop, let colonBehindUser, text[begin] != 0x5B,
            text.first(in: (colonBehindUser + 1)..<stop, where: { $0 &- 0x30 >= 10 }) != nil
                || !Self.mayHoldAtInPath(text, start..<colon)
        {
            at = lastAt
        }
        if let at, let colonBehindUser, colonBehindUser + 1 < at {
            password = (colonBehindUser + 1)..<at
        } else {
            password = nil
        }
        let hostStart = at.map { $0 + 1 } ?? begin
        let hostEnd = at == nil ? stop : Self.endOfAuthority(text, hostStart..<range.upperBound)
        host = hostStart..<hostEnd
        visits = stop - range.lowerBound + hostEnd - hostStart
    }

    /// Returns the ranges after the host up to `end`: the path, and the query after the first `?`, which may follow a
    /// `#`.
    func tail(in text: Span<UInt8>, before end: Int) -> (path: Range<Int>, query: Range<Int>?) {
        let start = host.upperBound
        let sign = text.first(in: start..<end) { $0 == 0x3F }
        let path = start..<(text.first(in: start..<(sign ?? end)) { $0 == 0x23 } ?? sign ?? end)
        guard let sign else { return (path, nil) }
        return (path, (sign + 1)..<(text.first(in: (sign + 1)..<end) { $0 == 0x23 } ?? end))
    }

    private static func endOfAuthority(_ text: Span<UInt8>, _ range: Range<Int>) -> Int {
        text.first(in: range) { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? range.upperBound
    }

    /// Schemes of URLs that commonly have a host with a port and an `@` in the path.
    private static let schemesWithAtInPath: [StaticString] = ["http", "https", "ws", "wss", "xmpp"]

    private static func mayHoldAtInPath(_ text: Span<UInt8>, _ scheme: Range<Int>) -> Bool {
        for name in schemesWithAtInPath
        where scheme.count == name.utf8CodeUnitCount && text.position(of: name, scheme) != nil { return true }
        return false
    }

    private static func isScheme(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte == 0x2B || byte == 0x2D || byte == 0x2E
    }
}

extension Span<UInt8> {
    /// Returns the offset of the first matching byte.
    func first(in range: Range<Int>, where isWanted: (UInt8) -> Bool) -> Int? {
        for index in range where isWanted(self[index]) { return index }
        return nil
    }

    /// Returns the first position of `other`, in lower case, within `range`, ignoring case.
    func position(of other: StaticString, _ range: Range<Int>) -> Int? {
        let count = other.utf8CodeUnitCount
        guard range.count >= count else { return nil }
        for start in range.lowerBound...(range.upperBound - count) {
            var matched = 0
            while matched < count, self[start + matched].lowered == other.utf8Start[matched] { matched += 1 }
            if matched == count { return start }
        }
        return nil
    }
}
