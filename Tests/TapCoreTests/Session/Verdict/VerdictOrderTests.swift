import TapTestKit
import Testing

@testable import TapCore

/// Of several things that go wrong, the one by which a login failed.
@Suite struct VerdictOrderTests {
    private typealias L = FailedLogin

    @Test func whoIsRefusedAndGoesOnBehindTheEndOfItsStreamFailsByTheRefusal() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(L.failure("not-authorized"))
        harness.send("</stream:stream>" + L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.leave()
        let verdict = harness.verdicts.first
        #expect(harness.verdicts.count == 1)
        #expect(verdict?.cause == .notAuthorized && verdict?.rung == .sasl, "\(String(describing: verdict))")
        #expect(verdict?.condition == "not-authorized")
        #expect(harness.told(code: "after-stream-end").count == 1)
    }

    @Test(arguments: ["aborted", "not-authorized"])
    func whoBreaksOffIsNotToldToHaveAWrongPasswordWhateverTheServerCallsIt(condition: String) {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        harness.recv(L.failure(condition))
        harness.leave()
        #expect(harness.verdicts.map(\.cause) == [.clientAborted])
    }

    @Test func whoGoesOnBehindTheEndOfItsStreamWithoutARefusalBreaksTheStream() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send("</stream:stream>" + L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.leave()
        #expect(harness.verdicts.map(\.cause) == [.malformedStream])
    }
}
