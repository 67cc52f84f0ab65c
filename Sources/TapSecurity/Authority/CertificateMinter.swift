internal import Synchronization
package import TapCore
package import TapRecord

/// Issues certificates for clients on demand, and caches them.
///
/// Thread-safe. Without a cached certificate, a call generates a key, signs, and parses two certificates (about 0.3
/// ms); it may also wait for the file system. So call it from a thread pool, not from an event loop.
/// ``remembered(for:mirroring:at:)`` never waits and can be tried first.
package final class CertificateMinter: Sendable {
    /// The server name that a client requested.
    package enum Subject: Sendable, Hashable {
        /// The client named the server, with SNI or with `to` in its stream header.
        case named(CertificateName)
        /// The client named no server; the connected server was verified under this name.
        case unnamed(verified: CertificateName)

        /// The requested or verified name.
        package var name: CertificateName {
            switch self {
            case .named(let name), .unnamed(let name): name
            }
        }
    }

    /// An issued certificate and its authority.
    package struct Minted: Sendable {
        /// The identity for handshakes.
        package let identity: TLSIdentity
        /// The name that the authority may sign for.
        package let authority: CertificateName
        /// Whether the authority was created for this certificate.
        package fileprivate(set) var isAuthorityNew = false
    }

    /// The cache key: the requested name, the certificate that supplies the mirrored names, and the roles.
    private struct Key: Hashable {
        let subject: Subject
        let mirrored: [UInt8]
        let uses: CertificateUses
    }

    private struct Leaf {
        let minted: Minted
        /// The time from which on a new certificate is issued.
        let renewal: Timestamp
    }

    private let leaves: Mutex<LRUCache<Key, Leaf>>
    private let source: any AuthoritySource
    private let times = Mutex(DurationHistogram())

    /// Maximum number of names. RFC 5280 sets no limit, but clients have to parse all names in each handshake.
    static let maximumNames = 100
    /// Lifetime of a leaf, from two days before it is issued. Platforms accept at least 397 days (Apple 825 for
    /// authorities added by the user), but leaves are not needed for longer than one run of the program.
    static let leafLifetime = Timestamp.days(90)

    /// Creates a minter with an empty cache.
    ///
    /// - Parameters:
    ///   - source: The source of authorities.
    ///   - capacity: Maximum number of cached leaves, at least 2 (default: 256); the least recently used are evicted.
    package init(_ source: some AuthoritySource, capacity: Int = 256) {
        self.source = source
        leaves = Mutex(LRUCache(capacity: capacity))
    }

    /// Creates a minter with a fixed list of authorities; names that they do not cover are refused.
    ///
    /// - Parameter folder: The folder of the authorities, if any.
    package convenience init(
        _ authorities: [CertificateAuthority],
        in folder: AuthorityFolder? = nil,
        capacity: Int = 256
    ) {
        self.init(AuthoritiesAtHand(authorities: authorities, folder: folder), capacity: capacity)
    }

    /// Number of cached leaves.
    package var count: Int { leaves.withLock { $0.count } }

    /// Durations of issuing leaves; cached ones are not counted.
    package var mintTimes: DurationHistogram { times.withLock { $0 } }

    /// The folder of the authorities; nil if they exist only in memory.
    package var folder: AuthorityFolder? { source.folder }

    /// Returns the certificate to present to a client, from the cache if possible.
    ///
    /// If the client named the server, the certificate is for that name, signed by the authority with the longest name
    /// that covers it. If there is none, one is created for the name, or for the domain of a wildcard name in the real
    /// certificate. If the client named no server, the certificate is for names of the real certificate, signed by the
    /// first authority that covers one of them, domains before addresses. If there is none, one is created.
    ///
    /// The certificate includes the names of the real one that the authority may sign: domains, addresses, services
    /// (SRV-ID) and XMPP addresses, one hundred at most.
    ///
    /// - Parameters:
    ///   - subject: The requested server.
    ///   - leaf: The verified certificate of the server in DER. If it is empty or cannot be parsed, the result has one
    ///     name.
    ///   - uses: The roles of the certificate (default: a server).
    ///   - now: The current time.
    /// - Throws: ``AuthorityError`` if no authority may sign the name, or if it is not valid now.
    package func certificate(
        for subject: Subject,
        mirroring leaf: [UInt8] = [],
        uses: CertificateUses = .server,
        at now: Timestamp
    ) throws(AuthorityError) -> Minted {
        let key = try Self.key(subject, leaf, uses)
        if let minted = remembered(key, at: now) { return minted }
        let start = ContinuousClock.now
        let real = AlternativeName.names(ofCertificate: leaf, limit: Self.maximumNames)
        let (authority, isNew) = try authority(for: subject, real, at: now)
        try authority.checkValidity(at: now)
        guard authority.uses.isSuperset(of: uses) else { throw AuthorityError(.serversOnly, "\(authority.name)") }
        var names: [AlternativeName] = []
        // A client that named no server gets only names that the server has.
        if case .named(let name) = subject { names.append(AlternativeName(name)) }
        for name in real where !names.contains(name) {
            if let owner = name.owner, authority.name.covers(owner) { names.append(name) }
        }
        if names.isEmpty { names.append(AlternativeName(subject.name)) }
        let begin = max(now.wholeSecond - CertificateAuthority.headStart, authority.begin)
        let end = min(begin + Self.leafLifetime, authority.end)
        var minted: Minted
        do throws(OpenSSLError) {
            minted = Minted(
                identity: try authority.leaf(for: names, uses: uses, from: begin, until: end),
                authority: authority.name
            )
        } catch {
            throw AuthorityError(error, subject.name)
        }
        // Renew after half of the remaining time, which also avoids reissuing for each call near the end of the
        // authority.
        let renewal = now + (end.nanoseconds &- now.nanoseconds) / 2
        leaves.withLock { $0.set(Leaf(minted: minted, renewal: renewal), for: key) }
        let time = (ContinuousClock.now - start).components
        times.withLock { $0.add(time.seconds * 1_000_000_000 + time.attoseconds / 1_000_000_000) }
        minted.isAuthorityNew = isNew
        return minted
    }

    /// Returns the identity for a client that named the server; see ``certificate(for:mirroring:at:)``.
    package func identity(
        for name: CertificateName,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) throws(AuthorityError) -> TLSIdentity {
        try certificate(for: .named(name), mirroring: leaf, at: now).identity
    }

    /// Returns the cached result of ``certificate(for:mirroring:at:)``, if any, without waiting.
    package func remembered(
        for subject: Subject,
        mirroring leaf: [UInt8] = [],
        uses: CertificateUses = .server,
        at now: Timestamp
    ) -> Minted? {
        (try? Self.key(subject, leaf, uses)).flatMap { remembered($0, at: now) }
    }

    private static func key(_ subject: Subject, _ leaf: [UInt8], _ uses: CertificateUses) throws(AuthorityError) -> Key
    {
        do throws(OpenSSLError) {
            return Key(
                subject: subject,
                mirrored: leaf.isEmpty ? [] : try CertificateAuthority.digest(leaf),
                uses: uses
            )
        } catch {
            throw AuthorityError(error, subject.name)
        }
    }

    private func remembered(_ key: Key, at now: Timestamp) -> Minted? {
        leaves.withLock { $0.value(key) }.flatMap { now < $0.renewal ? $0.minted : nil }
    }

    // MARK: Selection of the authority

    private func authority(
        for subject: Subject,
        _ real: [AlternativeName],
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool) {
        switch subject {
        case .named(let name):
            if let found = try source.authority(covering: name, at: now) { return (found, false) }
            let wildcard = name.domainAbove.flatMap { above in
                real.contains { $0.isWildcard && $0.owner == above } ? above : nil
            }
            return try source.makeAuthority(for: name, below: wildcard, at: now)
        case .unnamed(let verified):
            let owners = Self.owners(verified, real)
            for owner in owners {
                if let found = try source.authority(covering: owner, at: now) { return (found, false) }
            }
            var refusal: AuthorityError?
            for owner in owners {
                // The widest name of the server that covers this one also serves other names of the server, but no
                // names that the server lacks.
                let widest = owners.filter { $0.covers(owner) }.min { "\($0)".utf8.count < "\($1)".utf8.count }
                do throws(AuthorityError) {
                    return try source.makeAuthority(for: widest ?? owner, below: nil, at: now)
                } catch {
                    guard error.isUsage else { throw error }
                    refusal = refusal ?? error
                }
            }
            throw refusal ?? AuthorityError(.outside([]), "\(verified)")
        }
    }

    /// Returns the names under which a server with these names can be requested, in order of preference: the verified
    /// domain, its other domains, addresses. Clients usually request a domain, even if the server is reached by
    /// address.
    private static func owners(_ verified: CertificateName, _ real: [AlternativeName]) -> [CertificateName] {
        var owners: [CertificateName] = []
        for owner in [verified] + real.compactMap(\.owner) where !owners.contains(owner) { owners.append(owner) }
        return owners.filter(\.isDomain) + owners.filter { !$0.isDomain }
    }
}

extension AlternativeName {
    /// Whether the name covers the subdomains of its ``owner``.
    fileprivate var isWildcard: Bool {
        if case .domain(let text) = self { text.hasPrefix("*.") } else { false }
    }
}

extension CertificateName {
    /// The parent domain; nil for a top-level domain or an address.
    fileprivate var domainAbove: CertificateName? { andAbove.dropFirst().first }

    fileprivate var isDomain: Bool { if case .domain = self { true } else { false } }
}
