import TapTestKit
import Testing
import XMPPCore

private let header =
    "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
    + "to='example.org' version='1.0'>"

@Suite struct StanzaScannerTests {
    @Test func `a login gives its items in order`() {
        let input =
            header + "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>" + header
            + "\n<iq id='1' type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq> <presence/></stream:stream>"
        let transcript = DecoderTranscript(Array(input.utf8))
        let kinds = transcript.lines.map { $0.split(separator: " ")[1] }
        #expect(
            kinds == [
                "declaration", "header", "element", "declaration", "header", "whitespace", "element",
                "whitespace", "element", "end",
            ]
        )
        #expect(transcript.lines[2].contains("{urn:ietf:params:xml:ns:xmpp-sasl}auth"))
        #expect(transcript.lines[2].contains("secret?"))
        #expect(transcript.lines[4].hasPrefix("2/21+"), "a declaration inside a stream begins a new epoch")
        #expect(
            transcript.lines[6].contains(
                " iq {jabber:client}iq id=1 type=set payload {urn:ietf:params:xml:ns:xmpp-bind}bind"
            )
        )
        #expect(transcript.lines[8].contains(" presence {jabber:client}presence empty"))
    }

    @Test func `a header within a stream begins an epoch, even without an XML declaration`() {
        let restart = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        let transcript = DecoderTranscript(Array((header + restart + "<a/>").utf8))
        #expect(transcript.lines.count == 4)
        #expect(transcript.lines[2].hasPrefix("2/0+\(restart.utf8.count) header"))
    }

    @Test func `a stream restart ends the old namespace declarations`() {
        let transcript = DecoderTranscript(Array((header + "<stream:stream xmlns='jabber:client'>").utf8))
        #expect(transcript.lines.last?.contains("fault unbound-prefix") == true)
    }

    @Test func `prefixes do not matter`() {
        let input =
            "<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns:c='jabber:client'><c:iq id='a'/><s:features/>"
            + "<x:message xmlns:x='jabber:client' to='a'><x:body/></x:message></s:stream>"
        let transcript = DecoderTranscript(Array(input.utf8))
        #expect(transcript.lines[1].contains(" iq {jabber:client}iq id=a"))
        #expect(transcript.lines[2].contains(" nonza {http://etherx.jabber.org/streams}features"))
        #expect(transcript.lines[3].contains(" message {jabber:client}message to=a payload {jabber:client}body"))
        #expect(transcript.lines[4].contains(" end"))
    }

    struct Refusal: CustomTestStringConvertible {
        var input: String
        var code: ScanFault.Code
        var testDescription: String { "\(code.rawValue): \(input.prefix(60))" }
    }

    static let refusals: [Refusal] = [
        .init(input: "GET / HTTP/1.1\r\n", code: .notXML),
        .init(input: "\u{16}\u{3}\u{1}", code: .notXML),
        .init(input: "<html>", code: .notAStream),
        .init(input: "<!DOCTYPE a []>", code: .documentType),
        .init(input: "<?php ?>", code: .processingInstruction),
        .init(input: "<?xml version='1.1'?>", code: .unsupportedXMLVersion),
        .init(input: "<?xml version='1.0' encoding='ISO-8859-1'?>", code: .unsupportedEncoding),
        .init(input: "<?xml encoding='UTF-8'?>", code: .malformedDeclaration),
        .init(input: "<?xml version='1.0'?><?xml version='1.0'?>", code: .processingInstruction),
        .init(input: header + "<!-- a -->", code: .comment),
        .init(input: header + "<a><!-- a --></a>", code: .comment),
        .init(input: header + "<a><?b c?></a>", code: .processingInstruction),
        .init(input: header + "<?b c?>", code: .processingInstruction),
        .init(input: header + "<a><!DOCTYPE b></a>", code: .documentType),
        .init(input: header + "<![CDATA[a]]>", code: .textOutsideStanza),
        .init(input: header + "text", code: .textOutsideStanza),
        .init(input: header + "&amp;", code: .textOutsideStanza),
        .init(input: header + "<a>&nbsp;</a>", code: .entityReference),
        .init(input: header + "<a>&#0;</a>", code: .invalidCharacter),
        .init(input: header + "<a>&#xD800;</a>", code: .invalidCharacter),
        .init(input: header + "<a>&#xFFFE;</a>", code: .invalidCharacter),
        .init(input: header + "<a>&#x110000;</a>", code: .invalidCharacter),
        .init(input: header + "<a>&#;</a>", code: .invalidReference),
        .init(input: header + "<a>& </a>", code: .invalidReference),
        .init(input: header + "<a>]]></a>", code: .sectionEndInText),
        .init(input: header + "<a>]]]]></a>", code: .sectionEndInText),
        .init(input: header + "<a>\u{1}</a>", code: .invalidCharacter),
        .init(input: header + "<a b='\u{1}'/>", code: .invalidCharacter),
        .init(input: header + "<a>\u{FFFE}</a>", code: .invalidCharacter),
        .init(input: header + "<a></b>", code: .mismatchedTag),
        .init(input: header + "<a><b></a></b>", code: .mismatchedTag),
        .init(input: header + "</stream>", code: .mismatchedTag),
        .init(input: header + "<a b='1' b='2'/>", code: .duplicateAttribute),
        .init(input: header + "<a xmlns='x' xmlns='y'/>", code: .duplicateAttribute),
        .init(input: header + "<a xmlns:p='x' xmlns:q='x' p:b='1' q:b='2'/>", code: .duplicateAttribute),
        .init(input: header + "<a xmlns:p='x'><b xmlns:q='&#120;' p:c='' d='' q:c=''/>", code: .duplicateAttribute),
        .init(input: header + "<p:a/>", code: .unboundPrefix),
        .init(input: header + "<a p:b='1'/>", code: .unboundPrefix),
        .init(input: header + "<a xmlns:p=''/>", code: .unboundPrefix),
        .init(input: header + "<a xmlns:xml='x'/>", code: .reservedPrefix),
        .init(input: header + "<a xmlns:xmlns='x'/>", code: .reservedPrefix),
        .init(input: header + "<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>", code: .reservedPrefix),
        .init(input: header + "<a xmlns='http://www.w3.org/2000/xmlns/'/>", code: .reservedPrefix),
        .init(input: header + "<a b=c/>", code: .malformedTag),
        .init(input: header + "<a b/>", code: .malformedTag),
        .init(input: header + "<a b='1'c='2'/>", code: .malformedTag),
        .init(input: header + "<a b='<'/>", code: .malformedTag),
        .init(input: header + "<a / >", code: .malformedTag),
        .init(input: header + "<a></a b='1'>", code: .malformedTag),
        .init(input: header + "<a:b:c/>", code: .malformedName),
        .init(input: header + "<:a/>", code: .malformedName),
        .init(input: header + "<a:/>", code: .malformedName),
        .init(input: header + "<1/>", code: .malformedName),
        .init(input: header + "<a:1/>", code: .malformedName),
        .init(input: header + "< a/>", code: .malformedName),
        .init(input: header + "</stream:stream><a/>", code: .afterStreamEnd),
        .init(input: header + String(repeating: "<a>", count: 256), code: .tooDeep),
        .init(
            input: header + "<a " + (0..<257).map { "b\($0)=''" }.joined(separator: " ") + "/>",
            code: .tooManyAttributes
        ),
        .init(input: header + "<" + String(repeating: "a", count: 1025) + "/>", code: .nameTooLong),
        .init(input: header + "<a b='" + String(repeating: "c", count: 65_600) + "'/>", code: .tagTooLong),
    ]

    @Test(arguments: refusals) func `XML that XMPP forbids is refused with its code`(_ refusal: Refusal) throws {
        let input = Array(refusal.input.utf8)
        let last = try #require(DecoderTranscript(input).lines.last)
        #expect(last.contains("fault \(refusal.code.rawValue) at"), "\(last)")
        if input.count < 1000 { #expect(DecoderVerifier.checkEachBoundary(input) == nil) }
    }

    @Test func `invalid UTF-8 is refused in any place`() {
        let sequences: [[UInt8]] = [
            [0xC3, 0x28], [0xFF], [0xED, 0xA0, 0x80], [0xC0, 0xAF], [0xE0, 0x80, 0xAF], [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0x80], [0xF0, 0x9F, 0x98],
        ]
        for sequence in sequences {
            for (before, after) in [("<a>", "</a>"), ("<a b='", "'/>"), ("<a", "/>"), ("<a><![CDATA[", "]]></a>")] {
                let input = Array((header + before).utf8) + sequence + Array(after.utf8)
                let last = DecoderTranscript(input).lines.last ?? ""
                #expect(last.contains("fault invalid-utf-8"), "\(sequence) in \(before): \(last)")
                #expect(DecoderVerifier.checkEachBoundary(input) == nil)
            }
        }
    }

    @Test func `other encodings are recognized by their first bytes`() {
        for input: [UInt8] in [
            [0xFE, 0xFF, 0, 0x3C], [0xFF, 0xFE, 0x3C, 0], [0, 0x3C, 0, 0x3F], [0x3C, 0, 0x3F, 0],
        ] {
            #expect(DecoderTranscript(input).lines.last?.contains("unsupported-encoding") == true)
        }
    }

    @Test func `an item beyond the limit is followed to its end`() {
        let limits = StreamLimits(itemBytes: 200)
        let body = String(repeating: "x", count: 5000)
        let stanza = "<message to='a@b' id='7'><body>\(body)</body><more/></message>"
        let input = Array((header + stanza + "<presence/>").utf8)
        for cuts in [[], Array(1..<input.count), [300], [300, 1000, 2000]] {
            let lines = DecoderTranscript(input, cuts: cuts, limits: limits).lines
            #expect(lines.count == 4)
            #expect(
                lines[2].hasSuffix(
                    "+\(stanza.utf8.count) element message {jabber:client}message id=7 to=a@b payload {jabber:client}body"
                        + " truncated \(stanza.utf8.count)"
                ),
                "\(lines[2])"
            )
            #expect(lines[3].contains(" presence "))
        }
    }

    @Test func `a fault has the name of its item, if known`() {
        let cases: [(input: String, name: String)] = [
            ("<presence/><message id='7'><body>&x;</body>", "message"), ("<presence/><message/><iq></message>", "iq"),
            ("<presence/>text", ""), ("<presence/><message b=>", ""), ("</stream:stream>x", ""),
        ]
        for (input, name) in cases {
            for cuts in [[], Array(1..<(header.utf8.count + input.utf8.count))] {
                var decoder = StreamDecoder()
                var start = 0
                let bytes = Array((header + input).utf8)
                var last: (kind: StreamEvent.Kind, name: String)?
                for end in cuts + [bytes.count] {
                    decoder.append(bytes.span.extracting(start..<end))
                    start = end
                    while let event = decoder.next() {
                        last = (event.kind, decoder.bytes.slice(event.head.name).string())
                    }
                }
                guard case .fault? = last?.kind else {
                    Issue.record("no fault in \(input)")
                    continue
                }
                #expect(last?.name == name, "\(input)")
            }
        }
    }

    @Test func `chunk boundaries within an item are reported`() {
        var decoder = StreamDecoder()
        decoder.append(Array(header.utf8).span)
        while decoder.next() != nil {}
        for piece in ["<iq i", "d='1'", "/><presence/>"] {
            decoder.append(Array(piece.utf8).span)
            if piece.hasSuffix("/>") { break }
            #expect(decoder.next() == nil)
        }
        #expect(decoder.next()?.chunks == [5, 10])
        #expect(decoder.next()?.chunks == [])
    }

    @Test func `attribute values are decoded as XML requires`() {
        var output: [UInt8] = []
        AttributeValue.decode(Array("a&amp;b&lt;&#65;&#x1F600;\tc\n&apos;&quot;&gt;".utf8).span, into: &output)
        #expect(String(decoding: output, as: UTF8.self) == "a&b<A😀 c '\">")
    }
}
