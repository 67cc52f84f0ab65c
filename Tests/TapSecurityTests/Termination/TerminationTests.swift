import TapCore
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Logins that the proxy ends itself: each mechanism, each binding, and whatever may go wrong on either side.
struct TerminationTests {
    // MARK: Mechanisms and bindings

    private static let hashes = ["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"]

    @Test(arguments: hashes, [UInt16(0x0303), 0x0304])
    func `a bound login works by every hash and every binding, on each leg by its own`(hash: String, version: UInt16)
        throws
    {
        let types = TerminatedLogin.leg("C", version).bindings.map(\.type)
        for type in types {
            // The server knows one type alone, and it need not be the client's.
            for other in types {
                for isSASL2 in [false, true] {
                    var setting = TerminatedLogin.Setting()
                    setting.mechanisms = [hash, "\(hash)-PLUS"]
                    setting.types = [other]
                    setting.version = version
                    setting.isSASL2 = isSASL2
                    let login = try TerminatedLogin(setting)
                    #expect(login.offered.mechanisms == setting.mechanisms)
                    #expect(login.offered.bindingTypes == types)
                    let outcome = try login.logIn(try login.client("\(hash)-PLUS", type: type))
                    #expect(outcome.succeeded && outcome.mechanism == "\(hash)-PLUS", "\(type) \(other)")
                }
            }
        }
    }

    @Test(arguments: [
        // Bound, and the strongest, whatever the client used.
        (["SCRAM-SHA-1-PLUS", "SCRAM-SHA-1", "SCRAM-SHA-512", "PLAIN"], "PLAIN", "SCRAM-SHA-1-PLUS"),
        (["SCRAM-SHA-256", "PLAIN", "SCRAM-SHA-512"], "SCRAM-SHA-256", "SCRAM-SHA-512"),
        (["SCRAM-SHA-1", "PLAIN"], "PLAIN", "SCRAM-SHA-1"),
        (["DIGEST-MD5", "PLAIN"], "PLAIN", "PLAIN"),
    ])
    func `the proxy logs in by the strongest that the server offers`(
        mechanisms: [String],
        by client: String,
        upstream: String
    ) throws {
        var setting = TerminatedLogin.Setting()
        setting.mechanisms = mechanisms
        let login = try TerminatedLogin(setting)
        let outcome = try login.logIn(try login.client(client, type: nil))
        #expect(outcome.succeeded && outcome.mechanism == upstream)
    }

    @Test func `where the server names no types, the one that its version of TLS is bound by is taken`() throws {
        for (version, type) in [(UInt16(0x0304), "tls-exporter"), (0x0303, "tls-unique")] {
            var setting = TerminatedLogin.Setting()
            setting.types = nil
            setting.version = version
            let login = try TerminatedLogin(setting)
            // The client is named its own all the same.
            #expect(login.offered.bindingTypes == TerminatedLogin.leg("C", version).bindings.map(\.type))
            let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-server-end-point"))
            #expect(outcome.succeeded)
            let first = try #require(outcome.first.flatMap { Base64.decode($0.text) })
            #expect(String(decoding: first, as: UTF8.self).hasPrefix("p=\(type),"))
        }
    }

    @Test
    func `a server that offers no binding is told that the proxy could, and one of other types that it could not`()
        throws
    {
        for (mechanisms, types, flag) in [
            (["SCRAM-SHA-256"], nil as [String]?, "y"), (["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"], ["tls-new"], "n"),
        ] {
            var setting = TerminatedLogin.Setting()
            setting.mechanisms = mechanisms
            setting.types = types
            let login = try TerminatedLogin(setting)
            let outcome = try login.logIn(try login.client("SCRAM-SHA-256", type: nil))
            #expect(outcome.succeeded && outcome.mechanism == "SCRAM-SHA-256")
            let first = try #require(outcome.first.flatMap { Base64.decode($0.text) })
            #expect(String(decoding: first, as: UTF8.self).hasPrefix("\(flag),,"))
        }
    }

    @Test func `without TLS there is no binding, and a password goes in clear only after the client's own`() throws {
        var setting = TerminatedLogin.Setting()
        setting.isSecure = false
        var login = try TerminatedLogin(setting)
        #expect(login.features.mechanisms == ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
        #expect(login.features.channelBindings == nil)
        #expect(try login.logIn(try login.client("SCRAM-SHA-1", type: nil)).succeeded)

        setting.mechanisms = ["PLAIN", "EXTERNAL"]
        login = try TerminatedLogin(setting)
        #expect(try login.logIn(try login.client("PLAIN", type: nil)).mechanism == "PLAIN")
        setting.mechanisms = ["EXTERNAL"]
        setting.hasCertificate = true
        login = try TerminatedLogin(setting)
        #expect(login.features.mechanisms == ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1"])
    }

    @Test func `a server that takes certificates alone gets the proxy's, and the client logs in by its password`()
        throws
    {
        var setting = TerminatedLogin.Setting()
        setting.mechanisms = ["EXTERNAL"]
        setting.hasCertificate = true
        let login = try TerminatedLogin(setting)
        #expect(login.features.mechanisms.contains("SCRAM-SHA-256-PLUS") && login.features.mechanisms.contains("PLAIN"))
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.succeeded && outcome.mechanism == "EXTERNAL")
        #expect(outcome.first.flatMap { Base64.decode($0.text) } == Array("juliet@example.org".utf8))

        setting.hasCertificate = false
        let untouched = try TerminatedLogin(setting)
        #expect(untouched.features.mechanisms == ["EXTERNAL"])
        #expect(untouched.harness.told(code: "login-not-ended").count == 1)
    }

    // MARK: What goes wrong

    private static let bound = ("SCRAM-SHA-256-PLUS", "tls-exporter")

    @Test(arguments: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1", "PLAIN"])
    func `a wrong password of the client never reaches the server`(mechanism: String) throws {
        var setting = TerminatedLogin.Setting()
        setting.clientPassword = "m3rcut10"
        let login = try TerminatedLogin(setting)
        let outcome = try login.logIn(
            try login.client(mechanism, type: mechanism.hasSuffix("-PLUS") ? "tls-exporter" : nil)
        )
        #expect(!outcome.succeeded && outcome.condition == "not-authorized" && outcome.mechanism == nil)
        #expect(login.harness.told(code: "client-login-refused").count == 1)
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let verdict = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(verdict.details?["cause"] == "wrong-password" && verdict.details?["side"] == "client")
        #expect(verdict.message?.contains("--accounts") == true)
    }

    @Test(arguments: [false, true])
    func `a wrong password of the file is the server's failure, and the log says whose login it was`(isSASL2: Bool)
        throws
    {
        var setting = TerminatedLogin.Setting()
        setting.serverPassword = "m3rcut10"
        setting.isSASL2 = isSASL2
        let login = try TerminatedLogin(setting)
        let outcome = try login.logIn(try login.client(Self.bound.0, type: Self.bound.1))
        #expect(outcome.condition == "not-authorized" && outcome.mechanism == "SCRAM-SHA-256-PLUS")
        #expect(login.harness.told(code: "own-login-refused").count == 1)
        // The client may try again.
        #expect(try login.logIn(try login.client("PLAIN", type: nil)).condition == "not-authorized")
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let verdict = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(verdict.details?["cause"] == "own-login-refused" && verdict.details?["proxy_is_cause"] == true)
    }

    @Test func `after too many wrong passwords the session ends`() throws {
        var setting = TerminatedLogin.Setting()
        setting.clientPassword = "m3rcut10"
        let login = try TerminatedLogin(setting)
        for _ in 0..<4 { #expect(try login.logIn(try login.client("PLAIN", type: nil)).condition == "not-authorized") }
        #expect(login.harness.closed == nil)
        login.harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAB4</auth>")
        #expect(login.harness.closed == false)
        #expect(String(decoding: login.harness.toClient, as: UTF8.self).contains("policy-violation"))
    }

    @Test func `a server whose signature is wrong, or that signs another list, is not believed`() throws {
        var setting = TerminatedLogin.Setting()
        setting.lies = true
        let login = try TerminatedLogin(setting)
        let outcome = try login.logIn(try login.client(Self.bound.0, type: Self.bound.1))
        #expect(outcome.condition == "temporary-auth-failure")
        let told = try #require(login.harness.told(code: "own-login-failed").first?.record.message)
        #expect(told.contains("signs"))
        // The server's answer to the abort is nothing to the client.
        let before = login.harness.toClient.count
        let abort = login.toServer()
        #expect(abort?.name == "abort")
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><aborted/></failure>")
        #expect(login.harness.toClient.count == before)
    }

    @Test func `a success without the server's proof ends the session`() throws {
        let login = try TerminatedLogin()
        try begin(login, "PLAIN", Array("\0juliet\0r0m30".utf8))
        #expect(login.toServer()?.attribute("mechanism") == "SCRAM-SHA-256-PLUS")
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.harness.closed == false)
        #expect(login.harness.told(code: "own-login-failed").count == 1)
        #expect(!String(decoding: login.harness.toClient, as: UTF8.self).contains("<success"))
        #expect(String(decoding: login.harness.toServer, as: UTF8.self).contains("not-authorized"))
    }

    // MARK: Messages

    private func begin(_ login: TerminatedLogin, _ mechanism: String, _ message: [UInt8]?) throws {
        let text = message.map { $0.isEmpty ? "=" : Base64.encode($0) } ?? ""
        login.harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>\(text)</auth>")
    }

    @Test func `a client that begins without a message is asked for it`() throws {
        let login = try TerminatedLogin()
        try begin(login, "PLAIN", nil)
        let challenge = try #require(login.toClient())
        #expect(challenge.name == "challenge" && challenge.text.isEmpty)
        #expect(login.toServer() == nil)
        let message = Base64.encode(Array("\0juliet\0r0m30".utf8))
        login.harness.send("<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(message)</response>")
        #expect(login.toServer()?.attribute("mechanism") == "SCRAM-SHA-256-PLUS")
    }

    @Test(arguments: [
        ("PLAIN", "=", "malformed-request"), ("PLAIN", "no base64!", "incorrect-encoding"),
        ("PLAIN", "AGp1bGlldA==", "malformed-request"), ("SCRAM-SHA-256", "=", "malformed-request"),
        ("SCRAM-SHA-256", "YWJj", "malformed-request"),
    ])
    func `a first message that is none is refused here`(mechanism: String, text: String, condition: String) throws {
        let login = try TerminatedLogin()
        login.harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>\(text)</auth>")
        let failure = try #require(login.toClient())
        #expect(failure.name == "failure" && failure.firstChild?.name == condition)
        #expect(login.toServer() == nil)
    }

    @Test func `a client that gives up is answered here`() throws {
        let login = try TerminatedLogin()
        var client = try login.client("SCRAM-SHA-256", type: nil)
        guard case .send(let first) = client.step(nil) else { throw KitError("no first message") }
        try begin(login, "SCRAM-SHA-256", first)
        #expect(login.toClient()?.name == "challenge")
        login.harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient()?.firstChild?.name == "aborted")
        #expect(login.toServer() == nil)
        #expect(try login.logIn(try login.client("SCRAM-SHA-256", type: nil)).succeeded)
    }

    @Test func `a client that binds by what is not its connection's is refused here`() throws {
        let login = try TerminatedLogin()
        let wrong = SCRAMClient(
            SCRAMMechanism(.sha256, isPlus: true),
            identity: .init(authentication: "juliet"),
            password: "r0m30",
            nonce: "fyko",
            binding: .bound(ChannelBinding(type: "tls-exporter", data: Array("tls-exporter of S".utf8))),
            cryptography: TerminatedLogin.cryptography
        )
        let outcome = try login.logIn(wrong)
        #expect(outcome.condition == "malformed-request" && outcome.mechanism == nil)
    }

    // MARK: Accounts that are not there

    @Test func `an unknown account's login passes as it is, byte for byte`() throws {
        let login = try TerminatedLogin()
        let before = login.harness.toServer.count
        let text = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'  mechanism='PLAIN'>AHRyaW5jdWxvAHN3b3Jk</auth>"
        login.harness.send(text)
        #expect(Array(login.harness.toServer[before...]) == Array(text.utf8))
        #expect(login.harness.told(code: "login-not-ended").count == 1)
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(
            String(decoding: login.harness.toClient, as: UTF8.self).hasSuffix(
                "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
            )
        )
    }

    @Test func `an unknown account that had to be asked for is handed on with its first message`() throws {
        let login = try TerminatedLogin()
        try begin(login, "PLAIN", nil)
        #expect(login.toClient()?.name == "challenge")
        login.harness.send("<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AHRyaW5jdWxvAHN3b3Jk</response>")
        let auth = try #require(login.toServer())
        #expect(auth.attribute("mechanism") == "PLAIN" && auth.text == "AHRyaW5jdWxvAHN3b3Jk")
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient()?.name == "success")
    }

    @Test func `an unknown account's bound login cannot pass, and the verdict says so`() throws {
        var setting = TerminatedLogin.Setting()
        setting.user = "trinculo"
        let login = try TerminatedLogin(setting)
        let outcome = try login.logIn(try login.client(Self.bound.0, type: Self.bound.1))
        #expect(outcome.condition == "not-authorized" && outcome.mechanism == nil)
        let told = try #require(login.harness.told(code: "account-missing").first?.record.message)
        #expect(told.hasPrefix("trinculo@example.org is not in --accounts"))
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let verdict = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(verdict.details?["cause"] == "channel-binding-mismatch")
    }

    @Test func `a mechanism that is not ended here is not offered, and passes where it is used all the same`() throws {
        var setting = TerminatedLogin.Setting()
        setting.mechanisms += ["ANONYMOUS", "X-OAUTH2"]
        let login = try TerminatedLogin(setting)
        #expect(!login.features.mechanisms.contains("ANONYMOUS"))
        let before = login.harness.toServer.count
        try begin(login, "ANONYMOUS", nil)
        #expect(login.harness.toServer.count > before)
        #expect(login.harness.told(code: "login-not-ended").count == 1)
    }

    // MARK: SASL2

    @Test func `with SASL2 what the client asks for besides goes on, and tokens do not`() throws {
        var setting = TerminatedLogin.Setting()
        setting.isSASL2 = true
        setting.inline =
            "<bind xmlns='urn:xmpp:bind:0'/><fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-NONE</mechanism></fast>"
            + "<sm xmlns='urn:xmpp:sm:3'/>"
        let login = try TerminatedLogin(setting)
        #expect(login.features.inlineFeatures.map(\.name) == ["bind", "sm"])
        let outcome = try login.logIn(
            try login.client(Self.bound.0, type: Self.bound.1),
            inline: "<user-agent id='d4565fa7'><software>Test &amp; co</software></user-agent>"
                + "<request-token xmlns='urn:xmpp:fast:0' mechanism='HT-SHA-256-NONE'/>"
                + "<bind xmlns='urn:xmpp:bind:0'><tag>Test</tag></bind>",
            extra: "<authorization-identifier>juliet@example.org/Test.1</authorization-identifier>"
                + "<bound xmlns='urn:xmpp:bind:0'/><token xmlns='urn:xmpp:fast:0' token='s3cr3t' expiry='2027-01-01T00:00:00Z'/>"
        )
        #expect(outcome.succeeded)
        let first = try #require(outcome.first)
        #expect(first.children.map(\.name) == ["initial-response", "user-agent", "bind"])
        #expect(first.child("user-agent", .sasl2)?.childText("software", .sasl2) == "Test & co")
        #expect(first.child("bind", .bind2)?.childText("tag", .bind2) == "Test")
        let last = try #require(outcome.last)
        #expect(last.children.map(\.name) == ["additional-data", "authorization-identifier", "bound"])
        #expect(login.harness.told(code: "inline-refused").first?.record.message?.contains("request-token") == true)
        #expect(login.harness.session.facts.jid == "juliet@example.org/Test.1")
        #expect(login.harness.told(code: "session-ready").count == 1)
    }

    @Test func `a server that wants more first gets it from the client itself`() throws {
        var setting = TerminatedLogin.Setting()
        setting.isSASL2 = true
        setting.mechanisms = ["PLAIN"]
        let login = try TerminatedLogin(setting)
        login.harness.send(
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>AGp1bGlldAByMG0zMA==</initial-response></authenticate>"
        )
        #expect(login.toServer()?.name == "authenticate")
        login.harness.recv("<continue xmlns='urn:xmpp:sasl:2'><tasks><task>TOTP</task></tasks></continue>")
        let more = try #require(login.toClient())
        #expect(more.name == "continue" && more.child("tasks", .sasl2)?.childText("task", .sasl2) == "TOTP")
        login.harness.send("<next xmlns='urn:xmpp:sasl:2' task='TOTP'/>")
        #expect(login.toServer()?.name == "next")
        login.harness.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org</authorization-identifier></success>"
        )
        #expect(login.toClient()?.name == "success")
    }

    // MARK: The streams behind it, and the log

    @Test func `what the client says while the proxy logs in waits, and the streams begin anew behind it`() throws {
        let login = try TerminatedLogin()
        try begin(login, "PLAIN", Array("\0juliet\0r0m30".utf8))
        #expect(login.toServer()?.name == "auth")
        let before = login.harness.toServer.count
        // Ahead of the success.
        login.harness.send(TerminatedLogin.header)
        #expect(login.harness.toServer.count == before)
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        #expect(login.harness.toServer.count > before)
    }

    @Test func `after a success both streams begin anew and pass as they come`() throws {
        let login = try TerminatedLogin()
        #expect(try login.logIn(try login.client(Self.bound.0, type: Self.bound.1)).succeeded)
        login.harness.send(TerminatedLogin.header)
        login.harness.recv(
            TerminatedLogin.answer
                + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
        )
        login.harness.send("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        login.harness.recv(
            "<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>juliet@example.org/a</jid></bind></iq>"
        )
        #expect(login.harness.told(code: "session-ready").count == 1)
        #expect(!login.harness.told.contains { $0.record.code == "unexpected-restart" })
    }

    @Test(arguments: [RedactionPolicy.secrets, .none])
    func `the log holds what was said on each leg, by whom, and no secret`(redaction: RedactionPolicy) throws {
        var setting = TerminatedLogin.Setting()
        setting.redaction = redaction
        let login = try TerminatedLogin(setting)
        #expect(try login.logIn(try login.client("SCRAM-SHA-256", type: nil)).succeeded)
        let steps = login.harness.told.filter { $0.record.part == .sasl && $0.record.kind == .element }.map { told in
            let record = told.record
            return "\(record.origin) \(record.leg?.name.description ?? "") \(told.text(record.name) ?? "")"
        }
        #expect(
            steps == [
                "peer client auth", "tap client challenge", "peer client response", "tap server auth",
                "peer server challenge", "tap server response", "peer server success", "tap client success",
            ]
        )
        for told in login.harness.told where told.record.part == .sasl && told.record.kind == .element {
            let xml = try #require(told.xml)
            #expect(xml.hasPrefix("<\(told.text(told.record.name) ?? "")"))
            #expect(xml.contains("[redacted:") == (redaction == .secrets), "\(xml)")
        }
        let rungs = login.harness.told(code: "rung").filter { $0.record.part == .sasl }
        #expect(rungs.filter { $0.record.details?["leg"] == "server" }.count == 2)
        #expect(rungs.allSatisfy { $0.record.details?["outcome"] == "ok" })
        let all = login.harness.told.map { ($0.record.message ?? "") + ($0.xml ?? "") }.joined()
        #expect(!all.contains("r0m30"))
    }
}
