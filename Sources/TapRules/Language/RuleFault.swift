internal import TapRecord

/// The file name of a rule as given, and the number of its first line, from 1.
package struct RulePlace: Sendable, Hashable, CustomStringConvertible {
    /// The file.
    package var file: String
    /// The line, from 1.
    package var line: Int

    /// Creates a place in a file.
    package init(file: String, line: Int) {
        self.file = file
        self.line = line
    }

    /// `file:line`, as in records.
    package var description: String { "\(file):\(line)" }
}

/// An error in a rule file, or a warning about a construct that is valid but rarely intended.
package struct RuleFault: Error, Sendable, Hashable {
    /// The file and line.
    package var place: RulePlace
    /// The column in characters, from 1.
    package var column: Int
    /// The problem, as a clause: `unknown condition "KNID"`.
    package var found: String
    /// The expected syntax or the reason; nil if ``found`` is sufficient.
    package var expected: String?
    /// The most similar valid word.
    package var nearest: String?

    init(place: RulePlace, column: Int, found: String, expected: String? = nil, nearest: String? = nil) {
        (self.place, self.column, self.found) = (place, column, found)
        (self.expected, self.nearest) = (expected, nearest)
    }

    /// Creates the fault for a file that cannot be read.
    package init(file: String, _ found: String) {
        self.init(place: RulePlace(file: file, line: 1), column: 1, found: found)
    }
}

extension RuleFault: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    package var description: String { description(after: "\(place):\(column)") }

    /// Returns the description after a position.
    func description(after position: String) -> String {
        var line = LineBuffer(capacity: 128)
        line.appendEscaped("\(position): \(found)")
        if let expected { line.appendEscaped("; \(expected)") }
        if let nearest { line.appendEscaped("; did you mean \"\(nearest)\"?") }
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
