import TapTestKit
import Testing
import XMPPCore

/// Translation between a stream (RFC 6120) and messages of a WebSocket (RFC 7395).
struct StreamTranslatorTests {
    private static let header =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
        + "to='a.example' from=\"j&amp;r@a.example\" version='1.0'>"

    private static func messages(_ stream: String, pieces: Int = .max) throws -> [String] {
        var translator = StreamTranslator()
        var messages: [String] = []
        let bytes = Array(stream.utf8)
        for start in stride(from: 0, to: bytes.count, by: min(pieces, bytes.count)) {
            let piece = Array(bytes[start..<min(bytes.count, start + min(pieces, bytes.count))])
            try translator.translate(stream: piece.span) { messages.append(String(decoding: $0, as: UTF8.self)) }
        }
        return messages
    }

    @Test("A stream becomes one message for each item, at every split", arguments: [1, 5, Int.max])
    func translatesTheStream(pieces: Int) throws {
        let stream =
            Self.header + " <stream:features/>\n<message to='b'><body>x</body></message>"
            + "<iq xmlns='jabber:client' type='get'/><a xmlns='urn:xmpp:sm:3' h='1'/></stream:stream>"
        #expect(
            try Self.messages(stream, pieces: pieces) == [
                "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='j&amp;r@a.example' to='a.example' version='1.0'/>",
                "<stream:features xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'/>",
                "<message xmlns='jabber:client' to='b'><body>x</body></message>",
                "<iq xmlns='jabber:client' type='get'/>", "<a xmlns='urn:xmpp:sm:3' h='1'/>",
                "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>",
            ]
        )
    }

    @Test("A declaration in an attribute's value, or inside the element, is not one of the start tag")
    func findsDeclarations() throws {
        let messages = try Self.messages(Self.header + "<message id=\" xmlns='x'\"><x xmlns='urn:x'/></message>")
        #expect(messages.last == "<message xmlns='jabber:client' id=\" xmlns='x'\"><x xmlns='urn:x'/></message>")
    }

    @Test("The language of the stream is that of <open/>, in both directions")
    func keepsTheLanguage() throws {
        let header = Self.header.dropLast() + " xml:lang = 'd&amp;e'>"
        let open = try #require(Self.messages(String(header)).first)
        #expect(open.hasSuffix(" version='1.0' xml:lang='d&amp;e'/>"), "\(open)")
        var translator = StreamTranslator()
        var stream: [UInt8] = []
        try translator.translate(message: Array(open.utf8).span, endsMessage: true) { stream += $0 }
        #expect(String(decoding: stream, as: UTF8.self).hasSuffix(" version='1.0' xml:lang='d&amp;e'>"))
    }

    @Test("Messages become a stream that a decoder of streams reads")
    func translatesMessages() throws {
        let messages = [
            "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' from='a.example' id='7' version='1.0'/>",
            "<stream:features xmlns:stream='http://etherx.jabber.org/streams'/>",
            "<?xml version='1.0'?><message xmlns='jabber:client'><body>x</body></message>",
            "<close xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>",
        ]
        var translator = StreamTranslator()
        var stream: [UInt8] = []
        for message in messages {
            let bytes = Array(message.utf8)
            for index in bytes.indices {
                let isLast = index == bytes.count - 1
                try translator.translate(message: [bytes[index]].span, endsMessage: isLast) { stream += $0 }
            }
        }
        var decoder = StreamDecoder()
        decoder.append(stream.span)
        var items: [StanzaScanner.Item.Kind] = []
        while let event = decoder.next() { if case .item(let kind) = event.kind { items.append(kind) } }
        #expect(items == [.header, .element, .element, .end])
    }

    @Test("An element of a message is the same as in its stream, whatever the header declares, in both directions")
    func keepsElements() throws {
        var random = SeededGenerator(seed: 11)
        let quotes = ["'", "\""]
        let pieces = [
            "<message to='b'><body>p:x q:y xmlns='z'</body></message>", "<p:a b='>' p:c='d'/>",
            "<iq type=\"get\"><q:b xmlns:q='urn:inner'><c/></q:b></iq>", "<stream:features><p:x/></stream:features>",
            "<q:x q:y='1' xmlns='urn:own'><z/></q:x>", "<a xmlns = \"urn:x\"\n xmlns:p\t='urn:own'><p:b/></a>",
            "<presence xml:lang='de'/>", "<x id='a&quot;b&#39;c'><![CDATA[<p:y>]]></x>",
        ]
        for round in 0..<600 {
            var header = "<stream:stream xmlns:stream='http://etherx.jabber.org/streams' version='1.0'"
            for (name, uri) in [
                ("xmlns", "jabber:client"), ("xmlns:p", "urn:p"), ("xmlns:q", "urn:q&amp;r&lt;&apos;&quot;&#10;"),
            ] {
                let quote = quotes[Int.random(in: 0...1, using: &random)]
                header += " \(name)=\(quote)\(uri)\(quote)"
            }
            let items = (0..<Int.random(in: 1...6, using: &random)).map { _ in
                pieces[Int.random(in: 0..<pieces.count, using: &random)]
            }
            let stream = header + ">" + items.joined(separator: " \n") + "</stream:stream>"
            let messages = try Self.messages(stream, pieces: Int.random(in: 1...40, using: &random))
            #expect(messages.count == items.count + 2, "\(round): \(stream)")
            var back = StreamTranslator()
            var returned: [UInt8] = []
            var others: [Element] = []
            for message in messages {
                let bytes = Array(message.utf8)
                try back.translate(message: bytes.span, endsMessage: true) { returned += $0 }
                others.append(try StanzaParser().parse(bytes.span, root: []))
            }
            let elements = try Self.elements(Array(stream.utf8))
            #expect(elements == Array(others.dropFirst().dropLast()), "\(round): \(stream)")
            #expect(elements == (try Self.elements(returned)), "\(round): \(stream)")
        }
    }

    private static func elements(_ stream: [UInt8]) throws -> [Element] {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(stream.span)
        var elements: [Element] = []
        while let event = decoder.next() {
            if case .item(.element) = event.kind { elements.append(try StanzaParser().parse(decoder)) }
        }
        return elements
    }

    @Test("Damaged streams and messages give faults or other items, and end nothing")
    func readsDamage() throws {
        var random = SeededGenerator(seed: 12)
        let stream = Array((Self.header + "<message to='b'><body>x</body></message></stream:stream>").utf8)
        let message = Array("<message xmlns='jabber:client' to='b'><body>x</body></message>".utf8)
        for _ in 0..<4000 {
            var (damaged, other) = (stream, message)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = .random(in: .min ... .max, using: &random)
                other[Int.random(in: 0..<other.count, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            var translator = StreamTranslator()
            try? translator.translate(stream: damaged.span) { #expect(!$0.isEmpty) }
            var back = StreamTranslator()
            try? back.translate(message: other.span, endsMessage: true) { #expect(!$0.isEmpty) }
        }
    }

    @Test("A fault of either side is thrown")
    func throwsFaults() throws {
        #expect(throws: ScanFault.self) { try Self.messages(Self.header + "</wrong>") }
        var translator = StreamTranslator()
        #expect(throws: ScanFault.self) {
            try translator.translate(message: Array("<a/><b/>".utf8).span, endsMessage: true) { _ in }
        }
    }
}
