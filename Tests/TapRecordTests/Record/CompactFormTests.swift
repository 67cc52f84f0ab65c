import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

@Suite struct CompactFormTests {
    /// A log in the compact form, by default at level info.
    private struct Log: ~Copyable {
        private var form: CompactForm
        private var line = LineBuffer()
        private let filter: LogFilter
        private var sequence: UInt64 = 0

        init(
            _ spec: String = "info",
            width: Int = 80,
            isColoured: Bool = false,
            showsBodies: Bool = false,
            days zone: LocalZone? = nil
        )
            throws
        {
            var style = CompactForm.Style()
            style.namesDays = zone != nil
            style.zone = zone ?? .utc
            style.showsBodies = showsBodies
            style.width = width
            style.isColoured = isColoured
            form = CompactForm(style: style)
            filter = LogFilter(try LogSpec(spec))
        }

        mutating func resize(to width: Int) { form.style.width = width }

        mutating func add(_ sample: Sample) {
            form.append(sample.record, content: sample.content.span, filter.shown(of: sample.record), to: &line)
        }

        /// Adds a record of a session, `milliseconds` after the start of the run.
        mutating func note(
            _ code: String,
            _ words: Prose,
            _ session: UInt64 = 1,
            _ level: Level = .info,
            at milliseconds: Int64
        ) {
            var sample = Sample(.session, level)
            sample.record.session = session
            sample.record.code = code
            sample.record.message = words
            sample.record.monotonic = milliseconds * 1_000_000
            if code == Record.Code.sessionReady { sample.record.jid = "romeo@localhost/balcony" }
            add(sample)
        }

        /// Adds an item, and returns its sequence number.
        @discardableResult
        mutating func item(
            _ direction: Direction,
            _ xml: String,
            _ name: String,
            _ type: String? = nil,
            kind: Record.Kind = .stanza,
            to: String? = nil,
            from: String? = nil,
            summary: Prose? = nil,
            answers: UInt64? = nil,
            session: UInt64 = 1,
            at milliseconds: Int64 = 100,
            _ change: (inout Record) -> Void = { _ in }
        ) -> UInt64 {
            var sample = Sample(kind)
            sequence += 1
            sample.record.sequence = sequence
            sample.record.session = session
            sample.record.jid = "romeo@localhost/balcony"
            sample.record.monotonic = milliseconds * 1_000_000
            sample.item(direction, xml, name: name)
            sample.record.type = type.map { sample.put($0) }
            sample.record.to = to.map { sample.put($0) }
            sample.record.from = from.map { sample.put($0) }
            sample.record.summary = summary
            sample.record.answers = answers
            if answers != nil { sample.record.roundTrip = 152_000 }
            change(&sample.record)
            add(sample)
            return sequence
        }

        mutating func login(_ session: UInt64 = 1) {
            note(Record.Code.sessionBegan, "127.0.0.1:58884 connected", session, at: 0)
            item(.recv, "<features/>", "features", kind: .element, summary: "offers PLAIN", session: session, at: 5)
            item(.send, "<auth/>", "auth", kind: .element, session: session, at: 6)
            item(.recv, "<success/>", "success", kind: .element, session: session, at: 20) {
                $0.sasl = ["mechanism": "SCRAM-SHA-256", "user": "romeo"]
            }
        }

        /// Returns the rows without the time at their beginning.
        mutating func rows() -> [String] {
            form.flush(to: &line)
            return line.text.split(separator: "\n").map {
                $0.hasPrefix("17:22:44.262  ") ? String($0.dropFirst(14)) : String($0)
            }
        }
    }

    @Test func `The first row of a day, and of another UTC offset, is preceded by a line with both`() throws {
        var log = try Log(width: 40, days: .berlin)
        for (time, words) in [
            ("2026-10-24T21:59:59.9Z", "a"), ("2026-10-24T22:00:00Z", "b"), ("2026-10-25T00:59:00Z", "c"),
            ("2026-10-25T01:00:00Z", "d"), ("2026-10-25T02:00:00Z", "e"),
        ] {
            var sample = Sample(.note)
            sample.record.time = try #require(Timestamp(rfc3339: time))
            sample.record.message = "\(words)"
            log.add(sample)
        }
        #expect(
            log.rows().map { $0.split(separator: " ").joined(separator: " ") } == [
                "── 2026-10-24 +02:00 ───────────────────", "23:59:59 · session a",
                "── 2026-10-25 +02:00 ───────────────────", "00:00:00 · session b", "02:59:00 · session c",
                "── 2026-10-25 +01:00 ───────────────────", "02:00:00 · session d", "03:00:00 · session e",
            ]
        )
    }

    @Test func `The line with the day precedes the session's line, and appears once`() throws {
        var log = try Log(days: .utc)
        log.login()
        log.note(Record.Code.sessionReady, "ready", at: 25)
        log.login(2)
        log.note(Record.Code.sessionReady, "ready", 2, at: 25)
        let rules = log.rows().filter { $0.hasPrefix("──") }.map {
            String($0.filter { $0 != "─" }.dropFirst().dropLast())
        }
        #expect(rules.first == "2026-11-21 UTC" && rules.count == 3, "\(rules)")
    }

    @Test func `A successful login is shown by its outcome only`() throws {
        var log = try Log()
        log.login()
        log.note(Record.Code.sessionReady, "ready", at: 25)
        #expect(
            log.rows() == [
                "── 1 · romeo@localhost/balcony · 127.0.0.1:58884 connected ─────────────────────",
                "←  features       offers PLAIN                           11 B",
                "✓  login          SCRAM-SHA-256                 14 ms",
                "✓  ready          romeo@localhost/balcony       25 ms",
            ]
        )
    }

    @Test(arguments: [
        ("<message><body>Ay &amp; me!</body></message>", "body 5 B  \"Ay & me!\""),
        // A newline does not begin a new row, and control sequences do not reach the terminal.
        ("<message><body>a\nb</body></message>", "body 5 B  \"a\\nb\""),
        ("<message><body><![CDATA[<b>]]></body></message>", "body 5 B  \"<b>\""),
        ("<message><body xml:lang='en'>one</body><body xml:lang='de'>eins</body></message>", "body 5 B  \"one\""),
        (
            "<message><received xmlns='urn:xmpp:carbons:2'><forwarded xmlns='urn:xmpp:forward:0'>"
                + "<message xmlns='jabber:client'><body>copy</body></message></forwarded></received></message>",
            "body 5 B  \"copy\""
        ),
        (
            "<message><forwarded xmlns='urn:xmpp:forward:0'><message xmlns='jabber:client'><body>inner</body></message>"
                + "</forwarded><body>outer</body></message>",
            "body 5 B  \"outer\""
        ),
        // Redacted text is not shown, and other elements do not count as a body.
        ("<message><body>[redacted:body-24#0]</body></message>", "body 5 B"),
        ("<message><body/></message>", "body 5 B"), ("<message><body xmlns='urn:x'>x</body></message>", "body 5 B"),
        ("<message><html><body>x</body></html></message>", "body 5 B"), ("<message><body>torn", "body 5 B"),
    ])
    func `A message's text is shown in its row on request`(xml: String, text: String) throws {
        for (isAsked, expected) in [(true, text), (false, "body 5 B")] {
            var log = try Log(showsBodies: isAsked)
            log.item(.recv, xml, "message", "chat", summary: "body 5 B")
            let row = try #require(log.rows().last)
            let words = row.replacing(#/ +/#, with: " ")
            #expect(words.contains("message chat \(expected.replacing("  \"", with: " \""))"), "\(row)")
            #expect(isAsked || !row.contains("\""))
        }
        var style = TextForm.Style()
        style.showsBodies = true
        var sample = Sample(.stanza)
        sample.item(.recv, xml, name: "message")
        sample.record.summary = "body 5 B"
        #expect(try sample.text("info", style: style).contains(" \(text.replacing("  \"", with: " \""));"))
    }

    @Test(arguments: [(Record.Code.loginFailed, Level.error), (Record.Code.sessionEnded, .info), ("x", .error)])
    func `A failed login is shown with all its rows`(code: String, level: Level) throws {
        var log = try Log()
        log.login()
        log.note(code, "failed", 1, level, at: 26)
        let rows = log.rows()
        #expect(rows.count == 5)
        #expect(rows.contains { $0.contains("auth") })
        #expect(rows.last?.contains("failed") == true)
    }

    @Test func `The reason of a failed login precedes the advice, and details that explain shows are omitted`()
        throws
    {
        var log = try Log(width: 120)
        var sample = Sample(.note, .error)
        sample.record.session = 1
        sample.record.code = Record.Code.loginFailed
        sample.record.message = "the login failed at sasl: the password is wrong (RFC 6120 §6.5.10); try: another"
        sample.record.details = [
            Record.Detail.cause: "not-authorized", Record.Detail.finding: "the password is\nwrong",
            Record.Detail.advice: "another",
        ]
        log.add(sample)
        let rows = log.rows().suffix(2).map { $0.trimmingPrefix(while: \.isWhitespace) }
        #expect(rows == ["✗  login failed      not-authorized: the password is\\nwrong", "try: another"])
    }

    @Test func `A login in progress is shown at the end, if it takes long, or if XML is shown`()
        throws
    {
        var log = try Log()
        log.login()
        #expect(log.rows().count == 4)
        var slow = try Log()
        slow.login()
        slow.item(.send, "<iq/>", "iq", "set", at: 3100)
        #expect(slow.rows().contains { $0.contains("iq set") })
        #expect(slow.rows().contains { $0.contains("→  auth") })
        var verbose = try Log("info,send,recv")
        verbose.login()
        verbose.note(Record.Code.sessionReady, "ready", at: 25)
        #expect(verbose.rows().contains("    <auth/>"))
    }

    @Test func `A request and its answer share a number, and the peer is shown if it differs`() throws {
        var log = try Log()
        let ping = log.item(.send, "<iq/>", "iq", "get", to: "localhost", summary: "ping")
        let version = log.item(.send, "<iq/>", "iq", "get", to: "juliet@localhost/chamber", summary: "version")
        log.item(.recv, "<iq/>", "iq", "result", from: "juliet@localhost/chamber", summary: "ok", answers: version)
        log.item(.recv, "<iq/>", "iq", "error", from: "localhost", summary: "refused", answers: ping) {
            $0.condition = "service-unavailable"
        }
        // The log does not contain the request of this answer, so no number is shown.
        log.item(.recv, "<iq/>", "iq", "result", from: "juliet@localhost/chamber", summary: "ok", answers: 99)
        log.item(.send, "<message/>", "message", "chat", to: "a@b.example/c", summary: "body 24 B")
        log.item(.recv, "<message/>", "message", "groupchat", from: "room@muc/nick", summary: "body 3 B")
        #expect(
            log.rows().dropFirst()
                == [
                    "→  iq get         ping                                    5 B  #1",
                    "→  iq get         to juliet/chamber  version              5 B  #2",
                    "←  iq result      ok                           152 µs     5 B  #2",
                    "✗  iq error       service-unavailable          152 µs     5 B  #1",
                    "←  iq result      from juliet/chamber  ok      152 µs     5 B",
                    "→  message chat   to a@b.example/c  body 24 B            10 B",
                    "←  groupchat      from room@muc/nick  body 3 B           10 B",
                ]
        )
    }

    @Test func `The cause of an error replaces its figures, but not the number of its request`() throws {
        // Columns of the terminal, and the expected row.
        let rows = [
            (64, "✗  iq error       not-allowed: no remote dom…  #1"),
            (80, "✗  iq error       not-allowed: no remote domains here: ping    #1"),
            (90, "✗  iq error       not-allowed: no remote domains here: ping         5 B  #1"),
            (100, "✗  iq error          not-allowed: no remote domains here: ping     152 µs     5 B  #1"),
        ]
        for (width, row) in rows {
            var log = try Log(width: width)
            let ping = log.item(.send, "<iq/>", "iq", "get", to: "localhost", summary: "ping")
            log.item(.recv, "<iq/>", "iq", "error", from: "localhost", summary: "refused: ping", answers: ping) {
                $0.condition = "not-allowed"
                $0.message = "no remote domains here"
            }
            #expect(log.rows().last == row)
        }
    }

    @Test func `Repeated rows are counted`() throws {
        var log = try Log("verbose")
        for _ in 0..<3 { log.item(.recv, "<r/>", "r", kind: .element) }
        log.item(.send, "<a/>", "a", kind: .element)
        let rows = log.rows().filter { !$0.hasPrefix("    <") }
        #expect(rows.dropFirst().count == 4, "the XML is shown each time")
        var info = try Log()
        for _ in 0..<3 { info.item(.recv, "<presence/>", "presence", from: "juliet@localhost/x", summary: "available") }
        info.item(.recv, "<presence/>", "presence", from: "nurse@localhost/x", summary: "available")
        #expect(info.rows().dropFirst(2).first == "              ⋮  2 more of these")
        #expect(info.rows().count == 4)
    }

    @Test func `Rows name their session if there are several`() throws {
        var log = try Log()
        log.item(.send, "<message/>", "message", session: 1)
        log.item(.send, "<message/>", "message", session: 2)
        log.item(.send, "<message/>", "message", session: 1)
        let rows = log.rows()
        #expect(rows.filter { $0.hasPrefix("── ") }.count == 2)
        #expect(rows[1].hasPrefix("→  message"))
        #expect(rows.last?.hasPrefix("1 →  message") == true)
    }

    @Test(arguments: [
        (60, "1 ✓  ready          romeo@localh…   25 ms", "2 ←  iq result      roster: 2 co…  152 µs  #1"),
        (
            80, "1 ✓  ready          romeo@localhost/balcony     25 ms",
            "2 ←  iq result      roster: 2 contacts, rome…  152 µs     5 B  #1"
        ),
        (
            120, "1 romeo/balcony      ✓  ready             romeo@localhost/balcony                       25 ms",
            "2 romeo/balcony      ←  iq result         roster: 2 contacts, romeo and juliet         152 µs     5 B  #1"
        ),
    ])
    func `Concurrent logins have a session column, with their account if it fits`(
        width: Int,
        ready: String,
        answer: String
    ) throws {
        var log = try Log(width: width)
        log.login(1)
        log.login(2)
        log.note(Record.Code.sessionReady, "ready", 1, at: 25)
        log.note(Record.Code.sessionReady, "ready", 2, at: 26)
        let roster = log.item(.send, "<iq/>", "iq", "get", summary: "asks for the roster", session: 2)
        let words: Prose = "roster: 2 contacts, romeo and juliet"
        log.item(.recv, "<iq/>", "iq", "result", summary: words, answers: roster, session: 2)
        let rows = log.rows()
        #expect(rows.count == 10)
        #expect(rows[3] == ready)
        #expect(rows.last == answer)
        let numbered = rows.filter { !$0.hasPrefix("── ") }
        #expect(numbered.allSatisfy { $0.hasPrefix("1 ") || $0.hasPrefix("2 ") }, "\(rows)")
    }

    @Test func `The width of the session column depends on the account, the number and the terminal`() throws {
        var log = try Log(width: 120)
        func say(_ session: UInt64, _ jid: String, _ log: inout Log) {
            log.item(.recv, "<message/>", "message", "chat", from: "e\u{301}@x/r", summary: "x", session: session) {
                $0.jid = jid
            }
        }
        say(1, "romeo@x/r", &log)
        say(2, "e\u{301}e\u{301}@x/r", &log)
        say(2, "\u{E9}\u{E9}@x/r", &log)
        say(2, "e\u{301}@y/r", &log)
        log.resize(to: 90)
        say(2, "e\u{301}@y/r", &log)
        log.resize(to: 120)
        say(2, "e\u{301}@y/r", &log)
        say(10, "x", &log)
        say(2, "\u{E9}@y/r", &log)
        let rows = log.rows().filter { !$0.hasPrefix("── ") }
        let starts: [String] = [
            "←  message chat      from e\u{301}/r  x",
            "2 e\u{301}e\u{301}        ←  message chat      from e\u{301}/r  x",
            "2 \u{E9}\u{E9}        ←  message chat      from e\u{301}/r  x",
            "2 e\u{301}         ←  message chat      from e\u{301}@x/r  x",
            "2 ←  message chat   from e\u{301}@x/r  x",
            "2 e\u{301}         ←  message chat      from e\u{301}@x/r  x",
            "10 x         ←  message chat      from e\u{301}@x/r  x",
            " 2 \u{E9}         ←  message chat      from e\u{301}@x/r  x",
        ]
        #expect(rows.count == starts.count)
        for (row, start) in zip(rows, starts) { #expect(Array(row.utf8).starts(with: Array(start.utf8)), "\(row)") }
    }

    @Test func `Two sessions of one account are shown with their resources, like another client of it`() throws {
        var log = try Log(width: 100)
        for (index, jid) in ["romeo@x/orchard", "juliet@x/balcony", "romeo@x/phone"].enumerated() {
            let session = UInt64(index) + 1
            log.item(.send, "<message/>", "message", "chat", to: "nurse@x", summary: "x", session: session) {
                $0.jid = jid
            }
        }
        for sender in ["romeo@x/orchard", "romeo@x/phone", "romeo@x"] {
            log.item(.recv, "<message/>", "message", "chat", from: sender, summary: "x") { $0.jid = "romeo@x/orchard" }
        }
        let rows = log.rows().filter { !$0.hasPrefix("── ") }.map {
            $0.replacing(#/ +\d+ B$/#, with: "")
        }
        #expect(
            rows == [
                "→  message chat      to nurse  x", "2 juliet    →  message chat      to nurse  x",
                "3 romeo/phone        →  message chat      to nurse  x", "1 romeo/orchard      ←  message chat      x",
                "1 romeo/orchard      ←  message chat      from /phone  x",
                "1 romeo/orchard      ←  message chat      x",
            ]
        )
    }

    @Test(arguments: [
        ("receipt for 3f4c69dd-607c-4ec5-9216-60f8c44c0bdc, active", "receipt for 3f4c69dd…, active"),
        ("receipt for 3F4C69DD-607C-4EC5-9216-60F8C44C0BDC", "receipt for 3F4C69DD…"),
        ("item (sLSbQsSoOUQIADd737b45fd5fc9edc76)", "item (sLSbQsSo…)"), ("short id a1b2c3d4e5", "short id a1b2c3d4e5"),
        ("offers SCRAM-SHA-256-PLUS TLS_AES_256_GCM_SHA384", "offers SCRAM-SHA-256-PLUS TLS_AES_256_GCM_SHA384"),
        ("urn:xmpp:jingle:apps:file-transfer:5", "urn:xmpp:jingle:apps:file-transfer:5"),
        ("romeo2345678901234567890@localhost", "romeo2345678901234567890@localhost"),
        ("photo_20261121_1234567890123.jpg", "photo_20261121_1234567890123.jpg"),
        ("incomprehensibilities-everywhere", "incomprehensibilities-everywhere"), ("", ""),
    ])
    func `Long ids are shortened to their beginning`(summary: String, shown: String) throws {
        var log = try Log(width: 200)
        log.item(.recv, "<message/>", "message", "chat", summary: Prose(summary))
        let row = try #require(log.rows().last).replacing(#/ +\d+ B$/#, with: "")
        #expect(row.hasSuffix(shown.isEmpty ? "message chat" : "  \(shown)"), "\(row)")
        var sample = Sample(.stanza)
        sample.item(.recv, "<message/>", name: "message")
        sample.record.summary = Prose(summary)
        #expect(try sample.text("info").contains(summary), "lines keep them")
    }

    @Test func `A text replaces missing figures in a row, and a session's line is cut at what fits`()
        throws
    {
        let long: Prose = "one two three four five six seven eight nine ten"
        var log = try Log()
        log.note("x", long, at: 1)
        log.item(.send, "<message/>", "message", "chat", summary: long)
        log.item(.send, "<message/>", "message", "unsubscribed", summary: long) { $0.roundTrip = 1_000_000 }
        #expect(
            log.rows().dropFirst() == [
                "·  session        one two three four five six seven eight nine ten",
                "→  message chat   one two three four five six seven …    10 B",
                "→  unsubscribed   one two three four five si…  1.0 ms    10 B",
            ]
        )
        for (width, words) in [(100, "127.0.0.1:5 → 127.0.0.1:6 ─"), (50, "127.0.0.1:5 ─")] {
            var log = try Log(width: width)
            var failed = try Log(width: width)
            var sample = Sample(.session)
            sample.record.session = 1
            sample.record.code = Record.Code.sessionBegan
            sample.record.remote = "127.0.0.1:5"
            sample.record.message = "127.0.0.1:5 connected, to be relayed to 127.0.0.1:6"
            sample.record.details = [Record.Detail.upstream: "127.0.0.1:6"]
            log.add(sample)
            failed.add(sample)
            log.note(Record.Code.sessionReady, "ready", at: 25)
            #expect(log.rows().first?.hasPrefix("── 1 · romeo@localhost/balcony ← \(words)") == true)
            // After a failed login, the line shows the user name that the client tried.
            failed.item(.send, "<auth/>", "auth", kind: .element) {
                $0.jid = nil
                $0.user = "romeo"
            }
            failed.note(Record.Code.loginFailed, "failed", 1, .error, at: 26)
            #expect(failed.rows().first?.hasPrefix("── 1 · ~romeo ← 127.0.0.1:5 → 127.0.0.1:6 ─") == true)
        }
    }

    @Test func `XML is shown below its row, and long values are cut in the middle`() throws {
        var log = try Log("info,send", isColoured: true)
        let long = String(repeating: "x", count: 300)
        log.item(.send, "<message to='a@b'><body>Hi &lt;b&gt;</body><x v='\(long)'/></message>", "message")
        let text = log.rows().joined(separator: "\n")
        #expect(text.contains("\n    \u{1B}[34m<message\u{1B}[0m\u{1B}[2m to=\u{1B}[0m\u{1B}[33m'a@b'\u{1B}[0m"))
        #expect(text.contains("Hi &lt;b&gt;"))
        #expect(text.contains("xxx … 202 B … xxx"))
    }

    @Test(arguments: [1, 20, 39, 40, 59, 60, 75, 76, 80, 100, 120, 200, 240])
    func `No row is wider than the terminal, whatever it contains`(width: Int) throws {
        var random = SeededGenerator(seed: UInt64(width))
        var log = try Log("trace", width: width)
        var count = 0
        for _ in 0..<300 {
            var sample = Sample.random(&random)
            // Checks rows only, because the terminal wraps XML.
            sample.record.xml = nil
            sample.record.edited = nil
            log.add(sample)
            count += 1
        }
        let rows = log.rows()
        #expect(rows.count > 100)
        for row in rows {
            let taken =
                Columns.count(Array(row.utf8).span)
                + (width >= 60 && !row.hasPrefix("──") && !row.hasPrefix(" ") ? 14 : 0)
            #expect(taken <= max(20, width) + (width >= 60 ? 14 : 0), "\(row)")
            #expect(!row.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F })
        }
    }

    @Test(arguments: [
        ("abc", 3), ("ä", 1), ("e\u{301}", 1), ("日本", 4), ("한", 2), ("👩‍🚀", 2), ("🌹", 2), ("❤️", 2), ("🇩🇪", 2), ("👍🏽", 2),
        ("שלום", 4), ("ｱ", 1), ("🫠", 2), ("กำ", 2),
    ])
    func `The width of characters is counted in terminal columns`(text: String, columns: Int) {
        #expect(Columns.count(Array(text.utf8).span) == columns)
    }

    @Test func `A text is cut between characters`() {
        func cut(_ text: String, _ columns: Int) -> String {
            let line = LineBuffer.text { line in
                line.append(string: "日本")
                let start = line.count
                line.append(string: text)
                let taken = line.cut(from: start, to: columns)
                #expect(taken == Columns.count(line.utf8.extracting(start...)))
            }
            #expect(line.hasPrefix("日本"))
            return String(line.dropFirst(2))
        }
        #expect(cut("日本語", 6) == "日本語")
        #expect(cut("日本語", 5) == "日本…")
        #expect(cut("日本語", 4) == "日…")
        #expect(cut("e\u{301}e\u{301}e\u{301}", 2) == "e\u{301}…")
        #expect(cut("abc", 0) == "")
        #expect(cut("abc", 1) == "…")
        #expect(cut("abc", 3) == "abc")
        #expect(cut("abcdefghijkl", 11) == "abcdefghij…")
    }

    @Test func `A terminal without UTF-8 gets ASCII with the same columns`() {
        func ascii(_ text: String) -> String {
            LineBuffer.text { line in
                line.append("é")
                line.append(string: text)
                line.makeASCII(from: 2)
            }
        }
        #expect(ascii("→ ← ✓ ✗ ── · … 2 × 3 µs") == "é> < + ! -- - ~ 2 x 3 us")
        #expect(ascii("日本e\u{301}\u{1F600}!") == "é????e??!")
        #expect(ascii("plain") == "éplain")
    }
}
