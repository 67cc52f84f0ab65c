internal import Synchronization
public import TapCore

/// Makes the certificates that clients are shown, on demand, and remembers them.
///
/// It may be used from any thread. A call that finds nothing remembered makes a key and a signature and reads two
/// certificates, some 0.3 ms, and one that has to open an authority waits for the file system: call it from a thread pool,
/// not from an event loop. ``remembered(for:mirroring:at:)`` never waits and may be tried first.
///
/// Authorities stay in memory; what changes in their folder counts from the next run on.
public final class CertificateMinter: Sendable {
    /// Finds or makes an authority for a name that none at hand covers; `nil` where none may be.
    public typealias Opening = @Sendable (CertificateName) throws(AuthorityError) -> CertificateAuthority?

    /// What a leaf depends on: the name that was asked for, and the real leaf whose names it mirrors.
    private struct Key: Hashable {
        let name: CertificateName
        let mirrored: [UInt8]
    }

    private struct Leaf {
        let identity: TLSIdentity
        /// From when on another is made.
        let renewal: Timestamp
        var lastUse: UInt64
    }

    private struct State {
        var authorities: [CertificateAuthority]
        var leaves: [Key: Leaf] = [:]
        var uses: UInt64 = 0
    }

    private let state: Mutex<State>
    private let opening: Opening?
    private let capacity: Int

    /// RFC 5280 knows no limit, but a client has to read them all in each handshake.
    static let mostNames = 100
    /// From two days before it is made. Platforms accept 397 days at least (Apple 825 from authorities that the user
    /// has added), and nobody needs one longer than a run.
    static let leafLifetime = Timestamp.days(90)

    /// A minter that has made nothing yet.
    ///
    /// - Parameters:
    ///   - authorities: Those at hand.
    ///   - capacity: How many leaves are remembered, at least 1; 256 if none is given. Beyond that the one that was not
    ///     asked for longest is forgotten.
    ///   - opening: Where further authorities come from. Called without a lock held, possibly by several threads at once
    ///     for one name. Without it names that the authorities do not cover are refused.
    public init(_ authorities: [CertificateAuthority], capacity: Int = 256, opening: Opening? = nil) {
        state = Mutex(State(authorities: authorities))
        self.capacity = max(1, capacity)
        self.opening = opening
    }

    /// How many leaves are remembered.
    public var count: Int { state.withLock { $0.leaves.count } }

    /// The identity to show to a client that asks for a name, made where none is remembered.
    ///
    /// It is for the name, and for those names of the real leaf that its authority may vouch for: domains, addresses,
    /// and, where the real leaf has them, services (SRV-ID) and addresses of XMPP. Other names of the real leaf are left
    /// out, as is what lies beyond the hundredth.
    ///
    /// - Parameters:
    ///   - name: The server name of the client's TLS, or where it has none the `to` of its stream.
    ///   - leaf: The server's own certificate in DER. Without it, or where it cannot be read, the leaf has one name.
    ///   - now: The time.
    /// - Throws: ``AuthorityError`` where no authority may vouch for the name, or the one that may is not valid now.
    public func identity(
        for name: CertificateName,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) throws(AuthorityError) -> TLSIdentity {
        let key = try Self.key(name, leaf)
        if let identity = remembered(key, at: now) { return identity }
        let authority = try authority(for: name, at: now)
        try authority.checkValidity(at: now)
        var names = [AlternativeName(name)]
        for other in AlternativeName.names(ofCertificate: leaf, limit: Self.mostNames) {
            if let owner = other.owner, authority.name.covers(owner), !names.contains(other) { names.append(other) }
        }
        let begin = max(now.wholeSecond - CertificateAuthority.headStart, authority.begin)
        let end = min(begin + Self.leafLifetime, authority.end)
        let identity: TLSIdentity
        do throws(OpenSSLError) {
            identity = try authority.leaf(for: names, from: begin, until: end)
        } catch {
            throw AuthorityError(error, name)
        }
        // In good time before its end, and so that near the authority's own end not each call makes another.
        let renewal = now + (end.nanoseconds &- now.nanoseconds) / 2
        remember(identity, key, until: renewal)
        return identity
    }

    /// The identity that ``identity(for:mirroring:at:)`` would give, if it is remembered; does not wait.
    public func remembered(
        for name: CertificateName,
        mirroring leaf: [UInt8] = [],
        at now: Timestamp
    ) -> TLSIdentity? {
        (try? Self.key(name, leaf)).flatMap { remembered($0, at: now) }
    }

    private static func key(_ name: CertificateName, _ leaf: [UInt8]) throws(AuthorityError) -> Key {
        do throws(OpenSSLError) {
            return Key(name: name, mirrored: leaf.isEmpty ? [] : try CertificateAuthority.digest(leaf))
        } catch {
            throw AuthorityError(error, name)
        }
    }

    private func remembered(_ key: Key, at now: Timestamp) -> TLSIdentity? {
        state.withLock { state in
            guard let leaf = state.leaves[key], now < leaf.renewal else { return nil }
            state.uses &+= 1
            state.leaves[key]?.lastUse = state.uses
            return leaf.identity
        }
    }

    private func remember(_ identity: TLSIdentity, _ key: Key, until renewal: Timestamp) {
        state.withLock { state in
            if state.leaves.count >= capacity, state.leaves[key] == nil,
                let oldest = state.leaves.min(by: { $0.value.lastUse < $1.value.lastUse })
            {
                state.leaves[oldest.key] = nil
            }
            state.uses &+= 1
            state.leaves[key] = Leaf(identity: identity, renewal: renewal, lastUse: state.uses)
        }
    }

    /// The authority with the longest name that covers this one. One whose time is over may have been renewed meanwhile.
    private func authority(
        for name: CertificateName,
        at now: Timestamp
    ) throws(AuthorityError) -> CertificateAuthority {
        func nearest(_ authorities: [CertificateAuthority]) -> CertificateAuthority? {
            authorities.filter { $0.name.covers(name) }
                .max { "\($0.name)".utf8.count < "\($1.name)".utf8.count }
        }
        let atHand = state.withLock { $0.authorities }
        if let found = nearest(atHand), opening == nil || now <= found.end { return found }
        guard let opened = try opening?(name), opened.name.covers(name) else {
            throw AuthorityError(.outside(atHand.map(\.name)), "\(name)")
        }
        return state.withLock { state in
            state.authorities.removeAll { $0.end < now }
            // Another thread may have been quicker; both have the same one unless it is made in memory.
            if let found = nearest(state.authorities) { return found }
            state.authorities.append(opened)
            return opened
        }
    }
}
