/// An XML element of a parsed item: name, namespace, attributes, children and text, read in place.
///
/// An element refers to the flat storage of its item and keeps it alive; a copy costs one retain. Names are compared by
/// namespace and local name, never by prefix.
public struct Element: @unchecked Sendable {
    // Sendable because an arena does not change after an element was created from it (see ElementArena).
    let arena: ElementArena
    let index: Int

    private var node: ElementArena.Node { arena.node(index) }

    /// Local name.
    public var name: String { arena.text(node.name) }
    /// Namespace; ``Namespace/other`` if it is not in the table.
    package var namespace: Namespace { node.namespace }
    /// Namespace URI; empty for none.
    package var namespaceURI: String {
        let node = self.node
        return node.namespace == .other ? arena.text(node.uri) : node.namespace.uri.description
    }

    /// Returns whether the element has this name and namespace.
    package func matches(_ name: StaticString, _ namespace: Namespace) -> Bool {
        node.namespace == namespace && arena.equals(node.name, name)
    }

    /// Returns whether the local name is `name`, in any namespace.
    package func isNamed(_ name: StaticString) -> Bool { arena.equals(node.name, name) }

    /// Returns the value of the attribute `name` without a prefix; nil if it is absent.
    public func attribute(_ name: StaticString) -> String? { attribute(name, .none) }

    /// Returns the value of the attribute `name` of `namespace`; nil if it is absent.
    package func attribute(_ name: StaticString, _ namespace: Namespace) -> String? {
        value(of: name, namespace).map(arena.text)
    }

    /// Returns whether the attribute `name` without a prefix is present and equals `value`.
    package func attribute(_ name: StaticString, is value: StaticString) -> Bool {
        self.value(of: name, .none).map { arena.equals($0, value) } ?? false
    }

    /// An attribute with its namespace URI, empty for none.
    package struct Attribute: Sendable, Hashable {
        /// Namespace URI; empty for an attribute without a prefix.
        package var namespaceURI: String
        /// Local name.
        package var name: String
        /// The value, with references replaced and white space normalised.
        package var value: String
    }

    /// All attributes in document order, without namespace declarations.
    package var attributes: [Attribute] {
        attributeIndices.map { position in
            let attribute = arena.attribute(position)
            return Attribute(
                namespaceURI: attribute.namespace == .other
                    ? arena.text(attribute.uri) : attribute.namespace.uri.description,
                name: arena.text(attribute.name),
                value: arena.text(attribute.value)
            )
        }
    }

    private var attributeIndices: Range<Int> {
        let node = self.node
        return Int(node.firstAttribute)..<(Int(node.firstAttribute) &+ Int(node.attributeCount))
    }

    /// A part of an element's content.
    package enum Content: Sendable {
        case element(Element)
        case text(String)
    }

    /// Child elements and text, in order.
    package var contents: [Content] {
        var contents: [Content] = []
        forEachChild { index, isText in
            contents.append(
                isText ? .text(arena.text(arena.node(index).name)) : .element(Element(arena: arena, index: index))
            )
            return true
        }
        return contents
    }

    /// Child elements, in order.
    package var children: [Element] {
        var children: [Element] = []
        forEachElement { child in
            children.append(child)
            return true
        }
        return children
    }

    /// Calls `body` with each child element, in order, until it returns false.
    package func forEachElement(_ body: (Element) -> Bool) {
        forEachChild { index, isText in isText || body(Element(arena: arena, index: index)) }
    }

    /// The first child element; for an iq, its payload.
    package var firstChild: Element? { firstChild { _ in true } }

    /// Returns the first child `name` of `namespace`; nil if it is absent.
    package func child(_ name: StaticString, _ namespace: Namespace) -> Element? {
        firstChild { $0.matches(name, namespace) }
    }

    /// Returns the first child that `matches` accepts; nil if none matches.
    package func firstChild(where matches: (Element) -> Bool) -> Element? {
        var found: Element?
        forEachElement { child in
            if matches(child) { found = child }
            return found == nil
        }
        return found
    }

    /// Returns the children `name` of `namespace`.
    package func children(_ name: StaticString, _ namespace: Namespace) -> [Element] {
        children.filter { $0.matches(name, namespace) }
    }

    /// Number of child elements.
    package var elementCount: Int { count { _ in true } }

    /// The character data directly inside, joined.
    package var text: String {
        var text = ""
        forEachChild { index, isText in
            if isText { text += arena.text(arena.node(index).name) }
            return true
        }
        return text
    }

    /// Calls `body` with the bytes of each piece of the character data directly inside, in order, without creating a
    /// string.
    package func forEachText(_ body: (Span<UInt8>) -> Void) {
        forEachChild { index, isText in
            if isText { body(arena.bytes(arena.node(index).name).span) }
            return true
        }
    }

    /// Calls `body` with the bytes of the local name.
    package func withName<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome { body(arena.bytes(node.name).span) }

    /// Calls `body` with the bytes of the value of the attribute `name` without a prefix, if it is present.
    package func withAttribute(_ name: StaticString, _ body: (Span<UInt8>) -> Void) {
        if let value = value(of: name, .none) { body(arena.bytes(value).span) }
    }

    /// Calls `body` with each attribute, in document order, without creating strings: its local name, its namespace URI
    /// (empty for none), and its value.
    package func forEachAttribute(_ body: (_ name: Span<UInt8>, _ uri: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        for position in attributeIndices {
            let attribute = arena.attribute(position)
            let name = arena.bytes(attribute.name).span
            let value = arena.bytes(attribute.value).span
            switch attribute.namespace {
            case .none: body(name, Span(), value)
            case .other: body(name, arena.bytes(attribute.uri).span, value)
            case let known: known.withURI { body(name, $0, value) }
            }
        }
    }

    /// Calls `body` with the bytes of the namespace URI, which are empty without a namespace.
    package func withNamespaceURI<Outcome>(_ body: (Span<UInt8>) -> Outcome) -> Outcome {
        let node = self.node
        return node.namespace == .other ? body(arena.bytes(node.uri).span) : node.namespace.withURI(body)
    }

    private func value(of name: StaticString, _ namespace: Namespace) -> ByteRange? {
        for position in attributeIndices {
            let attribute = arena.attribute(position)
            if attribute.namespace == namespace, arena.equals(attribute.name, name) { return attribute.value }
        }
        return nil
    }

    /// Number of bytes of ``text`` in UTF-8, without creating it.
    package var textSize: Int {
        var size = 0
        forEachChild { index, isText in
            if isText { size += arena.node(index).name.count }
            return true
        }
        return size
    }

    /// Number of child elements `name` of `namespace`.
    package func count(_ name: StaticString, _ namespace: Namespace) -> Int { count { $0.matches(name, namespace) } }

    private func count(where isCounted: (Element) -> Bool) -> Int {
        var count = 0
        forEachElement { child in
            if isCounted(child) { count += 1 }
            return true
        }
        return count
    }

    /// Returns the text of the first child `name` of `namespace`; nil if it is absent.
    public func childText(_ name: StaticString, _ namespace: Namespace) -> String? {
        child(name, namespace)?.text
    }

    private func forEachChild(_ body: (_ index: Int, _ isText: Bool) -> Bool) {
        let end = Int(node.end)
        var position = index + 1
        while position < end {
            let child = arena.node(position)
            guard body(position, child.isText) else { return }
            position = max(Int(child.end), position + 1)
        }
    }
}

extension Element: Equatable {
    /// Returns whether both represent the same XML: names, attributes in any order, contents in order; prefixes are
    /// ignored.
    public static func == (left: Element, right: Element) -> Bool {
        guard left.name == right.name, left.namespaceURI == right.namespaceURI,
            Set(left.attributes) == Set(right.attributes)
        else { return false }
        let (leftContents, rightContents) = (left.contents, right.contents)
        guard leftContents.count == rightContents.count else { return false }
        return zip(leftContents, rightContents).allSatisfy { pair in
            switch pair {
            case (.element(let one), .element(let other)): one == other
            case (.text(let one), .text(let other)): one == other
            default: false
            }
        }
    }
}

/// A namespace to compare with: one of the table, or another URI.
package struct NamespaceKey: Sendable, Hashable {
    /// The namespace; ``Namespace/other`` if it is not in the table.
    package let namespace: Namespace
    /// The URI.
    package let uri: [UInt8]

    /// Creates the namespace with that URI; empty for none.
    package init(uri: [UInt8]) {
        namespace = Namespace(uri: uri.span)
        self.uri = uri
    }
}

// Lookups by names that are known only at run time, such as those of a rule.
extension Element {
    /// Returns whether the element is in a namespace.
    package func isIn(_ name: NamespaceKey) -> Bool {
        let node = arena.node(index)
        guard node.namespace == name.namespace else { return false }
        return node.namespace != .other || arena.bytes(node.uri).span.equals(name.uri.span)
    }

    /// Returns whether both elements are in the same namespace.
    package func isInNamespace(of other: Element) -> Bool {
        let (node, otherNode) = (arena.node(index), other.arena.node(other.index))
        guard node.namespace == otherNode.namespace else { return false }
        return node.namespace != .other || arena.bytes(node.uri).span.equals(other.arena.bytes(otherNode.uri).span)
    }

    /// Returns whether the local name is `name`, in any namespace.
    package func isNamed(_ name: [UInt8]) -> Bool { withName { $0.equals(name.span) } }

    /// Returns the bytes of the value of an attribute; nil if it is absent.
    package func attribute(named name: [UInt8], in namespace: NamespaceKey) -> [UInt8]? {
        let node = arena.node(index)
        for position in Int(node.firstAttribute)..<(Int(node.firstAttribute) &+ Int(node.attributeCount)) {
            let attribute = arena.attribute(position)
            guard attribute.namespace == namespace.namespace, arena.bytes(attribute.name).span.equals(name.span),
                attribute.namespace != .other || arena.bytes(attribute.uri).span.equals(namespace.uri.span)
            else { continue }
            return Array(arena.bytes(attribute.value))
        }
        return nil
    }
}
