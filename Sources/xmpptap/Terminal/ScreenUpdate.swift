internal import TapRecord

/// The bytes that change the contents of a terminal from one screen to another.
struct ScreenUpdate {
    /// Whether colours are used; other attributes are used always.
    let isColoured: Bool

    private var output: [UInt8] = []
    /// The place at which the terminal writes next; nil if unknown.
    private var pen: Screen.Place?
    private var style: Style?

    /// Creates an update.
    ///
    /// - Parameter isColoured: Whether colours are used.
    init(isColoured: Bool) { self.isColoured = isColoured }

    /// Returns the bytes that show a screen on a terminal that shows `old`; nil if its contents are unknown.
    ///
    /// Only cells that differ are written. After a character whose width terminals may not agree on, the position is
    /// set again.
    mutating func bytes(from old: Screen?, to new: Screen) -> [UInt8] {
        output.removeAll(keepingCapacity: true)
        pen = nil
        style = nil
        var before = old
        if let known = old, known.width != new.width || known.height != new.height { before = nil }
        if before == nil {
            write("\u{1B}[0m\u{1B}[2J")
            before = Screen(width: new.width, height: new.height)
        }
        for y in 0..<new.height { if let before { update(y, before.row(y), new.row(y)) } }
        guard !output.isEmpty || old?.cursor != new.cursor else { return [] }
        if style != .plain, style != nil { write("\u{1B}[0m") }
        if let cursor = new.cursor {
            move(to: cursor)
            write("\u{1B}[?25h")
        } else {
            write("\u{1B}[?25l")
        }
        return output
    }

    private mutating func update(_ y: Int, _ old: ArraySlice<Screen.Cell>, _ new: ArraySlice<Screen.Cell>) {
        var x = 0
        for (before, cell) in zip(old, new) {
            defer { x += 1 }
            // The second half of a wide character is written with the first one.
            guard cell.width > 0, before != cell else { continue }
            let place = Screen.Place(x: x, y: y)
            if pen != place { move(to: place) }
            set(cell.style)
            let isSimple = cell.width == 1 && cell.glyph.unicodeScalars.count == 1
            guard !isSimple else {
                write(cell.glyph)
                pen = Screen.Place(x: x + 1, y: y)
                continue
            }
            // Some terminals draw it narrower than it is: then nothing old remains behind it.
            write(String(repeating: " ", count: cell.width))
            move(to: place)
            write(cell.glyph)
            pen = nil
        }
    }

    private mutating func move(to place: Screen.Place) { write("\u{1B}[\(place.y + 1);\(place.x + 1)H") }

    private mutating func set(_ new: Style) {
        guard style != new else { return }
        style = new
        write("\u{1B}[0m")
        if isColoured {
            write("\(new.colour.sequence)")
        } else if new.colour == .red || new.colour == .bold {
            write("\(Colour.bold.sequence)")
        }
        if new.isReversed { write("\u{1B}[7m") }
        if new.isUnderlined { write("\u{1B}[4m") }
    }

    private mutating func write(_ text: String) { output += text.utf8 }
}
