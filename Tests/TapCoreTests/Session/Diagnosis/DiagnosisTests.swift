import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapDiagnosis
import TapRecord

/// Tests the diagnosis of a failed login for each cause.
@Suite struct DiagnosisTests {
    private typealias L = FailedLogin

    /// Checks that there is exactly one diagnosis, and checks its properties.
    private static func expect(
        _ harness: borrowing SessionHarness,
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        by side: LoginCause.Side,
        rule: String?,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let diagnoses = harness.diagnoses
        #expect(diagnoses.count == 1, sourceLocation: sourceLocation)
        guard let diagnosis = diagnoses.first else { return }
        #expect(diagnosis.cause == cause, "\(diagnosis)", sourceLocation: sourceLocation)
        #expect(diagnosis.loginStep == loginStep, "\(diagnosis)", sourceLocation: sourceLocation)
        #expect(diagnosis.side == side, "\(diagnosis)", sourceLocation: sourceLocation)
        #expect(diagnosis.rule == rule, "\(diagnosis)", sourceLocation: sourceLocation)
        #expect(diagnosis.isProxyTheCause == (side == .tap), sourceLocation: sourceLocation)
        #expect(!diagnosis.finding.description.isEmpty && diagnosis.advice != nil, sourceLocation: sourceLocation)
    }

    // MARK: The connection to the server

    @Test(
        arguments: [
            (ConnectionFault.nameNotFound, LoginCause.nameNotFound, LoginStep.Name.nameLookup, LoginCause.Side.network),
            (.notOffered, .serviceNotOffered, .nameLookup, .server),
            (.lookupFailed, .lookupFailed, .nameLookup, .network),
            (.refused, .connectionRefused, .connect, .server), (.timeout, .connectionTimeout, .connect, .network),
            (.unreachable, .serverUnreachable, .connect, .network),
        ]
    ) func `an unreachable server is diagnosed by the connection fault`(
        fault: ConnectionFault,
        cause: LoginCause,
        loginStep: LoginStep.Name,
        side: LoginCause.Side
    ) throws {
        var harness = SessionHarness(connected: false)
        harness.failServer("cannot connect to example.org:5222: for a reason", fault)
        harness.send(L.header)
        harness.leave()
        Self.expect(harness, cause, at: loginStep, by: side, rule: cause.entry.rule)
        let record = try #require(harness.told(code: "login-failed").first?.record)
        #expect(record.kind == .note && record.level == .error && record.part == .net)
        #expect(record.messageText?.contains("cannot connect to example.org:5222: for a reason") == true)
        #expect(record.messageText?.contains("xmpptap is not the cause") == true)
        #expect(record.details?["proxy_is_cause"] == false)
    }

    // MARK: Streams

    @Test(
        arguments: [
            ("host-unknown", LoginCause.hostUnknown, LoginCause.Side.client, 6),
            ("host-gone", .hostUnknown, .client, 5),
            ("see-other-host", .seeOtherHost, .server, 19), ("resource-constraint", .resourceConstraint, .server, 17),
            ("policy-violation", .policyViolation, .client, 14), ("system-shutdown", .systemShutdown, .server, 20),
            ("conflict", .conflict, .client, 3), ("invalid-namespace", .namespaceMismatch, .client, 10),
            ("unsupported-version", .versionMismatch, .client, 25), ("not-well-formed", .malformedStream, .client, 13),
            ("improper-addressing", .streamError, .client, 7), ("internal-server-error", .streamError, .server, 8),
        ]
    ) func `a stream error of the server is diagnosed by its condition`(
        condition: String,
        cause: LoginCause,
        side: LoginCause.Side,
        section: Int
    ) {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.recv(L.answer + L.streamError(condition))
        harness.leave(.server)
        Self.expect(harness, cause, at: .features, by: side, rule: "RFC 6120 §4.9.3.\(section)")
        #expect(harness.diagnoses.first?.condition == condition)
    }

    @Test func `the text of a stream error is part of the diagnosis`() {
        var policy = SessionHarness()
        policy.send(L.header)
        policy.recv(L.answer + L.streamError("policy-violation", words: "no more than 3 logins a minute"))
        policy.leave(.server)
        #expect(policy.diagnoses.first?.finding.description == "policy violation: no more than 3 logins a minute")
        var other = SessionHarness()
        other.send(L.header)
        other.recv(L.answer + L.streamError("see-other-host", "xmpp2.example.org:5222"))
        other.leave(.server)
        #expect(other.diagnoses.first?.finding.description.contains("xmpp2.example.org:5222") == true)
    }

    @Test func `a stream error of the client blames the server`() {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.recv(L.answer)
        harness.send(L.streamError("unsupported-version"))
        harness.leave()
        Self.expect(harness, .versionMismatch, at: .features, by: .server, rule: "RFC 6120 §4.9.3.25")
    }

    @Test func `a stream with another namespace or version is diagnosed`() {
        var foreign = SessionHarness()
        foreign.send("<stream:stream xmlns:stream='http://example.org/streams' xmlns='jabber:client' to='example.org'>")
        foreign.leave()
        Self.expect(foreign, .namespaceMismatch, at: .streamOpen, by: .client, rule: "RFC 6120 §4.8")
        var old = SessionHarness()
        old.send(L.header)
        old.recv(L.answer.replacing(" version='1.0'", with: ""))
        old.leave()
        Self.expect(old, .versionMismatch, at: .streamOpen, by: .server, rule: "RFC 6120 §4.7.5")
        var client = SessionHarness()
        client.send(L.header.replacing(" version='1.0'", with: ""))
        client.recv(L.answer.replacing(" version='1.0'", with: ""))
        client.leave(.server)
        Self.expect(client, .versionMismatch, at: .streamOpen, by: .client, rule: "RFC 6120 §4.7.5")
    }

    @Test func `data that is not XMPP or not XML is diagnosed`() {
        var http = SessionHarness()
        http.send("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
        http.leave()
        Self.expect(http, .notXMPP, at: .streamOpen, by: .client, rule: "RFC 6120 §4.2")
        var broken = SessionHarness()
        broken.send(L.header)
        broken.recv(L.answer + "<stream:features></oops>")
        broken.leave()
        Self.expect(broken, .malformedStream, at: .features, by: .server, rule: "RFC 6120 §11")
    }

    // MARK: TLS and mechanisms

    @Test func `required and declined TLS are diagnosed`() {
        var required = L.opened("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>")
        required.leave()
        Self.expect(required, .tlsRequired, at: .startTLS, by: .client, rule: "RFC 6120 §5.3.1")
        var declined = L.opened(L.startTLS)
        declined.send(L.startTLS)
        declined.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>")
        declined.leave(.server)
        Self.expect(declined, .tlsDeclined, at: .startTLS, by: .server, rule: "RFC 6120 §5.4.2.2")
    }

    @Test func `a login without a common mechanism is diagnosed`() {
        var left = L.opened(L.mechanisms("EXTERNAL", "GSSAPI"))
        left.leave()
        Self.expect(left, .noCommonMechanism, at: .mechanism, by: .client, rule: "RFC 6120 §6.3.3")
        #expect(left.diagnoses.first?.finding.description.contains("(offered: EXTERNAL, GSSAPI)") == true)
        var refused = L.opened(L.mechanisms("EXTERNAL"))
        refused.send(L.plain)
        refused.recv(L.failure("invalid-mechanism"))
        refused.leave()
        Self.expect(refused, .noCommonMechanism, at: .sasl, by: .client, rule: "RFC 6120 §6.3.3")
        var nothing = L.opened("")
        nothing.leave()
        Self.expect(nothing, .noMechanismOffered, at: .features, by: .server, rule: "RFC 6120 §6.3.3")
    }

    // MARK: Passwords

    @Test(
        arguments: [
            ("not-authorized", LoginCause.notAuthorized, "6.5.10"), ("account-disabled", .accountDisabled, "6.5.2"),
            ("credentials-expired", .credentialsExpired, "6.5.3"), ("malformed-request", .malformedRequest, "6.5.8"),
            ("incorrect-encoding", .malformedRequest, "6.5.8"), ("invalid-authzid", .invalidAuthorization, "6.5.6"),
            ("temporary-auth-failure", .temporaryFailure, "6.5.11"),
            ("encryption-required", .mechanismTooWeak, "6.5.4, §6.5.9"),
            ("mechanism-too-weak", .mechanismTooWeak, "6.5.4, §6.5.9"),
        ]
    ) func `a SASL failure is diagnosed by its condition`(condition: String, cause: LoginCause, section: String) {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.recv(L.failure(condition))
        harness.leave()
        Self.expect(harness, cause, at: .sasl, by: cause.entry.side, rule: "RFC 6120 §\(section)")
    }

    @Test func `a wrong password is distinguished from an unknown user if the server tells`() {
        func scram(_ answers: String...) -> LoginDiagnosis? {
            var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
            harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
            for (number, answer) in answers.enumerated() {
                harness.recv(answer)
                if number + 1 < answers.count { harness.send(L.sasl("response", L.final)) }
            }
            harness.leave()
            return harness.diagnoses.first
        }
        let failure = L.failure("not-authorized")
        // If the account does not exist, the server has no salt for a challenge.
        #expect(scram(failure)?.cause == .unknownUser)
        #expect(scram(L.sasl("challenge", L.challenge), failure)?.cause == .notAuthorized)
        #expect(
            scram(L.sasl("challenge", L.challenge), L.sasl("challenge", "e=invalid-proof"), failure)?.cause
                == .wrongPassword
        )
        #expect(scram(L.sasl("challenge", "e=unknown-user"), failure)?.cause == .unknownUser)
        #expect(scram(L.failure("not-authorized", "No such user"))?.cause == .unknownUser)
        #expect(
            scram(L.sasl("challenge", L.challenge), L.failure("not-authorized", "Wrong password"))?.cause
                == .wrongPassword
        )
        // The text of most servers does not show which of the two is wrong.
        let vague = L.failure("not-authorized", "Invalid username or password")
        #expect(scram(L.sasl("challenge", L.challenge), vague)?.cause == .notAuthorized)
    }

    @Test func `a password sent by PLAIN after a stronger mechanism failed is diagnosed`() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1", "PLAIN"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(L.failure("temporary-auth-failure"))
        harness.send(L.plain)
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        Self.expect(harness, .plainDowngrade, at: .sasl, by: .client, rule: "RFC 4616 §5")
        #expect(
            harness.diagnoses.first?.finding.description
                == "SCRAM-SHA-1 failed (temporary-auth-failure), then the client sent its "
                + "password by PLAIN, which failed too (not-authorized)"
        )
    }

    @Test func `a wrong password that is then sent by PLAIN is still a wrong password`() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1", "PLAIN"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(
            L.failure("not-authorized", "The response provided by the client doesn't match the one we calculated.")
        )
        harness.send(L.plain)
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        Self.expect(harness, .wrongPassword, at: .sasl, by: .client, rule: "RFC 6120 §6.5.10")
        #expect(
            harness.diagnoses.first?.finding.description.hasSuffix("revealed its password by PLAIN, which failed too")
                == true
        )
        #expect(harness.told(code: "plain-downgrade").map(\.record.level) == [.warn])
    }

    @Test func `a client that aborts or does not trust the server is diagnosed`() {
        var aborted = L.opened(L.mechanisms("SCRAM-SHA-1"))
        aborted.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        aborted.recv(L.sasl("challenge", L.challenge))
        aborted.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        aborted.recv(L.failure("aborted"))
        aborted.leave()
        Self.expect(aborted, .clientAborted, at: .sasl, by: .client, rule: "RFC 6120 §6.4.4")
        var left = L.opened(L.mechanisms("SCRAM-SHA-1"))
        left.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        left.recv(L.sasl("challenge", L.challenge))
        left.leave()
        Self.expect(left, .clientGaveUp, at: .sasl, by: .client, rule: "RFC 6120 §4.4")
        var disbelieved = L.opened(L.mechanisms("SCRAM-SHA-1"))
        disbelieved.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        disbelieved.recv(L.sasl("challenge", L.challenge))
        disbelieved.send(L.sasl("response", L.final))
        disbelieved.recv(L.sasl("success", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="))
        disbelieved.leave()
        Self.expect(disbelieved, .clientGaveUp, at: .sasl, by: .client, rule: "RFC 6120 §4.4")
        #expect(disbelieved.diagnoses.first?.finding.description.contains("RFC 5802 §5, v=") == true)
    }

    @Test(
        arguments: [
            ([sasl("success")], "sent success before the client authenticated"),
            ([sasl("challenge", challenge), sasl("success")], "reported success without its signature"),
            (
                [sasl("challenge", "r=somebodyElse,s=QSXCR+Q6sek8bf92,i=4096")],
                "a nonce that does not begin with the client's nonce"
            ),
            ([sasl("challenge", challenge.replacing("i=4096", with: "i=1"))], "asks for 1 iteration"),
            ([sasl("challenge", "nonsense")], "malformed"),
        ]
    ) func `a server that violates SCRAM is diagnosed as the cause if its client leaves`(
        answers: [String],
        finding: String
    ) {
        for aborts in [false, true] {
            var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
            harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
            for (number, answer) in answers.enumerated() {
                if number > 0 { harness.send(L.sasl("response", L.final)) }
                harness.recv(answer)
            }
            if aborts, !answers.contains(where: { $0.contains("<success") }) {
                harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
                harness.recv(L.failure("aborted"))
            }
            harness.leave()
            Self.expect(harness, .serverNotProven, at: .sasl, by: .server, rule: "RFC 5802 §5")
            #expect(harness.diagnoses.first?.finding.description.contains(finding) == true, "\(harness.diagnoses)")
        }
    }

    @Test(arguments: [
        // As `L.sasl` encodes its text, the first one is valid base64.
        ("PLAIN", sasl("challenge", "nonsense"), "sent a challenge with data, which PLAIN does not have"),
        ("EXTERNAL", notBase64, "sent a challenge that is not base64"),
        ("X-UNKNOWN", notBase64, "sent a challenge that is not base64"),
    ])
    func `a challenge that SASL does not allow is diagnosed as the cause if its client leaves`(
        mechanism: String,
        challenge: String,
        finding: String
    ) {
        var harness = L.opened(L.mechanisms(mechanism))
        harness.send(L.auth(mechanism, "\0juliet\0secret"))
        harness.recv(challenge)
        harness.leave()
        Self.expect(harness, .malformedChallenge, at: .sasl, by: .server, rule: "RFC 6120 §6.4.3")
        #expect(harness.diagnoses.first?.finding.description.contains(finding) == true, "\(harness.diagnoses)")
    }

    @Test(arguments: [
        ("PLAIN", sasl("challenge")), ("X-UNKNOWN", sasl("challenge", "a question")), ("DIGEST-MD5", notBase64),
    ])
    func `a client that leaves after a challenge that may be valid has given up`(mechanism: String, challenge: String) {
        var harness = L.opened(L.mechanisms(mechanism))
        harness.send(L.auth(mechanism, "\0juliet\0secret"))
        harness.recv(challenge)
        harness.leave()
        Self.expect(harness, .clientGaveUp, at: .sasl, by: .client, rule: "RFC 6120 §4.4")
    }

    private static let notBase64 = "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>!nonsense!</challenge>"
    private static func sasl(_ name: String, _ message: String = "") -> String { L.sasl(name, message) }
    private static let challenge = L.challenge

    @Test func `the text of the server is reported, but secrets are not`() throws {
        for policy in [RedactionPolicy.secrets, .metadata] {
            var harness = L.opened(L.mechanisms("PLAIN"), options: SessionOptions(level: .error, redaction: policy))
            harness.send(L.plain)
            harness.recv(L.failure("not-authorized", "See https://example.org/?token=5ecr3t0fM1ne"))
            harness.leave()
            let record = try #require(harness.told(code: "login-failed").first?.record)
            var line = LineBuffer()
            var form = JSONForm()
            let nothing: [UInt8] = []
            form.append(record, content: nothing.span, [], to: &line)
            let text = String(decoding: line.bytes, as: UTF8.self)
            #expect(!text.contains("R0m30myr0m30") && !text.contains("5ecr3t0fM1ne"), "\(text)")
            #expect(text.contains("\"user\":\"juliet\"") == (policy == .secrets), "\(text)")
        }
    }

    // MARK: Registration and binding

    @Test(
        arguments: [
            ("conflict", LoginCause.accountExists, LoginCause.Side.client),
            ("not-allowed", .registrationNotAllowed, .server), ("forbidden", .registrationNotAllowed, .server),
            ("not-acceptable", .registrationRefused, .client),
        ]
    ) func `a refused registration is diagnosed by its condition`(
        condition: String,
        cause: LoginCause,
        side: LoginCause.Side
    ) {
        var harness = L.opened(L.mechanisms("PLAIN") + L.register)
        harness.send(
            "<iq type='set' id='r1'><query xmlns='jabber:iq:register'><username>a</username><password>b</password></query></iq>"
        )
        harness.recv(L.error("r1", condition))
        harness.leave()
        Self.expect(harness, cause, at: .registration, by: side, rule: "XEP-0077 §3.1")
    }

    @Test func `a session that only registers has not failed`() {
        var harness = L.opened(L.mechanisms("PLAIN") + L.register)
        harness.send("<iq type='set' id='r1'><query xmlns='jabber:iq:register'><username>a</username></query></iq>")
        harness.recv("<iq type='result' id='r1'/>")
        harness.leave()
        #expect(harness.diagnoses.isEmpty)
    }

    @Test func `a resource that is not requested or not granted is diagnosed`() {
        var never = L.authenticated(L.bind)
        never.leave()
        Self.expect(never, .missingBind, at: .bind, by: .client, rule: "RFC 6120 §7.1")
        var early = L.authenticated(L.bind)
        early.send("<presence/>")
        early.recv(L.streamError("not-authorized"))
        early.leave(.server)
        Self.expect(early, .missingBind, at: .bind, by: .client, rule: "RFC 6120 §7.1")
        var without = L.authenticated("")
        without.leave()
        Self.expect(without, .missingBind, at: .bind, by: .server, rule: "RFC 6120 §7.1")
        for (condition, cause, rule) in [
            ("conflict", LoginCause.conflict, "RFC 6120 §7.7.2.2"),
            ("resource-constraint", .resourceConstraint, "RFC 6120 §7.6.2.1"),
            ("not-allowed", .bindRefused, "RFC 6120 §7.6.2, §7.7.2"),
        ] {
            var refused = L.authenticated(L.bind)
            refused.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
            refused.recv(L.error("b1", condition))
            refused.leave()
            Self.expect(refused, cause, at: .bind, by: cause.entry.side, rule: rule)
        }
    }

    // MARK: Streams other than those of current clients

    @Test func `failed logins of components and of clients with legacy authentication are diagnosed`() {
        var component = SessionHarness()
        component.say(Array(Conversations.component.prefix(3)))
        component.recv(L.streamError("not-authorized"))
        component.leave(.server)
        Self.expect(component, .handshakeRefused, at: .handshake, by: .client, rule: "XEP-0114 §3")
        var old = SessionHarness()
        old.say(Array(Conversations.legacyLogin.prefix(5)))
        old.recv(L.error("a2", "not-authorized"))
        old.leave()
        Self.expect(old, .notAuthorized, at: .legacyAuthentication, by: .client, rule: "XEP-0078 §3")
    }

    // MARK: Silence

    @Test func `the side that stops answering is diagnosed`() {
        var server = L.opened(L.mechanisms("PLAIN"))
        server.send(L.plain)
        server.now = server.now.advanced(by: 12_000_000_000)
        server.leave()
        Self.expect(server, .serverSilent, at: .sasl, by: .server, rule: "RFC 6120 §4.3")
        #expect(server.diagnoses.first?.finding.description == "the server did not answer for 12 s")
        var gone = SessionHarness()
        gone.send(L.header)
        gone.recv(L.answer)
        gone.leave(.server, .reset)
        Self.expect(gone, .serverGone, at: .features, by: .server, rule: "RFC 6120 §4.4")
        var timeout = L.opened("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>")
        timeout.abort(.connectionTimeout, "No login within 30 s (limit login).")
        timeout.leave()
        let found = timeout.diagnoses.first
        #expect(found?.cause == .tlsRequired && found?.loginStep == .startTLS && found?.side == .client)
        // The limit may have been too short.
        #expect(found?.isProxyTheCause == nil && found?.rule == "RFC 6120 §5.3.1")
        #expect(found?.finding.description.hasSuffix(", and xmpptap closed the session at its time limit") == true)
    }

    @Test func `plaintext on a direct TLS port is not diagnosed as the server's fault`() {
        // The server answers with TLS: a fatal alert, or a handshake.
        for bytes: [UInt8] in [[0x15, 3, 1, 0, 2, 2, 70], [0x15, 3, 3, 0, 2, 2, 10], [0x16, 3, 3, 0, 2, 0, 0]] {
            var harness = SessionHarness()
            harness.send(L.header)
            harness.receive(.recv, bytes)
            harness.leave(.server)
            Self.expect(harness, .tlsExpected, at: .streamOpen, by: .client, rule: "XEP-0368 §3")
            #expect(harness.diagnoses.first?.advice == SessionHarness.advice(.usual(.tlsExpected)))
        }
        // The server sends nothing at all, so the cause is unknown.
        for end in [LegEnd.finished, .reset] {
            var harness = SessionHarness()
            harness.send(L.header)
            harness.leave(.server, end)
            Self.expect(harness, .serverGone, at: .streamOpen, by: .network, rule: nil)
            #expect(harness.diagnoses.first?.advice == SessionHarness.advice(.tryOtherPort))
        }
        var silent = SessionHarness()
        silent.send(L.header)
        silent.now = silent.now.advanced(by: 12_000_000_000)
        silent.leave()
        Self.expect(silent, .serverSilent, at: .streamOpen, by: .network, rule: nil)
        // A server that has sent a stream header does not expect direct TLS.
        var opened = SessionHarness()
        opened.send(L.header)
        opened.recv(L.answer)
        opened.receive(.recv, [0x15, 3, 1, 0, 2, 2, 70])
        opened.leave(.server)
        Self.expect(opened, .malformedStream, at: .features, by: .server, rule: "RFC 6120 §11")
    }

    @Test func `TLS on a plaintext port is diagnosed as the client's fault`() {
        var harness = SessionHarness()
        let outcome = LoginStep.Outcome.failed(condition: "tls-not-tls", "the server sent data that is not TLS")
        harness.session.took(.tls, outcome, details: ["leg": "server"], at: harness.now)
        harness.receive(.send, [0x16, 3, 1])
        harness.leave()
        Self.expect(harness, .tlsUnexpected, at: .tls, by: .client, rule: "XEP-0368 §3")
    }

    @Test func `a diagnosis from a client's log does not say whether a proxy is the cause`() throws {
        var options = SessionOptions(level: .trace)
        options.isObserved = true
        var harness = L.opened(L.mechanisms("PLAIN"), options: options)
        harness.send(L.plain)
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        let diagnosis = try #require(harness.diagnoses.first)
        #expect(diagnosis.side == .client && diagnosis.details["proxy_is_cause"] == nil)
        #expect(!diagnosis.message.description.contains("xmpptap"))
        let record = try #require(harness.told(code: "login-failed").first?.record)
        #expect(record.details?["proxy_is_cause"] == nil)
    }

    // MARK: Sessions that xmpptap closes

    @Test func `a session that xmpptap ended is diagnosed as such`() {
        var limit = SessionHarness()
        limit.send(L.header)
        limit.abort(.resourceConstraint, "More than 10 sessions (limit sessions).")
        limit.leave()
        Self.expect(limit, .endedByTap, at: .streamOpen, by: .tap, rule: nil)
        #expect(limit.diagnoses.first?.finding.description == "More than 10 sessions (limit sessions)")
        var domain = SessionHarness(connected: false)
        domain.session.handle(.abort(.hostUnknown, "This proxy does not serve other.example."), at: domain.now)
        domain.send(L.header)
        domain.leave()
        Self.expect(domain, .domainNotServed, at: .streamOpen, by: .tap, rule: "RFC 6120 §4.9.3.6")
    }

    // MARK: No diagnosis

    @Test func `a session that was ready or cannot be decoded has no diagnosis`() {
        var ready = SessionHarness()
        ready.say(Array(Conversations.plainLogin.prefix(10)))
        ready.recv(L.streamError("conflict"))
        ready.leave(.server)
        #expect(ready.diagnoses.isEmpty)
        var tls = SessionHarness()
        tls.say(Conversations.startTLS)
        tls.receive(.send, [0x16, 3, 1])
        tls.leave()
        #expect(tls.diagnoses.isEmpty)
        var stopped = L.opened(L.mechanisms("PLAIN"))
        stopped.session.handle(.stop, at: stopped.now)
        stopped.leave()
        #expect(stopped.diagnoses.isEmpty)
        var check = SessionHarness()
        check.leave()
        #expect(check.diagnoses.isEmpty)
        var second = L.opened(L.mechanisms("PLAIN"))
        second.send(L.plain)
        second.recv(L.failure("not-authorized"))
        second.say(Array(Conversations.plainLogin[3...9]))
        second.leave()
        #expect(second.diagnoses.isEmpty)
    }

    // MARK: Causes reported by a driver

    @Test(
        arguments: [
            LoginCause.certificateExpired, .clockSkew, .certificateWrongName, .certificateUnknownIssuer,
            .authorityNotTrusted, .certificateNotAccepted, .alpnMismatch, .tlsAlertByClient, .tlsAlertByServer,
        ]
    ) func `the driver's diagnosis takes precedence, and the first one counts`(cause: LoginCause) {
        var harness = SessionHarness()
        harness.send(L.header)
        harness.handle(.blamed(LoginDiagnosis(cause, at: .tls, "what was seen")))
        harness.handle(.blamed(LoginDiagnosis(.serverGone, at: .tls, "a consequence")))
        harness.leave()
        Self.expect(harness, cause, at: .tls, by: cause.entry.side, rule: cause.entry.rule)
        #expect(harness.diagnoses.first?.finding.description == "what was seen")
    }

    @Test(
        arguments: [
            ("server", "certificate-expired", "", LoginCause.certificateExpired, LoginCause.Side.server),
            ("server", "certificate-not-yet-valid", "", .clockSkew, .network),
            ("server", "certificate-wrong-name", "", .certificateWrongName, .server),
            ("server", "certificate-self-signed", "", .certificateUnknownIssuer, .server),
            ("server", "certificate-unknown-issuer", "", .certificateUnknownIssuer, .server),
            ("server", "certificate-too-weak", "", .certificateRefused, .server),
            ("client", "certificate-differs", "", .endedByTap, .tap),
            ("client", "tls-no-shared-protocol", "", .alpnMismatch, .client),
            ("server", "tls-version", "", .tlsIncompatible, .server),
            ("client", "starttls-injection", "", .startTLSInjection, .client),
            ("client", "tls-ended-in-handshake", "", .clientGaveUp, .client),
            ("server", "tls-ended-in-handshake", "", .serverGone, .server),
            ("client", "tls-alert", "unknown_ca", .authorityNotTrusted, .tap),
            ("client", "tls-alert", "certificate_expired", .clockSkew, .network),
            ("client", "tls-alert", "internal_error", .tlsAlertByClient, .client),
            ("server", "tls-alert", "no_application_protocol", .alpnMismatch, .server),
            ("server", "tls-alert", "handshake_failure", .tlsIncompatible, .server),
            ("server", "tls-alert", "unrecognized_name", .tlsAlertByServer, .server),
            ("server", "tls-not-tls", "", .tlsFailed, .server),
        ]
    ) func `failed TLS on a leg is diagnosed by its code and alert`(
        leg: String,
        code: String,
        alert: String,
        cause: LoginCause,
        side: LoginCause.Side
    ) {
        var harness = L.opened(L.startTLS)
        var details: Attributes = ["leg": .string(leg)]
        if !alert.isEmpty { details[LoginStep.alertDetail] = .string(alert) }
        harness.session.took(.tls, .failed(condition: code), details: details, at: harness.now)
        harness.leave()
        Self.expect(harness, cause, at: .tls, by: side, rule: cause.entry.rule)
        #expect(harness.diagnoses.first?.condition == code)
    }

    @Test func `the driver's remedy is part of the diagnosis`() {
        var harness = SessionHarness()
        harness.send(L.header)
        var blamed = LoginDiagnosis(
            .certificateWrongName,
            at: .tls,
            "what was seen",
            condition: "certificate-wrong-name",
            side: .tap
        )
        blamed.remedy = .nameDomain
        harness.handle(.blamed(blamed))
        harness.leave()
        let diagnosis = harness.diagnoses.first
        #expect(diagnosis?.side == .tap && diagnosis?.isProxyTheCause == true)
        #expect(diagnosis?.condition == "certificate-wrong-name")
        #expect(diagnosis?.advice == SessionHarness.advice(.nameDomain))
    }

    @Test func `each cause has the source of its rule, or needs none`() {
        for cause in LoginCause.allCases {
            let isKnown = cause.entry.rule.map { $0.hasPrefix("RFC ") || $0.hasPrefix("XEP-") } ?? true
            #expect(isKnown, "\(cause)")
        }
    }

    @Test func `a diagnosis is read back from its record`() throws {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.recv(L.failure("not-authorized", "No."))
        harness.leave()
        let diagnosis = try #require(harness.diagnoses.first)
        var made = LoginDiagnosis(.notAuthorized, at: .sasl, diagnosis.finding, condition: "not-authorized")
        made.advice = SessionHarness.advice(made.remedy)
        #expect(
            diagnosis.details == made.details && diagnosis.condition == made.condition
                && diagnosis.remedy == made.remedy
        )
        #expect(harness.told.last?.record.code == "session-ended")
    }
}
