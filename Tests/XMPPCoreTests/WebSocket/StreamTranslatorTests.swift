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

    @Test("A fault of either side is thrown")
    func throwsFaults() throws {
        #expect(throws: ScanFault.self) { try Self.messages(Self.header + "</wrong>") }
        var translator = StreamTranslator()
        #expect(throws: ScanFault.self) {
            try translator.translate(message: Array("<a/><b/>".utf8).span, endsMessage: true) { _ in }
        }
    }
}
