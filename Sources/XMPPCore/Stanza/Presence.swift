/// A presence stanza (RFC 6121 §4).
public struct Presence: Stanza {
    /// What a presence is.
    public enum Kind: String, Sendable, CaseIterable {
        /// The sender is there; on the wire the attribute is absent.
        case available
        case unavailable, subscribe, subscribed, unsubscribe, unsubscribed, probe, error
    }

    /// How available the sender is (RFC 6121 §4.7.2.1).
    public enum Show: String, Sendable, CaseIterable {
        case chat, away, xa, dnd
    }

    /// The element itself.
    public let element: Element

    /// The view of a `<presence/>`; nil for any other element.
    public init?(_ element: Element) {
        guard element.isStanza("presence") else { return nil }
        self.element = element
    }

    /// Its type; ``Kind/available`` where the attribute is absent, nil where it is none that RFC 6121 has.
    public var type: Kind? {
        guard let type = element.attribute("type") else { return .available }
        return Kind(rawValue: type)
    }

    /// How available the sender is; nil for simply available, and for what RFC 6121 does not know.
    public var show: Show? { element.childText("show", element.namespace).flatMap(Show.init) }
    /// What the sender says about it, without a language of its own, else the first.
    public var status: String? { text("status") }
    /// What the sender says about it in `language`.
    public func status(in language: String) -> String? { text("status", in: language) }

    /// From -128 to 127; 0 where it is absent or out of range. Below 0 the resource wants no messages sent to the account.
    public var priority: Int {
        let text = element.childText("priority", element.namespace) ?? ""
        return Int8(text.filter { $0 != " " && $0 != "\n" && $0 != "\t" }).map(Int.init) ?? 0
    }
}
