internal import TapRecord

/// An error in a script.
package struct ScriptFault: Error, Sendable, Hashable {
    /// The file name as given.
    package var file: String
    /// The line, from 1.
    package var line: Int
    /// The column in characters, from 1.
    package var column: Int
    /// The error, as a clause: `unknown action "snds"`.
    package var found: String
    /// The expected alternative; nil if ``found`` suffices.
    package var expected: String?
    /// A suggestion for the word that was meant.
    package var nearest: String?

    /// Creates a fault of the whole file, such as a read error.
    package init(file: String, _ found: String) {
        self.init(file: file, line: 1, column: 1, found: found)
    }

    init(file: String, line: Int, column: Int, found: String, expected: String? = nil, nearest: String? = nil) {
        (self.file, self.line, self.column) = (file, line, column)
        (self.found, self.expected, self.nearest) = (found, expected, nearest)
    }
}

extension ScriptFault: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    package var description: String { "\(LineBuffer.escaped("\(file):\(line):\(column)")): \(reason)" }

    /// The description without the place.
    package var reason: String {
        let expected = expected.map { "; expected \($0)" } ?? ""
        let nearest = nearest.map { "; did you mean \"\($0)\"?" } ?? ""
        return LineBuffer.escaped("\(found)\(expected)\(nearest)")
    }
}
