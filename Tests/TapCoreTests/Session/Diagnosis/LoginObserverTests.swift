import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapDiagnosis
import TapRecord

@Suite struct LoginObserverTests {
    private static func begin(_ mechanism: String) -> AuthenticationStep {
        AuthenticationStep(kind: .begin, details: ["mechanism": .string(mechanism)])
    }

    private static func failure(_ text: String? = nil) -> AuthenticationStep {
        AuthenticationStep(kind: .failure, details: [:], condition: "not-authorized", text: text)
    }

    private static func features(_ content: String) throws -> StreamFeatures {
        let text = "<stream:features>\(content)</stream:features>"
        let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)
        return try #require(StreamFeatures(try StanzaParser().parse(Array(text.utf8).span, root: root)))
    }

    @Test func `Only the last login attempts are kept, in order`() {
        let login = LoginObserver()
        for number in 0..<20 { login.observe(.step(Self.begin("X-\(number)"), text: nil)) }
        #expect(login.attempts.count == LoginObserver.maximumAttempts)
        #expect(login.attempts.last?.mechanism == "X-19")
    }

    @Test func `A failed SCRAM attempt is kept with the server's redacted text`() {
        let login = LoginObserver()
        login.observe(.step(Self.begin("SCRAM-SHA-1"), text: nil))
        #expect(login.failedSCRAM == nil)
        login.observe(.step(Self.failure("Unknown user"), text: "[redacted]"))
        #expect(login.failedSCRAM?.namedCause == .unknownUser && login.failedSCRAM?.text?.description == "[redacted]")
        login.observe(.step(Self.begin("PLAIN"), text: nil))
        #expect(login.failedSCRAM?.mechanism == "SCRAM-SHA-1")
    }

    @Test func `xmpptap's own attempts are distinguished from the client's`() {
        let login = LoginObserver()
        login.observe(.step(Self.begin("PLAIN"), text: nil))
        login.observe(.refusedHere(bindings: []))
        login.observe(.ownFailure("no", isServerUnproven: true))
        login.observe(.ownStep(Self.begin("SCRAM-SHA-1"), text: nil))
        login.observe(.refusedHere(bindings: []))
        #expect(login.attempts.map(\.isOwn) == [false, true])
        #expect(login.attempts.map(\.isRefusedHere) == [true, false])
        // A new attempt begins without the failure of the previous one.
        #expect(login.ownFailure == nil && !login.isServerUnproven)
    }

    @Test func `A missing account is remembered until the client tries again`() {
        let login = LoginObserver()
        login.observe(.missedAccount)
        login.observe(.step(Self.failure(), text: nil))
        #expect(login.hasMissedAccount)
        login.observe(.step(Self.begin("PLAIN"), text: nil))
        #expect(!login.hasMissedAccount)
    }

    @Test func `Offered features are kept until TLS or authentication succeeds`() throws {
        let offer = try Self.features("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        let login = LoginObserver()
        login.observe(.serverHeader(version: "1.0"))
        login.observe(.features(offer, isRepeated: false))
        #expect(login.offer?.offersTLS == true && login.offer?.requiresTLS == false && login.hasServerHeader)
        login.observe(.enteredTLS)
        #expect(login.offer == nil && !login.hasServerHeader)
        login.observe(.features(offer, isRepeated: false))
        login.observe(.step(Self.begin("PLAIN"), text: nil))
        login.observe(.step(AuthenticationStep(kind: .success, details: [:]), text: nil))
        #expect(login.offer == nil)
    }

    @Test func `The first cause of a failure is kept unless a recording states the final one`() {
        let login = LoginObserver()
        login.observe(.blamed(LoginDiagnosis(.clockSkew, at: .tls, "first")))
        login.observe(.blamed(LoginDiagnosis(.serverGone, at: .tls, "a consequence")))
        #expect(login.blamed?.cause == .clockSkew)
        login.observe(.blamed(LoginDiagnosis(.serverGone, at: .tls, "told"), isFinal: true))
        #expect(login.blamed?.cause == .serverGone)
    }

    @Test func `A refusal without text keeps the previous text and cause`() {
        let login = LoginObserver()
        login.observe(.refused("no TLS", .legWithoutTLS))
        login.observe(.refused(nil))
        #expect(login.refusal?.description == "no TLS" && login.refusalCause == .legWithoutTLS)
    }

    @Test func `Undecodable bytes count as an exchange once both sides have sent some`() {
        let login = LoginObserver()
        #expect(!login.hasExchange(sent: 100, received: 100))
        login.observe(.unread(sent: 10, received: 20))
        login.observe(.unread(sent: 90, received: 90))
        #expect(!login.hasExchange(sent: 11, received: 20) && login.hasExchange(sent: 11, received: 21))
    }

    @Test func `A user agent is identified by its id, software and device`() throws {
        func key(_ content: String) throws -> String? {
            let text = "<user-agent xmlns='urn:xmpp:sasl:2' id='1'>\(content)</user-agent>"
            let login = LoginObserver()
            login.observe(.userAgent(try StanzaParser().parse(Array(text.utf8).span, root: [])))
            return login.agent
        }
        let one = try key("<software>a</software><device>b</device>")
        #expect(try one != nil && one == key("<device>b</device><software>a</software>"))
        #expect(try one != key("<software>a</software>"))
    }
}
