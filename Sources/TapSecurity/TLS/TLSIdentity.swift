internal import COpenSSL

/// A certificate with its chain and private key: who we are in a TLS handshake.
///
/// Owns one reference of each of its OpenSSL objects and gives them back at its end.
///
/// `@unchecked Sendable` because nothing changes the objects after `init`; OpenSSL counts their references atomically,
/// and locks what it caches inside them.
public final class TLSIdentity: @unchecked Sendable {
    /// The certificate itself, an `X509 *`.
    let leaf: OpaquePointer
    /// The certificates between the leaf and its root, the leaf's issuer first, each an `X509 *`; the root may be missing.
    let chain: [OpaquePointer]
    /// The leaf's private key, an `EVP_PKEY *`.
    let key: OpaquePointer
    /// What the certificate says.
    public let certificate: CertificateInfo
    /// ``chain`` as a `STACK_OF(X509) *` without its own references; nil if empty.
    let chainStack: OpaquePointer?

    /// Takes over one reference of each object, also where it throws.
    ///
    /// - Throws: ``TLSIdentityError`` if the key is not the leaf's.
    init(leaf: OpaquePointer, chain: [OpaquePointer], key: OpaquePointer) throws(TLSIdentityError) {
        self.leaf = leaf
        self.chain = chain
        self.key = key
        let stack = chain.isEmpty ? nil : OPENSSL_sk_new_null()
        for certificate in chain { OPENSSL_sk_push(stack, UnsafeRawPointer(certificate)) }
        chainStack = stack
        certificate = CertificateInfo(leaf)
        ERR_clear_error()
        let fits = X509_check_private_key(leaf, key) == 1
        ERR_clear_error()
        guard fits else { throw TLSIdentityError(code: .keyOfAnother) }
    }

    deinit {
        OPENSSL_sk_free(chainStack)
        X509_free(leaf)
        for certificate in chain { X509_free(certificate) }
        EVP_PKEY_free(key)
    }
}

/// Why there is no ``TLSIdentity``: the file, what is wrong with it, and the way out, in one line.
public struct TLSIdentityError: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: Sendable, Hashable {
        /// The file cannot be read; the system's words.
        case unreadable(String)
        /// The file is larger than any certificate or key.
        case tooLarge
        /// No certificate in PEM in it.
        case noCertificate
        /// A certificate that is torn or is none.
        case badCertificate
        /// No private key in PEM in it.
        case noKey
        /// A private key that is torn or is none.
        case badKey
        /// A private key that asks for a password.
        case encryptedKey
        /// The key is not that of the certificate.
        case keyOfAnother
    }

    /// What is wrong.
    public let code: Code
    /// The file with the error, if any.
    public var file: String?
    /// The file of the certificate that a key does not belong to.
    public var certificateFile: String?

    init(code: Code, file: String? = nil, certificateFile: String? = nil) {
        self.code = code
        self.file = file
        self.certificateFile = certificateFile
    }
}

extension TLSIdentityError: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        let name = file ?? "the private key"
        return switch code {
        case .unreadable(let reason): "cannot read \(name): \(reason)"
        case .tooLarge: "\(name) is too large for a certificate or key; use a PEM file"
        case .noCertificate: "\(name) has no PEM certificate (a block labelled CERTIFICATE)"
        case .badCertificate: "\(name) has an unreadable certificate: it is truncated or damaged"
        case .noKey: "\(name) has no PEM private key (a block labelled PRIVATE KEY)"
        case .badKey: "\(name) has an unreadable private key: it is truncated or damaged"
        case .encryptedKey:
            "the private key in \(name) is encrypted; decrypt it: "
                + "openssl pkey -in KEY -out PLAIN-KEY"
        case .keyOfAnother: "\(name) is not the key of the certificate\(certificateFile.map { " in \($0)" } ?? "")"
        }
    }
}
