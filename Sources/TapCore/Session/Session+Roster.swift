internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Contacts: every change of a subscription is logged (RFC 6121 §2, §3).
extension Session {
    /// Whether a log or a rule needs the contacts; rules that need them may be loaded at any time. Servers and
    /// components send for many accounts; their presence records contain it.
    private var followsRoster: Bool {
        info.kind == .client && (options.level >= .info || options.rules != nil)
    }

    /// A presence that requests, grants or ends a subscription.
    mutating func noteSubscription(_ event: StreamEvent, _ direction: Direction) {
        guard followsRoster, !event.isTruncated, let type = context.text(event.head.type, direction),
            let kind = SubscriptionState.PresenceType(rawValue: type),
            let address = context.text(direction == .send ? event.head.to : event.head.from, direction)
        else { return }
        readRoster()
        let change = roster.observe(kind, direction, contact: Address(address).comparableBare)
        tell(change, kind.words(direction))
    }

    /// A roster, or a roster push.
    mutating func noteRoster(_ event: StreamEvent, _ direction: Direction, isPush: Bool) {
        guard followsRoster, direction == .recv, !event.isTruncated, event.head.payloadNamespace.namespace == .roster,
            Roster.isOwn(from: context.text(event.head.from, .recv), of: info.jid)
        else { return }
        if !isPush, mayWait(event) {
            // A whole roster replaces all earlier state except a contact's request.
            if !roster.contacts.isEmpty { readRoster() }
            return unreadRoster = context.item(direction)
        }
        readRoster()
        guard let query = tools.elements.read(context.directions[direction].decoder)?.child("query", .roster) else {
            return
        }
        let changes = roster.observe(query, isPush: isPush, keepsGroups: options.rules != nil)
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
        var record = context.makeRecord(.note, .verbose, part: .session)
        record.code = "roster"
        let count = query.children.count
        record.message = "the roster has \(count) contact\(count == 1 ? "" : "s")"
        if !contacts.isEmpty { record.details = ["contacts": .strings(contacts)] }
        context.emit(consume record)
    }

    /// Whether reading a roster can be deferred: nothing needs it now, and its contents do not depend on its position
    /// in the stream.
    private func mayWait(_ event: StreamEvent) -> Bool {
        guard options.level < .verbose, options.rules == nil, event.length <= Self.longestUnread else { return false }
        let bytes = context.directions.bytes(.recv)
        return bytes.slice(event.head.payloadName ?? .empty).equals("query") && bytes.contains(Self.namespace.span)
    }

    private static let namespace = Array("\(Namespace.roster.uri)".utf8)

    /// Reads a deferred roster. Most sessions receive one, and end before it is needed.
    mutating func readRoster() {
        guard let item = unreadRoster.take(), let query = query(item) else { return }
        _ = roster.observe(query, isPush: false, keepsGroups: options.rules != nil)
    }

    /// All known contacts.
    var knownRoster: Roster {
        guard let unreadRoster, let query = query(unreadRoster) else { return roster }
        var known = roster
        _ = known.observe(query, isPush: false)
        return known
    }

    private func query(_ item: [UInt8]) -> Element? {
        tools.elements.read(item.span, in: context.directions.recv.decoder)?.child("query", .roster)
    }

    /// Rosters with more bytes than this are read at once: their contents take less memory than their bytes.
    private static let longestUnread: UInt64 = 64 << 10
    /// The largest number of contacts in one record.
    private static let mostContacts = 1000
    /// The largest number of changes logged for one roster push. RFC 6121 §2.1.6 allows one item; without a limit, one
    /// stanza of 1 MiB would make 60,000 records.
    static let mostPushedChanges = 16

    private mutating func tell(_ change: SubscriptionChange, _ reason: String) {
        var record = context.makeRecord(.note, .info, part: .session)
        record.code = Record.Code.subscription
        var change = change
        change.contact = tools.redactor.disclose(address: change.contact)
        record.message = "\(change)"
        var details = change.details
        details["because"] = .string(reason)
        record.details = details
        context.emit(consume record)
    }
}

extension SubscriptionState.PresenceType {
    /// The meaning of the presence from the account or the contact.
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
