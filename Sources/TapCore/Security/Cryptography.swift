/// A hash function, named as in SASL and RFC 6234.
public enum HashAlgorithm: String, Sendable, CaseIterable {
    /// SHA-1: broken for signatures, still what SCRAM-SHA-1 and XEP-0114 are made of.
    case sha1 = "SHA-1"
    case sha256 = "SHA-256"
    case sha512 = "SHA-512"

    /// The length of a digest, in bytes.
    public var byteCount: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// A digest, or a keyed authentication code, that is computed while its bytes arrive.
///
/// A reference to a running computation: use it from one place at a time.
public protocol Digest: AnyObject {
    /// Takes the next bytes. A failure of the library is kept and thrown by ``finalize()``.
    func update(_ bytes: Span<UInt8>)

    /// The digest of everything since the beginning, or since the last `finalize()`; a keyed one keeps its key.
    ///
    /// - Throws: What the cryptographic library reports.
    func finalize() throws -> [UInt8]
}

/// What the core needs of cryptography. It declares it here and is handed an implementation, so that it depends on no
/// cryptographic library; tests may hand in one whose random bytes are known.
public protocol Cryptography: Sendable {
    /// A running digest.
    func makeDigest(_ algorithm: HashAlgorithm) throws -> any Digest

    /// A running HMAC (RFC 2104) under a key of any length, also none.
    func makeHMAC(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws -> any Digest

    /// The digest of bytes that are all there.
    func digest(_ algorithm: HashAlgorithm, of bytes: Span<UInt8>) throws -> [UInt8]

    /// The HMAC of bytes that are all there.
    func hmac(_ algorithm: HashAlgorithm, key: Span<UInt8>, of bytes: Span<UInt8>) throws -> [UInt8]

    /// PBKDF2 with HMAC (RFC 8018 §5.2), one hash length long: the `Hi()` of RFC 5802.
    ///
    /// - Parameter iterations: At least 1. Every 10,000 of SHA-256 cost some milliseconds of the caller's thread.
    func deriveKey(
        _ algorithm: HashAlgorithm,
        password: Span<UInt8>,
        salt: Span<UInt8>,
        iterations: Int
    ) throws -> [UInt8]

    /// Bytes that nobody can predict, for nonces and keys.
    func randomBytes(count: Int) throws -> [UInt8]

    /// Whether both are the same, in a time that does not depend on where they differ. The lengths are no secret.
    func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool
}

// The same for arrays, which is what most callers have.
extension Cryptography {
    /// A running HMAC under a key.
    public func makeHMAC(_ algorithm: HashAlgorithm, key: [UInt8]) throws -> any Digest {
        try makeHMAC(algorithm, key: key.span)
    }

    /// The digest of an array.
    public func digest(_ algorithm: HashAlgorithm, of bytes: [UInt8]) throws -> [UInt8] {
        try digest(algorithm, of: bytes.span)
    }

    /// The HMAC of an array.
    public func hmac(_ algorithm: HashAlgorithm, key: [UInt8], of bytes: [UInt8]) throws -> [UInt8] {
        try hmac(algorithm, key: key.span, of: bytes.span)
    }

    /// PBKDF2 of arrays.
    public func deriveKey(
        _ algorithm: HashAlgorithm,
        password: [UInt8],
        salt: [UInt8],
        iterations: Int
    ) throws -> [UInt8] {
        try deriveKey(algorithm, password: password.span, salt: salt.span, iterations: iterations)
    }

    /// Whether both arrays are the same, in constant time.
    public func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        areEqual(left.span, right.span)
    }
}
