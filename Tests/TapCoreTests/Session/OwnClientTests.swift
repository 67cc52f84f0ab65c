import TapTestKit
import Testing

@testable import TapCore
import TapDiagnosis
import TapRecord

/// Tests of sessions in which xmpptap is the client itself, with one leg and one handshake.
@Suite struct OwnClientTests {
    private static let request = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let consent = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"

    private static var options: SessionOptions {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        options.isOwnClient = true
        return options
    }

    private func steps(_ harness: borrowing SessionHarness) -> [String] {
        harness.told(code: LoginStep.code).compactMap { $0.record.details?[LoginStep.code]?.text }
    }

    @Test func `after STARTTLS both streams restart inside TLS`() {
        var harness = FailedLogin.opened(FailedLogin.startTLS, options: Self.options)
        harness.send(Self.request)
        harness.recv(Self.consent)
        #expect(harness.handshakes.isEmpty)
        harness.handle(.tls(.server, .started(directly: false)))
        harness.openTLS(.server)
        harness.send(FailedLogin.header)
        harness.recv(FailedLogin.answer + FailedLogin.features(FailedLogin.mechanisms("PLAIN")))
        harness.leave(.server)
        #expect(
            steps(harness) == [
                "connect", "stream-open", "features", "starttls", "tls", "stream-open", "features", "mechanism",
            ]
        )
        #expect(harness.told(code: "unexpected-restart").isEmpty)
        #expect(harness.told(code: "tls-opened").count == 1)
    }

    @Test func `with direct TLS the first stream is inside TLS`() {
        var harness = SessionHarness(options: Self.options)
        harness.handle(.tls(.server, .started(directly: true)))
        harness.openTLS(.server)
        harness.send(FailedLogin.header)
        harness.recv(FailedLogin.answer + FailedLogin.features(FailedLogin.mechanisms("PLAIN")))
        harness.leave(.server)
        #expect(steps(harness) == ["connect", "tls", "stream-open", "features", "mechanism"])
    }

    @Test func `a server's text about a wrong channel binding determines the diagnosis`() {
        for words in ["Invalid channel binding", "Invalid channel binding value."] {
            var harness = FailedLogin.opened(FailedLogin.mechanisms("SCRAM-SHA-1-PLUS"))
            harness.send(FailedLogin.auth("SCRAM-SHA-1-PLUS", "p=tls-unique,,\(FailedLogin.scramFirst)"))
            harness.recv(FailedLogin.sasl("challenge", FailedLogin.challenge))
            harness.send(FailedLogin.sasl("response", FailedLogin.final))
            harness.recv(FailedLogin.failure("not-authorized", words))
            harness.leave()
            #expect(harness.diagnoses.map(\.cause) == [.bindingMismatch])
            #expect(harness.diagnoses.map(\.side) == [.network])
        }
    }

    @Test func `certificate problems are mapped to causes of a failed login`() {
        let codes = ["expired", "not-yet-valid", "wrong-name", "self-signed", "unknown-issuer", "too-weak"]
        #expect(
            codes.map { LoginCause(certificateFault: "certificate-\($0)") } == [
                .certificateExpired, .clockSkew, .certificateWrongName, .certificateUnknownIssuer,
                .certificateUnknownIssuer, .certificateRefused,
            ]
        )
    }
}
