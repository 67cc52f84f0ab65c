internal import COpenSSL
internal import TapCore

/// A private key on the curve P-256.
///
/// `@unchecked Sendable` because it is immutable after `init`; OpenSSL counts references atomically, and signing only
/// reads the key.
final class SigningKey: @unchecked Sendable {
    /// An `EVP_PKEY *`.
    let pointer: OpaquePointer

    /// Takes ownership of one reference.
    init(owning pointer: OpaquePointer) { self.pointer = pointer }

    /// Generates a key, which takes some tens of microseconds.
    init() throws(OpenSSLError) {
        let context = try made("EVP_PKEY_CTX_new_from_name") { EVP_PKEY_CTX_new_from_name(nil, "EC", nil) }
        defer { EVP_PKEY_CTX_free(context) }
        try check("EVP_PKEY_keygen_init") { EVP_PKEY_keygen_init(context) }
        try check("EVP_PKEY_CTX_set_group_name") { EVP_PKEY_CTX_set_group_name(context, "P-256") }
        pointer = try made("EVP_PKEY_generate") {
            var key: OpaquePointer?
            EVP_PKEY_generate(context, &key)
            return key
        }
    }

    deinit { EVP_PKEY_free(pointer) }

    /// Returns the public key as a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7, RFC 5480 §2). `i2d_PUBKEY` takes five times
    /// as long as generating the key.
    func publicKeyInfo() throws(OpenSSLError) -> [UInt8] {
        // A byte for "uncompressed", then both coordinates.
        var point = [UInt8](repeating: 0, count: 65)
        var length = 0
        try check("EVP_PKEY_get_octet_string_param") {
            EVP_PKEY_get_octet_string_param(
                pointer,
                OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY,
                &point,
                point.count,
                &length
            )
        }
        guard length == point.count else { throw OpenSSLError(call: "EVP_PKEY_get_octet_string_param") }
        let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        let curve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        return DER.sequence(DER.sequence(DER.identifier(ecPublicKey), DER.identifier(curve)), DER.bits(point))
    }

    /// Returns an ECDSA signature over the SHA-256 digest of `bytes`.
    func signature(over bytes: [UInt8]) throws(OpenSSLError) -> [UInt8] {
        let digest = try FetchedDigest.of(.sha256).get().pointer
        let context = try made("EVP_MD_CTX_new") { EVP_MD_CTX_new() }
        defer { EVP_MD_CTX_free(context) }
        try check("EVP_DigestSignInit") { EVP_DigestSignInit(context, nil, digest, nil, pointer) }
        // A sequence of two integers of up to 33 bytes.
        var signature = [UInt8](repeating: 0, count: 80)
        var length = signature.count
        try check("EVP_DigestSign") { EVP_DigestSign(context, &signature, &length, bytes, bytes.count) }
        return Array(signature.prefix(length))
    }
}
