/// Appends XML to a buffer of bytes: start tags, attributes, text, end tags, with every value escaped.
///
///     var xml = XMLWriter()
///     xml.element("iq", ["type": "result", "id": id, "to": address]) {
///         $0.element("query", .roster) {
///             $0.element("item", ["jid": "juliet@example.org", "name": name])
///         }
///     }
///     send(xml.take())
///
/// The output parses back to exactly the given values. TAB, LF and CR in an attribute and CR in text are written as
/// character references, as is `>` after `]]`. A character that XML 1.0 cannot represent is replaced by U+FFFD and
/// counted in ``replacedCharacters``. Attributes are quoted with `'`, as in the examples of the RFCs, which leaves the
/// XML readable inside JSON.
///
/// Names are not escaped: take them from constants, or from parsed XML.
package struct XMLWriter: Sendable {
    /// The pending output; it includes an unfinished start tag.
    package private(set) var bytes: [UInt8] = []

    /// Number of characters that were replaced by U+FFFD because XML cannot represent them.
    package private(set) var replacedCharacters = 0

    /// The names of the open elements, outermost first.
    private var open: [String] = []

    /// Whether the innermost element's start tag still needs its `>`.
    private var isInStartTag = false

    /// Number of `]` at the end of the text so far: 0, 1, or 2 for two or more.
    private var brackets = 0

    /// Creates an empty writer with space for this number of bytes.
    package init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    /// Returns the bytes that `content` writes.
    package static func bytes(_ content: (inout XMLWriter) -> Void) -> [UInt8] {
        var writer = XMLWriter()
        content(&writer)
        return writer.take()
    }

    // MARK: Elements

    /// Writes one element with all its contents.
    ///
    /// - Parameters:
    ///   - name: The name, with its prefix if any.
    ///   - xmlns: The default namespace to declare, or `nil` to stay in the parent's.
    ///   - attributes: In this order; those with the value `nil` are omitted.
    ///   - content: Writes text and child elements.
    package mutating func element(
        _ name: String,
        xmlns: String? = nil,
        _ attributes: KeyValuePairs<String, String?> = [:],
        content: (inout XMLWriter) -> Void = { _ in }
    ) {
        start(name, xmlns: xmlns, attributes)
        content(&self)
        end()
    }

    /// Writes one element that contains only text; nothing if `text` is `nil`.
    package mutating func element(
        _ name: String,
        xmlns: String? = nil,
        _ attributes: KeyValuePairs<String, String?> = [:],
        text: String?
    ) {
        guard let text else { return }
        element(name, xmlns: xmlns, attributes) { $0.text(text) }
    }

    /// Writes one element in a known namespace, and declares that namespace.
    package mutating func element(
        _ name: String,
        _ namespace: Namespace,
        _ attributes: KeyValuePairs<String, String?> = [:],
        content: (inout XMLWriter) -> Void = { _ in }
    ) {
        element(name, xmlns: namespace.uri.description, attributes, content: content)
    }

    /// Writes one element that contains only text, and declares its namespace; nothing if `text` is `nil`.
    package mutating func element(
        _ name: String,
        _ namespace: Namespace,
        _ attributes: KeyValuePairs<String, String?> = [:],
        text: String?
    ) {
        element(name, xmlns: namespace.uri.description, attributes, text: text)
    }

    /// Opens an element. ``end()`` closes it.
    package mutating func start(
        _ name: String,
        xmlns: String? = nil,
        _ attributes: KeyValuePairs<String, String?> = [:]
    ) {
        finishStartTag()
        bytes.append(UInt8(ascii: "<"))
        bytes.append(contentsOf: name.utf8)
        open.append(name)
        isInStartTag = true
        if let xmlns { attribute("xmlns", xmlns) }
        for (name, value) in attributes {
            if let value { attribute(name, value) }
        }
    }

    /// Adds an attribute to the last opened element, before any content is written.
    package mutating func attribute(_ name: String, _ value: String) {
        assert(isInStartTag, "attribute \(name) comes after the content of its element")
        guard isInStartTag else { return }
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: "="))
        bytes.append(UInt8(ascii: "'"))
        self.escape(value, in: .attribute)
        bytes.append(UInt8(ascii: "'"))
    }

    /// Adds character data to the open element.
    package mutating func text(_ text: String) {
        guard !text.isEmpty else { return }
        finishStartTag()
        self.escape(text, in: .text)
    }

    /// Closes the innermost open element; one without content becomes an empty-element tag.
    package mutating func end() {
        guard let name = open.popLast() else { return assertionFailure("no element is open") }
        if isInStartTag {
            isInStartTag = false
            bytes.append(contentsOf: "/>".utf8)
        } else {
            bytes.append(contentsOf: "</".utf8)
            bytes.append(contentsOf: name.utf8)
            bytes.append(UInt8(ascii: ">"))
        }
        brackets = 0
    }

    /// Appends bytes unchanged: XML that was checked before, such as a relayed stanza.
    package mutating func verbatim(_ xml: some Sequence<UInt8>) {
        finishStartTag()
        bytes.append(contentsOf: xml)
    }

    /// Returns the output and empties the buffer.
    ///
    /// Elements may be open: a stream header is taken while its element stays open until the end of the stream.
    package mutating func take() -> [UInt8] {
        finishStartTag()
        defer { bytes.removeAll() }
        return bytes
    }

    private mutating func finishStartTag() {
        guard isInStartTag else { return }
        isInStartTag = false
        brackets = 0
        bytes.append(UInt8(ascii: ">"))
    }

    // MARK: Escaping

    private enum Place { case text, attribute }

    private mutating func escape(_ value: String, in place: Place) {
        var value = value
        value.makeContiguousUTF8()
        escape(value.utf8.span, in: place)
    }

    /// Appends text with escapes. Text that needs no escape, which is nearly all text, is copied in blocks.
    private mutating func escape(_ source: Span<UInt8>, in place: Place) {
        // The byte that ends a block, in addition to `<`, `&`, control characters and bytes beyond ASCII.
        let stop = place == .text ? UInt8(ascii: "]") : UInt8(ascii: "'")
        var copied = 0
        var position = 0
        while position < source.count {
            // After `]`, a `>` may need an escape.
            if brackets == 0 || place == .attribute {
                position = source.skipPlain(from: position, quote: stop)
                guard position < source.count else { break }
            }
            guard let escape = self.escape(at: position, of: source, in: place) else {
                position += 1
                continue
            }
            bytes.append(source.extracting(copied..<position))
            bytes.append(escape.text)
            position += escape.length
            copied = position
        }
        bytes.append(source.extracting(copied..<source.count))
    }

    /// Returns the replacement of the character at `position`, and the number of bytes of that character.
    @inline(__always)
    private mutating func escape(
        at position: Int,
        of source: Span<UInt8>,
        in place: Place
    ) -> (text: StaticString, length: Int)? {
        let byte = source[position]
        if place == .text {
            let before = brackets
            brackets = byte == UInt8(ascii: "]") ? min(before + 1, 2) : 0
            if byte == UInt8(ascii: ">"), before == 2 { return ("&gt;", 1) }
        }
        return switch byte {
        case UInt8(ascii: "&"): ("&amp;", 1)
        case UInt8(ascii: "<"): ("&lt;", 1)
        case UInt8(ascii: "'") where place == .attribute: ("&apos;", 1)
        case UInt8(ascii: "\t") where place == .attribute: ("&#9;", 1)
        case UInt8(ascii: "\n") where place == .attribute: ("&#10;", 1)
        case UInt8(ascii: "\r"): ("&#13;", 1)
        case UInt8(ascii: "\t"), UInt8(ascii: "\n"): nil
        case 0..<0x20: replacement(length: 1)
        // U+FFFE and U+FFFF are the only characters outside C0 that a Swift string can contain and XML cannot.
        case 0xef where position + 2 < source.count && source[position + 1] == 0xbf && source[position + 2] >= 0xbe:
            replacement(length: 3)
        default: nil
        }
    }

    private mutating func replacement(length: Int) -> (text: StaticString, length: Int) {
        replacedCharacters += 1
        return ("\u{fffd}", length)
    }
}

extension XMLWriter {
    /// Writes a parsed element with all its contents, so that it parses back to an equal one.
    ///
    /// Namespaces are declared as default namespaces at each change; a prefix appears only on attributes that need one.
    /// Prefixes of the original are not kept: content that names prefixes in its text or values loses their meaning.
    ///
    /// - Parameters:
    ///   - element: The element to write.
    ///   - inherited: The default namespace at that point; in a stream, the stream's content namespace.
    ///   - changes: Attributes without a prefix to set, or to omit if the value is `nil`.
    package mutating func element(
        _ element: Element,
        inheriting inherited: String,
        setting changes: KeyValuePairs<String, String?> = [:]
    ) {
        write(element.arena, element.index, declares: element.namespaceURI != inherited, changes)
    }

    /// Writes the element at an index, with or without declaring its namespace.
    private mutating func write(
        _ arena: ElementArena,
        _ index: Int,
        declares: Bool,
        _ changes: KeyValuePairs<String, String?> = [:]
    ) {
        let node = arena.node(index)
        begin(arena, node, declares: declares, changes)
        var child = index + 1
        while child < Int(node.end) {
            let inner = arena.node(child)
            if inner.isText {
                text(arena.bytes(inner.name).span)
            } else {
                let isInherited =
                    inner.namespace == node.namespace
                    && (inner.namespace != .other || arena.bytes(inner.uri).span.equals(arena.bytes(node.uri).span))
                write(arena, child, declares: !isInherited)
            }
            child = max(Int(inner.end), child + 1)
        }
        if isInStartTag {
            isInStartTag = false
            bytes.append("/>")
        } else {
            bytes.append("</")
            bytes.append(arena.bytes(node.name).span)
            bytes.append(UInt8(ascii: ">"))
        }
        brackets = 0
    }

    /// Writes the start tag of an element except for its end.
    private mutating func begin(
        _ arena: ElementArena,
        _ node: ElementArena.Node,
        declares: Bool,
        _ changes: KeyValuePairs<String, String?>
    ) {
        finishStartTag()
        bytes.append(UInt8(ascii: "<"))
        bytes.append(arena.bytes(node.name).span)
        isInStartTag = true
        if declares { attribute("xmlns", uri: node.namespace, arena.bytes(node.uri).span) }
        var prefixes = 0
        let first = Int(node.firstAttribute)
        for position in first..<first + Int(node.attributeCount) {
            let attribute = arena.attribute(position)
            let name = arena.bytes(attribute.name).span
            switch attribute.namespace {
            case .none:
                if changes.contains(where: { name.equals($0.key.utf8.span) }) { continue }
                bytes.append(" ")
            case .xml: bytes.append(" xml:")
            default:
                self.attribute("xmlns:ns\(prefixes)", uri: attribute.namespace, arena.bytes(attribute.uri).span)
                bytes.append(contentsOf: " ns\(prefixes):".utf8)
                prefixes += 1
            }
            bytes.append(name)
            value(arena.bytes(attribute.value).span)
        }
        for (name, value) in changes {
            if let value { self.attribute(name, value) }
        }
    }

    private mutating func attribute(_ name: String, uri namespace: Namespace, _ uri: Span<UInt8>) {
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: name.utf8)
        if namespace == .other { value(uri) } else { value(namespace.uri.description.utf8.span) }
    }

    private mutating func value(_ value: Span<UInt8>) {
        bytes.append("='")
        escape(value, in: .attribute)
        bytes.append(UInt8(ascii: "'"))
    }

    private mutating func text(_ text: Span<UInt8>) {
        guard !text.isEmpty else { return }
        finishStartTag()
        escape(text, in: .text)
    }

    /// Opens an element like ``element(_:inheriting:setting:)``, without its contents. ``end()`` closes it.
    package mutating func start(
        _ element: Element,
        inheriting inherited: String,
        setting changes: KeyValuePairs<String, String?> = [:]
    ) {
        begin(
            element.arena,
            element.arena.node(element.index),
            declares: element.namespaceURI != inherited,
            changes
        )
        open.append(element.name)
    }
}
