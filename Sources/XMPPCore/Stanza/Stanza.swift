/// An iq, message or presence stanza seen as what it is: a thin view of a parsed element (RFC 6120 §8).
///
/// Told by namespace and local name, in any of the streams' content namespaces. A view costs nothing over the element it
/// keeps, and reads each value when it is asked for.
public protocol Stanza: Sendable, Equatable {
    /// The element itself.
    var element: Element { get }
    /// The view of `element`; nil where it is another stanza or none.
    init?(_ element: Element)
}

extension Stanza {
    /// The `id` attribute; unique within the stream where the sender keeps the rules.
    public var id: String? { element.attribute("id") }
    /// The receiver; nil where the attribute is absent (the server, or the account itself) or no JID.
    public var to: JID? { element.attribute("to").flatMap { JID($0) } }
    /// The sender; nil where the attribute is absent (as in all that a client sends) or no JID.
    public var from: JID? { element.attribute("from").flatMap { JID($0) } }
    /// The language of the stanza's texts, of its own `xml:lang`; nil where the stream's holds.
    public var language: String? { element.attribute("lang", .xml) }
    /// What went wrong, in a stanza of type `error`.
    public var error: StanzaError? {
        guard element.attribute("type") == "error" else { return nil }
        return element.child("error", element.namespace).flatMap(StanzaError.init)
    }

    /// The text of the child `name` in `language`, as a range of RFC 4647 §3.3.1 without case: `de` fits `de-AT`.
    ///
    /// A child without a language of its own has the stanza's. Nil where none fits.
    func text(_ name: StaticString, in language: String) -> String? {
        let wanted = language.lowercased()
        for child in element.children(name, element.namespace) {
            let own = (child.attribute("lang", .xml) ?? self.language ?? "").lowercased()
            if own == wanted || own.hasPrefix(wanted + "-") { return child.text }
        }
        return nil
    }

    /// The text of the child `name` that has no language of its own, else of the first; nil where there is none.
    func text(_ name: StaticString) -> String? {
        let children = element.children(name, element.namespace)
        return (children.first { $0.attribute("lang", .xml) == nil } ?? children.first)?.text
    }
}

extension Element {
    /// Whether this is the stanza `name`, in whichever content namespace.
    func isStanza(_ name: StaticString) -> Bool { namespace.isContent && isNamed(name) }
}
