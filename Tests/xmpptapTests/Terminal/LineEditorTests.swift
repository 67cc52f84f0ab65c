import Testing

@testable import xmpptap

/// A line that is edited with keys.
struct LineEditorTests {
    private func edited(_ text: String, _ keys: Key...) -> (text: String, cursor: Int) {
        var editor = LineEditor(text)
        for key in keys { _ = editor.handle(key) }
        return (editor.text, editor.cursor)
    }

    @Test func `characters are inserted at the cursor, and removed around it`() {
        #expect(edited("ab", .left, .character("x")) == ("axb", 2))
        #expect(edited("ab", .home, .delete) == ("b", 0))
        #expect(edited("ab", .backspace) == ("a", 1))
        #expect(edited("ab", .home, .backspace) == ("ab", 0))
        #expect(edited("ab", .delete) == ("ab", 2))
        #expect(edited("", .left, .right, .right) == ("", 0))
        #expect(edited("one two", .control("w")) == ("one ", 4))
        #expect(edited("one two  ", .control("w")) == ("one ", 4))
        #expect(edited("one two", .left, .control("u")) == ("o", 0))
        #expect(edited("one two", .control("a"), .right, .control("k")) == ("o", 1))
        #expect(edited("👨‍👩‍👧x", .left, .backspace) == ("x", 0))
    }

    @Test func `a combining mark joins the character before the cursor`() {
        #expect(edited("ex", .left, .character("\u{301}"), .character("y")) == ("e\u{301}yx", 2))
    }

    @Test func `pasted text becomes one line of limited length`() {
        #expect(edited("", .paste("a\nb\tc\u{1B}[31m")) == ("a b c[31m", 9))
        #expect(edited("", .paste(String(repeating: "x", count: 100_000))).cursor == 4096)
    }

    @Test func `other keys have no meaning`() {
        var editor = LineEditor("a")
        #expect(!editor.handle(.up) && !editor.handle(.function(3)) && !editor.handle(.unknown))
        #expect(editor.text == "a")
    }
}
