internal import XMPPCore

/// Finds messages with data that the server had stored before: delayed messages (XEP-0203), events of nodes that no
/// client has changed (XEP-0163), and results of an archive (XEP-0313).
///
/// Pass all stanzas that clients send to ``follow(_:of:)``.
struct StoredStanzas: Sendable {
    private struct Node: Sendable, Hashable {
        /// The JID of the account or service that has the node.
        let owner: String
        let name: String
    }

    /// The nodes that clients have changed.
    private var changed: Set<Node> = []

    /// Stores the change of a node that a stanza from a client of an account makes.
    mutating func follow(_ stanza: Element, of account: String) {
        guard stanza.stanzaKind == .iq, stanza.attribute("type", is: "set"),
            let change = stanza.firstChild(where: { [.pubsub, .pubsubOwner].contains($0.namespace) })?.firstChild,
            let name = change.attribute("node")
        else { return }
        changed.insert(Node(owner: stanza.attribute("to") ?? account, name: name))
    }

    /// Returns whether a stanza is a message that may contain stored data. It may arrive at any time, because a client
    /// receives the events of nodes as soon as the server knows its capabilities (XEP-0163 §4.2).
    func mayContain(_ stanza: Element) -> Bool {
        let form = StanzaForm(stanza)
        return form.kind == .message && (form.isDelayed || form.hasStoredData || Self.event(stanza) != nil)
    }

    /// Returns whether a stanza to an account is a message with stored data.
    func contains(_ stanza: Element, of account: String) -> Bool {
        let form = StanzaForm(stanza)
        guard form.kind == .message else { return false }
        if form.isDelayed || form.hasStoredData { return true }
        guard let name = Self.event(stanza)?.attribute("node") else { return false }
        return !changed.contains(Node(owner: form.from ?? account, name: name))
    }

    /// Returns the element of an event that lists items or describes another change of a node; nil for other stanzas.
    private static func event(_ stanza: Element) -> Element? {
        stanza.firstChild { $0.namespace == .pubsubEvent }?.firstChild
    }
}
