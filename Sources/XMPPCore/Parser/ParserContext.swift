internal import CLibXML2

/// One libxml2 push parser with a root open, and its callbacks.
///
/// Owns the `xmlParserCtxt`. The callbacks reach this object through an unretained pointer: libxml2 calls them only
/// from inside `feed`, while `self` is alive.
final class ParserContext {
    /// The declarations of the root, as written in its tag; what the pool looks for.
    let root: [UInt8]

    private var context: xmlParserCtxtPtr?
    private var arena: ElementArena?
    private var depth = 0
    private var finishedItems = 0
    private var failure: StanzaParser.Failure?
    /// URIs seen in the current item by libxml2's interned pointer, so that each is looked up once.
    private var uris: [(pointer: UnsafePointer<xmlChar>, range: ByteRange, namespace: Namespace)] = []

    init?(root: [UInt8]) {
        self.root = root
        var handler = Self.handler
        let data = Unmanaged.passUnretained(self).toOpaque()
        guard let context = xmlCreatePushParserCtxt(&handler, data, nil, 0, nil) else { return nil }
        self.context = context
        // NOENT, or attribute values keep `&amp;` as `&#38;`; safe because a DOCTYPE never gets here.
        _ = xmlCtxtUseOptions(
            context,
            Int32(truncatingIfNeeded: XML_PARSE_NOENT.rawValue | XML_PARSE_NONET.rawValue)
        )
        var header: [UInt8] = Array("<stream".utf8)
        header += root
        header.append(0x3E)
        let code = header.withUnsafeBytes { feed($0) }
        guard code == 0, failure == nil, depth == 1 else { return nil }
    }

    deinit {
        if let context {
            // With a push parser and own callbacks there is no tree, but libxml2 may hold a document shell.
            if let document = context.pointee.myDoc { xmlFreeDoc(document) }
            xmlFreeParserCtxt(context)
        }
    }

    /// Number of names libxml2 has interned for this context.
    var dictionarySize: Int { Int(xmlDictSize(context?.pointee.dict)) }

    /// Parses one whole element into `arena`; nil is success.
    func parse(_ item: Span<UInt8>, into arena: ElementArena) -> StanzaParser.Failure? {
        self.arena = arena
        defer { self.arena = nil }
        finishedItems = 0
        failure = nil
        uris.removeAll(keepingCapacity: true)
        let code = item.withUnsafeBytes { feed($0) }
        if let failure { return failure }
        guard code == 0 else { return StanzaParser.Failure(code: Int(code), message: "libxml2 error \(code)") }
        guard depth == 1, finishedItems == 1 else {
            return StanzaParser.Failure(code: 0, message: "not one whole element")
        }
        return nil
    }

    private func feed(_ bytes: UnsafeRawBufferPointer) -> Int32 {
        guard let context, let count = Int32(exactly: bytes.count) else { return -1 }
        return xmlParseChunk(context, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), count, 0)
    }

    private func refuse(_ code: Int, _ message: String) {
        if failure == nil { failure = StanzaParser.Failure(code: code, message: message) }
        if let context { xmlStopParser(context) }
    }

    // MARK: Callbacks

    private func begin(
        _ name: UnsafePointer<xmlChar>,
        _ uri: UnsafePointer<xmlChar>?,
        _ attributeCount: Int,
        _ values: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
    ) {
        depth += 1
        guard depth > 1, let arena else { return }
        let nameRange = arena.append(name, xmlLength(name))
        let (uriRange, namespace) = resolve(uri, arena)
        arena.begin(name: nameRange, uri: uriRange, namespace: namespace)
        guard let values else { return }
        for index in 0..<attributeCount {
            // Five pointers each: local name, prefix, URI, value, end of value (not terminated).
            let entry = values + index * 5
            guard let name = entry[0], let start = entry[3], let end = entry[4] else { continue }
            let (uriRange, namespace) = resolve(entry[2], arena)
            let nameRange = arena.append(name, xmlLength(name))
            let value = arena.append(start, max(0, end - start))
            arena.addAttribute(
                ElementArena.Attribute(name: nameRange, uri: uriRange, namespace: namespace, value: value)
            )
        }
    }

    private func end() {
        depth -= 1
        guard depth >= 1 else { return }
        arena?.end()
        if depth == 1 { finishedItems += 1 }
    }

    private func characters(_ text: UnsafePointer<xmlChar>, _ count: Int) {
        guard depth > 1 else { return refuse(0, "text outside the element") }
        arena?.addText(text, count)
    }

    private func resolve(_ uri: UnsafePointer<xmlChar>?, _ arena: ElementArena) -> (ByteRange, Namespace) {
        guard let uri else { return (.empty, .none) }
        for known in uris where known.pointer == uri { return (known.range, known.namespace) }
        let count = xmlLength(uri)
        let range = arena.append(uri, count)
        let namespace = Namespace(uri: UnsafeBufferPointer(start: uri, count: count).span)
        uris.append((uri, range, namespace))
        return (range, namespace)
    }

    private func xmlLength(_ text: UnsafePointer<xmlChar>) -> Int {
        var count = 0
        while text[count] != 0 { count &+= 1 }
        return count
    }

    private static func me(_ data: UnsafeMutableRawPointer?) -> ParserContext? {
        guard let data else { return nil }
        return Unmanaged<ParserContext>.fromOpaque(data).takeUnretainedValue()
    }

    private static var handler: xmlSAXHandler {
        var handler = xmlSAXHandler()
        handler.initialized = UInt32(XML_SAX2_MAGIC)
        handler.startElementNs = { data, name, _, uri, _, _, attributeCount, _, values in
            guard let name else { return }
            ParserContext.me(data)?.begin(name, uri, Int(attributeCount), values)
        }
        handler.endElementNs = { data, _, _, _ in ParserContext.me(data)?.end() }
        handler.characters = { data, text, count in
            guard let text else { return }
            ParserContext.me(data)?.characters(text, Int(count))
        }
        handler.ignorableWhitespace = handler.characters
        handler.cdataBlock = handler.characters
        handler.internalSubset = { data, _, _, _ in
            ParserContext.me(data)?.refuse(0, "a document type declaration")
        }
        handler.comment = { data, _ in ParserContext.me(data)?.refuse(0, "a comment") }
        handler.processingInstruction = { data, _, _ in ParserContext.me(data)?.refuse(0, "a processing instruction") }
        handler.serror = { data, error in
            guard let error else { return }
            // Level 2 errors leave the document "well-formed" by libxml2's count: an unbound prefix is one of them.
            guard error.pointee.level.rawValue >= XML_ERR_ERROR.rawValue else { return }
            var message = error.pointee.message.map { String(cString: $0) } ?? ""
            while message.hasSuffix("\n") { message.removeLast() }
            ParserContext.me(data)?.refuse(Int(error.pointee.code), message)
        }
        return handler
    }
}
