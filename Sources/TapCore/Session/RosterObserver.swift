internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

/// Tracks the contacts of a session's account, and records every change of a subscription (RFC 6121 §2, §3).
struct RosterObserver {
    /// The known contacts, except those in ``unread``.
    private var roster = Roster()
    /// The item with the last whole roster, if it was not parsed so far, because most sessions end before its contents
    /// are needed. Nil if the changes of rosters are logged.
    private var unread: [UInt8]?

    /// The largest roster in bytes that is not parsed at once. The contents of a larger roster take less memory than
    /// its bytes.
    private static let maximumUnreadLength: UInt64 = 64 << 10
    /// The largest number of contacts in one record.
    private static let maximumContacts = 1000
    /// The largest number of changes that are logged for one roster push. RFC 6121 §2.1.6 allows one item; without a
    /// limit, one stanza of 1 MiB would cause 60,000 records.
    static let maximumPushedChanges = 16

    private static let namespace = Array("\(Namespace.roster.uri)".utf8)

    // MARK: Stanzas

    /// Observes a presence that requests, grants or ends a subscription.
    mutating func observePresence(_ event: StreamEvent, _ direction: Direction, _ context: inout SessionContext) {
        guard Self.follows(context), !event.isTruncated, let type = context.text(event.head.type, direction),
            let kind = SubscriptionState.PresenceType(rawValue: type),
            let address = context.text(direction == .send ? event.head.to : event.head.from, direction)
        else { return }
        read(context)
        let change = roster.observe(kind, direction, contact: Address(address).comparableBare)
        record(change, kind.summary(direction), &context)
    }

    /// Observes a roster, or a roster push.
    mutating func observe(
        _ event: StreamEvent,
        _ direction: Direction,
        isPush: Bool,
        _ context: inout SessionContext
    ) {
        guard direction == .recv, event.head.payloadNamespace.namespace == .roster, Self.follows(context),
            !event.isTruncated, Roster.isOwn(from: context.text(event.head.from, .recv), of: context.info.jid)
        else { return }
        if !isPush, Self.mayWait(event, context) {
            // A whole roster replaces all earlier state, except a contact's request for a subscription.
            if !roster.contacts.isEmpty { read(context) }
            return unread = context.item(direction)
        }
        read(context)
        guard
            let query = context.tools.elements.read(context.directions[direction].decoder)?.child("query", .roster)
        else { return }
        let changes = roster.observe(query, isPush: isPush, keepsGroups: context.options.rules != nil)
        if isPush {
            recordPush(changes, &context)
        } else {
            recordRoster(changes, count: query.children.count, &context)
        }
    }

    /// Returns whether the contacts are tracked: a log needs them, or rules, which may be replaced at any time. Servers
    /// and components send stanzas for many accounts; the records of their presence stanzas show the subscriptions.
    private static func follows(_ context: borrowing SessionContext) -> Bool {
        context.info.kind == .client && (context.options.level >= .info || context.options.rules != nil)
    }

    /// Returns whether parsing a roster can be deferred: nothing needs the contacts now, and the item can be parsed
    /// outside its position in the stream.
    private static func mayWait(_ event: StreamEvent, _ context: borrowing SessionContext) -> Bool {
        guard context.options.level < .verbose, context.options.rules == nil, event.length <= maximumUnreadLength else {
            return false
        }
        let bytes = context.directions.bytes(.recv)
        return bytes.slice(event.head.payloadName ?? .empty).equals("query") && bytes.contains(namespace.span)
    }

    // MARK: Contacts

    /// Whether a roster was received, but not parsed yet.
    var hasUnread: Bool { unread != nil }

    /// The contacts, except those of a roster that was not parsed yet.
    var current: Roster { roster }

    /// Returns all known contacts.
    func known(_ context: borrowing SessionContext) -> Roster {
        guard let unread, let query = Self.query(unread, context) else { return roster }
        var known = roster
        _ = known.observe(query, isPush: false)
        return known
    }

    /// Parses the roster that was not parsed on arrival, if any; returns all contacts.
    @discardableResult
    mutating func read(_ context: borrowing SessionContext) -> Roster {
        if let item = unread.take(), let query = Self.query(item, context) {
            _ = roster.observe(query, isPush: false, keepsGroups: context.options.rules != nil)
        }
        return roster
    }

    private static func query(_ item: [UInt8], _ context: borrowing SessionContext) -> Element? {
        context.tools.elements.read(item.span, in: context.directions.recv.decoder)?.child("query", .roster)
    }

    /// Replaces the contacts by those of an earlier session.
    mutating func replace(by earlier: Roster) {
        roster = earlier
        unread = nil
    }

    /// Adds the contacts of an earlier session. Newer states take precedence.
    mutating func inherit(_ earlier: Roster, _ context: borrowing SessionContext) {
        read(context)
        roster.inherit(earlier)
    }

    // MARK: Records

    private func recordPush(_ changes: [SubscriptionChange], _ context: inout SessionContext) {
        for change in changes.prefix(Self.maximumPushedChanges) {
            record(change, "roster push from the server", &context)
        }
        guard changes.count > Self.maximumPushedChanges else { return }
        context.report(
            .note,
            .warn,
            code: "roster-push-items",
            "roster push with \(changes.count) items: the first \(Self.maximumPushedChanges) changes are logged "
                + "(RFC 6121 allows one item)",
            direction: .recv
        )
    }

    private func recordRoster(_ changes: [SubscriptionChange], count: Int, _ context: inout SessionContext) {
        guard context.options.level >= .verbose else { return }
        var contacts: [String] = []
        for change in changes where contacts.count < Self.maximumContacts {
            guard let after = change.after else { continue }
            contacts.append("\(context.tools.redactor.disclose(address: change.contact)) \(after)")
        }
        var record = context.makeRecord(.note, .verbose, part: .session)
        record.code = "roster"
        record.message = "the roster has \(count) contact\(count == 1 ? "" : "s")"
        if !contacts.isEmpty { record.details = ["contacts": .strings(contacts)] }
        context.emit(consume record)
    }

    private func record(_ change: SubscriptionChange, _ reason: String, _ context: inout SessionContext) {
        var record = context.makeRecord(.note, .info, part: .session)
        record.code = Record.Code.subscription
        var change = change
        change.contact = context.tools.redactor.disclose(address: change.contact)
        record.message = "\(change)"
        var details = change.details
        details["because"] = .string(reason)
        record.details = details
        context.emit(consume record)
    }
}

extension SubscriptionState.PresenceType {
    /// The meaning of the presence, as seen by this account.
    fileprivate func summary(_ direction: Direction) -> String {
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
