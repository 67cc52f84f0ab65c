import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord
@testable import TapSecurity

/// Login steps that hash passwords run outside the session, which waits for them.
struct SlowStepTests {
    /// Returns a login whose first client message waits for processing.
    private func waiting(_ setting: BridgedLogin.Setting = .init()) throws -> (BridgedLogin, any SASLExchange) {
        let login = try BridgedLogin(setting)
        login.harness.keepsSlowSteps = true
        var client = try login.client("SCRAM-SHA-256", type: nil)
        guard case .send(let first) = client.step(nil) else { throw KitError("no first message") }
        login.begin("SCRAM-SHA-256", first)
        try #require(login.harness.slowSteps.count == 1)
        return (login, client)
    }

    private static func text(_ name: String, _ bytes: [UInt8]) -> String {
        "<\(name) xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(Base64.encode(bytes))</\(name)>"
    }

    @Test func `data that arrives during a slow step is processed afterwards, in order`() throws {
        let (login, _) = try waiting()
        #expect(login.toClient() == nil)
        login.harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient() == nil && login.toServer() == nil)
        login.harness.compute()
        let bytes = String(decoding: login.harness.toClient, as: UTF8.self)
        let challenge = try #require(bytes.firstRange(of: "<challenge")),
            aborted = try #require(bytes.firstRange(of: "<aborted"))
        #expect(challenge.lowerBound < aborted.lowerBound)
    }

    /// Returns a login after the client's proof, in which the proxy has started its own login with this nonce.
    private func loggingIn(_ setting: BridgedLogin.Setting = .init()) throws -> (BridgedLogin, nonce: String) {
        let (login, exchange) = try waiting(setting)
        var client = exchange
        login.harness.compute()
        let challenge = try #require(login.toClient())
        guard case .send(let response) = client.step(Base64.decode(challenge.text)) else {
            throw KitError("no response")
        }
        login.harness.send(Self.text("response", response))
        // The proof is verified at once, and the proxy starts its login.
        #expect(login.harness.slowSteps.isEmpty)
        let auth = try #require(login.toServer())
        #expect(auth.name == "auth")
        let nonce = try #require(
            String(decoding: Base64.decode(auth.text) ?? [], as: UTF8.self).split(separator: "r=").last
        )
        return (login, String(nonce))
    }

    @Test func `key derivation is a slow step for the client's login and for the proxy's own`() throws {
        let (login, nonce) = try loggingIn()
        login.harness.recv(Self.text("challenge", Array("r=\(nonce)3rfc,s=c2FsdA==,i=4096".utf8)))
        #expect(login.harness.slowSteps.count == 1 && login.toServer() == nil)
        // Data from the server waits.
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        #expect(login.toClient() == nil)
        login.harness.compute()
        #expect(login.toServer()?.name == "response")
        #expect(login.toClient()?.firstChild?.name == "not-authorized")
    }

    @Test func `a server's first message in a success causes no key derivation`() throws {
        let counting = CountingCryptography()
        var setting = BridgedLogin.Setting()
        setting.storeCryptography = counting
        let (login, nonce) = try loggingIn(setting)
        #expect(counting.derived.count == 1)
        login.harness.recv(Self.text("success", Array("r=\(nonce)3rfc,s=c2FsdA==,i=1000000".utf8)))
        #expect(counting.derived.count == 1 && login.harness.slowSteps.isEmpty)
        let told = login.harness.told(code: "own-login-failed").compactMap(\.record.messageText)
        #expect(told.count == 1 && told[0].contains("without authenticating itself"), "\(told)")
        #expect(
            String(decoding: login.harness.toClient, as: UTF8.self).contains("The server did not authenticate itself.")
        )
    }

    enum Ending: CaseIterable, Sendable {
        case clientFinished, clientReset, serverFinished, serverReset, stopped, aborted
    }

    private func end(_ login: BridgedLogin, _ ending: Ending) {
        switch ending {
        case .clientFinished: login.harness.end(.client)
        case .clientReset: login.harness.end(.client, .reset)
        case .serverFinished: login.harness.end(.server)
        case .serverReset: login.harness.end(.server, .reset)
        case .stopped: login.harness.session.handle(.stop, at: login.harness.now)
        case .aborted: login.harness.abort(.connectionTimeout, "too long")
        }
    }

    /// Returns whether the result of a step is still sent: a half-closed leg can still receive.
    private func isAlive(after ending: Ending) -> Bool { ending == .clientFinished || ending == .serverFinished }

    @Test(arguments: Ending.allCases)
    func `a slow step's result is ignored if the session has ended meanwhile`(ending: Ending) throws {
        let (login, _) = try waiting()
        end(login, ending)
        login.harness.compute()
        let told = String(decoding: login.harness.toClient, as: UTF8.self)
        #expect(told.contains("<challenge") == isAlive(after: ending), "\(told)")
        if ending == .serverFinished { login.harness.end(.client) }
        if ending == .clientFinished { login.harness.end(.server) }
        login.harness.close()
        #expect(login.harness.closed != nil && login.harness.told(code: "session-ended").count == 1)
    }

    @Test(arguments: Ending.allCases)
    func `the result of the proxy's own slow step is ignored if the session has ended`(ending: Ending) throws {
        let (login, nonce) = try loggingIn()
        login.harness.recv(Self.text("challenge", Array("r=\(nonce)3rfc,s=c2FsdA==,i=4096".utf8)))
        try #require(login.harness.slowSteps.count == 1)
        end(login, ending)
        login.harness.compute()
        let told = String(decoding: login.harness.toServer, as: UTF8.self)
        #expect(told.contains("<response") == isAlive(after: ending), "\(told)")
        if ending == .serverFinished { login.harness.end(.client) }
        if ending == .clientFinished { login.harness.end(.server) }
        login.harness.close()
        #expect(login.harness.closed != nil && login.harness.told(code: "session-ended").count == 1)
    }

    @Test func `a login of a half-closed client completes, and the end is relayed after it`()
        throws
    {
        var setting = BridgedLogin.Setting()
        setting.mechanisms = ["PLAIN"]
        let login = try BridgedLogin(setting)
        login.harness.keepsSlowSteps = true
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        try #require(login.harness.slowSteps.count == 1)
        login.harness.end(.client)
        #expect(login.harness.finished.isEmpty)
        login.harness.compute()
        #expect(login.toServer()?.name == "auth" && login.harness.finished.isEmpty)
        login.harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        #expect(login.toClient()?.name == "success" && login.harness.finished == [.server])
        login.harness.end(.server)
        #expect(login.harness.closed == false)
    }

    @Test func `data sent before a client's half-close waits for the slow step, too`() throws {
        let (login, _) = try waiting()
        login.begin("SCRAM-SHA-256", Array("n,,n=juliet,r=fyko".utf8))
        login.harness.end(.client)
        #expect(login.harness.slowSteps.count == 1 && login.toClient() == nil && login.harness.finished.isEmpty)
        login.harness.compute()
        #expect(login.toClient()?.name == "challenge" && login.harness.slowSteps.count == 1)
        #expect(login.harness.finished.isEmpty)
        login.harness.compute()
        #expect(login.toClient()?.name == "challenge" && login.harness.finished == [.server])
    }

    @Test func `a client that sends early is refused if it cannot be held`() throws {
        let login = try BridgedLogin()
        let account = AccountsFile.Account(jid: try JID(parsing: "juliet@example.org"), secret: .password("r0m30"))
        var bridge = SASLBridge(try AccountStore([account], cryptography: BridgedLogin.cryptography))
        bridge.offer = BridgedOffer(login.features, bridge.authenticator, client: nil)
        func begin() -> [SASLBridge.Action] {
            let message = SASLMessage.Text.bytes(Array("n,,n=juliet,r=fyko".utf8))
            return bridge.begin("SCRAM-SHA-256", isSASL2: false, message, user: "juliet", domain: "example.org")
        }
        #expect(begin() == [.compute])
        guard case .end(.policyViolation, let words, isServerAtFault: false)? = begin().first else {
            throw KitError("it goes on")
        }
        #expect(words.contains("must wait for the answer"))
    }
}
