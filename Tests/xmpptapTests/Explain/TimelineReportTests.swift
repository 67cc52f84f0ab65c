import TapDiagnosis
import TapRecord
import Testing

@testable import xmpptap

@Suite struct TimelineReportTests {
    private func record(_ code: String, at milliseconds: Int64, _ change: (inout Record) -> Void = { _ in }) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: milliseconds * 1_000_000,
            kind: .session,
            level: .info,
            part: .session
        )
        record.session = 1
        record.code = code
        change(&record)
        return record
    }

    private func step(_ name: String, _ outcome: String, at: Int64, took: Int64, _ details: Attributes = [:]) -> Record
    {
        record(LoginStep.code, at: at + took) { record in
            var all: Attributes = [LoginStep.code: .string(name), LoginStep.outcomeDetail: .string(outcome)]
            for entry in details.entries { all[entry.name] = entry.value }
            record.details = all
            record.roundTrip = took * 1_000_000
        }
    }

    /// A session with a failed login and hostile text from the wire.
    private var failed: SessionTimelines {
        var timelines = SessionTimelines()
        timelines.add(record(Record.Code.sessionBegan, at: 0) { $0.remote = "127.0.0.1:57854" })
        timelines.add(step("connect", "ok", at: 0, took: 2, ["address": "127.0.0.1:43833"]))
        timelines.add(step("name-lookup", "skipped", at: 0, took: 0, [LoginStep.reasonDetail: "no SRV"]))
        timelines.add(
            step(
                "sasl",
                "failed",
                at: 20,
                took: 1,
                ["mechanism": "PLAIN\u{1B}[2J", LoginStep.reasonDetail: "wrong user name or password 漢字"]
            )
        )
        timelines.add(
            record(Record.Code.loginFailed, at: 22) { record in
                record.user = "juliet"
                record.details = [
                    "cause": .string(LoginCause.notAuthorized.rawValue), "step": "sasl", "side": "client",
                    "rule": "RFC 6120 §6.5.10", "proxy_is_cause": .boolean(false),
                    "finding": "the server refused the user name or the password",
                    "try": "check user name and password",
                ]
            }
        )
        timelines.add(
            record(Record.Code.sessionEnded, at: 74) { record in
                record.roundTrip = 74_000_000
                record.message = "closed by the client"
                record.details = ["close_reason": "closed"]
            }
        )
        return timelines
    }

    @Test func `a pipe gets the outcome before the steps, one line each, without a width limit`() {
        #expect(
            TimelineReport(timelines: failed).lines() == [
                "session 1, juliet at an unknown address",
                "  failed at sasl: the server refused the user name or the password (RFC 6120 §6.5.10)",
                "  cause: client, not xmpptap", "  try: check user name and password",
                "  ended after 74 ms: closed by the client (closed)",
                "  step            at    took  outcome",
                "  connect        0 s  2.0 ms  ok (address 127.0.0.1:43833)",
                "  name-lookup    0 s     0 s  skipped, no SRV",
                "  sasl         20 ms  1.0 ms  failed, wrong user name or password 漢字 (mechanism PLAIN\\u{1b}[2J)",
            ]
        )
    }

    @Test func `a terminal gets the outcome in the grid, with a mark`() {
        #expect(
            TimelineReport(timelines: failed, style: OutputStyle(width: 60)).lines() == [
                "── 1 · juliet at an unknown address ────────────────────────",
                "✗  failed at sasl: the server refused the user name or the",
                "   password (RFC 6120 §6.5.10)",
                "   cause: client, not xmpptap", "   try: check user name and password",
                "·  ended after 74 ms: closed by the client (closed)", "",
                "   step            at    took  outcome",
                "✓  connect        0 s  2.0 ms  address 127.0.0.1:43833",
                "–  name-lookup    0 s     0 s  no SRV",
                "✗  sasl         20 ms  1.0 ms  wrong user name or password",
                "                               漢字",
                "                               mechanism PLAIN\\u{1b}[2J",
            ]
        )
    }

    @Test(arguments: [20, 40, 47, 48, 60, 80, 200])
    func `no line is wider than the terminal, with colours or in ASCII`(width: Int) {
        for isColoured in [false, true] {
            let style = OutputStyle(width: width, paint: Paint(isOn: isColoured), isASCII: !isColoured)
            let lines = TimelineReport(timelines: failed, style: style).lines()
            let plain = lines.map { $0.replacing(/\u{1B}\[[0-9;]*m/, with: "") }
            #expect(plain.allSatisfy { Columns.count($0) <= width }, "\(plain.joined(separator: "\n"))")
            #expect(plain.allSatisfy { !$0.utf8.contains(0x1B) })
            #expect(isColoured || plain.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
            #expect(lines.contains { $0.contains("\u{1B}[1;31m") } == isColoured)
        }
    }

    @Test func `the report of a successful login begins with its duration`() {
        var timelines = SessionTimelines()
        timelines.add(record(Record.Code.sessionBegan, at: 0) { $0.remote = "127.0.0.1:1" })
        timelines.add(step("ready", "ok", at: 0, took: 55))
        timelines.add(record(Record.Code.sessionReady, at: 55) { $0.jid = "juliet@localhost/balcony" })
        #expect(
            TimelineReport(timelines: timelines).lines().prefix(3) == [
                "session 1, juliet@localhost/balcony", "  ready after 55 ms", "  its end is not in the file",
            ]
        )
    }
}
