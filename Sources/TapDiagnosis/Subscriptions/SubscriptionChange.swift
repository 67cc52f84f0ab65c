/// What became of the subscriptions between an account and a contact: the words of a record with the code
/// ``SubscriptionChange/code``.
public struct SubscriptionChange: Sendable, Hashable, CustomStringConvertible {
    /// The code of records that tell one.
    public static let code = "subscription"
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

    /// Reads ``description``; nil for any other text.
    public init?(_ text: String) {
        guard let colon = text.lastRange(of: ": ") else { return nil }
        contact = String(text[..<colon.lowerBound])
        let states = text[colon.upperBound...]
        if let arrow = states.lastRange(of: Self.arrow) {
            before = String(states[..<arrow.lowerBound])
            after = String(states[arrow.upperBound...])
        } else {
            guard states.hasSuffix(Self.same) else { return nil }
            before = String(states.dropLast(Self.same.count))
            after = before
        }
    }

    /// `juliet@example.net: none → pending out`, or `juliet@example.net: both as before`.
    public var description: String {
        before == after ? "\(contact): \(before)\(Self.same)" : "\(contact): \(before)\(Self.arrow)\(after)"
    }

    private static let arrow = " → "
    private static let same = " as before"
}

extension StringProtocol {
    /// Where `part` stands last.
    fileprivate func lastRange(of part: String) -> Range<Index>? { ranges(of: part).last }
}
