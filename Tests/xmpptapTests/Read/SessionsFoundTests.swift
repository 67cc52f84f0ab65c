import TapCapture
import Testing

@testable import xmpptap

struct SessionsFoundTests {
    private func remark(_ wanted: Set<UInt64>, sessions: [UInt64], runs: [String] = ["a"]) -> String? {
        var found = SessionsFound()
        for run in runs { found.add(run: run) }
        for session in sessions { found.add(session: session) }
        return found.remark(on: wanted)
    }

    @Test func `A request for a missing session lists the existing ones`() {
        #expect(
            remark([9], sessions: [0, 1, 1, 2]) == "--session 9: there is no such session; the first is 1, the last 2"
        )
        #expect(remark([3, 9], sessions: [3]) == "--session 9: there is no such session; the only one is 3")
        #expect(remark([1], sessions: [0]) == "--session 1: there are no sessions")
    }

    @Test func `A request for sessions that are missing is detected`() {
        var found = SessionsFound()
        for session: UInt64 in [0, 1, 1, 3] { found.add(session: session) }
        #expect(!found.lacksAny(of: []) && !found.lacksAny(of: [1, 3]))
        #expect(found.lacksAny(of: [1, 2]) && found.lacksAny(of: [0]))
    }

    @Test func `No message is shown if all requested sessions exist`() {
        #expect(remark([2], sessions: [1, 2, 1]) == nil)
        #expect(remark([], sessions: [], runs: ["a", "b"]) == nil)
    }

    @Test func `A number that occurs in several runs does not identify a session`() {
        #expect(remark([1], sessions: [1], runs: ["a", "b", "a"])?.hasPrefix("--session: 2 runs of xmpptap ") == true)
    }
}
