internal import COpenSSL
internal import Glibc
internal import Synchronization

/// A cache of parsed and verified server certificates. The connections of a run usually see only a few certificates,
/// and parsing and verifying one costs about as much as all other work outside TLS.
final class KnownCertificates: Sendable {
    private struct Entry {
        let info: CertificateInfo
        /// For each domain, the time at which the certificate was verified for it, in seconds since 1970, and the roles that
        /// its chain allows.
        var verified: [String: (time: Int, uses: CertificateUses)] = [:]
    }

    /// Maximum number of cached certificates, and of domains for each of them.
    private static let limit = 64
    /// Seconds for which a certificate is not verified again.
    private static let trustTime = 60

    /// The entries by SHA-256 of the certificate.
    private let entries = Mutex<[[UInt8]: Entry]>([:])

    /// Returns the contents of an `X509 *`, from the cache if possible.
    func info(of certificate: OpaquePointer) -> CertificateInfo {
        let fingerprint = CertificateInfo.fingerprint(of: certificate)
        if let info = entries.withLock({ $0[fingerprint]?.info }) { return info }
        let info = CertificateInfo(certificate)
        entries.withLock { entries in
            if entries.count >= Self.limit { entries.removeAll() }
            entries[fingerprint] = Entry(info: info)
        }
        return info
    }

    /// Returns whether the certificate was verified for the domain a short time ago, and has not expired since. The
    /// server and the rest of the chain do not matter, because the certificate itself was verified.
    ///
    /// - Parameter now: Seconds since 1970.
    func isGood(_ certificate: OpaquePointer, for reference: ServerReference, at now: Int = time(nil)) -> Bool {
        uses(of: certificate, for: reference, at: now) != nil
    }

    /// Returns the roles that the certificate's chain allows; nil unless ``isGood(_:for:at:)``.
    func uses(
        of certificate: OpaquePointer,
        for reference: ServerReference,
        at now: Int = time(nil)
    ) -> CertificateUses? {
        let fingerprint = CertificateInfo.fingerprint(of: certificate)
        return entries.withLock { entries in
            guard let entry = entries[fingerprint], let found = entry.verified[reference.domain],
                (found.time..<found.time &+ Self.trustTime).contains(now), entry.info.notAfter.seconds > Int64(now)
            else { return nil }
            return found.uses
        }
    }

    /// Stores that the certificate has just been verified for the domain.
    ///
    /// - Parameter now: Seconds since 1970.
    func recordVerified(
        _ certificate: OpaquePointer,
        for reference: ServerReference,
        uses: CertificateUses = .both,
        at now: Int = time(nil)
    ) {
        let info = info(of: certificate)
        entries.withLock { entries in
            var entry = entries[info.fingerprint] ?? Entry(info: info)
            // A certificate with a wildcard can be verified for any number of domains.
            if entry.verified.count >= Self.limit { entry.verified.removeAll() }
            entry.verified[reference.domain] = (now, uses)
            entries[info.fingerprint] = entry
        }
    }
}
