import TapDiagnosis
import TapTestKit
import Testing

@testable import TapCore
import TapRecord

/// Tests of TLS that begins on one leg only, or differently on each leg: the bytes that each peer receives, and when.
@Suite struct AsymmetricTLSTests {
    private static let open =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        + "to='example.org' version='1.0'>"
    private static let answer =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        + "from='example.org' id='s1' version='1.0'>"
    private static let request = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let consent = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    private static let mechanisms =
        "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
    private static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"

    private static func features(_ content: String) -> String { "<stream:features>\(content)</stream:features>" }
    private static let offer = features(
        "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>\(mechanisms)"
    )

    private static func harness(_ client: LegTLS, _ server: LegTLS, advice: Advice? = nil) -> SessionHarness {
        var options = SessionOptions(level: .trace)
        options.advice = advice
        options.holdsProceed = true
        options.clientTLS = client
        options.serverTLS = server
        return SessionHarness(options: options)
    }

    @Test func `xmpptap does not answer a client if its stream was already forwarded`() {
        var harness = Self.harness(.auto, .off)
        harness.session.sharedState.cutThrough(.send)
        harness.send(Self.open)
        #expect(harness.toServer == Array(Self.open.utf8))
        #expect(harness.toClient.isEmpty)
    }

    @Test(arguments: [
        (LegTLS.off, LegTLS.required, "client-tls-off", "no TLS on the client leg; changeClientTLS"),
        (.off, .off, "server-tls-off", "no TLS on the server leg, not even for the login; changeServerTLS"),
        (.direct, .auto, "tls-required", "session closed; usual("),
        (.auto, .direct, "tls-required", "; allowClearClients"),
        (.off, .off, "tls-off", "but the client leg has no TLS; usual("),
    ])
    func `the advice is in the record of a TLS problem`(client: LegTLS, server: LegTLS, code: String, words: String) {
        var harness = Self.harness(client, server) { "\($0)" }
        let last = code == "tls-off" ? Self.request : Self.auth
        let answer = client == .off && server == .off ? [(Direction.recv, Self.answer + Self.offer)] : []
        harness.say([(.send, Self.open)] + answer + [(.send, last)])
        let told = harness.told(code: code).first?.record.messageText
        #expect(told?.contains(words) == true, "\(told ?? "")")
    }

    // MARK: xmpptap requests TLS of the server

    @Test(arguments: [1, 9, Int.max], [LegTLS.auto, .required])
    func `the client receives only the server's stream inside TLS`(piece: Int, server: LegTLS) throws {
        var harness = Self.harness(.off, server)
        harness.say([(.send, Self.open + " " + Self.auth), (.recv, Self.answer + Self.offer)], piece: piece)
        #expect(harness.text(.send) == Self.open + Self.request)
        #expect(harness.text(.recv).isEmpty)
        harness.say([(.recv, Self.consent)], piece: piece)
        #expect(harness.handshakes == [.server])
        harness.openTLS(.server)
        #expect(harness.text(.send) == Self.open + Self.request + Self.open + Self.auth)
        let inside = Self.answer.replacing("s1", with: "s2") + Self.features(Self.mechanisms)
        harness.say([(.recv, inside)], piece: piece)
        #expect(harness.text(.recv) == inside)
        #expect(!harness.told.contains { $0.record.code == "unexpected-restart" })
        #expect(harness.told(code: "client-tls-off").count == 1)
        // Data that xmpptap sent to the server is recorded as such, and so are items that the client did not receive.
        let own = harness.told.filter { $0.record.origin == .tap }.compactMap(\.xml)
        #expect(own == [Self.request, Self.open])
        let kept = harness.told.filter { $0.record.action != nil && $0.record.direction == .recv }
        #expect(kept.compactMap(\.xml).joined() == Self.answer + Self.offer + Self.consent)
        #expect(kept.suffix(2).map(\.record.action) == ["answered", "answered"], "they never go out")
    }

    @Test func `data in clear after the server's proceed element ends the session`() {
        var harness = Self.harness(.off, .auto)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.offer), (.recv, Self.consent + "<message/>")])
        #expect(harness.handshakes.isEmpty && harness.told(code: "starttls-injection").count == 1)
        #expect(!harness.text(.recv).contains("<message") && harness.text(.recv).hasPrefix("<?xml"))
        #expect(harness.text(.recv).contains("remote-connection-failed") && harness.closed != nil)
    }

    @Test func `a server without TLS is relayed in clear with a warning, or refused if TLS is required`() {
        var harness = Self.harness(.off, .auto)
        let plain = Self.answer + Self.features(Self.mechanisms)
        harness.say([(.send, Self.open + Self.auth), (.recv, plain)])
        #expect(harness.text(.recv) == plain && harness.text(.send) == Self.open + Self.auth)
        #expect(harness.told(code: "no-tls").count == 1)

        harness = Self.harness(.off, .required)
        harness.say([(.send, Self.open + Self.auth), (.recv, plain)])
        #expect(
            harness.told(code: "tls-required").first?.record.messageText?.contains("but the server leg requires it")
                == true
        )
        #expect(!harness.text(.send).contains("<auth") && harness.text(.recv).contains("policy-violation"))
        #expect(harness.text(.recv).hasPrefix("<?xml") && harness.closed != nil)
    }

    /// An attacker between xmpptap and the server can send data before TLS, and can remove the offer of TLS.
    @Test(arguments: [
        "<message xmlns='jabber:client'/>", "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>", offer,
        "<compressed xmlns='http://jabber.org/protocol/compress'/>", "<a></b>", "",
        "<success xmlns='urn:xmpp:sasl:2'><bound xmlns='urn:xmpp:bind:0'/></success>",
    ])
    func `if TLS is required, nothing the server sends before TLS makes xmpptap forward a login`(early: String) {
        for client in [LegTLS.off, .auto] {
            for isAsked in [false, true] {
                var harness = Self.harness(client, .required)
                harness.say([(.send, Self.open), (.recv, Self.answer)])
                if isAsked { harness.say([(.recv, Self.offer)]) }
                harness.say([(.recv, early), (.recv, Self.features(Self.mechanisms)), (.send, Self.auth)])
                #expect(!harness.text(.send).contains("<auth"), "\(client) \(isAsked)")
            }
            // Data that is not XMPP does not let the login pass either.
            var harness = Self.harness(client, .required)
            harness.say([(.send, Self.open), (.recv, "\u{1}" + Self.answer), (.send, Self.auth)])
            #expect(!harness.text(.send).contains("<auth"), "\(client)")
        }
    }

    @Test func `a server that sends endless data before its features is refused`() {
        for nothing in [String(repeating: " ", count: 1000), Self.answer] {
            var harness = Self.harness(.off, .auto)
            harness.say([(.send, Self.open), (.recv, Self.answer)])
            for _ in 0..<10_000 where harness.closed == nil { harness.say([(.recv, nothing)]) }
            #expect(harness.told(code: "limit-item").count == 1)
            #expect(harness.text(.recv).contains("policy-violation") && harness.text(.recv).utf8.count < 2000)
        }
    }

    @Test func `if the client disconnects before TLS with the server, its login is not sent in clear`() {
        var harness = Self.harness(.off, .auto)
        harness.say([(.send, Self.open + Self.auth)])
        harness.end(.client)
        harness.say([(.recv, Self.answer + Self.offer)])
        #expect(!harness.text(.send).contains("<auth") && harness.closed != nil)
    }

    @Test func `a stream error of the server is forwarded with the server's own stream header`() {
        var harness = Self.harness(.off, .auto)
        let error =
            "<stream:error><host-unknown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        harness.say([(.send, Self.open), (.recv, Self.answer + error)])
        #expect(harness.text(.recv) == Self.answer + error)
    }

    @Test func `with direct TLS to the server, the client's stream is forwarded only after the handshake`() {
        var harness = Self.harness(.off, .direct)
        harness.say([(.send, Self.open + Self.auth)], piece: 11)
        #expect(harness.text(.send).isEmpty && harness.handshakes == [.server])
        harness.openTLS(.server)
        #expect(harness.text(.send) == Self.open + Self.auth)
        harness.say([(.recv, Self.answer + Self.offer)])
        #expect(harness.text(.recv) == Self.answer + Self.features(Self.mechanisms))
    }

    @Test func `without TLS on either leg, only the STARTTLS offer is removed`() {
        var harness = Self.harness(.off, .off)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.offer), (.send, Self.auth)])
        #expect(harness.text(.recv) == Self.answer + Self.features(Self.mechanisms))
        #expect(harness.text(.send) == Self.open + Self.auth)
        #expect(harness.told(code: "server-tls-off").first?.record.level == .warn)
    }

    @Test func `a client that uses TLS although it was not offered is refused`() {
        var harness = Self.harness(.off, .off)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.offer), (.send, Self.request)])
        #expect(harness.text(.recv).contains("<failure") && !harness.text(.send).contains("starttls"))
        #expect(harness.told(code: "tls-off").count == 1 && harness.closed != nil)
        #expect(harness.told.last { $0.xml == Self.request }?.record.action == "refused")

        harness = Self.harness(.off, .auto)
        harness.receive(.send, [0x16, 3, 1, 0, 4, 1, 0, 0, 0])
        #expect(harness.toClient == [0x15, 3, 1, 0, 2, 2, 70] && harness.toServer.isEmpty)
        #expect(harness.told(code: "tls-off").count == 1 && harness.closed != nil)
    }

    // MARK: xmpptap answers the client's request for TLS

    @Test(arguments: [LegTLS.auto, .required], [LegTLS.direct, .off])
    func `nothing is sent to the server before TLS with the client is established`(client: LegTLS, server: LegTLS) {
        var harness = Self.harness(client, server)
        harness.keepsIdentity = true
        harness.say([(.send, Self.open), (.send, Self.request)], piece: 13)
        #expect(harness.text(.send).isEmpty && harness.handshakes == (server == .direct ? [.server] : []))
        if server == .direct { harness.openTLS(.server) }
        #expect(
            harness.text(.recv).hasSuffix(
                Self.features("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>")
            )
        )
        harness.handle(.identityFound(isServersOwn: false))
        #expect(harness.text(.recv).hasSuffix(Self.consent))
        harness.openTLS(.client)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.features(Self.mechanisms)), (.send, Self.auth)])
        #expect(harness.text(.send) == Self.open + Self.auth)
        #expect(harness.text(.recv).hasSuffix(Self.answer + Self.features(Self.mechanisms)))
        #expect(!harness.told.contains { $0.record.code == "unexpected-restart" })
    }

    @Test(arguments: [true, false]) func `data in clear after a STARTTLS request ends the session`(atOnce: Bool) {
        var harness = Self.harness(.auto, .off)
        harness.say([(.send, Self.open)])
        if atOnce {
            harness.send(Self.request + Self.auth)
        } else {
            harness.keepsIdentity = true
            harness.send(Self.request)
            harness.send(Self.auth)
            harness.handle(.identityFound(isServersOwn: false))
        }
        #expect(harness.told(code: "starttls-injection").count == 1)
        #expect(harness.text(.send).isEmpty && harness.text(.recv).contains("<failure") && harness.closed != nil)
    }

    @Test func `a client that leaves without requesting TLS is diagnosed, whatever the server sent`() {
        var harness = Self.harness(.auto, .direct)
        harness.say([(.send, Self.open)])
        harness.end(.client)
        harness.receive(.recv, [0x15, 3, 3, 0, 2, 2, 10])
        harness.end(.server)
        harness.close()
        #expect(!harness.toClient.contains(0x15))
        let diagnosis = harness.told(code: "login-failed").first?.record
        #expect(diagnosis?.details?["cause"] == "leg-without-tls" && diagnosis?.details?["step"] == "starttls")
    }

    @Test func `a client that continues without TLS gets a stream error in the stream that xmpptap opened`() {
        var harness = Self.harness(.auto, .direct)
        harness.say([(.send, Self.open), (.send, Self.auth)])
        let told = harness.told(code: "tls-required").compactMap(\.record.messageText)
        #expect(told.count == 1 && told[0].contains("TLS on the server leg requires it of clients"))
        #expect(harness.text(.send).isEmpty)
        #expect(
            harness.text(.recv).components("<stream:stream") == 1 && harness.text(.recv).contains("policy-violation")
        )
    }

    // MARK: TLS on both legs together

    @Test(arguments: [(LegTLS.required, LegTLS.auto), (.auto, .required), (.required, .required)])
    func `a peer that continues in clear although TLS is required is refused`(client: LegTLS, server: LegTLS) {
        var harness = Self.harness(client, server)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.offer), (.send, Self.auth)])
        #expect(harness.told(code: "tls-required").count == 1)
        #expect(!harness.text(.send).contains("<auth") && harness.text(.recv).contains("policy-violation"))

        harness = Self.harness(client, server)
        harness.say([(.send, Self.open), (.recv, Self.answer + Self.features(Self.mechanisms))])
        #expect(
            harness.told(code: "tls-required").first?.record.messageText?.contains("the server does not offer TLS")
                == true
        )
        #expect(!harness.text(.recv).contains("PLAIN") && harness.text(.recv).contains("policy-violation"))

        harness = Self.harness(client, server)
        harness.say([
            (.send, Self.open), (.recv, Self.answer + Self.offer), (.send, Self.request), (.recv, Self.consent),
        ])
        #expect(harness.handshakes == [.server] && harness.closed == nil)
    }

    @Test(arguments: LegTLS.allCases) func `a stream in clear is refused if the client leg requires direct TLS`(
        server: LegTLS
    ) {
        var harness = Self.harness(.direct, server)
        harness.say([(.send, Self.open)])
        #expect(
            harness.told(code: "tls-required").first?.record.messageText?.contains("but the client leg requires it")
                == true
        )
        #expect(harness.text(.recv).contains("policy-violation") && !harness.text(.send).contains("<stream"))
    }
}

extension String {
    fileprivate func components(_ text: String) -> Int { ranges(of: text).count }
}
