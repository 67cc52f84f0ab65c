import XMPPCore

/// The results of the scanner and of libxml2 for a piece of XML in a client stream, with counts for comparison with
/// other parsers.
struct StreamVerdict {
    enum Outcome: Hashable {
        case accepted
        /// The stream did not end with the piece: an element is open, or another stream began.
        case unfinished
        case refused(ScanFault.Code)
    }

    struct Counts: Equatable {
        var elements = 0
        var attributes = 0
        /// Number of bytes of character data inside the elements.
        var text = 0
        var maximumDepth = 0
        /// The local names of the top-level elements.
        var top: [String] = []

        mutating func add(_ element: Element, depth: Int) {
            elements += 1
            attributes += element.attributes.count
            maximumDepth = max(maximumDepth, depth)
            for content in element.contents {
                switch content {
                case .element(let child): add(child, depth: depth + 1)
                case .text(let text): self.text += text.utf8.count
                }
            }
        }
    }

    var outcome = Outcome.unfinished
    var counts = Counts()
    /// Items that libxml2 refused although the scanner accepted them, and heads that contradict the element.
    var contradictions: [String] = []

    static let declarations =
        " xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:db='jabber:server:dialback'"

    /// Checks `piece` between the header and the end of a client stream.
    init(_ piece: [UInt8], parser: StanzaParser = StanzaParser()) {
        self.init(
            stream: Array("<stream:stream\(Self.declarations)>".utf8) + piece + Array("</stream:stream>".utf8),
            parser: parser
        )
    }

    /// Checks a stream from its first byte.
    init(stream: [UInt8], parser: StanzaParser = StanzaParser()) {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(stream.span)
        var headers = 0
        while let event = decoder.next() {
            switch event.kind {
            case .item(.header): headers += 1
            case .item(.end): outcome = headers == 1 ? .accepted : .unfinished
            case .item(.declaration), .item(.whitespace), .fragment, .incomplete: break
            case .fault(let fault): outcome = .refused(fault.code)
            case .item(.element):
                do throws(StanzaParser.Failure) {
                    let element = try parser.parse(decoder)
                    counts.top.append(element.name)
                    counts.add(element, depth: 1)
                    contradictions += Self.contradictions(event.head, element, decoder)
                } catch {
                    contradictions.append("\(error)")
                }
            }
        }
    }

    /// Returns the differences between the scanner's head and the parsed element.
    static func contradictions(
        _ head: StanzaHead,
        _ element: Element,
        _ decoder: borrowing StreamDecoder
    ) -> [String] {
        let item = decoder.bytes
        func uri(_ name: NamespaceName) -> String {
            var uri: [UInt8] = []
            decoder.appendURI(of: name, to: &uri)
            return String(decoding: uri, as: UTF8.self)
        }
        func value(_ attribute: StanzaHead.Attribute?) -> String? {
            guard let attribute else { return nil }
            guard attribute.needsDecoding else { return item.slice(attribute.range).string() }
            var output: [UInt8] = []
            AttributeValue.decode(item.slice(attribute.range), into: &output)
            return String(decoding: output, as: UTF8.self)
        }
        let pairs: [(String?, String?)] = [
            (item.slice(head.name).string(), element.name),
            (uri(head.namespace), element.namespaceURI),
            (value(head.id), element.attribute("id")),
            (value(head.type), element.attribute("type")),
            (value(head.from), element.attribute("from")),
            (value(head.to), element.attribute("to")),
            (head.payloadName.map { item.slice($0).string() }, element.firstChild?.name),
            (head.payloadName.map { _ in uri(head.payloadNamespace) }, element.firstChild?.namespaceURI),
        ]
        return pairs.filter { $0.0 != $0.1 }.map { "the scanner says \($0.0 ?? "nil"), libxml2 \($0.1 ?? "nil")" }
    }
}
