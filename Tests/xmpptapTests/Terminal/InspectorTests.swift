import TapCapture
import TapRecord
import TapTestKit
import Testing

@testable import xmpptap

/// The inspector in a terminal, without a terminal.
struct InspectorTests {
    private static let widths = [60, 80, 200]

    @Test(arguments: [
        ("xmpptap", "xmpptap is at fault (RFC 6120 §6.5.10)."),
        ("server", "The server is at fault (RFC 6120 §6.5.10)."),
        ("unknown", "The records do not show who is at fault."),
    ])
    func `the diagnosis names the side at fault, and ends a sentence once`(side: String, sentence: String) {
        let lines = TerminalRecords.logins.map {
            $0.replacing(#""side":"client""#, with: #""side":"\#(side)""#)
                .replacing("the password is wrong", with: "encryption is required.")
                .replacing(#""proxy_is_cause":false,"#, with: "")
        }
        var scene = TerminalScene(lines, width: 120)
        scene.press(.down, .enter)
        #expect(
            scene.body.contains { $0.contains("The login failed at sasl: encryption is required.") },
            "\(scene.body)"
        )
        #expect(scene.body.contains { $0.contains(sentence) } && !scene.body.contains { $0.contains("..") })
    }

    @Test(arguments: [120, 140, 160, 170, 184, 190, 240])
    func `wide lists name the cause of a failed login, and diagrams wrap it`(width: Int) {
        let cause = String(repeating: "the server's certificate is not trusted by the client ", count: 9) + "at all"
        let lines = TerminalRecords.logins.map { $0.replacing("the password is wrong", with: cause) }
        var scene = TerminalScene(lines, width: width, height: 50)
        #expect(scene.body.contains { $0.contains("login failed: the server's cer") }, "\(scene.body)")
        scene.press(.down, .enter)
        let words = scene.body.joined(separator: " ").split(separator: " ").joined(separator: " ")
        #expect(words.contains("The login failed at sasl: \(cause)."), "\(scene.body)")
        // A low terminal keeps rows for the diagram.
        scene.resize(width, 16)
        #expect(scene.body.contains { $0.contains("client") && $0.contains("server") }, "\(scene.body)")
    }

    @Test(arguments: widths)
    func `sessions, records, details and a diagram are reached with Enter and left with Esc`(width: Int) {
        var scene = TerminalScene(TerminalRecords.logins, width: width)
        #expect(scene.lines[0].contains("today.xtap") && scene.lines[0].contains("[1 Sessions]"))
        #expect(scene.lines[1].contains("2 sessions · 1 open · 1 failed login"), "\(scene.lines[1])")
        #expect(scene.selected.contains("juliet@example.net"), "\(scene.body)")
        #expect(
            scene.body.contains { $0.contains("romeo@example.net") && $0.contains("login failed: t") },
            "\(scene.body)"
        )
        #expect(scene.lines.last?.hasSuffix("? keys  q quit") == true)

        scene.press(.enter)
        #expect(scene.lines[0].contains("[2 Records]") && scene.lines[1].contains("8 of 11 records"), "\(scene.lines)")
        #expect(scene.body.contains { $0.contains("→ iq get") || $0.contains("→   iq get") }, "\(scene.body)")
        scene.press(.end, .up, .enter)
        #expect(scene.body[0].contains("#7 RECV message chat"), "\(scene.body)")
        #expect(scene.body.contains { $0.contains("from") && $0.contains("romeo@example.org/orchard") })
        #expect(scene.body.contains { $0.contains("<body>漢字 \\u{1b}[31m red</body>") }, "\(scene.body)")
        scene.press(.character("d"))
        #expect(scene.lines[0].contains("[3 Diagram]"), "\(scene.lines)")
        #expect(scene.body.contains { $0.contains("client") && $0.contains("xmpptap") && $0.contains("server") })
        #expect(scene.body.contains { $0.contains("✓ connect: ok") }, "\(scene.body)")
        #expect(scene.body.contains { $0.contains("│─ iq get") && $0.contains("→│") }, "\(scene.body)")
        #expect(scene.body.contains { $0.contains("×│") }, "a dropped stanza ends at xmpptap: \(scene.body)")
        scene.press(.escape)
        #expect(scene.lines[0].contains("[1 Sessions]"))

        // A failed login is shown as a diagram with its diagnosis.
        scene.press(.down, .enter)
        #expect(
            scene.body.contains { $0.contains("The login failed at sasl: the password is wrong.") },
            "\(scene.body)"
        )
        #expect(scene.body.contains { $0.contains("Try: check the password") })
        #expect(scene.screen.height == scene.lines.count && scene.lines.allSatisfy { Columns.count($0) <= width })
    }

    @Test func `the filter applies while it is typed, and a mistake keeps the last good result`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 80)
        scene.press(.character("2"), .character("/"))
        scene.type("message")
        #expect(scene.lines[1].contains("2 of 11 records"), "\(scene.lines)")
        scene.type(" and wiht:romeo")
        #expect(scene.lines[1].contains("2 of 11 records"), "\(scene.lines)")
        #expect(scene.lines[22].hasPrefix("/ message and wiht:romeo"), "\(scene.lines)")
        let place = "/ message and ".count
        #expect(Array(scene.lines[23])[place] == "^" && scene.lines[23].contains("column 13"), "\(scene.lines)")
        #expect(scene.screen.cursor == Screen.Place(x: 24, y: 22))
        // The mistake is not applied.
        scene.press(.escape)
        #expect(scene.lines[1].contains("2 of 11 records") && scene.screen.cursor == nil, "\(scene.lines)")
        #expect(scene.lines[1].contains("filter: message"))
        scene.press(.escape)
        #expect(scene.lines[1].hasPrefix(" 11 records"), "\(scene.lines)")
        // The first character replaces the filter; after another key the filter is edited.
        scene.press(.character("/"))
        scene.type("iq")
        scene.press(.enter, .character("/"))
        scene.type("presence")
        #expect(scene.lines[22] == "/ presence" && scene.lines[1].contains("0 of 11 records"), "\(scene.lines)")
        scene.press(.enter, .character("/"), .end)
        scene.type(" or iq")
        #expect(scene.lines[22] == "/ presence or iq" && scene.lines[1].contains("2 of 11 records"), "\(scene.lines)")
    }

    @Test func `a selected record stays selected when the filter changes`() {
        var scene = TerminalScene(TerminalRecords.messages(1...200), width: 80)
        scene.press(.character("2"), .end, .pageUp, .up)
        let selected = scene.selected
        #expect(selected.contains("“number 180”"), "\(selected)")
        scene.press(.character("/"))
        scene.type("send")
        #expect(scene.selected == selected, "\(scene.lines)")
        // A filter that hides it selects a neighbour, until it is back.
        scene.press(.control("u"))
        scene.type("recv")
        #expect(scene.selected.contains("“number 181”"), "\(scene.lines)")
        scene.press(.enter, .character("c"))
        #expect(scene.selected == selected, "\(scene.lines)")
    }

    @Test func `a filter whose first match comes late selects it`() {
        var scene = TerminalScene(TerminalRecords.messages(1...3000), width: 80)
        scene.press(.character("2"), .down, .character("/"))
        scene.type("body:\"number 2999\"")
        #expect(scene.lines[1].contains("1 of 3\u{202F}000 records"), "\(scene.lines)")
        #expect(scene.selected.contains("“number 2999”"), "\(scene.lines)")
        scene.press(.enter, .character("c"))
        #expect(scene.selected.contains("“number 2”"), "\(scene.lines)")
        // A list without rows has no selection, and the next one has.
        scene.press(.character("/"))
        scene.type("presence")
        #expect(scene.selected.isEmpty)
        scene.press(.enter, .character("c"))
        #expect(scene.selected.contains("“number 2”"), "\(scene.lines)")
    }

    @Test func `new rows are followed at the bottom, and do not move others`() {
        var scene = TerminalScene(live: RecordTable.Limits(records: 100, bytes: .max), width: 80)
        scene.append(TerminalRecords.messages(1...3000))
        #expect(scene.hasNews)
        scene.press(.character("2"))
        #expect(!scene.hasNews)
        #expect(scene.body.last?.contains("“number 3000”") == true, "\(scene.lines)")
        #expect(scene.lines[1].contains("following") && scene.lines[1].contains("no longer kept"))
        scene.append(TerminalRecords.messages(3001...3010))
        scene.draw()
        #expect(scene.body.last?.contains("“number 3010”") == true, "\(scene.lines)")
        // The user moves away: the rows stay, also when the table drops them.
        scene.press(.up)
        let rows = scene.body
        #expect(scene.selected.contains("“number 3010”"))
        scene.append(TerminalRecords.messages(3011...9000))
        scene.draw()
        #expect(scene.body == rows, "\(scene.lines)")
        #expect(
            scene.lines[1].contains("5 990 below".replacing(" below", with: "").replacing(" ", with: "\u{202F}")),
            "\(scene.lines)"
        )
        scene.press(.character("F"))
        #expect(scene.body.last?.contains("“number 9000”") == true)
    }

    @Test func `sessions are counted again until they show all records`() {
        var scene = TerminalScene(live: .none, width: 80)
        for part in 0..<5 {
            scene.append(TerminalRecords.messages(part * 10 + 1...part * 10 + 10))
            scene.draw()
        }
        // The owner of the terminal draws as long as there is news.
        while scene.hasNews { scene.draw() }
        #expect(scene.selected.contains("25       25"), "\(scene.lines)")
    }

    @Test func `a request leads to its answer and back`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 100)
        scene.press(.character("2"), .home, .down, .down, .down, .down)
        #expect(scene.selected.contains("iq get"), "\(scene.lines)")
        scene.press(.character("a"))
        #expect(scene.selected.contains("iq result") && scene.selected.contains("12 ms"), "\(scene.lines)")
        scene.press(.enter, .character("a"))
        #expect(scene.body[0].contains("#5 SEND iq get"), "\(scene.lines)")
        scene.press(.character("n"), .character("n"))
        #expect(scene.body[0].contains("#7 RECV message"), "\(scene.lines)")
        scene.press(.escape, .character("a"))
        #expect(scene.lines[22].contains("this record has no request and no answer"), "\(scene.lines)")
    }

    @Test func `the next error is found, without a filter that hides it`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 80)
        scene.press(.enter)
        #expect(scene.lines[1].contains("8 of 11"))
        scene.press(.character("w"))
        #expect(scene.selected.contains("login failed") && scene.lines[1].hasPrefix(" 11 records"), "\(scene.lines)")
        scene.press(.character("w"))
        #expect(scene.lines[22].contains("no later error or warning"))
        scene.press(.character("W"))
        #expect(scene.lines[22].contains("no earlier error or warning"))
    }

    @Test func `sessions are found by a text`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 80)
        scene.press(.character("/"))
        scene.type("PASSWORD")
        #expect(scene.lines[1].contains("1 of 2 sessions") && scene.selected.contains("romeo"), "\(scene.lines)")
        scene.type("x")
        #expect(scene.body.contains { $0.contains("No session matches.") })
        scene.press(.escape, .escape)
        #expect(scene.lines[1].contains("2 sessions"))
        // The session that was selected before is selected again.
        #expect(scene.selected.contains("juliet"), "\(scene.lines)")
    }

    @Test func `a diagram can be narrowed to the login, and leads to the next session`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 120)
        scene.press(.character("d"))
        #expect(scene.lines[1].contains("session 1 · everything · 8 records"), "\(scene.lines)")
        scene.press(.character("l"))
        #expect(scene.lines[1].contains("session 1 · login · "), "\(scene.lines)")
        #expect(!scene.body.contains { $0.contains("“hello”") })
        scene.press(.character("]"))
        #expect(scene.lines[1].contains("session 2"), "\(scene.lines)")
        scene.press(.character("x"))
        #expect(scene.selected.contains("login failed"), "\(scene.lines)")
        scene.press(.character("]"))
        #expect(scene.lines[22].contains("there is no other session"))
        scene.press(.character("["), .character("r"))
        #expect(
            scene.lines[0].contains("[2 Records]") && scene.lines[1].contains("filter: session:1"),
            "\(scene.lines)"
        )
    }

    @Test func `keys and messages cover a view`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 60, height: 12)
        scene.press(.character("?"))
        #expect(scene.body.contains { $0.contains("sessions, records, diagram") }, "\(scene.lines)")
        #expect(!scene.body.contains { $0.contains("held stanza") })
        for section in KeyList.sections(hasHeld: true) {
            #expect(section.keys.allSatisfy { Columns.count($0.key) < 21 && $0.meaning.count <= 36 }, "\(section)")
        }
        scene.press(.end)
        #expect(scene.body.contains { $0.contains("as a list") }, "\(scene.lines)")
        scene.messages.add("listening on \u{1B}[31m")
        scene.press(.character("m"))
        #expect(scene.body[0].contains("listening on \\u{1b}[31m"), "\(scene.lines)")
        scene.press(.escape)
        #expect(scene.lines[0].contains("[1 Sessions]"))
        #expect(scene.lines[10].contains("listening on \\u{1b}[31m"))
    }

    @Test func `keys that end or suspend the inspector are passed on`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 60)
        scene.press(.control("z"), .control("l"), .character("e"), .character("q"), .control("c"))
        #expect(scene.requests == [.suspend, .redraw, .quit, .quit])
        // In a line that is edited, q is a letter.
        var other = TerminalScene(TerminalRecords.logins, width: 60)
        other.press(.character("/"), .character("q"))
        #expect(other.requests.isEmpty)
    }

    @Test func `several keys in one read act on the rows that they reach`() {
        var scene = TerminalScene(TerminalRecords.messages(1...100), width: 80)
        scene.pressAtOnce(.character("2"), .end, .up, .enter)
        #expect(scene.body[0].contains("#99 "), "\(scene.lines)")
    }

    @Test func `any size is drawn, and one that is too small says so`() {
        var scene = TerminalScene(TerminalRecords.logins, width: 200)
        for view in ["1", "2", "3"] {
            for (width, height) in [
                (59, 24), (60, 9), (60, 10), (1, 1), (20, 3), (61, 11), (119, 40), (121, 12), (400, 100),
            ] {
                scene.resize(width, height)
                scene.type(view)
                #expect(scene.lines.allSatisfy { Columns.count($0) <= width }, "\(view) at \(width) x \(height)")
                let isTooSmall = width < 60 || height < 10
                if width >= 24 { #expect(scene.lines[0].contains("too small") == isTooSmall, "\(scene.lines)") }
            }
            scene.resize(100, 30)
            scene.type(view)
        }
    }

    @Test func `random keys leave the inspector in order`() {
        var generator = SeededGenerator(seed: 7)
        let keys: [Key] =
            [.up, .down, .left, .right, .home, .end, .pageUp, .pageDown, .enter, .escape, .tab, .backspace, .unknown]
            + "123?mzwW/cslda[]rxfFgGnpjkheHPDy0 ".map { .character($0) } + [.paste("message or iq"), .control("u")]
        var scene = TerminalScene(TerminalRecords.logins + TerminalRecords.messages(20...300), width: 80)
        for step in 0..<1500 {
            if step % 100 == 0 {
                let width = [60, 80, 200, 30].randomElement(using: &generator) ?? 80
                scene.resize(width, Int.random(in: 5...40, using: &generator))
            }
            scene.press(keys.randomElement(using: &generator) ?? .down)
            #expect(scene.lines.count == scene.screen.height)
        }
    }
}
