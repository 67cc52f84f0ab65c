import TapTestKit
import Testing

/// Tests of the diagnosis of logins that a scripted server refuses, with causes that no real server produces on demand.
@Suite(.serialized, .timeLimit(.minutes(2))) struct WhyRefusedTests {
    private typealias Case = WhyScripted.Case

    private static let answer = WhyScripted.answer
    private static let binding =
        answer + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
    private static let request = "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
    private static let plain = WhyScripted.auth("PLAIN", "\0juliet\0R0m30myr0m30")
    /// The turns up to the request for a resource.
    private static let authenticated = [
        answer + WhyScripted.features(["PLAIN"]), plain, "<success \(WhyScripted.sasl)/>", WhyScripted.header, binding,
        request,
    ]

    /// Returns the turns of a login with PLAIN, or with another message, that the server refuses with a condition.
    private static func refused(_ condition: String, by auth: String = plain) -> [String] {
        [answer + WhyScripted.features(["PLAIN"]), auth, WhyScripted.failure(condition)]
    }

    private static func refusedBinding(_ condition: String) -> [String] {
        authenticated + [
            "<iq type='error' id='b'><error type='cancel'><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "</error></iq>"
        ]
    }

    private static let logins = [
        Case(
            refused("mechanism-too-weak"),
            "client",
            "sasl mechanism-too-weak client",
            "RFC 6120 §6.5.4, §6.5.9",
            "the server requires a stronger mechanism than PLAIN"
        ),
        Case(
            refused("encryption-required"),
            "client",
            "sasl mechanism-too-weak client",
            "RFC 6120 §6.5.4, §6.5.9",
            "the server does not accept PLAIN without TLS"
        ),
        Case(
            refused("credentials-expired"),
            "client",
            "sasl credentials-expired client",
            "RFC 6120 §6.5.3",
            "the password or token has expired"
        ),
        Case(
            refused("temporary-auth-failure"),
            "client",
            "sasl temporary-auth-failure server",
            "RFC 6120 §6.5.11",
            "the server cannot check credentials at the moment"
        ),
        Case(
            refused("invalid-authzid", by: WhyScripted.auth("PLAIN", "nurse@localhost\0juliet\0R0m30myr0m30")),
            "client",
            "sasl invalid-authzid client",
            "RFC 6120 §6.5.6",
            "the account may not act as the client's authorization identity"
        ),
        Case(
            refusedBinding("not-allowed"),
            "client",
            "bind bind-refused server",
            "RFC 6120 §7.6.2, §7.7.2",
            "the server refused the resource (not-allowed)"
        ),
        Case(
            authenticated + [WhyScripted.error("conflict", text: "Replaced by new connection")],
            "server",
            "bind conflict client",
            "RFC 6120 §4.9.3.3",
            "another login uses the same resource"
        ),
    ]

    private static let others = [
        Case(
            [
                answer + "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>",
                "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
                "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>",
            ],
            "server",
            "starttls tls-declined server",
            "RFC 6120 §5.4.2.2",
            "the server answered <failure/> to <starttls/>, although it offers TLS"
        ),
        Case(
            [
                "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' "
                    + "from='echo.localhost' id='3BF96D32'>",
                "<handshake>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>", WhyScripted.error("not-authorized"),
            ],
            "server",
            "handshake handshake-refused client",
            "XEP-0114 §3",
            "the server rejected the component's secret",
            opening: "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' "
                + "to='echo.localhost'>"
        ),
        Case(
            [
                "<stream:stream xmlns='jabber:server' xmlns:db='jabber:server:dialback' from='localhost' "
                    + "to='capulet.example' xmlns:stream='http://etherx.jabber.org/streams' id='457F9224'>",
                "<db:result from='capulet.example' to='localhost'>98e625e7446746ce9b2e51d8</db:result>",
                "<db:result from='localhost' to='capulet.example' type='invalid'/>",
            ],
            "client",
            "dialback dialback-failed client",
            "XEP-0220 §2",
            "check that the domain's server",
            opening: "<stream:stream xmlns='jabber:server' xmlns:db='jabber:server:dialback' from='capulet.example' "
                + "to='localhost' xmlns:stream='http://etherx.jabber.org/streams'>"
        ),
        Case(
            ["HTTP/1.1 400 Bad Request\r\n\r\n"],
            "server",
            "stream-open not-xmpp client",
            "RFC 6120 §4.2",
            "the client does not send XMPP",
            opening: "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ),
    ]

    @Test func `errors that servers send at login and resource binding are diagnosed`() async throws {
        try await WhyScripted.judge(Self.logins)
    }

    @Test func `refused STARTTLS, components, server-to-server streams and non-XMPP data are diagnosed`() async throws {
        try await WhyScripted.judge(Self.others)
    }
}
