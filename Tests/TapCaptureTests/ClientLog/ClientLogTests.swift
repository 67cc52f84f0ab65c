import Foundation
import TapCore
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

/// Logs of clients, read as the sessions they show.
struct ClientLogTests {
    /// A record and its XML.
    private struct Told {
        var record: Record
        var xml: String?
    }

    private static func read(_ log: String) throws -> (header: RecordHeader, told: [Told]) {
        let folder = try TemporaryFolder()
        let reader = try RecordReader([try folder.write(log, to: "client.log")])
        return (reader.firstHeader, try all(reader))
    }

    private static func all(_ reader: RecordReader) throws -> [Told] {
        var told: [Told] = []
        while let entry = try reader.next() {
            guard case .record(let line) = entry else { continue }
            told.append(Told(record: line.record, xml: line.record.xml.map { line.content.span.slice($0).string() }))
        }
        return told
    }

    private static func steps(_ told: [Told]) -> [String] {
        told.filter { $0.record.code == LoginStep.code }.compactMap(\.record.messageText)
    }

    /// All text of the records, to be searched for secrets.
    private static func text(_ told: [Told]) -> String {
        told.map { "\($0.xml ?? "") \($0.record.messageText ?? "")" }.joined(separator: "\n")
    }

    private static let features =
        "<stream:features xmlns=\"http://etherx.jabber.org/streams\" xmlns:stream=\"http://etherx.jabber.org/streams\">"
        + "<mechanisms xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><mechanism>PLAIN</mechanism></mechanisms>"
        + "</stream:features>"
    private static let auth =
        "<auth xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\" mechanism=\"PLAIN\">AGp1bGlldABSMG0zMG15cjBtMzA=</auth>"
    private static let success = "<success xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"/>"
    private static let bindFeatures =
        "<stream:features xmlns:stream=\"http://etherx.jabber.org/streams\">"
        + "<bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"/></stream:features>"
    private static let bind =
        "<iq type=\"set\" id=\"b1\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><resource>balcony</resource></bind></iq>"
    private static let bound =
        "<iq type=\"result\" id=\"b1\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><jid>juliet@example.org/balcony</jid>"
        + "</bind></iq>"
    private static let failure = "<failure xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><not-authorized/></failure>"

    // MARK: Logs with several sessions

    /// The sessions that are bound, and how many stanzas each has.
    private static func stanzas(_ told: [Told]) -> [String: Int] {
        told.reduce(into: [:]) { counts, told in
            guard told.record.kind == .stanza, let jid = told.record.jid else { return }
            counts["\(told.record.session) \(jid)", default: 0] += 1
        }
    }

    @Test func `missing namespace prefixes of an item are declared, up to a limit`() {
        func item(_ count: Int) -> [UInt8] { Array("<a>\((0..<count).map { "<p\($0):b/>" }.joined())</a>".utf8) }
        let declared = LogItemRepair.declaringPrefixes(item(64))
        #expect(
            declared.count > item(64).count && LogItemCheck.fault(declared, after: InferredHeader.bytes(.send)) == nil
        )
        #expect(LogItemRepair.declaringPrefixes(item(65)) == item(65))
    }

    @Test func `sessions are read from a text log of xmpptap`() throws {
        let (header, told) = try Self.read(
            """
            # 2026-11-21T17:22:40.000000000Z xmpptap 0.1.0 log verbose
            17:22:42.102 info [3] net: juliet connected
            17:22:42.103 [3] SEND: <stream:stream to="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.104 [3] RECV: <stream:stream from="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.105 [3] RECV: \(Self.features)
            17:22:42.106 [4] SEND: <stream:stream to="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.107 [3] SEND: \(Self.auth)
            17:22:42.108 [3] RECV: \(Self.success)
            17:22:42.109 [3 ~juliet] SEND: <stream:stream to="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.110 [3 ~juliet] RECV: <stream:stream from="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.111 [3 ~juliet] RECV: \(Self.bindFeatures)
            17:22:42.112 [3 ~juliet] SEND: \(Self.bind)
            17:22:42.113 [3 ~juliet] RECV: \(Self.bound)
            17:22:42.114 [3 juliet@example.org/balcony] SEND: <message to="romeo@example.net"><body>one\\ntwo \\\\ \\u{202e}</body></message>
            17:22:42.115 [3 juliet@example.org/balcony] SEND dropped typing.pfw:4: <message to="romeo@example.net"/>
            17:22:42.116 [3 juliet@example.org/balcony] RECV tap: <presence from="romeo@example.net"/>
            17:22:42.117 info [3 juliet@example.org/balcony] SEND message → romeo@example.net 64 B

            """
        )
        #expect(header.tool == "text log" && header.time.text == "2026-11-21T17:22:42.102000000Z")
        #expect(Self.stanzas(told) == ["1 juliet@example.org/balcony": 2])
        let body = "one\ntwo \\ \u{202e}"
        #expect(told.contains { $0.xml == "<message to=\"romeo@example.net\"><body>\(body)</body></message>" })
        #expect(Set(told.map(\.record.session)) == [0, 1, 2])
        #expect(!Self.text(told).contains("AGp1bGlldA"))
    }

    @Test func `names and texts in a text log are not mistaken for items`() throws {
        let (_, told) = try Self.read(
            """
            # 2026-11-21T17:22:40.000000000Z xmpptap 0.1.0 log verbose
            17:22:42.101 warn [3] net: it says RECV: <message id="said first"/>
            17:22:42.103 [3] SEND: <stream:stream to="example.org" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams" version="1.0">
            17:22:42.104 [3 ~a\\u{5d} RECV: <message id="named"/>] SEND: <presence id="sent"/>
            17:22:42.105 [3 a@[::1]] SEND: <presence id="sent too"/>
            17:22:42.106 warn [3 a@[::1]] net: it says RECV: <message id="said"/>
            17:22:42.107 [3 a@[::1]] net: it says x] RECV: <message id="also said"/>

            """
        )
        #expect(
            told.compactMap(\.xml).filter { $0.contains("id=") } == [
                "<presence id=\"sent\"/>", "<presence id=\"sent too\"/>",
            ]
        )
    }

    @Test(arguments: ["17:22:42.104 RECV: ", "DEBUG    RECV: "])
    func `a line within a message's text is not an item`(beginning: String) throws {
        let (_, told) = try Self.read(
            """
            \(beginning)<message id="1"><body>one
            SEND: <message id="2"><body>two</body></message>
            SEND: <message id="3"/>
            </body></message>
            \(beginning)<message id="4"/>
            SEND: <message id="5"/>

            """
        )
        let ids = told.compactMap(\.xml).compactMap { xml in
            xml.firstMatch(of: /^<message id="(.)"/).map { String($0.1) }
        }
        #expect(ids == ["1", "4", "5"])
    }

    @Test func `times of a log with a jumping clock stay in the range of records`() throws {
        let (_, told) = try Self.read("2026-11-21 17:22:00 SEND: <presence/>\n2139-11-21 17:22:03 SEND: <presence/>\n")
        #expect(told.map(\.record.monotonic).max() == 1 << 60)
    }

    @Test func `a text log without XML is refused with advice how to record one`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("17:22:42.102 info [1] net: hello\n", to: "x.log")
        let fault = #expect(throws: ReaderFault.self) { try RecordReader([path]) }
        #expect(fault?.description.contains("is a text log without the XML of items") == true)
    }

    @Test func `Smack's log is read even if items are split between reads`() throws {
        let (_, told) = try Self.read(
            """
            05:22:42 PM SENT (0): <stream:stream xmlns='jabber:client' to='example.org' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>
            05:22:42 PM RECV (0): <?xml version='1.0'?><stream:stream from='example.org' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>\(Self.features)
            05:22:43 PM SENT (0): \(Self.auth)
            05:22:43 PM RECV (0): \(Self.success)
            05:22:43 PM SENT (0): <stream:stream xmlns='jabber:client' to='example.org' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>
            05:22:43 PM RCV  (0): <stream:stream from='example.org' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>\(Self.bindFeatures)
            05:22:44 PM SENT (0): \(Self.bind)
            05:22:44 PM SENT (1): <presence/>
            05:22:44 PM RECV (0): \(Self.bound.prefix(30))
            05:22:44 PM RECV (0): \(Self.bound.dropFirst(30))<message from='romeo@example.net'><body>Ay</body></message>

            """
        )
        #expect(Self.stanzas(told)["1 juliet@example.org/balcony"] == 1)
        #expect(told.filter { $0.record.kind == .error }.isEmpty)
        #expect(Set(told.map(\.record.session)) == [1, 2])
        #expect(told.first?.record.time.text == "1970-01-01T17:22:42.000000000Z")
    }

    @Test func `in Prosody's log, SEND is read as sent by the server`() throws {
        let (header, told) = try Self.read(
            """
            Nov 30 23:59:58 c2s55d0a2b7c8e0\tinfo\tClient connected
            Nov 30 23:59:58 c2s55d0a2b7c8e0\tdebug\tSEND: \(Self.features)
            Nov 30 23:59:58 c2s55d0a2b7c8e0\tdebug\tRECV: \(Self.auth)
            Nov 30 23:59:58 c2s55d0a2b7c8e0\tdebug\tSEND: \(Self.success)
            Nov 30 23:59:59 c2s55d0a2b7c8e0\tdebug\tSEND: \(Self.bindFeatures)
            Nov 30 23:59:59 c2s55d0a2b7c8e0\tdebug\tRECV: \(Self.bind)
            Nov 30 23:59:59 c2s55d0a2b9f000\tdebug\tRECV: <presence/>
            Nov 30 23:59:59 c2s55d0a2b7c8e0\tdebug\tSEND: \(Self.bound)
            Dec 01 00:00:01 c2s55d0a2b7c8e0\tdebug\tRECV: <message to='romeo@example.net'><body>two
            lines</body></message>
            Dec 01 00:00:02 c2s55d0a2b7c8e0\tdebug\tReceived[c2s]: <presence>

            """
        )
        #expect(header.tool == "server log")
        #expect(Self.stanzas(told)["1 juliet@example.org/balcony"] == 1)
        let message = try #require(told.first { $0.xml?.hasPrefix("<message") == true })
        #expect(message.record.direction == .send && message.xml?.contains("two\nlines") == true)
        #expect(Set(told.map(\.record.session)).subtracting([0]) == [1, 2])
    }

    // MARK: The clients

    @Test(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
    func `XMPPFramework's log is read although it lacks the server's stream headers`() throws {
        let told = try Self.all(
            RecordReader([try #require(Corpus.folder).appending(path: "xmppframework-login.log").path])
        )
        #expect(told.contains { $0.record.code == "session-ready" && $0.record.jid == "1024@192.168.1.1/iOS_V1.0" })
        let inferred = told.filter { $0.record.code == "inferred" }
        #expect(inferred.count == 2)
        #expect(inferred.allSatisfy { $0.record.direction == .recv && $0.record.origin == .tap })
        #expect(told.filter { $0.record.code == "foreign-line" }.count == 4)
        // A continued line is part of the item before it.
        #expect(told.contains { $0.record.direction == .send && $0.xml == "<resource>iOS_V1.0</resource>" })
        #expect(!Self.text(told).contains("DJhJ5hsADHd824"))
        #expect(told.last?.record.code == "session-ended")
        let first = try #require(told.first { $0.record.kind == .streamOpen })
        #expect(first.record.time == Timestamp(rfc3339: "1970-01-01T17:22:42.103Z"))
    }

    @Test func `slixmpp's log is read without times, and with stream headers that lack namespaces`() throws {
        let (header, told) = try Self.read(
            """
            DEBUG    Event triggered: connected
            DEBUG    SEND: <stream:stream to='example.org' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client' version='1.0'>
            DEBUG    RECV: <stream:stream xml:lang="en" id="1" version="1.0" from="example.org">
            DEBUG    RECV: \(Self.features)
            DEBUG    SEND: \(Self.auth)
            DEBUG    RECV: \(Self.success)
            DEBUG    Event triggered: auth_success
            DEBUG    SEND: <stream:stream to='example.org' xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client' version='1.0'>
            DEBUG    RECV: <stream:stream xml:lang="en" id="2" version="1.0" from="example.org">
            DEBUG    RECV: \(Self.bindFeatures)
            DEBUG    SEND: \(Self.bind)
            DEBUG    RECV: \(Self.bound)
            INFO     JID set to: juliet@example.org/balcony
            DEBUG    SEND: <message to="romeo@example.net"><body>a line
            and another</body></message>
            DEBUG    SEND: </stream:stream>
            DEBUG    RECV: <presence from="romeo@example.net"/>
            DEBUG    End of stream received

            """
        )
        #expect(header.tool == "client log" && header.redaction == .secrets && !header.isComplete)
        #expect(
            Self.steps(told) == [
                "connect: skipped, not in a client log", "stream-open: ok", "features: ok", "mechanism: ok",
                "sasl: ok", "stream-open: ok", "features: ok", "bind: ok", "ready: ok",
            ]
        )
        #expect(told.filter { $0.record.code == "inferred" }.count == 2)
        #expect(told.contains { $0.xml?.contains("<body>a line\nand another</body>") == true })
        // Lines after the client's end do not begin a new session.
        #expect(told.allSatisfy { $0.record.session <= 1 })
        #expect(!Self.text(told).contains("AGp1bGlldABSMG0zMG15cjBtMzA="))
        #expect(!told.contains { $0.record.kind == .error })
    }

    @Test func `profanity's log is read, with the diagnosis of its failed login`() throws {
        let (_, told) = try Self.read(
            """
            2026-11-21T18:18:30.946232Z: prof: INF: Connecting as juliet@example.org/profanity
            2026-11-21T18:18:30.950007Z: conn: DBG: SENT: <?xml version="1.0"?><stream:stream to="example.org" xml:lang="en" version="1.0" xmlns="jabber:client" xmlns:stream="http://etherx.jabber.org/streams">
            2026-11-21T18:18:30.960155Z: xmpp: DBG: RECV: <stream:stream lang="en" id="44348f39" version="1.0" from="example.org">
            2026-11-21T18:18:30.960254Z: xmpp: DBG: RECV: <features xmlns="http://etherx.jabber.org/streams"><mechanisms xmlns="urn:ietf:params:xml:ns:xmpp-sasl"><mechanism>PLAIN</mechanism></mechanisms></features>
            2026-11-21T18:18:30.960563Z: conn: DBG: SENT: \(Self.auth)
            2026-11-21T18:18:31.969781Z: xmpp: DBG: RECV: \(Self.failure)
            2026-11-21T18:18:31.999377Z: xmpp: DBG: SASL PLAIN auth failed
            2026-11-21T18:18:32.000001Z: conn: DBG: SENT: \(Self.auth)

            """
        )
        let diagnosis = try #require(told.compactMap { LoginDiagnosis($0.record) }.first)
        #expect(diagnosis.cause == .notAuthorized && diagnosis.loginStep == .sasl)
        let loginStep = try #require(
            told.last { $0.record.condition == "not-authorized" && $0.record.code == LoginStep.code }?.record
        )
        #expect(loginStep.roundTrip == 1_009_218_000)
        #expect(loginStep.time == Timestamp(rfc3339: "2026-11-21T18:18:31.969781Z"))
        #expect(told.last?.record.messageText == "the recording shows nothing more of the session")
    }

    @Test func `Gajim's log is read, with items on separate lines and TLS after the beginning`() throws {
        let (_, told) = try Self.read(
            """
            2026-11-21 18:20:00 (I) nbxmpp.connection    (example.org) ::::: DATA SENT ::::

            <?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>

            2026-11-21 18:20:00 (I) nbxmpp.connection    (example.org) ::::: DATA RECEIVED ::::

            <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='1' version='1.0'><stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>

            2026-11-21 18:20:00 (I) nbxmpp.connection    (example.org) ::::: DATA SENT ::::

            <starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>

            2026-11-21 18:20:00 (I) nbxmpp.connection    (example.org) ::::: DATA RECEIVED ::::

            <proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>

            2026-11-21 18:20:01 (I) nbxmpp.connection    (example.org) ::::: DATA SENT ::::

            <?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>

            2026-11-21 18:20:01 (I) nbxmpp.connection    (example.org) ::::: DATA RECEIVED ::::

            <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='2' version='1.0'>\(Self.features)

            2026-11-21 18:20:01 (W) nbxmpp.auth          (example.org) No password

            """
        )
        #expect(
            Self.steps(told) == [
                "connect: skipped, not in a client log", "stream-open: ok", "features: ok", "starttls: ok",
                "tls: skipped, not recorded; the log contains the decrypted streams", "stream-open: ok", "features: ok",
                "mechanism: skipped, nothing more is recorded",
            ]
        )
        // The log ends before the client does anything: no verdict.
        #expect(told.allSatisfy { LoginDiagnosis($0.record) == nil })
        #expect(!told.contains { $0.record.code == "unexpected-restart" || $0.record.code == "starttls-injection" })
        #expect(told.filter { $0.record.code == "foreign-line" }.count == 1)
    }

    // MARK: What logs do

    @Test func `Each unexpected new stream is a new session`() throws {
        let login = """
            12:00:00.000 SEND: <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>
            12:00:00.100 RECV: \(Self.features)
            12:00:00.200 SEND: \(Self.auth)
            12:00:00.300 RECV: \(Self.failure)

            """
        let (_, told) = try Self.read(login + login.replacing("12:00", with: "12:01"))
        #expect(told.filter { $0.record.code == "session-ended" }.map(\.record.session) == [1, 2])
        #expect(told.compactMap { LoginDiagnosis($0.record)?.cause } == [.notAuthorized, .notAuthorized])
    }

    @Test func `A session in a log ends with its streams`() throws {
        let header =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"
        let (_, told) = try Self.read(
            """
            12:00:00.000 [1] SEND: \(header)
            12:00:00.100 [1] RECV: \(Self.features)
            12:00:00.200 [2] SEND: \(header)
            12:00:00.300 [3] SEND: \(header)
            12:00:00.400 [1] SEND: </stream:stream>
            12:00:00.500 [1] RECV: </stream:stream>
            12:00:01.000 [3] SEND: <presence/>
            12:00:30.000 [3] SEND: <presence/>
            13:00:00.000 info [3] net: a line of the program

            """
        )
        let ends = told.filter { $0.record.code == "session-ended" }
        #expect(ends.map(\.record.session) == [1, 2, 3])
        #expect(
            ends.map { $0.record.time.text.prefix(23).suffix(12) } == ["12:00:00.500", "12:00:00.200", "13:00:00.000"]
        )
        // Told before what comes later, so that files can be merged by time.
        let first = try #require(told.firstIndex { $0.record.code == "session-ended" })
        #expect(told[first...].contains { $0.record.kind == .stanza })
    }

    @Test func `Items that a client sends after the end of its stream do not begin a session`() throws {
        let header =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"
        let session = """
            12:00:00.000 SEND: \(header)
            12:00:00.100 RECV: \(Self.features)
            12:00:00.200 SEND: </stream:stream>
            12:00:00.300 RECV: <r xmlns='urn:xmpp:sm:3'/>
            12:00:00.400 SEND: <a xmlns='urn:xmpp:sm:3' h='9'/>
            12:00:00.500 RECV: </stream:stream>

            """
        let (_, told) = try Self.read(session + session.replacing("12:00", with: "12:01"))
        #expect(told.filter { $0.record.code == "session-ended" }.map(\.record.session) == [1, 2])
        #expect(told.filter { $0.record.code == "after-stream-end" }.map(\.record.session) == [1, 2])
    }

    @Test func `Stream headers are inferred after each success if a log has none`() throws {
        let (_, told) = try Self.read(
            """
            RECV: \(Self.features)
            SEND: \(Self.auth)
            RECV: \(Self.success)
            RECV: \(Self.bindFeatures)
            SEND: \(Self.bind)
            RECV: \(Self.bound)

            """
        )
        #expect(told.contains { $0.record.code == "session-ready" })
        #expect(told.filter { $0.record.code == "inferred" }.count == 4)
    }

    @Test func `Lines of Python's default logging format and Windows line ends are read`() throws {
        let (_, told) = try Self.read(
            "DEBUG:slixmpp.xmlstream.xmlstream:RECV: \(Self.features)\r\nDEBUG:slixmpp.xmlstream.xmlstream:SEND: \(Self.auth)\r\n"
                + "INFO:slixmpp:something else\r\nERROR:slixmpp:failed\r\nDEBUG:slixmpp.xmlstream.xmlstream:RECV: \(Self.failure)"
        )
        #expect(told.compactMap { LoginDiagnosis($0.record)?.cause } == [.notAuthorized])
        #expect(
            told.filter { $0.record.code == "foreign-line" }.compactMap(\.record.messageText)
                == ["INFO:slixmpp:something else", "ERROR:slixmpp:failed"]
        )
    }

    @Test func `Lines that are not XML are shown unless they may contain a secret`() throws {
        let (_, told) = try Self.read(
            """
            12:00:00 SEND: <stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>
            12:00:01 connected to the server
            12:00:02 using password: R0m30myr0m30
            12:00:03 SENT: the thing
            12:00:04 got token=R0m30myr0m30 from https://example.org/?access_token=R0m30myr0m30
            12:00:05 parsing <auth>R0m30myr0m30</auth>
            """
        )
        let lines = told.filter { $0.record.code == "foreign-line" }.compactMap(\.record.messageText)
        #expect(lines.count == 5)
        #expect(lines.first == "12:00:01 connected to the server")
        #expect(lines.filter { $0.hasPrefix("[redacted:") }.count == 3)
        #expect(!Self.text(told).contains("R0m30myr0m30"))
    }

    @Test func `Times in a log continue after midnight and never decrease`() throws {
        var clock = ClientLogClock(zone: .utc)
        let times = ["23:59:59.500", "23:59:59.400", "00:00:01.000", "00:00:02"].map { text in
            clock.instant(of: ClientLogStamp(Array("\(text) x".utf8))).monotonic
        }
        #expect(times == [0, 0, 1_500_000_000, 2_500_000_000])
        for (text, expected) in [
            ("2026-11-21 18:18:29,580 x", "2026-11-21T18:18:29.580Z"),
            ("2026/11/21 18:18:29: x", "2026-11-21T18:18:29Z"),
            ("2026-11-21T20:18:29+0200 x", "2026-11-21T18:18:29Z"), ("[18:18:29] x", "1970-01-01T18:18:29Z"),
            ("21/11/2026 18:18:29 x", "1970-01-01T18:18:29Z"),
            ("2013-04-05 12:00:00:123 App[1:2] x", "2013-04-05T12:00:00.123Z"),
        ] {
            #expect(ClientLogStamp(Array(text.utf8))?.time == Timestamp(rfc3339: expected), "\(text)")
        }
        for (text, expected) in [
            ("2026-11-21 18:18:29,580 x", "2026-11-21T17:18:29.580Z"),
            ("2026-07-21T18:18:29 x", "2026-07-21T16:18:29Z"),
            ("2026-11-21T18:18:29Z x", "2026-11-21T18:18:29Z"), ("2026-11-21 18:18:29 UTC x", "2026-11-21T18:18:29Z"),
            ("2026-11-21T18:18:29.1-02:00 x", "2026-11-21T20:18:29.1Z"),
            ("2026-11-21 18:18:29 +0000 x", "2026-11-21T18:18:29Z"), ("18:18:29 x", "1970-01-01T18:18:29Z"),
        ] {
            var clock = ClientLogClock(zone: .berlin)
            let time = clock.instant(of: ClientLogStamp(Array(text.utf8))).time
            #expect(time == Timestamp(rfc3339: expected), "\(text)")
        }
        let recording = try #require(Timestamp(rfc3339: "2026-11-21T23:30:00Z"))
        var afterMidnight = ClientLogClock(zone: .berlin)
        _ = afterMidnight.instant(of: ClientLogStamp(Array("00:30:00 x".utf8)))
        #expect(afterMidnight.midnight(near: recording) == Timestamp(rfc3339: "2026-11-21T23:00:00Z"))
        for text in ["", "DEBUG x", "12:30 x", "2026-13-40 99:99:99", "1:2:3"] {
            #expect(ClientLogStamp(Array(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func `A file without an item is refused as an unknown format`() throws {
        let folder = try TemporaryFolder()
        for text in ["hello\nworld\n", "SEND: nothing\n", "{\"a\":1}\n"] {
            let path = try folder.write(text, to: "x.log")
            #expect(throws: ReaderFault(code: .notOurs, path: path)) { try RecordReader([path]) }
        }
    }

    @Test func `Random log content does not crash the reader`() throws {
        var generator = SeededGenerator(seed: 4)
        let pieces = [
            "12:00:00 SEND: ", "RECV: ", "SENT :::: ", "<?xml version='1.0'?>", "<stream:stream", "<stream:stream>",
            "</stream:stream>",
            "<a", "</b>", "\n", "\n\n", "\r\n", "\u{0}", "é", Self.auth, Self.success, Self.features, Self.bound,
            "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>", "2026-11-21T18:18:29Z: ", "DEBUG ", "[", "SEND (",
            ")",
        ]
        for _ in 0..<400 {
            var log = "SEND: <a/>\n"
            for _ in 0..<Int.random(in: 1...30, using: &generator) {
                log += pieces.randomElement(using: &generator) ?? ""
            }
            let (_, told) = try Self.read(log)
            #expect(!told.isEmpty)
        }
    }
}
