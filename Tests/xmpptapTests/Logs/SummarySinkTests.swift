import TapCapture
import TapDiagnosis
import TapRecord
import Testing
import XMPPCore

@testable import xmpptap

@Suite struct SummarySinkTests {
    /// Of a run with sessions, a failed login, and iqs.
    private var summary: RunSummary {
        var summary = RunSummary()
        func note(_ kind: Record.Kind, _ content: String = "", _ change: (inout Record) -> Void) {
            var record = Record(
                sequence: 1,
                time: Timestamp(nanoseconds: 0),
                monotonic: 0,
                kind: kind,
                level: .info,
                part: .session
            )
            change(&record)
            let bytes = Array(content.utf8)
            summary.add(record, content: bytes.span)
        }
        for reason in ["closed", "closed", "lost"] {
            note(.session) {
                $0.code = Record.Code.sessionEnded
                $0.details = [Record.Detail.closeReason: .string(reason), Record.Detail.unanswered: .integer(1)]
            }
        }
        note(.error) {
            $0.code = Record.Code.loginFailed
            $0.details = [Record.Detail.cause: "no\u{1B}[2J漢字"]
        }
        for (time, words) in [(38_000_000, "ping"), (1_200_000_000, "roster: 2 contacts")] as [(Int64, Prose)] {
            note(.stanza, "iqresult") {
                $0.direction = .recv
                $0.name = ByteRange(0, 2)
                $0.type = ByteRange(2, 8)
                $0.roundTrip = time
                $0.summary = words
            }
        }
        return summary
    }

    @Test func `a summary in a pipe has complete lines`() {
        #expect(
            SummarySink.lines(summary, width: nil) == [
                "sessions       3: closed 2, lost 1", #"failed logins  1: no\u{1b}[2J漢字 1"#,
                "items          iq result 2",
                "round trips    p50 40 ms, p99 1.2 s, slowest 1.2 s (roster: 2 contacts)",
                "unanswered     3 requests",
            ]
        )
        #expect(SummarySink.lines(RunSummary(), width: 80).isEmpty)
    }

    @Test func `a summary on a narrow terminal has the first parts of each line`() {
        #expect(
            SummarySink.lines(summary, width: 70)[3]
                == "round trips    p50 40 ms, p99 1.2 s, slowest 1.2 s (roster: 2 contac…)"
        )
        #expect(SummarySink.lines(summary, width: 60)[3] == "round trips    p50 40 ms, p99 1.2 s, slowest 1.2 s …")
        #expect(
            SummarySink.lines(summary, width: 48)[3] == "round trips    p50 40 ms, p99 1.2 s …"
        )
        #expect(
            SummarySink.lines(summary, width: 28) == [
                "sessions 3: closed 2, lost 1", #"failed logins 1: no\u{1b}[2…"#, "items iq result 2",
                "round trips p50 40 ms …",
                "unanswered 3 requests",
            ]
        )
        #expect(SummarySink.lines(summary, width: 27)[0] == "sessions 3: closed 2 …")
        #expect(SummarySink.lines(summary, width: 27, isASCII: true)[0] == "sessions 3: closed 2 ~")
    }

    @Test(arguments: 1...80) func `no line is wider than the terminal`(width: Int) {
        let lines = SummarySink.lines(summary, width: width)
        #expect(lines.count == 5)
        #expect(lines.allSatisfy { Columns.count($0) <= width }, "\(lines)")
    }
}
