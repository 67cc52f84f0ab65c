/// A match of a pattern.
struct PatternMatch: Equatable {
    /// A captured part of the text.
    enum Capture: Equatable {
        case range(Range<Int>)
        /// `()` of a Lua pattern: an offset counted from 1, as in Lua.
        case position(Int)
        /// A group of a regular expression that is not part of the match.
        case unset
    }

    /// The range of the whole match, in bytes.
    var range: Range<Int>
    /// The captures, in the order of their opening parentheses.
    var captures: [Capture] = []

    /// Returns the bytes of a capture, 0 being the whole match; nil if the capture does not exist.
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

/// The error of an invalid pattern, with the offset in bytes from 0.
package struct PatternFault: Error, Equatable {
    package var message: String
    package var offset: Int
}

/// A search was stopped because it exceeded the step limit.
package struct PatternTooComplex: Error {}

/// A pattern of a rule file: a Lua pattern or a regular expression. Both match bytes.
enum TextPattern: Sendable {
    case lua(LuaPattern)
    case regular(RegularExpression)

    /// Number of captures of a match.
    var captureCount: Int {
        switch self {
        case .lua(let pattern): pattern.captureCount
        case .regular(let expression): expression.captureCount
        }
    }

    /// Calls `body` with each match from left to right until it returns false. Matches do not overlap, as in Lua's
    /// `gmatch`.
    func forEachMatch(in text: [UInt8], _ body: (PatternMatch) -> Bool) throws(PatternTooComplex) {
        switch self {
        case .lua(let pattern): try pattern.forEachMatch(in: text, body)
        case .regular(let expression): try expression.forEachMatch(in: text, body)
        }
    }
}
