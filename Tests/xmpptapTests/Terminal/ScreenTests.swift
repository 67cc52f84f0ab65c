import TapRecord
import Testing

@testable import xmpptap

/// The cells of a screen, and the bytes that change a terminal.
struct ScreenTests {
    @Test func `text is cut with an ellipsis at its limit and at the end of the row`() {
        var screen = Screen(width: 10, height: 2)
        #expect(screen.put("0123456789abc", x: 2, y: 0) == 8)
        #expect(screen.put("abcdef", x: 0, y: 1, limit: 4) == 4)
        #expect(screen.lines == ["  0123456…", "abc…"])
        #expect(screen.put("x", x: 10, y: 0) == 0)
        #expect(screen.put("x", x: 0, y: 2) == 0)
        #expect(screen.put("x", x: -1, y: 0) == 0)
    }

    @Test func `nothing on the screen controls the terminal`() {
        var screen = Screen(width: 60, height: 1)
        screen.put("\u{1B}[2J\u{9B}31m\n\u{202E}abc\u{7F}\u{200B}", x: 0, y: 0)
        screen.put(escaped: "\u{7}", x: 58, y: 0)
        let text = screen.lines[0]
        #expect(text.hasPrefix(#"\u{1b}[2J\u{9b}31m\n\u{202e}abc\u{7f}\u{200b}"#), "\(text)")
        #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F })
    }

    @Test func `a wide character has two cells, and marks join the character before them`() {
        var screen = Screen(width: 8, height: 1)
        #expect(screen.put("漢e\u{301}👨‍👩‍👧", x: 0, y: 0) == 5)
        #expect(screen.row(0).map(\.width) == [2, 0, 1, 2, 0, 1, 1, 1])
        #expect(screen.lines == ["漢e\u{301}👨‍👩‍👧"])
        // A half of a wide character does not remain.
        screen.put("x", x: 1, y: 0)
        #expect(screen.lines == [" xe\u{301}👨‍👩‍👧"])
        screen.put("y", x: 3, y: 0)
        #expect(screen.lines == [" xe\u{301}y"])
        // It is not cut in the middle.
        var narrow = Screen(width: 3, height: 1)
        narrow.put("漢漢", x: 0, y: 0)
        #expect(narrow.lines == ["漢…"])
        narrow.put("漢漢", x: 0, y: 0, limit: 2)
        #expect(narrow.lines == ["… …"])
    }

    @Test func `a character with very many marks is cut`() {
        var screen = Screen(width: 20, height: 1)
        screen.put("a" + String(repeating: "\u{301}", count: 100_000) + "b", x: 0, y: 0)
        #expect(screen.row(0).allSatisfy { $0.glyph.utf8.count <= 32 })
        screen.put(String(repeating: "\u{301}", count: 50), x: 5, y: 0)
        #expect(screen.row(0).allSatisfy { $0.glyph.utf8.count <= 32 })
    }

    @Test func `a terminal without UTF-8 gets ASCII`() {
        var screen = Screen(width: 30, height: 1, isASCII: true)
        screen.put("→ ← │ ─ “é漢” ✓ abcdefghijklmnop", x: 0, y: 0)
        #expect(screen.lines[0].utf8.allSatisfy { $0 < 0x80 })
        #expect(screen.lines[0].hasPrefix("> < | - \"???\" + abc") && screen.lines[0].hasSuffix("~"))
    }

    @Test func `an impossible size is not believed`() {
        #expect(Screen(width: 1 << 40, height: -3).lines.count == 1)
    }

    /// Applies the bytes to a terminal that knows only what ``ScreenUpdate`` writes.
    private func applied(_ bytes: [UInt8], to cells: inout [[Character]], _ height: Int, _ width: Int) -> Int {
        var text = Substring(String(decoding: bytes, as: UTF8.self))
        var (x, y, written) = (0, 0, 0)
        while let character = text.popFirst() {
            guard character == "\u{1B}" else {
                let columns = Columns.count(String(character))
                cells[y][x] = character
                if columns == 2 { cells[y][x + 1] = "\u{0}" }
                x += columns
                written += 1
                continue
            }
            text = text.dropFirst()
            let parameters = text.prefix { !$0.isLetter }
            text = text.dropFirst(parameters.count)
            switch text.popFirst() {
            case "H":
                let parts = parameters.split(separator: ";").compactMap { Int($0) }
                (y, x) = (parts[0] - 1, parts[1] - 1)
            case "J": cells = [[Character]](repeating: [Character](repeating: " ", count: width), count: height)
            default: break
            }
        }
        return written
    }

    private func lines(_ cells: [[Character]]) -> [String] {
        cells.map { String($0.filter { $0 != "\u{0}" }.reversed().drop { $0 == " " }.reversed()) }
    }

    @Test func `only cells that differ are written`() {
        var cells: [[Character]] = []
        var update = ScreenUpdate(isColoured: true)
        var old: Screen?
        for (number, texts) in [
            ["one", "漢字 two"], ["one", "漢字 two"], ["ohe", "漢字 two"], ["ohe", "x字 two"], ["", "e\u{301}字"],
        ].enumerated() {
            var new = Screen(width: 12, height: 2)
            for (y, text) in texts.enumerated() { new.put(text, x: 0, y: y) }
            let written = applied(update.bytes(from: old, to: new), to: &cells, 2, 12)
            #expect(lines(cells) == new.lines, "screen \(number)")
            if number == 1 { #expect(written == 0) }
            if number == 2 { #expect(written == 1) }
            old = new
        }
    }

    @Test func `a screen of another size is drawn anew, and no change writes nothing`() {
        var update = ScreenUpdate(isColoured: true)
        let small = Screen(width: 10, height: 3)
        let large = Screen(width: 20, height: 3)
        #expect(String(decoding: update.bytes(from: small, to: large), as: UTF8.self).contains("\u{1B}[2J"))
        #expect(update.bytes(from: large, to: large).isEmpty)
        var other = large
        other.cursor = Screen.Place(x: 4, y: 2)
        #expect(String(decoding: update.bytes(from: large, to: other), as: UTF8.self) == "\u{1B}[3;5H\u{1B}[?25h")
        #expect(String(decoding: update.bytes(from: other, to: large), as: UTF8.self) == "\u{1B}[?25l")
    }

    @Test func `without colours a failure is bold, and a selection stays reversed`() {
        var screen = Screen(width: 10, height: 2)
        screen.put("bad", x: 0, y: 0, style: .bad)
        screen.put("chosen", x: 0, y: 1, style: .selected)
        for isColoured in [false, true] {
            var update = ScreenUpdate(isColoured: isColoured)
            let text = String(decoding: update.bytes(from: nil, to: screen), as: UTF8.self)
            #expect(text.contains("\u{1B}[1;31mbad") == isColoured)
            #expect(text.contains("\u{1B}[1mbad") != isColoured)
            #expect(text.contains("\u{1B}[7mchosen"))
        }
    }
}
