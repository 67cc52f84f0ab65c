internal import XMPPCore

/// A roster gathered from the stanzas of a session.
struct SeenRoster: RuleRoster {
    /// Contacts that are kept.
    static let capacity = 10_000

    private var contacts: [String: RuleContact] = [:]

    func contact(_ bare: String) -> RuleContact? { contacts[bare] }

    /// Takes note of what the server sends: the roster, a push, or a request for a subscription.
    mutating func received(_ stanza: Element) {
        if let query = stanza.child("query", .roster), stanza.isNamed("iq") {
            for item in query.children("item", .roster) { apply(item) }
        } else if stanza.isNamed("presence"), let from = stanza.attribute("from") {
            let isRequest = stanza.attribute("type", is: "subscribe")
            guard isRequest || stanza.attribute("type", is: "unsubscribe") else { return }
            let bare = Address(from).comparableBare
            change(bare) { $0.isPending = isRequest && !$0.isSubscribed }
        }
    }

    private mutating func apply(_ item: Element) {
        guard let jid = item.attribute("jid") else { return }
        let bare = Address(jid).comparableBare
        if item.attribute("subscription", is: "remove") {
            contacts[bare] = nil
            return
        }
        let subscription = item.attribute("subscription")
        change(bare) { contact in
            contact.isListed = true
            contact.groups = item.children("group", .roster).map(\.text)
            contact.isSubscribed = subscription == "from" || subscription == "both"
            if contact.isSubscribed { contact.isPending = false }
        }
    }

    private mutating func change(_ bare: String, _ body: (inout RuleContact) -> Void) {
        guard contacts[bare] != nil || contacts.count < Self.capacity else { return }
        body(&contacts[bare, default: RuleContact(isListed: false)])
    }
}
