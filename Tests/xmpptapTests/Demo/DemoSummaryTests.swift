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
                "Steps of the client, and how long each took:",
                "   3.4 ms  stream  localhost",
                "    12 ms  login   SCRAM-SHA-256",
                "    1.2 s  ping    answered",
                "A complete session through xmpptap in 1.2 s. Try your own server: xmpptap proxy --upstream HOST:5222",
            ]
        )
    }
}
