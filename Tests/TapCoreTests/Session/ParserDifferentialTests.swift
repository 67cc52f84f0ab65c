import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// Tests of items that parsers may read differently, and of redirected clients: such items are relayed and reported.
@Suite struct ParserDifferentialTests {
    private static func session() -> SessionHarness {
        var harness = SessionHarness(options: SessionOptions(level: .verbose))
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    private static let codes: Set = ["doubtful-namespace", "reads-differently", "parser-disagreement"]

    private func flags(_ harness: borrowing SessionHarness) -> [String] {
        harness.told.compactMap(\.record.code).filter(Self.codes.contains)
    }

    @Test(arguments: [
        "<message><x xmlns='urn:a&#10;body'/></message>", "<message><x xmlns='urn:a body'/></message>",
        "<message><p:x xmlns:p='urn:a|message'/></message>", "<message><x><y xmlns='{urn:a}b'/></x></message>",
        "<message xmlns='jabber:client&#9;'/>", "<message><x xmlns='urn:a`'/></message>",
    ])
    func `A stanza with an invalid namespace URI is forwarded and reported`(stanza: String) throws {
        var harness = Self.session()
        let before = harness.toServer.count
        harness.send(stanza)
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == stanza)
        #expect(flags(harness) == ["doubtful-namespace"])
        let record = try #require(harness.told(code: "doubtful-namespace").first?.record)
        #expect(record.level == .warn && record.direction == .send)
        harness.send("<message><body>x</body></message>")
        #expect(flags(harness).count == 1)
        // The code is reported once at level warn, however often the namespace is sent.
        harness.send(stanza)
        #expect(harness.told(code: "doubtful-namespace").map(\.record.level) == [.warn, .verbose])
    }

    @Test(arguments: [
        "<message><body><![CDATA[<body>]]>&amp;x</body></message>", "<message id='&lt;&#x41;'><body/></message>",
        "<p:message xmlns:p='jabber:client' xmlns='urn:other'><p:body>x</p:body><y z='&#10;'/></p:message>",
        "<message><x xmlns='urn:a' xmlns:p='urn:b' p:q='&apos;' q='1' xml:lang='d&#101;'/><y xmlns=''/></message>",
        "<message><x xmlns='urn:ä/%20~#?=&amp;'/></message>",
        "<message>\r\n<body>\r&#13;<![CDATA[\r]]></body></message>",
        "<message><body><![CDATA[]]></body></message>",
    ])
    func `Unusual XML that all parsers read alike is not reported`(stanza: String) {
        var harness = Self.session()
        harness.send(stanza)
        #expect(flags(harness) == [])
    }

    @Test func `An item with huge expanded namespaces is forwarded without a comparison`() {
        var harness = Self.session()
        let uri = String(repeating: "u", count: 30_000)
        let stanza =
            "<message xmlns:p='\(uri)'><![CDATA[x]]>" + String(repeating: "<p:a/>", count: 20_000) + "</message>"
        let before = harness.toServer.count
        harness.send(stanza)
        #expect(harness.toServer.count - before == stanza.utf8.count)
        #expect(flags(harness) == [])
    }

    @Test func `Any difference between two readings of a stanza is a contradiction`() throws {
        func read(_ text: String) throws -> Element {
            try StanzaParser().parse(Array(text.utf8).span, root: Array(" xmlns='jabber:client'".utf8))
        }
        let one = try read("<message id='1'><body>x</body></message>")
        #expect(
            !ParserDifferential.contradict(
                one,
                [one, try read("<message id=\"1\"><body><![CDATA[x]]></body></message>")]
            )
        )
        for other in [
            "<message id='2'><body>x</body></message>", "<message id='1'><body>y</body></message>",
            "<message id='1'><body xmlns='urn:a'>x</body></message>", "<message id='1'><body>x</body><a/></message>",
        ] { #expect(ParserDifferential.contradict(one, [one, try read(other)])) }
        #expect(ParserDifferential.contradict(one, [one, nil]))
    }

    @Test func `Only the first finding of each direction is a warning`() throws {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(
            Array(
                ("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
                    + "<message><x xmlns='urn:a body'/></message>").utf8
            ).span
        )
        _ = decoder.next()
        let next = decoder.next()
        let event = try #require(next)
        let tools = SessionTools(run: Run(), redaction: .secrets)
        var differential = ParserDifferential()
        for direction in Direction.allCases {
            for level in [Level.warn, .verbose] {
                let found = differential.observe(event, direction, decoder, tools)
                #expect(found.map(\.finding) == [.doubtfulNamespace] && found.map(\.level) == [level])
            }
        }
    }

    @Test func `A stream header with an invalid namespace URI is reported`() {
        var harness = SessionHarness(options: SessionOptions(level: .info))
        harness.send(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:a='b c' to='x'>"
        )
        #expect(flags(harness) == ["doubtful-namespace"])
    }

    @Test(arguments: [
        ("<enabled xmlns='urn:xmpp:sm:3' id='a' resume='true' location='[2001:db8::1]:9222'/>", 1),
        ("<enabled xmlns='urn:xmpp:sm:3' id='a' resume='true'/>", 0),
        (
            "<enabled xmlns='urn:xmpp:sm:3'><isr-enabled xmlns='https://xmpp.org/extensions/isr/0' location='a.example'/></enabled>",
            1
        ),
    ])
    func `A warning is logged if enabled names another location for resumption`(enabled: String, count: Int) {
        var harness = Self.session()
        harness.recv(enabled)
        let told = harness.told(code: "other-location").map(\.record)
        #expect(told.count == count)
        #expect(told.allSatisfy { $0.level == .warn && $0.messageText?.contains("bypass xmpptap") == true })
    }

    @Test func `White space between stanzas is forwarded at once and unchanged`() {
        var harness = Self.session()
        for direction in Direction.allCases {
            let before = direction == .send ? harness.toServer.count : harness.toClient.count
            for byte in [" ", "\n", " ", "\t\r\n"] {
                harness.receive(direction, Array(byte.utf8))
                let passed = direction == .send ? harness.toServer : harness.toClient
                #expect(passed.last == byte.utf8.last)
            }
            let passed = direction == .send ? harness.toServer : harness.toClient
            #expect(Array(passed[before...]) == Array(" \n \t\r\n".utf8))
        }
    }
}
