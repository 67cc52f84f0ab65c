/// A server's certificate that is accepted by its fingerprint, regardless of its chain, validity and names.
///
/// If a server with a pin presents another certificate, it is refused.
package struct CertificatePin: Sendable, Hashable {
    /// The SHA-256 of the certificate, 32 bytes.
    package let fingerprint: [UInt8]
    /// The domain whose servers must show the certificate; nil for all servers.
    package let domain: ServerReference?

    /// Parses a fingerprint: 64 hexadecimal digits, with or without colons. Nil for other text.
    package init?(_ text: String) {
        let digits = text.utf8.filter { $0 != UInt8(ascii: ":") }
        guard digits.count == 64 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Self.value(of: digits[start]), let low = Self.value(of: digits[start + 1]) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        fingerprint = bytes
        domain = nil
    }

    /// Creates a pin of a certificate for the servers of a domain.
    package init(_ certificate: CertificateInfo, for domain: ServerReference) {
        fingerprint = certificate.fingerprint
        self.domain = domain
    }

    /// Returns whether this pin requires the servers of a domain to present the certificate.
    package func covers(_ reference: ServerReference) -> Bool { domain.map { $0.isSameDomain(as: reference) } ?? true }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension CertificatePin: CustomStringConvertible {
    /// The fingerprint as uppercase hexadecimal digits, with a colon between bytes.
    package var description: String { fingerprint.fingerprintText }
}
