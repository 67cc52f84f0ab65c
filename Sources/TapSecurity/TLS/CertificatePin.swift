/// A server's certificate that is accepted by its fingerprint, whatever its chain, its dates and its names say.
///
/// A server with a pin that shows another certificate is refused.
package struct CertificatePin: Sendable, Hashable {
    /// SHA-256 of the certificate, 32 bytes.
    package let fingerprint: [UInt8]
    /// The domain whose servers must show the certificate; nil for all servers.
    package let domain: ServerReference?

    /// Reads a fingerprint: 64 hexadecimal digits, with or without colons. Nil if the text is none.
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

    /// A pin of this certificate for the servers of a domain.
    package init(_ certificate: CertificateInfo, for domain: ServerReference) {
        fingerprint = certificate.fingerprint
        self.domain = domain
    }

    /// Whether the servers of a domain must show a pinned certificate because of this pin.
    func covers(_ reference: ServerReference) -> Bool { domain.map { $0.isSameDomain(as: reference) } ?? true }

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
    /// The fingerprint as people compare it: capital hexadecimal digits, a colon between bytes.
    package var description: String { fingerprint.fingerprintText }
}
