import TapTestKit
import Testing

import TapDiagnosis
import TapRecord

/// Tests which fault a diagnosis names if several things go wrong in a login.
@Suite struct DiagnosisOrderTests {
    private typealias L = FailedLogin

    @Test func `a refused client that continues after the end of its stream failed by the refusal`() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(L.failure("not-authorized"))
        harness.send("</stream:stream>" + L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.leave()
        let diagnosis = harness.diagnoses.first
        #expect(harness.diagnoses.count == 1)
        #expect(diagnosis?.cause == .notAuthorized && diagnosis?.loginStep == .sasl, "\(String(describing: diagnosis))")
        #expect(diagnosis?.condition == "not-authorized")
        #expect(harness.told(code: "after-stream-end").count == 1)
    }

    @Test(arguments: ["aborted", "not-authorized"])
    func `an aborted login is not diagnosed as a wrong password`(condition: String) {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        harness.recv(L.failure(condition))
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.clientAborted])
    }

    @Test func `a client that continues after the end of its stream without a refusal broke the stream`() {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
        harness.send("</stream:stream>" + L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
        harness.leave()
        #expect(harness.diagnoses.map(\.cause) == [.malformedStream])
    }
}
