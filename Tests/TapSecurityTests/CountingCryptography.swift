import Synchronization
import TapCore
import TapSecurity

/// Counts key derivations from passwords.
final class CountingCryptography: Cryptography {
    /// The iteration count of each derivation.
    private let all = Mutex<[Int]>([])
    private let base = OpenSSLCryptography()

    /// The iteration counts so far.
    var derived: [Int] { all.withLock(\.self) }

    func deriveKey(
        _ algorithm: HashAlgorithm,
        password: Span<UInt8>,
        salt: Span<UInt8>,
        iterations: Int
    ) throws -> [UInt8] {
        all.withLock { $0.append(iterations) }
        return try base.deriveKey(algorithm, password: password, salt: salt, iterations: iterations)
    }

    func makeDigest(_ algorithm: HashAlgorithm) throws -> any Digest { try base.makeDigest(algorithm) }
    func makeHMAC(_ algorithm: HashAlgorithm, key: Span<UInt8>) throws -> any Digest {
        try base.makeHMAC(algorithm, key: key)
    }
    func digest(_ algorithm: HashAlgorithm, of bytes: Span<UInt8>) throws -> [UInt8] {
        try base.digest(algorithm, of: bytes)
    }
    func hmac(_ algorithm: HashAlgorithm, key: Span<UInt8>, of bytes: Span<UInt8>) throws -> [UInt8] {
        try base.hmac(algorithm, key: key, of: bytes)
    }
    func randomBytes(count: Int) throws -> [UInt8] { try base.randomBytes(count: count) }
    func areEqual(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool { base.areEqual(left, right) }
}
