internal import COpenSSL
internal import TapCore

/// A digest method of OpenSSL, looked up once: the look-up costs more than hashing a stanza.
///
/// `@unchecked Sendable` because a fetched method is immutable, and the reference is held for the life of the process.
struct FetchedDigest: @unchecked Sendable {
    let pointer: OpaquePointer

    static func of(_ algorithm: HashAlgorithm) -> Result<FetchedDigest, OpenSSLError> {
        switch algorithm {
        case .sha1: sha1
        case .sha256: sha256
        case .sha512: sha512
        }
    }

    private static let sha1 = Self.fetch(HashAlgorithm.sha1.opensslName)
    private static let sha256 = Self.fetch(HashAlgorithm.sha256.opensslName)
    private static let sha512 = Self.fetch(HashAlgorithm.sha512.opensslName)

    private static func fetch(_ name: String) -> Result<FetchedDigest, OpenSSLError> {
        Result { () throws(OpenSSLError) in
            FetchedDigest(pointer: try made("EVP_MD_fetch") { EVP_MD_fetch(nil, name, nil) })
        }
    }
}

extension HashAlgorithm {
    /// The name by which OpenSSL's default provider knows the hash.
    var opensslName: String {
        switch self {
        case .sha1: "SHA1"
        case .sha256: "SHA2-256"
        case .sha512: "SHA2-512"
        }
    }
}

/// A running digest; owns its context and frees it.
final class MessageDigest: Digest {
    private let context: OpaquePointer
    private let method: OpaquePointer
    private let length: Int
    private var failure: OpenSSLError?

    init(_ algorithm: HashAlgorithm) throws(OpenSSLError) {
        self.method = try FetchedDigest.of(algorithm).get().pointer
        self.length = algorithm.byteCount
        context = try made("EVP_MD_CTX_new") { EVP_MD_CTX_new() }
        try restart()
    }

    deinit { EVP_MD_CTX_free(context) }

    func update(_ bytes: Span<UInt8>) {
        do throws(OpenSSLError) {
            try bytes.withUnsafeBytes { bytes throws(OpenSSLError) in
                try check("EVP_DigestUpdate") { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
            }
        } catch {
            self.failure = self.failure ?? error
        }
    }

    func finalize() throws -> [UInt8] {
        let failure = self.failure
        self.failure = nil
        var result = [UInt8](repeating: 0, count: self.length)
        try check("EVP_DigestFinal_ex") { EVP_DigestFinal_ex(context, &result, nil) }
        try restart()
        if let failure { throw failure }
        return result
    }

    private func restart() throws(OpenSSLError) {
        try check("EVP_DigestInit_ex") { EVP_DigestInit_ex(context, self.method, nil) }
    }
}

/// A running HMAC; owns its context and frees it, and the context keeps the key from one message to the next.
final class MessageAuthenticationCode: Digest {
    private let context: OpaquePointer
    private let length: Int
    private var failure: OpenSSLError?

    init(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws(OpenSSLError) {
        self.length = algorithm.byteCount
        let method = try Self.method.get().pointer
        context = try made("EVP_MAC_CTX_new") { EVP_MAC_CTX_new(method) }
        try key.withUnsafeBytes { key throws(OpenSSLError) in
            // With a null pointer as key, OpenSSL would use the previous key again.
            var none: UInt8 = 0
            try withUnsafePointer(to: &none) { none throws(OpenSSLError) in
                let start = key.bindMemory(to: UInt8.self).baseAddress ?? none
                try initialize(algorithm, key: start, length: key.count)
            }
        }
    }

    deinit { EVP_MAC_CTX_free(context) }

    func update(_ bytes: Span<UInt8>) {
        guard bytes.count > 0 else { return }
        do throws(OpenSSLError) {
            try bytes.withUnsafeBufferPointer { bytes throws(OpenSSLError) in
                try check("EVP_MAC_update") { EVP_MAC_update(context, bytes.baseAddress, bytes.count) }
            }
        } catch {
            self.failure = self.failure ?? error
        }
    }

    func finalize() throws -> [UInt8] {
        let failure = self.failure
        self.failure = nil
        var result = [UInt8](repeating: 0, count: self.length)
        var written = 0
        try check("EVP_MAC_final") { EVP_MAC_final(context, &result, &written, result.count) }
        try check("EVP_MAC_init") { EVP_MAC_init(context, nil, 0, nil) }
        if let failure { throw failure }
        return result
    }

    private func initialize(
        _ algorithm: HashAlgorithm,
        key: UnsafePointer<UInt8>,
        length: Int
    ) throws(OpenSSLError) {
        var name = Array(algorithm.opensslName.utf8CString)
        try name.withUnsafeMutableBufferPointer { name throws(OpenSSLError) in
            let parameters = [xmpptap_digest_parameter(name.baseAddress), OSSL_PARAM_construct_end()]
            try check("EVP_MAC_init") { EVP_MAC_init(context, key, length, parameters) }
        }
    }

    /// The HMAC method, looked up once; see ``FetchedDigest``.
    private static let method = Result { () throws(OpenSSLError) in
        FetchedDigest(pointer: try made("EVP_MAC_fetch") { EVP_MAC_fetch(nil, "HMAC", nil) })
    }
}
