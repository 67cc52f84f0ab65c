// Finds strings that the line of every matching record contains, so that a reader can skip the other lines without
// parsing them.

extension FilterExpression {
    /// Byte strings of which at least one appears verbatim in the line of each matching record; nil if there are none.
    ///
    /// Exception: lines with a character reference, a CDATA section or a `\u` escape can match without containing any
    /// of them.
    var literals: [[UInt8]]? {
        switch self {
        case .condition(let condition): return condition.literals
        case .not: return nil
        case .all(let parts):
            // Prefers long strings, because they are rarer.
            return parts.compactMap(\.literals).max { Self.shortest($0) < Self.shortest($1) }
        case .any(let parts):
            var all: [[UInt8]] = []
            for part in parts {
                guard let literals = part.literals else { return nil }
                all += literals
            }
            return all.count <= Self.maximumCount ? all : nil
        }
    }

    /// Maximum number of strings; searching for more costs as much as parsing the lines.
    private static let maximumCount = 4

    private static func shortest(_ literals: [[UInt8]]) -> Int { literals.map(\.count).min() ?? 0 }
}

extension FilterCondition {
    fileprivate var literals: [[UInt8]]? {
        switch self {
        case .code(let names), .errorCondition(let names), .action(let names): Self.all(names.map { Array($0.utf8) })
        case .rule(let place): Self.all([Array(place.utf8)])
        // Only the name, because the namespace can be declared outside the item.
        case .payload(let step), .item(.element(let step)): step.name.flatMap { Self.all([$0]) }
        case .id(let id): Self.all([id])
        case .xml(let search), .text(_, let search): search.literal.flatMap { Self.all([$0]) }
        case .kind, .level, .part, .handshake, .item: nil
        }
    }

    private static func all(_ texts: [[UInt8]]) -> [[UInt8]]? {
        let plain = texts.compactMap(plainPart)
        return plain.count == texts.count ? plain : nil
    }

    /// Returns the longest part of a text that neither XML nor JSON escapes; nil if it is shorter than 3 bytes.
    private static func plainPart(_ text: [UInt8]) -> [UInt8]? {
        let parts = text.split { $0 < 0x20 || $0 >= 0x7F || "\"\\/<>&'".utf8.contains($0) }
        return parts.max { $0.count < $1.count }.flatMap { $0.count >= 3 ? Array($0) : nil }
    }
}

extension TextSearch {
    /// A string that every matching text contains; nil if there is none.
    fileprivate var literal: [UInt8]? {
        switch self {
        case .contains(let text), .equals(let text): text
        case .matches(let expression): expression.literal
        }
    }
}
