internal import TapRecord
internal import XMPPCore

// How reports name an element and compare its text.
extension Element {
    /// An empty element of the name and, where it is not the client's stream's, the namespace: `<query xmlns='…'/>`.
    var label: String { Self.label(name, namespaceURI) }

    static func label(_ name: String, _ namespace: String) -> String {
        namespace == Namespace.client.uri.description ? "<\(name)/>" : "<\(name) xmlns='\(namespace)'/>"
    }
}

extension String {
    /// Without the white space of XML at its ends.
    var trimmingSpace: Substring {
        func isSpace(_ character: Character) -> Bool { character == "\r\n" || " \t\n\r".contains(character) }
        let rest = drop(while: isSpace)
        guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return rest[...last]
    }
}
