import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

/// Timelines, assembled from records by run and session.
@Suite struct SessionTimelinesTests {
    private func record(_ code: String?, session: UInt64, at monotonic: Int64 = 0) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: monotonic,
            kind: .session,
            level: .info,
            part: .session
        )
        record.session = session
        record.code = code
        return record
    }

    @Test func `sessions of interleaved runs are kept apart`() {
        var timelines = SessionTimelines()
        for (run, codes) in [
            ("a", [Record.Code.sessionBegan, LoginStep.code]), ("b", [Record.Code.sessionBegan]),
            ("a", [LoginStep.code, Record.Code.sessionReady, Record.Code.sessionEnded]), ("b", [LoginStep.code]),
        ] {
            timelines.add(.test(run: run))
            for code in codes { timelines.add(record(code, session: 1)) }
        }
        #expect(timelines.runCount == 2)
        #expect(timelines.all.map(\.run) == [1, 2])
        #expect(timelines.all.map(\.steps.count) == [2, 1])
        #expect(timelines.all.map(\.isReady) == [true, false])
        #expect(timelines.all.map { $0.end != nil } == [true, false])
    }

    @Test func `the owner of a session is taken from the latest record that names it`() {
        var timelines = SessionTimelines(of: [2])
        timelines.add(record(Record.Code.sessionBegan, session: 1))
        var began = record(Record.Code.sessionBegan, session: 2, at: 5)
        began.remote = "192.0.2.1:5000"
        timelines.add(began)
        #expect(timelines.all.first?.owner.remote == "192.0.2.1:5000")
        var bound = record(nil, session: 2, at: 6)
        bound.jid = "romeo@example.org/balcony"
        timelines.add(bound)
        timelines.add(record(nil, session: 2, at: 7))
        #expect(timelines.all.map(\.number) == [2])
        #expect(timelines.all.first?.owner.jid == bound.jid && timelines.all.first?.began == 5)
    }

    @Test func `at most 50 sessions are drawn, unless more are named`() {
        func diagrams(of wanted: Set<UInt64>) -> SequenceDiagrams {
            var diagrams = SequenceDiagrams(of: wanted)
            for _ in 0..<2 {
                for number in 1...60 {
                    diagrams.add(RecordLine(record(nil, session: UInt64(number)).shown, content: [UInt8]().span))
                }
            }
            return diagrams
        }
        let first = diagrams(of: [])
        #expect(first.all.map(\.session) == Array(1...50) && first.omitted == 10)
        let named = diagrams(of: Set(1...55))
        #expect(named.all.count == 55 && named.omitted == 0)
    }
}
