internal import COpenSSL

/// A TLS cipher suite, as OpenSSL knows it.
struct CipherSuite {
    /// The protection of its records.
    enum Protection {
        /// AEAD with an explicit nonce of 8 bytes in TLS 1.2 (RFC 5288, RFC 6655).
        case gcm
        case ccm(tagLength: Int)
        /// AEAD without an explicit nonce, even in TLS 1.2 (RFC 7905).
        case chaCha20Poly1305
        /// HMAC and CBC, only in TLS 1.2; the name of the MAC's hash and its length in bytes.
        case cbc(hash: StaticString, macLength: Int)

        var tagLength: Int {
            if case .ccm(let length) = self { length } else { 16 }
        }
    }

    /// The standard name, `TLS_AES_128_GCM_SHA256`; `0xC0FF` if OpenSSL does not know the suite.
    let name: String
    /// The protection; nil if its records cannot be decrypted.
    let protection: Protection?
    /// OpenSSL's NID of the cipher.
    let cipher: Int32
    let keyLength: Int
    /// The hash of the key schedule.
    let hash: StaticString
    /// The length of the hash, and of every TLS 1.3 secret, in bytes.
    let hashLength: Int

    init(_ code: UInt16) {
        let bytes = [UInt8(code >> 8), UInt8(truncatingIfNeeded: code)]
        let found = Self.table.flatMap { SSL_CIPHER_find($0.pointer, bytes) }
        name =
            found.flatMap { SSL_CIPHER_standard_name($0) }.map { String(cString: $0) }
            ?? "0x" + String(code, radix: 16, uppercase: true)
        cipher = found.map { SSL_CIPHER_get_cipher_nid($0) } ?? NID_undef
        // Suites without encryption have no method.
        guard let found, let method = EVP_get_cipherbyname(OBJ_nid2sn(cipher)) else {
            protection = nil
            keyLength = 0
            hash = "SHA256"
            hashLength = 32
            return
        }
        keyLength = Int(EVP_CIPHER_get_key_length(method))
        // TLS 1.2 uses SHA-256 for suites that do not name a hash (RFC 5246 §5).
        let isLong = SSL_CIPHER_get_handshake_digest(found).map { EVP_MD_get_type($0) } == NID_sha384
        hash = isLong ? "SHA384" : "SHA256"
        hashLength = isLong ? 48 : 32
        protection =
            switch EVP_CIPHER_get_mode(method) {
            case _ where cipher == NID_chacha20_poly1305: .chaCha20Poly1305
            case EVP_CIPH_GCM_MODE: .gcm
            case EVP_CIPH_CCM_MODE: .ccm(tagLength: name.contains("CCM_8") ? 8 : 16)
            case EVP_CIPH_CBC_MODE where EVP_CIPHER_get_block_size(method) == 16:
                switch SSL_CIPHER_get_digest_nid(found) {
                case NID_sha1: .cbc(hash: "SHA1", macLength: 20)
                case NID_sha256: .cbc(hash: "SHA256", macLength: 32)
                case NID_sha384: .cbc(hash: "SHA384", macLength: 48)
                default: nil
                }
            default: nil
            }
    }

    /// An `SSL *` for looking up suites; `@unchecked Sendable` because the lookup only reads constant tables.
    private struct Table: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let table: Table? = {
        guard let context = SSL_CTX_new(TLS_client_method()) else { return nil }
        defer { SSL_CTX_free(context) }
        return SSL_new(context).map(Table.init)
    }()
}

/// The key derivation functions of TLS, computed by OpenSSL's `EVP_KDF`.
enum KeyDerivation {
    /// HKDF-Expand-Label without a context (RFC 8446 §7.1).
    static func expand(
        _ secret: [UInt8],
        label: StaticString,
        count: Int,
        _ suite: CipherSuite
    ) throws(OpenSSLError) -> [UInt8] {
        try derive(
            tls13.get().pointer,
            count,
            texts: [("mode", "EXPAND_ONLY"), ("digest", suite.hash)],
            bytes: [("key", secret), ("prefix", Array("tls13 ".utf8)), ("label", label.bytes)]
        )
    }

    /// The key block of TLS 1.2 (RFC 5246 §6.3).
    static func keyBlock(
        master: [UInt8],
        serverRandom: [UInt8],
        clientRandom: [UInt8],
        count: Int,
        _ suite: CipherSuite
    ) throws(OpenSSLError) -> [UInt8] {
        try derive(
            tls12.get().pointer,
            count,
            texts: [("digest", suite.hash)],
            bytes: [("secret", master), ("seed", Array("key expansion".utf8) + serverRandom + clientRandom)]
        )
    }

    private static func derive(
        _ function: OpaquePointer,
        _ count: Int,
        texts: [(name: StaticString, value: StaticString)],
        bytes: [(name: StaticString, value: [UInt8])]
    ) throws(OpenSSLError) -> [UInt8] {
        let context = try made("EVP_KDF_CTX_new") { EVP_KDF_CTX_new(function) }
        defer { EVP_KDF_CTX_free(context) }
        // The parameters contain pointers to their values, so the values share a buffer that does not move.
        var storage = bytes.flatMap(\.value)
        return try storage.withUnsafeMutableBufferPointer { storage throws(OpenSSLError) in
            var parameters = texts.map { text in
                OSSL_PARAM_construct_utf8_string(text.name.pointer, text.value.pointer, 0)
            }
            var start = 0
            for (name, value) in bytes {
                let address = storage.baseAddress?.advanced(by: start)
                parameters.append(OSSL_PARAM_construct_octet_string(name.pointer, address, value.count))
                start += value.count
            }
            parameters.append(OSSL_PARAM_construct_end())
            return try output(count, "EVP_KDF_derive") { EVP_KDF_derive(context, $0, count, parameters) }
        }
    }

    /// `@unchecked Sendable` because a fetched method is immutable; it is never freed.
    private struct Function: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private static let tls13 = fetch("TLS13-KDF")
    private static let tls12 = fetch("TLS1-PRF")

    private static func fetch(_ name: String) -> Result<Function, OpenSSLError> {
        Result { () throws(OpenSSLError) in
            Function(pointer: try made("EVP_KDF_fetch") { EVP_KDF_fetch(nil, name, nil) })
        }
    }
}

extension StaticString {
    /// The text as a mutable pointer, for functions that do not modify it.
    var pointer: UnsafeMutablePointer<CChar> {
        UnsafeMutableRawPointer(mutating: utf8Start).assumingMemoryBound(to: CChar.self)
    }

    fileprivate var bytes: [UInt8] { Array(UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)) }
}
