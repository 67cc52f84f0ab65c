internal import Synchronization
public import TapCore
public import TapRecord

/// Makes the certificates that clients are shown, on demand, and remembers them.
///
/// It may be used from any thread. A call that finds nothing remembered makes a key and a signature and reads two
/// certificates, some 0.3 ms, and one that has to open an authority waits for the file system: call it from a thread pool,
/// not from an event loop. ``remembered(for:mirroring:at:)`` never waits and may be tried first.
public final class CertificateMinter: Sendable {
    /// The name that a client requested.
    public enum Subject: Sendable, Hashable {
        /// It has named it: in the server name of its TLS, or in the `to` of its stream.
        case named(CertificateName)
        /// It has not, and the server was verified to be this one.
        case unnamed(verified: CertificateName)

        /// What the server was verified for.
        public var name: CertificateName {
            switch self {
            case .named(let name), .unnamed(let name): name
            }
        }
    }

    /// A certificate that was made, and who vouches for it.
    public struct Minted: Sendable {
        /// What is shown in handshakes.
        public let identity: TLSIdentity
        /// What the authority may vouch for.
        public let authority: CertificateName
        /// The authority was made for this certificate.
        public fileprivate(set) var isAuthorityNew = false
    }

    /// What a leaf depends on: whom the client wants, and the real leaf whose names it mirrors.
    private struct Key: Hashable {
        let subject: Subject
        let mirrored: [UInt8]
    }

    private struct Leaf {
        let minted: Minted
        /// From when on another is made.
        let renewal: Timestamp
    }

    private let leaves: Mutex<LRUCache<Key, Leaf>>
    private let source: any AuthoritySource
    private let times = Mutex(DurationHistogram())

    /// RFC 5280 knows no limit, but a client has to read them all in each handshake.
    static let mostNames = 100
    /// From two days before it is made. Platforms accept 397 days at least (Apple 825 from authorities that the user
    /// has added), and none is needed longer than a run.
    static let leafLifetime = Timestamp.days(90)

    /// A minter that has made nothing yet.
    ///
    /// - Parameters:
    ///   - source: Where authorities come from.
    ///   - capacity: How many leaves are remembered, at least 2; 256 if none is given. Beyond that those that were not asked
    ///     for longest are forgotten.
    public init(_ source: some AuthoritySource, capacity: Int = 256) {
        self.source = source
        leaves = Mutex(LRUCache(capacity: capacity))
    }

    /// A minter for these authorities alone; names that they do not cover are refused.
    ///
    /// - Parameter folder: Where they are, if in a folder.
    public convenience init(
        _ authorities: [CertificateAuthority],
        in folder: AuthorityFolder? = nil,
        capacity: Int = 256
    ) {
        self.init(AuthoritiesAtHand(authorities: authorities, folder: folder), capacity: capacity)
    }

    /// How many leaves are remembered.
    public var count: Int { leaves.withLock { $0.count } }

    /// How long the leaves took to make, those not counted that were remembered.
    public var mintTimes: DurationHistogram { times.withLock { $0 } }

    /// The folder in which the authorities are; nil if they are in memory alone.
    public var folder: AuthorityFolder? { source.folder }

    /// The certificate to present to a client; issued if none is cached.
    ///
    /// For a client that names its server it is for that name, by the authority with the longest name that covers it; where
    /// there is none, one is made for the name, or for the domain whose subdomains a wildcard of the real leaf stands for.
    /// For a client that names none it is for names of the real leaf, by the first authority that covers one of them:
    /// domains before addresses. If there is none, one is created.
    ///
    /// It has those names of the real leaf that its CA may sign: domains, addresses, and, if the real leaf
    /// has them, services (SRV-ID) and addresses of XMPP. Other names of the real leaf are left out, as is what lies beyond
    /// the hundredth.
    ///
    /// - Parameters:
    ///   - subject: Whom the client wants.
    ///   - leaf: The server's own certificate in DER, which was verified. Without it, or where it cannot be read, the leaf
    ///     has one name.
    ///   - now: The time.
    /// - Throws: ``AuthorityError`` if no authority may vouch for the name, or the one that may is not valid now.
    public func certificate(
        for subject: Subject,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) throws(AuthorityError) -> Minted {
        let key = try Self.key(subject, leaf)
        if let minted = remembered(key, at: now) { return minted }
        let start = ContinuousClock.now
        let real = AlternativeName.names(ofCertificate: leaf, limit: Self.mostNames)
        let (authority, isNew) = try authority(for: subject, real, at: now)
        try authority.checkValidity(at: now)
        var names: [AlternativeName] = []
        // Who names no server gets no name that the server has not.
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
                identity: try authority.leaf(for: names, from: begin, until: end),
                authority: authority.name
            )
        } catch {
            throw AuthorityError(error, subject.name)
        }
        // In good time before its end, and so that near the authority's own end not each call makes another.
        let renewal = now + (end.nanoseconds &- now.nanoseconds) / 2
        leaves.withLock { $0.set(Leaf(minted: minted, renewal: renewal), for: key) }
        let time = (ContinuousClock.now - start).components
        times.withLock { $0.add(time.seconds * 1_000_000_000 + time.attoseconds / 1_000_000_000) }
        minted.isAuthorityNew = isNew
        return minted
    }

    /// The identity to show to a client that asks for a name; see ``certificate(for:mirroring:at:)``.
    public func identity(
        for name: CertificateName,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) throws(AuthorityError) -> TLSIdentity {
        try certificate(for: .named(name), mirroring: leaf, at: now).identity
    }

    /// What ``certificate(for:mirroring:at:)`` would give, if it is remembered; does not wait.
    public func remembered(
        for subject: Subject,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) -> Minted? {
        (try? Self.key(subject, leaf)).flatMap { remembered($0, at: now) }
    }

    private static func key(_ subject: Subject, _ leaf: [UInt8]) throws(AuthorityError) -> Key {
        do throws(OpenSSLError) {
            return Key(subject: subject, mirrored: leaf.isEmpty ? [] : try CertificateAuthority.digest(leaf))
        } catch {
            throw AuthorityError(error, subject.name)
        }
    }

    private func remembered(_ key: Key, at now: Timestamp) -> Minted? {
        leaves.withLock { $0.value(key) }.flatMap { now < $0.renewal ? $0.minted : nil }
    }

    // MARK: Which authority

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
                // One that serves other names of the server too, and none that the server has not.
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

    /// Whom a server with these names can be taken for, in the order in which they are tried: what it was verified for, if
    /// that is a domain, its other domains, addresses. By an address a server is reached; what a client wants is a domain
    /// as a rule.
    private static func owners(_ verified: CertificateName, _ real: [AlternativeName]) -> [CertificateName] {
        var owners: [CertificateName] = []
        for owner in [verified] + real.compactMap(\.owner) where !owners.contains(owner) { owners.append(owner) }
        return owners.filter(\.isDomain) + owners.filter { !$0.isDomain }
    }
}

extension AlternativeName {
    /// It stands for all subdomains of its ``owner``.
    fileprivate var isWildcard: Bool {
        if case .domain(let text) = self { text.hasPrefix("*.") } else { false }
    }
}

extension CertificateName {
    /// The domain that has one label less; nil for a top-level domain, and for an address.
    fileprivate var domainAbove: CertificateName? { andAbove.dropFirst().first }

    fileprivate var isDomain: Bool { if case .domain = self { true } else { false } }
}
