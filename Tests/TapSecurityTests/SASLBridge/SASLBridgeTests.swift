@testable import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Bridged logins with each mechanism and channel binding.
struct SASLBridgeTests {
    private static let hashes = ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"]

    @Test(arguments: hashes, [UInt16(0x0303), 0x0304])
    func `a login works with every hash and binding type, which may differ per leg`(hash: String, version: UInt16)
        throws
    {
        let types = BridgedLogin.leg("C", version).bindings.map(\.type)
        for type in types {
            // The server supports one type only, which may differ from the client's.
            for other in types {
                for isSASL2 in [false, true] {
                    var setting = BridgedLogin.Setting()
                    setting.mechanisms = [hash, "\(hash)-PLUS"]
                    setting.types = [other]
                    setting.version = version
                    setting.isSASL2 = isSASL2
                    let login = try BridgedLogin(setting)
                    #expect(login.offered.mechanisms == setting.mechanisms)
                    #expect(login.offered.bindingTypes == types)
                    let outcome = try login.logIn(try login.client("\(hash)-PLUS", type: type))
                    #expect(outcome.succeeded && outcome.mechanism == "\(hash)-PLUS", "\(type) \(other)")
                }
            }
        }
    }

    @Test(arguments: [
        // Channel binding comes first, then the strongest hash, whatever mechanism the client used.
        (["SCRAM-SHA-1-PLUS", "SCRAM-SHA-1", "SCRAM-SHA-512", "PLAIN"], "PLAIN", "SCRAM-SHA-1-PLUS"),
        (["SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512"], "SCRAM-SHA-256", "SCRAM-SHA-512"),
        (["SCRAM-SHA-1", "PLAIN"], "PLAIN", "SCRAM-SHA-1"),
        (["DIGEST-MD5", "PLAIN"], "PLAIN", "PLAIN"),
    ])
    func `the proxy logs in with the server's strongest mechanism`(
        mechanisms: [String],
        by client: String,
        upstream: String
    ) throws {
        var setting = BridgedLogin.Setting()
        setting.mechanisms = mechanisms
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client(client, type: nil))
        #expect(outcome.succeeded && outcome.mechanism == upstream)
    }

    @Test func `without a list of binding types, tls-unique is used before TLS 1.3 and no binding with it`() throws {
        for (version, flag) in [(UInt16(0x0304), "n,"), (0x0303, "p=tls-unique,")] {
            var setting = BridgedLogin.Setting()
            setting.types = nil
            setting.version = version
            let login = try BridgedLogin(setting)
            // The client still receives a list of types.
            #expect(login.offered.bindingTypes == BridgedLogin.leg("C", version).bindings.map(\.type))
            let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-server-end-point"))
            #expect(outcome.succeeded)
            let first = try #require(outcome.first.flatMap { Base64.decode($0.text) })
            #expect(String(decoding: first, as: UTF8.self).hasPrefix(flag))
        }
    }

    @Test
    func `the proxy sends GS2 flag y if the server offers no -PLUS mechanism, and n if it cannot bind`()
        throws
    {
        for (mechanisms, types, flag) in [
            (["SCRAM-SHA-256"], nil as [String]?, "y"), (["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"], ["tls-new"], "n"),
        ] {
            var setting = BridgedLogin.Setting()
            setting.mechanisms = mechanisms
            setting.types = types
            let login = try BridgedLogin(setting)
            let outcome = try login.logIn(try login.client("SCRAM-SHA-256", type: nil))
            #expect(outcome.succeeded && outcome.mechanism == "SCRAM-SHA-256")
            let first = try #require(outcome.first.flatMap { Base64.decode($0.text) })
            #expect(String(decoding: first, as: UTF8.self).hasPrefix("\(flag),,"))
        }
    }

    @Test func `without TLS no channel binding is offered, and PLAIN is used only if the client used it`() throws {
        var setting = BridgedLogin.Setting()
        setting.isSecure = false
        var login = try BridgedLogin(setting)
        #expect(login.features.mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
        #expect(login.features.channelBindings == nil)
        #expect(try login.logIn(try login.client("SCRAM-SHA-1", type: nil)).succeeded)

        setting.mechanisms = ["PLAIN", "EXTERNAL"]
        login = try BridgedLogin(setting)
        #expect(try login.logIn(try login.client("PLAIN", type: nil)).mechanism == "PLAIN")
        setting.mechanisms = ["EXTERNAL"]
        setting.hasCertificate = true
        login = try BridgedLogin(setting)
        #expect(login.features.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"])
    }

    @Test(arguments: [false, true])
    func `an unverified server gets no password that the client did not send`(isVerified: Bool) throws {
        var setting = BridgedLogin.Setting()
        setting.mechanisms = ["SCRAM-SHA-256-PLUS", "PLAIN"]
        setting.types = ["tls-new"]
        let login = try BridgedLogin(setting)
        login.harness.session.sharedState.info.isUnverified = !isVerified
        login.harness.session.sharedState.perform(.secured(.server, BridgedLogin.leg("S", setting.version)))
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.mechanism == (isVerified ? "PLAIN" : nil))
        #expect(outcome.condition == (isVerified ? nil : "temporary-auth-failure"))
        // A password that the client itself sends is relayed.
        if !isVerified { #expect(try login.logIn(try login.client("PLAIN", type: nil)).mechanism == "PLAIN") }
    }

    @Test func `the proxy logs in with its certificate if the server offers only EXTERNAL`()
        throws
    {
        var setting = BridgedLogin.Setting()
        setting.mechanisms = ["EXTERNAL"]
        setting.hasCertificate = true
        let login = try BridgedLogin(setting)
        #expect(login.features.mechanisms.contains("SCRAM-SHA-256-PLUS") && login.features.mechanisms.contains("PLAIN"))
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.succeeded && outcome.mechanism == "EXTERNAL")
        #expect(outcome.first.flatMap { Base64.decode($0.text) } == Array("juliet@example.org".utf8))

        // A password is valid only for its own account.
        for (name, isRefused) in [("romeo@example.org", true), ("JULIET@example.org", false), ("juliet", true)] {
            let login = try BridgedLogin(setting)
            login.begin("PLAIN", Array("\(name)\0juliet\0r0m30".utf8))
            let asked = login.toServer().flatMap { Base64.decode($0.text) }
            #expect(asked == (isRefused ? nil : Array("juliet@example.org".utf8)), "\(name)")
            #expect(login.toClient()?.firstChild?.name == (isRefused ? "invalid-authzid" : nil), "\(name)")
        }

        setting.hasCertificate = false
        let untouched = try BridgedLogin(setting)
        #expect(untouched.features.mechanisms == ["EXTERNAL"])
        #expect(untouched.harness.told(code: "login-not-ended").count == 1)
    }
}
