import TapTestKit
import Testing

@testable import XMPPCore

private let root = Array(" xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'".utf8)
private let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"

/// Tests that unexpected behaviour of libxml2's push parser does not affect ``StanzaParser``.
@Suite struct ParserTrapTests {
    private func parse(_ item: String) throws -> Element {
        try StanzaParser().parse(Array(item.utf8).span, root: root)
    }

    private func codes(_ input: String, limits: StreamLimits = .authenticated) -> [ScanFault.Code] {
        var decoder = StreamDecoder(limits: limits)
        decoder.append(Array(input.utf8).span)
        var codes: [ScanFault.Code] = []
        while let event = decoder.next() {
            if case .fault(let fault) = event.kind { codes.append(fault.code) }
        }
        return codes
    }

    /// If libxml2 waited for bytes after an item, the item would be delivered late; if it recognised another end than
    /// the scanner, it would finish at another byte.
    @Test func `an item is finished exactly by its last byte`() throws {
        let context = try #require(ParserContext(root: root))
        let items = [
            "<a/>", "<message to='ö'><body>Grüße &amp; &#x1F600;]]</body></message>",
            "<x:iq xmlns:x='jabber:client'\n/>",
            "<a><![CDATA[<b>]]></a >", "<presence>\(String(repeating: "text ", count: 200))</presence>", "<a b='\n>'/>",
        ]
        for _ in 0..<3 {
            for item in items {
                let bytes = Array(item.utf8)
                context.begin()
                for index in bytes.indices {
                    #expect(context.feed(bytes.span.extracting(index..<(index + 1))) == nil)
                    #expect(context.isFinished == (index == bytes.count - 1), "\(item) at \(index)")
                }
                let arena = ElementArena()
                context.finish(into: arena)
                #expect(Element(arena: arena, index: 0) == (try parse(item)), "\(item)")
            }
        }
    }

    @Test func `libxml2 and the scanner agree on the length of items`() throws {
        for session in GoldenSession.all {
            var decoder = StreamDecoder()
            decoder.append(session.bytes.span)
            while let event = decoder.next() {
                guard case .item(.element) = event.kind, let context = ParserContext(root: decoder.declarations) else {
                    continue
                }
                context.begin()
                let bytes = decoder.bytes
                #expect(context.feed(bytes.extracting(0..<(bytes.count - 1))) == nil)
                #expect(!context.isFinished)
                #expect(context.feed(bytes.extracting((bytes.count - 1)..<bytes.count)) == nil)
                #expect(context.isFinished)
            }
        }
    }

    @Test func `references in attributes are replaced`() throws {
        let element = try parse("<a b='&amp;&lt;&#38;&quot;'>&amp;#38;</a>")
        #expect(element.attribute("b") == "&<&\"")
        #expect(element.text == "&#38;")
    }

    @Test func `document types and entities are refused, and nothing is fetched`() {
        let bomb = "<!DOCTYPE a [<!ENTITY b 'ha'><!ENTITY c '&b;&b;&b;'>]><a>&c;</a>"
        for input in [
            bomb, "<?xml version='1.0'?>" + bomb, header + bomb, header + "<a>" + bomb + "</a>",
            "<!DOCTYPE a SYSTEM 'http://127.0.0.1:9/a.dtd'>" + header,
        ] {
            #expect(codes(input) == [.documentType], "\(input)")
        }
        #expect(throws: StanzaParser.Failure.self) { try parse(bomb) }
        #expect(throws: StanzaParser.Failure.self) { try parse("<a>&c;</a>") }
        #expect(codes(header + "<a>&c;</a>") == [.entityReference])
    }

    @Test func `prefixes without a declaration are refused`() {
        for item in ["<p:a/>", "<a p:b=''/>", "<a><p:a xmlns:p='u'/><p:a/></a>", "<a xmlns:p=''/>"] {
            #expect(throws: StanzaParser.Failure.self, "\(item)") { try parse(item) }
            #expect(codes(header + item) == [.unboundPrefix], "\(item)")
        }
    }

    @Test func `an empty namespace declaration inside an element means no namespace`() throws {
        let element = try parse("<a><b xmlns=''><c/></b><d/></a>")
        #expect(element.children.map(\.namespaceURI) == ["", "jabber:client"])
        #expect(element.firstChild?.firstChild?.namespace == Namespace.none)
    }

    @Test func `a namespace does not have to be a URI`() throws {
        let element = try parse("<a xmlns='not a URI %' b:c='1' xmlns:b='%%'/>")
        #expect(element.namespaceURI == "not a URI %")
        #expect(element.attributes.map(\.namespaceURI) == ["%%"])
    }

    @Test func `the prefix xml needs no declaration`() throws {
        let element = try parse("<xml:a xml:lang='de'/>")
        #expect(element.namespace == .xml)
        #expect(element.attribute("lang", .xml) == "de")
        let lines = DecoderTranscript(Array((header + "<xml:a/>").utf8)).lines
        #expect(lines.last?.contains("{http://www.w3.org/XML/1998/namespace}a") == true)
    }

    @Test func `names of parsed items do not accumulate in memory`() throws {
        let parser = StanzaParser()
        for number in 0..<100 {
            let item = "<a>" + (0..<250).map { "<n\(number)x\($0) a\(number)y\($0)=''/>" }.joined() + "</a>"
            _ = try parser.parse(Array(item.utf8).span, root: root)
            // With 500 names per item, the context is replaced every 40 items.
            #expect(parser.contextCount == ((number + 1) % 40 == 0 ? 0 : 1), "after \(number + 1) items")
        }
    }

    @Test func `whitespace before an XML declaration is a separate item`() {
        let declaration = "<?xml version='1.0'?>"
        let lines = DecoderTranscript(Array("\n \(declaration)\n\(header) \(declaration) \(header)<a/>".utf8)).lines
        #expect(codes("\n \(declaration)\n\(header) \(declaration) \(header)<a/>").isEmpty)
        #expect(lines.count == 9)
    }

    @Test func `each stream is parsed with its own declarations`() throws {
        let streams = ["urn:one", "urn:two"].map {
            "<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='\($0)' xmlns:p='\($0)#'><a><p:b/></a>"
        }
        let elements = try parseAll(streams.joined() + streams[0])
        #expect(elements.map(\.namespaceURI) == ["urn:one", "urn:two", "urn:one"])
        #expect(elements.map { $0.firstChild?.namespaceURI } == ["urn:one#", "urn:two#", "urn:one#"])
    }

    @Test func `text in several pieces is one text`() throws {
        let words = (0..<400).map { "wörd\($0) &lt;<![CDATA[&]]>" }.joined()
        let element = try parse("<a>\(words)<b/>\(words)</a>")
        #expect(element.contents.count == 3)
        #expect(element.text.utf8.count == 2 * (0..<400).map { "wörd\($0) <&".utf8.count }.reduce(0, +))
    }

    @Test func `line ends are normalized in the same way by both readers`() throws {
        let raw = "a\r\nb\rc\nd\te&#13;&#10;&#9;f"
        let element = try parse("<a b='\(raw)'>\(raw)</a>")
        var value: [UInt8] = []
        AttributeValue.decode(Array(raw.utf8).span, into: &value)
        var text: [UInt8] = []
        AttributeValue.decodeText(Array(raw.utf8).span, into: &text)
        #expect(element.attribute("b") == String(decoding: value, as: UTF8.self))
        #expect(element.text == String(decoding: text, as: UTF8.self))
        #expect(value == Array("a b c d e\r\n\tf".utf8))
        for length in 290...310 {
            // libxml2 delivers a section in pieces of 300 bytes.
            let padding = String(repeating: "x", count: length)
            let section = try parse("<a><![CDATA[\(padding)\r\n\r\r\n\n\(padding)\r]]>\n<![CDATA[\r]]></a>")
            #expect(section.text == "\(padding)\n\n\n\n\(padding)\n\n\n")
        }
    }

    // MARK: Limits

    @Test func `each limit can be reached, but not exceeded`() {
        let limits = StreamLimits(tagBytes: 40, depth: 4, attributes: 3, nameBytes: 10, namespaces: 5)
        let cases: [(fits: String, over: String, code: ScanFault.Code)] = [
            ("<a><b><c/></b></a>", "<a><b><c><d/></c></b></a>", .tooDeep),
            ("<a b='' c='' d=''/>", "<a b='' c='' d='' e=''/>", .tooManyAttributes),
            ("<abcdefghij/>", "<abcdefghijk/>", .nameTooLong),
            ("<a abcdefghij=''/>", "<a abcdefghijk=''/>", .nameTooLong),
            ("<a b='12345678901234567890123456789'  />", "<a b='123456789012345678901234567890'  />", .tagTooLong),
            (
                "<a xmlns='1'><b xmlns='2'/><c xmlns='3'/></a>",
                "<a xmlns='1' xmlns:b='2' xmlns:c='3'><b xmlns='4'/></a>",
                .tooManyNamespaces
            ),
        ]
        let header = "<s:stream xmlns:s='http://etherx.jabber.org/streams'>"
        for one in cases {
            var limits = limits
            var decoder = StreamDecoder()
            for (text, expected) in [(one.fits, nil), (one.over, one.code)] {
                decoder = StreamDecoder()
                decoder.append(Array(header.utf8).span)
                while decoder.next() != nil {}
                if one.code == .tooManyNamespaces { limits.namespaces = 4 }
                decoder.limits = limits
                decoder.append(Array(text.utf8).span)
                var code: ScanFault.Code?
                while let event = decoder.next() {
                    if case .fault(let fault) = event.kind { code = fault.code }
                }
                #expect(code == expected, "\(text)")
            }
        }
    }

    @Test func `extreme limits are safe`() {
        for value in [Int.min, -1, 0, Int.max] {
            let limits = StreamLimits(
                itemBytes: value,
                tagBytes: value,
                depth: value,
                attributes: value,
                nameBytes: value,
                namespaces: value
            )
            for session in GoldenSession.all where value == .max {
                #expect(DecoderTranscript(session.bytes, limits: limits) == DecoderTranscript(session.bytes))
            }
            let lines = DecoderTranscript(Array((header + "<a/>").utf8), cuts: [1, 50], limits: limits).lines
            #expect(lines.last?.contains("fault") == (value <= 0))
        }
    }

    /// The work of a scan is the sum of the bytes that each call covers, from the resume position to the end of the
    /// received bytes. If each call resumes near the end of the previous one, the sum is linear in the bytes, however
    /// small the reads.
    @Test func `scanning single bytes costs no more than scanning them at once`() {
        let long = String(repeating: "x", count: 3000)
        let drips = [
            "<a b='\(long)", "<a b='\(String(repeating: ">", count: 3000))", "<a>\(long)", "<a><![CDATA[\(long)",
            "<a>\(String(repeating: "]", count: 3000))", "<a><![CDATA[\(String(repeating: "]]", count: 1500))",
            "<a \(String(repeating: " ", count: 3000))", "<a>\(String(repeating: "€", count: 1000))",
            "<a>\(String(repeating: "&#x000000041;", count: 200))", "<\(String(repeating: "a", count: 1000))",
            "<a \((0..<200).map { "b\($0)='1'" }.joined(separator: " "))",
            "<a>" + String(repeating: "<b c=''/>", count: 300),
        ]
        for drip in drips {
            var scanner = StanzaScanner()
            let bytes = Array(drip.utf8)
            let start = Array(header.utf8)
            guard case .item = scanner.scan(start.span) else {
                Issue.record("no header")
                return
            }
            for end in 2...bytes.count {
                guard case .incomplete = scanner.scan(bytes.span.extracting(0..<end)) else {
                    Issue.record("\(drip.prefix(20)) at \(end)")
                    break
                }
                #expect(end - scanner.resumePoint <= XMLReference.maximumLength, "\(drip.prefix(20)) at \(end)")
            }
        }
    }

    @Test func `an item beyond the limit is not stored`() {
        var decoder = StreamDecoder(limits: StreamLimits(itemBytes: 10_000))
        decoder.append(Array((header + "<message id='1'><body>").utf8).span)
        while decoder.next() != nil {}
        let piece = [UInt8](repeating: 0x61, count: 1000)
        var told: UInt64 = 0
        for _ in 0..<5000 {
            decoder.append(piece.span)
            while let event = decoder.next() { told += event.length }
            #expect(decoder.pendingCount <= 11_000)
        }
        decoder.append(Array("</body></message>".utf8).span)
        var last: StreamEvent?
        while let event = decoder.next() { last = event }
        #expect(last?.isTruncated == true)
        #expect(last?.length == 5_000_000 + 22 + 17)
        #expect(told > 4_900_000)
    }

    @Test func `a stream that ends inside an oversized item is incomplete and marked as truncated`() {
        var decoder = StreamDecoder(limits: StreamLimits(itemBytes: 20))
        decoder.append(Array((header + "<message id='1'><body>12345").utf8).span)
        while decoder.next() != nil {}
        let torn = decoder.finish()
        guard case .incomplete? = torn?.kind else {
            Issue.record("not torn")
            return
        }
        #expect(torn?.isTruncated == true)
        #expect(torn?.head == StanzaHead())
        #expect(decoder.finish() == nil)
    }

    @Test func `a truncated item is not incomplete after its end`() {
        var decoder = StreamDecoder(limits: StreamLimits(itemBytes: 20))
        decoder.append(Array((header + "<message id='1'><body/></message>").utf8).span)
        var seen = 0
        while let event = decoder.next() {
            seen += 1
            if event.isTruncated { break }
        }
        #expect(seen == 3)
        #expect(decoder.finish() == nil)
    }
}
