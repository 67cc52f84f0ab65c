internal import TapRecord
internal import XMPPCore

// MARK: Names and text for reports
extension Element {
    /// The element's name as an empty tag, with the namespace unless it is `jabber:client`: `<query xmlns='…'/>`.
    var label: String { Self.label(name, namespaceURI) }

    static func label(_ name: String, _ namespace: String) -> String {
        namespace == Namespace.client.uri.description ? "<\(name)/>" : "<\(name) xmlns='\(namespace)'/>"
    }
}

extension String {
    /// The text without leading and trailing XML white space.
    var trimmingSpace: Substring {
        func isSpace(_ character: Character) -> Bool { character == "\r\n" || " \t\n\r".contains(character) }
        let rest = drop(while: isSpace)
        guard let last = rest.lastIndex(where: { !isSpace($0) }) else { return "" }
        return rest[...last]
    }
}
