import TapDiagnosis
import TapRecord
import Testing

@Suite struct SessionOverviewTests {
    /// Returns a record as in a JSON log.
    private static func line(_ second: Int, session: Int = 1, _ fields: String) throws -> RecordLine {
        let text =
            #"{"sequence":\#(second),"time":"2026-11-21T17:22:\#(10 + second).000000000Z","monotonic":\#(second),"#
            + #""level":"info","session":\#(session),\#(fields)}"#
        return try RecordLine(json: Array(text.utf8).span.bytes)
    }

    private static func stanza(_ direction: String, _ fields: String) -> String {
        #""kind":"stanza","direction":"\#(direction)","length":100,\#(fields)"#
    }

    private static func header(_ run: String) -> RecordHeader {
        RecordHeader(
            tool: "t",
            time: Timestamp(nanoseconds: 0),
            level: "verbose",
            isComplete: true,
            redaction: .secrets,
            run: run
        )
    }

    private static let session = [
        #""kind":"session","code":"session-began","remote":"192.0.2.7:40312""#,
        #""kind":"note","user":"juliet","domain":"example.org""#,
        stanza("send", #""name":"iq","type":"get","id":"1","jid":"juliet@example.org/balcony""#),
        stanza("recv", #""name":"iq","type":"result","id":"1","round_trip":0.038,"summary":"roster""#),
        stanza("recv", #""name":"iq","type":"error","id":"2","round_trip":1.5,"condition":"item-not-found""#),
        #""kind":"element","direction":"recv","length":7,"name":"a""#,
        #""kind":"session","code":"session-ended","round_trip":6.5,"details":{"close_reason":"reset"}"#,
    ]

    @Test func `a session overview contains owner, times, end, counts and the slowest iq`() throws {
        var overview = SessionOverview()
        overview.add(Self.header("a"))
        for (place, fields) in Self.session.enumerated() {
            overview.add(try Self.line(place, fields), isChosen: true)
        }
        let session = try #require(overview.all.first)
        #expect(overview.all.count == 1 && session.number == 1 && session.run == 1)
        #expect(session.jid == "juliet@example.org/balcony" && session.remote == "192.0.2.7:40312")
        #expect(session.began.text == "2026-11-21T17:22:10.000000000Z")
        #expect(session.duration == 6_500_000_000 && session.closeReason == "reset")
        #expect(session.sent.stanzas == 1 && session.sent.bytes == 100)
        #expect(session.received.stanzas == 2 && session.received.bytes == 207)
        #expect(session.errors == 1)
        #expect(session.slowest?.roundTrip == 1_500_000_000 && session.slowest?.sequence == 4)
    }

    @Test func `a run summary counts ends, failed logins and unanswered requests`() throws {
        var summary = RunSummary()
        let failed = #""kind":"error","code":"login-failed","details":{"cause":"wrong-password"}"#
        let lost = #""kind":"session","code":"session-ended","details":{"close_reason":"reset","unanswered":3}"#
        for (place, fields) in (Self.session + [failed, lost]).enumerated() {
            let line = try Self.line(place, fields)
            summary.add(line.record, content: line.content.span)
        }
        #expect(summary.sessions == 2 && summary.endings == ["reset": 2])
        #expect(summary.failedLogins == ["wrong-password": 1] && summary.unanswered == 3)
        #expect(summary.slowest?.roundTrip == 1_500_000_000 && summary.statistics.roundTrips.count == 2)
        // Causes invented by a server do not grow the summary.
        for number in 0..<100 {
            let line = try Self.line(
                0,
                #""kind":"error","code":"login-failed","details":{"cause":"c\#(number)"}"#
            )
            summary.add(line.record, content: line.content.span)
        }
        #expect(summary.failedLogins.count == 33 && summary.failedLogins.values.reduce(0, +) == 101)
    }

    @Test func `the overview of a session without a bound resource or an end contains the known values`() throws {
        var overview = SessionOverview()
        for (place, fields) in Self.session.prefix(2).enumerated() {
            overview.add(try Self.line(place, fields), isChosen: true)
        }
        let session = try #require(overview.all.first)
        #expect(session.jid == "juliet@example.org" && session.closeReason == nil)
        #expect(session.duration == 1_000_000_000 && session.slowest == nil)
    }

    @Test func `the overview lists only sessions with a chosen record, and counts all their records`() throws {
        var overview = SessionOverview()
        for run in ["a", "b"] {
            overview.add(Self.header(run))
            overview.add(try Self.line(0, Self.stanza("send", #""name":"presence""#)), isChosen: false)
            overview.add(try Self.line(1, Self.stanza("send", #""name":"message""#)), isChosen: run == "b")
            overview.add(try Self.line(2, session: 2, Self.stanza("send", #""name":"presence""#)), isChosen: false)
        }
        #expect(overview.all.map(\.run) == [2] && overview.runCount == 2)
        #expect(overview.all.first?.sent.stanzas == 2)
    }

    @Test func `statistics count items and bytes by kind, and errors by condition`() throws {
        var statistics = RecordStatistics()
        for (place, fields) in Self.session.enumerated() { statistics.add(try Self.line(place, fields)) }
        #expect(statistics.records == 7)
        #expect(statistics.kinds.map(\.kind) == [.iqGet, .iqResult, .iqError, .nonza])
        #expect(statistics.kinds.map(\.figures.sent) == [1, 0, 0, 0])
        #expect(statistics.kinds.map(\.figures.bytes) == [100, 100, 100, 7])
        #expect(statistics.errors == ["item-not-found": 1])
        #expect(statistics.roundTrips.count == 2)
        #expect(statistics.roundTrips.shortest == 38_000_000 && statistics.roundTrips.longest == 1_500_000_000)
    }

    @Test func `errors beyond the maximum number of conditions are counted together`() throws {
        var statistics = RecordStatistics()
        for number in 0..<1010 {
            statistics.add(try Self.line(1, Self.stanza("recv", #""name":"iq","condition":"c\#(number)""#)))
        }
        #expect(statistics.errors.count == 1001 && statistics.errors["(others)"] == 10)
    }

    @Test func `percentiles of round trips are at most one sixteenth too high`() throws {
        var statistics = RecordStatistics()
        for milliseconds in 1...1000 {
            let time = #""round_trip":\#(milliseconds / 1000).\#(String(1000 + milliseconds % 1000).dropFirst())"#
            statistics.add(try Self.line(1, Self.stanza("recv", #""name":"iq","type":"result",\#(time)"#)))
        }
        for share: UInt64 in [1, 50, 95, 99, 100] {
            let exact = Int64(share) * 10_000_000
            #expect((exact...(exact + exact / 16)).contains(statistics.roundTrips.percentile(share)))
        }
        #expect(RecordStatistics().roundTrips.percentile(50) == 0)
    }
}
