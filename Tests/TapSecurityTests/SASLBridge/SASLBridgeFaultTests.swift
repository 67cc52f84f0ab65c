import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Bridged logins with errors on either side.
struct SASLBridgeFaultTests {
    // MARK: Failures

    @Test(arguments: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-1", "PLAIN"])
    func `a wrong password from the client never reaches the server`(mechanism: String) throws {
        var setting = BridgedLogin.Setting()
        setting.clientPassword = "m3rcut10"
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(
            try login.client(mechanism, type: mechanism.hasSuffix("-PLUS") ? "tls-exporter" : nil)
        )
        #expect(!outcome.succeeded && outcome.condition == "not-authorized" && outcome.mechanism == nil)
        #expect(login.harness.told(code: "client-login-refused").count == 1)
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let diagnosis = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(diagnosis.details?["cause"] == "wrong-password" && diagnosis.details?["side"] == "client")
        #expect(diagnosis.details?["try"] == "comparePassword")
    }

    @Test(arguments: [false, true])
    func `a wrong password in the accounts file is diagnosed as a refused login of the proxy`(isSASL2: Bool)
        throws
    {
        var setting = BridgedLogin.Setting()
        setting.serverPassword = "m3rcut10"
        setting.isSASL2 = isSASL2
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.condition == "not-authorized" && outcome.mechanism == "SCRAM-SHA-256-PLUS")
        #expect(login.harness.told(code: "own-login-refused").count == 1)
        // The client may try again.
        #expect(try login.logIn(try login.client("PLAIN", type: nil)).condition == "not-authorized")
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let diagnosis = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(diagnosis.details?["cause"] == "own-login-refused" && diagnosis.details?["proxy_is_cause"] == true)
    }

    @Test func `the session ends after too many wrong passwords`() throws {
        var setting = BridgedLogin.Setting()
        setting.clientPassword = "m3rcut10"
        let login = try BridgedLogin(setting)
        for _ in 0..<4 { #expect(try login.logIn(try login.client("PLAIN", type: nil)).condition == "not-authorized") }
        #expect(login.harness.closed == nil)
        login.harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAB4</auth>")
        #expect(login.harness.closed == false)
        #expect(String(decoding: login.harness.toClient, as: UTF8.self).contains("policy-violation"))
    }

    @Test func `a server that signs a different list of mechanisms is refused`() throws {
        var setting = BridgedLogin.Setting()
        setting.lies = true
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.condition == "temporary-auth-failure")
        let told = try #require(login.harness.told(code: "own-login-failed").first?.record.messageText)
        #expect(told.contains("the signed mechanisms"))
        // The server's answer to the abort is not forwarded to the client.
        let before = login.harness.toClient.count
        let abort = login.toServer()
        #expect(abort?.name == "abort")
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><aborted/></failure>")
        #expect(login.harness.toClient.count == before)
    }

    /// Every order of messages from both sides, including unexpected ones.
    @Test func `the client never gets a success that the server has not proven, in any order of messages`()
        throws
    {
        let uri = "urn:ietf:params:xml:ns:xmpp-sasl"
        let words: [(Direction, String)] = [
            (.send, "<auth xmlns='\(uri)' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"),
            (.send, "<auth xmlns='\(uri)' mechanism='PLAIN'/>"),
            (.send, "<response xmlns='\(uri)'>AGp1bGlldAByMG0zMA==</response>"), (.send, "<abort xmlns='\(uri)'/>"),
            (.recv, "<challenge xmlns='\(uri)'>cj14</challenge>"), (.recv, "<success xmlns='\(uri)'>dj14</success>"),
            (.recv, "<failure xmlns='\(uri)'><not-authorized/></failure>"),
        ]
        let count = words.count
        for number in 0..<(count * count * count) {
            let login = try BridgedLogin()
            // The client must speak first in each order.
            let order = [number % 2, number / count % count, number / count / count, number % count]
            for index in order where login.harness.closed == nil {
                login.harness.receive(words[index].0, Array(words[index].1.utf8))
            }
            let said = String(decoding: login.harness.toClient, as: UTF8.self)
            #expect(!said.contains("<success"), "\(order)")
            #expect(
                !String(decoding: login.harness.toServer, as: UTF8.self).contains("AGp1bGlldAByMG0zMA=="),
                "\(order)"
            )
            login.harness.end(.client, .reset)
            login.harness.close()
        }
    }

    @Test func `a server that requires too many iterations is refused`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        let first = try #require(login.toServer().flatMap { Base64.decode($0.text) })
        let nonce = try #require(String(decoding: first, as: UTF8.self).split(separator: "r=").last)
        let challenge = "r=\(nonce)x,s=c2FsdA==,i=1000001"
        login.harness.recv(
            "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(Base64.encode(Array(challenge.utf8)))</challenge>"
        )
        #expect(login.toServer()?.name == "abort")
        #expect(login.toClient()?.firstChild?.name == "temporary-auth-failure")
        let told = login.harness.told(code: "own-login-failed").first?.record.messageText
        #expect(told?.contains("iteration count 1000001 is out of range (4096 to 1000000)") == true)
    }

    @Test func `a success without the server's signature ends the session`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        #expect(login.toServer()?.attribute("mechanism") == "SCRAM-SHA-256-PLUS")
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.harness.closed == false)
        #expect(login.harness.told(code: "own-login-failed").count == 1)
        #expect(!String(decoding: login.harness.toClient, as: UTF8.self).contains("<success"))
        #expect(String(decoding: login.harness.toServer, as: UTF8.self).contains("not-authorized"))
    }

    /// Hostile challenges and successes, with the reported finding.
    @Test(arguments: [
        ([(nil, "success")], "without authenticating itself"),
        ([("r=NONCEx,s=c2FsdA==,i=4096", "challenge"), (nil, "success")], "did not prove that it knows the password"),
        (
            [("r=NONCEx,s=c2FsdA==,i=4096", "challenge"), ("v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", "success")],
            "did not prove that it knows the password"
        ),
        ([("r=NONCEx,s=c2FsdA==,i=1", "challenge")], "iteration count 1 is out of range (4096 to 1000000)"),
        ([("r=somebodyElse,s=c2FsdA==,i=4096", "challenge")], "nonce does not begin with the client's nonce"),
        ([("nonsense", "challenge")], "not a list of attributes"),
    ])
    func `a hostile server is reported as the cause`(
        answers: [(message: String?, name: String)],
        finding: String
    ) throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        let first = try #require(login.toServer().flatMap { Base64.decode($0.text) })
        let nonce = try #require(String(decoding: first, as: UTF8.self).split(separator: "r=").last)
        for (message, name) in answers {
            let text = message.map { Base64.encode(Array($0.replacing("NONCE", with: nonce).utf8)) } ?? ""
            login.harness.recv("<\(name) xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(text)</\(name)>")
        }
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let diagnosis = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(diagnosis.details?["cause"] == "server-not-proven" && diagnosis.details?["side"] == "server")
        #expect(diagnosis.details?["proxy_is_cause"] == false && diagnosis.details?["rule"] == "RFC 5802 §5")
        let words = try #require(diagnosis.messageText)
        #expect(words.contains(finding) && !words.contains("--limit") && !words.contains("--accounts"), "\(words)")
    }

    @Test func `an iteration count above the maximum is diagnosed as caused by xmpptap`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        let first = try #require(login.toServer().flatMap { Base64.decode($0.text) })
        let nonce = try #require(String(decoding: first, as: UTF8.self).split(separator: "r=").last)
        let challenge = Base64.encode(Array("r=\(nonce)x,s=c2FsdA==,i=1000001".utf8))
        login.harness.recv("<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(challenge)</challenge>")
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let diagnosis = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(diagnosis.details?["cause"] == "own-login-refused" && diagnosis.details?["proxy_is_cause"] == true)
    }

    // MARK: Messages

    @Test func `a client without an initial response gets an empty challenge`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", nil)
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
    func `an invalid first message is refused by the proxy`(mechanism: String, text: String, condition: String) throws {
        let login = try BridgedLogin()
        login.harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>\(text)</auth>")
        let failure = try #require(login.toClient())
        #expect(failure.name == "failure" && failure.firstChild?.name == condition)
        #expect(login.toServer() == nil)
    }

    @Test func `a client's abort is answered by the proxy`() throws {
        let login = try BridgedLogin()
        var client = try login.client("SCRAM-SHA-256", type: nil)
        guard case .send(let first) = client.step(nil) else { throw KitError("no first message") }
        login.begin("SCRAM-SHA-256", first)
        #expect(login.toClient()?.name == "challenge")
        login.harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient()?.firstChild?.name == "aborted")
        #expect(login.toServer() == nil)
        #expect(try login.logIn(try login.client("SCRAM-SHA-256", type: nil)).succeeded)
    }

    @Test func `a client bound to another connection is refused by the proxy`() throws {
        let login = try BridgedLogin()
        let wrong = SCRAMClient(
            SCRAMMechanism(.sha256, isPlus: true),
            identity: .init(authentication: "juliet"),
            secret: .password("r0m30"),
            nonce: "fyko",
            binding: .bound(ChannelBinding(type: "tls-exporter", data: Array("tls-exporter of S".utf8))),
            cryptography: BridgedLogin.cryptography
        )
        let outcome = try login.logIn(wrong)
        #expect(outcome.condition == "malformed-request" && outcome.mechanism == nil)
    }

    // MARK: Unknown accounts

    @Test func `a login with an unknown account is relayed unchanged`() throws {
        let login = try BridgedLogin()
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

    @Test func `a login with an unknown account and no initial response is relayed with its first message`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", nil)
        #expect(login.toClient()?.name == "challenge")
        login.harness.send("<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AHRyaW5jdWxvAHN3b3Jk</response>")
        let auth = try #require(login.toServer())
        #expect(auth.attribute("mechanism") == "PLAIN" && auth.text == "AHRyaW5jdWxvAHN3b3Jk")
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient()?.name == "success")
    }

    @Test func `a bound login with an unknown account fails with a diagnosis`() throws {
        var setting = BridgedLogin.Setting()
        setting.user = "trinculo"
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.condition == "not-authorized" && outcome.mechanism == nil)
        let told = try #require(login.harness.told(code: "account-missing").first?.record.messageText)
        #expect(told.hasPrefix("trinculo@example.org is not in the accounts file"))
        login.harness.end(.client)
        login.harness.end(.server)
        login.harness.close()
        let diagnosis = try #require(login.harness.told(code: "login-failed").first?.record)
        #expect(diagnosis.details?["cause"] == "channel-binding-mismatch")
    }

    @Test func `an unsupported mechanism is not offered, but relayed if a client uses it`() throws {
        var setting = BridgedLogin.Setting()
        setting.mechanisms += ["ANONYMOUS", "X-OAUTH2"]
        let login = try BridgedLogin(setting)
        #expect(!login.features.mechanisms.contains("ANONYMOUS"))
        let before = login.harness.toServer.count
        login.begin("ANONYMOUS", nil)
        #expect(login.harness.toServer.count > before)
        #expect(login.harness.told(code: "login-not-ended").count == 1)
    }
}
