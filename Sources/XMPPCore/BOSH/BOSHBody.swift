/// The wrapper `<body/>` of a BOSH request or response (XEP-0124 §4, XEP-0206), and the elements in it.
///
/// The keys of a session (`key`, `newkey`) and its stream id (`authid`) are secrets that no reader needs, so that they are
/// not stored.
package struct BOSHBody: Sendable, Hashable {
    /// The number of the request (XEP-0124 §14.1); nil in responses, and if it is not valid.
    package var rid: UInt64?
    /// The id of the session. A secret: with ``rid``, it is sufficient to take over the session.
    package var sid: String?
    /// The addressed domain.
    package var to: String?
    /// The sender's address.
    package var from: String?
    /// The version of XMPP, `xmpp:version` (XEP-0206 §2).
    package var version: String?
    /// The default language, `xml:lang`.
    package var language: String?
    /// Whether the client requests a new stream, `xmpp:restart` (XEP-0206 §5).
    package var restarts = false
    /// Whether the session ends, `type='terminate'` (XEP-0124 §13, §17.2).
    package var isTerminate = false
    /// The condition of an error.
    package var condition: String?
    /// The number of requests that the client may have open, from 1 (XEP-0124 §11).
    package var requests: Int?
    /// The longest time without a request in seconds (XEP-0124 §10).
    package var inactivity: Int?
    /// The time in seconds for which the client pauses (XEP-0124 §12).
    package var pause: Int?
    /// The address in `<uri/>`, for the condition `see-other-uri`.
    package var uri: String?
    /// The elements in the body, in order. Each declares its namespaces itself, like a WebSocket message; one without a
    /// namespace is in `jabber:client` (XEP-0206 §4).
    package var items: [[UInt8]] = []

    /// The largest `rid` (XEP-0124 §14.1).
    package static let maximumRID: UInt64 = 9_007_199_254_740_991

    /// Number of bytes of the elements.
    package var itemBytes: Int { items.reduce(0) { $0 + $1.count } }

    /// Creates an empty body.
    package init() {}

    /// The reason why bytes are not an acceptable body.
    package enum Fault: Error, Sendable, Hashable {
        /// The element is not `<body/>` of BOSH.
        case otherElement
        /// The bytes are not one acceptable element.
        case malformed(ScanFault)
        /// The bytes are more than the limit.
        case tooLong(limit: Int)

        /// The stable code of the fault.
        package var code: String {
            switch self {
            case .otherElement: "bosh-no-body"
            case .malformed(let fault):
                switch fault.code {
                case .emptyMessage: "bosh-empty"
                case .severalElements: "bosh-several-elements"
                case .textInMessage, .textOutsideStanza: "bosh-text"
                case .unfinishedElement: "bosh-unfinished-element"
                default: fault.code.rawValue
                }
            case .tooLong: "limit-body"
            }
        }

        /// The fault, as a human-readable clause.
        package var explanation: String {
            switch self {
            case .otherElement: "the element is not <body/> of http://jabber.org/protocol/httpbind"
            case .malformed(let fault):
                switch fault.code {
                case .emptyMessage: "no element"
                case .severalElements: "more than one element"
                case .textInMessage: "text outside <body/>"
                case .textOutsideStanza: "text directly in <body/>"
                case .unfinishedElement: "the bytes end before </body>"
                default: fault.explanation
                }
            case .tooLong(let limit): "more than \(limit) bytes"
            }
        }
    }

    // MARK: Reading

    /// Reads the whole content of a request or response.
    ///
    /// - Parameters:
    ///   - limits: The limits for elements in the body.
    ///   - limit: The largest number of bytes of the body.
    package init(
        _ bytes: Span<UInt8>,
        limits: StreamLimits = .authenticated,
        limit: Int,
        _ parser: StanzaParser
    ) throws(Fault) {
        guard bytes.count <= limit else { throw .tooLong(limit: limit) }
        var wrapper = limits
        wrapper.itemBytes = limit
        var decoder = StreamDecoder(framing: .messagesInside, limits: wrapper)
        decoder.append(message: bytes, endsMessage: true)
        guard let event = decoder.next() else { throw .malformed(ScanFault(.emptyMessage, at: 0)) }
        switch event.kind {
        case .item(.element): break
        case .fault(let fault): throw .malformed(fault)
        case .item: throw .otherElement
        case .fragment, .incomplete: throw .tooLong(limit: limit)
        }
        guard event.head.namespace.namespace == .httpBind, decoder.bytes.slice(event.head.name).equals("body") else {
            throw .otherElement
        }
        let element = StreamDecoder.element(ofMessage: decoder.bytes)
        let tag = Self.startTag(element)
        read(try Self.parse(tag, parser))
        guard !Self.isEmpty(tag) else { return }
        try readItems(element, tag: tag, limits, parser)
    }

    /// Returns the start tag of an element that the scanner has accepted.
    @_lifetime(copy element)
    private static func startTag(_ element: Span<UInt8>) -> Span<UInt8> {
        var quote: UInt8?
        for index in element.indices {
            let byte = element[index]
            switch (byte, quote) {
            case (0x3E, nil): return element.extracting(...index)
            case (0x22, nil), (0x27, nil): quote = byte
            default: if byte == quote { quote = nil }
            }
        }
        return element
    }

    private static func isEmpty(_ tag: Span<UInt8>) -> Bool { tag.count > 1 && tag[tag.count - 2] == 0x2F }

    /// Returns the element of a start tag, without content.
    private static func parse(_ tag: Span<UInt8>, _ parser: StanzaParser) throws(Fault) -> Element {
        var bytes: [UInt8] = []
        bytes.append(tag)
        if !isEmpty(tag) { bytes.insert(0x2F, at: bytes.count - 1) }
        do {
            return try parser.parse(bytes.span, root: [])
        } catch {
            throw .malformed(ScanFault(.malformedTag, at: 0))
        }
    }

    private mutating func read(_ element: Element) {
        let xmpp = "urn:xmpp:xbosh"
        for attribute in element.attributes {
            let value = attribute.value
            switch (attribute.namespaceURI, attribute.name) {
            case ("", "rid"): rid = Self.number(value).flatMap { $0 <= Self.maximumRID ? $0 : nil }
            case ("", "sid"): sid = value.isEmpty ? nil : value
            case ("", "to"): to = value
            case ("", "from"): from = value
            case ("", "type"): isTerminate = value == "terminate"
            case ("", "condition"): condition = value
            case ("", "requests"): requests = Self.count(value)
            case ("", "inactivity"): inactivity = Self.count(value)
            case ("", "pause"): pause = Self.count(value)
            case (xmpp, "version"): version = value
            case (xmpp, "restart"): restarts = value == "true" || value == "1"
            case ("http://www.w3.org/XML/1998/namespace", "lang"): language = value
            default: break
            }
        }
    }

    /// Returns the value of digits; nil if it is not a number of 64 bits.
    private static func number(_ text: String) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        return UInt64(text)
    }

    /// Returns a number of seconds or requests, at most one million.
    private static func count(_ text: String) -> Int? { number(text).map { Int(min($0, 1_000_000)) } }

    // MARK: Elements

    /// Reads the elements as items of a stream. The stream header has the declarations of the body; its default
    /// namespace is `jabber:client` instead of that of BOSH.
    private mutating func readItems(
        _ element: Span<UInt8>,
        tag: Span<UInt8>,
        _ limits: StreamLimits,
        _ parser: StanzaParser
    ) throws(Fault) {
        var end = element.count - 1
        while end > tag.count, element[end] != 0x3C { end -= 1 }
        var stream = Self.header(tag)
        stream.append(element.extracting(tag.count..<max(end, tag.count)))
        var messages: [[UInt8]] = []
        var translator = StreamTranslator(limits: limits)
        do {
            try translator.translate(stream: stream.span) { messages.append($0) }
        } catch {
            throw .malformed(error)
        }
        // The first message is that of the header.
        items = Array(messages.dropFirst())
        guard condition == "see-other-uri" else { return }
        items.removeAll { item in
            guard let place = try? parser.parse(item.span, root: []), place.isNamed("uri") else { return false }
            uri = uri ?? place.text
            return true
        }
    }

    /// Returns a stream header with the prefixes that a start tag declares.
    private static func header(_ tag: Span<UInt8>) -> [UInt8] {
        let declarations = prefixes(tag)
        // An element gets the declarations of all prefixes that occur in it, so that this one must be unusual.
        var own = "xmpptap-stream"
        while declarations.contains(where: { $0.prefix == Array(own.utf8) }) { own += "-" }
        var header = Array("<\(own):stream".utf8)
        // Elements without a namespace are read as those of jabber:client, and so are those that inherit that of the body.
        let bosh = Array(Namespace.httpBind.uri.description.utf8)
        if !declarations.contains(where: { $0.prefix.isEmpty && !$0.text.span.contains(bosh.span) }) {
            header += Array(" xmlns='\(Namespace.client.uri)'".utf8)
        }
        for declaration in declarations where !declaration.prefix.isEmpty || !declaration.text.span.contains(bosh.span)
        {
            header += [0x20] + declaration.text
        }
        header += Array(" xmlns:\(own)='\(Namespace.streams.uri)'".utf8)
        return header + Array(" version='1.0'>".utf8)
    }

    /// Returns the declared prefixes of a start tag, each with the attribute as written; the empty one is that of the
    /// default namespace.
    private static func prefixes(_ tag: Span<UInt8>) -> [(prefix: [UInt8], text: [UInt8])] {
        let xmlns = Array("xmlns".utf8)
        var declarations: [(prefix: [UInt8], text: [UInt8])] = []
        var text: [UInt8] = []
        var quote: UInt8?
        for index in tag.indices {
            let byte = tag[index]
            text.append(byte)
            if let current = quote {
                guard byte == current else { continue }
                quote = nil
                let name = text.prefix { $0 != 0x3D && !XMLCharacters.isWhitespace($0) }
                if name.starts(with: xmlns + [0x3A]) {
                    declarations.append((Array(name.dropFirst(xmlns.count + 1)), text))
                } else if name.elementsEqual(xmlns), text.count > xmlns.count + 3 {
                    declarations.append(([], text))
                }
                text = []
            } else if byte == 0x22 || byte == 0x27 {
                quote = byte
            } else if XMLCharacters.isWhitespace(byte), !text.contains(0x3D) {
                // White space may precede the equals sign.
                if !Self.continues(tag, after: index) { text = [] }
            }
        }
        return declarations
    }

    /// Returns whether the next byte that is not white space is an equals sign.
    private static func continues(_ tag: Span<UInt8>, after index: Int) -> Bool {
        var next = index + 1
        while next < tag.count, XMLCharacters.isWhitespace(tag[next]) { next += 1 }
        return next < tag.count && tag[next] == 0x3D
    }
}
