import TapCore
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Steps of a login that hash passwords are done away from the session, which waits.
struct SlowStepTests {
    /// A login whose client has said its first message, which waits to be looked at.
    private func waiting(_ setting: TerminatedLogin.Setting = .init()) throws -> (TerminatedLogin, any SASLExchange) {
        let login = try TerminatedLogin(setting)
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

    @Test func `nothing that comes is looked at until the step is done, and then all of it in its order`() throws {
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

    @Test func `both steps are done elsewhere: the client's keys, and the proxy's own`() throws {
        let (login, exchange) = try waiting()
        var client = exchange
        login.harness.compute()
        let challenge = try #require(login.toClient())
        guard case .send(let response) = client.step(Base64.decode(challenge.text)) else {
            throw KitError("no response")
        }
        login.harness.send(Self.text("response", response))
        // The proof is checked at once; the proxy begins.
        #expect(login.harness.slowSteps.isEmpty)
        let auth = try #require(login.toServer())
        #expect(auth.name == "auth")
        let nonce = try #require(
            String(decoding: Base64.decode(auth.text) ?? [], as: UTF8.self).split(separator: "r=").last
        )
        login.harness.recv(Self.text("challenge", Array("r=\(nonce)3rfc,s=c2FsdA==,i=4096".utf8)))
        #expect(login.harness.slowSteps.count == 1 && login.toServer() == nil)
        // The server does not wait, and is kept.
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        #expect(login.toClient() == nil)
        login.harness.compute()
        #expect(login.toServer()?.name == "response")
        #expect(login.toClient()?.firstChild?.name == "not-authorized")
    }

    enum Ending: CaseIterable, Sendable {
        case clientFinished, clientReset, serverFinished, serverReset, stopped, aborted
    }

    @Test(arguments: Ending.allCases)
    func `a session that ends meanwhile ends, and what comes of the step is nothing`(ending: Ending) throws {
        let (login, _) = try waiting()
        switch ending {
        case .clientFinished: login.harness.end(.client)
        case .clientReset: login.harness.end(.client, .reset)
        case .serverFinished: login.harness.end(.server)
        case .serverReset: login.harness.end(.server, .reset)
        case .stopped: login.harness.session.stop(at: login.harness.now)
        case .aborted: login.harness.abort(.connectionTimeout, "too long")
        }
        login.harness.compute()
        if ending == .serverFinished { login.harness.end(.client) }
        if ending == .clientFinished { login.harness.end(.server) }
        login.harness.close()
        #expect(login.harness.closed != nil && login.harness.told(code: "session-ended").count == 1)
        #expect(login.toServer()?.name != "auth")
    }

    @Test func `a client that has closed its side and begins anew is told that it has to wait`() throws {
        let (login, _) = try waiting()
        login.begin("SCRAM-SHA-256", Array("n,,n=juliet,r=fyko".utf8))
        #expect(login.harness.slowSteps.count == 1)
        login.harness.end(.client)
        let told = String(decoding: login.harness.toClient, as: UTF8.self)
        #expect(told.contains("<policy-violation") && told.contains("does not wait for the answer"), "\(told)")
        login.harness.compute()
        #expect(String(decoding: login.harness.toClient, as: UTF8.self) == told)
    }
}
