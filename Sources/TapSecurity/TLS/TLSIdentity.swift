internal import COpenSSL
internal import Glibc

/// A certificate with its chain and private key, with which xmpptap authenticates in TLS handshakes.
///
/// Owns one reference to each of its OpenSSL objects, and releases them in `deinit`.
///
/// `@unchecked Sendable` because nothing changes the objects after `init`; OpenSSL counts their references atomically,
/// and locks the data that it caches in them.
package final class TLSIdentity: @unchecked Sendable {
    /// The certificate itself, an `X509 *`.
    let leaf: OpaquePointer
    /// The certificates between the leaf and its root, the leaf's issuer first, each an `X509 *`; the root may be missing.
    let chain: [OpaquePointer]
    /// The leaf's private key, an `EVP_PKEY *`.
    let key: OpaquePointer
    /// The contents of the certificate.
    package let certificate: CertificateInfo
    /// The ``chain`` as a `STACK_OF(X509) *` that owns no references; nil if empty.
    let chainStack: OpaquePointer?

    /// Takes ownership of one reference to each object, even if it throws.
    ///
    /// - Throws: ``TLSIdentityError`` if the key does not belong to the leaf.
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

/// The reason why a ``TLSIdentity`` could not be loaded: the file, its problem, and the remedy, in one line.
package struct TLSIdentityError: Error, Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        /// The file cannot be read; the text is the system's error message.
        case unreadable(String)
        /// The file is larger than any certificate or key.
        case tooLarge
        case noCertificate
        /// A certificate that is truncated or invalid.
        case badCertificate
        /// The file contains no private key in PEM.
        case noKey
        /// A private key that is truncated or invalid.
        case badKey
        /// A private key that is encrypted with a password.
        case encryptedKey
        case keyOfAnother
    }

    /// The kind of problem.
    package let code: Code
    /// The file with the error, if any.
    package var file: String?
    /// The file of the certificate that a key does not belong to.
    package var certificateFile: String?
}

extension TLSIdentityError: CustomStringConvertible {
    /// A human-readable line.
    package var description: String {
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

extension TLSIdentity {
    /// Reads a certificate, the rest of its chain if it follows in the same file, and its key, all in PEM.
    ///
    /// - Parameters:
    ///   - certificateFile: Path of the certificate, which the certificates of its issuers may follow.
    ///   - keyFile: Path of the private key, which may be the same file.
    /// - Throws: ``TLSIdentityError`` that names the file.
    package convenience init(certificateFile: String, keyFile: String) throws(TLSIdentityError) {
        let certificates = try PEMFile(certificateFile).certificates()
        let key: OpaquePointer
        do throws(TLSIdentityError) {
            key = try PEMFile(keyFile).key()
        } catch {
            for certificate in certificates { X509_free(certificate) }
            throw error
        }
        do throws(TLSIdentityError) {
            // `certificates()` returns at least one certificate, or throws.
            try self.init(leaf: certificates[0], chain: Array(certificates.dropFirst()), key: key)
        } catch {
            throw TLSIdentityError(code: error.code, file: keyFile, certificateFile: certificateFile)
        }
    }
}

/// The bytes of a file of certificates or keys in PEM.
struct PEMFile {
    /// Maximum size of a file in bytes: enough for all roots of a system.
    private static let limit = 8 << 20

    private let path: String
    private let bytes: [UInt8]

    init(_ path: String) throws(TLSIdentityError) {
        self.path = path
        bytes = try Self.read(path)
    }

    /// Returns the certificates in file order, at least one; the caller owns a reference to each.
    func certificates() throws(TLSIdentityError) -> [OpaquePointer] {
        var found: [OpaquePointer] = []
        var fault: TLSIdentityError.Code?
        read { bio in
            while true {
                ERR_clear_error()
                if let certificate = PEM_read_bio_X509(bio, nil, nil, nil) {
                    found.append(certificate)
                    continue
                }
                // OpenSSL reports the end of the file as "no start line".
                let isEnd = xmpptap_error_is_no_start_line(ERR_peek_last_error()) == 1
                fault = isEnd ? (found.isEmpty ? .noCertificate : nil) : .badCertificate
                break
            }
            ERR_clear_error()
        }
        guard fault == nil, !found.isEmpty else {
            for certificate in found { X509_free(certificate) }
            throw TLSIdentityError(code: fault ?? .noCertificate, file: path)
        }
        return found
    }

    /// Returns the first private key in the file; the caller owns a reference.
    func key() throws(TLSIdentityError) -> OpaquePointer {
        // OpenSSL reports the same error for a file without a key and for a damaged key.
        guard String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY-----") else {
            throw TLSIdentityError(code: .noKey, file: path)
        }
        var key: OpaquePointer?
        var fault = TLSIdentityError.Code.badKey
        read { bio in
            ERR_clear_error()
            var isEncrypted = false
            withUnsafeMutablePointer(to: &isEncrypted) { isEncrypted in
                // Without this callback, OpenSSL would ask for the password on the terminal.
                key = PEM_read_bio_PrivateKey(
                    bio,
                    nil,
                    { _, _, _, flag in
                        flag?.assumingMemoryBound(to: Bool.self).pointee = true
                        return -1
                    },
                    isEncrypted
                )
            }
            if isEncrypted {
                fault = .encryptedKey
            }
            ERR_clear_error()
        }
        guard let key else { throw TLSIdentityError(code: fault, file: path) }
        return key
    }

    private func read(_ body: (OpaquePointer) -> Void) {
        bytes.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return }
            body(bio)
            BIO_free(bio)
        }
    }

    private static func read(_ path: String) throws(TLSIdentityError) -> [UInt8] {
        func unreadable() -> TLSIdentityError {
            TLSIdentityError(code: .unreadable(String(cString: strerror(errno))), file: path)
        }

        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable() }
        defer { close(descriptor) }
        guard let bytes = OpenFile.read(descriptor, limit: limit) else { throw unreadable() }
        guard bytes.count <= limit else { throw TLSIdentityError(code: .tooLarge, file: path) }
        return bytes
    }
}
