internal import TapNetwork
internal import TapRecord

/// What the demo tells at its end.
enum DemoSummary {
    /// One line a step with the time it took, and what to do next.
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
        return ["", "What the client did, and how long each step took:"] + rows + [
            "A whole session through the tap in \(duration(earlier)). Now your own: xmpptap proxy --upstream HOST:5222"
        ]
    }

    private static func duration(_ seconds: Double) -> String {
        var line = LineBuffer(capacity: 16)
        line.append(duration: Int64(max(0, min(seconds, 1e9)) * 1e9))
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
