import Foundation
import TapTestKit
import Testing

/// Tests of real clients and a real server with the proxy as a user runs it.
@Suite(.timeLimit(.minutes(3)))
struct ProxyTests {
    private static let question = "She speaks: <&> \"it is\" my 'lady'"
    private static let answer = "Ay me! \u{1F339}"

    @Test(
        "slixmpp and profanity talk through the proxy, and its log has all bytes",
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity),
            "Prosody, slixmpp or profanity is missing"
        ),
        arguments: [ScriptedClient.Program.slixmpp, .profanity]
    )
    func twoAccounts(program: ScriptedClient.Program) async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: tap.port, .init(reply: Self.answer, receive: 1))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            program,
            as: .romeo,
            port: tap.port,
            .init(ping: true, send: [(.juliet, Self.question)], receive: 1)
        )
        let told = try await romeo.finish()
        let heard = try await juliet.finish()
        try await tap.stop()
        try await server.stop()

        #expect(told.contains { $0.event == "roster" } && told.contains { $0.event == "pong" })
        #expect(heard.first { $0.event == "received" }?.body == Self.question)
        #expect(told.first { $0.event == "received" }?.body == Self.answer)

        let records = try tap.records()
        records.checkNoByteIsMissing()
        records.checkEveryNumberIsThere()
        for (session, account) in [(1, Account.juliet), (2, .romeo)] {
            let items = records.filter { $0.session == UInt64(session) && $0.isItem }
            Self.checkHandshake(items, account)
            #expect(items.contains { $0.direction == "recv" && $0.payload == "{jabber:iq:roster}query" })
        }
        let pong = try #require(records.first { $0.session == 2 && $0.type == "result" && $0.name == "iq" })
        #expect(pong.answers != nil && pong.roundTrip != nil)
        // The log has each message twice: sent by one client, and received by the other.
        for (body, sender, receiver) in [(Self.question, 2, 1), (Self.answer, 1, 2)] {
            let messages = records.filter { $0.name == "message" && Self.body(of: $0.xml) == body }
            // Sessions of different event loops are recorded in any order.
            let found = messages.map { "\($0.session ?? 0) \($0.direction ?? "")" }
            #expect(found.sorted() == ["\(sender) send", "\(receiver) recv"].sorted())
        }
        for secret in [Account.juliet.password, Account.romeo.password] {
            for path in [tap.json, tap.text, tap.story, tap.capture] {
                #expect(!Tap.read(path).contains(secret))
                #expect(!Tap.read(path).contains(Data("\0juliet\0\(secret)".utf8).base64EncodedString()))
            }
        }
    }

    /// Checks the streams and elements before the first stanza, in the order that every login must have.
    private static func checkHandshake(_ items: [LogRecord], _ account: Account) {
        func place(_ direction: String, after start: Int, _ what: String, _ matches: (LogRecord) -> Bool) -> Int {
            let found = items[min(start, items.count)...].firstIndex { $0.direction == direction && matches($0) }
            if found == nil { Issue.record("\(account.jid): no \(what) after item \(start) of \(items.count)") }
            return (found ?? start) + 1
        }
        var at = place("send", after: 0, "stream header") { $0.kind == "stream-open" }
        at = place("recv", after: at, "stream header") { $0.kind == "stream-open" }
        at = place("recv", after: at, "features with mechanisms") { $0.xml?.contains("<mechanism>") == true }
        at = place("send", after: at, "auth") { $0.name == "auth" && $0.xml?.contains("[redacted:") == true }
        at = place("recv", after: at, "success") { $0.name == "success" }
        at = place("send", after: at, "restart") { $0.kind == "stream-open" && $0.epoch == 2 }
        at = place("recv", after: at, "restart") { $0.kind == "stream-open" && $0.epoch == 2 }
        at = place("recv", after: at, "features with bind") { $0.xml?.contains("xmpp-bind") == true }
        at = place("send", after: at, "bind") { $0.payload == "{urn:ietf:params:xml:ns:xmpp-bind}bind" }
        at = place("recv", after: at, "bound address") { $0.xml?.contains("<jid>\(account.jid)/") == true }
        at = place("send", after: at, "end of the stream") { $0.kind == "stream-close" }
    }

    /// Returns the text of a message's body, with XML references replaced.
    private static func body(of xml: String?) -> String? {
        guard let xml, let start = xml.firstRange(of: "<body>"), let end = xml.firstRange(of: "</body>") else {
            return nil
        }
        var text = String(xml[start.upperBound..<end.lowerBound])
        for (reference, meaning) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")] {
            text = text.replacingOccurrences(of: reference, with: meaning)
        }
        return text
    }

    @Test(
        "Reading the capture gives the same log as the live one",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
    )
    func readIsTheLiveLog() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        try await ScriptedClient(.slixmpp, as: .juliet, port: tap.port, .init(ping: true)).finish()
        let refused = try ScriptedClient(.slixmpp, as: Account("juliet", password: "not hers"), port: tap.port)
        await #expect(throws: KitError.self) { try await refused.finish() }
        try await RawConnection(port: tap.port).write("GET / HTTP/1.1\r\n\r\n")
        try await tap.wait(for: "\"not-xml\"", in: tap.json)
        try await tap.stop()
        try await server.stop()

        for (arguments, path) in [(["--log", "verbose"], tap.text), (["--log", "info"], tap.story)] {
            let read = try await XMPPTapBinary.run(["read", tap.capture] + arguments)
            #expect(read.ending == .exited(0), "\(read.error)")
            let (now, live) = (Self.lines(read.output), Self.lines(Tap.read(path)))
            #expect(!live.isEmpty)
            #expect(now.count == live.count)
            for (now, live) in zip(now, live) { #expect(now == live) }
        }
        let one = try await XMPPTapBinary.run(["read", tap.capture, "--log", "verbose", "--session", "2"])
        let lines = Self.lines(one.output)
        #expect(!lines.isEmpty && lines.allSatisfy { $0.contains("[2") })
        #expect(one.output.contains("not-authorized"))
        let again = try await XMPPTapBinary.run(["read", tap.json, "--log", "verbose"])
        #expect(
            Self.lines(again.output) == Self.lines(Tap.read(tap.text)),
            "a JSON log at verbose is as good as a capture"
        )
    }

    @Test(
        "SIGTERM ends open sessions without losing records",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
    )
    func stops() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        let client = try ScriptedClient(.slixmpp, as: .juliet, port: tap.port, .init(receive: 1))
        try await client.event("ready")
        try await tap.stop()
        await #expect(throws: KitError.self) { try await client.finish() }
        try await server.stop()

        let records = try tap.records()
        records.checkNoByteIsMissing()
        let last = try #require(records.last)
        #expect(last.code == "session-ended")
        #expect(try LogRecord.all(in: tap.capture).map(\.sequence) == records.map(\.sequence))
        #expect(client.events.contains { $0.event == "disconnected" })
    }

    @Test(
        "SIGKILL loses only records after the last flush, and the log stays readable",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
    )
    func isKilled() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let packed = folder.path(of: "packed.xtap.gz")
        let tap = try await Tap(upstream: server.port, arguments: ["--log-to", "\(packed),format=json,verbose"])
        let juliet = try ScriptedClient(.slixmpp, as: .juliet, port: tap.port, .init(receive: 2))
        try await juliet.event("ready")
        let romeo = try ScriptedClient(.slixmpp, as: .romeo, port: tap.port, .init(send: [(.juliet, Self.question)]))
        try await juliet.event("received")
        // Waits for ten flush intervals; one would be enough.
        try await Task.sleep(for: .milliseconds(200))
        tap.binary.process.signal(SIGKILL)
        #expect(try await tap.binary.process.ending() == .signalled(SIGKILL))
        try await juliet.kill()
        try await romeo.kill()
        try await server.stop()

        let whole = Tap.read(tap.capture)
        #expect(whole.contains("She speaks: "))
        let read = try await XMPPTapBinary.run(["read", tap.capture, "--log", "verbose"])
        #expect(read.ending == .exited(0), "\(read.error)")
        #expect(Self.lines(read.output) == Self.lines(Tap.read(tap.text)))
        let unpacked = try await XMPPTapBinary.run(["read", packed, "--log", "verbose"])
        #expect(
            unpacked.ending == .exited(0) && unpacked.error.contains("packed.xtap.gz: its compressed data is cut off")
        )
        #expect(Self.lines(unpacked.output) == Self.lines(read.output))
        // A log cut off within a line. The kill itself does not cause this, because each flush is a single write.
        let torn = try tap.folder.write(String(whole.dropLast(40)), to: "torn.xtap")
        let readTorn = try await XMPPTapBinary.run(["read", torn, "--log", "verbose"])
        #expect(readTorn.ending == .exited(0))
        #expect(readTorn.error.contains("torn.xtap"), "the torn line is not reported: \(readTorn.error)")
        #expect(read.output.hasPrefix(readTorn.output) && !readTorn.output.isEmpty)
    }

    /// Returns the lines of a text log without the header lines, sorted by session, because sessions on different event
    /// loops may be interleaved differently in two logs.
    private static func lines(_ log: String) -> [Substring] {
        let lines = log.split(separator: "\n").filter { !$0.hasPrefix("#") }
        let bySession = Dictionary(grouping: lines) { line in
            String(line.drop { $0 != "[" }.dropFirst().prefix(while: \.isNumber))
        }
        return bySession.sorted { $0.key < $1.key }.flatMap(\.value)
    }

    @Test(
        "The log of a STARTTLS login says where TLS began and how many bytes were encrypted",
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .goSendxmpp, .openssl),
            "Prosody, slixmpp, go-sendxmpp or openssl is missing"
        )
    )
    func startTLS() async throws {
        let certificate = try await TestCertificate()
        let server = try await ProsodyServer(encryption: .startTLS(certificate))
        let tap = try await Tap(upstream: server.port)
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: tap.port,
            startTLS: true,
            .init(receive: 1),
            options: ["--ca", certificate.certificate]
        )
        try await juliet.event("ready")
        try await GoSendxmpp(as: .romeo, port: tap.port, send: Self.answer, to: .juliet).finish()
        let heard = try await juliet.finish()
        #expect(heard.contains { $0.event == "tls" })
        #expect(heard.compactMap(\.body) == [Self.answer])
        try await tap.stop()
        try await server.stop()

        let records = try tap.records()
        for session: UInt64 in [1, 2] {
            let mine = records.filter { $0.session == session }
            mine.checkNoByteIsMissing()
            #expect(mine.contains { $0.name == "starttls" && $0.direction == "send" })
            let began = try #require(mine.first { $0.code == "tls-began" })
            let last = try #require(mine.last { $0.isItem && $0.direction == "send" })
            let offset = (last.offset ?? 0) + (last.length ?? 0)
            #expect(began.message?.contains("byte \(offset) ") == true, "\(began.message ?? "") of \(offset)")
            let hello = try #require(mine.first { $0.code == "client-hello" })
            #expect(hello.message?.contains("TLS 1.3") == true, "\(hello)")
            for direction in ["send", "recv"] {
                let passed = try #require(mine.first { $0.code == "tls-passed" && $0.direction == direction })
                #expect(passed.length ?? 0 > 500, "\(passed)")
                #expect(!mine.contains { $0.isItem && $0.direction == direction && $0.sequence > began.sequence })
            }
            let ended = try #require(mine.first { $0.code == "session-ended" })
            #expect(ended.level == "info")
        }
        #expect(!Tap.read(tap.capture).contains(Self.answer))
    }
}
