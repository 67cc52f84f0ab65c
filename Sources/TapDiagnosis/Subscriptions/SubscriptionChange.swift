public import TapRecord

/// What became of the subscriptions between an account and a contact: the words and details of a record with the code
/// ``TapRecord/Record/Code/subscription``.
public struct SubscriptionChange: Sendable, Hashable, CustomStringConvertible {
    /// What stands for the state of a contact that was taken out of the roster.
    public static let removed = "removed"

    /// The contact's bare JID; what is no JID as it was written.
    public var contact: String
    /// The state before, in the words of ``SubscriptionState``.
    public var before: String
    /// The state after, or ``removed``; the same as ``before`` where nothing changed.
    public var after: String

    /// A change; no state after it is a removal.
    public init(contact: String, from before: SubscriptionState, to after: SubscriptionState?) {
        self.contact = contact
        self.before = "\(before)"
        self.after = after.map { "\($0)" } ?? Self.removed
    }

    /// Reads ``details``; nil for those that an older program wrote.
    public init?(_ details: Attributes) {
        guard let contact = details[Record.Detail.contact]?.text, let before = details[Record.Detail.before]?.text,
            let after = details[Record.Detail.after]?.text
        else { return nil }
        self.contact = contact
        self.before = before
        self.after = after
    }

    /// The change as typed details.
    public var details: Attributes {
        [
            Record.Detail.contact: .string(contact), Record.Detail.before: .string(before),
            Record.Detail.after: .string(after),
        ]
    }

    /// `juliet@example.net: none → pending out`, or `juliet@example.net: both as before`.
    public var description: String {
        before == after ? "\(contact): \(before) as before" : "\(contact): \(before) → \(after)"
    }
}
