internal import COpenSSL

/// The roles in TLS that a certificate may be used for, from its key usage and its extended key usage (RFC 5280 §4.2.1.3,
/// §4.2.1.12). A certificate without these extensions may be used for both.
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

    /// Reads the certificate of an authority, an `X509 *`, without keeping a reference to it.
    init(authority certificate: OpaquePointer) { self.init(certificate, isAuthority: true) }

    /// Returns the roles that all certificates of a verified chain allow, the leaf first; its trust anchor may be for any.
    init(chain: [OpaquePointer]) {
        self = chain.enumerated().reduce(.both) { uses, element in
            let isAnchor = element.offset > 0 && element.offset == chain.count - 1
            return isAnchor ? uses : uses.intersection(Self(element.element, isAuthority: element.offset > 0))
        }
    }

    private init(_ certificate: OpaquePointer, isAuthority: Bool) {
        var uses: CertificateUses = []
        let ca: Int32 = isAuthority ? 1 : 0
        // The result is above 1 for authorities of an old form.
        if X509_check_purpose(certificate, X509_PURPOSE_SSL_SERVER, ca) > 0 { uses.insert(.server) }
        if X509_check_purpose(certificate, X509_PURPOSE_SSL_CLIENT, ca) > 0 { uses.insert(.client) }
        ERR_clear_error()
        self = uses
    }
}
