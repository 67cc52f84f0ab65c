package import XMPPCore

/// The changes to the features of a server (RFC 6120 §4.3.2) before a client receives them.
///
/// Empty by default. A change removes or inserts whole elements; all other bytes stay unchanged.
package struct FeaturesEdit: Sendable {
    /// A stream feature, or a feature inside SASL2's.
    package struct Feature: Sendable, Hashable {
        /// The parent element of the feature.
        package enum Place: Sendable, Hashable {
            /// In `<features/>`.
            case stream
            /// In SASL2's `<authentication/>` (XEP-0388), mechanisms excepted.
            case authentication
            /// In the `<inline/>` of SASL2's `<authentication/>`.
            case inline
        }

        /// Local name.
        package var name: String
        /// Namespace.
        package var namespace: Namespace
        /// Its parent element.
        package var place: Place
    }

    /// The change to a list of names.
    package enum ListEdit: Sendable {
        case keep
        /// Keep the names for which the function returns true. An empty list is removed, and with SASL2's mechanisms
        /// all of SASL2.
        case only(@Sendable (String) -> Bool)
        /// Replace the names; an empty array removes the list as in `only`.
        case replace([String])
    }

    /// The mechanisms of SASL (RFC 6120 §6.4.1), if any.
    package var mechanisms = ListEdit.keep
    /// The mechanisms of SASL2, if it is offered.
    package var sasl2Mechanisms = ListEdit.keep
    /// The mechanisms of tokens (XEP-0484), if they are offered.
    package var tokenMechanisms = ListEdit.keep
    /// The types of channel binding (XEP-0440). If the server has no such list, `replace` adds one if authentication is
    /// offered.
    package var bindings = ListEdit.keep
    /// Whether to remove a feature. Called for each, in order.
    package var takesOut: (@Sendable (Feature) -> Bool)?

    /// No change.
    package init() {}

    /// Removes everything that binds a login to its TLS connection: the `-PLUS` mechanisms, the types of channel
    /// binding, and the bound mechanisms of tokens (XEP-0484).
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

    /// Whether it never changes anything.
    package var isEmpty: Bool {
        guard takesOut == nil else { return false }
        return [mechanisms, sasl2Mechanisms, tokenMechanisms, bindings].allSatisfy {
            if case .keep = $0 { true } else { false }
        }
    }

    /// The bytes are not stream features.
    package struct NoFeatures: Error, Hashable {}

    /// Applies the edit to the item of the decoder's last event; nil if nothing changes.
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

/// The bytes that replace an item.
package struct EditedItem: Sendable, Hashable {
    /// The whole item.
    package let bytes: [UInt8]
    /// The changes, as a clause for people.
    package let words: String
}
