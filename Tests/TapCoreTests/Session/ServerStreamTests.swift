import TapCore
import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of streams between servers whose TLS xmpptap terminates: the order of the handshakes, and the causes of failures.
@Suite struct ServerStreamTests {
    private static let header =
        "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' from='a.example' "
        + "to='b.example' version='1.0'>"
    private static let answer =
        "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' from='b.example' "
        + "to='a.example' id='1' version='1.0'>"
    private static let startTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let proceed = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let external =
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>EXTERNAL</mechanism></mechanisms>"
        + "</stream:features>"
    private static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>"
    private static let refusal =
        "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>no certificate</text></failure>"
    private static let notAuthorized =
        "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        + "<text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>not valid</text></stream:error></stream:stream>"

    private static func agreement(_ peer: PeerCertificate? = nil, fault: String? = nil, isShown: Bool = false)
        -> TLSAgreement
    {
        var agreement = TLSAgreement(version: 0x0304, details: ["names": .strings(["b.example"])], summary: "TLS 1.3")
        agreement.peer = peer
        agreement.overlooked = fault.map { "it is \($0)" }
        agreement.overlookedCode = fault
        agreement.isUnverified = isShown
        return agreement
    }

    private static let verified = PeerCertificate.verified(
        "valid",
        ["names": .strings(["a.example"])],
        isForClients: true
    )
    private static let trust = Remedy.trustAuthority(Remedy.AuthorityTrust(domain: "a.example"))
    private static let shown = IdentityChoice.shown(summary: "certificate for a.example", trust: trust)
    private static let withheld = IdentityChoice.withheld("it is not trusted")

    /// Returns a session in which the receiving server has requested a certificate, and TLS is established with the
    /// initiating server.
    private static func waiting(_ peer: PeerCertificate = verified, fault: String? = nil) -> SessionHarness {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        var harness = SessionHarness(options: options)
        harness.send(header)
        harness.recv(answer + "<stream:features>\(startTLS)</stream:features>")
        harness.send(startTLS)
        harness.recv(proceed)
        harness.handle(.tls(.server, .identityRequested(agreement(fault: fault))))
        harness.handle(.tls(.client, .opened(agreement(peer, isShown: fault != nil))))
        return harness
    }

    /// Returns a session with TLS on both legs, and with streams inside.
    private static func opened(
        _ peer: PeerCertificate = verified,
        _ choice: IdentityChoice = shown,
        fault: String? = nil
    ) -> SessionHarness {
        var harness = waiting(peer, fault: fault)
        harness.handle(.tls(.server, .identityChosen(choice)))
        harness.handle(.tls(.server, .opened(agreement(fault: fault))))
        harness.send(header)
        harness.recv(answer)
        return harness
    }

    /// Ends the session, and returns its diagnosis.
    private static func diagnosis(_ harness: inout SessionHarness) throws -> LoginDiagnosis {
        harness.leave()
        return try #require(harness.diagnoses.first)
    }

    @Test func `the receiving server gets its certificate after TLS with the initiating server`() {
        var harness = Self.waiting()
        #expect(harness.handshakes == [.server, .client])
        #expect(harness.presented == 1)
        #expect(harness.text(.recv).hasSuffix(Self.proceed))
        harness.send(Self.header)
        #expect(!harness.text(.send).hasSuffix(Self.header + Self.startTLS + Self.header))
        harness.handle(.tls(.server, .opened(Self.agreement())))
        #expect(harness.text(.send) == Self.header + Self.startTLS + Self.header)
        #expect(harness.told(code: "peer-certificate").count == 1)
    }

    @Test func `if the receiving server refuses TLS, the initiating server gets a stream error inside TLS`() {
        var harness = Self.waiting()
        harness.handle(.tls(.server, .failed(TLSFailure(code: "tls-alert", "it was refused"))))
        #expect(harness.closed != nil)
        let inside = harness.text(.recv).split(separator: Self.proceed).last.map(String.init) ?? ""
        #expect(inside.contains("xmlns='jabber:server'") && inside.contains("<remote-connection-failed"))
    }

    /// The refusal of an initiating server, and its expected diagnosis.
    private struct Case {
        var peer = verified
        var choice = shown
        var condition = "not-authorized"
        var text = "no certificate"
        var cause: LoginCause
        var side = LoginCause.Side.client
        var reason: String
    }

    private static let may = "it may not trust the authority of the certificate that xmpptap shows for a.example"

    private static let cases = [
        Case(
            peer: .refused(code: "certificate-expired", "it expired", summary: "old", [:], dependsOnTrust: false),
            choice: withheld,
            cause: .certificateExpired,
            reason: "the certificate of a.example is not trusted, so xmpptap showed none: it expired"
        ),
        // Both servers may trust an issuer that xmpptap does not.
        Case(
            peer: .refused(code: "certificate-self-signed", "it is", summary: "own", [:], dependsOnTrust: true),
            choice: withheld,
            cause: .certificateUnknownIssuer,
            side: .unknown,
            reason: "the certificate of a.example is not trusted, so xmpptap showed none: it is"
        ),
        Case(
            peer: .missing,
            choice: withheld,
            cause: .certificateMissing,
            reason: "a.example shows no certificate"
        ),
        Case(
            choice: withheld,
            cause: .certificateMissing,
            side: .tap,
            reason: "xmpptap showed b.example no certificate of a.example: it is not trusted"
        ),
        Case(
            peer: .verified("valid", [:], isForClients: false),
            text: "unsupported certificate purpose",
            cause: .certificateRefused,
            reason: "the certificate of a.example is valid, but only for TLS servers (no clientAuth)"
        ),
        Case(
            peer: .verified("valid", [:], isForClients: false),
            cause: .certificateNotAccepted,
            side: .unknown,
            reason: "\(may), or accept it only from TLS clients (the certificate of a.example has no clientAuth)"
        ),
        Case(cause: .certificateNotAccepted, side: .unknown, reason: may),
    ]

    @Test func `a refused SASL EXTERNAL is explained by the certificates, as far as they are evidence`() throws {
        for expected in Self.cases {
            var harness = Self.opened(expected.peer, expected.choice)
            harness.recv(Self.external)
            harness.send(Self.auth)
            harness.recv(
                "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>\(expected.text)</text></failure>"
            )
            let found = try Self.diagnosis(&harness)
            #expect(found.cause == expected.cause)
            #expect(found.side == expected.side)
            #expect(found.isProxyTheCause == (expected.side == .unknown ? nil : expected.side == .tap))
            #expect(found.party == (expected.side == .client ? "a.example" : nil))
            #expect(
                "\(found.finding)"
                    == "b.example refused SASL EXTERNAL of a.example (not-authorized): \(expected.text); \(expected.reason)"
            )
            #expect(found.certificates.count == 2)
            #expect(found.certificates.last?.hasPrefix("b.example: for b.example") == true)
        }
    }

    @Test func `another condition of SASL says nothing about certificates`() throws {
        var harness = Self.opened(.missing, Self.withheld)
        harness.recv(Self.external)
        harness.send(Self.auth)
        harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><temporary-auth-failure/></failure>")
        #expect(try Self.diagnosis(&harness).cause == .temporaryFailure)
    }

    @Test func `a stream error in place of features is explained like a refused SASL EXTERNAL`() throws {
        var harness = Self.opened(.missing, Self.withheld)
        harness.recv(Self.notAuthorized)
        let found = try Self.diagnosis(&harness)
        #expect(found.cause == .certificateMissing && found.party == "a.example")
        #expect("\(found.finding)".hasPrefix("b.example refused a.example (not-authorized): not valid"))
    }

    @Test(arguments: [true, false])
    func `an initiating server that refuses the receiving server names its fault, if there is one`(hasError: Bool)
        throws
    {
        var harness = Self.opened(fault: "certificate-expired")
        harness.recv(Self.external)
        if hasError { harness.send(Self.notAuthorized) }
        var found = try Self.diagnosis(&harness)
        #expect(found.cause == .certificateExpired && found.party == "b.example")
        #expect("\(found.finding)".hasSuffix("the certificate of b.example is not valid: it is certificate-expired"))
        // Without a fault of that certificate, the reason may be that of xmpptap.
        harness = Self.opened()
        harness.recv(Self.external)
        if hasError { harness.send(Self.notAuthorized) }
        found = try Self.diagnosis(&harness)
        #expect(found.cause == .certificateNotAccepted && found.side == .unknown && found.isProxyTheCause == nil)
    }

    @Test func `an unanswered dialback after a refused certificate is the cause`() throws {
        var harness = Self.opened(.missing, Self.withheld)
        harness.recv(Self.external)
        harness.send(Self.auth)
        harness.recv(Self.refusal)
        harness.send("<db:result xmlns:db='jabber:server:dialback' from='a.example' to='b.example'>key</db:result>")
        harness.wait(20_000_000_000)
        let found = try Self.diagnosis(&harness)
        #expect(found.loginStep == .dialback)
        #expect("\(found.finding)".hasSuffix("before, SASL EXTERNAL was refused (not-authorized): no certificate"))
    }

    @Test(
        arguments: [
            (
                "type='error'><error><remote-server-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>",
                "could not reach"
            ),
            ("type='invalid'>", "found the dialback key of a.example invalid"),
        ]
    )
    func `a failed dialback is explained, and the stream error that follows is not the cause`(
        answer: String,
        finding: String
    ) throws {
        var harness = Self.opened()
        harness.recv("<stream:features><dialback xmlns='urn:xmpp:features:dialback'/></stream:features>")
        harness.send("<db:result xmlns:db='jabber:server:dialback' from='a.example' to='b.example'>key</db:result>")
        harness.recv(
            "<db:result xmlns:db='jabber:server:dialback' from='b.example' to='a.example' \(answer)</db:result>"
        )
        harness.send(Self.notAuthorized)
        let found = try Self.diagnosis(&harness)
        #expect(found.cause == .dialbackFailed)
        #expect("\(found.finding)".contains(finding))
    }
}
