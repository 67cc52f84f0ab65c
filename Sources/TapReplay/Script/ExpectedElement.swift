internal import TapRecord
internal import XMPPCore

/// A stanza that a script expects, with wildcards.
///
/// An element is either strict or not. If it is not strict, each expected attribute and child must be present, in any
/// order; others are ignored. If it is strict, it must have exactly the expected attributes, and the expected children
/// in order.
///
/// An element in the stream's namespace is not strict; one in another namespace is strict, with its descendants.
/// `scansion:strict="true|false"` overrides this for an element and its descendants. Text is compared if the script
/// contains any, without leading and trailing white space.
package struct ExpectedElement: Sendable, Hashable {
    /// An expected value.
    enum Value: Sendable, Hashable {
        /// `{scansion:any}`: present, with any value.
        case any
        /// `{scansion:capture:NAME}`: present, with any value, which is stored under the name.
        case capture(String)
        /// This text, with its variables substituted.
        case text(ScriptText)
    }

    struct Attribute: Sendable, Hashable {
        var namespace: String
        var name: String
        var value: Value
    }

    var name: String
    var namespace: String
    var isStrict: Bool
    var attributes: [Attribute] = []
    /// The expected text; nil if the script contains none.
    var text: Value?
    var children: [ExpectedElement] = []

    /// Compares a received stanza, and captures values if it matches.
    ///
    /// - Returns: The first difference; nil if the stanza matches.
    func difference(_ element: Element, _ values: inout ScriptValues) -> ScriptDifference? {
        var captured = values
        if let difference = compare(element, path: "", &captured) { return difference }
        values = captured
        return nil
    }

    /// Returns whether a received stanza matches.
    func matches(_ element: Element, _ values: ScriptValues) -> Bool {
        var values = values
        return difference(element, &values) == nil
    }

    /// Accepts any value of an attribute of the stanza, and captures it under a name.
    mutating func capture(_ attribute: String, as name: String) {
        for index in attributes.indices where attributes[index].name == attribute && attributes[index].namespace.isEmpty
        {
            attributes[index].value = .capture(name)
        }
    }

    /// Returns a stanza with the elements and the literal attributes of this one, without text; nil if it cannot be
    /// parsed.
    func outline(_ values: ScriptValues) -> Element? {
        var xml = XMLWriter()
        write(to: &xml, parent: Namespace.client.uri.description, values)
        return try? StanzaParser().parse(xml.take().span, root: StanzaForm.clientDeclarations)
    }

    private func write(to xml: inout XMLWriter, parent: String, _ values: ScriptValues) {
        xml.start(name)
        if namespace != parent { xml.attribute("xmlns", namespace) }
        for attribute in attributes where attribute.namespace.isEmpty {
            guard case .text(let text) = attribute.value else { continue }
            xml.attribute(attribute.name, String(decoding: text.bytes(values, isXML: false), as: UTF8.self))
        }
        for child in children { child.write(to: &xml, parent: namespace, values) }
        xml.end()
    }

    private func compare(_ element: Element, path: String, _ values: inout ScriptValues) -> ScriptDifference? {
        let path = path.isEmpty ? name : "\(path)/\(name)"
        guard element.name == name, element.namespaceURI == namespace else {
            return ScriptDifference(path: path, expected: label, received: element.label)
        }
        let found = element.attributes
        for attribute in attributes {
            let value = found.first { $0.name == attribute.name && $0.namespaceURI == attribute.namespace }?.value
            guard let wanted = attribute.value.mismatch(value, &values) else { continue }
            return ScriptDifference(path: "\(path)/@\(attribute.name)", expected: wanted, received: value)
        }
        if isStrict {
            for other in found
            where !attributes.contains(where: { $0.name == other.name && $0.namespace == other.namespaceURI }) {
                return ScriptDifference(path: "\(path)/@\(other.name)", expected: nil, received: other.value)
            }
        }
        if let wanted = text {
            let received = String(element.text.trimmingSpace)
            if let wanted = wanted.mismatch(received, &values) {
                return ScriptDifference(path: "\(path)/text()", expected: wanted, received: received)
            }
        }
        return isStrict ? compareInOrder(element, path, &values) : compareInAnyOrder(element, path, &values)
    }

    private func compareInOrder(_ element: Element, _ path: String, _ values: inout ScriptValues) -> ScriptDifference? {
        let found = element.children
        for (child, other) in zip(children, found) {
            if let difference = child.compare(other, path: path, &values) { return difference }
        }
        if children.count > found.count {
            return ScriptDifference(path: path, expected: children[found.count].label, received: nil)
        }
        if found.count > children.count {
            return ScriptDifference(path: path, expected: nil, received: found[children.count].label)
        }
        return nil
    }

    /// Compares children in any order: each expected child is matched with the first remaining child that fits.
    private func compareInAnyOrder(
        _ element: Element,
        _ path: String,
        _ values: inout ScriptValues
    ) -> ScriptDifference? {
        var free = element.children
        for child in children {
            var nearest: ScriptDifference?
            var taken: Int?
            for (index, other) in free.enumerated() where child.isNamed(as: other) {
                var captured = values
                guard let difference = child.compare(other, path: path, &captured) else {
                    values = captured
                    taken = index
                    break
                }
                nearest = nearest ?? difference
            }
            guard let taken else {
                return nearest ?? ScriptDifference(path: path, expected: child.label, received: nil)
            }
            free.remove(at: taken)
        }
        return nil
    }

    private func isNamed(as element: Element) -> Bool { element.name == name && element.namespaceURI == namespace }

    private var label: String { Element.label(name, namespace) }
}

extension ExpectedElement.Value {
    /// Returns a description of the expected value if `value` does not match; nil if it does.
    fileprivate func mismatch(_ value: String?, _ values: inout ScriptValues) -> String? {
        switch self {
        case .any: return value == nil ? "any value" : nil
        case .capture(let name):
            guard let value else { return "any value" }
            values.captures[name] = value
            return nil
        case .text(let text):
            let wanted = String(decoding: text.bytes(values, isXML: false), as: UTF8.self)
            return wanted == value ? nil : "\"\(wanted)\""
        }
    }
}

/// The first difference between a received stanza and the expected one.
package struct ScriptDifference: Sendable, Hashable, CustomStringConvertible {
    /// Element names from the stanza to the difference: `iq/query/@ver`.
    package var path: String
    /// The expected value or element, human-readable; nil if none was expected.
    package var expected: String?
    /// The received value or element; nil if there is none.
    package var received: String?

    /// The difference as a clause: `message/body/text(): expected "Hi", received "Ho"`.
    package var description: String {
        let isElement = received?.hasPrefix("<") ?? false
        let found = received.map { isElement ? $0 : "\"\($0)\"" }
        let text =
            switch (expected, found) {
            case (let expected?, let found?): "expected \(expected), received \(found)"
            case (let expected?, nil): "expected \(expected), which is missing"
            default: "unexpected \(found ?? "")"
            }
        return LineBuffer.escaped("\(path): \(text)")
    }
}
