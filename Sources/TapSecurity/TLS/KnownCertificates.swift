internal import COpenSSL
internal import Glibc
internal import Synchronization

/// A cache of parsed and verified server certificates. The connections of a run show the same few, and reading and
/// verifying one costs about as much as all other work outside TLS.
final class KnownCertificates: Sendable {
    private struct Entry {
        let info: CertificateInfo
        /// Domains it was found good for, and when, in seconds since 1970.
        var verified: [String: Int] = [:]
    }

    /// Certificates that are remembered, and domains of each.
    private static let limit = 64
    /// Seconds for which a certificate that was found good is not verified again.
    private static let trustTime = 60

    /// By their SHA-256.
    private let entries = Mutex<[[UInt8]: Entry]>([:])

    /// Returns the contents of an `X509 *`.
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

    /// Whether the certificate was found good for the domain a moment ago, and has not ended since. Who showed it with
    /// which others does not matter: it is the certificate that is good.
    ///
    /// - Parameter now: Seconds since 1970.
    func isGood(_ certificate: OpaquePointer, for reference: ServerReference, at now: Int = time(nil)) -> Bool {
        let fingerprint = CertificateInfo.fingerprint(of: certificate)
        return entries.withLock { entries in
            guard let entry = entries[fingerprint], let found = entry.verified[reference.domain] else { return false }
            return (found..<found &+ Self.trustTime).contains(now) && entry.info.notAfter.seconds > Int64(now)
        }
    }

    /// Notes that the certificate has just been found good for the domain.
    ///
    /// - Parameter now: Seconds since 1970.
    func noteGood(_ certificate: OpaquePointer, for reference: ServerReference, at now: Int = time(nil)) {
        let info = info(of: certificate)
        entries.withLock { entries in
            var entry = entries[info.fingerprint] ?? Entry(info: info)
            // One with a wildcard is good for as many domains as clients can think of.
            if entry.verified.count >= Self.limit { entry.verified.removeAll() }
            entry.verified[reference.domain] = now
            entries[info.fingerprint] = entry
        }
    }
}
