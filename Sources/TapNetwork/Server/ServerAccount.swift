internal import TapCore
internal import TapDiagnosis
internal import TapSecurity
internal import XMPPCore

/// One account: its credentials, its roster, and its connections.
struct ServerAccount: Sendable {
    /// The bare JID.
    let jid: JID
    /// The contacts, by bare JID.
    var roster: [JID: RosterItem] = [:]
    /// The connected resources, the oldest first.
    var resources: [Resource] = []

    struct Resource: Sendable {
        let connection: ConnectionID
        /// The full JID.
        let jid: JID
        /// The last broadcast presence; nil while the resource is unavailable.
        var presence: Element?
        /// The priority of ``presence``, from -128 to 127.
        var priority = 0
        /// Whether it has requested the roster, and therefore gets roster pushes.
        var wantsPushes = false
        /// JIDs that received directed presence; they also get the unavailable presence.
        var directed: Set<JID> = []

        var isAvailable: Bool { presence != nil }
    }

    /// The resources that receive a message to the bare JID: available resources with the highest priority, which must
    /// not be negative (RFC 6121 §8.5.2.1.1).
    var recipients: [Resource] {
        let available = resources.filter { $0.isAvailable && $0.priority >= 0 }
        let highest = available.map(\.priority).max()
        return available.filter { $0.priority == highest }
    }
}

/// A contact in a roster, with the state of both subscriptions (RFC 6121 §2.1.2, appendix A).
struct RosterItem: Sendable {
    let jid: JID
    var name: String?
    var groups: [String] = []
    var state = SubscriptionState()
    /// Whether the item is visible in the roster; items with only a pending request are not.
    var isListed = true

    func write(to xml: inout XMLWriter) {
        let ask = state.isPendingOut ? "subscribe" : nil
        xml.element(
            "item",
            ["jid": jid.description, "name": name, "subscription": state.subscription, "ask": ask]
        ) {
            for group in groups { $0.element("group", text: group) }
        }
    }
}

/// The stored form of a password: one set of SCRAM keys for each hash.
struct ServerCredentials: Sendable {
    private let keys: [HashAlgorithm: SCRAMCredentials]

    init(password: String, algorithms: Set<HashAlgorithm>, cryptography: any Cryptography) throws {
        var keys: [HashAlgorithm: SCRAMCredentials] = [:]
        for algorithm in algorithms {
            keys[algorithm] = try SCRAMCredentials(
                algorithm,
                password: password,
                salt: cryptography.randomBytes(count: 16),
                cryptography: cryptography
            )
        }
        self.keys = keys
    }

    subscript(algorithm: HashAlgorithm) -> SCRAMCredentials? { keys[algorithm] }

    /// Returns whether this is the password from which the keys were made.
    func match(_ password: String, cryptography: any Cryptography) -> Bool {
        keys.first.map { $0.value.match(password, $0.key, cryptography) } ?? false
    }
}
