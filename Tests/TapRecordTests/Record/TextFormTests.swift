import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct TextFormTests {
    @Test func `a stanza is described in one line`() throws {
        #expect(
            try Sample.roster.text("info")
                == "2026-11-21T17:22:44.262Z info [3 1024@192.168.1.1/iOS_V1.0] RECV iq result 192.168.1.1 → iOS_V1.0 id=7 "
                + "roster: 2 contacts: a@b, c@d; 1.2 kB 38 ms\n"
        )
    }

    @Test func `an item is shown in the format of XMPPFramework`() throws {
        var sample = Sample(.streamOpen)
        sample.record.session = 3
        sample.item(.send, "<stream:stream xmlns='jabber:client' to='192.168.1.1'>", name: "stream")
        #expect(
            try sample.text("off,send")
                == "2026-11-21T17:22:44.262Z [3] SEND: <stream:stream xmlns='jabber:client' to='192.168.1.1'>\n"
        )
        #expect(
            try Sample.roster.text("off,recv")
                == "2026-11-21T17:22:44.262Z [3 1024@192.168.1.1/iOS_V1.0] RECV: <iq type=\"result\"/>\n"
        )
    }

    @Test func `at level verbose, the item precedes its description`() throws {
        let lines = try Sample.roster.text("verbose").split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines[0].hasSuffix("RECV: <iq type=\"result\"/>"))
        #expect(lines[1].contains(" info [3 "))
        #expect(try Sample.roster.text("warn") == "")
    }

    @Test func `before binding, a session has the name of its user`() throws {
        var sample = Sample(.element, part: .sasl)
        sample.record.session = 3
        sample.record.user = "romeo"
        sample.item(.send, "<auth/>", name: "auth")
        sample.record.sasl = ["mechanism": "PLAIN", "user": "romeo"]
        #expect(
            try sample.text("info") == "2026-11-21T17:22:44.262Z info [3 ~romeo] SEND auth PLAIN, user romeo; 7 B\n"
        )
        sample.record.user = nil
        sample.record.sasl = nil
        #expect(try sample.text("info") == "2026-11-21T17:22:44.262Z info [3] SEND auth 7 B\n")
    }

    @Test func `a user name cannot close the brackets`() throws {
        var sample = Sample(.element, part: .sasl)
        sample.record.session = 3
        sample.record.user = "a] RECV: <b/>] [::1]"
        sample.item(.send, "<auth/>", name: "auth")
        #expect(
            try sample.text("off,send")
                == "2026-11-21T17:22:44.262Z [3 ~a\\u{5d} RECV: <b/>\\u{5d} [::1]] SEND: <auth/>\n"
        )
    }

    @Test func `the default address is shown if from or to is missing`() throws {
        func told(_ direction: Direction, _ name: String, from: String? = nil, to: String? = nil) throws -> String {
            var sample = Sample.bound(.stanza)
            sample.item(direction, "<x/>", name: name)
            sample.record.from = from.map { sample.put($0) }
            sample.record.to = to.map { sample.put($0) }
            let text = try sample.text("info")
            return String(
                text.dropFirst("2026-11-21T17:22:44.262Z info [3 1024@192.168.1.1/iOS_V1.0] ".count).dropLast()
            )
        }
        #expect(try told(.send, "iq") == "SEND iq iOS_V1.0 → 1024@192.168.1.1 4 B")
        #expect(try told(.recv, "iq") == "RECV iq 1024@192.168.1.1 → iOS_V1.0 4 B")
        #expect(try told(.send, "message", to: "a@b") == "SEND message iOS_V1.0 → a@b 4 B")
        #expect(try told(.send, "presence") == "SEND presence iOS_V1.0 4 B")
        #expect(try told(.recv, "presence", from: "a@b/c") == "RECV presence a@b/c → iOS_V1.0 4 B")
        #expect(
            try told(.recv, "message", from: "a@b", to: "1024@192.168.1.1")
                == "RECV message a@b → 1024@192.168.1.1 4 B"
        )
    }

    @Test func `before a JID is bound, missing addresses are not shown`() throws {
        var sample = Sample(.stanza)
        sample.record.session = 3
        sample.item(.send, "<iq/>", name: "iq")
        #expect(try sample.text("info") == "2026-11-21T17:22:44.262Z info [3] SEND iq 5 B\n")
        sample.record.to = sample.put("localhost")
        #expect(try sample.text("info") == "2026-11-21T17:22:44.262Z info [3] SEND iq → localhost 5 B\n")
    }

    @Test(arguments: [
        ("query", Namespace.roster, "", "{jabber:iq:roster}query"), ("ping", .ping, "", "{urn:xmpp:ping}ping"),
        ("query", .other, "jabber:iq:custom", "{jabber:iq:custom}query"), ("query", .none, "", "query"),
        ("body", .client, "", "body"),
    ])
    func `without a summary, the name of the payload is shown`(
        name: String,
        namespace: Namespace,
        uri: String,
        word: String
    ) throws {
        var sample = Sample(.stanza)
        sample.record.session = 3
        sample.item(.send, "<iq/>", name: "iq")
        sample.record.payloadName = sample.put(name)
        sample.record.payloadNamespace = namespace
        sample.record.payloadURI = sample.put(uri)
        #expect(try sample.text("info") == "2026-11-21T17:22:44.262Z info [3] SEND iq \(word); 5 B\n")
    }

    @Test func `an error is shown with its condition`() throws {
        var sample = Sample.roster
        sample.record.level = .warn
        sample.record.condition = "item-not-found"
        #expect(try sample.text("warn").hasSuffix(" roster: 2 contacts: a@b, c@d; 1.2 kB 38 ms item-not-found\n"))
        sample.record.message = "no\nsuch item"
        #expect(
            try sample.text("warn").hasSuffix(
                " roster: 2 contacts: a@b, c@d; 1.2 kB 38 ms item-not-found: no\\nsuch item\n"
            )
        )
    }

    @Test func `what xmpptap did is shown before the colon`() throws {
        var sample = Sample.roster
        sample.record.action = "dropped"
        sample.record.rule = "typing.pfw:4"
        let lines = try sample.text("verbose").split(separator: "\n")
        #expect(lines[0].hasSuffix("] RECV dropped typing.pfw:4: <iq type=\"result\"/>"))
        #expect(lines[1].contains("] RECV dropped typing.pfw:4: iq result 192.168.1.1 → "))
        sample.record.action = nil
        sample.record.rule = nil
        sample.record.origin = .tap
        #expect(try sample.text("info").contains("] RECV tap: iq result "))
    }

    @Test(arguments: [(Direction.send, "SEND"), (.recv, "RECV")])
    func `a warning about a direction is not shown as an item of it`(direction: Direction, word: String) throws {
        for kind in [Record.Kind.note, .error] {
            var sample = Sample.bound(kind, .warn)
            sample.record.direction = direction
            sample.record.leg = direction.source
            sample.record.code = "reads-differently"
            sample.record.message = "two parsers read this item differently"
            #expect(
                try sample.text("info")
                    == "2026-11-21T17:22:44.262Z warn [3 1024@192.168.1.1/iOS_V1.0] session: two parsers read this item differently "
                    + "(\(word), reads-differently)\n"
            )
        }
    }

    @Test(
        arguments: [
            (
                LoginStep.code, "tls: failed, tls-alert, it does not know the issuer",
                ["step": "tls", "outcome": "failed", "reason": "it does not know the issuer", "alert": "unknown_ca"]
            ),
            (Record.Code.subscription, "a@b: none → both", ["contact": "a@b", "before": "none", "after": "both"]),
            (Record.Code.sessionBegan, "a session by the client's own log", ["source": "client-log"]),
            (Record.Code.sessionBegan, "a connected, to be relayed to b", ["upstream": "b"]),
        ] as [(String, Prose, Attributes)]
    )
    func `The details in a line do not repeat the message`(code: String, message: Prose, details: Attributes)
        throws
    {
        var sample = Sample.bound(.note)
        sample.record.code = code
        sample.record.message = message
        sample.record.details = details
        sample.record.details?["leg"] = "client"
        #expect(
            try sample.text("info")
                == "2026-11-21T17:22:44.262Z info [3 1024@192.168.1.1/iOS_V1.0] session: \(message) (leg client)\n"
        )
        let json = sample.json()
        for entry in details.entries { #expect(json.contains("\"\(entry.name)\":\"\(entry.value.text)\"")) }
    }

    @Test func `notes are shown with their part`() throws {
        var sample = Sample.bound(.session)
        sample.record.message = "closed by the client"
        sample.record.roundTrip = 2_300_000_000
        sample.record.details = ["sent_stanzas": 4, "streams": .strings(["a", "b"])]
        sample.record.code = "session-ended"
        #expect(
            try sample.text("info")
                == "2026-11-21T17:22:44.262Z info [3 1024@192.168.1.1/iOS_V1.0] session: closed by the client "
                + "(2.3 s; sent stanzas 4)\n"
        )

        var note = Sample(.note, .warn, part: .net)
        note.record.code = "log-disk-full"
        #expect(try note.text("info") == "2026-11-21T17:22:44.262Z warn net: log-disk-full\n")
        note.record.message = "cannot write"
        #expect(try note.text("info") == "2026-11-21T17:22:44.262Z warn net: cannot write (log-disk-full)\n")

        var fault = Sample(.error, .error)
        fault.record.session = 5
        fault.record.direction = .send
        fault.record.code = "mismatched-tag"
        fault.record.condition = "not-well-formed"
        fault.record.message = "the end tag fits no start tag"
        fault.record.bytes = Array("<a></b\u{1B}>".utf8)
        #expect(
            try fault.text("error")
                == "2026-11-21T17:22:44.262Z error [5] session: the end tag fits no start tag (SEND, mismatched-tag, not-well-formed): "
                + "<a></b\\u{1b}>\n"
        )
    }

    @Test func `reads and undecoded bytes are shown with their offset`() throws {
        var sample = Sample(.chunk, .trace, part: .net)
        sample.record.session = 3
        sample.record.direction = .recv
        sample.record.offset = 4096
        sample.record.length = 1460
        #expect(try sample.text("trace") == "2026-11-21T17:22:44.262Z trace [3] RECV chunk 1.5 kB at 4096\n")
        var bytes = sample
        bytes.record.kind = .bytes
        bytes.record.isTruncated = true
        bytes.record.digest = "00ff"
        #expect(
            try bytes.text("trace")
                == "2026-11-21T17:22:44.262Z trace [3] RECV bytes 1.5 kB at 4096 truncated digest=00ff\n"
        )
    }

    @Test func `a record is one line and contains no control characters`() throws {
        var random = SeededGenerator(seed: 8)
        for _ in 0..<3000 {
            var sample = Sample.random(&random)
            sample.record.level = .info
            let text = try sample.text("verbose")
            let isShown =
                sample.record.xml != nil && sample.record.direction != nil
                && ![.whitespace, .note].contains(sample.record.kind)
            let expected = isShown ? 2 : 1
            #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count == expected + 1)
            let hostile = text.unicodeScalars.contains {
                $0 != "\n" && ($0.value < 0x20 || (0x7F..<0xA0).contains($0.value) || $0.properties.isBidiControl)
            }
            #expect(!hostile, "\(text)")
        }
    }

    @Test func `whitespace is described, but not shown`() throws {
        var sample = Sample(.whitespace)
        sample.record.session = 3
        sample.item(.send, "\n", name: "")
        #expect(try sample.text("verbose") == "2026-11-21T17:22:44.262Z info [3] SEND whitespace 1 B\n")
        #expect(try sample.text("off,send") == "")
    }

    @Test func `an item with a verbose description is shown without the description`() throws {
        var sample = Sample(.declaration, .verbose)
        sample.record.session = 3
        sample.item(.send, "<?xml version='1.0'?>", name: "")
        #expect(try sample.text("verbose") == "2026-11-21T17:22:44.262Z [3] SEND: <?xml version='1.0'?>\n")
        #expect(try sample.text("info,send") == "2026-11-21T17:22:44.262Z [3] SEND: <?xml version='1.0'?>\n")
        #expect(try sample.text("info") == "")
    }

    @Test func `a code that equals the condition is shown once`() throws {
        var sample = Sample(.error, .error, part: .session)
        sample.record.message = "it is not XML"
        (sample.record.code, sample.record.condition) = ("unsupported-encoding", "unsupported-encoding")
        #expect(try sample.text("error").hasSuffix(" it is not XML (unsupported-encoding)\n"))
        sample.record.code = "not-xml"
        #expect(try sample.text("error").hasSuffix(" it is not XML (not-xml, unsupported-encoding)\n"))
    }

    @Test func `on a terminal, a long text is cut in the middle`() throws {
        var style = TextForm.Style()
        style.cutsLongTexts = true
        style.cutAdvice = "see the file"
        var sample = Sample(.stanza)
        sample.record.session = 3
        let body = String(repeating: "日", count: 4000)
        sample.item(.send, "<message>\(body)</message>", name: "message")
        let text = try sample.text("off,send", style: style)
        #expect(text.hasPrefix("2026-11-21T17:22:44.262Z [3] SEND: <message>日日"))
        #expect(text.hasSuffix("日日</message>\n"))
        #expect(text.contains("日 … 10 kB cut here; see the file … 日"))
        #expect(!text.contains("\\x"))
        #expect(text.utf8.count < 2048)
        // Texts in files are never cut, nor are texts up to the limit.
        #expect(try sample.text("off,send").contains(body))
        sample = Sample(.stanza)
        sample.item(.send, String(repeating: "x", count: 2048), name: "message")
        #expect(try sample.text("off,send", style: style).contains(String(repeating: "x", count: 2048)))
    }

    @Test func `only the style adds colours`() throws {
        var style = TextForm.Style()
        style.isColoured = true
        var sample = Sample.roster
        sample.record.level = .warn
        let text = try sample.text("warn,recv", style: style)
        #expect(text.contains("] \u{1B}[32mRECV\u{1B}[0m: <iq"))
        #expect(text.contains("2026-11-21T17:22:44.262Z \u{1B}[33mwarn\u{1B}[0m [3 "))
        #expect(!(try sample.text("warn,recv").contains("\u{1B}")))
    }
}

@Suite struct PrettyFormTests {
    private func pretty(_ xml: String) throws -> String {
        var style = TextForm.Style()
        style.indentsXML = true
        var sample = Sample(.stanza)
        sample.record.session = 3
        sample.item(.recv, xml, name: "iq")
        return String(try sample.text("off,recv", style: style).dropFirst("2026-11-21T17:22:44.262Z [3] RECV:\n".count))
    }

    @Test func `elements get separate lines, and texts are kept`() throws {
        #expect(
            try pretty(
                "<iq type='get'> <query xmlns=\"a>b\"><item/><item name='x'>text <b>bold</b> more</item>\n</query></iq>"
            )
                == """
                    <iq type='get'>
                      <query xmlns="a>b">
                        <item/>
                        <item name='x'>text <b>bold</b> more</item>
                      </query>
                    </iq>

                """
        )
        #expect(try pretty("<a></a>") == "    <a></a>\n")
        #expect(try pretty("<a><b></b><c/></a>") == "    <a>\n      <b></b>\n      <c/>\n    </a>\n")
        #expect(try pretty("<?xml version='1.0'?>") == "    <?xml version='1.0'?>\n")
        #expect(try pretty("<stream:stream to='x'>") == "    <stream:stream to='x'>\n")
        #expect(
            try pretty("<m><body><![CDATA[<a>]] ]]></body><x/></m>")
                == "    <m>\n      <body><![CDATA[<a>]] ]]></body>\n      <x/>\n    </m>\n"
        )
    }

    @Test(arguments: [
        "", "<", ">", "</a>", "</a></b>", "text", "a<b", "<a", "<a b='", "<a b='>", "<![CDATA[", "<![CDATA[x",
        "<a>t</b></c>d<e>",
        "]]>", "<>", "</>", "<a/></a>",
    ])
    func `malformed XML is shown completely`(xml: String) throws {
        let shown = try pretty(xml)
        #expect(shown.filter { $0 != " " && $0 != "\n" } == xml.filter { $0 != " " && $0 != "\n" })
    }

    @Test func `indenting random text keeps all other bytes`() throws {
        var random = SeededGenerator(seed: 9)
        let pieces = ["<a>", "</a>", "<b/>", "x", "'", "\"", "<c d='>'>", "</c>", "<![CDATA[", "]]>", "<", ">", "/"]
        for _ in 0..<2000 {
            let xml = (0..<Int.random(in: 0..<20, using: &random)).map { _ in
                pieces[Int.random(in: pieces.indices, using: &random)]
            }
            .joined()
            let shown = try pretty(xml)
            #expect(shown.filter { $0 != " " && $0 != "\n" } == xml.filter { $0 != " " }, "\(xml)")
        }
    }

    @Test func `deep nesting does not cause long lines`() throws {
        let depth = 5000
        let shown = try pretty(String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth))
        #expect(shown.utf8.count < depth * 2 * 60)
        #expect(shown.split(separator: "\n").allSatisfy { $0.utf8.count <= 60 })
    }
}
