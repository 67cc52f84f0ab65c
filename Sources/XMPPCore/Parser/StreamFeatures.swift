/// The features that a server offers on a stream (RFC 6120 §4.3.2, and extensions).
package struct StreamFeatures: Sendable, Equatable {
    /// The `<features/>` element of the streams namespace.
    package let element: Element

    /// Creates the view of stream features; nil for any other element.
    package init?(_ element: Element) {
        guard element.matches("features", .streams) else { return nil }
        self.element = element
    }

    /// Whether a feature is offered or required.
    package enum Offer: Sendable, Hashable {
        case absent, optional, required
    }

    /// TLS on this connection (RFC 6120 §5).
    package var startTLS: Offer {
        guard let feature = element.child("starttls", .tls) else { return .absent }
        return feature.child("required", .tls) == nil ? .optional : .required
    }

    /// SASL mechanisms (RFC 6120 §6), in the server's order.
    package var mechanisms: [String] {
        element.children("mechanisms", .sasl).flatMap { $0.children("mechanism", .sasl) }.map(\.text)
    }

    private var authentication: Element? { element.child("authentication", .sasl2) }

    /// SASL2 mechanisms (XEP-0388), in the server's order; nil if SASL2 is not offered.
    package var sasl2Mechanisms: [String]? { authentication?.children("mechanism", .sasl2).map(\.text) }

    /// The features available inline with SASL2 (XEP-0388 §2.2): binding, resumption, token requests.
    package var inlineFeatures: [Element] { authentication?.child("inline", .sasl2)?.children ?? [] }

    /// Binding within SASL2 (XEP-0386), in its current or older namespace.
    package var offersInlineBinding: Bool {
        inlineFeatures.contains { $0.isNamed("bind") && ($0.namespace == .bind2 || $0.namespace == .bind2Legacy) }
    }

    /// Token mechanisms (FAST, XEP-0484), in the server's order.
    package var tokenMechanisms: [String] {
        inlineFeatures.filter { $0.matches("fast", .fast) }.flatMap { $0.children("mechanism", .fast) }.map(\.text)
    }

    /// Types of channel binding (XEP-0440); nil if the server does not list them.
    package var channelBindings: [String]? {
        element.child("sasl-channel-binding", .saslChannelBinding)?
            .children("channel-binding", .saslChannelBinding).compactMap { $0.attribute("type") }
    }

    /// Resource binding (RFC 6120 §7).
    package var offersBinding: Bool { element.child("bind", .bind) != nil }

    /// The session of RFC 3921, which RFC 6121 removed; servers offer it as optional for old clients.
    package var session: Offer {
        guard let feature = element.child("session", .session) else { return .absent }
        return feature.child("optional", .session) == nil ? .required : .optional
    }

    /// The newest offered version of stream management (XEP-0198); nil if none is offered.
    package var streamManagement: Namespace? {
        let versions: [Namespace] = [.streamManagement, .streamManagement2]
        return versions.first { element.child("sm", $0) != nil }
    }

    /// The maximum size that the sender accepts for one element of the stream, in bytes (XEP-0478); nil if it is not
    /// announced.
    package var itemBytes: Int? { Self.itemBytes(announcedIn: element) }

    /// Returns the limit announced in any element that can contain one: the features, or a server's `<bidi/>` (XEP-0478
    /// §3).
    package static func itemBytes(announcedIn element: Element) -> Int? {
        // Some implementations write <max-bytes xmlns=''>.
        guard let limits = element.child("limits", .streamLimits),
            let limit = limits.child("max-bytes", .streamLimits) ?? limits.child("max-bytes", .none),
            let bytes = Int(limit.text.filter { !$0.isWhitespace }), bytes > 0
        else { return nil }
        return bytes
    }

    /// Registration on this stream (XEP-0077).
    package var offersRegistration: Bool { element.child("register", .registerFeature) != nil }
}
