internal import TapRecord

/// Where a rule stands: its file as it was named, and its first line, from 1.
public struct RulePlace: Sendable, Hashable, CustomStringConvertible {
    /// The file.
    public var file: String
    /// The line, from 1.
    public var line: Int

    /// A place in a file.
    public init(file: String, line: Int) {
        self.file = file
        self.line = line
    }

    /// `file:line`, as records have it.
    public var description: String { "\(file):\(line)" }
}

/// A mistake in a rule file, or, as a warning, what is allowed and seldom meant.
public struct RuleFault: Error, Sendable, Hashable {
    /// Where the line stands.
    public var place: RulePlace
    /// Where in the line, in characters from 1.
    public var column: Int
    /// What was found, as a clause: `unknown condition "KNID"`.
    public var found: String
    /// What was expected, or why it cannot be; nil where ``found`` says it all.
    public var expected: String?
    /// The word that was probably meant.
    public var nearest: String?

    init(place: RulePlace, column: Int, found: String, expected: String? = nil, nearest: String? = nil) {
        (self.place, self.column, self.found) = (place, column, found)
        (self.expected, self.nearest) = (expected, nearest)
    }

    /// A whole file is at fault: it cannot be read.
    public init(file: String, _ found: String) {
        self.init(place: RulePlace(file: file, line: 1), column: 1, found: found)
    }
}

extension RuleFault: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    public var description: String { words(behind: "\(place):\(column)") }

    /// The fault behind the words that say where it is.
    func words(behind position: String) -> String {
        var line = LineBuffer(capacity: 128)
        line.appendEscaped("\(position): \(found)")
        if let expected { line.appendEscaped("; \(expected)") }
        if let nearest { line.appendEscaped("; did you mean \"\(nearest)\"?") }
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
