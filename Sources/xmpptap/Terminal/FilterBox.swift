internal import TapRecord
internal import TapRules

/// The line in which a filter, or the text of a search, is edited.
struct FilterBox {
    enum Subject: Hashable {
        case sessions, records
    }

    let subject: Subject
    private var editor: LineEditor
    /// Whether the next character replaces the text, as on the page.
    private var isChosen: Bool
    /// The filter of the line: `.some(nil)` for an empty line, nil if the line has a mistake.
    private(set) var filter: RecordFilter??
    private var fault: FilterFault?

    init(_ subject: Subject, _ text: String) {
        self.subject = subject
        editor = LineEditor(text)
        isChosen = !text.isEmpty
        parse()
    }

    var text: String { editor.text }

    /// Changes the line; returns false if the key has no meaning in it.
    mutating func handle(_ key: Key) -> Bool {
        var next = editor
        switch key {
        case .character, .paste: if isChosen { next = LineEditor() }
        default: break
        }
        guard next.handle(key) else { return false }
        editor = next
        isChosen = false
        parse()
        return true
    }

    private mutating func parse() {
        fault = nil
        guard subject == .records, text.contains(where: { !$0.isWhitespace }) else {
            filter = .some(nil)
            return
        }
        do throws(FilterFault) {
            filter = .some(try RecordFilter(text))
        } catch {
            filter = nil
            fault = error
        }
    }

    /// Draws the line, and below it the mistake or the keys.
    func draw(y: Int, to screen: inout Screen) {
        let characters = text.map { Self.shown($0) }
        let room = screen.width - 4
        // The part with the cursor is shown.
        let first = max(0, editor.cursor - room + 1)
        let shown = characters.dropFirst(first).prefix(room).joined()
        screen.put("/", x: 0, y: y, style: .bold)
        screen.put(escaped: shown, x: 2, y: y, style: isChosen ? .selected : .plain)
        let before = characters.prefix(editor.cursor).dropFirst(first).joined()
        screen.cursor = Screen.Place(x: min(screen.width - 1, 2 + Columns.count(before)), y: y)
        if first > 0 { screen.put("…", x: 1, y: y, style: .dim) }
        guard let fault else {
            let name = subject == .records ? "filter" : "text"
            screen.put("Enter or Esc keeps the \(name), Ctrl-U clears it", x: 2, y: y + 1, style: .dim)
            return
        }
        // A mark below the mistake, and the message beside the mark.
        let place = 2 + Columns.count(characters.prefix(max(0, fault.column - 1)).dropFirst(first).joined())
        let x = min(max(2, place), screen.width - 1)
        let message = fault.description
        let isRight = screen.width - x - 3 >= min(Columns.count(message), screen.width / 2)
        screen.put("^", x: x, y: y + 1, style: .bad)
        if isRight {
            screen.put(message, x: x + 2, y: y + 1, style: .bad)
        } else {
            let width = min(Columns.count(LineBuffer.escaped(message)), x - 2)
            screen.put(message, x: max(0, x - 1 - width), y: y + 1, limit: max(0, x - 1), style: .bad)
        }
    }

    /// Returns a character as one column: those that could change the terminal are not shown.
    private static func shown(_ character: Character) -> String {
        character == "\\" || LineBuffer.escaped(String(character)).count == 1 ? String(character) : "?"
    }
}
