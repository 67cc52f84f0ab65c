import TapRecord
import TapStore
import Testing

@testable import xmpptap

/// Found messages as lines and as a page.
struct FoundMessageFormsTests {
    private static func row(_ number: Int, _ body: String?, from account: String = "juliet@example.org") -> AuditRow {
        var row = AuditRow(
            run: "run",
            sequence: UInt64(clamping: number),
            session: 1,
            time: Timestamp(nanoseconds: 1_795_000_000_000_000_000 + Int64(number) * 1_000_000_000),
            account: account,
            direction: .send,
            kind: .message,
            size: 100
        )
        (row.peer, row.type, row.body) = ("romeo@example.org", "chat", body)
        return row
    }

    private static func shown(_ rows: [AuditRow], words: String = "", context: Int? = nil) -> [ShownMessage] {
        let query = SearchQuery(words: words)
        var found = FoundMessages(query, context: context, hasDigests: true)
        for row in rows { found.add(row) }
        var shown: [ShownMessage] = []
        found.show(query) {
            shown.append($0)
            return true
        }
        return shown
    }

    @Test("A transcript groups few messages by conversation, and prints many as they come")
    func groupsFewMessages() {
        let rows = [
            Self.row(1, "one"), Self.row(2, "two", from: "nurse@example.org"), Self.row(3, "three"),
            Self.row(4, "four"),
        ]
        func lines(limit: Int) -> (printed: [Int], lines: [String]) {
            var transcript = Transcript(paint: Paint(isOn: false), hasContext: false, limit: limit)
            var (printed, lines): ([Int], [String]) = ([], [])
            for shown in Self.shown(rows) {
                let new = transcript.add(shown)
                printed.append(new.count)
                lines += new
            }
            return (printed, (lines + transcript.end()).map { $0.split(separator: " ").last.map(String.init) ?? "" })
        }
        let grouped = lines(limit: 4)
        #expect(grouped.printed == [0, 0, 0, 0])
        #expect(grouped.lines == ["romeo@example.org", "one", "three", "four", "", "romeo@example.org", "two"])
        let streamed = lines(limit: 2)
        #expect(streamed.printed == [0, 0, 8, 1])
        #expect(
            streamed.lines == [
                "romeo@example.org", "one", "", "romeo@example.org", "two", "", "romeo@example.org", "three", "four",
            ]
        )
    }

    @Test("Matches are marked among the messages around them, and ranges are divided")
    func marksMatches() {
        let rows = (1...7).map { Self.row($0, $0 == 2 || $0 == 6 ? "found" : "other") }
        func lines(_ paint: Paint) -> [String] {
            var transcript = Transcript(paint: paint, hasContext: true)
            for shown in Self.shown(rows, words: "found", context: 1) { _ = transcript.add(shown) }
            return transcript.end()
        }
        #expect(lines(Paint(isOn: false)).map { $0.prefix(1) } == ["j", " ", "*", " ", "-", " ", "*", " "])
        #expect(lines(Paint(isOn: true)).filter { $0.contains("\u{1B}[") }.allSatisfy { $0.contains("found") })
    }

    @Test("A page contains text from the wire only escaped, loads nothing, and has no scripts")
    func escapesPage() {
        var hostile = Self.row(1, "<script>alert(1)</script> \"&\" \u{202E}abc\r\nC:\\x\u{1B}[2J שלום")
        hostile.peer = "\"><img src=x onerror=alert(1)>@example.org"
        (hostile.subject, hostile.action, hostile.rule) = ("<b>", "dropped", "<i>rule</i>")
        hostile.xml = "<message/>"
        var page = TranscriptPage(zone: .utc, hasContext: false)
        for shown in Self.shown([hostile, Self.row(2, "plain")]) { page.add(shown) }
        var html = ""
        page.write([("Words", "<any>\nmore")], warning: "<warning>") { html += $0 + "\n" }
        for part in [
            "&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot; <span class=\"c\">U+202E</span>abc<br/>C:\\x",
            "<span class=\"c\">U+001B</span>[2J שלום</p>",
            "<bdi>&quot;&gt;&lt;img src=x onerror=alert(1)&gt;@example.org</bdi>",
            "<dd dir=\"auto\">&lt;any&gt;<br/>more</dd>", "<p class=\"bad\">&lt;warning&gt;</p>", "<b>&lt;b&gt;</b>",
            // That of `printf '<message/>' | sha256sum`.
            "SHA-256 of the XML <code>\(Self.digest)</code>", "SHA-256 of the fields <code>",
            "of the XML as recorded, or of the fields where the XML is not known",
            "title=\"2026-11-18T11:06:41.000000000Z\">2026-11-18 11:06:41.000Z</time>",
        ] {
            #expect(html.contains(part), "\(part)")
        }
        for part in ["<script", "<img", "<link", "http://", "https://", "url(", "@import", "\u{202E}", "\u{1B}"] {
            #expect(!html.contains(part), "\(part)")
        }
    }

    private static let digest = "03f15b1c58d3cfb5d6852f1406928272c93f165799a765440336d6e4b4d52df4"

    @Test("A table and JSON show what a stanza without a body has instead")
    func showsStanzasWithoutBody() throws {
        var answer = Self.row(1, nil)
        (answer.kind, answer.type, answer.payload) = (.iq, "error", "{jabber:iq:roster}query")
        (answer.condition, answer.roundTrip) = ("item-not-found", 2_500_000)
        var query = SearchQuery(words: "")
        query.kinds = [.iq]
        var found = FoundMessages(query)
        found.add(answer)
        var shown: ShownMessage?
        found.show(query) {
            shown = $0
            return true
        }
        let message = try #require(shown)
        #expect(
            message.csv(hasContext: true).contains(",iq,error,,,{jabber:iq:roster}query,item-not-found,0.0025,1,true")
        )
        let json = message.json(hasContext: false)
        #expect(
            json.contains(
                #""payload":"{jabber:iq:roster}query","condition":"item-not-found","round_trip":0.0025,"copies""#
            )
        )
        #expect(!json.contains("\"body\"") && !json.contains("\"match\""))
        var transcript = Transcript(paint: Paint(isOn: false), hasContext: false)
        _ = transcript.add(message)
        let line = "juliet@example.org: iq error {jabber:iq:roster}query item-not-found (after 2.5 ms)"
        #expect(transcript.end().last?.hasSuffix(line) == true)
    }
}
