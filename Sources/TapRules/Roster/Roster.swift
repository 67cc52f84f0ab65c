package import TapDiagnosis
package import TapRecord
package import XMPPCore

/// The roster of a session's account, as far as it was seen in the session: the subscription state of each contact.
///
/// Listed contacts and others have separate limits, ``capacity`` and ``byteCapacity``, so that strangers do not
/// displace contacts. A change takes O(1).
package struct Roster {
    /// Maximum number of listed contacts, and of other contacts; further ones are not stored.
    static let capacity = 10_000
    /// Maximum size of the addresses and groups of the listed contacts, and of the other contacts, in bytes. Invalid
    /// addresses may be as long as a tag.
    static let byteCapacity = 1 << 20

    /// A contact that was seen in the session.
    package struct Contact {
        package var state: SubscriptionState
        /// Whether the roster lists the contact; otherwise only its presence was seen.
        var isListed: Bool
    }

    package private(set) var contacts: [String: Contact] = [:]
    /// The groups of contacts that have any.
    private var groups: [String: [String]] = [:]
    /// Whether the whole roster was seen in the session, so that a JID missing in ``contacts`` is not a contact. The
    /// server does not send a versioned roster that the client has cached (RFC 6121 §2.6).
    private var isComplete = false
    /// Whether a contact of the last whole roster was not stored because of the limits.
    private var hasForgotten = false
    private var listed = Usage()
    private var unlisted = Usage()

    private struct Usage {
        var contacts = 0
        var bytes = 0
    }

    /// Creates the roster of a new session, without contacts.
    package init() {}

    /// Number of stored bytes of addresses and groups.
    package var byteCount: Int { listed.bytes + unlisted.bytes }

    /// Returns the groups of a contact, if they are stored.
    func groups(of contact: String) -> [String] { groups[contact] ?? [] }

    /// Returns whether a roster belongs to the account: it has no `from`, or the account's bare JID (RFC 6121 §2.1.6).
    package static func isOwn(from: String?, of jid: String?) -> Bool {
        guard let from, let jid else { return true }
        let address = Address(from)
        return address.resource == nil && address.comparableBare == Address(jid).comparableBare
    }

    /// Updates the roster with a stanza of a session with this JID.
    mutating func observe(_ stanza: Element, _ direction: Direction, jid: String?) {
        if stanza.isNamed("presence") {
            guard let kind = stanza.attribute("type").flatMap({ SubscriptionState.PresenceType(rawValue: $0) }),
                let contact = stanza.attribute(direction == .send ? "to" : "from")
            else { return }
            _ = observe(kind, direction, contact: Address(contact).comparableBare)
        } else if stanza.isNamed("iq"), direction == .recv, let query = stanza.child("query", .roster) {
            let isPush = stanza.attribute("type", is: "set")
            guard isPush || stanza.attribute("type", is: "result"),
                Self.isOwn(from: stanza.attribute("from"), of: jid)
            else { return }
            _ = observe(query, isPush: isPush, keepsGroups: true)
        }
    }

    /// Updates the roster with a presence that changes a subscription.
    package mutating func observe(_ kind: SubscriptionState.PresenceType, _ direction: Direction, contact: String)
        -> SubscriptionChange
    {
        let before = state(of: contact)
        var after = before
        switch direction {
        case .send: after.apply(sent: kind)
        case .recv: after.apply(received: kind)
        }
        set(contact, Contact(state: after, isListed: contacts[contact]?.isListed ?? false))
        return SubscriptionChange(contact: contact, from: before, to: after)
    }

    /// Updates the roster with a whole roster, or with the items of a roster push.
    package mutating func observe(_ query: Element, isPush: Bool, keepsGroups: Bool = false) -> [SubscriptionChange] {
        var before: [String: Contact] = [:]
        if !isPush {
            swap(&before, &contacts)
            forgetListed(before)
            hasForgotten = false
        }
        let changes = query.children.compactMap { apply($0, keepsGroups, before) }
        if !isPush { isComplete = !hasForgotten }
        return changes
    }

    /// Adds the state of an earlier session; newer states of contacts take precedence.
    package mutating func inherit(_ earlier: Roster) {
        guard !isComplete else { return }
        let newer = self
        self = earlier
        for (address, contact) in newer.contacts { set(address, contact, newer.groups(of: address)) }
    }

    private func state(of contact: String) -> SubscriptionState {
        contacts[contact]?.state ?? (isComplete ? SubscriptionState() : .unknown)
    }

    /// - Parameter earlier: The contacts before a whole roster arrived; empty for a roster push.
    private mutating func apply(_ item: Element, _ keepsGroups: Bool, _ earlier: [String: Contact])
        -> SubscriptionChange?
    {
        guard item.matches("item", .roster), let contact = item.attribute("jid").map({ Address($0).comparableBare })
        else { return nil }
        let before = earlier[contact]?.state ?? state(of: contact)
        guard !item.attribute("subscription", is: "remove") else {
            remove(contact)
            return SubscriptionChange(contact: contact, from: before, to: nil)
        }
        var after = SubscriptionState(subscription: item.attribute("subscription"), ask: item.attribute("ask"))
        after.isPendingIn = before.isPendingIn && !after.from
        let groups = keepsGroups ? item.children("group", .roster).map(\.text) : []
        set(contact, Contact(state: after, isListed: true), groups)
        return SubscriptionChange(contact: contact, from: before, to: after)
    }

    /// Prepares for a whole roster, which replaces the listed contacts. Their unanswered subscription requests are
    /// kept.
    ///
    /// - Parameter earlier: The contacts until now; ``contacts`` is empty.
    private mutating func forgetListed(_ earlier: [String: Contact]) {
        contacts.reserveCapacity(earlier.count)
        (groups, listed, unlisted) = ([:], Usage(), Usage())
        // Unlisted contacts are kept unchanged.
        for (address, contact) in earlier where !contact.isListed {
            contacts[address] = contact
            count(address, nil, false, by: 1)
        }
        for (address, contact) in earlier where contact.isListed && contact.state.isPendingIn {
            var state = SubscriptionState()
            state.isPendingIn = true
            set(address, Contact(state: state, isListed: false))
        }
    }

    private mutating func remove(_ address: String) {
        guard let old = contacts.removeValue(forKey: address) else { return }
        count(address, groups.removeValue(forKey: address), old.isListed, by: -1)
    }

    /// - Parameter groups: The groups; nil keeps the stored ones.
    private mutating func set(_ address: String, _ contact: Contact, _ groups: [String]? = nil) {
        // If the whole roster is known, a contact that is not stored has this state.
        if isComplete, !contact.isListed, contact.state == SubscriptionState() { return remove(address) }
        let old = contacts.updateValue(contact, forKey: address)
        let oldGroups = old == nil ? nil : self.groups[address]
        let groups = groups ?? oldGroups ?? []
        if let old {
            if old.isListed == contact.isListed, groups.isEmpty, oldGroups == nil { return }
            count(address, oldGroups, old.isListed, by: -1)
        }
        count(address, groups, contact.isListed, by: 1)
        if !groups.isEmpty || oldGroups != nil { self.groups[address] = groups.isEmpty ? nil : groups }
        let used = contact.isListed ? listed : unlisted
        guard used.contacts > Self.capacity || used.bytes > Self.byteCapacity else { return }
        remove(address)
        if !groups.isEmpty { return set(address, contact, []) }
        guard contact.isListed else { return }
        hasForgotten = true
        isComplete = false
    }

    private mutating func count(_ address: String, _ groups: [String]?, _ isListed: Bool, by sign: Int) {
        let bytes = (groups ?? []).reduce(address.utf8.count) { $0 + $1.utf8.count }
        if isListed {
            listed.contacts += sign
            listed.bytes += sign * bytes
        } else {
            unlisted.contacts += sign
            unlisted.bytes += sign * bytes
        }
    }
}
