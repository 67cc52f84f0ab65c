public import XMPPCore

/// What is changed in the features that a server offers (RFC 6120 §4.3.2) before a client sees them.
///
/// Nothing by default. A change cuts or puts in whole elements; every byte outside of them stays as it came.
public struct FeaturesEdit: Sendable {
    /// A feature, or a part of SASL2's.
    public struct Feature: Sendable, Hashable {
        /// Where it stands.
        public enum Place: Sendable, Hashable {
            /// In `<features/>`.
            case stream
            /// In SASL2's `<authentication/>` (XEP-0388), mechanisms excepted.
            case authentication
            /// In the `<inline/>` of that.
            case inline
        }

        /// Local name.
        public var name: String
        /// Namespace.
        public var namespace: Namespace
        /// Where it stands.
        public var place: Place
    }

    /// What becomes of a list of names.
    public enum ListEdit: Sendable {
        case keep
        /// Names that this accepts stay. A list of which nothing stays goes as a whole, and with SASL2's mechanisms all
        /// of SASL2.
        case only(@Sendable (String) -> Bool)
        /// These stand in its place; none is as if nothing had stayed.
        case replace([String])
    }

    /// The mechanisms of SASL (RFC 6120 §6.4.1), where there are any.
    public var mechanisms = ListEdit.keep
    /// The mechanisms of SASL2, where it is offered.
    public var sasl2Mechanisms = ListEdit.keep
    /// The mechanisms of tokens (XEP-0484), where they are offered.
    public var tokenMechanisms = ListEdit.keep
    /// The types of channel binding (XEP-0440). A list that is to be replaced and is not there is added where
    /// authentication is offered.
    public var bindings = ListEdit.keep
    /// Whether a feature is taken out. Called for each, in order.
    public var takesOut: (@Sendable (Feature) -> Bool)?

    /// No change.
    public init() {}

    /// Takes out all that binds a login to its TLS connection: the `-PLUS` mechanisms, the types of channel binding, and
    /// the mechanisms of tokens that are bound (XEP-0484).
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

    /// Whether it changes nothing, whatever is offered.
    public var isEmpty: Bool {
        guard takesOut == nil else { return false }
        return [mechanisms, sasl2Mechanisms, tokenMechanisms, bindings].allSatisfy {
            if case .keep = $0 { true } else { false }
        }
    }

    /// The bytes are not the features of a stream.
    public struct NoFeatures: Error, Hashable {}

    /// Changes the item of the decoder's last event; nil where nothing in it is to be changed.
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

/// What goes on in the place of an item.
public struct EditedItem: Sendable, Hashable {
    /// The whole item.
    public let bytes: [UInt8]
    /// What was changed, as a clause for people.
    public let words: String
}
