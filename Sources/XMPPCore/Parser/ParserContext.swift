internal import CLibXML2

/// One libxml2 push parser with an open root, and its callbacks.
///
/// Owns the `xmlParserCtxt` and the state of its callbacks. libxml2 calls them only from inside `feed`, with a plain
/// pointer to that state: a callback retains nothing.
final class ParserContext {
    /// The declarations of the root, as written in its tag; the key of the pool.
    let root: [UInt8]

    /// The state at a stable address, which libxml2 passes to each callback. Nothing else refers to it.
    private let state: UnsafeMutablePointer<State>

    /// A URI by libxml2's interned pointer, which is stable during the life of the context.
    private struct KnownURI: BitwiseCopyable {
        var pointer: UnsafePointer<xmlChar>
        var namespace: Namespace
        /// The item whose contents contain `range`.
        var item: Int
        var range: ByteRange
    }

    private struct State: ~Copyable {
        var context: xmlParserCtxtPtr?
        /// The contents of the current item, if any.
        var contents = ElementArena.Contents()
        var isFilling = false
        var depth = 0
        /// Number of the item.
        var item = 0
        var finishedItems = 0
        var failure: StanzaParser.Failure?
        /// The known URIs, at most ``maximumURIs``: a search in more URIs would cost more than finding the namespace
        /// again.
        var uris = UniqueArray<KnownURI>()

        /// Returns the namespace of a URI, and the range of its bytes in the contents.
        mutating func resolve(_ uri: UnsafePointer<xmlChar>?) -> (ByteRange, Namespace) {
            guard let uri else { return (.empty, .none) }
            for index in 0..<uris.count where uris[index].pointer == uri {
                if uris[index].item != item {
                    uris[index].range = contents.append(ParserContext.span(uri, ParserContext.length(uri)))
                    uris[index].item = item
                }
                return (uris[index].range, uris[index].namespace)
            }
            let text = ParserContext.span(uri, ParserContext.length(uri))
            let range = contents.append(text)
            let namespace = Namespace(uri: text)
            if uris.count < ParserContext.maximumURIs {
                uris.append(KnownURI(pointer: uri, namespace: namespace, item: item, range: range))
            }
            return (range, namespace)
        }
    }

    private static let maximumURIs = 64

    init?(root: [UInt8]) {
        self.root = root
        state = .allocate(capacity: 1)
        state.initialize(to: State())
        var handler = Self.handler
        guard let context = xmlCreatePushParserCtxt(&handler, state, nil, 0, nil) else { return nil }
        state.pointee.context = context
        // Without NOENT, attribute values would keep `&amp;` as `&#38;`. The option is safe, because a DOCTYPE is never
        // parsed.
        _ = xmlCtxtUseOptions(
            context,
            Int32(truncatingIfNeeded: XML_PARSE_NOENT.rawValue | XML_PARSE_NONET.rawValue)
        )
        var header: [UInt8] = Array("<stream".utf8)
        header += root
        header.append(0x3E)
        guard feed(header.span) == nil, state.pointee.depth == 1, hasTakenAll else { return nil }
    }

    deinit {
        if let context = state.pointee.context {
            // A push parser with custom callbacks builds no tree, but libxml2 may hold an empty document.
            if let document = context.pointee.myDoc { xmlFreeDoc(document) }
            xmlFreeParserCtxt(context)
        }
        state.deinitialize(count: 1)
        state.deallocate()
    }

    /// Number of names that libxml2 has interned for this context.
    var dictionarySize: Int { Int(xmlDictSize(state.pointee.context?.pointee.dict)) }

    /// Parses one whole element into `arena`; nil on success.
    func parse(_ item: Span<UInt8>, into arena: ElementArena) -> StanzaParser.Failure? {
        begin(itemBytes: item.count)
        if let failure = feed(item) { return failure }
        guard isFinished else { return StanzaParser.Failure(code: 0, message: "not one whole element") }
        finish(into: arena)
        return nil
    }

    /// Begins an item with this number of bytes.
    func begin(itemBytes: Int = .max) {
        state.pointee.contents.reset(itemBytes: itemBytes)
        state.pointee.isFilling = true
        state.pointee.item &+= 1
        state.pointee.finishedItems = 0
    }

    /// Moves the element of the item, which ``isFinished``, into an arena without elements.
    func finish(into arena: ElementArena) {
        state.pointee.isFilling = false
        arena.exchange(&state.pointee.contents)
    }

    /// Passes a piece of the item to libxml2.
    func feed(_ bytes: Span<UInt8>) -> StanzaParser.Failure? {
        guard let context = state.pointee.context, let count = Int32(exactly: bytes.count) else {
            return StanzaParser.Failure(code: 0, message: "too long for libxml2")
        }
        let code = bytes.withUnsafeBytes {
            xmlParseChunk(context, $0.baseAddress?.assumingMemoryBound(to: CChar.self), count, 0)
        }
        if let failure = state.pointee.failure { return failure }
        return code == 0 ? nil : StanzaParser.Failure(code: Int(code), message: "libxml2 error \(code)")
    }

    /// Whether the item has ended, and libxml2 has no further data.
    var isFinished: Bool { state.pointee.depth == 1 && state.pointee.finishedItems == 1 && hasTakenAll }

    /// Whether libxml2 has processed all input: it keeps text and incomplete tags for the next piece, and the state of
    /// a CDATA section. After an item's end, these would become the beginning of the next item.
    private var hasTakenAll: Bool {
        guard let context = state.pointee.context, let input = context.pointee.input else { return false }
        return input.pointee.cur == input.pointee.end && context.pointee.instate == XML_PARSER_CONTENT
    }

    // MARK: Callbacks

    private static func refuse(_ data: UnsafeMutableRawPointer?, _ code: Int, _ message: String) {
        guard let state = state(data) else { return }
        if state.pointee.failure == nil { state.pointee.failure = StanzaParser.Failure(code: code, message: message) }
        if let context = state.pointee.context { xmlStopParser(context) }
    }

    private static let tooWide = "namespaces that would be many times as long as the item, spelled out at each element"

    private static func begin(
        _ state: UnsafeMutablePointer<State>,
        _ name: UnsafePointer<xmlChar>,
        _ uri: UnsafePointer<xmlChar>?,
        _ attributeCount: Int,
        _ values: UnsafeMutablePointer<UnsafePointer<xmlChar>?>?
    ) {
        state.pointee.depth &+= 1
        guard state.pointee.depth > 1, state.pointee.isFilling else { return }
        guard !state.pointee.contents.isTooWide else { return refuse(state, 0, tooWide) }
        let (uriRange, namespace) = state.pointee.resolve(uri)
        let nameRange = state.pointee.contents.append(span(name, length(name)))
        state.pointee.contents.begin(name: nameRange, uri: uriRange, namespace: namespace)
        guard let values else { return }
        for index in 0..<attributeCount {
            // Each attribute has five pointers: local name, prefix, URI, value, and end of the value (not terminated).
            let entry = values + index &* 5
            guard let name = entry[0], let start = entry[3], let end = entry[4] else { continue }
            let (uriRange, namespace) = state.pointee.resolve(entry[2])
            let nameRange = state.pointee.contents.append(span(name, length(name)))
            let value = state.pointee.contents.append(span(start, max(0, end - start)))
            state.pointee.contents.addAttribute(
                ElementArena.Attribute(name: nameRange, uri: uriRange, value: value, namespace: namespace)
            )
        }
    }

    private static func end(_ state: UnsafeMutablePointer<State>) {
        state.pointee.depth &-= 1
        guard state.pointee.depth >= 1 else { return }
        if state.pointee.isFilling { state.pointee.contents.end() }
        if state.pointee.depth == 1 { state.pointee.finishedItems &+= 1 }
    }

    private static func characters(
        _ state: UnsafeMutablePointer<State>,
        _ text: UnsafePointer<xmlChar>,
        _ count: Int
    ) {
        guard state.pointee.depth > 1 else { return refuse(state, 0, "text outside the element") }
        // A CDATA section may be empty; that does not count as text.
        if count > 0, state.pointee.isFilling { state.pointee.contents.addText(span(text, count)) }
    }

    /// Handles a CDATA section, or a piece of one. libxml2's push parser does not convert the line ends in it (XML 1.0
    /// §2.11 requires a line feed for each).
    private static func section(_ state: UnsafeMutablePointer<State>, _ text: UnsafePointer<xmlChar>, _ count: Int) {
        var start = 0
        for index in 0..<count where text[index] == 0x0D {
            characters(state, text + start, index &- start)
            // The byte after the last one is also readable: a bracket of `]]>`, or the beginning of the next piece.
            if text[index &+ 1] != 0x0A { withUnsafePointer(to: 0x0A) { characters(state, $0, 1) } }
            start = index &+ 1
        }
        characters(state, text + start, count &- start)
    }

    /// Returns bytes of libxml2, valid during the callback.
    @_lifetime(immortal)
    private static func span(_ text: UnsafePointer<xmlChar>, _ count: Int) -> Span<UInt8> {
        let span = UnsafeBufferPointer(start: text, count: count).span
        return _overrideLifetime(span, copying: ())
    }

    private static func length(_ text: UnsafePointer<xmlChar>) -> Int {
        var count = 0
        while text[count] != 0 { count &+= 1 }
        return count
    }

    private static func state(_ data: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<State>? {
        data?.assumingMemoryBound(to: State.self)
    }

    private static var handler: xmlSAXHandler {
        var handler = xmlSAXHandler()
        handler.initialized = UInt32(XML_SAX2_MAGIC)
        handler.startElementNs = { data, name, _, uri, _, _, attributeCount, _, values in
            guard let state = ParserContext.state(data), let name else { return }
            ParserContext.begin(state, name, uri, Int(attributeCount), values)
        }
        handler.endElementNs = { data, _, _, _ in
            guard let state = ParserContext.state(data) else { return }
            ParserContext.end(state)
        }
        handler.characters = { data, text, count in
            guard let state = ParserContext.state(data), let text else { return }
            ParserContext.characters(state, text, Int(count))
        }
        handler.ignorableWhitespace = handler.characters
        handler.cdataBlock = { data, text, count in
            guard let state = ParserContext.state(data), let text else { return }
            ParserContext.section(state, text, Int(count))
        }
        handler.internalSubset = { data, _, _, _ in ParserContext.refuse(data, 0, "a document type declaration") }
        handler.comment = { data, _ in ParserContext.refuse(data, 0, "a comment") }
        handler.processingInstruction = { data, _, _ in ParserContext.refuse(data, 0, "a processing instruction") }
        handler.serror = { data, error in
            guard let error else { return }
            // Level 2 errors leave the document "well-formed" for libxml2, such as an unbound prefix. But a namespace
            // name need not be a URI (Namespaces in XML 1.0 §2.2 compares it as a string).
            let isFatal = error.pointee.level.rawValue >= XML_ERR_ERROR.rawValue
            guard isFatal, error.pointee.code != XML_WAR_NS_URI.rawValue else { return }
            var message = error.pointee.message.map { String(cString: $0) } ?? ""
            while message.hasSuffix("\n") { message.removeLast() }
            ParserContext.refuse(data, Int(error.pointee.code), message)
        }
        return handler
    }
}
