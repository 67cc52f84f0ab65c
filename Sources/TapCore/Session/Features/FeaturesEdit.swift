public import XMPPCore

/// The changes to the features of a server (RFC 6120 §4.3.2) before a client receives them.
///
/// Empty by default. A change removes or inserts whole elements; all other bytes stay unchanged.
public struct FeaturesEdit: Sendable {
    /// A stream feature, or a feature inside SASL2's.
    public struct Feature: Sendable, Hashable {
        /// The parent element of the feature.
        public enum Place: Sendable, Hashable {
            /// In `<features/>`.
            case stream
            /// In SASL2's `<authentication/>` (XEP-0388), mechanisms excepted.
            case authentication
            /// In the `<inline/>` of SASL2's `<authentication/>`.
            case inline
        }

        /// Local name.
        public var name: String
        /// Namespace.
        public var namespace: Namespace
        /// Its parent element.
        public var place: Place
    }

    /// The change to a list of names.
    public enum ListEdit: Sendable {
        case keep
        /// Keep the names for which the function returns true. An empty list is removed, and with SASL2's mechanisms
        /// all of SASL2.
        case only(@Sendable (String) -> Bool)
        /// Replace the names; an empty array removes the list as in `only`.
        case replace([String])
    }

    /// The mechanisms of SASL (RFC 6120 §6.4.1), if any.
    public var mechanisms = ListEdit.keep
    /// The mechanisms of SASL2, if it is offered.
    public var sasl2Mechanisms = ListEdit.keep
    /// The mechanisms of tokens (XEP-0484), if they are offered.
    public var tokenMechanisms = ListEdit.keep
    /// The types of channel binding (XEP-0440). If the server has no such list, `replace` adds one if authentication is
    /// offered.
    public var bindings = ListEdit.keep
    /// Whether to remove a feature. Called for each, in order.
    public var takesOut: (@Sendable (Feature) -> Bool)?

    /// No change.
    public init() {}

    /// Removes everything that binds a login to its TLS connection: the `-PLUS` mechanisms, the types of channel
    /// binding, and the bound mechanisms of tokens (XEP-0484).
    public static var withoutBinding: FeaturesEdit {
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
    public var isEmpty: Bool {
        guard takesOut == nil else { return false }
        return [mechanisms, sasl2Mechanisms, tokenMechanisms, bindings].allSatisfy {
            if case .keep = $0 { true } else { false }
        }
    }

    /// The bytes are not stream features.
    public struct NoFeatures: Error, Hashable {}

    /// Applies the edit to the item of the decoder's last event; nil if nothing changes.
    public func applied(to decoder: borrowing StreamDecoder) throws(NoFeatures) -> EditedItem? {
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
public struct EditedItem: Sendable, Hashable {
    /// The whole item.
    public let bytes: [UInt8]
    /// The changes, as a clause for people.
    public let words: String
}
