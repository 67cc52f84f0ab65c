internal import COpenSSL
internal import Synchronization
internal import TapCore
internal import TapRecord

/// Certificates to show instead of those of servers that xmpptap could not verify. They have the same names and dates, and
/// are self-signed, so that a client that verifies certificates refuses them, too.
///
/// Thread-safe. Without a cached certificate, a call generates a key and signs.
package final class SelfSignedCertificates: Sendable {
    /// Maximum number of cached certificates; the least recently used are evicted.
    private static let capacity = 64

    /// By the SHA-256 of the original.
    private let cache = Mutex(LRUCache<[UInt8], TLSIdentity>(capacity: capacity))

    /// Creates an empty cache.
    package init() {}

    /// Returns the cached certificate for an original, if any, without waiting.
    package func remembered(like original: CertificateInfo) -> TLSIdentity? {
        cache.withLock { $0.value(original.fingerprint) }
    }

    /// Returns the certificate for an original.
    ///
    /// - Throws: ``OpenSSLError`` if OpenSSL fails.
    package func certificate(like original: CertificateInfo) throws(OpenSSLError) -> TLSIdentity {
        if let identity = remembered(like: original) { return identity }
        let key = try SigningKey()
        let names = AlternativeName.names(ofCertificate: original.der, limit: CertificateMinter.maximumNames)
        let subject = CertificateDraft.name("not verified by xmpptap")
        let draft = CertificateDraft(
            issuer: subject,
            subject: subject,
            begin: Timestamp(seconds: Int(clamping: original.notBefore.seconds)),
            end: Timestamp(seconds: Int(clamping: original.notAfter.seconds)),
            publicKey: try key.publicKeyInfo(),
            extensions: CertificateDraft.leafUses(.server)
                + (names.isEmpty ? [] : [CertificateDraft.names(names.map(\.encoded))])
        )
        let bytes = try draft.signed(by: key, serial: CertificateAuthority.random(16))
        let parsed = try made("d2i_X509") { parsedCertificate(bytes) }
        EVP_PKEY_up_ref(key.pointer)
        let identity: TLSIdentity
        do throws(TLSIdentityError) {
            identity = try TLSIdentity(leaf: parsed, chain: [], key: key.pointer)
        } catch {
            throw OpenSSLError(call: "X509_check_private_key")
        }
        cache.withLock { $0.set(identity, for: original.fingerprint) }
        return identity
    }
}
