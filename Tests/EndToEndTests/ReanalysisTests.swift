import Foundation
import TapTestKit
import Testing

/// Tests of captures from the built proxy whose other records `read --reanalyse` and `explain` derive again from the
/// recorded items.
@Suite(.serialized, .timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReanalysisTests {
    /// Returns the records as JSON, ordered by session, without the sequence numbers.
    private static func records(_ file: String, _ flags: String...) async throws -> [String] {
        let read = try await XMPPTapBinary.run(["read", file, "--json"] + flags)
        try #require(read.ending == .exited(0), "\(read.error)")
        var sessions: [Int: [String]] = [:]
        for line in read.output.split(separator: "\n").dropFirst() {
            var record = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            record["sequence"] = nil
            record["answers"] = nil
            let text = try JSONSerialization.data(withJSONObject: record, options: [.sortedKeys])
            sessions[record["session"] as? Int ?? 0, default: []].append(String(decoding: text, as: UTF8.self))
        }
        return sessions.sorted { $0.key < $1.key }.flatMap(\.value)
    }

    /// Checks that the derived records equal the recorded ones.
    private static func check(_ tap: Tap, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let (stored, made) = (
            try await records(tap.capture), try await records(tap.capture, "--reanalyse")
        )
        #expect(stored.count == made.count, sourceLocation: sourceLocation)
        for (one, other) in zip(stored, made) where one != other {
            Issue.record("recorded \(one)\nmade     \(other)", sourceLocation: sourceLocation)
        }
        // A step that is missing in the file is derived again.
        let folder = try TemporaryFolder()
        let lines = Tap.read(tap.capture).split(separator: "\n").filter {
            !$0.contains("\"code\":\"step\"") || !$0.contains("\"step\":\"stream-open\"")
        }
        let lacking = try folder.write(lines.joined(separator: "\n") + "\n", to: "lacking.xtap")
        let again = try await records(lacking, "--reanalyse")
        #expect(
            again.filter { $0.contains("\"code\":\"step\"") }.count
                == made.filter { $0.contains("\"code\":\"step\"") }.count,
            sourceLocation: sourceLocation
        )
    }

    // MARK: Scripted servers

    private static let features = WhyScripted.features(["SCRAM-SHA-1", "PLAIN"])

    /// Plays a session, in which the client sends the first text and each peer sends the next one in turn.
    private static func play(_ said: [String], _ tap: Tap, _ listener: RawListener, resets: Bool = false) async throws {
        let client = try RawConnection(port: tap.port)
        try await client.write(said[0])
        var server = try await listener.accept()
        // The proxy's first connection only checks whether the server accepts connections.
        if try await server.read(until: { $0.count >= said[0].utf8.count }).end != .enough {
            server = try await listener.accept()
            try await server.read(through: said[0])
        }
        for (index, text) in said.enumerated().dropFirst() where !text.isEmpty {
            let (from, to) = index.isMultiple(of: 2) ? (client, server) : (server, client)
            try await from.write(text)
            try await to.read(through: text)
        }
        client.finish()
        _ = try await server.read { _ in false }
        server.finish()
        _ = try await client.read { _ in false }
        client.close()
        server.close()
    }

    private static let bound = [
        WhyScripted.header, WhyScripted.answer + features,
        WhyScripted.auth("PLAIN", "\0juliet\0R0m30myr0m30"), "<success \(WhyScripted.sasl)/>",
        WhyScripted.header,
        WhyScripted.answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
        "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
        "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            + "<jid>juliet@localhost/balcony</jid></bind></iq>",
    ]

    @Test func `Records of logins, errors and undecoded data can be derived again from a capture`() async throws {
        let listener = try RawListener()
        let tap = try await Tap(upstream: listener.port, arguments: ["--limit", "item=70000"])
        let sm = "xmlns='urn:xmpp:sm:3'"
        let component =
            "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='plays.localhost'>"
        let server =
            "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' "
            + "xmlns:db='jabber:server:dialback' "
        let plays: [[String]] = [
            Self.bound + ["</stream:stream>", "</stream:stream>"],
            Array(Self.bound.prefix(3)) + [WhyScripted.failure("not-authorized")],
            [
                WhyScripted.header, WhyScripted.answer + Self.features,
                WhyScripted.auth("SCRAM-SHA-1", "n,," + WhyScripted.first),
                WhyScripted.say("challenge", WhyScripted.challenge), WhyScripted.say("response", WhyScripted.final),
                WhyScripted.failure("not-authorized"), "</stream:stream>",
            ],
            [WhyScripted.header, WhyScripted.answer + WhyScripted.error("policy-violation", text: "no more than 3")],
            Self.bound + [
                "<enable \(sm) resume='true'/>", "<enabled \(sm) resume='true' id='sm-9b2f51c7d0e84a6f'/>",
            ],
            Array(Self.bound.prefix(6)) + [
                "<resume \(sm) h='0' previd='sm-9b2f51c7d0e84a6f'/>",
                "<resumed \(sm) h='0' previd='sm-9b2f51c7d0e84a6f'/>", "<presence/>",
            ],
            [
                component, component.replacing(" to='", with: " id='3BF96D32' from='"),
                "<handshake>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>", "<handshake/>",
            ],
            [
                server + "from='montague.example' to='capulet.example' version='1.0'>",
                server + "from='capulet.example' to='montague.example' id='D60000229F' version='1.0'>"
                    + "<stream:features><dialback xmlns='urn:xmpp:features:dialback'/></stream:features>",
                "<db:result from='montague.example' to='capulet.example'>b4835385f37fe2895af6c1</db:result>",
                "<db:result from='capulet.example' to='montague.example' type='valid'/>",
            ],
            Self.bound + ["<message><body>&nothing;</body></message>", "<presence/>"],
            Self.bound + ["<message><body>\(String(repeating: "x", count: 80_000))</body></message>"],
            Self.bound + ["<message to='romeo@localhost'><bo"],
        ]
        for said in plays { try await Self.play(said, tap, listener) }
        try await tap.stop()
        let records = try tap.records()
        let codes = Set(records.compactMap(\.code))
        #expect(codes.isSuperset(of: ["login-failed", "stream-error", "torn", "unparsable"]), "\(codes)")
        #expect(records.contains { $0.truncated == true && $0.kind == "stanza" })
        #expect(records.contains { $0.message?.contains("resumed session 5") == true })
        try await Self.check(tap)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `Records of intercepted and relayed TLS can be derived again from a capture`() async throws {
        let scene = try await InterceptScene()
        let passing = try await Tap(upstream: scene.server.port)
        for (tap, authority) in [(scene.tap, scene.authority), (passing, scene.real.certificate)] {
            for account in [Account.juliet, Account("juliet", password: "wrong")] {
                let client = try ScriptedClient(
                    .slixmpp,
                    as: account,
                    port: tap.port,
                    startTLS: true,
                    .init(ping: true),
                    options: ["--ca", authority, "--timeout", "10"]
                )
                _ = try? await client.finish()
            }
        }
        try await passing.stop()
        try await scene.stop()
        try await Self.check(scene.tap)
        try await Self.check(passing)
    }

    // MARK: Files that cannot be derived again

    @Test func `An incomplete recording is shown with its stored records and exit code 3`() async throws {
        let folder = try TemporaryFolder()
        let log = folder.path(of: "demo.json")
        let demo = try await XMPPTapBinary.run(["demo", "--log", "off", "--log-to", "\(log),format=json"])
        #expect(demo.ending == .exited(0), "\(demo.error)")
        let stored = try await XMPPTapBinary.run(["read", log])
        let read = try await XMPPTapBinary.run(["read", log, "--reanalyse"])
        #expect(read.ending == .exited(3))
        #expect(read.output == stored.output)
        #expect(
            read.error.hasSuffix(
                "--reanalyse: \(log): not a complete capture; the stored records are shown; record with --capture\n"
            ),
            "\(read.error)"
        )
        let explained = try await XMPPTapBinary.run(["explain", log])
        #expect(explained.ending == .exited(0) && explained.error.isEmpty, "\(explained.error)")
    }
}
