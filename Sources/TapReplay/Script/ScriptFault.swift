internal import TapRecord

/// A mistake in a script.
public struct ScriptFault: Error, Sendable, Hashable {
    /// The file as it was named.
    public var file: String
    /// The line, from 1.
    public var line: Int
    /// Where in the line, in characters from 1.
    public var column: Int
    /// What was found, as a clause: `unknown action "snds"`.
    public var found: String
    /// What was expected; nil where ``found`` says it all.
    public var expected: String?
    /// The word that was probably meant.
    public var nearest: String?

    /// A whole file is at fault: it cannot be read.
    public init(file: String, _ found: String) {
        self.init(file: file, line: 1, column: 1, found: found)
    }

    init(file: String, line: Int, column: Int, found: String, expected: String? = nil, nearest: String? = nil) {
        (self.file, self.line, self.column) = (file, line, column)
        (self.found, self.expected, self.nearest) = (found, expected, nearest)
    }
}

extension ScriptFault: CustomStringConvertible {
    /// `FILE:LINE:COLUMN: FOUND; EXPECTED; did you mean "NEAREST"?`, in one line.
    public var description: String {
        let expected = expected.map { "; expected \($0)" } ?? ""
        let nearest = nearest.map { "; did you mean \"\($0)\"?" } ?? ""
        return LineBuffer.escaped("\(file):\(line):\(column): \(found)\(expected)\(nearest)")
    }
}
