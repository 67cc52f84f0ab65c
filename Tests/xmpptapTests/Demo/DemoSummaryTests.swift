import TapTestKit
import Testing

@testable import TapNetwork
@testable import xmpptap

struct DemoSummaryTests {
    @Test func `Each step is told with the time that it took, and what to do next`() {
        let steps = [
            DemoStep(title: "stream", detail: "localhost", time: 0.0034),
            DemoStep(title: "login", detail: "SCRAM-SHA-256", time: 0.0154),
            DemoStep(title: "ping", detail: "answered", time: 1.2),
        ]
        #expect(
            DemoSummary.lines(steps) == [
                "",
                "What the client did, and how long each step took:",
                "   3.4 ms  stream  localhost",
                "    12 ms  login   SCRAM-SHA-256",
                "    1.2 s  ping    answered",
                "A whole session through the tap in 1.2 s. Now your own: xmpptap proxy --upstream HOST:5222",
            ]
        )
    }
}
