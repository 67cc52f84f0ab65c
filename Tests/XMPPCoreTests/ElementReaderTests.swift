import Foundation
import TapTestKit
import Testing
import XMPPCore

@Suite struct ElementReaderTests {
    private static let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"

    /// Compares the elements that are read from the bytes and from the outline of each item with the parsed elements;
    /// returns the number of items.
    private func compare(_ stanzas: String, header: String = header, _ name: String) throws -> Int {
        let parser = StanzaParser()
        var reader = ElementReader()
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Array((header + stanzas).utf8).span)
        var count = 0
        while let event = decoder.next() {
            guard case .item(.element) = event.kind else { continue }
            let parsed = try parser.parse(decoder)
            let element = reader.read(decoder.bytes, in: decoder)
            let read = try #require(element, "\(name)")
            #expect(read == parsed, "\(name): \(decoder.bytes.string())")
            #expect(read.namespaceURI == parsed.namespaceURI, "\(name)")
            #expect(read.textSize == parsed.text.utf8.count && read.elementCount == parsed.children.count, "\(name)")
            count += 1
        }
        #expect(try compareOutlines(Array((header + stanzas).utf8), name) == count)
        return count
    }

    private func compareOutlines(_ stream: [UInt8], _ name: String) throws -> Int {
        let parser = StanzaParser()
        var reader = ElementReader()
        let outline = ItemOutline()
        var decoder = StreamDecoder(limits: .authenticated, outline: outline)
        var count = 0
        for start in stride(from: 0, to: stream.count, by: 61) {
            decoder.append(stream.span.extracting(start..<min(start + 61, stream.count)))
            while let event = decoder.next() {
                guard case .item(.element) = event.kind else { continue }
                let parsed = try parser.parse(decoder)
                let element = reader.read(decoder)
                let read = try #require(element, "\(name)")
                #expect(read == parsed, "\(name): \(decoder.bytes.string())")
                #expect(read.namespaceURI == parsed.namespaceURI, "\(name)")
                // The first call of `read` discarded the outline, so this call reads the bytes.
                #expect(reader.read(decoder) == parsed, "\(name)")
                count += 1
            }
        }
        return count
    }

    @Test func `an outline belongs to the item that was started last`() throws {
        var reader = ElementReader()
        let outline = ItemOutline()
        var one = StreamDecoder(limits: .authenticated, outline: outline)
        var other = StreamDecoder(limits: .authenticated, outline: outline)
        one.append(Array((Self.header + "<message id='1'><body>a").utf8).span)
        other.append(Array((Self.header + "<presence><show>away</show>").utf8).span)
        while one.next() != nil {}
        while other.next() != nil {}
        one.append(Array("b</body></message>".utf8).span)
        #expect(one.next() != nil)
        let first = reader.read(one)
        #expect(first?.attribute("id") == "1" && first?.firstChild?.text == "ab")
        other.append(Array("</presence>".utf8).span)
        #expect(other.next() != nil)
        let second = reader.read(other)
        #expect(second?.isNamed("presence") == true && second?.firstChild?.text == "away")
        #expect(first?.firstChild?.text == "ab")
    }

    @Test(arguments: [
        "<message/>", "<message><body>a &lt; b &#x1F339; \r\n c\rd</body></message>",
        "<message><body>é<![CDATA[ &amp; ]] \r\n ]]>tail</body></message>",
        "<message><body><![CDATA[]]></body><x>a<![CDATA[]]></x></message>",
        "<iq type='get' id='a&amp;b\n\tc'><query xmlns='urn:x' xmlns:p='urn:p' p:a='1' a=\"2\"><p:b/></query></iq>",
        "<a:b xmlns:a='urn:a'><c xmlns=''/><a:d xmlns:a='urn:b' xml:lang='de'><e xmlns='urn:&amp;'/></a:d></a:b>",
        "<presence> <x xmlns='http://jabber.org/protocol/muc'/> \n </presence>",
        "<stream:features><a/></stream:features>",
    ])
    func `the reader reads the same elements as the parser`(stanza: String) throws {
        #expect(try compare(stanza, stanza) == 1)
        let declared = "<s:stream xmlns='urn:own' xmlns:s='http://etherx.jabber.org/streams' xmlns:q='urn:q'>"
        let other = stanza.replacing("stream:", with: "s:")
        #expect(try compare("<q:x q:y='z'>\(other)</q:x>", header: declared, stanza) == 1)
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `each XEP example is read as by the parser`() throws {
        var count = 0
        for example in try CorpusTests.examples() { count += try compare(example.text, example.name) }
        #expect(count > 5000)
    }

    @Test func `text that is not one element is refused, and hostile input ends`() {
        var reader = ElementReader()
        for text in ["", "<a>", "text", "<a></b", "<a", "</a>", "<a/><b", "<?x?>", "<!-- -->", "<a><![CDATA[", "\u{0}"]
        {
            let element = reader.read(Array(text.utf8).span)
            #expect(element == nil, "\(text)")
        }
        var random = SeededGenerator(seed: 3)
        let item = Array("<a b='c&amp;' xmlns:p='q'><p:d>t&lt;e</p:d><![CDATA[x]]></a>".utf8)
        for _ in 0..<20_000 {
            var bytes = item
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            // Reading must terminate, whatever the result.
            _ = reader.read(bytes.span)?.elementCount
        }
    }

    @Test func `an element outlives the next item`() {
        var reader = ElementReader()
        let first = reader.read(Array("<a><b>one</b></a>".utf8).span)
        let second = reader.read(Array("<c><d>two</d></c>".utf8).span)
        #expect(first?.firstChild?.text == "one")
        #expect(second?.firstChild?.text == "two")
    }

    /// libxml2 has the same limit. `p` is bound to a namespace of 30,000 bytes, which elements or attributes use.
    @Test(arguments: [
        ("<p:a/>", 3000, false), ("<p:a/>", 10, true), ("<a p:b=''/>", 3000, false), ("<a b=''/>", 3000, true),
    ])
    func `Both readers refuse an item whose expanded namespaces would exhaust memory`(
        child: String,
        count: Int,
        isRead: Bool
    ) throws {
        let uri = String(repeating: "u", count: 30_000)
        let item = Array("<message xmlns:p='\(uri)'>\(String(repeating: child, count: count))</message>".utf8)
        var reader = ElementReader()
        #expect((reader.read(item.span) != nil) == isRead)
        let parsed = try? StanzaParser().parse(item.span, root: [])
        #expect((parsed != nil) == isRead)
        if isRead { #expect(reader.read(item.span) == parsed) }
    }
}
