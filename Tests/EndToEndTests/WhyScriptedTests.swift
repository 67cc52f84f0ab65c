import Foundation
import TapTestKit
import Testing

/// Tests of the diagnosis of failed logins with scripted servers that behave as no real server does on demand.
@Suite(.serialized, .timeLimit(.minutes(2))) struct WhyScriptedTests {
    private typealias Case = WhyScripted.Case

    private static let header = WhyScripted.header
    private static let answer = WhyScripted.answer
    private static let sasl = WhyScripted.sasl
    private static let challenge = WhyScripted.challenge
    private static let first = WhyScripted.first

    private static func features(_ mechanisms: String...) -> String { WhyScripted.features(mechanisms) }
    private static func error(_ condition: String, _ content: String = "", text: String? = nil) -> String {
        WhyScripted.error(condition, content, text: text)
    }
    private static func auth(_ mechanism: String, _ message: String) -> String { WhyScripted.auth(mechanism, message) }
    private static func say(_ name: String, _ message: String) -> String { WhyScripted.say(name, message) }
    private static func failure(_ condition: String) -> String { WhyScripted.failure(condition) }

    private static let streams: [Case] = [
        Case(
            [answer + error("see-other-host", "xmpp2.example.org:5222")],
            "server",
            "features see-other-host server",
            "RFC 6120 §4.9.3.19",
            "xmpp2.example.org:5222"
        ),
        Case(
            [answer + error("resource-constraint")],
            "server",
            "features resource-constraint server",
            "RFC 6120 §4.9.3.17",
            "the server is out of resources"
        ),
        Case(
            [answer + error("policy-violation", text: "no more than 3 logins a minute")],
            "server",
            "features policy-violation client",
            "RFC 6120 §4.9.3.14",
            "policy violation: no more than 3 logins a minute"
        ),
        Case(
            [answer + error("system-shutdown")],
            "server",
            "features system-shutdown server",
            "RFC 6120 §4.9.3.20",
            "when the server is back"
        ),
        Case(
            [answer + error("unsupported-version")],
            "server",
            "features version-mismatch client",
            "RFC 6120 §4.9.3.25",
            "version='1.0'"
        ),
        Case(
            [answer + error("invalid-namespace")],
            "server",
            "features namespace-mismatch client",
            "RFC 6120 §4.9.3.10",
            "jabber:component:accept"
        ),
        Case(
            [answer + error("host-unknown")],
            "server",
            "features host-unknown client",
            "RFC 6120 §4.9.3.6",
            "the server does not serve localhost"
        ),
        Case(
            [answer.replacing(" version='1.0'", with: "")],
            "client",
            "stream-open version-mismatch server",
            "RFC 6120 §4.7.5",
            "the server's stream header has no version"
        ),
        Case([answer], "server", "features server-gone server", "RFC 6120 §4.4", "without a stream error"),
    ]

    private static let logins: [Case] = [
        Case(
            [
                answer + features("SCRAM-SHA-1", "PLAIN"), auth("SCRAM-SHA-1", "n,," + first),
                say("challenge", challenge), say("response", WhyScripted.final), failure("temporary-auth-failure"),
                auth("PLAIN", "\0juliet\0R0m30myr0m30"), failure("not-authorized"),
            ],
            "client",
            "sasl plain-downgrade client",
            "RFC 4616 §5",
            "SCRAM-SHA-1 failed (temporary-auth-failure)"
        ),
        Case(
            [
                answer + features("SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"), auth("SCRAM-SHA-1", "y,," + first),
                failure("malformed-request"),
            ],
            "client",
            "sasl channel-binding-denied client",
            "RFC 5802 §6",
            "(gs2 flag y)"
        ),
        Case(
            [
                answer + features("SCRAM-SHA-1"), auth("SCRAM-SHA-1", "n,," + first),
                say("challenge", "e=unknown-user"), "<abort \(sasl)/>", failure("not-authorized"),
            ],
            "client",
            "sasl unknown-user client",
            "RFC 6120 §6.5.10",
            "the server does not know the user name"
        ),
        Case(
            [
                answer + features("SCRAM-SHA-1"), auth("SCRAM-SHA-1", "n,," + first), say("challenge", challenge),
            ],
            "client",
            "sasl client-gave-up client",
            "RFC 6120 §4.4",
            "disconnected after the server's challenge"
        ),
        Case(
            [answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), failure("account-disabled")],
            "client",
            "sasl account-disabled server",
            "RFC 6120 §6.5.2",
            "the account is disabled"
        ),
        Case(
            [
                answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), "<success \(sasl)/>", header,
                answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
                "<presence/>", error("not-authorized"),
            ],
            "server",
            "bind missing-bind client",
            "RFC 6120 §7.1",
            "before it bound a resource"
        ),
        Case(
            [
                answer + features("PLAIN"), auth("PLAIN", "\0juliet\0R0m30myr0m30"), "<success \(sasl)/>", header,
                answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
                "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
                "<iq type='error' id='b'><error type='wait'><resource-constraint "
                    + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
            ],
            "client",
            "bind resource-constraint server",
            "RFC 6120 §7.6.2.1",
            "the server's limit of sessions"
        ),
    ]

    @Test func `each server's stream error is diagnosed`() async throws { try await WhyScripted.judge(Self.streams) }

    @Test func `each failed step of a login is diagnosed`() async throws { try await WhyScripted.judge(Self.logins) }

    @Test func `connecting to a server that accepts no connections times out`() async throws {
        let full = try RawListener(backlog: 0)
        // The server's backlog has room for one connection; later ones get no answer.
        let waiting = try RawConnection(port: full.port)
        let tap = try await Tap(upstream: full.port)
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.header)
        try await client.read(through: "remote-connection-failed", within: .seconds(40))
        withExtendedLifetime(waiting) {}
        try await tap.stop()
        let diagnosis = try #require(try tap.records().first { $0.code == "login-failed" })
        let details = try #require(diagnosis.details)
        #expect(
            "\(details.step ?? "") \(details.cause ?? "") \(details.side ?? "")" == "connect connection-timeout network"
        )
        #expect(details.proxyIsCause == false && diagnosis.message?.contains("firewalls") == true)
    }
}
