internal import COpenSSL

/// The roles in TLS that a certificate may be used for, from its extended key usage (RFC 5280 §4.2.1.12). A certificate
/// without that extension may be used for both.
package struct CertificateUses: OptionSet, Sendable, Hashable {
    /// One bit for each role.
    package let rawValue: UInt8

    /// Creates a set from its bits.
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// serverAuth: the certificate of a TLS server.
    package static let server = CertificateUses(rawValue: 1)
    /// clientAuth: the certificate of a TLS client.
    package static let client = CertificateUses(rawValue: 2)
    /// Both roles, as between XMPP servers (XEP-0178 §2).
    package static let both: CertificateUses = [.server, .client]

    /// Reads an `X509 *`, without keeping a reference to it.
    init(_ certificate: OpaquePointer) {
        let usage = X509_get_extended_key_usage(certificate)
        let isAny = usage & UInt32(XKU_ANYEKU) != 0
        var uses: CertificateUses = []
        if isAny || usage & UInt32(XKU_SSL_SERVER) != 0 { uses.insert(.server) }
        if isAny || usage & UInt32(XKU_SSL_CLIENT) != 0 { uses.insert(.client) }
        self = uses
    }
}
