import Testing
import XMPPCore

import TapRecord
@testable import TapStreamManagement

private let sm = "xmlns='urn:xmpp:sm:3'"

/// Tests the translation of counts in elements (XEP-0198), and the other changes of these elements.
@Suite struct StreamManagementTranslatorTests {
    private typealias Mark = StreamManagementLedger.Mark

    /// A translator, and a stream for its elements.
    private struct Wire {
        var translator = StreamManagementTranslator()
        var previous = StreamManagementTranslator.Previous.unknown

        /// Returns the translation of an element.
        mutating func translation(_ xml: String, _ direction: Direction) -> StreamManagementTranslator.Translation {
            var decoder = StreamDecoder(limits: .authenticated)
            let header = "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' version='1.0'>"
            decoder.append(Array((header + xml).utf8).span)
            _ = decoder.next()
            let event = decoder.next()
            #expect(event.map { StreamManagementTranslator.concerns($0.head) } == true)
            return translator.translate(decoder, direction, previous: previous)
        }

        /// Returns the replacement of the element; nil if it is unchanged.
        mutating func send(_ xml: String) -> String? { through(xml, .send) }
        mutating func recv(_ xml: String) -> String? { through(xml, .recv) }

        private mutating func through(_ xml: String, _ direction: Direction) -> String? {
            translation(xml, direction).bytes.map { String(decoding: $0, as: UTF8.self) }
        }

        /// Returns a session with stream management, in which the client and the server have sent 3 stanzas each.
        static func open() -> Wire {
            var wire = Wire()
            #expect(wire.send("<enable \(sm) resume='true'/>") == nil)
            #expect(wire.recv("<enabled \(sm) resume='true' id='x' location='a.example'/>") == nil)
            for _ in 0..<3 {
                wire.translator.ledgers.send.pass()
                wire.translator.ledgers.recv.pass()
            }
            return wire
        }

        /// Returns the session after a stanza of each side was dropped, and two were injected to the client.
        static func diverged() -> Wire {
            var wire = open()
            wire.translator.ledgers.send.drop()
            wire.translator.ledgers.recv.drop()
            wire.translator.ledgers.recv.inject()
            wire.translator.ledgers.recv.inject()
            return wire
        }

        /// Returns a new connection, on which the session is resumed.
        func reconnected() throws -> Wire {
            var wire = Wire()
            wire.previous = .known(try #require(translator.legacy))
            return wire
        }
    }

    // MARK: Acknowledgements

    @Test func `acknowledgements are forwarded unchanged while both counts are equal`() {
        var wire = Wire.open()
        for xml in ["<r \(sm)/>", "<a \(sm) h='0'/>", "<a \(sm) h=' 02 '/>", "<a h=\"3\" \(sm)></a>"] {
            #expect(wire.send(xml) == nil)
            #expect(wire.recv(xml) == nil)
        }
        #expect(!wire.translator.hasDiverged)
    }

    @Test func `if the counts differ, only the value of h is replaced`() {
        var wire = Wire.diverged()
        #expect(wire.recv("<a \(sm) h='2'/>") == nil)
        #expect(wire.recv("<a \(sm) h='3'/>") == "<a \(sm) h='4'/>")
        #expect(
            wire.send("<q:a  xmlns:q=\"urn:xmpp:sm:3\"\n h = \"&#53;\" />")
                == "<q:a  xmlns:q=\"urn:xmpp:sm:3\"\n h = \"4\" />"
        )
        let translation = wire.translation("<a \(sm) h='5'/>", .send)
        #expect(translation.explanation == "h=4 instead of h=5" && translation.finding == nil)
    }

    @Test func `requests are forwarded unchanged, even if the counts differ`() {
        var wire = Wire.diverged()
        #expect(wire.send("<r \(sm)/>") == nil)
        #expect(wire.recv("<r \(sm)/>") == nil)
    }

    @Test func `urn:xmpp:sm:2 is translated, and requests use the same namespace`() {
        var wire = Wire()
        _ = wire.send("<enable xmlns='urn:xmpp:sm:2'/>")
        _ = wire.recv("<enabled xmlns='urn:xmpp:sm:2'/>")
        wire.translator.ledgers.send.drop()
        #expect(wire.recv("<a xmlns='urn:xmpp:sm:2' h='0'/>") == "<a xmlns='urn:xmpp:sm:2' h='1'/>")
        #expect(wire.translator.makeRequest(.send) == Array("<r xmlns='urn:xmpp:sm:2'/>".utf8))
    }

    @Test(arguments: [
        "", "h=''", "h='x'", "h='-1'", "h='1 2'", "h='4294967296'", "h='99999999999999999999999'", "h='&#49;e1'",
    ])
    func `an acknowledgement with an unreadable count is forwarded unchanged and reported`(h: String) {
        var wire = Wire.diverged()
        let translation = wire.translation("<a \(sm) \(h)/>", .send)
        #expect(translation.bytes == nil && translation.finding?.fault == .unreadable)
    }

    @Test func `a count that is too high is reported and stays too high by the same number`() {
        var wire = Wire.diverged()
        let translation = wire.translation("<a \(sm) h='6'/>", .send)
        #expect(translation.finding?.fault == .tooHigh && translation.finding?.difference == 1)
        // The count stays wrong by the same number.
        #expect(translation.bytes == Array("<a \(sm) h='5'/>".utf8))
    }

    @Test func `acknowledgements before stream management or in other namespaces are forwarded unchanged`() {
        var wire = Wire()
        wire.translator.ledgers.send.drop()
        #expect(wire.recv("<a \(sm) h='7'/>") == nil)
        #expect(wire.recv("<success xmlns='urn:xmpp:sasl:2'><a xmlns='odd' h='7'/></success>") == nil)
        #expect(!wire.translator.isOn && wire.translator.legacy == nil)
    }

    // MARK: Beginning

    @Test func `the client's stanzas are counted from enable, the server's from enabled`() {
        var wire = Wire()
        wire.translator.ledgers.send.pass()
        wire.translator.ledgers.send.drop()
        _ = wire.send("<enable \(sm)/>")
        wire.translator.ledgers.send.pass()
        wire.translator.ledgers.recv.inject()
        _ = wire.recv("<enabled \(sm)/>")
        #expect(wire.translator.ledgers.send.sent == 1 && wire.translator.ledgers.recv.delivered == 0)
        #expect(!wire.translator.hasDiverged)
    }

    @Test func `a second enable has no effect, and a failed enable ends counting`() {
        var wire = Wire.diverged()
        _ = wire.send("<enable \(sm)/>")
        _ = wire.recv("<failed \(sm)/>")
        #expect(wire.translator.isOn && wire.translator.ledgers.send.sent == 4)
        var refused = Wire()
        _ = refused.send("<enable \(sm)/>")
        refused.translator.ledgers.send.drop()
        _ = refused.recv("<failed \(sm)><unexpected-request xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>")
        #expect(!refused.translator.isOn && !refused.translator.hasDiverged)
    }

    @Test func `an enable after a failed one restarts the count`() {
        var wire = Wire()
        _ = wire.send("<enable \(sm) resume='true'/>")
        wire.translator.ledgers.send.pass()
        wire.translator.ledgers.send.inject()
        _ = wire.recv("<failed \(sm)><unexpected-request xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>")
        _ = wire.send("<enable \(sm) resume='true'/>")
        wire.translator.ledgers.send.pass()
        _ = wire.recv("<enabled \(sm) resume='true' id='a'/>")
        #expect(!wire.translator.hasDiverged)
        #expect(wire.recv("<a \(sm) h='1'/>") == nil)
        #expect(wire.translator.ledgers.send.acknowledged == 1)
    }

    @Test func `a location for resumption is removed from enabled if the counts differ`() {
        var wire = Wire()
        _ = wire.send("<enable \(sm) resume='1'/>")
        wire.translator.ledgers.send.drop()
        #expect(
            wire.recv("<enabled \(sm) id='x' location=\"[2001:db8::1]:5222\" resume='1'/>")
                == "<enabled \(sm) id='x' resume='1'/>"
        )
    }

    // MARK: Resumption

    @Test func `a session is resumed with each side's own count`() throws {
        var wire = try Wire.diverged().reconnected()
        #expect(wire.send("<resume \(sm) h='5' previd='x'/>") == "<resume \(sm) h='4' previd='x'/>")
        #expect(!wire.translator.isOn && wire.translator.hasDiverged)
        #expect(wire.recv("<resumed \(sm) previd='x' h='1'/>") == nil)
        #expect(wire.translator.isOn && wire.translator.hasDiverged)
        let ledgers = wire.translator.ledgers
        #expect(
            [ledgers.send.sent, ledgers.send.delivered, ledgers.recv.sent, ledgers.recv.delivered] == [1, 1, 4, 5]
        )
        #expect(ledgers.send.isRepeating && !ledgers.recv.isRepeating)
        #expect(wire.send("<a \(sm) h='5'/>") == "<a \(sm) h='4'/>")
    }

    @Test func `a session whose resumption got no answer can be resumed by the next connection`() throws {
        var wire = try Wire.diverged().reconnected()
        _ = wire.send("<resume \(sm) h='5' previd='x'/>")
        var next = try wire.reconnected()
        #expect(next.send("<resume \(sm) h='5' previd='x'/>") == "<resume \(sm) h='4' previd='x'/>")
        #expect(next.recv("<resumed \(sm) previd='x' h='3'/>") == "<resumed \(sm) previd='x' h='4'/>")
    }

    @Test func `a resumed session that xmpptap has not seen before starts with equal counts`() {
        var wire = Wire()
        #expect(wire.send("<resume \(sm) h='4294967295' previd='x'/>") == nil)
        #expect(wire.translator.legacy == nil)
        #expect(wire.recv("<resumed \(sm) previd='x' h='17'/>") == nil)
        wire.translator.ledgers.send.drop()
        wire.translator.ledgers.recv.inject()
        #expect(wire.recv("<a \(sm) h='17'/>") == "<a \(sm) h='18'/>")
        #expect(wire.send("<a \(sm) h='0'/>") == "<a \(sm) h='4294967295'/>")
    }

    @Test func `a direction is not translated if its resume element has no h`() {
        var wire = Wire()
        _ = wire.send("<resume \(sm) previd='x'/>")
        _ = wire.recv("<resumed \(sm) previd='x' h='2'/>")
        wire.translator.ledgers.recv.drop()
        #expect(wire.send("<a \(sm) h='9'/>") == nil)
        #expect(wire.translator.makeRequest(.recv) == nil)
    }

    @Test func `a failed resumption returns the client's own count and ends the old session`() throws {
        var wire = try Wire.diverged().reconnected()
        _ = wire.send("<resume \(sm) h='5' previd='x'/>")
        let failed = "<failed \(sm) h='3'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
        #expect(wire.recv(failed) == failed.replacing("h='3'", with: "h='4'"))
        #expect(wire.translator.legacy == nil && !wire.translator.hasDiverged)
        _ = wire.send("<enable \(sm)/>")
        _ = wire.recv("<enabled \(sm)/>")
        #expect(wire.translator.isOn && wire.translator.ledgers.send.sent == 0)
    }

    @Test func `a resume request for a session with lost counts is answered with item-not-found`() {
        var wire = Wire()
        wire.previous = .lost
        let translation = wire.translation("<resume \(sm) h='5' previd='x'/>", .send)
        #expect(translation.bytes == nil)
        #expect(
            translation.answer.map { String(decoding: $0, as: UTF8.self) }
                == "<failed \(sm)><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
        )
        _ = wire.send("<enable \(sm)/>")
        _ = wire.recv("<enabled \(sm)/>")
        #expect(wire.translator.isOn)
    }

    @Test func `the id of the session to resume is read from resume elements, also inside authenticate`() {
        func id(_ xml: String) -> String? {
            var decoder = StreamDecoder(limits: .authenticated)
            decoder.append(
                Array(("<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams'>" + xml).utf8).span
            )
            _ = decoder.next()
            return decoder.next() == nil ? nil : StreamManagementTranslator.resumedID(decoder)
        }
        #expect(id("<resume \(sm) h='5' previd='a&amp;b'/>") == "a&b")
        #expect(id("<authenticate xmlns='urn:xmpp:sasl:2'><resume \(sm) previd='y'/></authenticate>") == "y")
        #expect(id("<resume \(sm) h='5'/>") == nil)
        #expect(id("<resumed \(sm) previd='x'/>") == nil)
        #expect(id("<message><resume \(sm) previd='x'/></message>") == nil)
    }

    // MARK: SASL2 and Bind 2

    private static let head =
        "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>AGEAYg==</initial-response>"
    private static let bind = "<bind xmlns='urn:xmpp:bind:0'><enable \(sm) resume='true'/></bind>"
    private static let identity = "<authorization-identifier>a@b.example/c</authorization-identifier>"

    @Test(arguments: ["urn:xmpp:bind:0", "urn:xmpp:bind2:1"])
    func `stream management starts inside SASL2 authentication with Bind 2`(bind: String) {
        var wire = Wire()
        #expect(wire.send("\(Self.head)<bind xmlns='\(bind)'><enable \(sm)/></bind></authenticate>") == nil)
        // A client may send its first stanza before it is logged in (XEP-0484).
        wire.translator.ledgers.send.pass()
        #expect(
            wire.recv(
                "<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)<bound xmlns='\(bind)'><enabled \(sm)/></bound></success>"
            )
                == nil
        )
        #expect(wire.translator.isOn && wire.translator.ledgers.send.sent == 1)
        wire.translator.ledgers.recv.drop()
        #expect(wire.send("<a \(sm) h='0'/>") == "<a \(sm) h='1'/>")
    }

    @Test func `a session is resumed inside SASL2 authentication`() throws {
        var wire = try Wire.diverged().reconnected()
        let authenticate = "\(Self.head)<resume \(sm) h='5' previd='x'/>\(Self.bind)</authenticate>"
        #expect(wire.send(authenticate) == authenticate.replacing("h='5'", with: "h='4'"))
        let success = "<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)<resumed \(sm) previd='x' h='3'/></success>"
        #expect(wire.recv(success) == success.replacing("h='3'", with: "h='4'"))
        #expect(wire.translator.isOn && wire.translator.ledgers.recv.sent == 4)
    }

    @Test func `if a resumption inside SASL2 authentication fails, a new session begins`() throws {
        var wire = try Wire.diverged().reconnected()
        _ = wire.send("\(Self.head)<resume \(sm) h='5' previd='x'/>\(Self.bind)</authenticate>")
        let success =
            "<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)<failed \(sm) h='3'/>"
            + "<bound xmlns='urn:xmpp:bind:0'><enabled \(sm) id='y'/></bound></success>"
        #expect(wire.recv(success) == success.replacing("h='3'", with: "h='4'"))
        #expect(wire.translator.isOn && !wire.translator.hasDiverged && wire.translator.ledgers.send.sent == 0)
    }

    @Test func `a failed enable inside SASL2 is not confused with the failed resumption after it`() throws {
        var wire = try Wire.diverged().reconnected()
        _ = wire.send("\(Self.head)<resume \(sm) h='5' previd='x'/>\(Self.bind)</authenticate>")
        let success =
            "<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)<bound xmlns='urn:xmpp:bind:0'><failed \(sm)/></bound>"
            + "<failed \(sm) h='3'/></success>"
        #expect(wire.recv(success) == success.replacing("h='3'", with: "h='4'"))
        #expect(!wire.translator.isOn)
    }

    @Test func `a resume with lost counts is removed from authenticate, and success contains its failure`() {
        var wire = Wire()
        wire.previous = .lost
        #expect(
            wire.send("\(Self.head)<resume \(sm) h='5' previd='x'><odd/></resume>\(Self.bind)</authenticate>")
                == "\(Self.head)\(Self.bind)</authenticate>"
        )
        let bound = "<bound xmlns='urn:xmpp:bind:0'><enabled \(sm) id='y'/></bound>"
        #expect(
            wire.recv("<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)\(bound)</success>")
                == "<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)\(bound)<failed \(sm)>"
                + "<item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed></success>"
        )
        #expect(wire.translator.isOn)
        // The second time, nothing is replaced.
        #expect(wire.recv("<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)</success>") == nil)
    }

    @Test func `a repeated login discards the requests of the previous attempt`() throws {
        var wire = try Wire.diverged().reconnected()
        _ = wire.send("\(Self.head)<resume \(sm) h='5' previd='x'/>\(Self.bind)</authenticate>")
        _ = wire.send("\(Self.head)</authenticate>")
        #expect(
            wire.recv("<success xmlns='urn:xmpp:sasl:2'>\(Self.identity)<resumed \(sm) previd='x' h='3'/></success>")
                == nil
        )
        #expect(!wire.translator.isOn)
    }

    @Test func `stream management elements in other places are forwarded unchanged`() {
        var wire = Wire.diverged()
        for xml in [
            "<success xmlns='urn:xmpp:sasl:2'><x xmlns='odd'><a \(sm) h='5'/></x></success>",
            "<challenge xmlns='urn:xmpp:sasl:2'><a \(sm) h='5'/></challenge>", "<success xmlns='urn:xmpp:sasl:2'/>",
            "<x \(sm) h='5'/>", "<a \(sm) x='5' y:h='5' xmlns:y='odd'/>",
        ] {
            #expect(wire.recv(xml) == nil)
        }
    }

    // MARK: Elements of xmpptap

    @Test func `an acknowledgement is requested once if many stanzas are unacknowledged`() {
        var wire = Wire.open()
        #expect(!wire.translator.wantsRequest(.send))
        for _ in 0..<20 {
            wire.translator.ledgers.send.drop(Mark(fingerprint: 1))
            wire.translator.ledgers.send.pass()
        }
        #expect(wire.translator.wantsRequest(.send) && !wire.translator.wantsRequest(.recv))
        #expect(wire.translator.makeRequest(.send) == Array("<r \(sm)/>".utf8))
        #expect(!wire.translator.wantsRequest(.send))
        _ = wire.recv("<a \(sm) h='\(wire.translator.ledgers.send.delivered)'/>")
        #expect(!wire.translator.wantsRequest(.send))
    }
}
