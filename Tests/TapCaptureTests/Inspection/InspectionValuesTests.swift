import TapDiagnosis
import TapRecord
import TapRules
import Testing

@testable import TapCapture

/// The answers as values are those that a page gets.
struct InspectionValuesTests {
    private let inspection = RecordedLines.inspection(
        [RecordedLines.header] + RecordedLines.lines(2000) + ["{ damaged"]
    )

    @Test func `rows have the values of the page's columns`() throws {
        for place in [Inspection.Place.from(0), .from(1990), .from(-7), .around(2001)] {
            let values = inspection.list(nil, place, count: 12, patience: .zero)
            let page = try InspectionAnswer(inspection.rows(nil, place, count: 12))
            #expect(values.range == 0..<2002 && values.whole == values.range && values.list == 0)
            #expect(page.number("start") == values.start)
            #expect(page.numbers("at") == values.rows.map(\.position))
            #expect(page.numbers("number") == values.rows.map { Int($0.number) })
            #expect(page.numbers("time") == values.rows.map { Int(($0.time?.nanoseconds ?? 0) / 1000) })
            #expect(page.numbers("session") == values.rows.map { Int($0.session) })
            #expect(page.numbers("direction") == values.rows.map { $0.direction.map { $0 == .send ? 1 : 2 } ?? 0 })
            #expect(page.numbers("leg") == values.rows.map { $0.leg.map { $0 == .client ? 1 : 2 } ?? 0 })
            #expect(page.texts("kind") == values.rows.map(\.kind))
            #expect(page.texts("name") == values.rows.map(\.name))
            #expect(page.texts("type") == values.rows.map(\.type))
            #expect(page.texts("from") == values.rows.map(\.from))
            #expect(page.texts("to") == values.rows.map(\.to))
            #expect(page.texts("payload") == values.rows.map(\.payload))
            #expect(page.texts("text") == values.rows.map(\.text))
            #expect(page.numbers("body") == values.rows.map { $0.isBody ? 1 : 0 })
            #expect(page.numbers("size") == values.rows.map { Int($0.size) })
            #expect(page.numbers("level") == values.rows.map { Int($0.level.rawValue) })
            #expect(page.texts("action") == values.rows.map(\.action))
            #expect(page.numbers("tap") == values.rows.map { $0.isOwn ? 1 : 0 })
            #expect(page.texts("code") == values.rows.map(\.code))
        }
        #expect(inspection.list(nil, .from(1 << 50), count: 5, patience: .zero).rows.isEmpty)
    }

    @Test func `a filter has one list for the page and for values`() throws {
        let filter = try RecordFilter("message")
        var values = inspection.list(filter, .from(0), count: 3, patience: .zero)
        while values.scanned < values.whole.upperBound {
            values = inspection.list(filter, .from(0), count: 3, patience: .zero)
        }
        let page = try InspectionAnswer(inspection.rows(filter, .from(0), count: 3))
        #expect(page.number("list") == values.list && page.number("end") == values.range.upperBound)
        #expect(page.numbers("at") == values.rows.map(\.position))
        #expect(values.rows.map(\.position) == [3, 4, 7])
        let found = inspection.find(7, in: filter, patience: .zero)
        #expect(found.list == values.list && found.index == 2 && found.isFound && found.isKnown)
        let hidden = inspection.find(5, in: filter, patience: .zero)
        #expect(hidden.index == 2 && !hidden.isFound && hidden.isKnown)
        #expect(inspection.find(5, in: nil, patience: .zero).isFound)
        #expect(!inspection.find(-5, in: nil, patience: .zero).isFound)
        #expect(inspection.find(.max, in: nil, patience: .zero).index == 2002)
        let next = inspection.nearest(filter, from: 4, backwards: false, patience: .zero)
        #expect(next.position == 7 && next.isDone)
        #expect(inspection.nearest(filter, from: 3, backwards: true, patience: .zero).position == nil)
        #expect(inspection.nearest(filter, from: .max, backwards: false, patience: .zero).position == nil)
    }

    @Test func `a record that the search has not passed is not known`() throws {
        let filter = try RecordFilter("message and body:\"Hello\"")
        #expect(!inspection.find(1999, in: filter, patience: .zero).isKnown)
        let next = inspection.nearest(filter, from: 1900, backwards: false, patience: .zero)
        #expect(next.position == nil && !next.isDone)
    }

    @Test func `a whole record has its request or answer`() throws {
        #expect(!inspection.whole(at: 1).isPaired)
        inspection.surveyAll { true }
        let request = inspection.whole(at: 1)
        #expect(request.answer == 2 && request.request == nil && request.isPaired)
        #expect(request.line?.record.sequence == 1)
        #expect(inspection.whole(at: 2).request == 1)
        #expect(inspection.whole(at: 0).line == nil && inspection.whole(at: 0).row?.kind == "header")
        #expect(inspection.whole(at: 2001).row?.kind == "damage")
        #expect(inspection.whole(at: .max).row == nil && inspection.whole(at: -1).row == nil)
    }

    @Test func `sessions have the values of the page's objects`() throws {
        #expect(inspection.sessions(patience: .zero).sessions.isEmpty)
        while inspection.extendSurvey(patience: .milliseconds(1)) {}
        let values = inspection.sessions(patience: .zero)
        let page = try InspectionAnswer(inspection.sessions())
        let objects = page.objects("sessions")
        #expect(values.surveyed == values.end && values.end == 2002 && values.omitted == 0)
        #expect(page.number("errors") == Int(values.errors) && values.errors > 0)
        #expect(objects.map { $0["session"] as? Int } == values.sessions.map { Int($0.number) })
        #expect(objects.map { $0["jid"] as? String } == values.sessions.map(\.jid))
        #expect(objects.map { $0["state"] as? String } == values.sessions.map(\.state.rawValue))
        #expect(objects.map { $0["sent"] as? Int } == values.sessions.map { Int($0.sent.stanzas) })
        #expect(objects.map { $0["slowest"] as? Int } == values.sessions.map { Int($0.slowest / 1000) })
    }

    @Test func `sessions of several runs have names with the number of the run`() {
        #expect(InspectedSession.name(of: 3) == "3")
        #expect(InspectedSession.name(of: 20_000_003) == "2·3")
        #expect(InspectedSession.name(of: 19_999_999) == "19999999")
    }
}
