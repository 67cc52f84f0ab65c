import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// Tests of the counters of sessions for the metrics.
@Suite struct SessionCountersTests {
    private static let second: Int64 = 1_000_000_000
    private static let message = "<message to='romeo@example.net'><body>hello</body></message>"

    @Test func `actions on stanzas are counted by kind and direction`() throws {
        var scene = try RuleScene("::send\n\nKIND: presence\nDROP.\n\nKIND: message\nSET=body#=bye")
        _ = scene.recv(Self.message)
        #expect(scene.harness.session.counters.events.isEmpty)
        _ = scene.send("<presence/><presence/>" + Self.message)
        #expect(
            scene.harness.session.counters.events == [
                .acted("dropped", .presence, .send): 2, .acted("edited", .message, .send): 1,
            ]
        )
    }

    @Test func `the delay of a stanza by a rule is counted`() throws {
        var scene = try RuleScene("::send\n\nKIND: message\nDELAY=500ms")
        _ = scene.send(Self.message)
        #expect(scene.harness.session.counters.delays.counts.isEmpty)
        _ = scene.wait(milliseconds: 500)
        let delays = scene.harness.session.counters.delays
        #expect(delays.sum == Self.second / 2 && delays.counts.reduce(0, +) == 1)
        #expect(delays.counts[try #require(DurationHistogram.bounds.firstIndex(of: Self.second / 2))] == 1)
    }

    @Test func `the round trips of injected pings are counted by leg`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let ping = harness.session.info.ping(.client, id: "xt-1")
        harness.inject(Injection(ping, to: .client, swallowsAnswer: true))
        harness.wait(3 * Self.second)
        harness.send("<iq type='result' id='xt-1' to='example.org'/>")
        let counters = harness.session.counters
        #expect((3 * Self.second..<4 * Self.second).contains(counters.clientPings.sum))
        #expect(counters.serverPings.counts.isEmpty)
        #expect(counters.events == [.injected(.iq, .recv): 1])
    }

    @Test func `a parser error is counted by its leg and code`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.recv("<message></body>")
        #expect(harness.session.counters.events == [.parseError(.server, .mismatchedTag): 1])
    }

    @Test func `translated acknowledgements and resumptions are counted`() throws {
        let (run, rules) = (Run(), "::send\n\nKIND: presence\nDROP.")
        var first = try RuleScene(rules, run: run, enablesStreamManagement: true)
        _ = first.send(Self.message + "<presence/>" + Self.message)
        #expect(first.harness.session.divergence == 1)
        _ = first.recv("<a xmlns='urn:xmpp:sm:3' h='2'/>")
        #expect(first.harness.session.counters.events[.translated] == 1)
        let second = try first.resumed(rules, run: run)
        #expect(second.harness.session.counters.events[.resumed(true)] == 1)
        #expect(second.harness.session.divergence == 1)
    }

    @Test func `a resumption that the server refuses is counted as failed`() throws {
        var scene = try RuleScene("", turns: 8)
        _ = scene.send("<resume xmlns='urn:xmpp:sm:3' h='0' previd='gone'/>")
        _ = scene.recv(
            "<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
        )
        #expect(scene.harness.session.counters.events == [.resumed(false): 1])
    }

    @Test func `a login with a channel binding forecast is counted by strategy and verdict`() {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        var harness = SessionHarness(options: options)
        harness.say(Conversations.startTLS)
        harness.openTLS(.server)
        harness.openTLS(.client)
        harness.say(Array(Conversations.plainLogin.prefix(6)))
        #expect(harness.session.counters.events == [.predicted(.minted, verdict: "works"): 1])
    }

    @Test func `the session reports its relay mode`() throws {
        var scene = try RuleScene("::send\n\nKIND: presence\nDROP.")
        #expect(scene.harness.session.relayMode == .store)
        var harness = SessionHarness()
        #expect(harness.session.relayMode == .store)
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        #expect(harness.session.relayMode == .cutThrough)
        harness.recv("<message></body>")
        #expect(harness.session.relayMode == .opaque)
        scene.harness.end(.client, .reset)
        #expect(scene.harness.session.relayMode == .closing)
    }

    @Test func `a histogram counts a duration up to its bound, and histograms can be added`() {
        var histogram = DurationHistogram()
        for duration in [0, 10_000, 10_001, 60_000_000_000, 60_000_000_001] { histogram.add(Int64(duration)) }
        var sum = DurationHistogram()
        sum.add(histogram)
        sum.add(histogram)
        let last = DurationHistogram.bounds.count
        #expect(DurationHistogram.bounds == DurationHistogram.bounds.sorted())
        #expect(sum.counts[0] == 4 && sum.counts[1] == 2 && sum.counts[last - 1] == 2 && sum.counts[last] == 2)
        #expect(sum.sum == 2 * histogram.sum)
    }
}
