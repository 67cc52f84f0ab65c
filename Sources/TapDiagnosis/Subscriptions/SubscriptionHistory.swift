package import TapRecord
internal import XMPPCore

/// The subscription changes in records, by pairs of accounts, from the sessions of both accounts.
package struct SubscriptionHistory: Sendable {
    /// Two accounts by their bare JIDs; pairs are equal regardless of the order.
    package struct Pair: Sendable, Hashable {
        /// The account whose session first recorded a change.
        package let first: String
        /// The contact of that account.
        package let second: String

        /// Returns whether both contain the same two accounts.
        package static func == (left: Pair, right: Pair) -> Bool {
            left.first == right.first && left.second == right.second
                || left.first == right.second && left.second == right.first
        }

        /// Hashes both accounts regardless of their order.
        package func hash(into hasher: inout Hasher) {
            hasher.combine(first < second ? [first, second] : [second, first])
        }
    }

    /// A subscription change.
    package struct Event: Sendable {
        /// The time at which it was recorded.
        package let time: Timestamp
        /// The number of the run among the files, from 1; 0 if the files have no header.
        package let run: Int
        /// The number of the session that recorded it.
        package let session: UInt64
        /// The bare JID of that session.
        package let account: String
        /// The change.
        package let change: SubscriptionChange
        /// The description of the stanza that caused the change; empty if the record contains none.
        package let reason: String
    }

    private let person: String?
    private var runs = RunNumbers()
    private var events: [Pair: [Event]] = [:]

    /// The pairs in the order in which they were first seen.
    package private(set) var pairs: [Pair] = []

    /// Number of runs in the files.
    package var runCount: Int { runs.count }

    /// Creates the history of all pairs, or of those that include the bare JID `person`.
    package init(of person: String? = nil) { self.person = person.map { Address($0).comparableBare } }

    /// Returns the changes between two accounts, sorted by time.
    package func events(of pair: Pair) -> [Event] { events[pair, default: []].sorted { $0.time < $1.time } }

    /// Assigns the following records to the run of the header.
    package mutating func add(_ header: RecordHeader) { runs.add(header) }

    /// Adds a record; records of other kinds are ignored.
    package mutating func add(_ record: Record) {
        guard record.code == Record.Code.subscription, let account = record.jid.map({ Address($0).comparableBare }),
            let change = record.details.flatMap({ SubscriptionChange($0) })
        else { return }
        guard person == nil || person == account || person == change.contact else { return }
        let pair = Pair(first: account, second: change.contact)
        if events[pair] == nil { pairs.append(pair) }
        events[pair, default: []].append(
            Event(
                time: record.time,
                run: runs.current,
                session: record.session,
                account: account,
                change: change,
                reason: record.details?["because"]?.text ?? ""
            )
        )
    }
}

/// A change of the subscriptions between an account and a contact: the text and details of a record with the code
/// ``TapRecord/Record/Code/subscription``.
package struct SubscriptionChange: Sendable, Hashable, CustomStringConvertible {
    /// The state of a contact that was removed from the roster.
    private static let removed = "removed"

    /// The contact's bare JID, or the text as written if it is not a JID.
    package var contact: String
    /// The state before.
    package var before: SubscriptionState
    /// The state after; nil for a removal. Equal to ``before`` if nothing changed.
    package var after: SubscriptionState?

    /// Creates a change; `after` is nil for a removal.
    package init(contact: String, from before: SubscriptionState, to after: SubscriptionState?) {
        self.contact = contact
        self.before = before
        self.after = after
    }

    /// Reads ``details``; nil if they were written in another form.
    package init?(_ details: Attributes) {
        guard let contact = details[Record.Detail.contact]?.text,
            let before = details[Record.Detail.before].flatMap({ SubscriptionState($0.text) }),
            let after = details[Record.Detail.after]?.text
        else { return nil }
        self.init(contact: contact, from: before, to: SubscriptionState(after))
        guard self.after != nil || after == Self.removed else { return nil }
    }

    /// The change as typed details.
    package var details: Attributes {
        [
            Record.Detail.contact: .string(contact), Record.Detail.before: .string("\(before)"),
            Record.Detail.after: .string(outcome),
        ]
    }

    /// The state after the change as text; `removed` for a removal.
    package var outcome: String { after.map { "\($0)" } ?? Self.removed }

    /// Both states: `none → pending out`, or `both as before`.
    package var states: String {
        // Different states can have the same text if one of them is only partly known.
        let (before, after) = ("\(before)", outcome)
        return before == after ? "\(before) as before" : "\(before) → \(after)"
    }

    /// `juliet@example.net: none → pending out`, or `juliet@example.net: both as before`.
    package var description: String { "\(contact): \(states)" }
}
