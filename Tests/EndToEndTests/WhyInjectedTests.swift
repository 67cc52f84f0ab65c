import TapTestKit
import Testing

/// Tests of the diagnosis of logins that failed because other data arrived instead of TLS.
@Suite(.serialized, .timeLimit(.minutes(2))) struct WhyInjectedTests {
    private static let request = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let consent = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let offer =
        WhyScripted.answer
        + "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"

    /// The client's data after the server's offer, the server's data after that, and the expected diagnosis.
    private typealias Case = (client: String, server: String?, diagnosis: WhyScene)

    private typealias WhyScene = WhyTLSScene.Verdict

    private static let cases: [Case] = [
        (
            request + WhyScripted.auth("PLAIN", "\0juliet\0R0m30myr0m30"), nil,
            WhyScene(
                cause: "starttls-injection",
                side: "client",
                rule: "RFC 6120 §5.3.3",
                words: ["after <starttls/>", "check for an attacker between the two"]
            )
        ),
        (
            request, consent + "<message><body>from the network</body></message>",
            WhyScene(
                cause: "starttls-injection",
                side: "server",
                rule: "RFC 6120 §5.3.3",
                words: ["after <proceed/>: injected"]
            )
        ),
        (
            request, consent + " \n",
            WhyScene(
                cause: "tls-failed",
                side: "server",
                rule: "RFC 8446",
                words: ["the server sent data that is not TLS", "check the port, and the logs of both sides"]
            )
        ),
    ]

    @Test func `each diagnosis names the side, the rule and the suggested check`() async throws {
        for (index, one) in Self.cases.enumerated() {
            let own = try await InterceptAuthority()
            let listener = try RawListener()
            let tap = try await Tap(upstream: listener.port, arguments: own.arguments)
            let client = try RawConnection(port: tap.port)
            try await client.write(WhyScripted.header)
            var server = try await listener.accept()
            // The proxy's first connection only checks whether the server accepts connections.
            if try await server.read(until: { $0.count >= WhyScripted.header.utf8.count }).end != .enough {
                server = try await listener.accept()
                try await server.read(through: WhyScripted.header)
            }
            try await server.write(Self.offer)
            try await client.read(through: "</stream:features>")
            try await client.write(one.client)
            if let said = one.server {
                try await server.read(through: Self.request)
                try await server.write(said)
                if one.diagnosis.cause == "tls-failed" {
                    // The proxy's ClientHello has arrived; the server answers with data that is not TLS.
                    _ = try await server.read { $0.count > 5 }
                    try await server.write("HTTP/1.1 400 Bad Request\r\n\r\n")
                }
            }
            _ = try await client.read { _ in false }
            try await tap.stop()
            try await WhyTLSScene.check(tap, one.diagnosis, "case \(index)", sourceLocation: #_sourceLocation)
            #expect(
                !Tap.read(tap.json).contains("R0m30myr0m30") && !Tap.read(tap.text).contains("AGp1bGlldABSMG0zMG15")
            )
        }
    }
}
