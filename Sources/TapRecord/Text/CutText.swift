internal import XMPPCore

extension Span<UInt8> {
    /// The longest beginning of at most `limit` bytes that does not split a character of UTF-8.
    @_lifetime(copy self)
    package func cut(to limit: Int) -> Span<UInt8> {
        var end = Swift.max(0, Swift.min(limit, count))
        while end > 0, end < count, self[end] & 0xC0 == 0x80 { end -= 1 }
        return extracting(..<end)
    }
}

extension String {
    /// Returns the text if it has at most `limit` bytes of UTF-8; otherwise its beginning with `…`.
    package func cut(to limit: Int) -> String {
        guard utf8.count > limit else { return self }
        return utf8Span.span.cut(to: limit).string() + "…"
    }
}

extension Prose {
    /// Returns the text if it has at most `limit` bytes of UTF-8; otherwise its beginning with `…`.
    package func cut(to limit: Int) -> Prose { Prose(text.cut(to: limit)) }
}
