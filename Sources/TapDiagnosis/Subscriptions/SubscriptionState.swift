/// One of the nine subscription states of RFC 6121 appendix A.1, as an account sees a contact.
package struct SubscriptionState: Sendable, Hashable {
    /// The `type` of a presence stanza that manages a subscription (RFC 6121 §3).
    package enum PresenceType: String, Sendable {
        case subscribe, subscribed, unsubscribe, unsubscribed
    }

    /// Whether the account sees the contact's presence.
    package var to = false
    /// Whether the contact sees the account's presence.
    package var from = false
    /// Whether the account has requested the contact's presence, without an answer yet.
    package var isPendingOut = false
    /// Whether the contact has requested the account's presence, without an answer yet.
    package var isPendingIn = false
    /// Whether ``to`` and ``isPendingOut`` are known; false until a roster or a presence shows them.
    package var isToKnown = true
    /// Whether ``from`` and ``isPendingIn`` are known.
    package var isFromKnown = true

    /// Creates the state without subscriptions and requests.
    package init() {}

    /// Creates the state of a roster item (RFC 6121 §2.1.2). A roster does not contain requests that await the
    /// account's answer.
    package init(subscription: String?, ask: String?) {
        to = subscription == "to" || subscription == "both"
        from = subscription == "from" || subscription == "both"
        isPendingOut = ask == "subscribe" && !to
    }

    /// The state of a contact about which nothing is known.
    package static let unknown = {
        var state = SubscriptionState()
        (state.isToKnown, state.isFromKnown) = (false, false)
        return state
    }()

    /// The state in which both see each other's presence.
    package static let both = SubscriptionState(subscription: "both", ask: nil)

    /// The `subscription` of a roster item: `none`, `to`, `from` or `both`.
    package var subscription: String {
        switch (to, from) {
        case (true, true): "both"
        case (true, false): "to"
        case (false, true): "from"
        case (false, false): "none"
        }
    }

    /// Applies a presence that the account sent (RFC 6121 appendix A.2).
    package mutating func apply(sent kind: PresenceType) {
        switch kind {
        case .subscribe: (isPendingOut, isToKnown) = (isPendingOut || !to, true)
        case .unsubscribe: (to, isPendingOut, isToKnown) = (false, false, true)
        // An approval without a known request: the roster push of the server will show its effect.
        case .subscribed: (from, isPendingIn) = (from || isPendingIn, false)
        case .unsubscribed: (from, isPendingIn, isFromKnown) = (false, false, true)
        }
    }

    /// Applies a presence that the contact sent (RFC 6121 appendix A.3).
    package mutating func apply(received kind: PresenceType) {
        switch kind {
        case .subscribe: (isPendingIn, isFromKnown) = (isPendingIn || !from, true)
        case .unsubscribe: (from, isPendingIn, isFromKnown) = (false, false, true)
        // A server delivers an approval only if the account has requested the subscription (appendix A.3.3).
        case .subscribed: (to, isPendingOut, isToKnown) = (to || isPendingOut || !isToKnown, false, true)
        case .unsubscribed: (to, isPendingOut, isToKnown) = (false, false, true)
        }
    }
}

extension SubscriptionState: LosslessStringConvertible {
    /// All states by their ``description``, which leaves out unknown parts.
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

    /// Parses a ``description``; nil for other text.
    package init?(_ description: String) {
        guard let state = Self.described[description] else { return nil }
        self = state
    }

    /// The state as in the log: `none`, `pending out`, `to, pending in`, `both`; `unknown`, or `to (from unknown)` if
    /// half of it is known.
    package var description: String {
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
