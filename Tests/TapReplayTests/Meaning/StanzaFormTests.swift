import Testing
import XMPPCore

@testable import TapReplay

/// Returns the form of an item in a client stream.
func form(_ xml: String) throws -> StanzaForm {
    try #require(StanzaForm(Array(xml.utf8), parser: StanzaParser()), "no element: \(xml)")
}

@Suite struct StanzaFormTests {
    @Test(arguments: [
        (
            "<message to='a@x' type='chat'><body>hi</body></message>",
            "<message type=\"chat\" to=\"a@x\"><body>hi</body></message>"
        ),
        ("<iq xmlns='jabber:client' id='1'/>", "<iq id='1'></iq>"),
        (
            "<stream:features><x xmlns='urn:x'/></stream:features>",
            "<features xmlns='http://etherx.jabber.org/streams'><p:x xmlns:p='urn:x'/></features>"
        ),
        (
            "<iq><query xmlns='jabber:iq:roster'>\n  <item jid='a'/>\n</query></iq>",
            "<iq><query xmlns='jabber:iq:roster'><item jid='a'/></query></iq>"
        ),
        ("<message><body>a &amp; &#98;</body></message>", "<message><body><![CDATA[a & b]]></body></message>"),
    ])
    func `different notations have the same form`(one: String, other: String) throws {
        #expect(try form(one) == form(other))
        #expect(try form(one).hashValue == form(other).hashValue)
    }

    @Test(arguments: [
        ("<message to='a@x'/>", "<message from='a@x'/>"),
        ("<message><body>a</body></message>", "<message><body>a </body></message>"),
        ("<iq><query xmlns='urn:a'/></iq>", "<iq><query xmlns='urn:b'/></iq>"),
        ("<iq><a xmlns='urn:a'/><b xmlns='urn:a'/></iq>", "<iq><b xmlns='urn:a'/><a xmlns='urn:a'/></iq>"),
        ("<message xml:lang='de'/>", "<message lang='de'/>"),
        ("<message><body>&lt;a/&gt;</body></message>", "<message><body><a/></body></message>"),
    ])
    func `different meanings have different forms`(one: String, other: String) throws {
        #expect(try form(one) != form(other))
    }

    @Test func `the form has the kind, the addresses and the payload`() throws {
        let iq = try form("<iq id='7' type='get' from='a@x/r' to='x'><ping xmlns='urn:xmpp:ping'/></iq>")
        #expect(iq.kind == .iq)
        #expect(iq.id == "7" && iq.type == "get" && iq.from == "a@x/r" && iq.to == "x")
        #expect(iq.payload?.matches("ping", .ping) == true)
        #expect(try form("<a xmlns='urn:xmpp:sm:3' h='1'/>").kind == .nonza)
    }

    @Test func `text that is not an element has no form`() {
        #expect(StanzaForm(Array("<iq>".utf8), parser: StanzaParser()) == nil)
        #expect(StanzaForm([], parser: StanzaParser()) == nil)
    }
}
