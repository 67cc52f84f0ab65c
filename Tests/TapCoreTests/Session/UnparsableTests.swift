@testable import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of sessions with a stream that cannot be parsed, under the policy `close`.
@Suite struct UnparsableTests {
    private static func session(turns: Int, limits: SessionOptions = SessionOptions(level: .trace)) -> SessionHarness {
        var options = limits
        options.onUnparsable = .close
        var harness = SessionHarness(options: options)
        harness.say(Array(Conversations.plainLogin.prefix(turns)))
        return harness
    }

    @Test func `with faults refused, only whole items are forwarded, even in an open session`() {
        var harness = Self.session(turns: 10)
        let before = harness.toServer.count
        harness.send("<message><bo")
        #expect(harness.toServer.count == before)
        harness.send("dy/></message>")
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "<message><body/></message>")
        #expect(harness.told(code: "cut-through").isEmpty)
    }

    @Test(arguments: [3, 10]) func `a faulty client gets a stream error, and its item is not forwarded`(turns: Int)
        throws
    {
        var harness = Self.session(turns: turns)
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        harness.send("<message><!-- no --></message>")
        #expect(String(decoding: harness.toServer[server...], as: UTF8.self) == "</stream:stream>")
        let answer = String(decoding: harness.toClient[client...], as: UTF8.self)
        #expect(answer.hasPrefix("<stream:error><restricted-xml xmlns="))
        #expect(answer.hasSuffix("</stream:error></stream:stream>"))
        #expect(harness.closed == false)
        harness.close()
        let fault = try #require(harness.told(code: "comment").first?.record)
        #expect(fault.messageText?.hasSuffix("session closed") == true)
        #expect(harness.told(code: "session-ended").first?.record.condition == "restricted-xml")
    }

    @Test func `a faulty server gets a stream error, and the client an internal-server-error`() {
        var harness = Self.session(turns: 10)
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        harness.recv("<message></iq>")
        #expect(String(decoding: harness.toServer[server...], as: UTF8.self).contains("<not-well-formed"))
        #expect(String(decoding: harness.toClient[client...], as: UTF8.self).contains("<internal-server-error"))
        #expect(harness.closed == false)
    }

    @Test(arguments: [3, 10])
    func `compression is refused before the client receives the server's consent`(turns: Int) {
        var harness = Self.session(turns: turns)
        harness.send("<compress xmlns='http://jabber.org/protocol/compress'><method>zlib</method></compress>")
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        harness.recv("<compressed xmlns='http://jabber.org/protocol/compress'/>")
        let answer = String(decoding: harness.toClient[client...], as: UTF8.self)
        #expect(answer.hasPrefix("<stream:error><policy-violation ") && !answer.contains("<compressed"))
        harness.send("x")
        #expect(String(decoding: harness.toServer[server...], as: UTF8.self) == "</stream:stream>")
        #expect(harness.closed == false && harness.told(code: "compression-refused").count == 1)
    }

    @Test func `plaintext in place of TLS that is passed through ends the session`() {
        for isEarly in [true, false] {
            var harness = Self.session(turns: 0)
            harness.send(TLSScene.header)
            harness.recv(TLSScene.header + TLSScene.offer)
            harness.send(TLSScene.request + (isEarly ? "<presence/>" : ""))
            let server = harness.toServer.count
            harness.recv(TLSScene.consent)
            harness.send("<message/>")
            #expect(harness.toServer.count == server && harness.closed == false, "\(isEarly)")
            #expect(harness.told(code: "not-tls").last?.record.condition == "policy-violation")
        }
    }

    @Test func `first bytes that begin like TLS, but are not TLS, end the session`() {
        var harness = Self.session(turns: 0)
        harness.receive(.send, [0x16] + Array(TLSScene.header.utf8))
        #expect(harness.toServer.isEmpty && harness.closed == false)
    }

    @Test func `TLS after a requested proceed is passed through`() {
        var harness = Self.session(turns: 0)
        harness.send(TLSScene.header)
        harness.recv(TLSScene.header + TLSScene.offer)
        harness.send(TLSScene.request)
        harness.recv(TLSScene.consent)
        let server = harness.toServer.count
        harness.receive(.send, [0x16, 3, 1, 0, 1])
        #expect(harness.toServer.count == server + 5 && harness.closed == nil)
    }

    @Test func `a client that does not speak XMPP gets a stream with an error`() {
        var harness = Self.session(turns: 0)
        harness.send("GET / HTTP/1.1\r\n\r\n")
        #expect(harness.toServer.isEmpty)
        let answer = String(decoding: harness.toClient, as: UTF8.self)
        #expect(answer.hasPrefix("<?xml version='1.0'?><stream:stream "))
        #expect(answer.contains("<not-well-formed"))
        #expect(harness.closed == false)
    }

    @Test func `an item beyond the limit is reported with the limit and its offset`() throws {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 1000
        var harness = Self.session(turns: 10, limits: options)
        harness.send("<message><body>" + String(repeating: "x", count: 1000))
        let told = try #require(harness.told(code: "limit-item").first?.record.messageText)
        #expect(told.hasPrefix("an item longer than 1000 bytes, the limit of a session, at offset "))
        #expect(String(decoding: harness.toClient, as: UTF8.self).contains("<policy-violation"))
        #expect(harness.closed == false)
    }

    @Test(arguments: ["<a xmlns='urn:xmpp:sm:3' h='3'/>", "</stream:stream>"])
    func `items that arrive late in a logout are dropped without ending it`(late: String) {
        var harness = Self.session(turns: 10)
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        harness.send("</stream:stream>" + late)
        harness.send(late)
        #expect(harness.closed == nil)
        harness.recv("</stream:stream>")
        harness.end(.server)
        harness.end(.client)
        harness.close()
        #expect(String(decoding: harness.toServer[server...], as: UTF8.self) == "</stream:stream>")
        #expect(String(decoding: harness.toClient[client...], as: UTF8.self) == "</stream:stream>")
        #expect(harness.told.allSatisfy { $0.record.level >= .info && $0.record.kind != .error })
        let dropped = harness.told(code: "after-stream-end").last?.record
        #expect(dropped?.messageText == "\(2 * late.utf8.count) bytes dropped without decoding")
    }

    @Test func `no stream error is inserted into an item that is partly forwarded`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.recv("<message><bo")
        let client = harness.toClient.count
        harness.session.handle(.abort(.resourceConstraint, "The log cannot be written."), at: harness.now)
        harness.session.sharedState.release(.send)
        harness.wait(0)
        #expect(harness.toClient.count == client)
        #expect(String(decoding: harness.toServer.suffix(16), as: UTF8.self) == "</stream:stream>")
        #expect(harness.closed == false)
    }
}
