import Foundation
import TapRecord
import TapRules
import Testing

@testable import TapCapture

/// Answers about stored records.
struct InspectionTests {
    private let inspection = RecordedLines.inspection([RecordedLines.header] + RecordedLines.lines(4000))

    @Test func `rows have the columns of their records`() throws {
        let rows = try InspectionAnswer(inspection.rows(nil, .from(1), count: 4))
        #expect(rows.fields["run"] as? String == "run")
        #expect(rows.number("first") == 0)
        #expect(rows.number("end") == 4001)
        #expect(rows.number("start") == 1)
        #expect(rows.numbers("at") == [1, 2, 3, 4])
        #expect(rows.numbers("number") == [1, 2, 3, 4])
        #expect(rows.numbers("session") == [2, 1, 2, 1])
        #expect(rows.numbers("direction") == [1, 2, 1, 2])
        #expect(rows.texts("name") == ["iq", "iq", "message", "message"])
        #expect(rows.texts("type") == ["get", "result", "chat", "error"])
        #expect(rows.texts("text") == ["ping", "ok: ping", "Hello 3", ""])
        #expect(rows.numbers("body") == [0, 0, 1, 0])
        #expect(rows.texts("payload").first == "{urn:xmpp:ping}ping")
        #expect(rows.texts("code") == ["", "", "", "service-unavailable"])
        #expect(rows.numbers("level") == [3, 3, 3, 2])
        #expect((rows.fields["trip"] as? [Any])?.compactMap { $0 as? Int } == [12_000])
        let columns = rows.fields.values.compactMap { ($0 as? [Any])?.count }
        #expect(Set(columns) == [4])
    }

    @Test func `an answer has at most 2,000 rows`() throws {
        #expect(try InspectionAnswer(inspection.rows(nil, .from(0), count: 1 << 40)).numbers("at").count == 2000)
        #expect(try InspectionAnswer(inspection.rows(nil, .from(-3), count: 5)).numbers("at") == [3998, 3999, 4000])
        #expect(try InspectionAnswer(inspection.rows(nil, .from(1 << 50), count: 5)).numbers("at").isEmpty)
        #expect(
            try InspectionAnswer(inspection.rows(nil, .around(2000), count: 3)).numbers("at") == [1999, 2000, 2001]
        )
    }

    @Test func `a filter selects rows, and keeps their positions`() throws {
        let filter = try RecordFilter("message and not type:error")
        var rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: 3))
        while let scanned = rows.number("scanned"), scanned < 4001 {
            rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: 3))
        }
        #expect(rows.number("end") == 1000)
        #expect(rows.number("total") == 4001)
        #expect(rows.numbers("at") == [3, 7, 11])
        // The record that was selected is found again, or the next one.
        let around = try InspectionAnswer(inspection.rows(filter, .around(2001), count: 2))
        #expect(around.numbers("at") == [1999, 2003])
    }

    @Test func `the nearest match is found in both directions`() throws {
        let filter = try RecordFilter("level:warn")
        var found = try InspectionAnswer(inspection.seek(filter, from: 2000, backwards: false))
        while found.fields["done"] as? Bool == false {
            found = try InspectionAnswer(inspection.seek(filter, from: 2000, backwards: false))
        }
        #expect(found.number("at") == 2004)
        #expect(try InspectionAnswer(inspection.seek(filter, from: 2000, backwards: true)).number("at") == 1996)
        #expect(try InspectionAnswer(inspection.seek(filter, from: 4000, backwards: false)).number("at") == -1)
    }

    @Test func `a record is shown with its request or answer`() throws {
        inspection.surveyAll { true }
        let answer = try InspectionAnswer(inspection.record(at: 2))
        #expect(answer.number("request") == 1)
        #expect((answer.fields["record"] as? [String: Any])?["sequence"] as? Int == 2)
        #expect(try InspectionAnswer(inspection.record(at: 1)).number("answer") == 2)
        #expect(try InspectionAnswer(inspection.record(at: 1 << 50)).fields["record"] == nil)
    }

    @Test func `sessions, errors, figures and conversations are counted`() throws {
        inspection.surveyAll { true }
        let sessions = try InspectionAnswer(inspection.sessions()).objects("sessions")
        #expect(sessions.map { $0["session"] as? Int } == [2, 1])
        #expect(sessions.first?["records"] as? Int == 2000)
        #expect(sessions.first?["jid"] as? String == "romeo2@example.net/orchard")
        #expect((sessions.first?["line"] as? [Int])?.reduce(0, +) == 2000)
        let findings = try InspectionAnswer(inspection.findings()).objects("findings")
        #expect(findings.count == 1)
        #expect(findings.first?["code"] as? String == "service-unavailable")
        #expect(findings.first?["count"] as? Int == 1000)
        let trips = try InspectionAnswer(inspection.measures()).objects("trips")
        #expect(trips.first?["payload"] as? String == "{urn:xmpp:ping}ping")
        #expect(trips.first?["requests"] as? Int == 1000)
        #expect(trips.first?["answers"] as? Int == 1000)
        let talks = try InspectionAnswer(inspection.conversations()).objects("conversations")
        #expect(talks.count == 1)
        #expect(talks.first?["first"] as? String == "juliet@example.org")
        #expect(talks.first?["messages"] as? Int == 1000)
        let messages = try InspectionAnswer(inspection.messages(of: 0, before: nil, count: 10))
        #expect(messages.objects("messages").count == 10)
        #expect(messages.number("from") == 990)
        #expect(try InspectionAnswer(inspection.messages(of: 7, before: -5, count: -1)).objects("messages").isEmpty)
    }

    @Test func `the filter of a finding selects the records that were counted`() throws {
        inspection.surveyAll { true }
        let finding = try #require(try InspectionAnswer(inspection.findings()).objects("findings").first)
        let filter = try RecordFilter(try #require(finding["filter"] as? String))
        let rows = try searched(filter, count: 2000)
        #expect(rows.numbers("at").count == finding["count"] as? Int)
        #expect(rows.numbers("at").first == finding["first"] as? Int)
        #expect(rows.numbers("at").last == finding["last"] as? Int)
        #expect(Set(rows.texts("code")) == ["service-unavailable"])
    }

    @Test func `the filter of an error selects the records that were counted, also without XML`() throws {
        func stanza(_ payload: String, _ condition: String) -> String {
            #""kind":"stanza","direction":"recv","length":9,"name":"iq","type":"error","payload":"\#(payload)","condition":"\#(condition)""#
        }
        let fields = [
            stanza("{jabber:iq:version}query", "item-not-found"),
            stanza("{urn:example:a#b/c?d=1}x-1_.y", "item-not-found"),
            stanza("{jabber:iq:version}query", "item-not-found"),
            stanza("{jabber:iq:version}query", "forbidden"),
            stanza("{urn:x (1), \\\"y\\\"}query", "gone"),
            #""kind":"element","direction":"recv","length":9,"name":"failure","condition":"not-authorized""#,
            #""kind":"session","code":"login-failed","condition":"not-authorized""#,
        ]
        let lines = fields.enumerated().map { number, fields in
            let level = number < 5 ? "info" : "warn"
            return
                #"{"sequence":\#(number + 1),"time":"2026-11-29T10:00:00Z","monotonic":1.5,"level":"\#(level)","session":1,\#(fields)}"#
        }
        let inspection = RecordedLines.inspection(lines)
        inspection.surveyAll { true }
        let findings = try InspectionAnswer(inspection.findings()).objects("findings")
        #expect(findings.count == 6)
        for finding in findings {
            let text = try #require(finding["filter"] as? String)
            let filter = try RecordFilter(text)
            let rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: 10))
            #expect(rows.numbers("at").count == finding["count"] as? Int, "\(text)")
            #expect(rows.numbers("at").first == finding["first"] as? Int, "\(text)")
        }
    }

    @Test func `failed logins are grouped by their cause, with their sessions and a filter for each`() throws {
        let causes = [
            "wrong-password", "wrong-password", "unknown-user", "wrong-password", "wrong-password", "wrong-password",
        ]
        let lines = (causes + causes).enumerated().map { number, cause in
            #"{"sequence":\#(number + 1),"time":"2026-11-29T10:00:00Z","monotonic":1.5,"level":"error","kind":"note","session":\#(number % 8 + 1),"code":"login-failed","condition":"not-authorized","details":{"cause":"\#(cause)"}}"#
        }
        let inspection = RecordedLines.inspection(lines)
        inspection.surveyAll { true }
        let findings = try InspectionAnswer(inspection.findings()).objects("findings")
        #expect(findings.map { $0["cause"] as? String } == ["wrong-password", "unknown-user"])
        #expect(findings.map { $0["count"] as? Int } == [10, 2])
        #expect(findings.map { $0["sessions"] as? Int } == [8, 2])
        #expect(findings.map { $0["listed"] as? [Int] } == [[1, 2, 4, 5, 6], [3, 1]])
        for (finding, cause) in zip(findings, ["wrong-password", "unknown-user"]) {
            let filter = try RecordFilter(try #require(finding["filter"] as? String))
            let rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: 20))
            let all = (causes + causes).indices.filter { (causes + causes)[$0] == cause }
            #expect(rows.numbers("at") == all)
        }
    }

    @Test func `the example of a message that a rule dropped is its text`() throws {
        let xml = "<message to='a@b.example'><body>the contract</body></message>"
        let line =
            #"{"sequence":1,"time":"2026-11-29T10:00:00Z","monotonic":1.5,"level":"info","kind":"stanza","session":1,"direction":"send","length":60,"name":"message","action":"dropped","rule":"x:4","summary":"message of 60 bytes","xml":"\#(xml)"}"#
        let inspection = RecordedLines.inspection([line])
        inspection.surveyAll { true }
        let finding = try #require(try InspectionAnswer(inspection.findings()).objects("findings").first)
        #expect(finding["example"] as? String == "the contract" && finding["code"] as? String == "dropped")
    }

    @Test func `errors are counted without warnings and actions, and edited acknowledgements are not listed`()
        throws
    {
        let fields = [
            #""level":"info","kind":"stanza","direction":"recv","name":"iq","type":"error","condition":"forbidden","xml":"<iq/>""#,
            #""level":"error","kind":"note","code":"login-failed""#,
            #""level":"warn","kind":"note","code":"slow-answer""#,
            #""level":"info","kind":"stanza","direction":"send","name":"message","action":"edited","rule":"x:4","xml":"<message/>""#,
            #""level":"info","kind":"element","direction":"send","name":"a","action":"edited","xml":"<a h='1'/>","edited":"<a h='2'/>""#,
            #""level":"info","kind":"element","direction":"recv","name":"features","action":"edited","xml":"<features/>""#,
        ]
        let lines = fields.enumerated().map { number, fields in
            #"{"sequence":\#(number + 1),"time":"2026-11-29T10:00:00Z","monotonic":1.5,"session":1,"length":9,\#(fields)}"#
        }
        let inspection = RecordedLines.inspection(lines)
        inspection.surveyAll { true }
        #expect(try InspectionAnswer(inspection.sessions()).number("errors") == 2)
        let findings = try InspectionAnswer(inspection.findings()).objects("findings")
        #expect(findings.map { $0["code"] as? String } == ["forbidden", "login-failed", "slow-answer", "edited"])
        #expect(findings.map { $0["level"] as? Int } == [1, 1, 2, 3])
        #expect(findings.map { $0["count"] as? Int } == [1, 1, 1, 2])
        let filter = try RecordFilter(try #require(findings.last?["filter"] as? String))
        #expect(try InspectionAnswer(inspection.rows(filter, .from(0), count: 10)).numbers("at") == [3, 5])
    }

    /// Returns rows of a filter after the whole table was searched.
    private func searched(_ filter: RecordFilter, count: Int) throws -> InspectionAnswer {
        while true {
            let rows = try InspectionAnswer(inspection.rows(filter, .from(0), count: count))
            if rows.number("scanned") == inspection.table.range.upperBound { return rows }
        }
    }

    @Test func `each list of a filter has a number, which differs from that of an older list`() throws {
        let filter = try RecordFilter("message")
        let whole = try InspectionAnswer(inspection.rows(nil, .from(0), count: 1))
        #expect(whole.number("list") == 0)
        let first = try searched(filter, count: 1)
        let number = try #require(first.number("list"))
        #expect(try InspectionAnswer(inspection.rows(filter, .from(5), count: 1)).number("list") == number)
        let end = try #require(first.number("end"))
        #expect(!inspection.hasMore(than: end, filter: filter, list: number))
        // Results of filters that were not used for some time are dropped.
        for session in 1...8 { _ = inspection.rows(try RecordFilter("session:\(session)"), .from(0), count: 1) }
        let again = try searched(filter, count: 1)
        #expect(again.number("list") != number)
        #expect(!inspection.hasMore(than: end, filter: filter))
        // A page that knows the old list gets an answer at once.
        #expect(inspection.hasMore(than: end, filter: filter, list: number))
    }

    @Test func `records that were dropped are reported, also those of a filter`() throws {
        let live = RecordedLines.inspection(RecordedLines.lines(10_000), .init(records: 2000, bytes: .max))
        let whole = try InspectionAnswer(live.rows(nil, .from(0), count: 1))
        let first = try #require(whole.number("first"))
        #expect(first >= 6900)
        #expect(whole.numbers("at") == [first])
        let filter = try RecordFilter("level:warn")
        let rows = try InspectionAnswer(live.rows(filter, .from(0), count: 1))
        #expect(rows.number("begin") == first)
        live.surveyAll { true }
        #expect(try InspectionAnswer(live.sessions()).number("missed") == first)
    }

    @Test func `control characters and markup stay text in an answer`() throws {
        let line = RecordedLines.line(3).replacing("Hello 3", with: #"</script>\u0001\u202e&lt;b>"#)
        let hostile = RecordedLines.inspection([line])
        let rows = try InspectionAnswer(hostile.rows(nil, .from(0), count: 1))
        #expect(rows.texts("text").count == 1)
    }
}
