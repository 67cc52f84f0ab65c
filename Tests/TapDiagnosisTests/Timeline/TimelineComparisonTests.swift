import TapDiagnosis
import TapRecord
import Testing

/// Comparisons of two timelines.
@Suite struct TimelineComparisonTests {
    /// Creates the record of a step.
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

    @Test func `Differences in name lookup and in TLS with xmpptap are ignored`() {
        var other = Array(working.dropFirst())
        other.insert(loginStep("tls", details: ["leg": "client"]), at: 5)
        let comparison = TimelineComparison(working: working, other: other)
        #expect(comparison.difference == nil)
        #expect(comparison.rows.count == 9)
        #expect(comparison.rows.allSatisfy { $0.working?.title == $0.other?.title && !$0.isDifference })
    }

    @Test func `TLS that a client log does not mention is not a difference`() {
        var other = working
        other[5] = loginStep("tls", "skipped", reason: "not told")
        #expect(TimelineComparison(working: working, other: other).difference == nil)
    }

    @Test func `Only the first difference, a different mechanism, is marked and reported`() {
        var other = working
        other[8] = loginStep("mechanism", details: ["mechanism": "PLAIN"])
        other[9] = loginStep("sasl", "failed", reason: "not-authorized", details: ["phase": "failure"])
        let comparison = TimelineComparison(working: working, other: other)
        #expect(
            comparison.difference == "the client chose mechanism PLAIN, the probe mechanism SCRAM-SHA-256"
        )
        #expect(comparison.rows.count { $0.isDifference } == 1)
        #expect(comparison.rows.first { $0.isDifference }?.other?.title == "mechanism PLAIN")
    }

    @Test func `A failed step is reported with its reason`() {
        var other = Array(working.prefix(9))
        other.append(loginStep("sasl", "failed", reason: "not-authorized", details: ["phase": "failure"]))
        #expect(
            TimelineComparison(working: working, other: other).difference
                == "the client failed at SASL (not-authorized); the probe continued with sasl challenge"
        )
    }

    @Test func `A client that stops early or skips STARTTLS is reported`() {
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

    @Test func `Records other than login steps are ignored`() {
        var record = loginStep("tls")
        record.code = "tls-opened"
        #expect(TimelineComparison(working: [record], other: []).rows.isEmpty)
    }
}
