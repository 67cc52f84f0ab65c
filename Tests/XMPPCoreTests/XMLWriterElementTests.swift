import Foundation
import TapTestKit
import Testing
import XMPPCore

@Suite struct XMLWriterElementTests {
    private static let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)
    private static let header = "<stream:stream\(String(decoding: root, as: UTF8.self)) version='1.0'>"
    private let parser = StanzaParser()

    private func parse(_ xml: some Sequence<UInt8>) throws -> Element {
        try parser.parse(Array(xml).span, root: Self.root)
    }

    private func write(_ element: Element, setting changes: KeyValuePairs<String, String?> = [:]) -> [UInt8] {
        XMLWriter.bytes { $0.element(element, inheriting: "jabber:client", setting: changes) }
    }

    @Test(arguments: [
        ("<message><body>1 &lt; 2</body></message>", "<message><body>1 &lt; 2</body></message>"),
        ("<stream:features/>", "<features xmlns='http://etherx.jabber.org/streams'/>"),
        (
            "<iq xml:lang='de'><q xmlns='a'><b xmlns=''/></q></iq>",
            "<iq xml:lang='de'><q xmlns='a'><b xmlns=''/></q></iq>"
        ),
        (
            "<a:iq xmlns:a='u' a:b='1' c='2'><d/></a:iq>",
            "<iq xmlns='u' xmlns:ns0='u' ns0:b='1' c='2'><d xmlns='jabber:client'/></iq>"
        ),
        ("<a b='x&#10;y'>\r\n&#13;<c/>d<e/></a>", "<a b='x&#10;y'>\n&#13;<c/>d<e/></a>"),
    ])
    func `an element is written with the fewest namespace declarations`(original: String, written: String) throws {
        #expect(String(decoding: try write(parse(original.utf8)), as: UTF8.self) == written)
    }

    @Test func `attributes can be set and removed while an element is written`() throws {
        let element = try parse("<message id='1' from='a@b/c' type='chat'/>".utf8)
        let written = write(element, setting: ["from": "x@y/z", "to": "q", "id": nil])
        #expect(String(decoding: written, as: UTF8.self) == "<message type='chat' from='x@y/z' to='q'/>")
    }

    @Test(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
    func `every parsable example of the XEPs parses to the same element after writing`() throws {
        struct Example: Decodable { let text: String }
        let lines = try Corpus.unzip("xep-examples.jsonl.gz").split(separator: UInt8(ascii: "\n"))
        var count = 0
        for line in lines {
            let example = try JSONDecoder().decode(Example.self, from: line)
            // The scanner finds the complete elements in the valid parts of the example.
            var decoder = StreamDecoder()
            decoder.append(Array((Self.header + example.text).utf8).span)
            while let event = decoder.next() {
                guard case .item(.element) = event.kind else { continue }
                let element = try parser.parse(decoder)
                count += 1
                #expect(try parse(write(element)) == element)
            }
        }
        #expect(count > 4000)
    }
}
