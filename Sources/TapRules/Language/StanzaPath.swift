internal import XMPPCore

/// A path into a stanza in mod_firewall's syntax: `{namespace}name/name`, then `#` for the text of the last element or
/// `@name` for an attribute.
///
/// A name without a namespace is in the namespace of the parent element. An empty name matches any element.
package struct StanzaPath: Sendable, Hashable {
    struct Step: Sendable, Hashable {
        /// The element name; nil matches any name.
        var name: [UInt8]?
        /// The namespace; nil means the namespace of the parent element, or any namespace if ``isInAny``.
        var namespace: NamespaceKey?
        /// Whether a step without a namespace matches any namespace.
        var isInAny = false

        func matches(_ child: Element, in parent: Element) -> Bool {
            if let name, !child.isNamed(name) { return false }
            return namespace.map { child.isIn($0) } ?? (isInAny || child.isInNamespace(of: parent))
        }
    }

    enum End: Sendable, Hashable {
        case element
        case text
        case attribute([UInt8], NamespaceKey)
    }

    /// The value at the end of a path.
    enum Value {
        case element(Element)
        case bytes([UInt8])
    }

    var steps: [Step] = []
    var end = End.element
    /// The path as written.
    let source: String

    /// Whether the path ends at a text or an attribute.
    var isText: Bool { end != .element }

    /// Parses a path.
    ///
    /// - Throws: ``PathFault`` if the path is invalid.
    init(_ source: String) throws(PathFault) {
        self.source = source
        var rest = source[...]
        guard !rest.isEmpty else { throw PathFault(message: "the path is empty") }
        while true {
            if rest.first == "@" {
                end = try Self.attribute(rest.dropFirst())
                return
            }
            var step = Step()
            if rest.first == "{" {
                guard let close = rest.firstIndex(of: "}") else { throw PathFault(message: "\"{\" without \"}\"") }
                step.namespace = NamespaceKey(uri: Array(rest[..<close].dropFirst().utf8))
                rest = rest[rest.index(after: close)...]
            }
            let name = rest.prefix { !"@/#".contains($0) }
            rest = rest[name.endIndex...]
            if !name.isEmpty {
                guard !name.contains(where: { $0.isWhitespace || "{}<>='\"&".contains($0) }) else {
                    throw PathFault(message: "\"\(name)\" is not an element name")
                }
                step.name = Array(name.utf8)
            }
            steps.append(step)
            switch rest.first {
            case nil: return
            case "#":
                guard rest.count == 1 else { throw PathFault(message: "\"#\" must be the end of a path") }
                end = .text
                return
            case "/": rest = rest.dropFirst()
            default: break
            }
            if rest.isEmpty { throw PathFault(message: "\"/\" at the end") }
        }
    }

    /// The path, changed so that names without a namespace match any namespace.
    var inAnyNamespace: StanzaPath {
        var path = self
        for index in path.steps.indices { path.steps[index].isInAny = true }
        return path
    }

    /// The reason why a text is not a path.
    struct PathFault: Error { var message: String }

    private static func attribute(_ text: Substring) throws(PathFault) -> End {
        var name = text
        var uri = ""
        if text.first == "{", let close = text.firstIndex(of: "}") {
            uri = String(text[..<close].dropFirst())
            name = text[text.index(after: close)...]
        } else if text.hasPrefix("xml:") {
            uri = Namespace.xml.uri.description
            name = text.dropFirst(4)
        }
        guard !name.isEmpty, !name.contains(where: { $0.isWhitespace || "{}<>='\"&/#@:".contains($0) }) else {
            throw PathFault(message: "\"@\(text)\" is not an attribute")
        }
        return .attribute(Array(name.utf8), NamespaceKey(uri: Array(uri.utf8)))
    }

    /// Returns the value at the path; nil if there is none. Takes the first matching element at each step, as in
    /// mod_firewall.
    func find(in stanza: Element) -> Value? {
        var element = stanza
        for step in steps {
            guard let child = element.firstChild(where: { step.matches($0, in: element) }) else { return nil }
            element = child
        }
        switch end {
        case .element: return .element(element)
        case .text: return element.plainText.map { .bytes($0) }
        case .attribute(let name, let namespace):
            return element.attribute(named: name, in: namespace).map { .bytes($0) }
        }
    }

    /// Returns the text at the path; nil if there is none or the path ends at an element.
    func text(in stanza: Element) -> [UInt8]? {
        if case .bytes(let bytes) = find(in: stanza) { return bytes }
        return nil
    }
}

extension Element {
    /// The text of an element without children; nil if it has child elements.
    var plainText: [UInt8]? {
        guard firstChild == nil else { return nil }
        var text: [UInt8] = []
        forEachText { text.append($0) }
        return text
    }
}
