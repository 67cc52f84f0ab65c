import Synchronization
import TapCore
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// What ends logins keeps event loops as little as it can.
struct AccountDeskTests {
    /// Counts the keys that are derived from passwords.
    private final class Counting: Cryptography {
        let derived = Mutex(0)
        private let base = OpenSSLCryptography()

        func deriveKey(
            _ algorithm: HashAlgorithm,
            password: Span<UInt8>,
            salt: Span<UInt8>,
            iterations: Int
        ) throws -> [UInt8] {
            derived.withLock { $0 += 1 }
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

    private static let juliet = SASLIdentity(authentication: "juliet")

    /// Lets two ends talk until one is done; whether both are content.
    private static func agree(_ client: (any SASLExchange)?, _ server: (any SASLExchange)?) throws -> Bool {
        var client = try #require(client)
        var server = try #require(server)
        var said: [UInt8]?
        while case .send(let message) = client.step(said) {
            switch server.step(message) {
            case .send(let answer): said = answer
            case .done(let proof): return client.step(proof) == .done(nil) && server.identity == juliet
            case .failed: return false
            }
        }
        return false
    }

    @Test(arguments: HashAlgorithm.allCases)
    func `a key is derived from a password once for each salt, on either leg`(algorithm: HashAlgorithm) throws {
        let counting = Counting()
        let account = AccountsFile.Account(
            jid: try JID(parsing: "juliet@example.org"),
            secret: .password("r0m30")
        )
        let desk = try AccountDesk([account], cryptography: counting)
        let mechanism = SCRAMMechanism(algorithm)
        let offer = LoginOffer(mechanisms: [mechanism.description])

        func server(_ salt: String) throws -> SCRAMServer {
            let kept = try SCRAMCredentials(
                algorithm,
                password: "r0m30",
                salt: Array(salt.utf8),
                cryptography: OpenSSLCryptography()
            )
            let settings = SCRAMServer.Settings(nonce: "3rfc", decoyKey: [1]) { _ in kept }
            return SCRAMServer(mechanism, settings: settings, cryptography: OpenSSLCryptography())
        }
        func ours() -> (any SASLExchange)? {
            desk.clientExchange(
                mechanism.description,
                Self.juliet,
                domain: "example.org",
                binding: .unsupported,
                offer,
                knowing: nil
            )
        }
        for _ in 0..<3 { #expect(try Self.agree(ours(), server("salt"))) }
        #expect(counting.derived.withLock(\.self) == 1)
        #expect(try Self.agree(ours(), server("pepper")))
        #expect(counting.derived.withLock(\.self) == 2)

        for password in ["r0m30", "r0m30", "wrong"] {
            let client = SCRAMClient(
                mechanism,
                identity: Self.juliet,
                password: password,
                nonce: "fyko",
                cryptography: OpenSSLCryptography()
            )
            let here = desk.serverExchange(mechanism.description, domain: "example.org", LoginLeg(offer: offer))
            #expect(try Self.agree(client, here) == (password == "r0m30"))
        }
        #expect(counting.derived.withLock(\.self) == 3)
    }
}
