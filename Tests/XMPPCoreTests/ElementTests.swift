import Testing
import XMPPCore

private func element(_ xml: String) throws -> Element {
    try StanzaParser().parse(Array(xml.utf8).span, root: Array(" xmlns='jabber:client' xmlns:p='urn:p'".utf8))
}

@Suite struct ElementTests {
    @Test func `elements with the same meaning are equal`() throws {
        let one = try element("<iq id='1' p:x='2'><p:a>b&amp;c</p:a><d/></iq>")
        for same in [
            "<iq p:x='2' id='1'><p:a>b<![CDATA[&]]>c</p:a><d></d></iq>",
            "<c:iq xmlns:c='jabber:client' xmlns:q='urn:p' id='1' q:x='2'><a xmlns='urn:p'>b&#38;c</a><c:d/></c:iq>",
        ] {
            #expect(try element(same) == one, "\(same)")
        }
        for other in [
            "<iq id='1' x='2'><p:a>b&amp;c</p:a><d/></iq>", "<iq id='1' p:x='2'><d/><p:a>b&amp;c</p:a></iq>",
            "<iq id='1' p:x='2'><p:a>b&amp;c</p:a><d/>&#x20;</iq>", "<iq id='1' p:x='2'><p:a>b&amp;c</p:a></iq>",
            "<iq id='1' p:x='2' y=''><p:a>b&amp;c</p:a><d/></iq>", "<iq id='1' p:x='2'><a>b&amp;c</a><d/></iq>",
        ] {
            #expect(try element(other) != one, "\(other)")
        }
    }

    @Test func `children are found by namespace and name`() throws {
        let query = try element("<q><a n='1'/>text<p:a n='2'/><a n='3'><a n='4'/></a></q>")
        #expect(query.children("a", .client).map { $0.attribute("n") } == ["1", "3"])
        #expect(query.firstChild { $0.namespaceURI == "urn:p" }?.attribute("n") == "2")
        #expect(query.child("a", .roster) == nil)
        #expect(query.children.count == 3)
        #expect(query.contents.count == 4)
        #expect(query.text == "text")
        #expect(query.childText("a", .client) == "")
        #expect(query.childText("b", .client) == nil)
    }

    @Test func `wide and deep elements are traversed completely`() throws {
        let depth = 250
        let deep = String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        var current: Element? = try element(deep)
        var seen = 0
        while let next = current {
            seen += 1
            current = next.firstChild
        }
        #expect(seen == depth)
        let wide = try element("<a>" + String(repeating: "<b c='d'>e</b>", count: 20_000) + "</a>")
        #expect(wide.children.count == 20_000)
        #expect(wide.children.last?.attribute("c") == "d")
    }
}
