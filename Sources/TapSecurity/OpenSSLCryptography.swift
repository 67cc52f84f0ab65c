internal import COpenSSL
package import TapCore

/// Implements the core's ``Cryptography`` with OpenSSL 3. It has no state, so creating a value costs nothing.
package struct OpenSSLCryptography: Cryptography {
    package init() {}

    /// The version of the loaded library, such as `3.0.19`.
    package static var libraryVersion: String { String(cString: OpenSSL_version(OPENSSL_VERSION_STRING)) }

    /// Creates a running digest.
    package func makeDigest(_ algorithm: HashAlgorithm) throws -> any Digest {
        try MessageDigest(algorithm)
    }

    /// Creates a running HMAC.
    package func makeHMAC(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws -> any Digest {
        try MessageAuthenticationCode(algorithm, key: key)
    }

    /// Returns the digest of bytes.
    package func digest(_ algorithm: HashAlgorithm, of bytes: Span<UInt8>) throws -> [UInt8] {
        let method = try FetchedDigest.of(algorithm).get().pointer
        return try output(algorithm.byteCount, "EVP_Digest") { result in
            bytes.withUnsafeBytes { EVP_Digest($0.baseAddress, $0.count, result, nil, method, nil) }
        }
    }

    /// Returns the HMAC of bytes.
    package func hmac(_ algorithm: HashAlgorithm, key: Span<UInt8>, of bytes: Span<UInt8>) throws -> [UInt8] {
        let code = try MessageAuthenticationCode(algorithm, key: key)
        code.update(bytes)
        return try code.finalize()
    }

    /// Derives a key with PBKDF2, as long as the hash.
    package func deriveKey(
        _ algorithm: HashAlgorithm,
        password: Span<UInt8>,
        salt: Span<UInt8>,
        iterations: Int
    ) throws -> [UInt8] {
        let method = try FetchedDigest.of(algorithm).get().pointer
        // A count that does not fit the C type becomes 0, which OpenSSL refuses.
        let iterations = Int32(exactly: iterations) ?? 0
        return try output(algorithm.byteCount, "PKCS5_PBKDF2_HMAC") { result in
            password.withUnsafeBytes { password in
                salt.withUnsafeBytes { salt in
                    PKCS5_PBKDF2_HMAC(
                        password.bindMemory(to: CChar.self).baseAddress,
                        Int32(password.count),
                        salt.bindMemory(to: UInt8.self).baseAddress,
                        Int32(salt.count),
                        iterations,
                        method,
                        Int32(algorithm.byteCount),
                        result
                    )
                }
            }
        }
    }

    /// Returns random bytes of OpenSSL's generator for private values.
    package func randomBytes(count: Int) throws -> [UInt8] {
        try output(count, "RAND_priv_bytes") { RAND_priv_bytes($0, Int32(clamping: count)) }
    }

    /// Compares bytes in constant time.
    package func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        guard left.count > 0 else { return true }
        return left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0 }
        }
    }
}

/// Returns an array of `count` bytes that a call of OpenSSL fills. The call must return 1 on success.
func output(
    _ count: Int,
    _ call: StaticString,
    _ body: (UnsafeMutablePointer<UInt8>?) -> Int32
) throws(OpenSSLError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    var code: Int32 = 0
    ERR_clear_error()
    result.withUnsafeMutableBufferPointer { code = body($0.baseAddress) }
    guard code > 0 else { throw OpenSSLError(call: call) }
    return result
}
