/// Text for people: it can be printed, stored and inserted into other text, but not parsed.
///
/// No code depends on the wording: it is neither compared nor searched. Data that programs need has a field or a
/// separate detail.
package struct Prose: Sendable, ExpressibleByStringInterpolation, TextOutputStreamable {
    @usableFromInline let text: String

    @inlinable package init(_ text: String) { self.text = text }

    @inlinable package init(stringLiteral text: String) { self.text = text }

    /// Number of bytes in UTF-8.
    @inlinable package var byteCount: Int { text.utf8.count }

    /// The text without its final full stop, for use inside a sentence.
    package var clause: Prose { text.hasSuffix(".") ? Prose(String(text.dropLast())) : self }

    /// Joins both texts.
    package static func + (left: Prose, right: Prose) -> Prose { Prose(left.text + right.text) }

    /// Writes the text.
    package func write(to target: inout some TextOutputStream) { text.write(to: &target) }
}
