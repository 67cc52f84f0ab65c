import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapCore
@testable import TapRules

/// Tests that a diagnosis names a side only if the session shows that this side is at fault.
struct BlameTests {
    private typealias L = FailedLogin

    private static let second: Int64 = 1_000_000_000

    private static var observed: SessionOptions {
        var options = SessionOptions(level: .trace)
        options.isObserved = true
        return options
    }

    private static func ruled(_ text: String) throws -> SessionOptions {
        var options = SessionOptions(level: .trace)
        options.rules = LiveRules(try RuleSet.test(text)) { _ in RuleLocalTime() }
        return options
    }

    @Test func `A client that disconnects at once leaves the side at fault unknown`() throws {
        var soon = L.opened(L.mechanisms("PLAIN"))
        soon.send(L.plain)
        soon.wait(Self.second / 10)
        soon.leave()
        let found = try #require(soon.diagnoses.first)
        #expect(found.cause == .clientGaveUp && found.side == .unknown)
        #expect(found.finding.description == "the client disconnected before the server answered, after 100 ms")

        var late = L.opened(L.mechanisms("PLAIN"))
        late.send(L.plain)
        late.wait(6 * Self.second)
        late.leave()
        #expect(late.diagnoses.map(\.cause) == [.serverSilent] && late.diagnoses.first?.side == .server)
    }

    @Test func `A server that closes the connection first is reported with the step that was pending`() throws {
        func expect(_ found: LoginDiagnosis?, _ words: String, _ side: LoginCause.Side = .server) throws {
            let found = try #require(found)
            #expect(found.cause == LoginCause.serverGone && found.side == side, "\(found.message)")
            #expect("\(found.finding)" == words)
        }
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.leave(.server)
        try expect(harness.diagnoses.first, "the server closed the connection before the client chose a mechanism")
        harness = L.opened(L.mechanisms("PLAIN"))
        harness.wait(20 * Self.second)
        harness.leave(.server)
        try expect(
            harness.diagnoses.first,
            "the server closed the connection 20 s after its last element before the client chose a mechanism",
            .unknown
        )
        harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,,\(L.scramFirst)"))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.leave(.server)
        try expect(harness.diagnoses.first, "the server closed the connection before the client answered its challenge")
        harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.recv(L.sasl("success"))
        harness.leave(.server)
        try expect(harness.diagnoses.first, "the server closed the connection after <success/>")
        harness = L.authenticated(L.bind)
        harness.leave(.server)
        try expect(harness.diagnoses.first, "the server closed the connection before the client bound a resource")
    }

    @Test(arguments: [
        ("::handshake\n\nELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth\nDROP.\n", "dropped <auth/>"),
        ("::handshake\n\nELEMENT: {http://etherx.jabber.org/streams}features\nDROP.\n", "dropped <features/>"),
    ])
    func `A rule that changes the login is reported as the cause`(rules: String, words: String) throws {
        var harness = L.opened(L.mechanisms("PLAIN"), options: try Self.ruled(rules))
        harness.send(L.plain)
        harness.wait(7 * Self.second)
        harness.leave()
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .alteredByTap && found.side == .tap, "\(found.message)")
        #expect(found.finding.description.hasPrefix("test.pfw:3 \(words); then: "), "\(found.finding)")
        #expect(found.isProxyTheCause == true)
    }

    @Test func `A diagnosis mentions a rule that delayed the login and leaves the side at fault unknown`() throws {
        var harness = L.opened(
            L.mechanisms("PLAIN"),
            options: try Self.ruled("::handshake\n\nELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth\nDELAY=200ms\n")
        )
        harness.send(L.plain)
        harness.wait(Self.second / 2)
        harness.wait(7 * Self.second)
        harness.leave()
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .serverSilent && found.side == .unknown && found.isProxyTheCause == nil, "\(found)")
        #expect(found.finding.description.hasSuffix("; before that, test.pfw:3 delayed <auth/>"), "\(found.finding)")
    }

    @Test func `A server's refusal is not attributed to a rule that edited only the features`() throws {
        let rule = """
            ::handshake

            ELEMENT: {http://etherx.jabber.org/streams}features
            REMOVE={http://jabber.org/features/compress}compression

            """
        let compression = "<compression xmlns='http://jabber.org/features/compress'><method>zlib</method></compression>"
        var harness = L.opened(L.mechanisms("PLAIN") + compression, options: try Self.ruled(rule))
        #expect(!String(decoding: harness.toClient, as: UTF8.self).contains("zlib"))
        harness.send(L.plain)
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.notAuthorized])
    }

    @Test func `A not-authorized stream error after authentication leaves the side at fault unknown`() throws {
        var harness = L.authenticated(L.bind)
        harness.recv(L.streamError("not-authorized", words: "Account deleted"))
        harness.leave(.server)
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .streamError && found.side == .unknown)
        #expect(found.finding.description.hasSuffix("not-authorized: Account deleted"), "\(found.finding)")
    }

    @Test func `A recorded session that receives messages is not diagnosed as a failed login`() {
        var harness = L.authenticated(L.bind, options: Self.observed)
        harness.recv("<message from='romeo@example.org'><body>a</body></message>")
        harness.recv(L.streamError("system-shutdown"))
        harness.leave(.server)
        #expect(harness.diagnoses.isEmpty)
    }

    @Test func `A recorded session with enabled stream management is not diagnosed as a failed login`() throws {
        var options = Self.observed
        options.isDecoded = true
        var harness = L.authenticated(L.bind + "<sm xmlns='urn:xmpp:sm:3'/>", options: options)
        harness.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        // The log lacks the result.
        harness.send("<enable xmlns='urn:xmpp:sm:3'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3'/>")
        harness.recv(L.streamError("policy-violation"))
        harness.leave(.server)
        #expect(harness.diagnoses.isEmpty)
    }

    @Test func `A server's refusal is not attributed to a rule that only delayed the login`() throws {
        var harness = L.opened(
            L.mechanisms("PLAIN"),
            options: try Self.ruled("::handshake\n\nELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth\nDELAY=1s\n")
        )
        harness.send(L.plain)
        harness.wait(2 * Self.second)
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.notAuthorized])
    }

    @Test func `Silence is not diagnosed if packets, lines or TLS secrets are missing`() {
        // Bytes before the server's answer are missing.
        var harness = L.opened(L.mechanisms("PLAIN"), options: Self.observed)
        harness.send(L.plain)
        harness.handle(.missed(.recv, bytes: 51))
        harness.leave()
        #expect(harness.diagnoses.isEmpty)
        // The client has received an answer that is missing from the packets.
        harness = L.opened(L.mechanisms("PLAIN"), options: Self.observed)
        harness.send(L.plain)
        harness.send("<presence/>")
        harness.wait(9 * Self.second)
        harness.leave()
        #expect(harness.diagnoses.isEmpty)
        // The TLS secrets are missing, so the rest is not decrypted.
        harness = L.opened(L.mechanisms("PLAIN"), options: Self.observed)
        harness.send(L.plain)
        harness.handle(.remark(.recv, code: "wrong-secret", "not decrypted: wrong secret"))
        harness.leave(.server)
        #expect(harness.diagnoses.isEmpty)
        // An error that the server reports still counts.
        harness = L.opened(L.mechanisms("PLAIN"), options: Self.observed)
        harness.handle(.missed(.recv, bytes: 51))
        harness.send(L.plain)
        harness.recv(L.answer + L.failure("not-authorized"))
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.notAuthorized])
    }

    @Test func `A log that lacks the bind request causes no diagnosis`() {
        var options = Self.observed
        options.isDecoded = true
        var harness = L.opened(L.mechanisms("PLAIN"), options: options)
        harness.send(L.plain)
        harness.recv(L.sasl("success"))
        harness.send(L.header)
        harness.recv(L.answer + L.features(L.bind))
        harness.recv("<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        harness.send("</stream:stream>")
        harness.leave()
        #expect(harness.diagnoses.isEmpty)
    }

    @Test func `A stream error without a specific condition leaves the side at fault unknown`() throws {
        for content in [L.streamError("undefined-condition", words: "You are banned"), L.streamError("reset")] {
            var harness = SessionHarness()
            harness.send(L.header)
            harness.recv(L.answer + content)
            harness.leave(.server)
            let found = try #require(harness.diagnoses.first)
            #expect(found.cause == .streamError && found.side == .unknown, "\(found.message)")
        }
    }

    @Test func `A missing version in a component's stream header is not a fault`() throws {
        var harness = SessionHarness()
        let header =
            "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' to='c.example.org'>"
        harness.send(header)
        harness.recv(header.replacing("to=", with: "id='1' from="))
        harness.wait(6 * Self.second)
        harness.leave()
        #expect(harness.diagnoses.allSatisfy { $0.cause != .versionMismatch })
    }

    @Test(arguments: [
        ("EXTERNAL", "="), ("OAUTHBEARER", "n,,\u{1}auth=Bearer x\u{1}\u{1}"), ("HT-SHA-256-NONE", "juliet\0x"),
        ("ANONYMOUS", ""),
    ])
    func `A refused login without a password mentions no password`(mechanism: String, message: String) throws {
        var harness = L.opened(L.mechanisms(mechanism))
        harness.send(L.auth(mechanism, message))
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .notAuthorized && !found.finding.description.contains("password"), "\(found.message)")
    }

    @Test func `A server that refuses a mechanism that it offers is at fault`() {
        var harness = L.opened(L.mechanisms("PLAIN"))
        harness.send(L.plain)
        harness.recv(L.failure("invalid-mechanism"))
        harness.leave()
        #expect(harness.diagnoses.first?.side == .server)
    }

    @Test func `An error in a SCRAM challenge is diagnosed`() throws {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,,\(L.scramFirst)"))
        harness.recv(L.sasl("challenge", "e=unknown-user"))
        harness.leave()
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .unknownUser, "\(found.message)")
    }

    @Test func `A refused channel binding downgrade is diagnosed even without a forecast`() throws {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1-PLUS", "SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "y,,\(L.scramFirst)"))
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        let found = try #require(harness.diagnoses.first)
        #expect(found.cause == .bindingDenied, "\(found.message)")
        #expect(found.finding.description.contains("an unknown user name can give the same error"))
    }
}
