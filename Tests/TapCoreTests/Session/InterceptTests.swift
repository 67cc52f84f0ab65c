import TapCore
import TapRecord
import TapTestKit
import Testing

/// TLS that is ended here, as a session sees it: consent held, both streams anew, nothing in clear around it.
@Suite struct InterceptTests {
    private static func harness() -> SessionHarness {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        return SessionHarness(options: options)
    }

    @Test(arguments: [1, 7, Int.max]) func `the consent is held until the client's TLS begins`(piece: Int) {
        var harness = Self.harness()
        harness.say(Conversations.startTLS, piece: piece)
        #expect(!harness.text(.recv).contains("<proceed"))
        #expect(harness.held == [.recv])
        #expect(harness.told.last { $0.xml == Conversations.startTLS[4].text }?.record.action == nil)
        let may = harness.session.mayBeginTLS(at: harness.now)
        #expect(may)
        harness.session.tlsBegins(.server, directly: false, at: harness.now)
        harness.session.proceed(at: harness.now)
        harness.end(.client, .reset)
        #expect(harness.text(.recv).hasSuffix("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"))
        #expect(harness.text(.send) == Conversations.text(Conversations.startTLS, .send))
    }

    @Test(arguments: [Direction.send, .recv]) func `nothing in clear goes past the consent`(direction: Direction) {
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
        let may = harness.session.mayBeginTLS(at: harness.now)
        harness.end(direction.source)
        #expect(!may)
        #expect(harness.told(code: "starttls-injection").count == 1)
        #expect(!harness.text(direction).contains("injected"))
        #expect(!harness.text(.recv).contains("<proceed"))
        #expect(harness.text(.recv).contains("<failure"))
    }

    @Test func `white space around the consent is none of that`() {
        var harness = Self.harness()
        harness.say(Array(Conversations.startTLS.dropLast()))
        harness.send("\n")
        harness.recv(Conversations.startTLS[4].text)
        let may = harness.session.mayBeginTLS(at: harness.now)
        #expect(may)
        #expect(harness.told(code: "starttls-injection").isEmpty)
    }

    @Test(arguments: [false, true]) func `consent to TLS where none can begin ends the session`(isInside: Bool) throws {
        var harness = Self.harness()
        if isInside {
            harness.say(Conversations.startTLS)
            harness.session.tlsBegins(.server, directly: false, at: harness.now)
            harness.session.tlsOpened(.server, [:], "TLS", at: harness.now)
            harness.session.proceed(at: harness.now)
            harness.session.tlsBegins(.client, directly: false, at: harness.now)
            harness.session.tlsOpened(.client, [:], "TLS", at: harness.now)
            harness.say(Array(Conversations.startTLS.dropLast()))
        } else {
            // Nobody has asked for it.
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
