import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapReplay

/// A session of recorded items, one per line as in ``RecordedText``, served to `live@there/new`.
private struct Scene {
    var session: ServedSession
    private(set) var now: Int64 = 0
    private(set) var reported: [Divergence] = []
    private let parser = StanzaParser()

    init(_ lines: String, settings: ServedSession.Settings = .init()) throws {
        let text = try RecordedText("0 1 ready romeo@here/old\n\(lines)\n999 1 ended")
        let conversation = try #require(text.conversations.first)
        let live = try JID(parsing: "live@there/new")
        session = ServedSession(
            conversation,
            live: live,
            resumptionID: "id",
            settings: settings,
            parser: parser,
            at: 0
        )
    }

    /// Suspends and resumes the session; nil if it cannot be resumed.
    mutating func resume(_ handled: UInt32) -> [String]? {
        session.suspend()
        guard let answer = session.resume(handled: handled, xmlns: "urn:xmpp:sm:3", at: now) else { return nil }
        return [String(decoding: answer, as: UTF8.self)] + drain()
    }

    /// Passes an item from the client; returns the server's actions.
    mutating func receive(_ xml: String) throws -> [String] {
        session.receive(try request(xml), at: now)
        return drain()
    }

    /// Parses a request.
    func request(_ xml: String) throws -> Element {
        try parser.parse(Array(xml.utf8).span, root: StanzaForm.clientDeclarations)
    }

    mutating func wait(until time: Int64) -> [String] {
        now = time
        session.tick(at: time)
        return drain()
    }

    mutating func drain() -> [String] {
        var words: [String] = []
        while let event = session.next() {
            switch event {
            case .send(let bytes): words.append(String(decoding: bytes, as: UTF8.self))
            case .ask(let iq): words.append("asked \(iq.attribute("id") ?? "")")
            case .overflow: words.append("overflow")
            case .report(let divergence):
                words.append("report \(divergence.code.rawValue)")
                reported.append(divergence)
            case .close: words.append("close")
            }
        }
        return words
    }
}

@Suite struct ServedSessionTests {
    private static let roster = """
        1 1 send <iq type='get' id='a1'><query xmlns='jabber:iq:roster'/></iq>
        2 1 recv <iq type='result' id='a1' to='romeo@here/old'><query xmlns='jabber:iq:roster'><item jid='juliet@here' subscription='both'/></query></iq>
        3 1 send <presence/>
        4 1 recv <presence from='juliet@here/phone' to='romeo@here/old'/>
        5 1 recv <message from='juliet@here/phone' to='romeo@here'><body>hi</body></message>
        """

    @Test func `a request gets its recorded answer with its own identifier`() throws {
        var scene = try Scene(Self.roster)
        #expect(scene.drain() == [])
        let answer = try scene.receive("<iq id='x9' type='get'><query xmlns='jabber:iq:roster'/></iq>")
        let expected =
            "<iq type='result' id='x9' to='live@there/new'><query xmlns='jabber:iq:roster'>"
            + "<item jid='juliet@there' subscription='both'/></query></iq>"
        #expect(answer == [expected])
        // A repeated request gets the same answer.
        let again = try scene.receive("<iq id='x10' type='get'><query xmlns='jabber:iq:roster'/></iq>")
        #expect(again == [expected.replacing("x9", with: "x10")])
    }

    @Test func `recorded stanzas without a request are sent at their place`() throws {
        var scene = try Scene(Self.roster)
        _ = try scene.receive("<iq id='x9' type='get'><query xmlns='jabber:iq:roster'/></iq>")
        let words = try scene.receive("<presence/>")
        #expect(
            words == [
                "<presence from='juliet@there/phone' to='live@there/new'/>",
                "<message from='juliet@there/phone' to='live@there'><body>hi</body></message>",
            ]
        )
    }

    @Test func `the server stops waiting for a stanza that the client does not send`() throws {
        var scene = try Scene(Self.roster)
        _ = try scene.receive("<presence/>")
        #expect(scene.session.deadline == 2_000_000_000)
        #expect(scene.wait(until: 1_999_999_999) == [])
        let words = scene.wait(until: 2_000_000_000)
        #expect(words.first == "report missing" && words.count == 3)
        #expect(scene.session.deadline == nil)
    }

    @Test func `unrecorded requests are refused and reported`() throws {
        var scene = try Scene(Self.roster)
        #expect(
            try scene.receive("<iq id='v' type='get' to='here'><query xmlns='jabber:iq:version'/></iq>")
                == ["report unexpected", "asked v"]
        )
        #expect(try scene.receive("<message to='a@b'><body>new</body></message>") == ["report unexpected"])
        #expect(try scene.receive("<nonsense xmlns='x'/>") == ["report unexpected"])
        // Answers and errors without a request are ignored.
        #expect(try scene.receive("<iq id='v' type='result'/>") == [])
        #expect(try scene.receive("<message type='error'/>") == [])
    }

    @Test func `secrets of clients are not reported`() throws {
        var scene = try Scene(Self.roster)
        _ = try scene.receive(
            "<iq id='9' type='set'><query xmlns='jabber:iq:register'><password>hunter2</password></query></iq>"
        )
        let divergence = try #require(scene.reported.first)
        #expect(!"\(divergence)".contains("hunter2"))
        #expect(divergence.live?.text.contains("[redacted:password#1]") == true)
    }

    @Test func `a changed request for the same purpose is answered and reported`() throws {
        var scene = try Scene(Self.roster)
        let words = try scene.receive("<iq id='r' type='get'><query xmlns='jabber:iq:roster' other='1'/></iq>")
        #expect(words.first == "report changed" && words.last?.contains("id='r'") == true)
    }

    @Test func `pings and stream management are answered live`() throws {
        var scene = try Scene(Self.roster)
        #expect(
            try scene.receive("<iq id='p' type='get' to='there'><ping xmlns='urn:xmpp:ping'/></iq>")
                == ["<iq type='result' id='p' from='there' to='live@there/new'/>"]
        )
        #expect(try scene.receive("<enable xmlns='urn:xmpp:sm:3'/>") == ["<enabled xmlns='urn:xmpp:sm:3'/>"])
        _ = try scene.receive("<iq id='p' type='get'><ping xmlns='urn:xmpp:ping'/></iq>")
        _ = try scene.receive("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        #expect(try scene.receive("<r xmlns='urn:xmpp:sm:3'/>") == ["<a xmlns='urn:xmpp:sm:3' h='1'/>"])
        #expect(try scene.receive("<inactive xmlns='urn:xmpp:csi:0'/>") == [])
    }

    @Test func `a client that lost its connection resumes and gets the missed items`() throws {
        var scene = try Scene(Self.roster)
        #expect(!scene.session.isResumable)
        #expect(
            try scene.receive("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
                == ["<enabled xmlns='urn:xmpp:sm:3' id='id' resume='true'/>"]
        )
        #expect(scene.session.isResumable)
        _ = try scene.receive("<iq id='x9' type='get'><query xmlns='jabber:iq:roster'/></iq>")
        let got = try scene.receive("<presence/>")
        #expect(got.count == 2)
        _ = try scene.receive("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        let resumed = "<resumed xmlns='urn:xmpp:sm:3' previd='id' h='2'/>"
        let (first, second) = (scene.resume(2), scene.resume(3))
        #expect(first == [resumed, got[1]] && second == [resumed])
        // The client cannot have received more than was sent, or less than it acknowledged before.
        let impossible = [scene.resume(4), scene.resume(2)]
        #expect(impossible == [nil, nil])
    }

    @Test func `after a resumption, an incomplete item is sent again before the waiting ones`() throws {
        var settings = ServedSession.Settings()
        settings.keepsChunks = true
        let message = "<message from='a@b'><body>né</body></message>"
        let conversation = try #require(
            try Self.conversation([
                #""kind":"stanza","direction":"send","name":"presence","xml":"<presence/>""#,
                #""kind":"stanza","direction":"recv","name":"message","chunks":[28],"xml":"\#(message)""#,
            ])
        )
        let live = try JID(parsing: "romeo@here/x")
        var session = ServedSession(
            conversation,
            live: live,
            resumptionID: "id",
            settings: settings,
            parser: StanzaParser(),
            at: 0
        )
        for item in [
            "<enable xmlns='urn:xmpp:sm:3' resume='1'/>", "<presence/>",
            "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>",
        ] {
            let element = try StanzaParser().parse(Array(item.utf8).span, root: StanzaForm.clientDeclarations)
            session.receive(element, at: 0)
        }
        func sent() -> String {
            var text = ""
            while case .send(let bytes)? = session.next() { text += String(decoding: bytes, as: UTF8.self) }
            return text
        }
        #expect(!sent().contains("</message>"))
        session.suspend()
        let goesOn = session.resume(handled: 0, xmlns: "urn:xmpp:sm:3", at: 1)
        #expect(goesOn != nil)
        #expect(sent().hasSuffix("\(message)<iq type='result' id='p' to='romeo@here/x'/>"))
        #expect(session.deadline == nil)
    }

    @Test func `recorded delays are repeated at the chosen speed`() throws {
        var settings = ServedSession.Settings()
        settings.pace = .recorded(speed: 2)
        var scene = try Scene(
            """
            100 1 send <presence/>
            300 1 recv <message from='a@b'><body>1</body></message>
            400 1 recv <message from='a@b'><body>2</body></message>
            """,
            settings: settings
        )
        #expect(try scene.receive("<presence/>") == [])
        #expect(scene.wait(until: 99_999_999) == [])
        #expect(scene.wait(until: 100_000_000) == ["<message from='a@b'><body>1</body></message>"])
        #expect(scene.wait(until: 150_000_000) == ["<message from='a@b'><body>2</body></message>"])
    }

    @Test func `the recorded end of the server's stream is played`() throws {
        let error = "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        let conversation = try #require(
            try Self.conversation([
                #""kind":"element","direction":"recv","name":"error","xml":"\#(error)""#,
                #""kind":"stream-close","direction":"recv","xml":"</stream:stream>""#,
                #""kind":"session","code":"session-ended""#,
            ])
        )
        let live = try JID(parsing: "romeo@here/x")
        var session = ServedSession(conversation, live: live, parser: StanzaParser(), at: 0)
        guard case .send(let bytes)? = session.next(), case .close? = session.next() else {
            Issue.record("the stream does not end")
            return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == error)
    }

    @Test func `items that neither side sent are reported at the end`() throws {
        var scene = try Scene(Self.roster)
        scene.session.end()
        #expect(scene.drain() == ["report missing", "report missing", "report unsent", "report unsent"])
        #expect(scene.session.deadline == nil)
    }

    @Test(
        arguments: [
            // Unchanged; after a longer value; within a longer value; after a shorter value; at the ends.
            ([2, 5], "abcdef", "abcdef", [2, 5]),
            ([1, 5], "ab12ef", "ab789ef", [1, 6]),
            ([3], "ab12ef", "ab789ef", [3]),
            ([6], "ab1234ef", "ab7ef", [3]),
            ([0, 6, 99], "abcdef", "abcdef", []),
            // Boundaries outside the item are ignored.
            ([7, 9_223_372_036_854_775_807], "abcdef", "ab789cdef", []),
        ] as [([UInt64], String, String, [Int])]
    )
    func `chunk boundaries move with changed values`(
        _ chunks: [UInt64],
        _ recorded: String,
        _ live: String,
        _ expected: [Int]
    ) {
        #expect(ServedSession.boundaries(chunks, from: Array(recorded.utf8), to: Array(live.utf8)) == expected)
    }

    /// Creates a conversation of records with these fields, after a login.
    private static func conversation(_ records: [String]) throws -> RecordedConversation? {
        var reader = ConversationReader()
        reader.add(.test())
        let login = #""kind":"session","code":"session-ready","jid":"romeo@here/old""#
        let common = #""time":"2026-11-22T10:00:00Z","monotonic":0.1,"level":"info","session":1"#
        for (index, fields) in ([login] + records).enumerated() {
            let line = #"{"sequence":\#(index + 1),\#(common),\#(fields)}"#
            reader.add(try RecordLine(json: Array(line.utf8).span.bytes))
        }
        return reader.conversations().first
    }

    @Test func `recorded chunks are sent separately`() throws {
        let conversation = try #require(
            try Self.conversation([
                #""kind":"stanza","direction":"recv","name":"message","chunks":[28],"#
                    + #""xml":"<message from='a@b'><body>né</body></message>""#
            ])
        )
        var settings = ServedSession.Settings()
        settings.keepsChunks = true
        let live = try JID(parsing: "romeo@here/x")
        var session = ServedSession(conversation, live: live, settings: settings, parser: StanzaParser(), at: 0)
        var pieces: [[UInt8]] = []
        for time in [0, settings.chunkGap] {
            session.tick(at: time)
            while case .send(let bytes)? = session.next() { pieces.append(bytes) }
            #expect(pieces.count == (time == 0 ? 1 : 2))
        }
        #expect(pieces.first?.last == 0xC3 && pieces.last?.first == 0xA9)
        #expect(String(decoding: pieces.joined(), as: UTF8.self) == "<message from='a@b'><body>né</body></message>")
    }

    @Test func `prefixes of the recorded header are resolved`() throws {
        let header =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:x='urn:x' from='here'>"
        var scene = try Scene("0 1 recv \(header)\n1 1 recv <message><x:y/></message>\n2 1 recv <message id='2'/>")
        #expect(scene.drain() == ["<message><y xmlns='urn:x'/></message>", "<message id='2'/>"])
    }

    @Test func `live answers wait until an item is sent completely`() throws {
        let message = "<message from='a@b'><body>né</body></message>"
        let conversation = try #require(
            try Self.conversation([
                #""kind":"stanza","direction":"recv","name":"message","chunks":[28],"xml":"\#(message)""#,
                #""kind":"stanza","direction":"recv","name":"message","xml":"<message id='2'/>""#,
            ])
        )
        var settings = ServedSession.Settings()
        settings.keepsChunks = true
        let live = try JID(parsing: "romeo@here/x")
        var session = ServedSession(conversation, live: live, settings: settings, parser: StanzaParser(), at: 0)
        func receive(_ xml: String) throws {
            session.receive(
                try StanzaParser().parse(Array(xml.utf8).span, root: StanzaForm.clientDeclarations),
                at: 1
            )
        }
        var asked: [Element] = []
        func sent() -> String {
            var text = ""
            while let event = session.next() {
                if case .send(let bytes) = event { text += String(decoding: bytes, as: UTF8.self) }
                if case .ask(let request) = event { asked.append(request) }
            }
            return text
        }
        session.tick(at: 0)
        while session.next() != nil {}
        try receive("<r xmlns='urn:xmpp:sm:3'/>")
        try receive("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
        try receive("<iq type='get' id='v'><query xmlns='jabber:iq:version'/></iq>")
        try receive("<iq type='get' id='f'><query xmlns='jabber:iq:version'/></iq>")
        #expect(sent() == "")
        #expect(asked.count == 2)
        session.answer(asked[0], with: Array("<refused/>".utf8), at: 2)
        session.await(asked[1])
        session.answer(asked[1], with: Array("<forwarded/>".utf8), at: 3)
        #expect(sent() == "")
        session.tick(at: settings.chunkGap)
        #expect(
            sent().hasSuffix(
                "</body></message><a xmlns='urn:xmpp:sm:3' h='0'/><iq type='result' id='p' to='romeo@here/x'/>"
                    + "<refused/><forwarded/><message id='2'/>"
            )
        )
    }

    @Test func `recorded answers wait for forwarded ones, but pings do not`() throws {
        var scene = try Scene(Self.roster)
        let version = "<iq id='v' type='get'><query xmlns='jabber:iq:version'/></iq>"
        #expect(try scene.receive(version) == ["report unexpected", "asked v"])
        let request = try scene.request(version)
        scene.session.await(request)
        #expect(try scene.receive("<iq id='x9' type='get'><query xmlns='jabber:iq:roster'/></iq>") == [])
        #expect(scene.session.deadline == nil)
        let ping = try scene.receive("<iq id='p' type='get'><ping xmlns='urn:xmpp:ping'/></iq>")
        #expect(ping == ["<iq type='result' id='p' to='live@there/new'/>"])
        scene.session.answer(request, with: Array("<answer/>".utf8), at: scene.now)
        let words = scene.drain()
        #expect(words.first == "<answer/>" && words.last?.contains("id='x9'") == true && words.count == 2)
    }

    @Test func `a client that sends requests faster than they are answered is stopped`() throws {
        var scene = try Scene(Self.roster)
        let version = try scene.request("<iq id='v' type='get'><query xmlns='jabber:iq:version'/></iq>")
        scene.session.receive(version, at: 0)
        scene.session.await(version)
        var words: [String] = []
        for id in 0..<2000 where words.last != "overflow" {
            words += try scene.receive("<iq id='\(id)' type='get'><query xmlns='jabber:iq:roster'/></iq>")
        }
        #expect(words.last == "overflow")
    }
}
