internal import TapNetwork
internal import TapRecord

/// The summary at the end of the demo.
enum DemoSummary {
    /// One line per step with its duration, then what to do next.
    static func lines(_ steps: [DemoStep]) -> [String] {
        let width = steps.map(\.title.count).max() ?? 0
        var earlier = 0.0
        let rows = steps.map { step in
            let padding = String(repeating: " ", count: width - step.title.count)
            let time = duration(step.time - earlier)
            earlier = step.time
            return
                "  \(String(repeating: " ", count: max(0, 7 - time.count)))\(time)  \(step.title)\(padding)  \(step.detail)"
        }
        return ["", "Steps of the client, and how long each took:"] + rows + [
            "A complete session through xmpptap in \(duration(earlier)). Try your own server: xmpptap proxy --upstream HOST:5222"
        ]
    }

    private static func duration(_ seconds: Double) -> String {
        var line = LineBuffer(capacity: 16)
        line.append(duration: Int64(max(0, min(seconds, 1e9)) * 1e9))
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
