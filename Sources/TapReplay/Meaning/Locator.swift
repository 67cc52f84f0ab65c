internal import XMPPCore

/// A path to a place in items: `message/{urn:xmpp:sid:0}stanza-id/@id`.
///
/// Steps lead from the stanza inwards and are separated by `/`; `**` matches any number of elements. A step is a local
/// name, or `*` for any name. `{URI}` before the name gives its namespace. Without it, the first step is in the
/// stream's content namespace, a step after `**` in any, and other steps in the namespace of the step before. The path
/// ends with `@NAME` for an attribute (with `{URI}` or `xml:` if it has a namespace), with `text()`, or with the
/// element itself.
///
/// Conditions in brackets after the first step select stanzas, as in XPath: `[@type=get]` by the value of an attribute,
/// `[not(@id)]` by a missing attribute, `[{URI}query]` by a child element.
package struct Locator: Sendable, Hashable {
    enum Name: Sendable, Hashable {
        case any
        case one([UInt8])
    }

    enum Space: Sendable, Hashable {
        case any
        case content
        case one(NamespaceKey)
    }

    enum Step: Sendable, Hashable {
        case element(Space, Name)
        /// Any number of elements.
        case depth
    }

    enum Target: Sendable, Hashable {
        case element
        case attribute(uri: [UInt8], name: [UInt8])
        case text
    }

    /// A condition for the stanza.
    enum Condition: Sendable, Hashable {
        case attribute(name: [UInt8], value: [UInt8])
        case missingAttribute([UInt8])
        case child(Space, Name)
    }

    let steps: [Step]
    let target: Target
    /// The conditions for the stanza; all must hold.
    let conditions: [Condition]
    /// The locator as it was written.
    package let text: String

    /// A syntax error in a locator.
    package struct Fault: Error, Sendable, Hashable {
        /// The human-readable message.
        package let message: String
        /// Offset of the error in bytes.
        package let offset: Int
    }

    /// Parses a locator.
    package init(_ text: String) throws(Fault) {
        var reader = Reader(text: Array(text.utf8))
        (steps, target) = try reader.read()
        conditions = reader.conditions
        self.text = text
    }

    /// Whether the path is a single step, which selects whole stanzas.
    var isOfStanza: Bool { steps.count == 1 && target == .element }

    /// Returns whether `path`, which starts with the stanza, leads to this place.
    func matches(_ path: [Element]) -> Bool {
        guard Self.matches(steps[...], path[...]) else { return false }
        return path.first.map(hasConditions) ?? true
    }

    /// Returns whether a stanza fulfils the conditions.
    func hasConditions(_ stanza: Element) -> Bool { conditions.allSatisfy { Self.holds($0, stanza) } }

    private static func holds(_ condition: Condition, _ stanza: Element) -> Bool {
        func has(_ wanted: [UInt8], _ isMeant: (Span<UInt8>) -> Bool) -> Bool {
            var found = false
            stanza.forEachAttribute { name, uri, value in
                if uri.isEmpty, name.equals(wanted.span) { found = isMeant(value) }
            }
            return found
        }
        switch condition {
        case .attribute(let name, let wanted): return has(name) { $0.equals(wanted.span) }
        case .missingAttribute(let name): return !has(name) { _ in true }
        case .child(let space, let name): return stanza.children.contains { matches($0, space, name) }
        }
    }

    private static func matches(_ steps: ArraySlice<Step>, _ path: ArraySlice<Element>) -> Bool {
        guard let step = steps.last else { return path.isEmpty }
        switch step {
        case .element(let space, let name):
            guard let element = path.last, matches(element, space, name) else { return false }
            return matches(steps.dropLast(), path.dropLast())
        case .depth:
            // A leading `**` matches any rest of the path.
            if steps.count == 1 { return true }
            var rest = path
            while true {
                if matches(steps.dropLast(), rest) { return true }
                guard rest.popLast() != nil else { return false }
            }
        }
    }

    private static func matches(_ element: Element, _ space: Space, _ name: Name) -> Bool {
        if case .one(let name) = name, !element.isNamed(name) { return false }
        return switch space {
        case .any: true
        case .content: element.isContent
        case .one(let key): element.isIn(key)
        }
    }

    /// The namespace of the last element.
    var lastNamespace: Space {
        if case .element(let space, _) = steps.last { return space }
        return .any
    }
}

extension Locator {
    private struct Reader {
        let text: [UInt8]
        var index = 0
        private(set) var conditions: [Condition] = []

        init(text: [UInt8]) { self.text = text }

        mutating func read() throws(Fault) -> ([Step], Target) {
            var steps: [Step] = []
            var space = Space.content
            while true {
                let start = index
                if index < text.count, text[index] == UInt8(ascii: "@") {
                    guard case .element = steps.last else { throw fault("an element before @", at: start) }
                    index += 1
                    return (steps, try attribute())
                }
                let uri = try self.uri()
                let name = word()
                guard !name.isEmpty else { throw fault("the name of an element, \"*\" or \"**\"", at: index) }
                if name.elementsEqual("text()".utf8), uri == nil, !steps.isEmpty {
                    guard index == text.count else { throw fault("nothing behind text()", at: index) }
                    return (steps, .text)
                }
                if name.elementsEqual("**".utf8), uri == nil {
                    if steps.last == .depth { throw fault("an element after \"**\"", at: start) }
                    steps.append(.depth)
                    space = .any
                } else {
                    guard !name.contains(where: { "@(){}".utf8.contains($0) }) else {
                        throw fault("the name of an element", at: start)
                    }
                    if let uri { space = uri.isEmpty ? .any : .one(NamespaceKey(uri: uri)) }
                    let isAny = name.elementsEqual("*".utf8)
                    steps.append(
                        .element(isAny && uri == nil && steps.isEmpty ? .content : space, isAny ? .any : .one(name))
                    )
                }
                try readConditions(isFirst: steps.count == 1)
                guard index < text.count else {
                    if steps.last == .depth { throw fault("an element after \"**\"", at: index) }
                    return (steps, .element)
                }
                index += 1
            }
        }

        /// Reads the conditions at this position; only the first step may have conditions.
        private mutating func readConditions(isFirst: Bool) throws(Fault) {
            while index < text.count, text[index] == UInt8(ascii: "[") {
                guard isFirst else { throw fault("a condition only after the first step", at: index) }
                index += 1
                conditions.append(try condition())
                guard index < text.count, text[index] == UInt8(ascii: "]") else { throw fault("\"]\"", at: index) }
                index += 1
            }
            guard index == text.count || text[index] == UInt8(ascii: "/") else { throw fault("\"/\"", at: index) }
        }

        private mutating func condition() throws(Fault) -> Condition {
            let start = index
            if text[index...].starts(with: "not(@".utf8) {
                index += "not(@".utf8.count
                let name = word(endingAt: ")]")
                guard !name.isEmpty, index < text.count, text[index] == UInt8(ascii: ")") else {
                    throw fault("not(@NAME)", at: start)
                }
                index += 1
                return .missingAttribute(name)
            }
            guard index < text.count, text[index] == UInt8(ascii: "@") else {
                let space = try self.uri().map { $0.isEmpty ? Space.any : .one(NamespaceKey(uri: $0)) } ?? .content
                let name = word(endingAt: "]")
                guard !name.isEmpty, !name.contains(where: { "@()=".utf8.contains($0) }) else {
                    throw fault("@NAME=VALUE, not(@NAME) or a child element", at: start)
                }
                return .child(space, name.elementsEqual("*".utf8) ? .any : .one(name))
            }
            index += 1
            let name = word(endingAt: "=]")
            guard !name.isEmpty, index < text.count, text[index] == UInt8(ascii: "=") else {
                throw fault("@NAME=VALUE", at: start)
            }
            index += 1
            return .attribute(name: name, value: word(endingAt: "]"))
        }

        private mutating func attribute() throws(Fault) -> Target {
            var uri = try self.uri() ?? []
            var name = word()
            if uri.isEmpty, name.starts(with: "xml:".utf8) {
                uri = Array(Namespace.xml.uri.description.utf8)
                name.removeFirst(4)
            }
            guard !name.isEmpty else { throw fault("the name of an attribute", at: index) }
            guard index == text.count else { throw fault("nothing after an attribute", at: index) }
            return .attribute(uri: uri, name: name)
        }

        /// Reads a namespace in braces; nil if there is none at this position.
        private mutating func uri() throws(Fault) -> [UInt8]? {
            guard index < text.count, text[index] == UInt8(ascii: "{") else { return nil }
            guard let end = text[index...].firstIndex(of: UInt8(ascii: "}")) else {
                throw fault("\"}\"", at: text.count)
            }
            defer { index = end + 1 }
            return Array(text[index + 1..<end])
        }

        /// Reads up to one of the given characters, or to the end.
        private mutating func word(endingAt ends: StaticString = "/[") -> [UInt8] {
            let ends = ends.description.utf8
            let end = text[index...].firstIndex { ends.contains($0) } ?? text.count
            defer { index = end }
            return Array(text[index..<end])
        }

        private func fault(_ expected: String, at offset: Int) -> Fault {
            Fault(message: "expected \(expected)", offset: offset)
        }
    }
}

/// The path of a place, in the syntax of a ``Locator``. The namespace is written only when it changes.
struct PlacePath {
    private(set) var text = ""
    private var namespace = ""

    /// Creates the path of an item.
    init(_ element: Element) {
        if !element.isContent { text = "{\(element.namespaceURI)}" }
        text += element.name
        namespace = element.namespaceURI
    }

    /// Returns the path of a child; `number`, from 1, identifies it among siblings of the same name.
    func child(_ element: Element, number: Int? = nil) -> PlacePath {
        var path = self
        path.text += "/"
        if element.namespaceURI != namespace { path.text += "{\(element.namespaceURI)}" }
        path.text += element.name
        if let number { path.text += "[\(number)]" }
        path.namespace = element.namespaceURI
        return path
    }

    /// Returns the path of an attribute.
    func attribute(_ attribute: Element.Attribute) -> String {
        switch attribute.namespaceURI {
        case "": "\(text)/@\(attribute.name)"
        case Namespace.xml.uri.description: "\(text)/@xml:\(attribute.name)"
        case let uri: "\(text)/@{\(uri)}\(attribute.name)"
        }
    }

    /// The path of the element's text.
    var ofText: String { "\(text)/text()" }
}
