internal import TapDiagnosis
internal import TapRecord
import XMPPCore

// Contacts: every change of a subscription is logged (RFC 6121 §2, §3).
extension Session {
    /// Whether a log or a rule needs what is known of contacts; rules that ask for it may come at any time. Others than clients speak for many accounts, whose presence
    /// lines say it.
    private var followsRoster: Bool {
        info.kind == .client && (options.level >= .info || options.rules != nil)
    }

    /// A presence that asks for, grants or ends a subscription.
    mutating func noteSubscription(_ event: StreamEvent, _ direction: Direction) {
        guard followsRoster, !event.isTruncated, let type = text(event.head.type, direction),
            let kind = SubscriptionState.PresenceType(rawValue: type),
            let address = text(direction == .send ? event.head.to : event.head.from, direction)
        else { return }
        readRoster()
        let change = roster.observe(kind, direction, contact: Address(address).comparableBare)
        tell(change, kind.words(direction))
    }

    /// A roster, or a change of one.
    mutating func noteRoster(_ event: StreamEvent, _ direction: Direction, isPush: Bool) {
        guard followsRoster, direction == .recv, !event.isTruncated, event.head.payloadNamespace.namespace == .roster,
            Roster.isOwn(from: text(event.head.from, .recv), of: info.jid)
        else { return }
        if !isPush, mayWait(event) {
            // Of what came before, only a request of a contact outlasts a whole roster.
            if !roster.contacts.isEmpty { readRoster() }
            return unreadRoster = item(direction)
        }
        readRoster()
        guard let query = tools.elements.read(directions[direction].decoder)?.child("query", .roster) else { return }
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
        var record = makeRecord(.note, .verbose, part: .session)
        record.code = "roster"
        let count = query.children.count
        record.message = "the roster has \(count) contact\(count == 1 ? "" : "s")"
        if !contacts.isEmpty { record.details = ["contacts": .strings(contacts)] }
        emit(consume record)
    }

    /// Whether a roster can be read when something asks for it: nothing does now, and what it says does not depend on its place in
    /// the stream.
    private func mayWait(_ event: StreamEvent) -> Bool {
        guard options.level < .verbose, options.rules == nil, event.length <= Self.longestUnread else { return false }
        let bytes = directions.bytes(.recv)
        return bytes.slice(event.head.payloadName ?? .empty).equals("query") && bytes.contains(Self.namespace.span)
    }

    private static let namespace = Array("\(Namespace.roster.uri)".utf8)

    /// Reads a roster that came when nothing asked what is in it. Most sessions show one, and end before anything does.
    mutating func readRoster() {
        guard let item = unreadRoster.take(), let query = query(item) else { return }
        _ = roster.observe(query, isPush: false, keepsGroups: options.rules != nil)
    }

    /// All that is known of contacts.
    var knownRoster: Roster {
        guard let unreadRoster, let query = query(unreadRoster) else { return roster }
        var known = roster
        _ = known.observe(query, isPush: false)
        return known
    }

    private func query(_ item: [UInt8]) -> Element? {
        tools.elements.read(item.span, in: directions.recv.decoder)?.child("query", .roster)
    }

    /// Bytes of a roster that is not read at once: what is in it takes less room than a larger one.
    private static let longestUnread: UInt64 = 64 << 10
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
