internal import XMPPCore

/// Attributes with a default value. A server may either write the default value or omit the attribute.
enum AttributeDefaults {
    private struct Entry {
        /// The namespace of the element; nil for the content namespace of the stream.
        let namespace: StaticString?
        let element: StaticString
        let attribute: StaticString
        let value: StaticString
    }

    private static let table: [Entry] = [
        // RFC 6121 §5.2.2
        Entry(namespace: nil, element: "message", attribute: "type", value: "normal"),
        // XEP-0004 §3.3
        Entry(namespace: "jabber:x:data", element: "field", attribute: "type", value: "text-single"),
        // XEP-0048, schema
        Entry(namespace: "storage:bookmarks", element: "conference", attribute: "autojoin", value: "false"),
        // XEP-0198 §3
        Entry(namespace: "urn:xmpp:sm:3", element: "enabled", attribute: "resume", value: "false"),
        // XEP-0313: a server either omits the attribute, or gives it this value.
        Entry(namespace: "urn:xmpp:mam:1", element: "fin", attribute: "complete", value: "false"),
        Entry(namespace: "urn:xmpp:mam:1", element: "fin", attribute: "stable", value: "true"),
        Entry(namespace: "urn:xmpp:mam:2", element: "fin", attribute: "complete", value: "false"),
        Entry(namespace: "urn:xmpp:mam:2", element: "fin", attribute: "stable", value: "true"),
        // XEP-0402, schema
        Entry(namespace: "urn:xmpp:bookmarks:1", element: "conference", attribute: "autojoin", value: "false"),
    ]

    /// Hashes of the attribute names and values in the table, as bit sets: they exclude most attributes quickly.
    private static let bits = table.reduce((names: UInt64(0), values: UInt64(0))) { bits, entry in
        (
            bits.names | 1 << bit(entry.attribute.utf8CodeUnitCount, entry.attribute.utf8Start[0]),
            bits.values | 1 << bit(entry.value.utf8CodeUnitCount, entry.value.utf8Start[0])
        )
    }

    private static func bit(_ count: Int, _ first: UInt8) -> UInt64 { UInt64(count &+ Int(first) &* 7) & 63 }

    /// Returns whether an attribute without a namespace has its default value.
    static func isDefault(_ name: Span<UInt8>, _ value: Span<UInt8>, of element: Element) -> Bool {
        // Shorter names, such as those of ids, have no default.
        guard name.count >= 4, !value.isEmpty, bits.names & 1 << bit(name.count, name[0]) != 0,
            bits.values & 1 << bit(value.count, value[0]) != 0
        else { return false }
        return table.contains { entry in
            guard name.equals(entry.attribute), value.equals(entry.value), element.isNamed(entry.element) else {
                return false
            }
            guard let namespace = entry.namespace else { return element.isContent }
            return element.withNamespaceURI { $0.equals(namespace) }
        }
    }
}
