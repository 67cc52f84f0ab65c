/// What a search in a text found.
struct PatternMatch: Equatable {
    /// A captured part of the text.
    enum Capture: Equatable {
        case range(Range<Int>)
        /// `()` of a Lua pattern: an offset, counted from 1 as Lua does.
        case position(Int)
        /// A group of a regular expression that took no part.
        case unset
    }

    /// Offsets of the whole match, in bytes.
    var range: Range<Int>
    /// The captures, in the order of their opening parentheses.
    var captures: [Capture] = []

    /// The bytes of a capture, 0 being the whole match; nil where there is no such capture.
    func bytes(_ number: Int, of text: [UInt8]) -> [UInt8]? {
        if number == 0 { return Array(text[range]) }
        guard number <= captures.count else { return nil }
        return switch captures[number - 1] {
        case .range(let range): Array(text[range])
        case .position(let position): Array(String(position).utf8)
        case .unset: []
        }
    }
}

/// Why a pattern is refused: at this offset, in bytes from 0.
package struct PatternFault: Error, Equatable {
    package var message: String
    package var offset: Int
}

/// A search that was given up, because the pattern tries too many ways on this text.
package struct PatternTooComplex: Error {}

/// A pattern of a rule file: a Lua pattern or, marked as such, a regular expression. Both match bytes.
enum TextPattern: Sendable {
    case lua(LuaPattern)
    case regular(RegularExpression)

    /// Number of captures that a match has.
    var captureCount: Int {
        switch self {
        case .lua(let pattern): pattern.captureCount
        case .regular(let expression): expression.captureCount
        }
    }

    /// Calls `body` with each match, from the left, as Lua's `gmatch` finds them: none begins inside the one before.
    func forEachMatch(in text: [UInt8], _ body: (PatternMatch) -> Bool) throws(PatternTooComplex) {
        switch self {
        case .lua(let pattern): try pattern.forEachMatch(in: text, body)
        case .regular(let expression): try expression.forEachMatch(in: text, body)
        }
    }
}
