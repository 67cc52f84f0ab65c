import Testing

@testable import TapRecord

@Suite struct ColumnsTests {
    @Test(arguments: [
        ("plain words", 11), ("漢字", 4), ("e\u{301}", 1), ("\u{1F468}\u{200D}\u{1F469}", 2), ("\u{5E9}\u{5DC}", 2),
        ("", 0),
    ])
    func `a text's width is counted in terminal columns`(text: String, columns: Int) {
        #expect(Columns.count(text) == columns)
        #expect(Columns.count(Columns.padded(text, to: 20)) == 20)
    }

    @Test func `text that does not fit is cut between characters`() {
        #expect(Columns.cut("plain", to: 5) == "plain")
        #expect(Columns.cut("plain", to: 4) == "pla…")
        #expect(Columns.cut("漢字漢字", to: 4) == "漢…")
        #expect(Columns.cut("漢字", to: 0).isEmpty)
    }

    @Test(arguments: [2, 5, 10, 20, 60])
    func `no line is wider than the limit, and no text is lost`(width: Int) {
        let texts = [
            "one two three", "漢字漢字漢字 e\u{301}e\u{301} x", String(repeating: "word ", count: 30),
            "averyverylongword and more",
        ]
        for text in texts {
            let lines = Columns.wrapped(text, to: width)
            #expect(lines.allSatisfy { Columns.count($0) <= width }, "\(lines)")
            #expect(lines.joined().filter { $0 != " " } == text.filter { $0 != " " })
        }
    }

    @Test func `a line breaks between words, not at a no-break space`() {
        #expect(Columns.wrapped("see RFC\u{A0}6120 now", to: 12) == ["see RFC 6120", "now"])
        #expect(Columns.wrapped("see RFC\u{A0}6120 now", to: 9) == ["see", "RFC 6120", "now"])
        #expect(Columns.wrapped("    set in", to: 20) == ["    set in"])
        #expect(Columns.wrapped("", to: 20) == [""])
    }

    @Test func `a text converted to ASCII keeps its width`() {
        let line = "── ✓ 漢 → … – \u{1B}[2m·\u{1B}[0m"
        #expect(Columns.ascii(line) == "-- + ?? > ~ - \u{1B}[2m-\u{1B}[0m")
    }
}
