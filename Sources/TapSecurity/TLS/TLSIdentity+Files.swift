internal import COpenSSL
internal import Glibc

extension TLSIdentity {
    /// Reads a certificate, the rest of its chain if it follows in the same file, and its key, all in PEM.
    ///
    /// - Parameters:
    ///   - certificateFile: Path of the certificate, its issuers behind it.
    ///   - keyFile: Path of the private key, which may be the same file.
    /// - Throws: ``TLSIdentityError`` that names the file.
    public convenience init(certificateFile: String, keyFile: String) throws(TLSIdentityError) {
        let certificates = try PEMFile(certificateFile).certificates()
        let key: OpaquePointer
        do throws(TLSIdentityError) {
            key = try PEMFile(keyFile).key()
        } catch {
            for certificate in certificates { X509_free(certificate) }
            throw error
        }
        do throws(TLSIdentityError) {
            // There is at least one, or `certificates()` had thrown.
            try self.init(leaf: certificates[0], chain: Array(certificates.dropFirst()), key: key)
        } catch {
            throw TLSIdentityError(code: error.code, file: keyFile, certificateFile: certificateFile)
        }
    }
}

/// The bytes of a file of certificates or keys in PEM.
struct PEMFile {
    /// Bytes that are read at most: enough for the roots of a system.
    private static let limit = 8 << 20

    private let path: String
    private let bytes: [UInt8]

    init(_ path: String) throws(TLSIdentityError) {
        self.path = path
        bytes = try Self.read(path)
    }

    /// The certificates in the file's order, at least one; the caller owns a reference of each.
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

    /// The first private key in the file; the caller owns a reference.
    func key() throws(TLSIdentityError) -> OpaquePointer {
        // OpenSSL has one word for a file without a key and one with a damaged key.
        guard String(decoding: bytes, as: UTF8.self).contains("PRIVATE KEY-----") else {
            throw TLSIdentityError(code: .noKey, file: path)
        }
        var key: OpaquePointer?
        var fault = TLSIdentityError.Code.badKey
        read { bio in
            ERR_clear_error()
            var isEncrypted = false
            withUnsafeMutablePointer(to: &isEncrypted) { isEncrypted in
                // Without a callback of ours OpenSSL would ask for the password on the terminal.
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
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable() }
            if count == 0 { return bytes }
            bytes += chunk[..<count]
            guard bytes.count <= limit else { throw TLSIdentityError(code: .tooLarge, file: path) }
        }
    }
}
