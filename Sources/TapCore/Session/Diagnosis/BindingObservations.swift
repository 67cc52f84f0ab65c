internal import Synchronization
internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// What servers were seen to do with logins that the standards of channel binding have them refuse, over all sessions of a
/// run.
///
/// Domains are kept as hashes under a key of this process. Bounded: those not seen for longest are forgotten first.
final class BindingObservations: Sendable {
    /// Domains and causes that are known at most.
    static let capacity = 2048

    private let table = Mutex(LRUCache<Int, Bool>(capacity: BindingObservations.capacity))

    /// Notes whether a server of `domain` has accepted such a login.
    func note(_ domain: String, _ cause: LoginCause, accepted: Bool) {
        let key = Self.key(domain, cause)
        table.withLock { table in
            table.update(key, default: accepted) { $0 = accepted }
        }
    }

    /// Whether a server of `domain` has accepted such a login when it was last seen; nil where none was.
    func seen(_ domain: String, _ cause: LoginCause) -> Bool? {
        let key = Self.key(domain, cause)
        return table.withLock { $0.peek(key) }
    }

    private static func key(_ domain: String, _ cause: LoginCause) -> Int {
        var hasher = Hasher()
        hasher.combine(Address(domain).comparableBare)
        hasher.combine(cause)
        return hasher.finalize()
    }
}
