import TapTestKit
import Testing

@testable import TapCore
import TapRecord

@Suite struct LivenessTests {
    private static let second: Int64 = 1_000_000_000

    private func unheard(
        _ liveness: Liveness,
        _ direction: Direction = .recv,
        ping: Int64? = nil,
        isOpen: Bool = true,
        after seconds: Int64
    ) -> Liveness.Finding? {
        liveness.unansweredRequest(by: direction, ping: ping, isOpen: isOpen, at: seconds * Self.second)
    }

    @Test func `An unanswered ping takes precedence over an acknowledgement request, and that over silence`() {
        var liveness = Liveness(at: 0)
        #expect(unheard(liveness, after: 30)?.closeReason == .idle)
        liveness.observe(.asked(.recv), at: 10 * Self.second)
        #expect(
            unheard(liveness, after: 30)?.reason.description
                == "its request for an acknowledgement was not answered for 20 s"
        )
        #expect(
            unheard(liveness, ping: 5 * Self.second, after: 30)?.reason.description
                == "its ping was not answered for 25 s"
        )
    }

    @Test func `An acknowledgement request counts for its sender only, until the peer answers it`() {
        var liveness = Liveness(at: 0)
        liveness.observe(.asked(.send), at: Self.second)
        liveness.observe(.asked(.send), at: 4 * Self.second)
        #expect(unheard(liveness, .recv, after: 9) == nil)
        #expect(unheard(liveness, .send, after: 9)?.reason.description.hasSuffix("for 8 s") == true)
        liveness.observe(.acknowledged(.send), at: 9 * Self.second)
        #expect(unheard(liveness, .send, after: 9) != nil, "an answer of its own sender is none")
        liveness.observe(.acknowledged(.recv), at: 9 * Self.second)
        #expect(unheard(liveness, .send, after: 9) == nil)
    }

    @Test(arguments: [false, true])
    func `A request whose answer cannot be decoded is not reported as unanswered`(isDecoded: Bool) {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<enable xmlns='urn:xmpp:sm:3'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3'/>")
        if !isDecoded { harness.send("<message><!-- a --></message>") }
        harness.recv("<r xmlns='urn:xmpp:sm:3'/><iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
        if !isDecoded { harness.send("<a xmlns='urn:xmpp:sm:3' h='1'/><iq type='result' id='p'/>") }
        harness.wait(10 * Self.second)
        harness.end(.server)
        harness.end(.client)
        harness.close()
        let reason: CloseReason? = isDecoded ? .pingTimeout : nil
        #expect(harness.session.info.closeReason == reason)
    }

    @Test func `Silence is not reported before the session is open, or soon after data or a ping`() {
        var liveness = Liveness(at: 0)
        #expect(unheard(liveness, isOpen: false, after: 100) == nil)
        liveness.observe(.received, at: 90 * Self.second)
        #expect(unheard(liveness, after: 100) == nil)
        #expect(unheard(liveness, ping: 98 * Self.second, after: 100) == nil)
    }
}
