/// A line of text that is edited with keys.
struct LineEditor {
    /// Maximum number of characters.
    private static let maximumCount = 4096

    private(set) var text: String
    /// The place of the cursor, in characters.
    private(set) var cursor: Int

    init(_ text: String = "") {
        self.text = text
        cursor = text.count
    }

    /// Changes the line.
    ///
    /// - Returns: Whether the key has a meaning.
    mutating func handle(_ key: Key) -> Bool {
        switch key {
        case .character(let character): insert(String(character))
        case .paste(let pasted):
            // Line breaks become spaces; other control characters are removed.
            insert(String(pasted.map { $0.isNewline || $0 == "\t" ? " " : $0 }.filter { !Self.isControl($0) }))
        case .left, .control("b"): cursor = max(0, cursor - 1)
        case .right, .control("f"): cursor = min(text.count, cursor + 1)
        case .home, .control("a"): cursor = 0
        case .end, .control("e"): cursor = text.count
        case .backspace, .control("h"): remove(from: cursor - 1, to: cursor)
        case .delete, .control("d"): remove(from: cursor, to: cursor + 1)
        case .control("u"): remove(from: 0, to: cursor)
        case .control("k"): remove(from: cursor, to: text.count)
        case .control("w"): remove(from: startOfWord, to: cursor)
        default: return false
        }
        return true
    }

    private static func isControl(_ character: Character) -> Bool {
        character.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }

    /// The start of the word before the cursor.
    private var startOfWord: Int {
        let before = Array(text.prefix(cursor))
        let end = before.lastIndex { $0 != " " }.map { $0 + 1 } ?? 0
        return before[..<end].lastIndex(of: " ").map { $0 + 1 } ?? 0
    }

    private mutating func insert(_ more: String) {
        let before = text.prefix(cursor) + more.prefix(max(0, Self.maximumCount - text.count))
        // A mark joins the character before it.
        let place = before.count
        text = String(before + text.dropFirst(cursor))
        cursor = min(place, text.count)
    }

    private mutating func remove(from start: Int, to end: Int) {
        let (start, end) = (max(0, start), min(text.count, end))
        guard start < end else { return }
        text = String(text.prefix(start) + text.dropFirst(end))
        cursor = start
    }
}
