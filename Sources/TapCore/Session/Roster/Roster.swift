internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// What a session has shown of its account's roster: for each contact the state of both subscriptions.
///
/// Bounded by ``capacity`` and ``byteCapacity``. A change is O(1), however many contacts are known.
struct Roster {
    /// Contacts that are followed; of further ones nothing is known.
    static let capacity = 10_000
    /// Bytes of their addresses that are kept: what no server would accept as one may be as long as a tag.
    static let byteCapacity = 1 << 20

    /// A change of one contact's state, to be told.
    struct Change {
        var contact: String
        var before: SubscriptionState
        /// Nil where the contact was removed.
        var after: SubscriptionState?
    }

    private var contacts: [String: SubscriptionState] = [:]
    /// The whole roster has been shown: who is not in ``contacts`` is no contact. A versioned roster that the client has
    /// already is not shown (RFC 6121 §2.6).
    private var isComplete = false
    /// A contact was not kept for want of room.
    private var hasForgotten = false
    /// Bytes of the contacts' addresses.
    private(set) var byteCount = 0

    /// A presence about a subscription goes by. Nil where it is about none, or names nobody.
    mutating func apply(_ kind: SubscriptionState.PresenceType, _ direction: Direction, contact: String) -> Change {
        let before = state(of: contact)
        var after = before
        switch direction {
        case .send: after.apply(sent: kind)
        case .recv: after.apply(received: kind)
        }
        set(contact, after)
        return Change(contact: contact, before: before, after: after)
    }

    /// The server has shown the whole roster, each item by ``apply(_:)``.
    mutating func complete() { isComplete = !hasForgotten }

    private func state(of contact: String) -> SubscriptionState {
        contacts[contact] ?? (isComplete ? SubscriptionState() : .unknown)
    }

    /// The server tells one item of the roster, in a push or in the roster itself.
    mutating func apply(_ item: Element) -> Change? {
        guard item.matches("item", .roster), let contact = item.attribute("jid").map({ Address($0).comparableBare })
        else { return nil }
        let before = state(of: contact)
        guard item.attribute("subscription") != "remove" else {
            if contacts.removeValue(forKey: contact) != nil { byteCount -= contact.utf8.count }
            return Change(contact: contact, before: before, after: nil)
        }
        var after = SubscriptionState(subscription: item.attribute("subscription"), ask: item.attribute("ask"))
        after.isPendingIn = before.isPendingIn && !after.from
        set(contact, after)
        return Change(contact: contact, before: before, after: after)
    }

    private mutating func set(_ contact: String, _ state: SubscriptionState) {
        if contacts[contact] == nil {
            let size = contact.utf8.count
            guard contacts.count < Self.capacity, byteCount + size <= Self.byteCapacity else {
                hasForgotten = true
                isComplete = false
                return
            }
            byteCount += size
        }
        contacts[contact] = state
    }
}
