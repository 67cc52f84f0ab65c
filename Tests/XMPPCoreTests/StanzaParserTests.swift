import TapTestKit
import Testing
import XMPPCore

private let header =
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:p='urn:p&amp;q'>"

/// Parses each element of a stream with one parser, like a session.
func parseAll(_ input: String, _ parser: StanzaParser = StanzaParser()) throws -> [Element] {
    var decoder = StreamDecoder(limits: .authenticated)
    decoder.append(Array(input.utf8).span)
    var elements: [Element] = []
    while let event = decoder.next() {
        if case .fault(let fault) = event.kind { throw fault }
        guard case .item(.element) = event.kind else { continue }
        elements.append(try parser.parse(decoder))
    }
    return elements
}

@Suite struct StanzaParserTests {
    @Test func `a parsed element has its name, attributes, children and text`() throws {
        let elements = try parseAll(
            header + "<message to='a&amp;b' p:x='1' xml:lang='en'><body>Hi <![CDATA[<you>]]> &amp; all</body>"
                + "<p:a/><active xmlns='http://jabber.org/protocol/chatstates'/></message>"
        )
        let message = try #require(elements.first)
        #expect(message.matches("message", .client))
        #expect(message.attribute("to") == "a&b")
        #expect(message.attribute("lang", .xml) == "en")
        #expect(message.attribute("x") == nil, "an attribute with a prefix is another attribute")
        #expect(message.attributes.map(\.namespaceURI) == ["", "urn:p&q", "http://www.w3.org/XML/1998/namespace"])
        #expect(message.childText("body", .client) == "Hi <you> & all")
        #expect(message.children.map(\.name) == ["body", "a", "active"])
        #expect(message.children[1].namespaceURI == "urn:p&q")
        #expect(message.child("active", .chatStates) != nil)
    }

    @Test func `elements outlive the items after them`() throws {
        let parser = StanzaParser()
        let elements = try parseAll(header + "<iq id='1'/><iq id='2'/><iq id='3'/>", parser)
        #expect(elements.map { $0.attribute("id") } == ["1", "2", "3"])
        #expect(parser.contextCount == 1)
    }

    @Test func `parser contexts are pooled by the declarations of the header`() throws {
        let parser = StanzaParser()
        for number in 0..<6 {
            let header =
                "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' xmlns:n='u:\(number)'>"
            #expect(try parseAll(header + "<n:a/>", parser).first?.namespaceURI == "u:\(number)")
        }
        #expect(parser.contextCount == 4)
    }

    @Test func `a parser context is replaced when its dictionary has grown`() throws {
        let parser = StanzaParser()
        var input = header
        for number in 0..<200 {
            input += "<a>" + (0..<150).map { "<n\(number)x\($0)/>" }.joined() + "</a>"
        }
        #expect(try parseAll(input, parser).count == 200)
        #expect(try parseAll(header + "<iq/>", parser).count == 1)
    }

    @Test func `an item is parsed completely or refused`() {
        let parser = StanzaParser()
        let root = Array(" xmlns='jabber:client'".utf8)
        for bad in ["<a>", "<a/><b/>", "</stream>", "<a/", "<p:a/>", "<a>&b;</a>", "<a><!--c--></a>", ""] {
            #expect(throws: StanzaParser.Failure.self, "\(bad)") {
                try parser.parse(Array(bad.utf8).span, root: root)
            }
        }
        #expect(throws: Never.self) { try parser.parse(Array("<a/>".utf8).span, root: root) }
    }

    @Test(
        "Bytes after an item's end are refused, and do not affect the next item",
        arguments: [
            "x", "\n", "\r", " ", "&amp;", "&", "<", "</", "<b", "<b ", "<b/", "<b></b", "<![CDATA[", "<![CDATA[x]]>",
            "<!",
            "<!--", "<?", "]]>", "\u{E9}", String(repeating: "x", count: 5000), "</stream", "</stream>",
        ]
    )
    func behindTheEnd(_ rest: String) throws {
        let parser = StanzaParser()
        let root = Array(" xmlns='jabber:client'".utf8)
        for item in ["<a/>", "<a>text</a>"] {
            #expect(throws: StanzaParser.Failure.self) { try parser.parse(Array((item + rest).utf8).span, root: root) }
            let next = try parser.parse(Array("<iq id='1'>y</iq>".utf8).span, root: root)
            #expect(next.matches("iq", .client) && next.attribute("id") == "1" && next.text == "y")
            #expect(throws: StanzaParser.Failure.self) { try parser.parse(Array((rest + item).utf8).span, root: root) }
        }
    }

    @Test("Declarations that are not only attributes are refused", arguments: [">", ">x", "><a", " x", "/", "/><a"])
    func declarations(_ root: String) {
        #expect(throws: StanzaParser.Failure.self) {
            try StanzaParser().parse(Array("<a/>".utf8).span, root: Array(root.utf8))
        }
    }

    @Test func `elements can be shared between tasks`() async throws {
        let elements = try parseAll(header + "<iq id='1'><a>text</a></iq>")
        let element = try #require(elements.first)
        let text = await Task.detached { element.firstChild?.text }.value
        #expect(text == "text")
    }
}
