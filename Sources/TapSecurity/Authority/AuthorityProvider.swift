internal import Synchronization
package import TapRecord

/// The authorities of a folder; missing ones are created on demand if the policy allows it.
///
/// Up to ``cacheLimit`` valid authorities are cached; changes in the folder apply to names that are not cached.
/// Thread-safe.
package final class AuthorityProvider: AuthoritySource {
    /// The policy for creating authorities on demand.
    package struct Policy: Sendable {
        /// Domains for which an authority may be created on demand, regardless of the server's certificate. The
        /// authority is for the domain and also serves its subdomains.
        package var domains: [CertificateName] = []
        /// Whether authorities may be created for any other name with more than one label; the caller has verified the
        /// server.
        package var mayMakeAny = false
        /// Number of authorities in the folder at which no more are created (default: 64).
        package var limit = AuthorityProvider.usualLimit
        /// Public suffixes, for which no authority is created.
        package var suffixes = PublicSuffixes()
        /// Names of one label that belong to this machine.
        package var ownNames: Set<String> = ["localhost"]

        /// Creates a policy that allows no creation.
        package init() {}
    }

    /// Default of ``Policy/limit``.
    package static let usualLimit = 64
    /// Maximum number of cached authorities; the least recently used ones are evicted and read again when needed.
    static let cacheLimit = 64

    /// The folder of the authorities.
    package var folder: AuthorityFolder? { place }

    private let place: AuthorityFolder
    private let policy: Policy
    private let whenMade: @Sendable (CertificateAuthority) -> Void
    private let cache = Mutex(LRUCache<CertificateName, CertificateAuthority>(capacity: cacheLimit))
    /// Serialises creation, so that the limit holds.
    private let making = Mutex(())

    /// Creates a provider for a folder, which need not exist.
    ///
    /// - Parameter whenMade: Called with each authority that was created on demand, on the creating thread.
    package init(
        _ folder: AuthorityFolder,
        _ policy: Policy,
        whenMade: @escaping @Sendable (CertificateAuthority) -> Void = { _ in }
    ) {
        place = folder
        self.policy = policy
        self.whenMade = whenMade
    }

    /// Number of cached authorities.
    var countAtHand: Int { cache.withLock { $0.count } }

    /// Returns the authority with the longest name that covers a name; see ``AuthoritySource``.
    package func authority(
        covering name: CertificateName,
        at now: Timestamp
    ) throws(AuthorityError) -> CertificateAuthority? {
        // The longest name wins, cached or not: the result must not depend on earlier use.
        if let found = atHand(name, at: now) { return found }
        guard let found = try place.authority(forFirstOf: name.andAbove, known: { atHand($0, at: now) }) else {
            return nil
        }
        cache.withLock { $0.set(found, for: found.name) }
        return found
    }

    /// Creates an authority if the policy allows it; see ``AuthoritySource``.
    package func makeAuthority(
        for name: CertificateName,
        below wildcard: CertificateName?,
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool) {
        try checkLimit(for: name, below: wildcard)
        let wanted = try wanted(for: name, below: wildcard)
        let made = try making.withLock { _ throws(AuthorityError) in
            let names = try place.names()
            guard names.contains(wanted) || names.count < policy.limit else {
                throw AuthorityError(.tooMany(limit: policy.limit), "\(wanted)")
            }
            return try place.create(for: wanted, at: now)
        }
        cache.withLock { $0.set(made.authority, for: made.authority.name) }
        if made.isNew { whenMade(made.authority) }
        return made
    }

    /// Checks the limit first if it would refuse any creation, because clients choose the names.
    private func checkLimit(for name: CertificateName, below wildcard: CertificateName?) throws(AuthorityError) {
        guard policy.mayMakeAny, !policy.domains.contains(where: { $0.covers(name) }) else { return }
        let names = try place.names()
        guard names.count >= policy.limit, !names.contains(name), !names.contains(where: { $0 == wildcard }) else {
            return
        }
        throw AuthorityError(.tooMany(limit: policy.limit), "\(name)")
    }

    /// Returns the name for a new authority: a domain of the policy that covers the requested name, the domain of the
    /// wildcard name, or the requested name.
    private func wanted(
        for name: CertificateName,
        below wildcard: CertificateName?
    ) throws(AuthorityError) -> CertificateName {
        if let named = policy.domains.first(where: { $0.covers(name) }) {
            guard !policy.suffixes.contains(named) else { throw AuthorityError.publicSuffix(named) }
            return named
        }
        guard policy.mayMakeAny else { throw AuthorityError(.outside([]), "\(name)") }
        if let wildcard, wildcard != name, isOwnOrLonger(wildcard), !policy.suffixes.contains(wildcard) {
            return wildcard
        }
        guard !policy.suffixes.contains(name) else { throw AuthorityError.publicSuffix(name) }
        guard isOwnOrLonger(name) else { throw AuthorityError(.outside([]), "\(name)") }
        return name
    }

    /// Returns whether a name has more than one label or belongs to this machine. Other names of one label may be
    /// top-level domains that the Public Suffix List does not contain yet.
    private func isOwnOrLonger(_ name: CertificateName) -> Bool {
        guard case .domain(let domain) = name else { return true }
        return domain.contains(".") || policy.ownNames.contains(domain)
    }

    /// Returns a cached authority; nil if it has expired, because the folder may contain a renewed one.
    private func atHand(_ name: CertificateName, at now: Timestamp) -> CertificateAuthority? {
        cache.withLock { $0.value(name) }.flatMap { now <= $0.end ? $0 : nil }
    }
}

/// The source of the authorities that a ``CertificateMinter`` signs with.
///
/// Called from several threads without locks; each call may wait for the file system.
package protocol AuthoritySource: Sendable {
    /// The folder of the authorities, for advice to users; nil if they exist only in memory.
    var folder: AuthorityFolder? { get }

    /// Returns the authority with the longest name that may sign this name, currently valid or not; nil if there is
    /// none.
    func authority(covering name: CertificateName, at now: Timestamp) throws(AuthorityError) -> CertificateAuthority?

    /// Creates an authority for a name that no authority covers.
    ///
    /// - Parameter wildcard: The domain of a wildcard name in the server's certificate that covers the name, if any.
    /// - Returns: The authority, and whether it is new: another thread or program may have created it.
    /// - Throws: ``AuthorityError`` with the reason why none was created.
    func makeAuthority(
        for name: CertificateName,
        below wildcard: CertificateName?,
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool)
}

/// A fixed list of authorities.
struct AuthoritiesAtHand: AuthoritySource {
    let authorities: [CertificateAuthority]
    let folder: AuthorityFolder?

    func authority(covering name: CertificateName, at now: Timestamp) -> CertificateAuthority? {
        authorities.filter { $0.name.covers(name) }.max { "\($0.name)".utf8.count < "\($1.name)".utf8.count }
    }

    func makeAuthority(
        for name: CertificateName,
        below wildcard: CertificateName?,
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool) {
        throw AuthorityError(.outside(authorities.map(\.name)), "\(name)")
    }
}
