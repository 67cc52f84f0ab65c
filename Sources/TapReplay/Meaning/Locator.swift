internal import XMPPCore

/// A place in items: `message/{urn:xmpp:sid:0}stanza-id/@id`.
///
/// Steps from the stanza inwards, separated by `/`; `**` stands for any number of elements. A step is a local name, `*` for
/// any. `{URI}` before it is its namespace; without one it is that of the step before, of the first step that of the stream's
/// content, after `**` any. What is meant of the last element is `@NAME` (an attribute, with `{URI}` or `xml:` if it has a
/// namespace), `text()`, or, with neither, the element itself.
public struct Locator: Sendable, Hashable {
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

    let steps: [Step]
    let target: Target
    /// As it was written.
    public let text: String

    /// What is wrong with a locator.
    public struct Fault: Error, Sendable, Hashable {
        /// Words for people.
        public let message: String
        /// Bytes before the mistake.
        public let offset: Int
    }

    /// Reads a locator.
    public init(_ text: String) throws(Fault) {
        var reader = Reader(text: Array(text.utf8))
        (steps, target) = try reader.read()
        self.text = text
    }

    /// Whether the elements of `path`, the stanza first, are where this locator leads.
    func matches(_ path: [Element]) -> Bool { Self.matches(steps[...], path[...]) }

    private static func matches(_ steps: ArraySlice<Step>, _ path: ArraySlice<Element>) -> Bool {
        guard let step = steps.last else { return path.isEmpty }
        switch step {
        case .element(let space, let name):
            guard let element = path.last, matches(element, space, name) else { return false }
            return matches(steps.dropLast(), path.dropLast())
        case .depth:
            // A locator that begins with `**` leaves nothing to be looked for.
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

    /// The namespace of the last element, where it is one of the table.
    var lastNamespace: Space {
        if case .element(let space, _) = steps.last { return space }
        return .any
    }
}

extension Locator {
    private struct Reader {
        let text: [UInt8]
        var index = 0

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
                guard index < text.count else {
                    if steps.last == .depth { throw fault("an element after \"**\"", at: index) }
                    return (steps, .element)
                }
                index += 1
            }
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

        /// What stands in braces; nil where none begin here.
        private mutating func uri() throws(Fault) -> [UInt8]? {
            guard index < text.count, text[index] == UInt8(ascii: "{") else { return nil }
            guard let end = text[index...].firstIndex(of: UInt8(ascii: "}")) else {
                throw fault("\"}\"", at: text.count)
            }
            defer { index = end + 1 }
            return Array(text[index + 1..<end])
        }

        /// All up to the next slash.
        private mutating func word() -> [UInt8] {
            let end = text[index...].firstIndex(of: UInt8(ascii: "/")) ?? text.count
            defer { index = end }
            return Array(text[index..<end])
        }

        private func fault(_ expected: String, at offset: Int) -> Fault {
            Fault(message: "expected \(expected)", offset: offset)
        }
    }
}

/// The path of a place, written as a ``Locator`` is: the namespace where it changes.
struct PlacePath {
    private(set) var text = ""
    private var namespace = ""

    /// The path of an item.
    init(_ element: Element) {
        if !element.isContent { text = "{\(element.namespaceURI)}" }
        text += element.name
        namespace = element.namespaceURI
    }

    /// The path of a child; `number` tells several of the same name apart, from 1.
    func child(_ element: Element, number: Int? = nil) -> PlacePath {
        var path = self
        path.text += "/"
        if element.namespaceURI != namespace { path.text += "{\(element.namespaceURI)}" }
        path.text += element.name
        if let number { path.text += "[\(number)]" }
        path.namespace = element.namespaceURI
        return path
    }

    /// The path of an attribute.
    func attribute(_ attribute: Element.Attribute) -> String {
        switch attribute.namespaceURI {
        case "": "\(text)/@\(attribute.name)"
        case Namespace.xml.uri.description: "\(text)/@xml:\(attribute.name)"
        case let uri: "\(text)/@{\(uri)}\(attribute.name)"
        }
    }

    /// The path of the text.
    var ofText: String { "\(text)/text()" }
}
