internal import Synchronization
public import TapRecord

/// The authorities of a folder, further ones made on demand, as far as that is allowed.
///
/// What changes in the folder counts for names that are not remembered: an authority stays in memory while it is valid, at
/// most ``mostAtHand`` of them. May be used from any thread.
public final class AuthorityProvider: AuthoritySource {
    /// For which names authorities are made on demand, and how many.
    public struct Policy: Sendable {
        /// Domains for which, and below which, one is made for the domain, whatever the server's certificate says.
        public var domains: [CertificateName] = []
        /// Any other name may have one too, as long as that is no name of one label: the caller has verified the server.
        public var mayMakeAny = false
        /// Number of CAs in the folder at which none is created on demand; default 64.
        public var limit = AuthorityProvider.usualLimit
        /// Names for which none is made on demand: public suffixes.
        public var suffixes = PublicSuffixes()
        /// Names of one label that are this machine's own.
        public var ownNames: Set<String> = ["localhost"]

        /// A policy by which none is made.
        public init() {}
    }

    /// Authorities from which on none is made on demand, unless another limit is given: two files each.
    public static let usualLimit = 64
    /// Authorities that are kept in memory; beyond them those that were not used for longest are read again when they are
    /// needed.
    static let mostAtHand = 64

    /// The folder.
    public var folder: AuthorityFolder? { place }

    private let place: AuthorityFolder
    private let policy: Policy
    private let whenMade: @Sendable (CertificateAuthority) -> Void
    private let cache = Mutex(LRUCache<CertificateName, CertificateAuthority>(capacity: mostAtHand))
    /// Held while one is made, so that the limit is kept.
    private let making = Mutex(())

    /// The authorities of a folder, which need not be there.
    ///
    /// - Parameter whenMade: Told of each that was made on demand, on the thread that made it.
    public init(
        _ folder: AuthorityFolder,
        _ policy: Policy,
        whenMade: @escaping @Sendable (CertificateAuthority) -> Void = { _ in }
    ) {
        place = folder
        self.policy = policy
        self.whenMade = whenMade
    }

    /// How many are in memory.
    var countAtHand: Int { cache.withLock { $0.count } }

    /// See ``AuthoritySource/authority(covering:at:)``.
    public func authority(
        covering name: CertificateName,
        at now: Timestamp
    ) throws(AuthorityError) -> CertificateAuthority? {
        // The longest name first, in memory or not: which were used before decides nothing.
        if let found = atHand(name, at: now) { return found }
        guard let found = try place.authority(forFirstOf: name.andAbove, known: { atHand($0, at: now) }) else {
            return nil
        }
        cache.withLock { $0.set(found, for: found.name) }
        return found
    }

    /// See ``AuthoritySource/makeAuthority(for:below:at:)``: as far as the policy allows.
    public func makeAuthority(
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

    /// Refuses at once what the limit refuses in any case: names come from the wire.
    private func checkLimit(for name: CertificateName, below wildcard: CertificateName?) throws(AuthorityError) {
        guard policy.mayMakeAny, !policy.domains.contains(where: { $0.covers(name) }) else { return }
        let names = try place.names()
        guard names.count >= policy.limit, !names.contains(name), !names.contains(where: { $0 == wildcard }) else {
            return
        }
        throw AuthorityError(.tooMany(limit: policy.limit), "\(name)")
    }

    /// For whom one is made; the narrowest that serves all names of which this is one.
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

    /// Whether a name has more than one label, or is this machine's: any other of one label may be a whole top-level
    /// domain, one that no list knows yet.
    private func isOwnOrLonger(_ name: CertificateName) -> Bool {
        guard case .domain(let domain) = name else { return true }
        return domain.contains(".") || policy.ownNames.contains(domain)
    }

    /// One whose time is over may have been renewed meanwhile.
    private func atHand(_ name: CertificateName, at now: Timestamp) -> CertificateAuthority? {
        cache.withLock { $0.value(name) }.flatMap { now <= $0.end ? $0 : nil }
    }
}

/// Where a ``CertificateMinter`` gets the authorities that sign.
///
/// Called without a lock held, from several threads at once; each call may wait for the file system.
public protocol AuthoritySource: Sendable {
    /// The folder in which the authorities are, for words that tell people what to do; nil if they are in memory alone.
    var folder: AuthorityFolder? { get }

    /// The CA with the longest name that may sign this name, valid now or not; nil if there is none.
    func authority(covering name: CertificateName, at now: Timestamp) throws(AuthorityError) -> CertificateAuthority?

    /// Makes an authority that may vouch for a name, for which there is none.
    ///
    /// - Parameter wildcard: The domain of the wildcard name in the server's certificate that covers the name, if any.
    /// - Returns: The authority, and whether it was made just now: another thread or program may have been quicker.
    /// - Throws: ``AuthorityError`` that says why none is made.
    func makeAuthority(
        for name: CertificateName,
        below wildcard: CertificateName?,
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool)
}

/// Authorities that are at hand, and no others.
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
