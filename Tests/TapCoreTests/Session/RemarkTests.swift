import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests of the records of forwarded data, and of the session's own actions.
@Suite struct RemarkTests {
    @Test func `items that xmpptap sends are in the log`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let before = harness.toClient.count
        harness.abort(.resourceConstraint, "No room.")
        let said = String(decoding: harness.toClient[before...], as: UTF8.self)
        let own = harness.told.filter { $0.record.origin == .tap }
        #expect(own.filter { $0.record.direction == .recv }.compactMap(\.xml).joined() == said)
        #expect(own.filter { $0.record.direction == .send }.compactMap(\.xml) == ["</stream:stream>"])
        let error = try #require(own.first { $0.record.kind == .element })
        #expect(error.text(error.record.name) == "stream:error")
        #expect(error.record.condition == "resource-constraint" && error.record.leg == .client)
        #expect(error.record.level == .info)

        var form = TextForm()
        var line = LineBuffer()
        form.append(error.record, content: error.content.span, .xml, to: &line)
        let text = String(decoding: line.bytes, as: UTF8.self)
        #expect(text.contains("] RECV tap: <stream:error><resource-constraint "), "\(text)")
    }

    @Test func `an answer to a client without a stream is in the log, with its stream header`() {
        var harness = SessionHarness(connected: false)
        harness.failServer("gone")
        harness.send(Conversations.plainLogin[0].text)
        let own = harness.told.filter { $0.record.origin == .tap }
        #expect(own.map(\.record.kind) == [.declaration, .streamOpen, .element, .streamClose])
        #expect(own.compactMap(\.xml).joined() == String(decoding: harness.toClient, as: UTF8.self))
    }

    @Test func `the mechanisms of SASL and SASL2 are recorded separately`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(2)))
        harness.recv(
            "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism>"
                + "</mechanisms><authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism></authentication>"
                + "<sm xmlns='urn:xmpp:sm:2'/><sm xmlns='urn:xmpp:sm:3'/></stream:features>"
        )
        let record = try #require(
            harness.told.first { $0.record.messageText?.hasPrefix("offers sasl") == true }?.record
        )
        #expect(record.messageText == "offers sasl (SCRAM-SHA-1), sasl2 (PLAIN), sm:2, sm:3")
    }

    @Test func `a repeated end of the stream is not an error`() {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        harness.send("</stream:stream>")
        #expect(harness.told(code: "repeated-end").map(\.record.level) == [.verbose])
        #expect(harness.told.allSatisfy { $0.record.kind != .error })
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix("</stream:stream></stream:stream>"))
    }

    @Test func `a thousand stream headers cause one warning`() {
        var harness = SessionHarness()
        for _ in 0..<1000 { harness.send(Conversations.plainLogin[0].text) }
        let levels = harness.told(code: "unexpected-restart").map(\.record.level)
        #expect(levels.count == 999)
        #expect(levels.count { $0 == .warn } == 1)
    }

    @Test func `NUL between stanzas is an invalid character`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("\0")
        #expect(harness.told(code: "invalid-character").count == 1)
    }

    @Test func `passed TLS is not reported as an unclean end`() throws {
        var harness = SessionHarness()
        harness.say(Conversations.startTLS)
        harness.receive(.send, [0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3])
        harness.end(.client, .finished)
        harness.end(.server, .finished)
        harness.close()
        let hello = try #require(harness.told(code: "malformed-client-hello").first?.record)
        #expect(hello.offset == UInt64(Conversations.text(Conversations.startTLS, .send).utf8.count))
        let ended = try #require(harness.told(code: "session-ended").first?.record)
        #expect(ended.level == .info)
        #expect(ended.details?["close_reason"] == .string("undecoded"))
    }
}
