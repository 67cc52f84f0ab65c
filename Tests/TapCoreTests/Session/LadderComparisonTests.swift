import TapCore
import Testing

/// Two ladders side by side.
@Suite struct LadderComparisonTests {
    /// A rung's record: its name, then outcome and details as `key=value`.
    private func rung(_ name: String, _ outcome: String = "ok", reason: String? = nil, details: Facts = [:]) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .session,
            level: .verbose,
            part: .session
        )
        record.code = Rung.code
        record.message = "\(name): \(outcome)\(reason.map { ", \($0)" } ?? "")"
        var all: Facts = [Rung.code: .string(name), Rung.outcomeDetail: .string(outcome)]
        for entry in details.entries { all[entry.name] = entry.value }
        record.details = all
        return record
    }

    private var working: [Record] {
        [
            rung("name-lookup"), rung("connect"), rung("stream-open"), rung("features"), rung("starttls"),
            rung("tls", details: ["leg": "server"]), rung("stream-open"), rung("features"),
            rung("mechanism", details: ["mechanism": "SCRAM-SHA-256"]), rung("sasl", details: ["step": "challenge"]),
            rung("ready"),
        ]
    }

    @Test func `The same way is the same, however the server was found and whatever the tap did with its client`() {
        var other = Array(working.dropFirst())
        other.insert(rung("tls", details: ["leg": "client"]), at: 5)
        let comparison = LadderComparison(working: working, other: other)
        #expect(comparison.difference == nil)
        #expect(comparison.rows.count == 9)
        #expect(comparison.rows.allSatisfy { $0.working?.words == $0.other?.words && !$0.isDifference })
    }

    @Test func `TLS that a log cannot show is no difference`() {
        var other = working
        other[5] = rung("tls", "skipped", reason: "not told")
        #expect(LadderComparison(working: working, other: other).difference == nil)
    }

    @Test func `Another mechanism is named, and only the first difference is marked`() {
        var other = working
        other[8] = rung("mechanism", details: ["mechanism": "PLAIN"])
        other[9] = rung("sasl", "failed", reason: "not-authorized", details: ["step": "failure"])
        let comparison = LadderComparison(working: working, other: other)
        #expect(
            comparison.difference == "the client takes mechanism PLAIN, the path that works mechanism SCRAM-SHA-256"
        )
        #expect(comparison.rows.count { $0.isDifference } == 1)
        #expect(comparison.rows.first { $0.isDifference }?.other?.words == "mechanism PLAIN")
    }

    @Test func `A failure is told with its reason`() {
        var other = Array(working.prefix(9))
        other.append(rung("sasl", "failed", reason: "not-authorized", details: ["step": "failure"]))
        #expect(
            LadderComparison(working: working, other: other).difference
                == "the client fails at SASL (not-authorized), the path that works goes on with sasl challenge"
        )
    }

    @Test func `Who goes no further, and who leaves TLS out`() {
        let short = LadderComparison(working: working, other: Array(working.prefix(4)))
        #expect(
            short.difference == "the client goes no further after features; the path that works goes on with starttls"
        )
        var clear = working
        clear[4] = rung("starttls", "skipped", reason: "offered and not taken")
        #expect(
            LadderComparison(working: working, other: clear).difference
                == "the client does not take starttls (offered and not taken)"
        )
    }

    @Test func `Records that are no rungs are passed over`() {
        var record = rung("tls")
        record.code = "tls-opened"
        #expect(LadderComparison(working: [record], other: []).rows.isEmpty)
    }
}
