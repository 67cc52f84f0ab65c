import Foundation
import TapTestKit
import Testing
import XMPPCore

private let header =
    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:p='urn:xmpp:ping'>"

/// Represents an element in one line, to compare parsed elements with items that ``ItemReader`` reads.
private enum Outline {
    static func text(_ element: Element) -> String {
        var line = "<\(element.namespace)|\(element.name)"
        for attribute in element.attributes { line += " \(attribute.name)=\(attribute.value)" }
        line += ">"
        for content in element.contents {
            switch content {
            case .element(let child): line += text(child)
            case .text(let text): line += text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")
            }
        }
        return line + "</>"
    }

    static func text(_ item: Span<UInt8>, _ reader: inout ItemReader) -> String? {
        var bytes: [UInt8] = []
        while let token = reader.next(item) {
            switch token {
            case .start:
                bytes += "<\(reader.namespace)|".utf8
                bytes.append(item.slice(reader.name))
                for index in 0..<reader.attributeCount {
                    let attribute = reader.attribute(index, item)
                    guard !attribute.isDeclaration else { continue }
                    bytes.append(0x20)
                    bytes.append(item.slice(attribute.name))
                    bytes.append(0x3D)
                    AttributeValue.decode(item.slice(attribute.value), into: &bytes)
                }
                bytes.append(0x3E)
            case .text(let range): AttributeValue.decodeText(item.slice(range), into: &bytes)
            case .section(let range, _): bytes.append(item.slice(range))
            case .end: bytes += "</>".utf8
            case .fault: return nil
            }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        return reader.depth == 0 ? text.replacing("\r\n", with: "\n").replacing("\r", with: "\n") : nil
    }
}

/// Compares the parsed elements of a stream with those that ``ItemReader`` reads; returns the number of elements.
private func compare(_ input: [UInt8], _ parser: StanzaParser, _ reader: inout ItemReader, name: String) -> Int {
    var decoder = StreamDecoder(limits: .authenticated)
    decoder.append(input.span)
    var count = 0
    while let event = decoder.next() {
        guard case .item(.element) = event.kind, let element = try? parser.parse(decoder) else { continue }
        reader.begin(decoder)
        let outline = Outline.text(decoder.bytes, &reader)
        // Items with a CR are not compared, because libxml2 also normalises line ends in attributes.
        if outline != Outline.text(element), !decoder.bytes.string().contains("\r") {
            Issue.record("\(name): \(outline ?? "fault") instead of \(Outline.text(element))")
        }
        count += 1
    }
    return count
}

@Suite struct ItemReaderTests {
    @Test func `tokens have the positions of their bytes`() {
        let item = Array("<p:a x='1&amp;2' xmlns:q='urn:q' q:y=\"\"><b/>t&lt;<![CDATA[<c>]]]]></p:a >".utf8)
        var decoder = StreamDecoder()
        decoder.append(Array(header.utf8).span)
        _ = decoder.next()
        decoder.append(item.span)
        #expect(decoder.next() != nil)
        var reader = ItemReader()
        reader.begin(decoder)
        let bytes = item.span

        #expect(reader.next(bytes) == .start)
        #expect(bytes.slice(reader.name).string() == "a")
        #expect(reader.namespace == .ping)
        #expect(bytes.slice(reader.tagRange).string() == "<p:a x='1&amp;2' xmlns:q='urn:q' q:y=\"\">")
        let attributes = (0..<reader.attributeCount).map { reader.attribute($0, bytes) }
        #expect(attributes.map { bytes.slice($0.name).string() } == ["x", "q", "y"])
        #expect(attributes.map(\.namespace) == [.none, .xmlns, .other])
        #expect(attributes.map { bytes.slice($0.value).string() } == ["1&amp;2", "urn:q", ""])
        #expect(attributes.map(\.needsDecoding) == [true, false, false])
        #expect(reader.next(bytes) == .start)
        #expect(reader.namespace == .client)
        #expect(reader.depth == 2)
        #expect(reader.next(bytes) == .end)
        guard case .text(let text) = reader.next(bytes) else {
            Issue.record("no text")
            return
        }
        #expect(bytes.slice(text).string() == "t&lt;")
        guard case .section(let content, let markup) = reader.next(bytes) else {
            Issue.record("no section")
            return
        }
        #expect(bytes.slice(content).string() == "<c>]]")
        #expect(bytes.slice(markup).string() == "<![CDATA[<c>]]]]>")
        #expect(reader.next(bytes) == .end)
        #expect(reader.next(bytes) == nil)
    }

    @Test func `namespace declarations end with their element`() {
        let item = Array("<a xmlns='urn:xmpp:ping'><b xmlns=''><c/></b><d/></a>".utf8)
        var reader = ItemReader()
        reader.begin()
        var namespaces: [Namespace] = []
        while let token = reader.next(item.span) {
            if token == .start { namespaces.append(reader.namespace) }
        }
        #expect(namespaces == [.ping, .none, .none, .ping])
    }

    @Test func `a stream header leaves its element open`() {
        var decoder = StreamDecoder()
        decoder.append(Array(header.utf8).span)
        _ = decoder.next()
        var reader = ItemReader()
        reader.begin(decoder)
        #expect(reader.next(decoder.bytes) == .start)
        #expect(reader.namespace == .streams)
        #expect(reader.next(decoder.bytes) == nil)
        #expect(reader.depth == 1)
    }

    @Test func `malformed items are a fault and never a crash`() {
        var random = SeededGenerator(seed: 5)
        let item = Array("<a b='1'><![CDATA[x]]>y<c xmlns:d='e' d:f='&#65;'/></a>".utf8)
        var reader = ItemReader()
        #expect(reader.next(item.span) == .fault, "a reader that has not begun")
        for round in 0..<20_000 {
            var bytes = item
            if round < item.count { bytes.removeLast(round) }
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                guard !bytes.isEmpty else { continue }
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            reader.begin()
            var tokens = 0
            while let token = reader.next(bytes.span), token != .fault { tokens += 1 }
            #expect(tokens <= 2 * item.count)
        }
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `each XEP example has the same tokens as for the parser`() throws {
        struct Example: Decodable {
            var xep: String
            var n: Int
            var text: String
        }
        let parser = StanzaParser()
        var reader = ItemReader()
        var count = 0
        for line in try Corpus.unzip("xep-examples.jsonl.gz").split(separator: 0x0A) {
            let example = try JSONDecoder().decode(Example.self, from: line)
            let input = Array((header + example.text).utf8)
            count += compare(input, parser, &reader, name: "XEP-\(example.xep) #\(example.n)")
        }
        #expect(count > 5000)
    }
}
