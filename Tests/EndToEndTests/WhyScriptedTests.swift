import Foundation
import TapTestKit
import Testing

/// Why logins failed at servers that do what no server does on demand: each is played by the test.
@Suite(.serialized, .timeLimit(.minutes(2))) struct WhyScriptedTests {
    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
    private static let answer =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='1' version='1.0'>"
    private static let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"

    private static func features(_ mechanisms: String...) -> String {
        "<stream:features><mechanisms \(sasl)>" + mechanisms.map { "<mechanism>\($0)</mechanism>" }.joined()
            + "</mechanisms></stream:features>"
    }

    private static func error(_ condition: String, _ content: String = "", text: String? = nil) -> String {
        let namespace = "xmlns='urn:ietf:params:xml:ns:xmpp-streams'"
        return "<stream:error><\(condition) \(namespace)>\(content)</\(condition)>"
            + (text.map { "<text \(namespace)>\($0)</text>" } ?? "") + "</stream:error></stream:stream>"
    }

    private static func auth(_ mechanism: String, _ message: String) -> String {
        "<auth \(sasl) mechanism='\(mechanism)'>\(Data(message.utf8).base64EncodedString())</auth>"
    }

    private static func say(_ name: String, _ message: String) -> String {
        "<\(name) \(sasl)>\(Data(message.utf8).base64EncodedString())</\(name)>"
    }

    private static func failure(_ condition: String) -> String { "<failure \(sasl)><\(condition)/></failure>" }

    private static let first = "n=juliet,r=fyko+d2lbbFgONRv9qkxdawL"
    private static let challenge =
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    private static let final =
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="

    /// What is said after the client's header, the server first and then in turns; who leaves then, and what is to be told.
    private typealias Case = (
        said: [String], leaver: String, verdict: String, rule: String, words: String
    )

    private static let streams: [Case] = [
        (
            [answer + error("see-other-host", "xmpp2.example.org:5222")], "server", "features see-other-host server",
            "RFC 6120 §4.9.3.19", "xmpp2.example.org:5222"
        ),
        (
            [answer + error("resource-constraint")], "server", "features resource-constraint server",
            "RFC 6120 §4.9.3.17", "the server has no room for the session"
        ),
        (
            [answer + error("policy-violation", text: "no more than 3 logins a minute")], "server",
            "features policy-violation client", "RFC 6120 §4.9.3.14",
            "the server forbids it: no more than 3 logins a minute"
        ),
        (
            [answer + error("system-shutdown")], "server", "features system-shutdown server", "RFC 6120 §4.9.3.20",
            "when the server is back"
        ),
        (
            [answer + error("unsupported-version")], "server", "features version-mismatch client",
            "RFC 6120 §4.9.3.25", "version='1.0'"
        ),
        (
            [answer + error("invalid-namespace")], "server", "features namespace-mismatch client",
            "RFC 6120 §4.9.3.10", "jabber:component:accept"
        ),
        (
            [answer + error("host-unknown")], "server", "features host-unknown client", "RFC 6120 §4.9.3.6",
            "the server does not serve localhost"
        ),
        (
            [answer.replacing(" version='1.0'", with: "")], "client", "stream-open version-mismatch server",
            "RFC 6120 §4.7.5", "the server's stream header has no version"
        ),
        ([answer], "server", "features server-gone server", "RFC 6120 §4.4", "did not say why"),
    ]

    private static let logins: [Case] = [
        (
            [
                answer + features("SCRAM-SHA-1", "PLAIN"), auth("SCRAM-SHA-1", "n,," + first),
                say("challenge", challenge), say("response", final), failure("temporary-auth-failure"),
                auth("PLAIN", "\0juliet\0R0m30myr0m30"), failure("not-authorized"),
            ], "client", "sasl plain-downgrade client", "RFC 4616 §5", "SCRAM-SHA-1 failed (temporary-auth-failure)"
        ),
        (
            [
                answer + features("SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"), auth("SCRAM-SHA-1", "y,," + first),
                failure("malformed-request"),
            ], "client", "sasl channel-binding-denied client", "RFC 5802 §6", "(gs2 flag y)"
        ),
        (
            [
                answer + features("SCRAM-SHA-1"), auth("SCRAM-SHA-1", "n,," + first),
                say("challenge", "e=unknown-user"), "<abort \(sasl)/>", failure("not-authorized"),
            ], "client", "sasl unknown-user client", "RFC 6120 §6.5.10", "the server does not know the name"
        ),
        (
            [
                answer + features("SCRAM-SHA-1"), auth("SCRAM-SHA-1", "n,," + first), say("challenge", challenge),
            ], "client", "sasl client-gave-up client", "RFC 6120 §4.4", "left after the server's challenge"
        ),
        (
            [answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), failure("account-disabled")],
            "client", "sasl account-disabled server", "RFC 6120 §6.5.2", "the account is disabled"
        ),
        (
            [
                answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), "<success \(sasl)/>", header,
                answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
                "<presence/>", error("not-authorized"),
            ], "server", "bind missing-bind client", "RFC 6120 §7.1", "has bound no resource"
        ),
        (
            [
                answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), "<success \(sasl)/>", header,
                answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
                "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
                "<iq type='error' id='b'><error type='wait'><resource-constraint "
                    + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
            ], "client", "bind resource-constraint server", "RFC 6120 §7.6.2.1", "no further session"
        ),
    ]

    @Test func `what servers say that end a stream`() async throws { try await judge(Self.streams) }

    @Test func `what comes of steps of a login`() async throws { try await judge(Self.logins) }

    private func judge(_ cases: [Case]) async throws {
        let listener = try RawListener()
        let tap = try await Tap(upstream: listener.port)
        for one in cases { try await play(one, tap, listener) }
        try await tap.stop()
        let records = try tap.records()
        for (index, one) in cases.enumerated() {
            let verdicts = records.filter { $0.session == UInt64(index + 1) && $0.code == "login-failed" }
            try #require(verdicts.count == 1, "\(one.verdict): \(verdicts.count)")
            let facts = try #require(verdicts[0].details)
            #expect("\(facts.rung ?? "") \(facts.cause ?? "") \(facts.side ?? "")" == one.verdict)
            #expect(facts.rule == one.rule && facts.proxyIsCause == false, "\(one.verdict): \(facts.rule ?? "")")
            #expect(verdicts[0].message?.contains(one.words) == true, "\(verdicts[0].message ?? "")")
            let explained = try await XMPPTapBinary.run(["explain", tap.json, "--session", "\(index + 1)"])
            #expect(explained.ending == .exited(1) && explained.output.contains(one.words), "\(explained.output)")
        }
        let log = Tap.read(tap.json) + Tap.read(tap.text)
        #expect(!log.contains("R0m30myr0m30") && !log.contains("v0X8v3Bz2T0CJGbJQyF0X"))
    }

    private func play(_ one: Case, _ tap: Tap, _ listener: RawListener) async throws {
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header)
        var server = try await listener.accept()
        // The first connection of all only asks whether anybody is there.
        if try await server.read(until: { $0.count >= Self.header.utf8.count }).end != .enough {
            server = try await listener.accept()
            try await server.read(through: Self.header)
        }
        for (index, text) in one.said.enumerated() {
            let (from, to) = index.isMultiple(of: 2) ? (server, client) : (client, server)
            try await from.write(text)
            try await to.read(through: text)
        }
        (one.leaver == "server" ? server : client).finish()
        _ = try await (one.leaver == "server" ? client : server).read { _ in false }
        client.close()
        server.close()
    }

    @Test func `a server that is there and takes no more connections is waited for, and no longer`() async throws {
        let full = try RawListener(backlog: 0)
        // The system has room for one that nobody accepts; whoever comes now is not answered.
        let waiting = try RawConnection(port: full.port)
        let tap = try await Tap(upstream: full.port)
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header)
        try await client.read(through: "remote-connection-failed", within: .seconds(40))
        withExtendedLifetime(waiting) {}
        try await tap.stop()
        let verdict = try #require(try tap.records().first { $0.code == "login-failed" })
        let facts = try #require(verdict.details)
        #expect("\(facts.rung ?? "") \(facts.cause ?? "") \(facts.side ?? "")" == "connect connection-timeout network")
        #expect(facts.proxyIsCause == false && verdict.message?.contains("firewalls") == true)
    }
}
