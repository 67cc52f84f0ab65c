import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct SessionTests {
    @Test(arguments: [1, 2, 7, 64, Int.max]) func `bytes are forwarded unchanged for any split`(piece: Int) {
        let conversations = [
            Conversations.plainLogin, Conversations.legacyLogin, Conversations.component, Conversations.sasl2,
            Conversations.startTLS,
        ]
        for turns in conversations {
            var harness = SessionHarness()
            harness.say(turns, piece: piece)
            #expect(harness.text(.send) == Conversations.text(turns, .send))
            #expect(harness.text(.recv) == Conversations.text(turns, .recv))
        }
    }

    @Test func `The borders of TLS records are recorded if an item arrives in TLS`() throws {
        var harness = SessionHarness(options: SessionOptions(level: .trace))
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.receive(.send, Array("<message id='clear'/>".utf8))
        harness.receive(.send, Array("<message id='one'/>".utf8), records: [])
        harness.receive(.send, Array("<message id='two'/><message ".utf8), records: [4])
        harness.receive(.send, Array("id='three'/>".utf8), records: [])
        let records = harness.told.map(\.record).filter { $0.kind == .stanza && $0.direction == .send }.suffix(4)
        #expect(records.map(\.tlsRecords) == [[], [], [4], [9]])
        #expect(records.map(\.isInTLS) == [false, true, true, true])
        #expect(records.map(\.chunks) == [[], [], [], [9]])
        let lines = try harness.written().split(separator: "\n").filter { $0.contains("\"name\":\"message\"") }
        #expect(lines.map { $0.contains("tls_records") } == [false, true, true, true])
        let read = try lines.map { try RecordLine(json: Array($0.utf8).span.bytes).record }
        #expect(read.map(\.tlsRecords) == records.map(\.tlsRecords) && read.map(\.isInTLS) == records.map(\.isInTLS))
    }

    @Test func `a login is understood`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        harness.end(.client)
        harness.end(.server)
        harness.close()
        let info = harness.session.info
        #expect(info.domain == "example.org")
        #expect(info.kind == .client)
        #expect(info.streams.map(\.id) == ["s1", "s2"])
        #expect(info.mechanism == "PLAIN")
        #expect(info.authentication == .succeeded)
        #expect(info.jid == "juliet@example.org/balcony")
        #expect(info.sent.iq == 2 && info.sent.presence == 1 && info.sent.message == 1)
        #expect(info.received.iq == 2 && info.received.message == 1)
        #expect(info.unanswered == 0)
        #expect(info.ending == .clean(by: .send))
        #expect(harness.finished == [.server, .client])
        #expect(harness.closed == false)
        let end = try #require(harness.told(code: "session-ended").first)
        #expect(end.record.messageText == "closed by the client")
        #expect(harness.told(code: "session-ready").count == 1)
    }

    @Test func `records contain the items byte for byte`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin, piece: 5)
        let messages = harness.told.filter { $0.text($0.record.name) == "message" }
        #expect(messages.count == 2)
        #expect(messages[0].xml == Conversations.plainLogin[13].text)
        #expect(messages[0].text(messages[0].record.to) == "romeo@example.net")
        #expect(messages[0].record.chunks.first == 5)
        #expect(messages[1].text(messages[1].record.from) == "romeo@example.net/orchard")
        #expect(messages.map(\.record.direction) == [.send, .recv])
        #expect(messages.map(\.record.epoch) == [2, 2])
    }

    @Test func `answers are paired with their requests`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        let roster = harness.told.filter { $0.text($0.record.id) == "r1" }
        try #require(roster.count == 2)
        #expect(roster[1].record.answers == roster[0].record.sequence)
        #expect(roster[1].record.roundTrip == 1_000_000)
        #expect(roster[1].record.payloadNamespace == .roster)
    }

    @Test func `sequence numbers have no gaps`() {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin, piece: 9)
        harness.end(.client)
        harness.close()
        #expect(harness.told.map(\.record.sequence).sorted() == (1...UInt64(harness.told.count)).map { $0 })
    }

    @Test func `before the session is open, only whole items are forwarded`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        let before = harness.toServer.count
        harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1")
        #expect(harness.toServer.count == before)
        harness.send("bGlldABSMG0zMG15cjBtMzA=</auth>")
        #expect(harness.toServer.count > before)
    }

    @Test func `in an open session, bytes are forwarded as they arrive`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<message><bo")
        #expect(String(decoding: harness.toServer.suffix(12), as: UTF8.self) == "<message><bo")
        #expect(harness.told(code: "cut-through").map(\.record.direction) == [.send, .recv])
    }

    /// Bytes are forwarded before they are decoded, so an answer may arrive before its request is decoded.
    @Test(arguments: Direction.allCases) func `bytes that were forwarded first are recorded first`(first: Direction) {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let request = "<iq type='get' id='r'><ping xmlns='urn:xmpp:ping'/></iq>"
        let bytes = Array("<message id='r'><body>look</body></message>\(request)".utf8)
        #expect(harness.session.receive(first, bytes.span, at: harness.now) == .relay)
        harness.receive(first.opposite, Array("<iq type='result' id='r'/>".utf8))
        let told = harness.told.filter { $0.text($0.record.id) == "r" && $0.record.kind == .stanza }
        #expect(told.map(\.record.direction) == [first, first, first.opposite])
        let began = harness.now.monotonic - 1_000_000
        #expect(told.map(\.record.monotonic) == [began, began, began + 1_000_000])
        #expect(told.last?.record.answers == told.dropFirst().first?.record.sequence)
    }

    @Test func `bytes that waited for the opening are forwarded once`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(9)))
        harness.send("<presence><sho")
        harness.recv(Conversations.plainLogin[9].text + "<message><bo")
        harness.recv("dy/></message>")
        harness.send("w>away</show></presence>")
        #expect(
            String(decoding: harness.toServer, as: UTF8.self).hasSuffix("</iq><presence><show>away</show></presence>")
        )
        #expect(String(decoding: harness.toClient, as: UTF8.self).hasSuffix("</iq><message><body/></message>"))
        #expect(harness.session.info.sent.presence == 1)
        #expect(harness.session.info.received.message == 1)
    }

    @Test func `after <proceed/>, both directions are forwarded without decoding`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.startTLS)
        harness.receive(.send, [0x16, 3, 1, 0, 2, 1, 0])
        harness.receive(.recv, [0x16, 3, 3, 0, 1, 2])
        #expect(harness.toServer.suffix(7) == [0x16, 3, 1, 0, 2, 1, 0])
        #expect(harness.toClient.suffix(6) == [0x16, 3, 3, 0, 1, 2])
        let began = try #require(harness.told(code: "tls-began").first)
        #expect(began.record.level == .info)
        harness.end(.client)
        harness.close()
        let passed = harness.told(code: "tls-passed")
        #expect(passed.map(\.record.length) == [7, 6])
    }

    @Test func `plaintext between <starttls/> and <proceed/> waits and is reported`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.startTLS.prefix(4)))
        let before = harness.toServer.count
        harness.send("<auth/>")
        #expect(harness.toServer.count == before)
        harness.recv(Conversations.startTLS[4].text)
        #expect(harness.told(code: "starttls-injection").count == 1)
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix("<auth/>"))
    }

    @Test(arguments: [1, 7, Int.max]) func `whitespace after <starttls/> is forwarded with it`(piece: Int) throws {
        // go-sendxmpp sends this line feed, although RFC 6120 forbids it. After `<proceed/>`, the server would mistake
        // it for TLS.
        var harness = SessionHarness()
        harness.say(Array(Conversations.startTLS.prefix(3)))
        let request = Conversations.startTLS[3].text + "\n"
        harness.say([(.send, request)], piece: piece)
        #expect(harness.text(.send).hasSuffix(request))
        harness.recv(Conversations.startTLS[4].text)
        harness.receive(.send, [0x16, 3, 1, 0, 2, 1, 0])
        #expect(harness.told(code: "starttls-injection").isEmpty)
        let began = try #require(harness.told(code: "tls-began").first?.record.messageText)
        #expect(began.contains("byte \(Conversations.text(Conversations.startTLS, .send).utf8.count + 1) "))
    }

    @Test func `after a declined STARTTLS, the stream continues in clear`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.startTLS.prefix(4)))
        harness.send("<presence/>")
        harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix("<presence/>"))
        #expect(harness.session.info.sent.presence == 1)
    }

    @Test func `<proceed/> is held until TLS with the server is established`() {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        var harness = SessionHarness(options: options)
        harness.say(Conversations.startTLS)
        #expect(!String(decoding: harness.toClient, as: UTF8.self).contains("proceed"))
        harness.openTLS(.server)
        #expect(String(decoding: harness.toClient, as: UTF8.self).hasSuffix(Conversations.startTLS[4].text))
    }

    @Test func `direct TLS is not reported as malformed XML`() {
        var harness = SessionHarness()
        harness.receive(.send, [0x16, 3, 1, 0, 2, 1, 0])
        #expect(harness.toServer == [0x16, 3, 1, 0, 2, 1, 0])
        #expect(harness.told(code: "tls-began").count == 1)
        #expect(harness.told(code: "not-xml").isEmpty)
    }

    @Test func `data that is not XMPP is forwarded and reported once`() {
        var harness = SessionHarness()
        harness.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        harness.recv("HTTP/1.1 400 Bad Request\r\n\r\n")
        harness.send("more")
        #expect(String(decoding: harness.toServer, as: UTF8.self) == "GET / HTTP/1.1\r\nHost: a\r\n\r\nmore")
        #expect(String(decoding: harness.toClient, as: UTF8.self) == "HTTP/1.1 400 Bad Request\r\n\r\n")
        #expect(harness.told.filter { $0.record.kind == .error }.count == 1)
    }

    @Test func `after a fault, the direction is forwarded without decoding`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<message><body>&nbsp;</body></message><presence/>")
        harness.send("<presence/>")
        let fault = try #require(harness.told(code: "entity-reference").first)
        #expect(fault.record.condition == "restricted-xml")
        #expect(fault.record.level == .error)
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix("</message><presence/><presence/>"))
        harness.recv("<message/>")
        #expect(harness.session.info.received.message == 1, "the other direction is still read")
    }

    @Test func `an oversized item before authentication is refused`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        let before = harness.toServer.count
        harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>" + String(repeating: "A", count: 70_000))
        #expect(String(decoding: harness.toClient, as: UTF8.self).contains("<policy-violation"))
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "</stream:stream>")
        #expect(harness.closed == false)
    }

    @Test func `an oversized item in an open session is forwarded and recorded by its head`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let big = "<message to='a@b' id='big'><body>" + String(repeating: "x", count: 3 << 20) + "</body></message>"
        harness.say([(.send, big), (.send, "<presence/>")], piece: 50_000)
        #expect(String(decoding: harness.toServer.suffix(11), as: UTF8.self) == "<presence/>")
        let told = try #require(harness.told.first { $0.text($0.record.id) == "big" })
        #expect(told.record.isTruncated)
        #expect(told.record.xml == nil)
        #expect(told.record.length == UInt64(big.utf8.count))
    }

    @Test func `an unreachable server is reported to the client as a stream error`() {
        var harness = SessionHarness(connected: false)
        harness.failServer("connect to 127.0.0.1:5222: connection refused")
        #expect(harness.toClient.isEmpty)
        harness.send(Conversations.plainLogin[0].text)
        let answer = String(decoding: harness.toClient, as: UTF8.self)
        #expect(answer.hasPrefix("<?xml version='1.0'?><stream:stream "))
        #expect(answer.contains("from='example.org'"))
        #expect(answer.contains("<remote-connection-failed xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"))
        #expect(answer.hasSuffix("</stream:error></stream:stream>"))
        #expect(harness.toServer.isEmpty)
        #expect(harness.closed == false)
        harness.close()
        #expect(harness.told(code: "session-ended").first?.record.condition == "remote-connection-failed")
    }

    @Test func `ends of connections are forwarded as they occurred`() {
        var unclean = SessionHarness()
        unclean.say(Array(Conversations.plainLogin.prefix(12)))
        unclean.end(.client)
        #expect(unclean.finished == [.server])
        #expect(unclean.closed == nil, "the server may still have something to say")
        unclean.recv("<presence/>")
        unclean.end(.server)
        #expect(unclean.closed == false)
        #expect(unclean.session.info.ending == .unclean(leg: .client, .finished))

        var reset = SessionHarness()
        reset.say(Array(Conversations.plainLogin.prefix(12)))
        reset.end(.server, .reset)
        #expect(reset.closed == true)
        #expect(reset.session.info.ending == .unclean(leg: .server, .reset))
    }

    @Test func `a stream error is stored as the end of the session`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(12)))
        harness.recv(
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
                + "<text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>Replaced</text></stream:error></stream:stream>"
        )
        harness.end(.server)
        harness.end(.client)
        harness.close()
        let error = try #require(harness.told(code: "stream-error").first)
        #expect(error.record.condition == "conflict")
        #expect(error.record.messageText == "Replaced")
        #expect(harness.session.info.ending == .error(condition: "conflict", by: .recv))
    }

    @Test func `a failed login is stored with its condition`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(4)))
        harness.recv(
            "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>Wrong</text></failure>"
        )
        #expect(harness.session.info.authentication == .failed(condition: "not-authorized"))
        let failure = try #require(harness.told(code: "sasl-failure").first)
        #expect(failure.record.condition == "not-authorized")
        #expect(failure.record.messageText == "Wrong")
        harness.send(Conversations.plainLogin[3].text)
        harness.recv(Conversations.plainLogin[4].text)
        #expect(harness.session.info.authentication == .succeeded)
    }

    @Test func `pipelined bytes are held and not refused`() {
        var harness = SessionHarness()
        let all = Conversations.bytes(Conversations.plainLogin, .send)
        harness.receive(.send, all)
        harness.say(Conversations.plainLogin.filter { $0.direction == .recv })
        #expect(harness.toServer == all)
        #expect(harness.session.info.jid == "juliet@example.org/balcony")
    }

    @Test func `an incomplete item at the end is recorded`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(12)))
        harness.send("<message><body>half")
        harness.end(.client)
        let torn = try #require(harness.told(code: "torn").first)
        #expect(torn.record.length == 19)
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix("half"))
    }

    @Test func `streams of components and older clients are followed`() {
        var component = SessionHarness()
        component.say(Conversations.component)
        #expect(component.session.info.kind == .component)
        #expect(component.session.info.authentication == .succeeded)
        #expect(component.session.info.received.message == 1)

        var legacy = SessionHarness()
        legacy.say(Conversations.legacyLogin)
        #expect(legacy.session.info.version == nil)
        #expect(legacy.session.info.jid == "bill@example.org/globe")

        var sasl2 = SessionHarness()
        sasl2.say(Conversations.sasl2)
        #expect(sasl2.session.info.jid == "juliet@example.org/balcony.1")
        #expect(sasl2.session.info.opened != nil)
    }
}
