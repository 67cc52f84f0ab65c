internal import TapRecord
internal import XMPPCore

/// A stanza that a script expects, with its wildcards.
///
/// Not strict: each attribute and each child expected must be there; others do not count, nor does order. Strict: the same
/// attributes, the same children in the same order. An element of the stream's own namespace is not strict, one of another
/// namespace is, and so is what it holds; `scansion:strict="true|false"` overrides that for an element and what it holds.
/// Text counts where the script has some, without the white space at its ends.
public struct ExpectedElement: Sendable, Hashable {
    /// What a value must be.
    enum Value: Sendable, Hashable {
        /// `{scansion:any}`: there, and anything.
        case any
        /// `{scansion:capture:NAME}`: anything at the first use of the name, then the same.
        case capture(String)
        /// This, once its variables have their values.
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
    /// Nil where the script has none.
    var text: Value?
    var children: [ExpectedElement] = []

    /// Compares a received stanza, and captures values if it is the expected one.
    ///
    /// - Returns: The first difference; nil where there is none.
    func difference(_ element: Element, _ values: inout ScriptValues) -> ScriptDifference? {
        var captured = values
        if let difference = compare(element, path: "", &captured) { return difference }
        values = captured
        return nil
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

    /// Each expected child takes the first that it equals and no other has taken.
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
    /// What was expected, for people, where `value` is something else; nil where it is not.
    fileprivate func mismatch(_ value: String?, _ values: inout ScriptValues) -> String? {
        switch self {
        case .any: return value == nil ? "any value" : nil
        case .capture(let name):
            guard let value else { return "any value" }
            if let captured = values.captures[name] {
                return captured == value ? nil : "\"\(captured)\", captured as \(name)"
            }
            values.captures[name] = value
            return nil
        case .text(let text):
            let wanted = String(decoding: text.bytes(values, isXML: false), as: UTF8.self)
            return wanted == value ? nil : "\"\(wanted)\""
        }
    }
}

/// Where a received stanza is not the expected one.
public struct ScriptDifference: Sendable, Hashable, CustomStringConvertible {
    /// Names from the stanza to the place: `iq/query/@ver`.
    public var path: String
    /// What was expected, for people; nil where nothing was.
    public var expected: String?
    /// What was received; nil where nothing was.
    public var received: String?

    /// One clause: `message/body/text(): expected "Hi", received "Ho"`.
    public var description: String {
        let isElement = received?.hasPrefix("<") ?? false
        let found = received.map { isElement ? $0 : "\"\($0)\"" }
        let words =
            switch (expected, found) {
            case (let expected?, let found?): "expected \(expected), received \(found)"
            case (let expected?, nil): "expected \(expected), which is missing"
            default: "unexpected \(found ?? "")"
            }
        return LineBuffer.escaped("\(path): \(words)")
    }
}
