/// Words for people: they can be printed, stored and put into other words, and nothing can be read from them.
///
/// No code depends on the wording: it is neither compared nor searched. Data that programs need has a field or a
/// separate detail.
public struct Prose: Sendable, ExpressibleByStringInterpolation, TextOutputStreamable {
    @usableFromInline let text: String

    /// These words.
    @inlinable public init(_ text: String) { self.text = text }

    /// These words.
    @inlinable public init(stringLiteral text: String) { self.text = text }

    /// How many bytes of UTF-8 they take.
    @inlinable public var byteCount: Int { text.utf8.count }

    /// The same without the full stop at their end, to stand inside a sentence.
    public var clause: Prose { text.hasSuffix(".") ? Prose(String(text.dropLast())) : self }

    /// Both, one after the other.
    public static func + (left: Prose, right: Prose) -> Prose { Prose(left.text + right.text) }

    /// Prints them.
    public func write(to target: inout some TextOutputStream) { text.write(to: &target) }
}
