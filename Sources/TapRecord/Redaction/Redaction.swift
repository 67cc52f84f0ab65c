package import XMPPCore

/// The result of redacting an event.
package enum Disclosure: Sendable {
    /// The bytes unchanged: they contain no secret, or the user wants to see secrets.
    case verbatim
    /// The bytes with secrets replaced.
    case redacted(Redaction)
    /// The bytes have not been checked, so they are not shown: only their position and number.
    case withheld
}

/// An item with its secrets removed, and the new positions of its parts.
package struct Redaction: Sendable {
    /// A removed secret.
    struct Edit: Sendable {
        /// The range in the original item.
        var range: ByteRange
        /// Length of the replacement.
        var length: Int32
    }

    /// The redacted item.
    package let bytes: [UInt8]
    /// The removed secrets, in ascending order and without overlaps.
    let edits: [Edit]

    /// Returns the range in ``bytes`` for a range in the original item; nil if a secret hides part of it.
    package func carry(_ range: ByteRange) -> ByteRange? {
        var shift = 0
        var growth = 0
        for edit in edits {
            if edit.range.start >= range.end, !range.isEmpty || edit.range.start > range.end { break }
            if edit.range.end <= range.start {
                shift += Int(edit.length) - edit.range.count
            } else if edit.range.start >= range.start, edit.range.end <= range.end {
                growth += Int(edit.length) - edit.range.count
            } else {
                return nil
            }
        }
        return ByteRange(Int(range.start) + shift, Int(range.end) + shift + growth)
    }

    /// Returns the item's head with ranges in ``bytes``; parts hidden by a secret are removed.
    package func carry(_ head: StanzaHead) -> StanzaHead {
        var head = head
        head.name = carry(head.name) ?? .empty
        head.namespace = carry(head.namespace)
        head.id = carry(head.id)
        head.type = carry(head.type)
        head.from = carry(head.from)
        head.to = carry(head.to)
        head.version = carry(head.version)
        head.payloadName = head.payloadName.flatMap { carry($0) }
        head.payloadNamespace = carry(head.payloadNamespace)
        return head
    }

    private func carry(_ attribute: StanzaHead.Attribute?) -> StanzaHead.Attribute? {
        guard var attribute, let range = carry(attribute.range) else { return nil }
        attribute.range = range
        return attribute
    }

    private func carry(_ name: NamespaceName) -> NamespaceName {
        guard case .item(let range) = name.source else { return name }
        guard let range = carry(range) else { return NamespaceName(.none) }
        var name = name
        name.source = .item(range)
        return name
    }
}
