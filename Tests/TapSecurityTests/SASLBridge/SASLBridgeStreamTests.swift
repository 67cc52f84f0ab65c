import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapSecurity

/// Bridged logins: inline requests, the following streams, and the log.
struct SASLBridgeStreamTests {
    @Test func `a login that is already relayed in part is not performed by the proxy`() throws {
        let login = try BridgedLogin()
        login.harness.session.sharedState.cutThrough(.send)
        let before = login.harness.toServer.count
        let message = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"
        login.harness.send(message)
        #expect(String(decoding: login.harness.toServer[before...], as: UTF8.self) == message)
    }

    // MARK: SASL2

    @Test func `SASL2 inline requests are relayed, except those for tokens`() throws {
        var setting = BridgedLogin.Setting()
        setting.isSASL2 = true
        setting.inline =
            "<bind xmlns='urn:xmpp:bind:0'/><fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-NONE</mechanism></fast>"
            + "<sm xmlns='urn:xmpp:sm:3'/>"
        let login = try BridgedLogin(setting)
        #expect(login.features.inlineFeatures.map(\.name) == ["bind", "sm"])
        let outcome = try login.logIn(
            try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"),
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
        #expect(login.harness.told(code: "inline-refused").first?.record.messageText?.contains("request-token") == true)
        #expect(login.harness.session.info.jid == "juliet@example.org/Test.1")
        #expect(login.harness.told(code: "session-ready").count == 1)
    }

    @Test func `additional tasks of the server are relayed to the client`() throws {
        var setting = BridgedLogin.Setting()
        setting.isSASL2 = true
        setting.mechanisms = ["PLAIN"]
        let login = try BridgedLogin(setting)
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

    // MARK: Following streams, and the log

    @Test func `the client's data waits until the server has answered the proxy's login`() throws {
        let login = try BridgedLogin()
        login.begin("PLAIN", Array("\0juliet\0r0m30".utf8))
        #expect(login.toServer()?.name == "auth")
        let before = login.harness.toServer.count
        // The client sends its header before it has received the success.
        login.harness.send(BridgedLogin.header)
        #expect(login.harness.toServer.count == before)
        login.harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        #expect(login.harness.toServer.count > before)
    }

    @Test func `a client that sends before it has received the features waits for them`() throws {
        let setting = BridgedLogin.Setting()
        var harness = try BridgedLogin.harness(setting)
        let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"
        harness.send(BridgedLogin.header + auth)
        #expect(harness.toServer == Array(BridgedLogin.header.utf8))
        harness.recv(BridgedLogin.answer)
        #expect(harness.toServer.count == BridgedLogin.header.utf8.count)
        harness.recv(BridgedLogin.features(setting))
        let said = String(decoding: harness.toServer, as: UTF8.self)
        #expect(said.contains("mechanism='SCRAM-SHA-256-PLUS'") && !said.contains("PLAIN"))
    }

    @Test func `a client without TLS waits until TLS is negotiated with the server`() throws {
        var setting = BridgedLogin.Setting()
        setting.clientTLS = .off
        var harness = try BridgedLogin.harness(setting)
        harness.send(
            BridgedLogin.header
                + "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"
        )
        harness.recv(
            BridgedLogin.answer
                + "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>"
        )
        harness.recv("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        var agreement = TLSAgreement(version: 0x0304, details: [:], summary: "TLS")
        agreement.secured = BridgedLogin.leg("S", setting.version)
        harness.handle(.tls(.server, .opened(agreement)))
        harness.recv(BridgedLogin.answer)
        #expect(!String(decoding: harness.toServer, as: UTF8.self).contains("<auth"))
        harness.recv(BridgedLogin.features(setting))
        let said = String(decoding: harness.toServer, as: UTF8.self)
        #expect(said.contains("mechanism='SCRAM-SHA-256-PLUS'") && !said.contains("PLAIN"))
    }

    @Test(arguments: [false, true])
    func `a login that arrives byte by byte succeeds`(isSASL2: Bool) throws {
        var setting = BridgedLogin.Setting()
        setting.drips = true
        setting.isSASL2 = isSASL2
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
        #expect(outcome.succeeded && outcome.mechanism == "SCRAM-SHA-256-PLUS")
    }

    @Test func `a stream without version 1.0 does not wait for features`() throws {
        var harness = try BridgedLogin.harness(BridgedLogin.Setting())
        let query = "<iq type='get' id='a'><query xmlns='jabber:iq:auth'/></iq>"
        harness.send(BridgedLogin.header + query)
        harness.recv(BridgedLogin.answer.replacing(" version='1.0'", with: ""))
        #expect(String(decoding: harness.toServer, as: UTF8.self).hasSuffix(query))
    }

    @Test func `after a success, both streams restart and are relayed`() throws {
        let login = try BridgedLogin()
        #expect(try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter")).succeeded)
        login.harness.send(BridgedLogin.header)
        login.harness.recv(
            BridgedLogin.answer
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
    func `the log has the login on each leg with its origin, but no secrets`(redaction: RedactionPolicy) throws {
        var setting = BridgedLogin.Setting()
        setting.redaction = redaction
        let login = try BridgedLogin(setting)
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
        let timeline = login.harness.told(code: "step").filter { $0.record.part == .sasl }
        #expect(timeline.filter { $0.record.details?["leg"] == "server" }.count == 2)
        #expect(timeline.allSatisfy { $0.record.details?["outcome"] == "ok" })
        let all = login.harness.told.map { ($0.record.messageText ?? "") + ($0.xml ?? "") }.joined()
        #expect(!all.contains("r0m30"))
    }
}
