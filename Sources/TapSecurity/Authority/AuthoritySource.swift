public import TapRecord

/// Where a ``CertificateMinter`` gets the authorities that sign.
///
/// Called without a lock held, from several threads at once; each call may wait for the file system.
public protocol AuthoritySource: Sendable {
    /// The folder in which the authorities are, for words that tell people what to do; nil where they are in memory alone.
    var folder: AuthorityFolder? { get }

    /// The authority with the longest name that may vouch for this one, be it valid now or not; nil where there is none.
    func authority(covering name: CertificateName, at now: Timestamp) throws(AuthorityError) -> CertificateAuthority?

    /// Makes an authority that may vouch for a name, for which there is none.
    ///
    /// - Parameter wildcard: The domain for all of whose subdomains the server's certificate stands, where the name is one.
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
