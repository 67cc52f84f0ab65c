import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private let sm = "xmlns='urn:xmpp:sm:3'"

/// Tests of pings to silent clients (XEP-0199).
@Suite struct PingTests {
    private static let second: Int64 = 1_000_000_000

    private static func harness(_ method: PingOptions.Method = .iq) -> SessionHarness {
        var options = SessionOptions(level: .trace)
        options.ping = PingOptions(interval: 20 * second, method: method)
        var harness = SessionHarness(options: options)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    /// Advances the clock; returns the data sent to the client meanwhile.
    private static func wait(_ seconds: Int64, _ harness: inout SessionHarness) -> String {
        let start = harness.toClient.count
        harness.wait(seconds * second)
        return String(decoding: harness.toClient[start...], as: UTF8.self)
    }

    /// Returns the id of a ping.
    private static func id(_ text: String) throws -> String {
        let id = text.split(separator: " id='").last?.split(separator: "'").first
        return try #require(id.map(String.init))
    }

    private static func answer(_ ping: String, type: String = "result") throws -> String {
        "<iq type='\(type)' id='\(try id(ping))' to='example.org'/>"
    }

    @Test(arguments: ["result", "error"])
    func `a silent client is pinged, and its answer is not forwarded`(type: String) throws {
        var harness = Self.harness()
        #expect(Self.wait(19, &harness).isEmpty)
        #expect(harness.session.nextDeadline == harness.now.monotonic + Self.second)
        let ping = Self.wait(1, &harness)
        #expect(ping.hasPrefix("<iq type='get' id='xt-") && ping.contains("<ping xmlns='urn:xmpp:ping'/>"))
        #expect(ping.contains("from='example.org' to='juliet@example.org/balcony'"))
        let before = harness.toServer.count
        harness.send(try Self.answer(ping, type: type) + "<presence/>")
        #expect(String(decoding: harness.toServer[before...], as: UTF8.self) == "<presence/>")
        #expect(harness.told(code: "ping-timeout").isEmpty && harness.injected.isEmpty)
        // The next ping has another id.
        #expect(Self.wait(19, &harness).isEmpty)
        let next = Self.wait(1, &harness)
        #expect(try Self.id(next) != Self.id(ping))
    }

    @Test func `only stanzas from the client end its silence`() {
        var harness = Self.harness()
        #expect(Self.wait(15, &harness).isEmpty)
        harness.send("<presence/>")
        #expect(Self.wait(15, &harness).isEmpty)
        harness.send(" ")
        harness.send("<r \(sm)/>")
        harness.recv("<message/>")
        #expect(Self.wait(5, &harness).hasPrefix("<iq "))
    }

    @Test func `a missing answer to a ping is reported, and a late one is not forwarded`() throws {
        var harness = Self.harness()
        let ping = Self.wait(20, &harness)
        #expect(Self.wait(9, &harness).isEmpty && harness.told(code: "ping-timeout").isEmpty)
        #expect(Self.wait(1, &harness).isEmpty)
        let record = harness.told(code: "ping-timeout").first?.record
        #expect(record?.level == .warn && record?.leg == .client && record?.part == .inject)
        #expect(record?.messageText == "the client did not answer xmpptap's ping within 10 s")
        let before = harness.toServer.count
        harness.send(try Self.answer(ping))
        #expect(harness.toServer.count == before && harness.closed == nil)
        #expect(Self.wait(20, &harness).hasPrefix("<iq "))
        #expect(harness.told(code: "ping-timeout").count == 1)
    }

    @Test func `a ping that finds too many injections waiting is postponed`() {
        var harness = Self.harness()
        for number in 0..<Injections.capacity {
            let request = Injection(
                Array("<iq type='get' id='a\(number)'/>".utf8),
                to: .client,
                swallowsAnswer: true,
                timeout: 22 * Self.second
            )
            harness.inject(request)
        }
        #expect(Self.wait(20, &harness).isEmpty)
        #expect(harness.session.nextDeadline != nil)
        // The requests have timed out.
        #expect(Self.wait(3, &harness).isEmpty)
        #expect(Self.wait(2, &harness).hasPrefix("<iq "))
    }

    @Test func `a client whose answers cannot be decoded is not reported as silent`() {
        for method in PingOptions.Method.allCases {
            var harness = Self.harness(method)
            harness.send("<enable \(sm)/>")
            harness.recv("<enabled \(sm)/>")
            _ = Self.wait(20, &harness)
            // A comment is refused if the counts have diverged, as after a ping.
            if method != .iq { harness.send("<message><!-- a --></message>") }
            _ = Self.wait(10, &harness)
            #expect(harness.told(code: "ping-timeout").count == (method == .iq ? 1 : 0), "\(method)")
        }
    }

    @Test func `an inactive client is not pinged`() {
        var harness = Self.harness()
        harness.send("<inactive xmlns='urn:xmpp:csi:0'/>")
        #expect(Self.wait(1000, &harness).isEmpty && harness.session.nextDeadline == nil)
        harness.send("<active xmlns='urn:xmpp:csi:0'/>")
        #expect(Self.wait(19, &harness).isEmpty)
        #expect(Self.wait(1, &harness).hasPrefix("<iq "))
    }

    @Test func `a ping does not change the counts that client and server see`() throws {
        var harness = Self.harness()
        harness.send("<enable \(sm)/>")
        harness.recv("<enabled \(sm)/>")
        let ping = Self.wait(20, &harness)
        harness.send(try Self.answer(ping))
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        harness.send("<a \(sm) h='1'/>")
        harness.recv("<a \(sm) h='0'/>")
        #expect(String(decoding: harness.toServer[server...], as: UTF8.self) == "<a \(sm) h='0'/>")
        #expect(String(decoding: harness.toClient[client...], as: UTF8.self) == "<a \(sm) h='1'/>")
    }

    @Test func `an acknowledgement request as a ping does not change any count`() {
        var harness = Self.harness(.sm)
        // If stream management is off, a ping is sent instead.
        #expect(Self.wait(20, &harness).hasPrefix("<iq "))
        harness = Self.harness(.sm)
        harness.send("<enable \(sm)/>")
        harness.recv("<enabled \(sm)/>")
        #expect(Self.wait(20, &harness).hasPrefix("<r "))
        harness.send("<a \(sm) h='0'/>")
        #expect(Self.wait(19, &harness).isEmpty)
        #expect(Self.wait(1, &harness).hasPrefix("<r "))
        #expect(Self.wait(10, &harness).isEmpty)
        #expect(harness.told(code: "ping-timeout").count == 1)
        let isCutThrough = harness.session.isCutThrough(.send)
        #expect(isCutThrough && !harness.session.sharedState.outlet.hasDiverged)
    }

    @Test func `white space as a ping expects no answer`() {
        var harness = Self.harness(.whitespace)
        #expect(Self.wait(20, &harness) == " ")
        #expect(Self.wait(20, &harness) == " ")
        #expect(harness.told(code: "ping-timeout").isEmpty)
        // White space is not sent inside an item.
        harness.recv("<message><bo")
        #expect(Self.wait(20, &harness).isEmpty)
        harness.recv("dy/></message>")
        #expect(Self.wait(5, &harness) == " ")
    }

    @Test func `a client is pinged only in an open session`() {
        for count in 0..<10 {
            var options = SessionOptions(level: .trace)
            options.ping = PingOptions(interval: Self.second)
            options.loginTime = nil
            var harness = SessionHarness(options: options)
            harness.say(Array(Conversations.plainLogin.prefix(count)))
            let before = harness.toClient.count
            harness.wait(100 * Self.second)
            #expect(harness.toClient.count == before && harness.session.nextDeadline == nil, "\(count)")
        }
    }

    @Test func `a client is not pinged after its stream is closed`() {
        var harness = Self.harness()
        harness.recv("</stream:stream>")
        #expect(Self.wait(20, &harness).isEmpty && harness.session.nextDeadline == nil)
    }
}
