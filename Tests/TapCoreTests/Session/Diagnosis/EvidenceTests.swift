import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapCore

/// Tests that a diagnosis is made only if the recorded items prove it.
struct EvidenceTests {
    private typealias L = FailedLogin

    private static var observed: SessionOptions {
        var options = SessionOptions(level: .trace)
        options.isObserved = true
        options.isDecoded = true
        options.advice = { remedy in "\(remedy)" }
        return options
    }

    /// Returns the recording of a header, features and `content`, without an end of the session.
    private static func recorded(_ content: [(isSent: Bool, xml: String)]) -> SessionHarness {
        var harness = L.opened(L.mechanisms("PLAIN"), options: observed)
        for (isSent, xml) in content { if isSent { harness.send(xml) } else { harness.recv(xml) } }
        harness.handle(.unrecorded)
        harness.close()
        return harness
    }

    @Test func `The end of a recording alone causes no diagnosis`() {
        for content in [
            [], [(true, L.plain)], [(true, L.plain), (false, L.sasl("success"))],
            [(true, L.auth("SCRAM-SHA-1", "n,,\(L.scramFirst)")), (false, L.sasl("challenge", L.challenge))],
        ] {
            #expect(Self.recorded(content).diagnoses.isEmpty, "\(content)")
        }
        // A failure before the end counts.
        let refused = Self.recorded([(true, L.plain), (false, L.failure("not-authorized"))])
        #expect(refused.diagnoses.map(\.cause) == [.notAuthorized])
    }

    @Test func `A server that does not answer in a relayed session is diagnosed as silent`() {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.wait(LoginDiagnoser.patience)
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.serverSilent])
    }

    @Test func `Advice for a recording of another program does not refer to xmpptap`() {
        let refused = Self.recorded([(true, L.plain), (false, L.failure("not-authorized"))])
        #expect(refused.diagnoses.first?.advice == "\(Remedy.observed(.notAuthorized))")
        #expect(refused.diagnoses.first?.isProxyTheCause == nil)
    }

    @Test func `A server that offers no mechanism is diagnosed with its own error text`() {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.recv(L.answer + L.streamError("undefined-condition", words: "No stream features to proceed with"))
        harness.leave(.server)
        let diagnosis = harness.diagnoses.first
        #expect(diagnosis?.cause == .noMechanismOffered && diagnosis?.side == .server)
        #expect(
            diagnosis?.finding.description == "the server offers no SASL mechanism: No stream features to proceed with"
        )
        // If a server offers TLS, it may offer mechanisms inside TLS.
        var other = L.opened(L.startTLS)
        other.recv(L.streamError("undefined-condition"))
        other.leave(.server)
        #expect(other.diagnoses.first?.cause == .streamError)
    }

    @Test func `Repeated features instead of an answer are reported`() {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.recv(L.features(L.mechanisms("PLAIN")))
        harness.wait(LoginDiagnoser.patience)
        harness.leave()
        let finding = harness.diagnoses.first?.finding.description
        #expect(finding == "the server sent its features again instead of an answer")
    }

    @Test func `An enable request before the bind result is diagnosed as the cause`() {
        var harness = L.authenticated(L.bind + "<sm xmlns='urn:xmpp:sm:3'/>")
        harness.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        harness.send("<enable xmlns='urn:xmpp:sm:3'/>")
        #expect(harness.told(code: "early-enable").count == 1)
        harness.recv(L.streamError("unsupported-stanza-type"))
        harness.leave(.server)
        #expect(harness.diagnoses.map(\.cause) == [.earlyEnable])
        #expect(harness.diagnoses.first?.side == .client && harness.diagnoses.first?.rule == "XEP-0198 §3")
    }

    @Test func `An enable request after the bind result is not reported`() {
        var harness = L.authenticated(L.bind + "<sm xmlns='urn:xmpp:sm:3'/>")
        harness.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        harness.recv(
            "<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@example.org/x</jid></bind></iq>"
        )
        harness.send("<enable xmlns='urn:xmpp:sm:3'/>")
        #expect(harness.told(code: "early-enable").isEmpty)
    }

    @Test func `A user name that contains a domain is reported`() {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.auth("PLAIN", "\0juliet@example.org\0R0m30myr0m30"))
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        let diagnosis = harness.diagnoses.first
        #expect(diagnosis?.finding.description.contains("the user name juliet@example.org contains a domain") == true)
        #expect(diagnosis?.remedy == .useLocalPart || diagnosis?.cause == .notAuthorized)
    }

    @Test func `A line break in base64 is reported if the server refuses the encoding`() {
        for (condition, isNamed) in [("incorrect-encoding", true), ("not-authorized", false)] {
            var harness = L.opened(L.mechanisms("PLAIN"))
            harness.send(
                "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldABS\nMG0zMG15cjBtMzA=</auth>"
            )
            harness.recv(L.failure(condition))
            harness.leave()
            let finding = harness.diagnoses.first?.finding.description ?? ""
            #expect(finding.contains("its base64 contains a line break") == isNamed, "\(finding)")
        }
    }

    @Test func `A password that a log has removed is not reported as the client's fault`() {
        let removed = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>password removed</auth>"
        let refused = Self.recorded([(true, removed), (false, L.failure("not-authorized"))])
        #expect(refused.diagnoses.map(\.cause) == [.notAuthorized])
    }

    @Test func `Line breaks are removed from the host of a redirect`() {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.recv(L.answer + L.streamError("see-other-host", "\n  xmpp2.example.org\n"))
        harness.leave(.server)
        #expect(harness.diagnoses.first?.finding.description.hasPrefix("redirected to xmpp2.example.org;") == true)
    }

    @Test(arguments: [
        ("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "HTTP"), ("SSH-2.0-OpenSSH_9.2p1\r\n", "SSH"),
        ("220 mail.example.org ESMTP\r\n", "SMTP, IMAP, POP3 or FTP"),
    ])
    func `A server with another protocol is reported with the name of the protocol`(bytes: String, name: String) {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.recv(bytes)
        harness.leave(.server)
        let diagnosis = harness.diagnoses.first
        #expect(diagnosis?.cause == .notXMPP && diagnosis?.side == .network)
        #expect(diagnosis?.finding.description == "the server's port speaks \(name), not XMPP")
    }

    @Test func `A second XML declaration is reported`() {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send("<?xml version='1.0'?>" + L.plain)
        harness.recv(L.streamError("not-well-formed"))
        harness.leave(.server)
        let finding = harness.diagnoses.first?.finding.description
        #expect(finding == "the client sent a second XML declaration within its stream")
    }

    @Test func `A loop of failed logins is reported at the 5th and the 10th attempt`() {
        let run = Run()
        var loops: [Int] = []
        for attempt in 1...12 {
            var harness = SessionHarness(run: run)
            harness.send(L.header)
            harness.recv(L.answer + L.features(L.mechanisms("PLAIN")))
            harness.send(L.plain)
            harness.recv(L.failure("not-authorized"))
            harness.leave()
            if !harness.told(code: Record.Code.loginLoop).isEmpty { loops.append(attempt) }
        }
        #expect(loops == [5, 10])
    }
}
