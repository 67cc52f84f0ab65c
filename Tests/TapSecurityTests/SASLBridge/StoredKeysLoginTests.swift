import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Bridged logins with stored keys only: the client's proof enables the login to the server.
struct StoredKeysLoginTests {
    /// Returns a setting whose account store contains the server's records of these hashes.
    private static func setting(
        _ algorithms: HashAlgorithm...,
        password: String = "r0m30",
        salt: String = "salt",
        iterations: Int = 4096
    ) throws -> BridgedLogin.Setting {
        var setting = BridgedLogin.Setting()
        let records = try algorithms.map {
            let stored = try SCRAMCredentials(
                $0,
                password: password,
                salt: Array(salt.utf8),
                iterations: iterations,
                cryptography: BridgedLogin.cryptography
            )
            return ($0, stored)
        }
        setting.storeKeys = StoredKeys(Dictionary(uniqueKeysWithValues: records))
        return setting
    }

    private func words(_ login: BridgedLogin, _ code: String) -> String {
        login.harness.told(code: code).compactMap(\.record.messageText).joined(separator: "|")
    }

    @Test(arguments: HashAlgorithm.allCases, [false, true])
    func `stored keys work with every hash, binding and SASL version`(algorithm: HashAlgorithm, isSASL2: Bool) throws {
        var setting = try Self.setting(algorithm)
        let name = SCRAMMechanism(algorithm).description
        setting.mechanisms = ["\(name)-PLUS", name]
        setting.isSASL2 = isSASL2
        for (mechanism, type) in [
            (name, nil), ("\(name)-PLUS", "tls-exporter"), ("\(name)-PLUS", "tls-server-end-point"),
        ] {
            let login = try BridgedLogin(setting)
            let outcome = try login.logIn(try login.client(mechanism, type: type))
            #expect(outcome.succeeded && outcome.mechanism == "\(name)-PLUS", "\(mechanism)")
        }
    }

    @Test func `only mechanisms with stored keys are offered, and both legs use the same hash`()
        throws
    {
        // The server also supports stronger hashes, without stored keys.
        var setting = try Self.setting(.sha1, .sha256)
        setting.mechanisms = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
        let login = try BridgedLogin(setting)
        #expect(login.offered.mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
        let outcome = try login.logIn(try login.client("SCRAM-SHA-1", type: nil))
        #expect(outcome.succeeded && outcome.mechanism == "SCRAM-SHA-1")
    }

    @Test func `the log explains a missing channel binding if no stored key fits a bound mechanism`() throws {
        var setting = try Self.setting(.sha1, .sha256)
        setting.mechanisms = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-1"]
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-1", type: nil))
        #expect(outcome.mechanism == "SCRAM-SHA-1")
        let told = words(login, "own-login")
        #expect(
            told.contains(
                "the server offers channel binding for none of the mechanisms that the account has a secret for (SCRAM-SHA-1)"
            ),
            "\(told)"
        )
    }

    @Test func `a password sent with PLAIN is verified with the stored keys and used for the server's login`() throws {
        var setting = try Self.setting(.sha1)
        setting.mechanisms = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("PLAIN", type: nil))
        #expect(outcome.succeeded && outcome.mechanism == "SCRAM-SHA-256-PLUS")

        setting.clientPassword = "wrong"
        let other = try BridgedLogin(setting)
        let refused = try other.logIn(try other.client("PLAIN", type: nil))
        #expect(refused.condition == "not-authorized" && refused.mechanism == nil)
    }

    @Test func `a wrong password is refused without a message to the server`() throws {
        var setting = try Self.setting(.sha256)
        setting.clientPassword = "wrong"
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256", type: nil))
        #expect(outcome.condition == "not-authorized" && outcome.mechanism == nil)
    }

    @Test func `outdated stored keys are reported with the account, both iteration counts and advice`() throws {
        var setting = try Self.setting(.sha256)
        setting.iterations = 10_000
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256", type: nil))
        #expect(outcome.condition == "temporary-auth-failure")
        let told = words(login, "own-login-failed")
        #expect(told.contains("juliet@example.org: the server's iteration count is 10000"), "\(told)")
        #expect(
            told.contains("that of the stored keys is 4096; copy the account's stored key from the server again"),
            "\(told)"
        )
        login.harness.end(.client)
        login.harness.close()
        let diagnosis = words(login, "login-failed")
        #expect(diagnosis.contains("iteration count is 10000, that of the stored keys is 4096"), "\(diagnosis)")

        setting.iterations = 4096
        setting.salt = "pepper"
        let other = try BridgedLogin(setting)
        #expect(try other.logIn(try other.client("SCRAM-SHA-256", type: nil)).condition == "temporary-auth-failure")
        #expect(words(other, "own-login-failed").contains("salt differs from that of the stored keys"))
    }

    @Test func `a client is refused if its mechanism has no stored key, and can try another one`() throws {
        var setting = try Self.setting(.sha1)
        // Another account has all keys.
        setting.otherAccount = true
        setting.mechanisms = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-1"]
        let login = try BridgedLogin(setting)
        #expect(login.offered.mechanisms == setting.mechanisms)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.condition == "invalid-mechanism" && outcome.mechanism == nil)
        let told = words(login, "client-login-refused")
        #expect(told.contains("juliet@example.org has no stored key for SCRAM-SHA-256, but for SCRAM-SHA-1"), "\(told)")
        let second = try login.logIn(try login.client("SCRAM-SHA-1-PLUS", type: "tls-exporter"))
        #expect(second.succeeded && second.mechanism == "SCRAM-SHA-1-PLUS")

        let third = try BridgedLogin(setting)
        _ = try third.logIn(try third.client("SCRAM-SHA-256", type: nil))
        third.harness.end(.client)
        third.harness.close()
        let diagnosis = words(third, "login-failed")
        #expect(
            diagnosis.contains("the account has no stored key for SCRAM-SHA-256"),
            "\(diagnosis)"
        )
    }
}
