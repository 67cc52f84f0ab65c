package import XMPPCore

/// The changes to the stream features of a server (RFC 6120 §4.3.2) before a client receives them.
///
/// Empty by default. A change removes or inserts whole elements; all other bytes stay unchanged.
package struct FeaturesEdit: Sendable {
    /// A stream feature, or a feature of SASL2.
    package struct Feature: Sendable, Hashable {
        /// The parent element of the feature.
        package enum Place: Sendable, Hashable {
            /// In `<features/>`.
            case stream
            /// In SASL2's `<authentication/>` (XEP-0388), except the mechanisms.
            case authentication
            /// In the `<inline/>` of SASL2's `<authentication/>`.
            case inline
        }

        /// Local name.
        package var name: String
        /// Namespace.
        package var namespace: Namespace
        /// The parent element of the feature.
        package var place: Place
    }

    /// The change to a list of names.
    package enum ListEdit: Sendable {
        case keep
        /// Keep the names for which the function returns true. If no name remains, the list is removed; for SASL2's
        /// mechanisms, `<authentication/>` is removed.
        case only(@Sendable (String) -> Bool)
        /// Replace the names; an empty array removes the list, as with `only`.
        case replace([String])
    }

    /// The change to the SASL mechanisms (RFC 6120 §6.4.1), if they are offered.
    package var mechanisms = ListEdit.keep
    /// The change to the SASL2 mechanisms, if they are offered.
    package var sasl2Mechanisms = ListEdit.keep
    /// The change to the token mechanisms (XEP-0484), if they are offered.
    package var tokenMechanisms = ListEdit.keep
    /// The change to the channel binding types (XEP-0440). If the server sends no list of types, `replace` adds one,
    /// provided that the server offers authentication.
    package var bindings = ListEdit.keep
    /// Returns whether to remove a feature; called for each feature, in order. Nil removes none.
    package var takesOut: (@Sendable (Feature) -> Bool)?

    /// Creates an edit that changes nothing.
    package init() {}

    /// An edit that removes everything that binds a login to its TLS connection: the `-PLUS` mechanisms, the channel
    /// binding types, and the bound token mechanisms (XEP-0484).
    package static var withoutBinding: FeaturesEdit {
        let unbound = ListEdit.only { name in
            !name.hasSuffix("-PLUS")
                && !(name.hasPrefix("HT-") && ["-ENDP", "-UNIQ", "-EXPR"].contains { name.hasSuffix($0) })
        }
        var edit = FeaturesEdit()
        edit.mechanisms = unbound
        edit.sasl2Mechanisms = unbound
        edit.tokenMechanisms = unbound
        edit.takesOut = { $0.namespace == .saslChannelBinding }
        return edit
    }

    /// Whether the edit never changes anything.
    package var isEmpty: Bool {
        guard takesOut == nil else { return false }
        return [mechanisms, sasl2Mechanisms, tokenMechanisms, bindings].allSatisfy {
            if case .keep = $0 { true } else { false }
        }
    }

    /// The error for bytes that are not stream features.
    package struct NoFeatures: Error, Hashable {}

    /// Returns the decoder's last item with the edit applied; nil if nothing changes.
    package func applied(to decoder: borrowing StreamDecoder) throws(NoFeatures) -> EditedItem? {
        var reading = FeaturesReading(takesOut)
        guard reading.read(decoder) else { throw NoFeatures() }
        let item = decoder.bytes
        for (list, edit) in [
            (FeaturesReading.List.mechanisms, mechanisms), (.sasl2, sasl2Mechanisms), (.tokens, tokenMechanisms),
            (.bindings, bindings),
        ] {
            reading.change(list, by: edit, item)
        }
        return reading.outcome(item)
    }
}

/// An item with changes, to forward instead of the original.
package struct EditedItem: Sendable, Hashable {
    /// The bytes of the whole item.
    package let bytes: [UInt8]
    /// The changes, as a human-readable clause.
    package let summary: String

    /// The item as a message of a WebSocket.
    var qualified: EditedItem { EditedItem(bytes: StreamDecoder.qualified(message: bytes), summary: summary) }
}
