/// The error in a stanza of type `error` (RFC 6120 §8.3).
public struct StanzaError: Sendable, Equatable {
    /// What the sender of the request may do about it.
    public enum Kind: String, Sendable, CaseIterable {
        case auth, cancel, `continue`, modify, wait
    }

    /// The `<error/>` element.
    public let element: Element

    /// The view of an `<error/>`; nil for any other element.
    public init?(_ element: Element) {
        guard element.isStanza("error") else { return nil }
        self.element = element
    }

    /// What the sender may do about it; nil where it is absent or unknown.
    public var type: Kind? { element.attribute("type").flatMap(Kind.init) }

    /// The defined condition, as its element is named: `item-not-found` for example. Nil where there is none, as in errors
    /// from before RFC 3920, which have a ``code``.
    public var condition: String? {
        element.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }?.name
    }

    /// Words for people; where there is no text of RFC 6120, those of an old error.
    public var text: String? {
        if let text = element.childText("text", .stanzaErrors) { return text }
        let own = element.text
        return condition == nil && !own.isEmpty ? own : nil
    }

    /// The number of an old error, 404 for example (XEP-0086).
    public var code: Int? { element.attribute("code").flatMap { Int($0) } }

    /// Who made the error, where it was not the receiver of the request.
    public var by: JID? { element.attribute("by").flatMap { JID($0) } }

    /// The application's own condition beside the defined one.
    public var applicationCondition: Element? {
        element.firstChild { $0.namespace != .stanzaErrors && $0.namespace != element.namespace }
    }
}
