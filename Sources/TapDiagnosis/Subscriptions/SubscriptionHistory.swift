public import TapRecord
internal import XMPPCore

/// The subscription changes in records, by pairs of accounts, from the sessions of both.
public struct SubscriptionHistory: Sendable {
    /// Two accounts by their bare JIDs, in the order in which they were seen; equal in either order.
    public struct Pair: Sendable, Hashable {
        /// The account whose session told of the other first.
        public let first: String
        /// Its contact.
        public let second: String

        /// Whether both are of the same two accounts.
        public static func == (left: Pair, right: Pair) -> Bool {
            left.first == right.first && left.second == right.second
                || left.first == right.second && left.second == right.first
        }

        /// Hashes both accounts, whichever comes first.
        public func hash(into hasher: inout Hasher) {
            hasher.combine(first < second ? [first, second] : [second, first])
        }
    }

    /// One change.
    public struct Event: Sendable {
        /// When it was seen.
        public let time: Timestamp
        /// The number of its run among those of the files, from 1; 0 where they have no header.
        public let run: Int
        /// The session that it was seen in.
        public let session: UInt64
        /// The bare JID of that session.
        public let account: String
        /// What changed.
        public let change: SubscriptionChange
        /// The stanza that changed it, in words; empty where the record does not say.
        public let reason: String
    }

    private let person: String?
    private var runs = RunNumbers()
    private var events: [Pair: [Event]] = [:]

    /// The pairs in the order in which they were first seen.
    public private(set) var pairs: [Pair] = []

    /// How many runs the files are of.
    public var runCount: Int { runs.count }

    /// The history of all pairs, or only of those with the bare JID `person`.
    public init(of person: String? = nil) { self.person = person.map { Address($0).comparableBare } }

    /// What happened between the two, in the order of time.
    public func events(of pair: Pair) -> [Event] { events[pair, default: []].sorted { $0.time < $1.time } }

    /// Takes a header.
    public mutating func note(_ header: RecordHeader) { runs.note(header) }

    /// Takes a record; most say nothing of subscriptions.
    public mutating func note(_ record: Record) {
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

/// What became of the subscriptions between an account and a contact: the words and details of a record with the code
/// ``TapRecord/Record/Code/subscription``.
public struct SubscriptionChange: Sendable, Hashable, CustomStringConvertible {
    /// What stands for the state of a contact that was taken out of the roster.
    private static let removed = "removed"

    /// The contact's bare JID; what is no JID as it was written.
    public var contact: String
    /// The state before.
    public var before: SubscriptionState
    /// The state after; nil is a removal. The same as ``before`` where nothing changed.
    public var after: SubscriptionState?

    /// A change; no state after it is a removal.
    public init(contact: String, from before: SubscriptionState, to after: SubscriptionState?) {
        self.contact = contact
        self.before = before
        self.after = after
    }

    /// Reads ``details``; nil for those that another version wrote.
    public init?(_ details: Attributes) {
        guard let contact = details[Record.Detail.contact]?.text,
            let before = details[Record.Detail.before].flatMap({ SubscriptionState($0.text) }),
            let after = details[Record.Detail.after]?.text
        else { return nil }
        self.init(contact: contact, from: before, to: SubscriptionState(after))
        guard self.after != nil || after == Self.removed else { return nil }
    }

    /// The change as typed details.
    public var details: Attributes {
        [
            Record.Detail.contact: .string(contact), Record.Detail.before: .string("\(before)"),
            Record.Detail.after: .string(outcome),
        ]
    }

    /// The state after in words, `removed` for a removal.
    public var outcome: String { after.map { "\($0)" } ?? Self.removed }

    /// The states: `none → pending out`, or `both as before`.
    public var states: String {
        // States that are equally known are worded equally.
        let (before, after) = ("\(before)", outcome)
        return before == after ? "\(before) as before" : "\(before) → \(after)"
    }

    /// `juliet@example.net: none → pending out`, or `juliet@example.net: both as before`.
    public var description: String { "\(contact): \(states)" }
}
