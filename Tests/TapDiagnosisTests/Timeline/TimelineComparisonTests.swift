import TapDiagnosis
import TapRecord
import Testing

/// Two timelines side by side.
@Suite struct TimelineComparisonTests {
    /// A step's record: its name, then outcome and details as `key=value`.
    private func loginStep(_ name: String, _ outcome: String = "ok", reason: String? = nil, details: Attributes = [:])
        -> Record
    {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .session,
            level: .verbose,
            part: .session
        )
        record.code = LoginStep.code
        var all: Attributes = [LoginStep.code: .string(name), LoginStep.outcomeDetail: .string(outcome)]
        all[LoginStep.reasonDetail] = reason.map { .string($0) }
        for entry in details.entries { all[entry.name] = entry.value }
        record.details = all
        return record
    }

    private var working: [Record] {
        [
            loginStep("name-lookup"), loginStep("connect"), loginStep("stream-open"), loginStep("features"),
            loginStep("starttls"),
            loginStep("tls", details: ["leg": "server"]), loginStep("stream-open"), loginStep("features"),
            loginStep("mechanism", details: ["mechanism": "SCRAM-SHA-256"]),
            loginStep("sasl", details: ["phase": "challenge"]),
            loginStep("ready"),
        ]
    }

    @Test func `The same way is the same, however the server was found and whatever the tap did with its client`() {
        var other = Array(working.dropFirst())
        other.insert(loginStep("tls", details: ["leg": "client"]), at: 5)
        let comparison = TimelineComparison(working: working, other: other)
        #expect(comparison.difference == nil)
        #expect(comparison.rows.count == 9)
        #expect(comparison.rows.allSatisfy { $0.working?.words == $0.other?.words && !$0.isDifference })
    }

    @Test func `TLS that a log cannot show is no difference`() {
        var other = working
        other[5] = loginStep("tls", "skipped", reason: "not told")
        #expect(TimelineComparison(working: working, other: other).difference == nil)
    }

    @Test func `Another mechanism is named, and only the first difference is marked`() {
        var other = working
        other[8] = loginStep("mechanism", details: ["mechanism": "PLAIN"])
        other[9] = loginStep("sasl", "failed", reason: "not-authorized", details: ["phase": "failure"])
        let comparison = TimelineComparison(working: working, other: other)
        #expect(
            comparison.difference == "the client chose mechanism PLAIN, the probe mechanism SCRAM-SHA-256"
        )
        #expect(comparison.rows.count { $0.isDifference } == 1)
        #expect(comparison.rows.first { $0.isDifference }?.other?.words == "mechanism PLAIN")
    }

    @Test func `A failure is told with its reason`() {
        var other = Array(working.prefix(9))
        other.append(loginStep("sasl", "failed", reason: "not-authorized", details: ["phase": "failure"]))
        #expect(
            TimelineComparison(working: working, other: other).difference
                == "the client failed at SASL (not-authorized); the probe continued with sasl challenge"
        )
    }

    @Test func `Who goes no further, and who leaves TLS out`() {
        let short = TimelineComparison(working: working, other: Array(working.prefix(4)))
        #expect(
            short.difference == "the client stopped after features; the probe continued with starttls"
        )
        var clear = working
        clear[4] = loginStep("starttls", "skipped", reason: "offered, not used")
        #expect(
            TimelineComparison(working: working, other: clear).difference
                == "the client skipped starttls (offered, not used)"
        )
    }

    @Test func `Records that are no steps are passed over`() {
        var record = loginStep("tls")
        record.code = "tls-opened"
        #expect(TimelineComparison(working: [record], other: []).rows.isEmpty)
    }
}
