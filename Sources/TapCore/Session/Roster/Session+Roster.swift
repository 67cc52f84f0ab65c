internal import TapDiagnosis
internal import TapRecord
import XMPPCore

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
        let change = roster.apply(kind, direction, contact: Address(address).comparableBare)
        tell(change, kind.words(direction))
    }

    /// A roster, or a change of one.
    mutating func noteRoster(_ event: StreamEvent, _ direction: Direction, isPush: Bool) {
        guard options.level >= .info, direction == .recv, info.kind == .client, !event.isTruncated,
            event.head.payloadNamespace.namespace == .roster, isOfOwnServer(event),
            let query = tools.elements.read(directions[direction].decoder)?.child("query", .roster)
        else { return }
        var contacts: [String] = []
        var changes = 0
        for item in query.children {
            guard let change = roster.apply(item) else { continue }
            if isPush {
                changes += 1
                if changes <= Self.mostPushedChanges { tell(change, "roster push from the server") }
            }
            if let after = change.after, contacts.count < Self.mostContacts {
                contacts.append("\(tools.redactor.disclose(address: change.contact)) \(after)")
            }
        }
        if changes > Self.mostPushedChanges {
            note(
                .note,
                .warn,
                code: "roster-push-items",
                "roster push with \(changes) items: the first \(Self.mostPushedChanges) changes are logged "
                    + "(RFC 6121 allows one item)",
                direction: direction
            )
        }
        if !isPush { roster.complete() }
        guard !isPush, options.level >= .verbose else { return }
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

    private mutating func tell(_ change: Roster.Change, _ reason: String) {
        var record = makeRecord(.note, .info, part: .session)
        record.code = SubscriptionChange.code
        let contact = tools.redactor.disclose(address: change.contact)
        record.message = "\(SubscriptionChange(contact: contact, from: change.before, to: change.after))"
        record.details = ["because": .string(reason)]
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
