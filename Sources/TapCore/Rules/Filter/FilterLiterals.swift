// What the line of a record must hold for a filter to show it, so that a reader can pass over other lines unread.

extension FilterExpression {
    /// Texts of which one stands, as it is, in the line of each record that meets the expression; nil where nothing is known.
    ///
    /// A line that holds a character reference, a CDATA section or an escape by number may show a record without it.
    var literals: [[UInt8]]? {
        switch self {
        case .condition(let condition): return condition.literals
        case .not: return nil
        case .all(let parts):
            // What is longest is rarest.
            return parts.compactMap(\.literals).max { Self.shortest($0) < Self.shortest($1) }
        case .any(let parts):
            var all: [[UInt8]] = []
            for part in parts {
                guard let literals = part.literals else { return nil }
                all += literals
            }
            return all.count <= Self.most ? all : nil
        }
    }

    /// With more texts than these, looking for them costs as much as reading the lines.
    private static let most = 4

    private static func shortest(_ literals: [[UInt8]]) -> Int { literals.map(\.count).min() ?? 0 }
}

extension FilterCondition {
    fileprivate var literals: [[UInt8]]? {
        switch self {
        case .code(let words), .action(let words): Self.all(words.map { Array($0.utf8) })
        case .rule(let place): Self.all([Array(place.utf8)])
        // A namespace can be declared outside of the item, a name stands in it.
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

    /// The longest part of a text that is written as it is in XML and in JSON.
    private static func plainPart(_ text: [UInt8]) -> [UInt8]? {
        let parts = text.split { $0 < 0x20 || $0 >= 0x7F || "\"\\/<>&'".utf8.contains($0) }
        return parts.max { $0.count < $1.count }.flatMap { $0.count >= 3 ? Array($0) : nil }
    }
}

extension TextSearch {
    /// A text that what is found contains.
    fileprivate var literal: [UInt8]? {
        switch self {
        case .contains(let text), .equals(let text): text
        case .matches(let expression): expression.literal
        }
    }
}
