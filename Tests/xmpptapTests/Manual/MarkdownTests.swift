import TapManual
import Testing

/// Tests of the manual's Markdown, on a terminal and in man pages.
struct MarkdownTests {
    private static let sample = """
        # Title

        Words with `code | code`, **weight**, *stress* and a [page](tls.md),
        on two lines; 2 * 3 * 4 [is] (no) link.

        - one
          goes on
        - two, see [the other](trust.md)

        2. second

        ```console
        $ xmpptap read FILE

        .dot 'quote' \\ back
        ```

        | flag | meaning | default |
        |---|---|--:|
        | `--a`, `b\\|` | first | 1 |
        | `c | d` | see <https://example.org> | |
        """

    @Test func `The blocks of a page and their parts are parsed`() {
        let blocks = Markdown.blocks(of: Self.sample)
        #expect(blocks.count == 6)
        #expect(blocks.first == .heading(level: 1, [.text("Title")]))
        #expect(
            blocks[1]
                == .paragraph([
                    .text("Words with "), .code("code | code"), .text(", "), .strong("weight"), .text(", "),
                    .emphasis("stress"),
                    .text(" and a "), .link("page", to: "tls.md"),
                    .text(", on two lines; 2 * 3 * 4 [is] (no) link."),
                ])
        )
        #expect(
            blocks[2]
                == .list([
                    ("-", [.text("one goes on")]), ("-", [.text("two, see "), .link("the other", to: "trust.md")]),
                ])
        )
        #expect(blocks[3] == .list([("2.", [.text("second")])]))
        #expect(blocks[4] == .code(["$ xmpptap read FILE", "", ".dot 'quote' \\ back"]))
        guard case .table(let rows) = blocks[5] else {
            Issue.record("no table: \(blocks[5])")
            return
        }
        #expect(rows.map(\.count) == [3, 3, 3])
        #expect(rows[2][0] == [.code("c | d")])
    }

    @Test(arguments: [1, 20, 32, 60, 80, 100, 240])
    func `Only code may be wider than the terminal, and no word is lost`(width: Int) {
        for page in ManualPage.all {
            let text = TerminalText(width: width)
            for block in page.blocks {
                let lines = text.lines(of: [block])
                if case .code(let code) = block {
                    #expect(lines == code.map { $0.isEmpty ? "" : "    \($0)" })
                    continue
                }
                // A word that is wider than the terminal has a separate line, except for the mark of its list.
                let wide = lines.filter { $0.count > max(20, width) }
                #expect(
                    wide.allSatisfy { $0.split(separator: " ").drop { $0 == "-" }.count == 1 },
                    "\(page.name): \(wide)"
                )
                if case .paragraph(let inline) = block {
                    let shown = lines.joined(separator: " ").split(separator: " ")
                    // The name of a page is followed by the command that shows it.
                    let plain = Markdown.plain(inline).split { " ,.:;".contains($0) }
                    #expect(plain.allSatisfy { word in shown.contains { $0.contains(word) } }, "\(page.name)")
                }
            }
        }
    }

    @Test func `The columns of a table are aligned, even with wide characters`() {
        let table = Markdown.blocks(
            of: """
                | what | where |
                |---|---|
                | 日本 | the first of two places that are far too long for one row |
                | b | c |
                """
        )
        let lines = TerminalText(width: 40).lines(of: table)
        #expect(
            lines == [
                "  what  where",
                "  日本  the first of two places that are",
                "        far too long for one row",
                "  b     c",
            ]
        )
    }

    @Test func `Styles are coloured, and links show the help topic to type`() {
        let text = TerminalText(width: 80) { text, style in
            switch style {
            case .plain: text
            case .heading: "#\(text)#"
            case .code: "`\(text)`"
            case .strong: "*\(text)*"
            }
        }
        let lines = text.lines(
            of: Markdown.blocks(of: "## A b\n\nUse `x y` on [tls](tls.md), [this](trust.md#a), [RFC](https://e.org).")
        )
        #expect(lines == ["#A# #b#", "", "  Use `x` `y` on *tls*, *this* (xmpptap help trust), RFC (https://e.org)."])
    }

    @Test func `Characters that are special in roff are escaped`() {
        var man = ManText(name: "xmpptap-x", section: 1, version: "1", summary: "a -- b")
        man.paragraph(".dot at the beginning")
        man.paragraph("'quote' and \\ and ~/a^b`")
        man.code([".SH no heading", "-a --b"])
        man.entry("\\fB\(ManText.verbatim("--a-b"))\\fR", ["what", "", "more"])
        #expect(man.text.contains("\n.SH NAME\nxmpptap-x \\- a \\-\\- b\n"))
        #expect(man.text.contains("\n.PP\n\\&.dot at the beginning\n"))
        #expect(man.text.contains("\n\\(aqquote\\(aq and \\(rs and \\(ti/a\\(hab\\(ga\n"))
        #expect(man.text.contains("\n.EX\n\\&.SH no heading\n\\-a \\-\\-b\n.EE\n"))
        #expect(man.text.hasSuffix("\n.TP\n\\fB\\-\\-a\\-b\\fR\nwhat\n.br\nmore\n"))
    }
}
