/// The reason why a ``LogSpec`` was refused: the word, its position, and the remedy, in one line.
package struct LogSpecError: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        /// The word between two commas, or the whole text, is empty.
        case emptyWord
        /// The word is not a level, a switch or a part.
        case unknownWord
        /// The text before `=` is not a part.
        case unknownPart(String)
        /// The text after `=` is not a level.
        case unknownLevel(String)
        /// A part, session or JID without `=LEVEL`.
        case missingLevel
        /// The session is not a number from 1.
        case badSession(String)
        /// The text is not a JID; with the reason.
        case badJID(String)
        /// The word is a second level; the associated value is the first one.
        case secondLevel(Level)
        case repeated
    }

    /// The kind of problem.
    package let code: Code
    /// The word as it was typed.
    package let word: String
    /// The column of the word, in characters from 1.
    package let column: Int

    private static let levels = Level.allCases.map(\.name)
    private static let parts = Part.allCases.map(\.name)
    private static let forms = "send, recv, PART=LEVEL, session:N=LEVEL or jid:JID=LEVEL"
}

extension LogSpecError: CustomStringConvertible {
    /// The error, in one human-readable line, such as
    /// `"verbos" at column 6 is not part of a log specification; did you mean "verbose"?`
    package var description: String {
        let levels = Self.levels.joined(separator: ", ")
        let parts = Self.parts.joined(separator: ", ")
        let place = "\"\(shown)\" at column \(column)"
        return switch code {
        case .emptyWord:
            "an empty word at column \(column); a log specification is a comma-separated list of a level (\(levels)), \(Self.forms)"
        case .unknownWord:
            "\(place) is not part of a log specification"
                + Self.wayOut(
                    word,
                    among: Self.levels + ["send", "recv"],
                    else: "use a level (\(levels)), \(Self.forms)"
                )
        case .unknownPart(let part):
            "\(place) is not a part" + Self.wayOut(part, among: Self.parts, else: "the parts are \(parts)")
        case .unknownLevel(let level):
            "\(place) is not a level" + Self.wayOut(level, among: Self.levels, else: "the levels are \(levels)")
        case .missingLevel: "\(place) has no level; write \"\(shown)=LEVEL\" with one of \(levels)"
        case .badSession:
            "\(place) is not a session; sessions are numbered from 1, as in session:3=\(Level.verbose.name)"
        case .badJID(let reason): "\(place) is not a JID (\(reason)); write a comma in a JID as %2C"
        case .secondLevel(let earlier): "\(place) is a second level after \"\(earlier.name)\"; leave one out"
        case .repeated: "\(place) is repeated; leave one out"
        }
    }

    /// The word, escaped for printing, because it may come from a control connection.
    private var shown: String { LineBuffer.escaped(word) }

    private static func wayOut(_ word: String, among known: [String], else list: String) -> String {
        guard let near = Spelling.nearest(to: word, among: known) else { return "; \(list)" }
        return "; did you mean \"\(near)\"?"
    }
}
