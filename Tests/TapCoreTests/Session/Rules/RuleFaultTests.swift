import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules
@testable import TapStreamManagement

private func message(_ number: Int) -> String { "<message id='m\(number)'><body>a</body></message>" }

/// Tests of items that rules delay, and of sessions in which rules cause faults.
@Suite struct RuleFaultTests {
    // MARK: Delays

    @Test func `delayed stanzas are sent in order, each after the same delay`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms")
        let start = scene.harness.now.monotonic
        #expect(scene.send(message(1)).server.isEmpty)
        #expect(scene.harness.session.nextDeadline == start + 501_000_000)
        _ = scene.wait(milliseconds: 200)
        #expect(scene.send(message(2) + "<presence/>").server.isEmpty)
        #expect(scene.wait(milliseconds: 298).server.isEmpty)
        #expect(scene.wait(milliseconds: 2).server == message(1))
        #expect(scene.wait(milliseconds: 198).server.isEmpty)
        #expect(scene.wait(milliseconds: 5).server == message(2) + "<presence/>")
        #expect(scene.harness.session.releaseDeadline == nil)
        #expect(scene.send("<presence/>").server == "<presence/>")
        #expect(
            scene.harness.told.filter { $0.record.kind == .stanza }.suffix(4).map(\.xml)
                == [message(1), message(2), "<presence/>", "<presence/>"]
        )
    }

    @Test func `a delay in one direction does not delay the other`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms")
        _ = scene.send(message(1))
        #expect(scene.recv(message(2)).client == message(2))
    }

    @Test func `a leg is not read while its waiting data is over the limit`() throws {
        var options = SessionOptions(level: .trace)
        options.waitingBytes = 1000
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms", options)
        _ = scene.send(message(1))
        #expect(scene.harness.unread.isEmpty)
        _ = scene.send((2..<40).map(message).joined())
        #expect(scene.harness.unread == [.client])
        #expect(scene.harness.session.counters.events == [.limitHit(.waiting): 1])
        for _ in 0..<3 { _ = scene.wait(milliseconds: 500) }
        #expect(scene.harness.unread.isEmpty)
    }

    @Test func `a paused stanza waits until it is passed, dropped or edited`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nPAUSE.", enablesStreamManagement: true)
        #expect(scene.send(message(1) + message(2) + message(3) + "<presence/>").server.isEmpty)
        let held = scene.harness.session.heldItems
        #expect(held.count == 1)
        #expect(held.first?.number == 1 && held.first?.direction == .send)
        #expect(held.first?.bytes == Array(message(1).utf8) && held.first?.rule?.line == 3)
        #expect(scene.handle(.release(7, .pass)).server.isEmpty)
        #expect(scene.told("not-held").count == 1)
        #expect(scene.handle(.release(1, .pass)).server == message(1))
        #expect(scene.handle(.release(2, .drop)).server.isEmpty)
        #expect(scene.item?.record.action == "dropped" && scene.item?.xml == message(2))
        #expect(scene.handle(.release(3, .replace(Array("<message".utf8)))).server.isEmpty)
        #expect(scene.told("held-edit-refused").count == 1)
        for content in ["jabber:server", "jabber:component:accept"] {
            let foreign = "<message xmlns='\(content)' id='other'/>"
            let words = "it is not an iq, message or presence in the stream's namespace"
            #expect(scene.harness.session.problem(with: .replace(Array(foreign.utf8)), of: 3) == words)
            #expect(scene.handle(.release(3, .replace(Array(foreign.utf8)))).server.isEmpty)
        }
        let edited = "<message id='other'/>"
        #expect(scene.handle(.release(3, .replace(Array(edited.utf8)))).server == edited + "<presence/>")
        let counts = scene.harness.session.ledgers
        let ledgers = try #require(counts)
        #expect(ledgers.send.sent == 4 && ledgers.send.delivered == 3)
        #expect(scene.harness.session.heldItems.isEmpty)
    }

    @Test func `a pause on request holds the next stanzas that match its conditions`() throws {
        var scene = try RuleScene("::recv\n\nKIND: presence\nDROP.", enablesStreamManagement: true)
        _ = scene.handle(.pause(try StanzaPause(.send, count: 2, conditions: "KIND: message\nEVERY: 2")))
        #expect(scene.recv(message(1)).client == message(1))
        #expect(scene.send("<presence/>" + message(1) + message(2)).server == "<presence/>" + message(1))
        let held = scene.harness.session.heldItems
        #expect(held.count == 1 && held.first?.rule == nil && held.first?.bytes == Array(message(2).utf8))
        #expect(scene.handle(.release(1, .drop)).server.isEmpty)
        #expect(scene.send(message(3) + message(4)).server == message(3))
        #expect(scene.handle(.release(2, .pass)).server == message(4))
        #expect(scene.send(message(5) + message(6)).server == message(5) + message(6))
        let counts = scene.harness.session.ledgers
        let ledgers = try #require(counts)
        #expect(ledgers.send.sent == 7 && ledgers.send.delivered == 6)
    }

    @Test func `a pause with a filter holds the stanzas that the filter selects as they arrive`() throws {
        var scene = try RuleScene("::recv\n\nKIND: presence\nDROP.", enablesStreamManagement: true)
        func pause(_ filter: String, _ count: Int = 1) throws -> SessionInput {
            .pause(try StanzaPause(nil, count: count, filter: RecordFilter(filter), owner: .page))
        }
        _ = scene.handle(try pause("send and message and (body:secret or id:\"a'b\") and not payload:{urn:x}y", 2))
        func numbers() -> [UInt64] { scene.harness.told.map(\.record.sequence).filter { $0 > 0 } }
        let before = numbers()
        let others = message(1) + "<presence/><message><y xmlns='urn:x'/><body>secret</body></message>"
        #expect(scene.send(others).server == others)
        // The records that the filter sees are not counted.
        let after = numbers()
        #expect((after.max() ?? 0) - (before.max() ?? 0) == UInt64(after.count - before.count))
        #expect(scene.recv("<message><body>secret</body></message>").client == "<message><body>secret</body></message>")
        let first = "<message><body>a secret</body></message>"
        let second = "<message id='a&apos;b'><z xmlns='urn:z&amp;'/></message>"
        #expect(scene.send(first + second + message(2)).server.isEmpty)
        let held = try #require(scene.harness.session.heldItems.first)
        #expect(held.bytes == Array(first.utf8) && held.rule == nil)
        #expect(held.pause?.owner == .page && held.pause?.isFilter == true)
        #expect(held.pause?.text.hasPrefix("send and message") == true)
        #expect(scene.handle(.release(1, .drop)).server.isEmpty)
        #expect(scene.harness.session.heldItems.first?.bytes == Array(second.utf8))
        #expect(scene.handle(.release(2, .pass)).server == second + message(2))
        let counts = scene.harness.session.ledgers
        let ledgers = try #require(counts)
        #expect(ledgers.send.sent == 6 && ledgers.send.delivered == 5)

        _ = scene.handle(try pause("level:warn and payload:{urn:z&}z"))
        #expect(scene.recv("<message type='error'><body>a</body></message>").client.hasPrefix("<message type='error'>"))
        #expect(scene.recv("<message type='error'><z xmlns='urn:z&amp;'/></message>").client.isEmpty)
        #expect(scene.harness.session.heldItems.map(\.direction) == [.recv])
    }

    @Test(arguments: [
        ("message and round-trip>1s", 13), ("not action:dropped", 5), ("rule:a.pfw", 1), ("(iq or code:a)", 8),
        ("condition:item-not-found", 1),
    ])
    func `a filter with a condition on what is found after the arrival cannot hold stanzas`(text: String, column: Int)
        throws
    {
        let filter = try RecordFilter(text)
        #expect {
            try StanzaPause(nil, filter: filter)
        } throws: { error in
            (error as? FilterFault)?.column == column && "\(error)".contains("is not known when a stanza arrives")
        }
    }

    @Test func `a pause on request needs no rules and can be ended`() throws {
        var harness = SessionHarness(options: SessionOptions(level: .trace))
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let before = harness.toServer.count
        func sent() -> String { String(decoding: harness.toServer[before...], as: UTF8.self) }
        harness.send("<message id='1'")
        harness.handle(.pause(try StanzaPause(nil)))
        harness.send("/><message id='2'/><message id='3'/>")
        #expect(sent() == "<message id='1'/>")
        #expect(harness.session.heldItems.map(\.bytes) == [Array("<message id='2'/>".utf8)])
        harness.handle(.release(1, .replace(Array("<message id='hand'/>".utf8))))
        #expect(sent() == "<message id='1'/><message id='hand'/><message id='3'/>")
        let isCutThrough = harness.session.isCutThrough(.send)
        #expect(isCutThrough)
        harness.handle(.pause(try StanzaPause(.send, count: 1000)))
        harness.handle(.pause(nil))
        harness.send("<message id='4'/>")
        #expect(sent().hasSuffix("<message id='4'/>") && harness.session.heldItems.isEmpty)
    }

    @Test(arguments: [
        ("KIND: massage", "massage"), ("DROP.", "only conditions"),
        ("KIND: message\nPASS.\n\nKIND: iq", "only conditions"),
        ("::send", "only conditions"), ("TIME: 10:00-11:00", "only be asked by rule files"),
    ])
    func `a pause with an invalid condition is refused`(conditions: String, reason: String) {
        #expect { try StanzaPause(.send, conditions: conditions) } throws: { "\($0)".contains(reason) }
    }

    @Test func `a paused stanza that is dropped is not duplicated`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nPAUSE.\nDUPLICATE=2")
        _ = scene.send(message(1))
        #expect(scene.handle(.release(1, .drop)).server.isEmpty)
        _ = scene.send(message(2))
        #expect(scene.handle(.release(2, .pass)).server == message(2) + message(2) + message(2))
    }

    @Test func `a paused stanza passes after 60 s without release`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nPAUSE.")
        _ = scene.send(message(1))
        #expect(scene.wait(milliseconds: 59_000).server.isEmpty)
        #expect(scene.wait(milliseconds: 1_000).server == message(1))
    }

    @Test func `STALL holds all data of a direction for its time`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nNTH: 1\nSTALL=3s")
        #expect(scene.send(message(1) + "<presence/>").server.isEmpty)
        scene.harness.inject(Injection(Array("<presence id='x'/>".utf8), to: .server))
        #expect(scene.wait(milliseconds: 2900).server.isEmpty)
        #expect(scene.wait(milliseconds: 100).server == message(1) + "<presence/><presence id='x'/>")
    }

    @Test func `an endless stall ends with the session, and unsent items are reported`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nSTALL.")
        #expect(scene.send(message(1)).server.isEmpty)
        #expect(scene.harness.session.releaseDeadline == nil)
        #expect(scene.wait(milliseconds: 1_000_000).server.isEmpty)
        scene.harness.end(.client, .reset)
        #expect(scene.harness.closed == true)
        scene.harness.close()
        #expect(scene.told("not-sent").count == 1)
    }

    @Test func `a lost stanza is a warning with the rule that delayed it`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nSET=@type=chat\n\nKIND: message\nDELAY=2s")
        _ = scene.send(message(1))
        scene.harness.end(.client, .reset)
        scene.harness.close()
        let lost = try #require(scene.told("not-sent").first?.record)
        #expect(
            lost.level == .warn && lost.messageText?.hasPrefix("the session ended while test.pfw:6 delayed ") == true
        )
    }

    @Test func `an endless stall does not keep the session open after both peers end`() throws {
        var scene = try RuleScene("::recv\n\nKIND: message\nSTALL.")
        #expect(scene.recv(message(1)).client.isEmpty)
        scene.harness.end(.client)
        #expect(scene.harness.closed == nil)
        scene.harness.end(.server)
        #expect(scene.harness.closed == false)
    }

    /// Each argument is an edit of the held `<message id='1'>`, with the reason why it is refused.
    @Test(arguments: [
        ("<a xmlns='urn:xmpp:sm:3' h='9'/>", "it is not an iq, message or presence in the stream's namespace"),
        ("<other xmlns='urn:example'/>", "it is not an iq, message or presence in the stream's namespace"),
        ("<message xmlns='urn:example'/>", "it is not an iq, message or presence in the stream's namespace"),
        ("<presence/>", "it is not a message, as the held stanza is"),
        ("<message/><message/>", "more than one stanza; the second begins at offset 10"),
        ("<message>", "it is not a complete stanza"), ("", "it is not a complete stanza"),
        ("</stream:stream>", "it ends the stream"),
        ("<message><x:y/></message>", "a prefix without a namespace, at offset 10"),
        ("<message to='a@b@c'/>", "to='a@b@c' is not a JID"),
        (
            "<message from='other@example.org'/>",
            "from='other@example.org' is not the session's JID (juliet@example.org/balcony); the server would close the "
                + "stream (invalid-from)"
        ),
        (
            "<message><body>\(String(repeating: "x", count: 400))</body></message>",
            "it is larger than 300 bytes, the most that the server accepts in a stanza (XEP-0478)"
        ),
        (
            "<message><body>\(String(repeating: "x", count: 2000))</body></message>",
            "it is larger than 2000 bytes, the limit of an item"
        ),
    ])
    func `an edit of a held stanza is checked like an injected stanza`(edited: String, reason: String) throws {
        var options = SessionOptions(level: .trace)
        options.limits.itemBytes = 2000
        options.rules = LiveRules(try RuleSet.test("::send\n\nKIND: message\nPAUSE.")) { _ in RuleLocalTime() }
        var harness = SessionHarness(options: options)
        harness.say(
            Conversations.plainLogin.prefix(10).map {
                let limits = "<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>300</max-bytes></limits>"
                return ($0.direction, $0.text.replacing("</stream:features>", with: limits + "</stream:features>"))
            }
        )
        let before = harness.toServer.count
        harness.send("<message id='1'/>")
        let problem = harness.session.problem(with: .replace(Array(edited.utf8)), of: 1)
        #expect(problem == reason)
        harness.handle(.release(1, .replace(Array(edited.utf8))))
        #expect(harness.toServer.count == before && harness.session.heldItems.count == 1)
        #expect(harness.told(code: "held-edit-refused").count == 1)
        let own = "<message from='juliet@example.org/balcony' to='romeo@example.org'/>"
        #expect(harness.session.problem(with: .replace(Array(own.utf8)), of: 1) == nil)
        harness.handle(.release(1, .pass))
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "<message id='1'/>")
    }

    @Test func `a held stanza over the receiver's size limit can be made smaller`() throws {
        var scene = try RuleScene("::recv\n\nKIND: message\nPAUSE.")
        let limits = "<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>20</max-bytes></limits>"
        scene.harness.send("<bidi xmlns='urn:xmpp:bidi'>\(limits)</bidi>")
        #expect(scene.recv(message(1)).client.isEmpty)
        let larger = "<message id='12345678901234567890123456789012345678901234567890'/>"
        #expect(scene.harness.session.problem(with: .replace(Array(larger.utf8)), of: 1)?.contains("XEP-0478") == true)
        let edited = "<message id='edited-1'/>"
        #expect(scene.handle(.release(1, .replace(Array(edited.utf8)))).client == edited)
    }

    @Test func `an edit of a held element must keep its name and namespace`() throws {
        var scene = try RuleScene("::recv\n\nELEMENT: {urn:example}note\nPAUSE.\n\nELEMENT: {urn:xmpp:sm:3}a\nPAUSE.")
        #expect(scene.recv("<note xmlns='urn:example'>one</note>").client.isEmpty)
        for edited in ["<note xmlns='urn:other'/>", "<message/>", "<a xmlns='urn:xmpp:sm:3' h='1'/>"] {
            let problem = scene.harness.session.problem(with: .replace(Array(edited.utf8)), of: 1)
            #expect(problem == "it is not <note> in its namespace, as the held element is", "\(edited)")
        }
        let edited = "<note xmlns='urn:example'>two</note>"
        #expect(scene.handle(.release(1, .replace(Array(edited.utf8)))).client == edited)
    }

    @Test func `editing a held encrypted stanza is reported`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nPAUSE.")
        let held = "<message id='1'><body>?OTR:AAMD</body></message>"
        #expect(scene.send(held).server.isEmpty)
        let edited = "<message id='1'><body>x</body></message>"
        #expect(scene.handle(.release(1, .replace(Array(edited.utf8)))).server == edited)
        #expect(scene.told("opaque").count == 1)
        _ = scene.send(edited)
        #expect(scene.handle(.release(2, .replace(Array(held.utf8)))).server == held)
        #expect(scene.told("opaque").count == 1)
    }

    @Test func `delayed stanzas are sent before the end of their sender is forwarded`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms")
        _ = scene.send(message(1) + "<presence/>")
        scene.harness.end(.client)
        #expect(scene.harness.finished.isEmpty)
        #expect(scene.wait(milliseconds: 500).server == message(1) + "<presence/>")
        #expect(scene.harness.finished == [.server])
    }

    @Test func `a delayed stanza does not throttle the link after its rules were replaced`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms\nTHROTTLE=2kB")
        #expect(scene.send(message(1)).server.isEmpty)
        _ = scene.handle(.rules(try RuleSet.test("::send\n\nKIND: message\nLOG=x")))
        #expect(scene.wait(milliseconds: 500).server == message(1))
        #expect(scene.harness.shapes.isEmpty)
    }

    @Test func `stanzas that removed rules have delayed are sent and recorded when compression starts`() throws {
        var scene = try RuleScene(
            "::send\n\nKIND: message\nSET=@type=chat\nDELAY=5s",
            enablesStreamManagement: true
        )
        let protocolURI = "http://jabber.org/protocol/compress"
        _ = scene.send("<compress xmlns='\(protocolURI)'><method>zlib</method></compress>")
        #expect(scene.send("<message id='m1'/><presence/>").server.isEmpty)
        _ = scene.handle(.rules(nil))
        let out = scene.recv("<compressed xmlns='\(protocolURI)'/>").server
        #expect(out == "<message id='m1' type='chat'/><presence/>")
        let edited = scene.harness.told.first { $0.record.action == "edited" }
        #expect(edited?.xml == "<message id='m1'/>" && edited?.record.rule == "test.pfw:3")
        // Stanzas inside compression cannot be counted.
        #expect(scene.harness.session.ledgers == nil)
        #expect(scene.harness.session.releaseDeadline == nil)
    }

    @Test(arguments: ["::send", "::deliver"])
    func `compression is refused where rules can change stanzas of one direction`(chain: String) throws {
        var scene = try RuleScene("\(chain)\n\nKIND: message\nDROP.")
        let protocolURI = "http://jabber.org/protocol/compress"
        _ = scene.send("<compress xmlns='\(protocolURI)'><method>zlib</method></compress>")
        let out = scene.recv("<compressed xmlns='\(protocolURI)'/>")
        #expect(out.client.contains("<policy-violation") && out.server == "</stream:stream>")
        #expect(scene.told("compression-refused").count == 1)
        #expect(scene.send("x").server.isEmpty && scene.harness.closed == false)
    }

    @Test(arguments: [
        ("::send", "compression-refused", "policy-violation"), ("::deliver", "limit-item", "internal-server-error"),
    ])
    func `compression is refused too if the server's consent is larger than an item may be`(
        chain: String,
        code: String,
        condition: String
    ) throws {
        var scene = try RuleScene("\(chain)\n\nKIND: message\nDROP.")
        let padding = String(repeating: " ", count: 3 << 19)
        let out = scene.recv("<compressed xmlns='http://jabber.org/protocol/compress'>\(padding)</compressed>")
        #expect(out.client.contains("<\(condition) ") && out.server.hasSuffix("</stream:stream>"))
        #expect(scene.told(code).count == 1)
        #expect(scene.send("x").server.isEmpty && scene.harness.closed == false)
    }

    @Test func `a large element is relayed where rules change nothing`() throws {
        var scene = try RuleScene("::deliver\n\nKIND: message\nLOG=x")
        let padding = String(repeating: " ", count: 3 << 19)
        #expect(scene.recv("<x xmlns='urn:x'>\(padding)</x>").client.hasSuffix("</x>"))
        #expect(scene.recv("<presence/>").client == "<presence/>")
        // The streams are compressed from here on.
        _ = scene.recv("<compressed xmlns='http://jabber.org/protocol/compress'>\(padding)</compressed>")
        #expect(scene.recv("x").client == "x")
        #expect(scene.told("compression").count == 1)
    }

    @Test func `a delay continues after its rules are removed, and later bytes keep their order`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms")
        _ = scene.send(message(1))
        _ = scene.send(message(2) + "<mess")
        #expect(scene.handle(.rules(nil)).server.isEmpty)
        #expect(scene.wait(milliseconds: 500).server == message(1) + message(2) + "<mess")
        let passes = scene.passes(.send)
        #expect(passes)
        #expect(scene.send("age/>").server == "age/>")
        #expect(scene.item?.xml == "<message/>")
    }

    @Test func `THROTTLE shapes the link, and SLICE shapes a single stanza`() throws {
        var scene = try RuleScene(
            "::send\n\nKIND: message\nTHROTTLE=2kB\n\nKIND: presence\nSLICE=1 (every 7ms)"
        )
        _ = scene.send(message(1) + message(2) + "<presence/>")
        let shapes = scene.harness.shapes
        #expect(shapes.map(\.leg) == [.server, .server, .server])
        #expect(
            shapes.map(\.shape) == [
                LinkShape(bytesPerSecond: 2000),
                LinkShape(bytesPerSecond: 2000, slice: 1, sliceEvery: 7_000_000),
                LinkShape(bytesPerSecond: 2000),
            ]
        )
        _ = scene.handle(.rules(nil))
        #expect(scene.harness.shapes.last?.shape == nil && scene.harness.shapes.count == 4)
    }

    // MARK: Faults

    @Test func `RESET closes the connections before a stanza, CUT AFTER within it`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nRESET.")
        #expect(scene.send("<presence/>" + message(1) + message(2)).server == "<presence/>")
        #expect(scene.harness.closed == true)
        #expect(scene.item?.record.action == "reset" && scene.item?.xml == message(1))

        scene = try RuleScene("::send\n\nKIND: message\nCUT AFTER=8")
        #expect(scene.send("<presence/>" + message(1)).server == "<presence/><message")
        #expect(scene.harness.closed == true && scene.item?.record.action == "cut")
    }

    @Test func `HALF CLOSE ends only one direction`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nHALF CLOSE.")
        #expect(scene.send(message(1) + "<presence/>").server.isEmpty)
        #expect(scene.harness.finished == [.server] && scene.harness.closed == nil)
        #expect(scene.recv(message(2)).client == message(2))
        #expect(scene.send(message(3)).server.isEmpty)
        scene.harness.end(.server)
        #expect(scene.harness.closed == false)
    }

    @Test func `STREAM ERROR closes both streams with the given condition`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nSTREAM ERROR=system-shutdown (As asked)")
        let out = scene.send(message(1))
        #expect(out.client.contains("<system-shutdown") && out.client.contains("As asked"))
        #expect(out.client.hasSuffix("</stream:stream>") && out.server == "</stream:stream>")
        #expect(scene.item?.record.rule == "test.pfw:3" && scene.harness.closed == false)
    }

    @Test func `SASL FAILURE answers a login with a failure and does not forward it`() throws {
        var scene = try RuleScene(
            """
            ::handshake

            ELEMENT: {urn:ietf:params:xml:ns:xmpp-sasl}auth
            NTH: 1
            SASL FAILURE=temporary-auth-failure
            """,
            turns: 3
        )
        let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"
        let out = scene.send(auth)
        #expect(out.server.isEmpty)
        #expect(out.client.contains("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><temporary-auth-failure"))
        #expect(scene.item?.record.action == Record.answered)
        #expect(scene.send(auth).server == auth)
    }

    @Test func `LOSE ACK drops an acknowledgement`() throws {
        var scene = try RuleScene(
            "ELEMENT: {urn:xmpp:sm:3}a\nDIRECTION: recv\nNTH: 1\nLOSE ACK.",
            enablesStreamManagement: true
        )
        _ = scene.send(message(1) + "<r xmlns='urn:xmpp:sm:3'/>")
        let answer = "<a xmlns='urn:xmpp:sm:3' h='1'/>"
        #expect(scene.recv(answer).client.isEmpty)
        #expect(scene.recv(answer).client == answer)
    }

    @Test func `REMOVE removes compression from the features`() throws {
        var scene = try RuleScene(
            """
            ::handshake

            ELEMENT: {http://etherx.jabber.org/streams}features
            REMOVE={http://jabber.org/features/compress}compression
            """,
            turns: 2
        )
        let out = scene.recv(
            "<stream:features><compression xmlns='http://jabber.org/features/compress'><method>zlib</method>"
                + "</compression><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>"
                + "</mechanisms></stream:features>"
        )
        #expect(!out.client.contains("compression") && out.client.contains("PLAIN"))
    }
}
