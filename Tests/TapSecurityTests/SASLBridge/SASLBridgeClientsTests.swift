import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// Behaviour of real clients and servers with bridged logins.
struct SASLBridgeClientsTests {
    private static let auth =
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"
    private static let success = "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"

    @Test(arguments: ["\n", " \r\n\t"])
    func `white space after the client's login is not sent before the next XML declaration`(
        space: String
    ) throws {
        var setting = BridgedLogin.Setting()
        setting.mechanisms = ["PLAIN"]
        let login = try BridgedLogin(setting)
        login.harness.send(Self.auth + space)
        #expect(login.toServer()?.attribute("mechanism") == "PLAIN")
        login.harness.recv(Self.success)
        let before = login.harness.toServer.count
        // go-sendxmpp sends white space after its declaration, which is forwarded.
        let header = "<?xml version='1.0'?>\n" + BridgedLogin.header
        login.harness.send(header)
        #expect(String(decoding: login.harness.toServer[before...], as: UTF8.self) == header)
        let kept = login.harness.told.filter { $0.record.kind == .whitespace }.map(\.record.action)
        #expect(kept.map { $0.map { "\($0)" } } == ["answered", nil])
    }

    @Test func `binding to a TLS 1.3 server without a list of binding types is used only if required`()
        throws
    {
        var setting = BridgedLogin.Setting()
        setting.types = nil
        for (mechanisms, own) in [
            (["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1"], "SCRAM-SHA-256"),
            (["SCRAM-SHA-256-PLUS"], "SCRAM-SHA-256-PLUS"),
        ] {
            setting.mechanisms = mechanisms
            let login = try BridgedLogin(setting)
            let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-exporter"))
            #expect(outcome.succeeded)
            #expect(outcome.first?.attribute("mechanism") == own)
        }
        // Before TLS 1.3 the default type is tls-unique.
        setting.version = 0x0303
        setting.mechanisms = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
        let login = try BridgedLogin(setting)
        let outcome = try login.logIn(try login.client("SCRAM-SHA-256-PLUS", type: "tls-unique"))
        #expect(outcome.succeeded && outcome.first?.attribute("mechanism") == "SCRAM-SHA-256-PLUS")
    }
}
