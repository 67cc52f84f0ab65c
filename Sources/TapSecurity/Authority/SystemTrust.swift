internal import COpenSSL

/// The trust anchors of the system, as configured for OpenSSL.
package final class SystemTrust {
    private let store: OpaquePointer

    /// Opens the trust store; nil if it cannot be loaded.
    package init?() {
        defer { ERR_clear_error() }
        guard let store = X509_STORE_new() else { return nil }
        guard X509_STORE_set_default_paths(store) == 1 else {
            X509_STORE_free(store)
            return nil
        }
        self.store = store
    }

    deinit { X509_STORE_free(store) }

    /// Returns whether an authority is trusted system-wide, so that all programs accept what its key signs.
    package func holds(_ authority: CertificateAuthority) -> Bool {
        defer { ERR_clear_error() }
        guard let certificate = parsedCertificate(authority.certificate) else { return false }
        defer { X509_free(certificate) }
        guard let context = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, certificate, nil) == 1 else { return false }
        return X509_verify_cert(context) == 1
    }
}
