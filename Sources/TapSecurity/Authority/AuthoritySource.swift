public import TapRecord

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
