internal import Synchronization
internal import TapCore
internal import XMPPCore

/// Cryptography that derives each key only once: accounts log in repeatedly with the same salt, and a derivation takes
/// milliseconds.
///
/// Passwords and keys stay in memory as long as the cache exists. Use it only for passwords that the program holds
/// anyway, never for those from clients: they would be kept in clear text, and guesses would evict useful entries.
struct RememberedKeys: Cryptography {
    private struct Input: Hashable {
        let algorithm: HashAlgorithm
        let password: [UInt8]
        let salt: [UInt8]
        let iterations: Int
    }

    private final class Memory: Sendable {
        let keys = Mutex<[Input: [UInt8]]>([:])
    }

    /// Maximum number of cached keys; a server may use another salt each time.
    private static let limit = 1024

    private let base: any Cryptography
    private let memory = Memory()

    init(_ base: any Cryptography) { self.base = base }

    func deriveKey(
        _ algorithm: HashAlgorithm,
        password: Span<UInt8>,
        salt: Span<UInt8>,
        iterations: Int
    ) throws -> [UInt8] {
        let input = Input(
            algorithm: algorithm,
            password: Self.bytes(password),
            salt: Self.bytes(salt),
            iterations: iterations
        )
        if let key = memory.keys.withLock({ $0[input] }) { return key }
        // Computed without the lock, so that other event loops do not wait; concurrent results are equal.
        let key = try base.deriveKey(algorithm, password: password, salt: salt, iterations: iterations)
        memory.keys.withLock { keys in
            if keys.count >= Self.limit { keys.removeAll() }
            keys[input] = key
        }
        return key
    }

    private static func bytes(_ span: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.append(span)
        return bytes
    }

    // MARK: Forwarded calls

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
