/// Translates the stream of an endpoint that speaks RFC 6120 to messages of a WebSocket (RFC 7395), and back.
///
/// For endpoints of xmpptap itself, not for relaying: the bytes change. The stream header becomes `<open/>` and the end tag
/// `<close/>`; an element declares the namespaces that it inherits from the header; XML declarations and white space are
/// left out, since a message contains neither. In the other direction, the attributes of `<open/>` that RFC 6120 §4.7
/// defines are those of a stream header for `jabber:client`.
///
/// Deterministic and pure: no socket, no clock, no thread.
package struct StreamTranslator: ~Copyable {
    private var stream: StreamDecoder
    private var messages: StreamDecoder

    /// Creates a translator for one connection.
    package init(limits: StreamLimits = .authenticated) {
        stream = StreamDecoder(limits: limits)
        messages = StreamDecoder(framing: .messages, limits: limits)
    }

    /// The limits of both directions; change them only between calls.
    package var limits: StreamLimits {
        get { stream.limits }
        set {
            stream.limits = newValue
            messages.limits = newValue
        }
    }

    // MARK: To messages

    /// Translates bytes of the endpoint's stream; calls `send` with each whole message.
    ///
    /// - Throws: The fault of the stream; later calls throw the same.
    package mutating func translate(stream bytes: Span<UInt8>, _ send: ([UInt8]) -> Void) throws(ScanFault) {
        stream.append(bytes)
        while let event = stream.next() {
            switch event.kind {
            case .item(.declaration), .item(.whitespace): break
            case .item(.header): send(Self.open(event.head, stream.bytes))
            case .item(.element): send(qualified(event.head))
            case .item(.end): send(XMLWriter.bytes { $0.element("close", .framing) })
            case .fault(let fault): throw fault
            case .fragment, .incomplete: throw ScanFault(.itemTooLong, at: event.offset, limit: stream.limits.itemBytes)
            }
        }
    }

    private static func open(_ head: StanzaHead, _ header: Span<UInt8>) -> [UInt8] {
        XMLWriter.bytes { xml in
            xml.start("open", xmlns: Namespace.framing.uri.description)
            for (name, value) in attributes(head, header) { xml.attribute(name, value) }
            xml.end()
        }
    }

    private static func attributes(_ head: StanzaHead, _ item: Span<UInt8>) -> [(String, String)] {
        var attributes: [(String, String)] = []
        for (name, attribute) in [("from", head.from), ("to", head.to), ("id", head.id), ("version", head.version)] {
            if let value = attribute?.text(in: item) { attributes.append((name, value)) }
        }
        forEachAttribute(of: item) { name, place in
            guard name == Array("xml:lang".utf8) else { return }
            var value: [UInt8] = []
            AttributeValue.decode(item.extracting(place), into: &value)
            attributes.append(("xml:lang", String(decoding: value, as: UTF8.self)))
        }
        return attributes
    }

    /// Returns the last element with the declarations of the stream header that are missing in its start tag.
    private func qualified(_ head: StanzaHead) -> [UInt8] {
        let item = stream.bytes
        let own = Self.declaredPrefixes(item)
        var missing: [UInt8] = []
        stream.forEachDeclaration { prefix, uri in
            var name: [UInt8] = []
            name.append(prefix)
            guard !own.contains(name) else { return }
            // A prefix that occurs nowhere need not be declared; one in a text does no harm.
            guard name.isEmpty || item.contains((name + [0x3A]).span) else { return }
            missing += Array(" xmlns".utf8)
            if !name.isEmpty { missing += [0x3A] + name }
            missing += Array("='".utf8)
            for index in uri.indices {
                switch uri[index] {
                case 0x26: missing += Array("&amp;".utf8)
                case 0x27: missing += Array("&#39;".utf8)
                case 0x3C: missing += Array("&lt;".utf8)
                case 0x09, 0x0A, 0x0D: missing += Array("&#\(uri[index]);".utf8)
                case let byte: missing.append(byte)
                }
            }
            missing.append(0x27)
        }
        var message: [UInt8] = []
        message.append(item.extracting(0..<Int(head.name.end)))
        message += missing
        message.append(item.extracting(Int(head.name.end)...))
        return message
    }

    /// Returns the prefixes that the start tag of an element declares; the empty one is that of the default namespace.
    private static func declaredPrefixes(_ element: Span<UInt8>) -> [[UInt8]] {
        let xmlns = Array("xmlns".utf8)
        var prefixes: [[UInt8]] = []
        forEachAttribute(of: element) { name, _ in
            guard name.starts(with: xmlns) else { return }
            let rest = name.dropFirst(xmlns.count)
            if rest.isEmpty {
                prefixes.append([])
            } else if rest.first == 0x3A {
                prefixes.append(Array(rest.dropFirst()))
            }
        }
        return prefixes
    }

    /// Calls `body` with the name of each attribute in the start tag of an element, and the place of its raw value.
    private static func forEachAttribute(of element: Span<UInt8>, _ body: ([UInt8], Range<Int>) -> Void) {
        var name: [UInt8] = []
        var quote: UInt8?
        var start = 0
        var isNameOver = false
        for index in element.indices.dropFirst() {
            let byte = element[index]
            if let current = quote {
                guard byte == current else { continue }
                body(name, start..<index)
                (quote, name, isNameOver) = (nil, [], false)
                continue
            }
            switch byte {
            case 0x3E: return
            case 0x22, 0x27: (quote, start) = (byte, index + 1)
            // White space may surround the equals sign.
            case 0x20, 0x09, 0x0A, 0x0D, 0x3D: isNameOver = true
            default:
                if isNameOver { (name, isNameOver) = ([], false) }
                name.append(byte)
            }
        }
    }

    // MARK: From messages

    /// Translates a piece of a received message; calls `receive` with the bytes of the stream.
    ///
    /// - Throws: The fault of the message.
    package mutating func translate(
        message piece: Span<UInt8>,
        endsMessage: Bool,
        _ receive: ([UInt8]) -> Void
    ) throws(ScanFault) {
        messages.append(message: piece, endsMessage: endsMessage)
        while let event = messages.next() {
            switch event.kind {
            case .item(.header): receive(Self.header(event.head, messages.bytes))
            case .item(.end): receive(Array("</stream:stream>".utf8))
            case .item:
                var bytes: [UInt8] = []
                bytes.append(StreamDecoder.element(ofMessage: messages.bytes))
                receive(bytes)
            case .fault(let fault): throw fault
            case .fragment, .incomplete:
                throw ScanFault(.itemTooLong, at: event.offset, limit: messages.limits.itemBytes)
            }
        }
    }

    private static func header(_ head: StanzaHead, _ open: Span<UInt8>) -> [UInt8] {
        var xml = XMLWriter()
        xml.start(
            "stream:stream",
            xmlns: Namespace.client.uri.description,
            ["xmlns:stream": Namespace.streams.uri.description]
        )
        for (name, value) in attributes(head, open) { xml.attribute(name, value) }
        xml.text("")
        return xml.take()
    }
}
