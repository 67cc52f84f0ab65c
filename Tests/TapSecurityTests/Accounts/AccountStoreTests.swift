import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Tests that the account store derives keys as rarely as possible.
struct AccountStoreTests {
    private static let juliet = SASLIdentity(authentication: "juliet")

    /// Runs an exchange to its end; returns whether both sides succeed.
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

    @Test func `an unknown account gets a salt and iteration count like a known one, for each spelling`() throws {
        let cryptography = OpenSSLCryptography()
        func keys(_ salt: Int, _ iterations: Int) throws -> AccountsFile.Secret {
            let record = SCRAMCredentials(
                salt: [UInt8](repeating: 1, count: salt),
                iterations: iterations,
                storedKey: [UInt8](repeating: 2, count: 32),
                serverKey: [UInt8](repeating: 3, count: 32)
            )
            return .keys(try #require(StoredKeys([.sha256: record])))
        }
        func answer(_ store: AccountStore, _ name: String) throws -> (salt: [UInt8], iterations: String) {
            let leg = LoginLeg(offer: LoginOffer(mechanisms: ["SCRAM-SHA-256"]))
            var server = try #require(store.serverExchange("SCRAM-SHA-256", domain: "example.org", leg))
            guard case .send(let bytes) = server.step(Array("n,,n=\(name),r=abc".utf8)) else {
                throw KitError("no answer")
            }
            let parts = String(decoding: bytes, as: UTF8.self).split(separator: ",").map { $0.dropFirst(2) }
            return (try #require(Base64.decode(String(parts[1]))), String(parts[2]))
        }
        let juliet = AccountsFile.Account(jid: try JID(parsing: "juliet@example.org"), secret: try keys(24, 10_000))
        let store = try AccountStore([juliet], cryptography: cryptography)
        let known = try answer(store, "Juliet")
        for name in ["nobody", "Nobody", "NOBODY"] {
            let unknown = try answer(store, name)
            #expect(unknown.salt.count == known.salt.count && unknown.iterations == known.iterations)
            #expect(try unknown.salt == answer(store, "nobody").salt)
        }
        let romeo = AccountsFile.Account(jid: try JID(parsing: "romeo@example.org"), secret: try keys(80, 4096))
        let two = try AccountStore([juliet, romeo], cryptography: cryptography)
        let all = try (0..<40).map { try answer(two, "nobody\($0)") }
        #expect(Set(all.map { "\($0.salt.count) \($0.iterations)" }) == ["24 10000", "80 4096"])
    }

    @Test(arguments: HashAlgorithm.allCases)
    func `a key is derived from a password only once per salt, on each leg`(algorithm: HashAlgorithm) throws {
        let counting = CountingCryptography()
        let account = AccountsFile.Account(
            jid: try JID(parsing: "juliet@example.org"),
            secret: .password("r0m30")
        )
        let store = try AccountStore([account], cryptography: counting)
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
            store.clientExchange(
                mechanism.description,
                Self.juliet,
                domain: "example.org",
                binding: .unsupported,
                offer,
                knowing: nil
            )
        }
        for _ in 0..<3 { #expect(try Self.agree(ours(), server("salt"))) }
        #expect(counting.derived.count == 1)
        #expect(try Self.agree(ours(), server("pepper")))
        #expect(counting.derived.count == 2)

        for password in ["r0m30", "r0m30", "wrong"] {
            let client = SCRAMClient(
                mechanism,
                identity: Self.juliet,
                secret: .password(password),
                nonce: "fyko",
                cryptography: OpenSSLCryptography()
            )
            let here = store.serverExchange(mechanism.description, domain: "example.org", LoginLeg(offer: offer))
            #expect(try Self.agree(client, here) == (password == "r0m30"))
        }
        #expect(counting.derived.count == 3)
    }

    /// Returns a store with stored keys of Juliet's password.
    private static func store(
        _ records: [HashAlgorithm: Int],
        _ cryptography: any Cryptography
    ) throws -> AccountStore {
        var stored: [HashAlgorithm: SCRAMCredentials] = [:]
        for (algorithm, iterations) in records {
            stored[algorithm] = try SCRAMCredentials(
                algorithm,
                password: "r0m30",
                salt: Array("salt".utf8),
                iterations: iterations,
                cryptography: OpenSSLCryptography()
            )
        }
        let account = AccountsFile.Account(
            jid: try JID(parsing: "juliet@example.org"),
            secret: .keys(try #require(StoredKeys(stored)))
        )
        return try AccountStore([account], cryptography: cryptography)
    }

    private static func shows(_ password: String, to store: AccountStore) throws -> Bool {
        let here = store.serverExchange("PLAIN", domain: "example.org", LoginLeg(offer: .init(mechanisms: ["PLAIN"])))
        return try agree(PlainClient(identity: juliet, password: password), here)
    }

    @Test func `a client's password is verified with the stored key that has the fewest iterations`() throws {
        for (records, iterations) in [
            ([HashAlgorithm.sha512: 20_000, .sha256: 4096, .sha1: 10_000], 4096), ([.sha512: 5000, .sha1: 5000], 5000),
        ] {
            let counting = CountingCryptography()
            let store = try Self.store(records, counting)
            #expect(try Self.shows("r0m30", to: store))
            #expect(try !Self.shows("wrong", to: store))
            #expect(counting.derived == [iterations, iterations])
        }
    }

    @Test func `a client's password is never cached, whether correct or wrong`() throws {
        let counting = CountingCryptography()
        let store = try Self.store([.sha256: 4096], counting)
        for password in ["r0m30", "r0m30", "wrong", "wrong"] {
            #expect(try Self.shows(password, to: store) == (password == "r0m30"))
        }
        #expect(counting.derived.count == 4)
        // A login to the server with the client's password also needs a derivation each time.
        let kept = try SCRAMCredentials(
            .sha1,
            password: "r0m30",
            salt: Array("pepper".utf8),
            cryptography: OpenSSLCryptography()
        )
        for count in 5...6 {
            let ours = store.clientExchange(
                "SCRAM-SHA-1",
                Self.juliet,
                domain: "example.org",
                binding: .unsupported,
                LoginOffer(mechanisms: ["SCRAM-SHA-1"]),
                knowing: .password("r0m30")
            )
            let settings = SCRAMServer.Settings(nonce: "3rfc", decoyKey: [1]) { _ in kept }
            let server = SCRAMServer(.init(.sha1), settings: settings, cryptography: OpenSSLCryptography())
            #expect(try Self.agree(ours, server))
            #expect(counting.derived.count == count)
        }
    }
}
