public import XMPPCore

/// Who sees whose presence, and who has asked to: one of the nine states of RFC 6121 appendix A.1, as an account sees a
/// contact.
public struct SubscriptionState: Sendable, Hashable {
    /// The account sees the contact's presence.
    public var to = false
    /// The contact sees the account's presence.
    public var from = false
    /// The account has asked to see the contact's presence, and has no answer yet.
    public var isPendingOut = false
    /// The contact has asked to see the account's presence, and has no answer yet.
    public var isPendingIn = false

    /// No subscription, and nobody has asked.
    public init() {}

    /// What an item of a roster says (RFC 6121 §2.1.2): its `subscription` and its `ask`. A roster does not tell of
    /// requests that wait for the account's own answer.
    public init(subscription: String?, ask: String?) {
        to = subscription == "to" || subscription == "both"
        from = subscription == "from" || subscription == "both"
        isPendingOut = ask == "subscribe" && !to
    }

    /// Both see each other's presence.
    public static let both = SubscriptionState(subscription: "both", ask: nil)

    /// The `subscription` of a roster item: `none`, `to`, `from` or `both`.
    public var subscription: String {
        switch (to, from) {
        case (true, true): "both"
        case (true, false): "to"
        case (false, true): "from"
        case (false, false): "none"
        }
    }

    /// What a presence of the account itself makes of it (RFC 6121 appendix A.2).
    public mutating func apply(sent kind: Presence.Kind) {
        switch kind {
        case .subscribe: isPendingOut = isPendingOut || !to
        case .unsubscribe: (to, isPendingOut) = (false, false)
        case .subscribed: (from, isPendingIn) = (from || isPendingIn, false)
        case .unsubscribed: (from, isPendingIn) = (false, false)
        default: break
        }
    }

    /// What a presence of the contact makes of it (RFC 6121 appendix A.3).
    public mutating func apply(received kind: Presence.Kind) {
        switch kind {
        case .subscribe: isPendingIn = isPendingIn || !from
        case .unsubscribe: (from, isPendingIn) = (false, false)
        case .subscribed: (to, isPendingOut) = (to || isPendingOut, false)
        case .unsubscribed: (to, isPendingOut) = (false, false)
        default: break
        }
    }
}

extension SubscriptionState: CustomStringConvertible {
    /// As the log names it: `none`, `pending out`, `to, pending in`, `both`.
    public var description: String {
        let pending =
            switch (isPendingOut, isPendingIn) {
            case (true, true): "pending out and in"
            case (true, false): "pending out"
            case (false, true): "pending in"
            case (false, false): ""
            }
        if pending.isEmpty { return subscription }
        return to || from ? "\(subscription), \(pending)" : pending
    }
}
