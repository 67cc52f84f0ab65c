import XMPPCore

/// Compares the scanner's own reading of an item with that of libxml2.
final class ItemComparison {
    nonisolated(unsafe) static let shared = ItemComparison()

    private let parser = StanzaParser()
    private var reader = ItemReader()

    /// The common form of both readings: names, namespaces, values and text, in order.
    private enum Token: Equatable {
        case start(String, Namespace, [Attribute])
        case text(String)
        case end
    }

    private struct Attribute: Equatable {
        var name: String
        var namespace: Namespace
        var value: String
    }

    /// Returns the first contradiction in the items of the input; nil if there is none.
    func firstContradiction(_ input: FuzzInput) -> String? {
        var decoder = StreamDecoder(limits: input.limits)
        decoder.append(input.bytes.span)
        while let event = decoder.next() {
            if case .item(.element) = event.kind, let found = contradiction(event, decoder) { return found }
        }
        return nil
    }

    /// Returns the difference between both readings of the decoder's last event, an element; nil if there is none.
    func contradiction(_ event: StreamEvent, _ decoder: borrowing StreamDecoder) -> String? {
        guard !event.isTruncated else { return nil }
        let item = decoder.bytes.string()
        do throws(StanzaParser.Failure) {
            let element = try parser.parse(decoder)
            var expected: [Token] = []
            Self.add(element, to: &expected)
            let seen = tokens(decoder)
            guard seen == expected else { return "\(item)\nscanner: \(seen)\nlibxml2: \(expected)" }
            guard agrees(event.head, element, decoder) else { return "\(item)\nhead: \(event.head)" }
            return nil
        } catch {
            return "\(item) is accepted by the scanner, but \(error)"
        }
    }

    private static func add(_ element: Element, to tokens: inout [Token]) {
        let attributes = element.attributes.map {
            Attribute(name: $0.name, namespace: Namespace(uri: Array($0.namespaceURI.utf8).span), value: $0.value)
        }
        tokens.append(.start(element.name, element.namespace, attributes))
        for content in element.contents {
            switch content {
            case .element(let child): add(child, to: &tokens)
            case .text(let text): add(text, to: &tokens)
            }
        }
        tokens.append(.end)
    }

    private static func add(_ text: String, to tokens: inout [Token]) {
        guard !text.isEmpty else { return }
        if case .text(let before)? = tokens.last {
            tokens[tokens.count - 1] = .text(before + text)
        } else {
            tokens.append(.text(text))
        }
    }

    private func tokens(_ decoder: borrowing StreamDecoder) -> [Token] {
        let item = decoder.bytes
        var tokens: [Token] = []
        reader.begin(decoder)
        while let token = reader.next(item) {
            var output: [UInt8] = []
            switch token {
            case .start:
                var attributes: [Attribute] = []
                for index in 0..<reader.attributeCount {
                    let attribute = reader.attribute(index, item)
                    guard !attribute.isDeclaration else { continue }
                    output.removeAll()
                    AttributeValue.decode(item.slice(attribute.value), into: &output)
                    let value = String(decoding: output, as: UTF8.self)
                    if !attribute.needsDecoding, value != item.slice(attribute.value).string() {
                        return [.text("a value needs decoding that is said not to")]
                    }
                    let name = item.slice(attribute.name).string()
                    attributes.append(Attribute(name: name, namespace: attribute.namespace, value: value))
                }
                tokens.append(.start(item.slice(reader.name).string(), reader.namespace, attributes))
            case .text(let range):
                AttributeValue.decodeText(item.slice(range), into: &output)
                Self.add(String(decoding: output, as: UTF8.self), to: &tokens)
            case .section(let range, _):
                Self.add(Self.normalised(item.slice(range)), to: &tokens)
            case .end: tokens.append(.end)
            case .fault: return [.text("the reader refuses the item")]
            }
        }
        return tokens
    }

    /// Returns the content of a CDATA section: line ends are normalised, all other bytes are unchanged.
    private static func normalised(_ section: Span<UInt8>) -> String {
        var output: [UInt8] = []
        for index in section.indices {
            guard section[index] == 0x0D else {
                output.append(section[index])
                continue
            }
            if index + 1 == section.count || section[index + 1] != 0x0A { output.append(0x0A) }
        }
        return String(decoding: output, as: UTF8.self)
    }

    private func agrees(_ head: StanzaHead, _ element: Element, _ decoder: borrowing StreamDecoder) -> Bool {
        let item = decoder.bytes
        func uri(_ name: NamespaceName) -> String {
            var uri: [UInt8] = []
            decoder.appendURI(of: name, to: &uri)
            return String(decoding: uri, as: UTF8.self)
        }
        func value(_ attribute: StanzaHead.Attribute?) -> String? {
            guard let attribute else { return nil }
            var output: [UInt8] = []
            AttributeValue.decode(item.slice(attribute.range), into: &output)
            return String(decoding: output, as: UTF8.self)
        }
        let payload = head.payloadName.map { item.slice($0).string() }
        return item.slice(head.name).string() == element.name && uri(head.namespace) == element.namespaceURI
            && value(head.id) == element.attribute("id") && value(head.to) == element.attribute("to")
            && value(head.from) == element.attribute("from") && value(head.type) == element.attribute("type")
            // A payload beyond the item limit is not in the head.
            && (payload == nil
                || payload == element.firstChild?.name
                    && uri(head.payloadNamespace) == element.firstChild?.namespaceURI)
    }
}
