internal import TapRecord

/// Round-trip times of pings, and a summary like that of ping(8).
struct PingStatistics {
    private(set) var sent = 0
    private(set) var answered = 0
    private var shortest = Int64.max
    private var longest: Int64 = 0
    private var sum = 0.0
    private var sumOfSquares = 0.0

    /// Counts a ping, with its round trip in nanoseconds; nil if it was not answered.
    mutating func add(_ roundTrip: Int64?) {
        sent += 1
        guard let roundTrip else { return }
        answered += 1
        shortest = min(shortest, roundTrip)
        longest = max(longest, roundTrip)
        sum += Double(roundTrip)
        sumOfSquares += Double(roundTrip) * Double(roundTrip)
    }

    private var mean: Double { sum / Double(answered) }
    private var deviation: Double { max(0, sumOfSquares / Double(answered) - mean * mean).squareRoot() }
    /// The share of unanswered pings, in tenths of a percent.
    private var loss: Int { sent == 0 ? 0 : (sent - answered) * 1000 / sent }

    /// Returns the summary for pings to `name`, which took `time` nanoseconds in total.
    func lines(_ name: String, time: Int64) -> [String] {
        let percent = loss % 10 == 0 ? "\(loss / 10)" : "\(loss / 10).\(loss % 10)"
        var lines = [
            "", "--- \(name) ping statistics ---",
            "\(sent) sent, \(answered) answered, \(percent)% loss, time \(time / 1_000_000) ms",
        ]
        if answered > 0 {
            let figures = [shortest, Int64(mean), longest, Int64(deviation)].map(Self.milliseconds)
            lines.append("rtt min/avg/max/mdev = \(figures.joined(separator: "/")) ms")
        }
        return lines
    }

    /// Returns the summary as JSON.
    func json(time: Int64) -> String {
        LineBuffer.object {
            $0.field("sent", sent)
            $0.field("answered", answered)
            $0.field("time_ns", Int(time))
            guard answered > 0 else { return }
            $0.field("min_ns", Int(shortest))
            $0.field("avg_ns", Int(mean))
            $0.field("max_ns", Int(longest))
            $0.field("mdev_ns", Int(deviation))
        }
    }

    /// Formats a duration in milliseconds with three decimals.
    static func milliseconds(_ nanoseconds: Int64) -> String {
        let microseconds = nanoseconds / 1000
        let decimals = String(microseconds % 1000)
        return "\(microseconds / 1000).\(String(repeating: "0", count: 3 - decimals.count))\(decimals)"
    }
}
