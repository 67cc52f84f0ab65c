internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// What a session has shown of its account's roster: for each contact the state of both subscriptions.
///
/// Bounded by ``capacity`` and ``byteCapacity``. A change is O(1), however many contacts are known.
struct Roster {
    /// Contacts that are followed; of further ones nothing is known.
    static let capacity = 10_000
    /// Bytes of their addresses that are kept: what no server would accept as one may be as long as a tag.
    static let byteCapacity = 1 << 20

    private(set) var contacts: [String: SubscriptionState] = [:]
    /// The whole roster has been shown: who is not in ``contacts`` is no contact. A versioned roster that the client has
    /// already is not shown (RFC 6121 §2.6).
    private var isComplete = false
    /// A contact was not kept for want of room.
    private var hasForgotten = false
    /// Bytes of the contacts' addresses.
    private(set) var byteCount = 0

    /// A presence about a subscription goes by.
    mutating func observe(_ kind: SubscriptionState.PresenceType, _ direction: Direction, contact: String)
        -> SubscriptionChange
    {
        let before = state(of: contact)
        var after = before
        switch direction {
        case .send: after.apply(sent: kind)
        case .recv: after.apply(received: kind)
        }
        set(contact, after)
        return SubscriptionChange(contact: contact, from: before, to: after)
    }

    /// The server shows the whole roster, or in a push some items of it.
    mutating func observe(_ query: Element, isPush: Bool) -> [SubscriptionChange] {
        let changes = query.children.compactMap { apply($0) }
        if !isPush { isComplete = !hasForgotten }
        return changes
    }

    private func state(of contact: String) -> SubscriptionState {
        contacts[contact] ?? (isComplete ? SubscriptionState() : .unknown)
    }

    private mutating func apply(_ item: Element) -> SubscriptionChange? {
        guard item.matches("item", .roster), let contact = item.attribute("jid").map({ Address($0).comparableBare })
        else { return nil }
        let before = state(of: contact)
        guard item.attribute("subscription") != "remove" else {
            if contacts.removeValue(forKey: contact) != nil { byteCount -= contact.utf8.count }
            return SubscriptionChange(contact: contact, from: before, to: nil)
        }
        var after = SubscriptionState(subscription: item.attribute("subscription"), ask: item.attribute("ask"))
        after.isPendingIn = before.isPendingIn && !after.from
        set(contact, after)
        return SubscriptionChange(contact: contact, from: before, to: after)
    }

    private mutating func set(_ contact: String, _ state: SubscriptionState) {
        if contacts[contact] == nil {
            let size = contact.utf8.count
            guard contacts.count < Self.capacity, byteCount + size <= Self.byteCapacity else {
                hasForgotten = true
                isComplete = false
                return
            }
            byteCount += size
        }
        contacts[contact] = state
    }
}

// Contacts: every change of a subscription is logged (RFC 6121 §2, §3).
extension Session {
    /// A presence that asks for, grants or ends a subscription.
    mutating func noteSubscription(_ event: StreamEvent, _ direction: Direction) {
        // Others than clients speak for many accounts, whose presence lines say it.
        guard options.level >= .info, info.kind == .client, !event.isTruncated,
            let type = text(event.head.type, direction),
            let kind = SubscriptionState.PresenceType(rawValue: type),
            let address = text(direction == .send ? event.head.to : event.head.from, direction)
        else { return }
        let change = roster.observe(kind, direction, contact: Address(address).comparableBare)
        tell(change, kind.words(direction))
    }

    /// A roster, or a change of one.
    mutating func noteRoster(_ event: StreamEvent, _ direction: Direction, isPush: Bool) {
        guard options.level >= .info, direction == .recv, info.kind == .client, !event.isTruncated,
            event.head.payloadNamespace.namespace == .roster, isOfOwnServer(event),
            let query = tools.elements.read(directions[direction].decoder)?.child("query", .roster)
        else { return }
        let changes = roster.observe(query, isPush: isPush)
        if isPush {
            for change in changes.prefix(Self.mostPushedChanges) { tell(change, "roster push from the server") }
            guard changes.count > Self.mostPushedChanges else { return }
            return note(
                .note,
                .warn,
                code: "roster-push-items",
                "roster push with \(changes.count) items: the first \(Self.mostPushedChanges) changes are logged "
                    + "(RFC 6121 allows one item)",
                direction: direction
            )
        }
        guard options.level >= .verbose else { return }
        var contacts: [String] = []
        for change in changes where contacts.count < Self.mostContacts {
            guard let after = change.after else { continue }
            contacts.append("\(tools.redactor.disclose(address: change.contact)) \(after)")
        }
        var record = makeRecord(.note, .verbose, part: .session)
        record.code = "roster"
        let count = query.children.count
        record.message = "the roster has \(count) contact\(count == 1 ? "" : "s")"
        if !contacts.isEmpty { record.details = ["contacts": .strings(contacts)] }
        emit(consume record)
    }

    /// Whether a roster is the account's own: a client ignores those of others (RFC 6121 §2.1.6).
    private func isOfOwnServer(_ event: StreamEvent) -> Bool {
        guard let from = text(event.head.from, .recv), let account = info.jid else { return true }
        return Address(from).comparableBare == Address(account).comparableBare
    }

    /// Contacts that one record names.
    private static let mostContacts = 1000
    /// Changes logged for one roster push. RFC 6121 §2.1.6 allows one item; without a bound one stanza of 1 MiB would
    /// make 60,000 records.
    static let mostPushedChanges = 16

    private mutating func tell(_ change: SubscriptionChange, _ reason: String) {
        var record = makeRecord(.note, .info, part: .session)
        record.code = Record.Code.subscription
        var change = change
        change.contact = tools.redactor.disclose(address: change.contact)
        record.message = "\(change)"
        var details = change.details
        details["because"] = .string(reason)
        record.details = details
        emit(consume record)
    }
}

extension SubscriptionState.PresenceType {
    /// What the account or the contact does by it.
    fileprivate func words(_ direction: Direction) -> String {
        let isOwn = direction == .send
        return switch self {
        case .subscribe: isOwn ? "this account requests their presence" : "they request this account's presence"
        case .subscribed:
            isOwn ? "this account allows them to see its presence" : "they allow this account to see their presence"
        case .unsubscribe:
            isOwn ? "this account no longer wants their presence" : "they no longer want this account's presence"
        case .unsubscribed:
            isOwn
                ? "this account denies them its presence" : "they deny this account their presence"
        }
    }
}
