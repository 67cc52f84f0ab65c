internal import COpenSSL

/// The roots that all programs of this machine trust, as OpenSSL finds them.
public final class SystemTrust {
    private let store: OpaquePointer

    /// Opens them; nil if there are none.
    public init?() {
        defer { ERR_clear_error() }
        guard let store = X509_STORE_new() else { return nil }
        guard X509_STORE_set_default_paths(store) == 1 else {
            X509_STORE_free(store)
            return nil
        }
        self.store = store
    }

    deinit { X509_STORE_free(store) }

    /// Whether an authority is among them: then not only the clients that are to be looked at trust what its key signs.
    public func holds(_ authority: CertificateAuthority) -> Bool {
        defer { ERR_clear_error() }
        guard let certificate = parsedCertificate(authority.certificate) else { return false }
        defer { X509_free(certificate) }
        guard let context = X509_STORE_CTX_new() else { return false }
        defer { X509_STORE_CTX_free(context) }
        guard X509_STORE_CTX_init(context, store, certificate, nil) == 1 else { return false }
        return X509_verify_cert(context) == 1
    }
}
