/// Who sees whose presence, and who has asked to: one of the nine states of RFC 6121 appendix A.1, as an account sees a
/// contact.
public struct SubscriptionState: Sendable, Hashable {
    /// The `type` of a presence stanza that manages a subscription (RFC 6121 §3).
    public enum PresenceType: String, Sendable {
        case subscribe, subscribed, unsubscribe, unsubscribed
    }

    /// The account sees the contact's presence.
    public var to = false
    /// The contact sees the account's presence.
    public var from = false
    /// The account has asked to see the contact's presence, and has no answer yet.
    public var isPendingOut = false
    /// The contact has asked to see the account's presence, and has no answer yet.
    public var isPendingIn = false
    /// Whether ``to`` and ``isPendingOut`` are known; false while neither a roster nor a presence has shown them.
    public var isToKnown = true
    /// The same for ``from`` and ``isPendingIn``.
    public var isFromKnown = true

    /// No subscription, and nobody has asked.
    public init() {}

    /// What an item of a roster says (RFC 6121 §2.1.2): its `subscription` and its `ask`. A roster does not tell of
    /// requests that wait for the account's own answer.
    public init(subscription: String?, ask: String?) {
        to = subscription == "to" || subscription == "both"
        from = subscription == "from" || subscription == "both"
        isPendingOut = ask == "subscribe" && !to
    }

    /// Nothing has been shown of the contact.
    public static let unknown = {
        var state = SubscriptionState()
        (state.isToKnown, state.isFromKnown) = (false, false)
        return state
    }()

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
    public mutating func apply(sent kind: PresenceType) {
        switch kind {
        case .subscribe: (isPendingOut, isToKnown) = (isPendingOut || !to, true)
        case .unsubscribe: (to, isPendingOut, isToKnown) = (false, false, true)
        // Of an approval that no request is known for, the server's roster push says what it has changed.
        case .subscribed: (from, isPendingIn) = (from || isPendingIn, false)
        case .unsubscribed: (from, isPendingIn, isFromKnown) = (false, false, true)
        }
    }

    /// What a presence of the contact makes of it (RFC 6121 appendix A.3).
    public mutating func apply(received kind: PresenceType) {
        switch kind {
        case .subscribe: (isPendingIn, isFromKnown) = (isPendingIn || !from, true)
        case .unsubscribe: (from, isPendingIn, isFromKnown) = (false, false, true)
        // A server delivers it only where the account has asked (appendix A.3.3).
        case .subscribed: (to, isPendingOut, isToKnown) = (to || isPendingOut || !isToKnown, false, true)
        case .unsubscribed: (to, isPendingOut, isToKnown) = (false, false, true)
        }
    }
}

extension SubscriptionState: LosslessStringConvertible {
    /// Every state by its ``description``, in which what is not known does not count.
    private static let described = Dictionary(
        (0..<64).map { bits in
            var state = SubscriptionState()
            (state.to, state.from) = (bits & 1 != 0, bits & 2 != 0)
            (state.isPendingOut, state.isPendingIn) = (bits & 4 != 0, bits & 8 != 0)
            (state.isToKnown, state.isFromKnown) = (bits & 16 == 0, bits & 32 == 0)
            return (state.description, state)
        },
        uniquingKeysWith: { first, _ in first }
    )

    /// Reads a ``description``; nil for other texts.
    public init?(_ description: String) {
        guard let state = Self.described[description] else { return nil }
        self = state
    }

    /// As the log names it: `none`, `pending out`, `to, pending in`, `both`; `unknown`, or `to (from unknown)` where half of
    /// it is known.
    public var description: String {
        switch (isToKnown, isFromKnown) {
        case (true, true): break
        case (true, false): return "\(to ? "to" : isPendingOut ? "pending out" : "not to") (from unknown)"
        case (false, true): return "\(from ? "from" : isPendingIn ? "pending in" : "not from") (to unknown)"
        case (false, false): return "unknown"
        }
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
