import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of a session whose TLS xmpptap terminates: the consent is held, both streams restart, and clear text around
/// the consent is not used.
@Suite struct InterceptTests {
    private static func harness() -> SessionHarness {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        return SessionHarness(options: options)
    }

    @Test(arguments: [1, 7, Int.max]) func `proceed is held until TLS with the server is established`(piece: Int) {
        var harness = Self.harness()
        harness.say(Conversations.startTLS, piece: piece)
        #expect(!harness.text(.recv).contains("<proceed"))
        #expect(harness.handshakes == [.server])
        #expect(harness.told.last { $0.xml == Conversations.startTLS[4].text }?.record.action == nil)
        harness.openTLS(.server)
        #expect(harness.handshakes == [.server, .client])
        #expect(harness.text(.recv).hasSuffix("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"))
        #expect(harness.text(.send) == Conversations.text(Conversations.startTLS, .send))
    }

    @Test(arguments: [Direction.send, .recv]) func `data in clear around proceed is refused`(direction: Direction) {
        var harness = Self.harness()
        let injected = "<message><body>injected</body></message>"
        if direction == .send {
            harness.say(Array(Conversations.startTLS.dropLast()))
            harness.send(injected)
            if harness.closed == nil { harness.say([Conversations.startTLS[4]]) }
        } else {
            harness.say(Array(Conversations.startTLS.dropLast()))
            harness.recv(Conversations.startTLS[4].text + injected)
        }
        #expect(harness.handshakes.isEmpty)
        #expect(harness.told(code: "starttls-injection").count == 1)
        #expect(!harness.text(direction).contains("injected"))
        #expect(!harness.text(.recv).contains("<proceed"))
        #expect(harness.text(.recv).contains("<failure"))
    }

    @Test func `white space around proceed is not treated as injected data`() {
        var harness = Self.harness()
        harness.say(Array(Conversations.startTLS.dropLast()))
        harness.send("\n")
        harness.recv(Conversations.startTLS[4].text)
        #expect(harness.handshakes == [.server])
        #expect(harness.told(code: "starttls-injection").isEmpty)
    }

    @Test func `direct TLS starts on the server's leg, and early data of the server waits`() {
        var harness = Self.harness()
        harness.receive(.send, Array(RecordedHello.modern.prefix(9)))
        #expect(harness.handshakes.isEmpty && harness.unread == [.server])
        harness.receive(.send, Array(RecordedHello.modern.dropFirst(9)))
        #expect(harness.handshakes == [.server] && harness.unread == [.client])
        harness.openTLS(.server)
        #expect(harness.handshakes == [.server, .client] && harness.unread.isEmpty)
        harness.recv("<?xml version='1.0'?>")
        #expect(harness.toClient.isEmpty && harness.toServer.isEmpty)
        harness.openTLS(.client)
        #expect(harness.text(.recv) == "<?xml version='1.0'?>" && harness.session.tls == nil)
    }

    @Test(arguments: [Leg.client, .server], [0, 1, 2])
    func `a leg that ends during TLS negotiation ends the session`(leg: Leg, handshakes: Int) {
        var harness = Self.harness()
        harness.keepsIdentity = handshakes < 2
        harness.receive(.send, handshakes == 0 ? [0x16] : RecordedHello.modern)
        if handshakes == 2 { harness.openTLS(.server) }
        harness.end(leg, .reset)
        #expect(harness.session.tls == nil && harness.closed != nil)
    }

    @Test(arguments: [0, 1, 2]) func `a timeout fails the handshake in progress`(handshakes: Int) throws {
        var harness = Self.harness()
        harness.receive(.send, handshakes == 0 ? [0x16] : RecordedHello.modern)
        if handshakes == 2 { harness.openTLS(.server) }
        harness.abort(.connectionTimeout, "No login within 3 s.")
        let told = try #require(harness.told(code: "tls-timeout").first?.record)
        #expect(told.leg == (handshakes == 1 ? .server : .client) && told.messageText == "No login within 3 s")
        #expect(harness.session.tls == nil && harness.closed == false)
    }

    @Test(arguments: [false, true]) func `proceed without a STARTTLS request ends the session`(isInside: Bool) throws {
        var harness = Self.harness()
        if isInside {
            harness.say(Conversations.startTLS)
            harness.openTLS(.server)
            harness.openTLS(.client)
            harness.say(Array(Conversations.startTLS.dropLast()))
        } else {
            // No client has requested TLS.
            harness.say(Array(Conversations.startTLS.prefix(3)))
        }
        let before = harness.text(.recv)
        harness.recv(Conversations.startTLS[4].text)
        #expect(harness.closed == false)
        let told = try #require(harness.told(code: "starttls-unexpected").first?.record)
        #expect(told.level == .error && told.condition == "policy-violation")
        #expect(harness.told.last { $0.xml == Conversations.startTLS[4].text }?.record.action == "refused")
        #expect(!harness.text(.recv).dropFirst(before.count).contains("<proceed"))
        #expect(harness.text(.send).contains("<policy-violation"))
    }
}
