import TapDiagnosis
import TapRecord
import Testing
import XMPPCore

@testable import xmpptap

@Suite struct RunStatusTests {
    private func record(_ kind: Record.Kind, _ change: (inout Record) -> Void) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: kind,
            level: .info,
            part: .session
        )
        change(&record)
        return record
    }

    @Test func `the status line shows sessions, the rate, failed logins and the slowest IQ`() {
        var (summary, status) = (RunSummary(), RunStatus())
        let nothing: [UInt8] = []
        #expect(status.line(summary, at: 0) == "0 sessions · 0 stanzas/s")
        for _ in 0..<3 { summary.add(record(.session) { $0.code = Record.Code.sessionBegan }, content: nothing.span) }
        summary.add(record(.session) { $0.code = Record.Code.sessionEnded }, content: nothing.span)
        summary.add(record(.error) { $0.code = Record.Code.loginFailed }, content: nothing.span)
        let iq = Array("iqresult".utf8)
        for _ in 0..<10 {
            summary.add(
                record(.stanza) {
                    $0.direction = .recv
                    $0.name = ByteRange(0, 2)
                    $0.type = ByteRange(2, 8)
                    $0.roundTrip = 38_000_000
                    $0.summary = "roster: 2 contacts"
                },
                content: iq.span
            )
        }
        #expect(
            status.line(summary, at: 2_000_000_000)
                == "2 sessions · 5 stanzas/s · 1 failed login · slowest iq 38 ms: roster: 2 contacts"
        )
        // The rate is that of the last samples.
        for second in 3...6 { _ = status.line(summary, at: Int64(second) * 1_000_000_000) }
        #expect(status.line(summary, at: 7_000_000_000).hasPrefix("2 sessions · 0 stanzas/s"))
    }

    @Test func `a clock that does not advance causes no error`() {
        var status = RunStatus()
        for _ in 0..<3 { #expect(status.line(RunSummary(), at: 5) == "0 sessions · 0 stanzas/s") }
    }
}
