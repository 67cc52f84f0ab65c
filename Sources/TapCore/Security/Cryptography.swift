/// A hash function, named as in SASL and RFC 6234.
public enum HashAlgorithm: String, Sendable, CaseIterable {
    /// SHA-1: broken for signatures, but still used by SCRAM-SHA-1 and XEP-0114.
    case sha1 = "SHA-1"
    case sha256 = "SHA-256"
    case sha512 = "SHA-512"

    /// The length of a digest in bytes.
    package var byteCount: Int {
        switch self {
        case .sha1: 20
        case .sha256: 32
        case .sha512: 64
        }
    }
}

/// An incremental digest or message authentication code.
///
/// A reference to a running computation; not thread-safe.
public protocol Digest: AnyObject {
    /// Adds bytes. ``finalize()`` throws an error of the library that occurs here.
    func update(_ bytes: Span<UInt8>)

    /// Returns the digest of the bytes since the beginning or the last `finalize()`. A keyed digest keeps its key.
    ///
    /// - Throws: Errors of the cryptographic library.
    func finalize() throws -> [UInt8]
}

/// The cryptographic functions that the core needs. The protocol keeps the core independent of a cryptographic library,
/// and lets tests use known random bytes.
public protocol Cryptography: Sendable {
    /// Creates an incremental digest.
    func makeDigest(_ algorithm: HashAlgorithm) throws -> any Digest

    /// Creates an incremental HMAC (RFC 2104) with a key of any length, including zero.
    func makeHMAC(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws -> any Digest

    /// Returns the digest of bytes.
    func digest(_ algorithm: HashAlgorithm, of bytes: Span<UInt8>) throws -> [UInt8]

    /// Returns the HMAC of bytes.
    func hmac(_ algorithm: HashAlgorithm, key: Span<UInt8>, of bytes: Span<UInt8>) throws -> [UInt8]

    /// Derives a key of one hash length with PBKDF2 and HMAC (RFC 8018 §5.2): `Hi()` of RFC 5802.
    ///
    /// - Parameter iterations: The iteration count, at least 1. 10,000 iterations of SHA-256 block the thread for some
    ///   milliseconds.
    func deriveKey(
        _ algorithm: HashAlgorithm,
        password: Span<UInt8>,
        salt: Span<UInt8>,
        iterations: Int
    ) throws -> [UInt8]

    /// Returns unpredictable bytes for nonces and keys.
    func randomBytes(count: Int) throws -> [UInt8]

    /// Returns whether both sequences are equal, in a time that does not depend on the position of a difference. The
    /// lengths are not secret.
    func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool
}

// MARK: Arrays
extension Cryptography {
    /// Creates an incremental HMAC.
    package func makeHMAC(_ algorithm: HashAlgorithm, key: [UInt8]) throws -> any Digest {
        try makeHMAC(algorithm, key: key.span)
    }

    /// Returns the digest of an array.
    package func digest(_ algorithm: HashAlgorithm, of bytes: [UInt8]) throws -> [UInt8] {
        try digest(algorithm, of: bytes.span)
    }

    /// Returns the HMAC of an array.
    package func hmac(_ algorithm: HashAlgorithm, key: [UInt8], of bytes: [UInt8]) throws -> [UInt8] {
        try hmac(algorithm, key: key.span, of: bytes.span)
    }

    /// Derives a key with PBKDF2 from arrays.
    package func deriveKey(
        _ algorithm: HashAlgorithm,
        password: [UInt8],
        salt: [UInt8],
        iterations: Int
    ) throws -> [UInt8] {
        try deriveKey(algorithm, password: password.span, salt: salt.span, iterations: iterations)
    }

    /// Returns whether both arrays are equal, in constant time.
    package func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        areEqual(left.span, right.span)
    }
}
