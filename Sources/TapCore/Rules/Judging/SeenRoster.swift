internal import XMPPCore

/// A roster gathered from the stanzas of a session.
struct SeenRoster: RuleRoster {
    /// Contacts that are kept.
    static let capacity = 10_000
    /// Requests for a subscription that are kept of those who are no contacts.
    static let mostRequests = 1000

    private var contacts: [String: RuleContact] = [:]
    private var requests: Set<String> = []

    func contact(_ bare: String) -> RuleContact? {
        contacts[bare] ?? (requests.contains(bare) ? RuleContact(isPending: true, isListed: false) : nil)
    }

    /// Takes note of what the server sends: the roster, a push, or a request for a subscription.
    ///
    /// - Parameter jid: The session's JID. A roster counts only without `from`, or from its bare JID (RFC 6121 §2.1.6).
    mutating func received(_ stanza: Element, jid: String?) {
        if let query = stanza.child("query", .roster), stanza.isNamed("iq") {
            let isResult = stanza.attribute("type", is: "result")
            guard isResult || stanza.attribute("type", is: "set") else { return }
            if let from = stanza.attribute("from"), RuleAddress(from).full != jid.map({ RuleAddress($0).bare }) {
                return
            }
            if isResult {
                requests.formUnion(contacts.filter(\.value.isPending).keys.prefix(Self.mostRequests))
                contacts = [:]
            }
            for item in query.children("item", .roster) { apply(item) }
        } else if stanza.isNamed("presence"), let from = stanza.attribute("from") {
            let isRequest = stanza.attribute("type", is: "subscribe")
            guard isRequest || stanza.attribute("type", is: "unsubscribe") else { return }
            let bare = Address(from).comparableBare
            if contacts[bare] != nil {
                change(bare) { $0.isPending = isRequest && !$0.isSubscribed }
            } else if !isRequest {
                requests.remove(bare)
            } else if requests.count < Self.mostRequests {
                requests.insert(bare)
            }
        }
    }

    private mutating func apply(_ item: Element) {
        guard let jid = item.attribute("jid") else { return }
        let bare = Address(jid).comparableBare
        if item.attribute("subscription", is: "remove") {
            contacts[bare] = nil
            return
        }
        let wasRequested = requests.remove(bare) != nil
        let subscription = item.attribute("subscription")
        change(bare) { contact in
            contact.groups = item.children("group", .roster).map(\.text)
            contact.isSubscribed = subscription == "from" || subscription == "both"
            contact.isPending = (contact.isPending || wasRequested) && !contact.isSubscribed
        }
    }

    private mutating func change(_ bare: String, _ body: (inout RuleContact) -> Void) {
        guard contacts[bare] != nil || contacts.count < Self.capacity else { return }
        body(&contacts[bare, default: RuleContact()])
    }
}
