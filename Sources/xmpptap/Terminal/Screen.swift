internal import TapRecord

/// The style of a cell. A selected row is readable without it: it has a mark, too.
struct Style: Hashable, Sendable {
    var colour = Colour.plain
    var isReversed = false
    var isUnderlined = false

    static let plain = Style()
    static let bold = Style(colour: .bold)
    static let dim = Style(colour: .dim)
    static let bad = Style(colour: .red)
    static let good = Style(colour: .green)
    static let warned = Style(colour: .yellow)
    static let title = Style(colour: .bold, isReversed: true)
    static let selected = Style(isReversed: true)
}

/// The contents of a terminal, as cells.
///
/// Text is escaped when it is put on the screen, so that none from the wire can control the terminal.
struct Screen {
    /// A column of a row. A wide character is in the first of its two cells; the second one is empty.
    struct Cell: Hashable {
        var glyph = " "
        var width = 1
        var style = Style.plain
    }

    /// A place; the first column and row are 0.
    struct Place: Hashable {
        var x: Int
        var y: Int
    }

    /// The largest width and height. A terminal that reports more is not believed.
    static let maximumSize = 1000
    /// Maximum number of bytes of a character with its marks.
    private static let maximumGlyph = 32

    let width: Int
    let height: Int
    private(set) var cells: [Cell]
    /// The place of the cursor; nil hides it.
    var cursor: Place?
    /// Whether the terminal shows only ASCII.
    let isASCII: Bool

    init(width: Int, height: Int, isASCII: Bool = false) {
        self.width = min(max(1, width), Self.maximumSize)
        self.height = min(max(1, height), Self.maximumSize)
        self.isASCII = isASCII
        cells = [Cell](repeating: Cell(), count: self.width * self.height)
    }

    /// Returns the cells of a row.
    func row(_ y: Int) -> ArraySlice<Cell> {
        guard y >= 0, y < height else { return [] }
        return cells[y * width..<(y + 1) * width]
    }

    /// The rows as text, without spaces at their ends.
    var lines: [String] {
        (0..<height).map { y in
            let text = row(y).map(\.glyph).joined()
            return String(text.reversed().drop { $0 == " " }.reversed())
        }
    }

    /// Puts text from any source on the screen, escaped, and cut with an ellipsis if it does not fit.
    ///
    /// - Parameter limit: Maximum number of columns; the end of the row is a limit, too.
    /// - Returns: The number of columns that it uses.
    @discardableResult
    mutating func put(_ text: String, x: Int, y: Int, limit: Int = .max, style: Style = .plain) -> Int {
        guard y >= 0, y < height, x >= 0, x < width, limit > 0, !text.isEmpty else { return 0 }
        let room = min(limit, width - x)
        // A longer text does not fit: no column has more bytes.
        let shown = text.utf8.count > room * Self.maximumGlyph ? text.cut(to: room * Self.maximumGlyph) : text
        return put(escaped: LineBuffer.escaped(shown), x: x, y: y, limit: room, style: style)
    }

    /// Puts text in the log form of ``Escape`` on the screen; see ``put(_:x:y:limit:style:)``.
    @discardableResult
    mutating func put(escaped text: String, x: Int, y: Int, limit: Int = .max, style: Style = .plain) -> Int {
        guard y >= 0, y < height, x >= 0, x < width, limit > 0 else { return 0 }
        let room = min(limit, width - x)
        var text = text
        if text.utf8.count > room * Self.maximumGlyph { text = text.cut(to: room * Self.maximumGlyph) }
        if isASCII { text = Self.ascii(text) }
        var glyphs = Self.glyphs(text, room + 1)
        var used = glyphs.reduce(0) { $0 + $1.width }
        if used > room {
            while used > room - 1, let last = glyphs.popLast() { used -= last.width }
            glyphs.append((isASCII ? "~" : "…", 1))
            used += 1
        }
        var place = y * width + x
        clearHalves(place, used, y)
        for glyph in glyphs {
            cells[place] = Cell(glyph: glyph.text, width: glyph.width, style: style)
            if glyph.width == 2 { cells[place + 1] = Cell(glyph: "", width: 0, style: style) }
            place += glyph.width
        }
        return used
    }

    /// Replaces wide characters of which only one half is overwritten.
    private mutating func clearHalves(_ place: Int, _ count: Int, _ y: Int) {
        guard count > 0 else { return }
        if cells[place].width == 0, place > y * width { cells[place - 1] = Cell(style: cells[place - 1].style) }
        let end = place + count
        if end < (y + 1) * width, cells[end].width == 0 { cells[end] = Cell(style: cells[end].style) }
    }

    /// Returns the characters of a text without control characters, until they use `columns`.
    private static func glyphs(_ text: String, _ columns: Int) -> [(text: String, width: Int)] {
        var glyphs: [(text: String, width: Int)] = []
        var used = 0
        for character in text {
            guard used < columns else { break }
            if let byte = character.asciiValue {
                glyphs.append((byte < 0x20 || byte == 0x7F ? "?" : String(character), 1))
                used += 1
                continue
            }
            var glyph = String(character)
            if glyph.utf8.count > maximumGlyph {
                glyph = String(String.UnicodeScalarView(glyph.unicodeScalars.prefix(4)))
            }
            let width = min(2, Columns.count(glyph))
            if width > 0 {
                glyphs.append((glyph, width))
                used += width
            } else if let last = glyphs.last, last.text.utf8.count + glyph.utf8.count <= maximumGlyph {
                glyphs[glyphs.count - 1].text += glyph
            }
        }
        return glyphs
    }

    /// Returns a text in ASCII.
    private static func ascii(_ text: String) -> String {
        guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { return text }
        let similar: [Character: Character] = ["│": "|", "“": "\"", "”": "\"", "▸": ">", "↑": "^", "↓": "v", "●": "*"]
        return Columns.ascii(String(text.map { similar[$0] ?? $0 }))
    }

    /// Fills a part of a row with a character.
    mutating func fill(_ character: Character = " ", x: Int, y: Int, count: Int, style: Style = .plain) {
        let count = min(count, width - x)
        guard count > 0 else { return }
        put(escaped: String(repeating: character, count: count), x: x, y: y, limit: count, style: style)
    }

    /// Changes the style of a whole row.
    mutating func paint(row y: Int, from x: Int = 0, style: Style) {
        guard y >= 0, y < height, x >= 0, x < width else { return }
        for place in y * width + x..<(y + 1) * width { cells[place].style = style }
    }
}
