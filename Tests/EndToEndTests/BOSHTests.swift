import Foundation
import TapTestKit
import Testing

/// BOSH (XEP-0124, XEP-0206) through the proxy, which decodes it: with Prosody and Strophe, and with a server whose answers
/// the test provides.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap not built"),
    .enabled(if: TestProgram.areInstalled(.prosody, .strophe), "Prosody or Strophe is missing")
)
struct BOSHTests {
    private static func prosody(_ port: UInt16, _ https: String = "https_ports = {}") async throws -> ProsodyServer {
        try await ProsodyServer(
            settings: """
                http_ports = { \(port) }
                http_interfaces = { "127.0.0.1" }
                \(https)
                consider_websocket_secure = true
                consider_bosh_secure = true
                """,
            host: "modules_enabled = { \"websocket\", \"bosh\" }"
        )
    }

    private static func script(_ name: String) -> String {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../TapTestKit/Clients/\(name)")
            .standardized.path
    }

    private static func strophe(
        _ url: String,
        jid: String = Account.juliet.jid,
        password: String = Account.juliet.password,
        trusting file: String? = nil,
        sending: String = ""
    ) throws -> ToolProcess {
        try ToolProcess(
            "/usr/bin/node",
            [script("strophe_client.js"), url, jid, password],
            environment: file.map { ["NODE_EXTRA_CA_CERTS": $0] } ?? [:],
            input: sending
        )
    }

    private static func tap(_ server: UInt16, _ more: [String] = []) async throws -> (tap: Tap, port: UInt16) {
        let tap = try await Tap(
            listen: [],
            arguments: ["--listen-ws", "127.0.0.1:0", "--upstream", "ws://localhost:\(server)/xmpp-websocket"] + more
        )
        return (tap, try await tap.binary.port())
    }

    /// The items of a session: direction, kind, name and type.
    private static func items(_ records: [LogRecord], _ session: UInt64) -> [String] {
        records.filter { $0.session == session && $0.isItem }
            .map { "\($0.direction ?? "") \($0.kind) \($0.name ?? "") \($0.type ?? "")" }
    }

    @Test("Strophe logs in, chats and leaves; the log is that of a login over WebSocket, without the session's id")
    func decodesSessions() async throws {
        let http = try FreePort.next()
        let server = try await Self.prosody(http)
        let folder = try TemporaryFolder()
        let rules = try folder.write("KIND: message\nDROP.\n", to: "quiet.pfw")
        let (tap, port) = try await Self.tap(http)
        for url in ["http://127.0.0.1:\(port)/http-bind", "ws://127.0.0.1:\(port)/xmpp-websocket"] {
            let client = try Self.strophe(url, sending: "hello\nend\n")
            #expect(try await client.ending(within: .seconds(60)) == .exited(0), "\(client.text(of: .standardError))")
            let said = client.lines(of: .standardOutput)
            #expect(said.contains("roster") && said.contains("message hello") && said.contains("message end"))
        }
        let deadline = ContinuousClock.now + .seconds(10)
        while Tap.read(tap.json).split(separator: "session-ended").count < 3, ContinuousClock.now < deadline {
            try await Task.sleep(for: .milliseconds(10))
        }
        try await tap.stop()

        let records = try tap.records()
        #expect(!records.contains { $0.level == "error" || $0.level == "warn" })
        #expect(!records.contains { $0.origin == "tap" })
        // Strophe sends several stanzas in one body, and Prosody answers the body that ends the session: so the order of
        // the directions differs, and the last answers are those of BOSH only.
        let last = ["recv stanza presence unavailable", "recv stream-close close "]
        #expect(Self.items(records, 1).filter { last.contains($0) } == last)
        for direction in ["send", "recv"] {
            let items = (1...2).map { session in
                Self.items(records, session).filter { $0.hasPrefix(direction) && !last.contains($0) }
            }
            #expect(items[0] == items[1] && items[0].count > 8)
        }
        let log = Tap.read(tap.json)
        #expect(log.contains(#""transport":"bosh""#) && log.contains(#""transport":"websocket""#))
        #expect(log.contains("closed by the client"))
        // Prosody's log contains the id of the session.
        let id = try #require(server.log.firstMatch(of: #/sid '([-0-9a-f]+)'/#)?.1)
        #expect(!log.contains(id) && !Tap.read(tap.text).contains(id) && !Tap.read(tap.capture).contains(id))
        #expect(!Tap.read(tap.capture).contains("http://jabber.org/protocol/httpbind"))

        let explained = try await XMPPTapBinary.run(["explain", tap.capture, "--session", "1"])
        #expect(explained.output.contains("ready after"))
        let same = try await XMPPTapBinary.run(["diff", tap.capture, tap.capture, "--session", "1"])
        #expect(same.output.contains("no differences"))
        let read = try await XMPPTapBinary.run(["read", tap.capture, "--session", "1", "--log", "verbose"])
        #expect(read.ending == .exited(0) && read.output.contains("hello"))

        // Rules do nothing, which is said.
        let (other, otherPort) = try await Self.tap(http, ["--rules", rules])
        let client = try Self.strophe("http://127.0.0.1:\(otherPort)/http-bind", sending: "end\n")
        #expect(try await client.ending(within: .seconds(60)) == .exited(0))
        try await other.stop()
        #expect(try other.records().filter { $0.code == "bosh-rules" }.count == 1)
        #expect(try !other.records().contains { $0.action != nil })
        try await server.stop()
    }

    @Test("A failed login has its cause: a password, a domain, a path, a server that cannot be reached")
    func explainsFailures() async throws {
        let http = try FreePort.next()
        let server = try await Self.prosody(http)
        let (tap, port) = try await Self.tap(http)
        let url = "http://127.0.0.1:\(port)/http-bind"
        let failing = try Self.strophe(url, password: "wrong")
        _ = try await failing.line(of: .standardOutput, within: .seconds(60)) { $0.hasPrefix("failed") }
        _ = try await failing.terminate()
        let stranger = try Self.strophe(url, jid: "juliet@other.example")
        #expect(try await stranger.ending(within: .seconds(60)) == .exited(0))
        let lost = try Self.strophe("http://127.0.0.1:\(port)/nothing")
        #expect(try await lost.ending(within: .seconds(60)) == .exited(0))
        try await Task.sleep(for: .seconds(4))
        try await tap.stop()
        let causes = try tap.records().filter { $0.code == "login-failed" }.map { $0.details?.cause ?? "" }
        #expect(causes == ["host-unknown", "stream-error", "wrong-password"])
        for (session, text) in [(1, "password"), (2, "does not serve other.example"), (3, "HTTP 404")] {
            let explained = try await XMPPTapBinary.run(["explain", tap.capture, "--session", "\(session)"])
            #expect(explained.output.contains(text) && explained.ending == .exited(1), "\(explained.output)")
        }
        try await server.stop()

        let (unreachable, otherPort) = try await Self.tap(http)
        let answer = try await Self.post("http-bind", Self.body(1, "to='localhost'"), to: otherPort)
        #expect(answer.hasPrefix("HTTP/1.1 502 "))
        try await unreachable.stop()
        let failed = try unreachable.records().first { $0.code == "login-failed" }
        #expect(failed?.details?.cause == "connection-refused")
    }

    @Test(
        "TLS is ended on both legs, and recorded once for each session",
        .enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing")
    )
    func endsTLS() async throws {
        let certificate = try await TestCertificate()
        let (http, https) = (try FreePort.next(), try FreePort.next())
        let server = try await Self.prosody(
            http,
            """
            https_ports = { \(https) }
            https_interfaces = { "127.0.0.1" }
            https_ssl = { key = "\(certificate.key)", certificate = "\(certificate.certificate)" }
            """
        )
        let authority = try await InterceptAuthority()
        let tap = try await Tap(
            listen: [],
            arguments: authority.arguments + [
                "--listen-ws", "127.0.0.1:0", "--upstream", "wss://localhost:\(https)/xmpp-websocket",
                "--upstream-ca", certificate.certificate,
            ]
        )
        let port = try await tap.binary.port()
        let trusted = try await XMPPTapBinary.run(["ca", "export"] + authority.arguments.suffix(2))
        let folder = try TemporaryFolder()
        let client = try Self.strophe(
            "https://localhost:\(port)/http-bind",
            trusting: try folder.write(trusted.output, to: "ca.pem"),
            sending: "end\n"
        )
        #expect(try await client.ending(within: .seconds(60)) == .exited(0), "\(client.text(of: .standardOutput))")
        #expect(client.lines(of: .standardOutput).contains("message end"))
        try await tap.wait(for: "session-ended", in: tap.json)
        try await tap.stop()
        let records = try tap.records()
        #expect(records.filter { $0.code == "tls-opened" }.count == 2)
        #expect(!records.contains { $0.level == "error" || $0.level == "warn" })
        let explained = try await XMPPTapBinary.run(["explain", tap.capture])
        #expect(explained.output.contains("ready after"))
        try await server.stop()
    }

    // MARK: Prepared answers

    private static func body(_ rid: Int, _ attributes: String = "", _ content: String = "") -> String {
        "<body xmlns='http://jabber.org/protocol/httpbind' rid='\(rid)' \(attributes)>\(content)</body>"
    }

    private static func answer(_ body: String, _ fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
    }

    /// Returns the answer to a request, on a separate connection.
    private static func post(
        _ path: String,
        _ body: String,
        _ fields: String = "",
        to port: UInt16
    ) async throws -> String {
        let connection = try RawConnection(port: port)
        let length = fields.contains("chunked") ? "" : "Content-Length: \(body.utf8.count)\r\n"
        try await connection.write(
            "POST /\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\(length)\(fields)\r\n\(body)"
        )
        let (bytes, _) = try await connection.read(within: .seconds(20)) { _ in false }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Bodies are relayed byte for byte, also those that cannot be decoded, and are put in order")
    func relaysBodies() async throws {
        let http = try FreePort.next()
        let folder = try TemporaryFolder()
        let streams =
            "sid='s1d' requests='2' inactivity='60' from='a.example' xmlns:stream='http://etherx.jabber.org/streams'"
        let hostile = [
            "two": Self.body(0) + Self.body(0), "text": Self.body(0, "", "text"), "empty": "", "cut": "<body rid='",
            "entity": "<!DOCTYPE b [<!ENTITY e 'x'>]>" + Self.body(0, "", "&e;"), "bytes": "\u{0}\u{1}<\r\n",
        ]
        for (name, text) in hostile { _ = try folder.write(Self.answer(text), to: name) }
        _ = try folder.write(Self.answer(Self.body(0, streams, "<stream:features/>")), to: "create")
        _ = try folder.write(Self.answer("\u{1F}\u{8B}\u{8}", "Content-Encoding: gzip\r\n"), to: "gzip")
        for (rid, name) in [(2, "second"), (3, "third-late"), (4, "fourth-late"), (5, "fifth")] {
            _ = try folder.write(Self.answer(Self.body(0, "", "<message id='r\(rid)'/>")), to: name)
        }
        let chunk = Self.body(0, "type='terminate' condition='other-request'")
        let size = String(chunk.utf8.count, radix: 16)
        _ = try folder.write(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(size)\r\n\(chunk)\r\n0\r\n\r\n",
            to: "chunked"
        )
        let peer = try ToolProcess("/usr/bin/python3", [Self.script("http_peer.py"), "\(http)", folder.path])
        _ = try await peer.line(of: .standardOutput, within: .seconds(20)) { $0 == "ready" }
        let (tap, port) = try await Self.tap(http)

        let created = try await Self.post("create", Self.body(1, "to='a.example'"), to: port)
        #expect(created.hasSuffix(Self.body(0, streams, "<stream:features/>")))
        // Two requests at once, which arrive in the wrong order; then two that are answered in the wrong order.
        let sid = "sid='s1d'"
        for (first, second) in [((3, "third-late"), (2, "second")), ((4, "fourth-late"), (5, "fifth"))] {
            async let early = Self.post(first.1, Self.body(first.0, sid, "<message id='c\(first.0)'/>"), to: port)
            try await Task.sleep(for: .milliseconds(200))
            let late = try await Self.post(second.1, Self.body(second.0, sid, "<message id='c\(second.0)'/>"), to: port)
            #expect(late.hasSuffix(Self.body(0, "", "<message id='r\(second.0)'/>")))
            #expect(try await early.hasSuffix(Self.body(0, "", "<message id='r\(first.0)'/>")))
        }
        var rid = 6
        for (name, text) in hostile.sorted(by: { $0.key < $1.key }) {
            let sent = Self.body(rid, sid, "<message id='c\(rid)'/>")
            let answer = try await Self.post(name, sent, to: port)
            #expect(answer.hasSuffix("\r\n\r\n" + text), "\(name)")
            #expect(folder.read("\(name).request") == sent)
            rid += 1
            // The same bytes as a request.
            let again = try await Self.post(name, text, to: port)
            #expect(again.hasSuffix("\r\n\r\n" + text) && folder.read("\(name).request") == text)
        }
        #expect(try await Self.post("gzip", Self.body(rid, sid), to: port).hasSuffix("\u{1F}\u{8B}\u{8}"))
        let far = try await Self.post("chunked", Self.body(9_000_000, sid), to: port)
        #expect(far.contains("other-request"))
        let unknown = try await Self.post("chunked", Self.body(1, "sid='0ther'"), to: port)
        #expect(unknown.contains("other-request"))
        let joined = try await Self.post("fifth", Self.body(50, "sid='0ther'", "<message id='j'/>"), to: port)
        #expect(joined.contains("r5"))
        let parts = Self.body(rid + 1, sid, "<message id='last'/>")
        let length = String(parts.utf8.count, radix: 16)
        let last = try await Self.post(
            "chunked",
            "\(length)\r\n\(parts)\r\n0\r\n\r\n",
            "Transfer-Encoding: chunked\r\n",
            to: port
        )
        #expect(last.contains("other-request"))
        try await tap.stop()
        _ = try await peer.terminate()

        let records = try tap.records()
        let ids = records.filter { $0.kind == "stanza" && $0.session == 1 }.compactMap(\.id)
        let ordered = ["c2", "c3", "r2", "r3", "c4", "c5", "r4", "r5"]
        #expect(ids == ordered + ["c6", "c7", "c8", "c9", "c10", "c11", "last"])
        let codes = Set(records.compactMap(\.code))
        for code in [
            "bosh-several-elements", "bosh-text", "bosh-empty", "doctype", "bosh-compressed", "bosh-outside-window",
            "bosh-unknown-session", "bosh-ended",
        ] { #expect(codes.contains(code), "\(code)") }
        #expect(records.contains { $0.session == 2 && $0.id == "j" })
        let log = Tap.read(tap.json)
        #expect(!log.contains("s1d") && !log.contains("0ther"))
    }
}
