import Foundation
import TapRecord
import TapRules
import Testing

@testable import TapCapture

/// The survey of records uses a limited amount of memory, and keeps the newest entries.
struct SurveyLimitsTests {
    private func record(_ number: Int, session: Int = 1, _ fields: String) throws -> RecordLine {
        let text =
            #"{"sequence":\#(number),"time":"2026-11-29T10:00:00.000000000Z","monotonic":\#(number).5,"level":"info","session":\#(session),\#(fields)}"#
        return try RecordLine(json: Array(text.utf8).span.bytes)
    }

    private func objects(_ write: (inout LineBuffer) -> Void) throws -> [[String: Any]] {
        let text = LineBuffer.text(write)
        return try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[String: Any]] ?? []
    }

    private func message(_ number: Int, from: String, session: Int = 1, body: String = "hello") throws -> RecordLine {
        let xml = "<message from='\(from)' id='m\(number)'><body>\(body)</body></message>"
        return try record(
            number,
            session: session,
            #""kind":"stanza","direction":"recv","jid":"romeo@example.net/o","length":9,"name":"message","from":"\#(from)","id":"m\#(number)","payload":"{jabber:client}body","xml":"\#(xml)""#
        )
    }

    // MARK: Sessions

    @Test func `of too many sessions, the newest ones and those that are open are listed`() throws {
        var list = SessionList(maximumCount: 80)
        // One session stays open; the others end.
        for number in 1...200 {
            list.add(try message(number, from: "a@example.net", session: number), at: 3 * number, run: 1)
            list.add(
                try record(number, session: number, #""kind":"session","code":"session-ended""#),
                at: 3 * number + 1,
                run: 1
            )
            list.add(try message(number, from: "a@example.net", session: 1000), at: 3 * number + 2, run: 1)
        }
        let shown = try objects { list.append(to: &$0) }.compactMap { $0["session"] as? Int }
        #expect(shown.count <= 80 && shown.count >= 70)
        #expect(shown.contains(1000))
        #expect(shown.contains(200) && shown.contains(150) && !shown.contains(1))
        #expect(list.omitted == 201 - shown.count)
        // A session that continues is listed again.
        list.add(try message(9, from: "a@example.net", session: 1), at: 1000, run: 1)
        let again = try objects { list.append(to: &$0) }.compactMap { $0["session"] as? Int }
        #expect(again.contains(1))
        #expect(list.omitted == 201 - again.count)
    }

    @Test func `texts of sessions are cut`() throws {
        var list = SessionList()
        let long = String(repeating: "ü", count: 5000)
        list.add(
            try record(
                1,
                #""kind":"session","code":"session-began","remote":"\#(long)","jid":"\#(long)","details":{"upstream":"\#(long)","source":"\#(long)"}"#
            ),
            at: 1,
            run: 1
        )
        list.add(
            try record(
                2,
                #""kind":"session","code":"session-ended","details":{"close_reason":"\#(long)","mechanism":"\#(long)"}"#
            ),
            at: 2,
            run: 1
        )
        let session = try #require(try objects { list.append(to: &$0) }.first)
        let texts = session.values.compactMap { $0 as? String }.filter { $0.contains("ü") }
        #expect(texts.count == 6)
        #expect(texts.allSatisfy { $0 == String(repeating: "ü", count: 128) + "…" })
    }

    @Test func `a session has the name that its client gives, the most exact one`() throws {
        func sent(_ name: String, _ fields: String, _ inner: String) -> String {
            #""kind":"stanza","direction":"send","length":9,"name":"\#(name)"\#(fields),"xml":"<\#(name)>\#(inner)</\#(name)>""#
        }
        let caps = "<c xmlns='http://jabber.org/protocol/caps' node='https://gajim.example'/>"
        let identities =
            "<query xmlns='http://jabber.org/protocol/disco#info'><identity category='pubsub' name='x'/><identity category='client' name='Gajim &amp; more'/></query>"
        let version = "<query xmlns='jabber:iq:version'><name>Gajim</name><version>2.0</version><os>x</os></query>"
        let result = #","type":"result","payload""#
        let lines = [
            sent("presence", "", caps),
            sent("iq", #"\#(result):"{http://jabber.org/protocol/disco#info}query""#, identities),
            sent("iq", #"\#(result):"{jabber:iq:version}query""#, version),
            sent("presence", "", caps),
            // What its server answers is not about the client.
            sent("iq", #"\#(result):"{jabber:iq:version}query""#, version.replacing("Gajim", with: "Server"))
                .replacing(#""send""#, with: #""recv""#),
        ]
        var list = SessionList()
        let names = try lines.enumerated().map { number, fields in
            list.add(try record(number, fields), at: number, run: 1)
            return list.all.first?.software
        }
        #expect(
            names == ["https://gajim.example", "Gajim & more", "Gajim 2.0", "Gajim 2.0", "Gajim 2.0"]
        )
    }

    @Test func `a server has the name that it gives for its own domain, the most exact one`() throws {
        func received(_ name: String, _ kind: String, _ fields: String, _ inner: String) -> String {
            #""kind":"\#(kind)","direction":"recv","length":9,"jid":"juliet@example.net/a","name":"\#(name)"\#(fields),"xml":"<\#(name)>\#(inner)</\#(name)>""#
        }
        let caps = "<c xmlns='http://jabber.org/protocol/caps' node='http://prosody.im'/>"
        let version = "<query xmlns='jabber:iq:version'><name>Prosody</name><version>0.12.4</version></query>"
        let payload = #","payload":"{jabber:iq:version}query""#
        let lines = [
            received("iq", "stanza", #","type":"result","from":"juliet@example.net/b"\#(payload)"#, version),
            received("features", "element", "", caps),
            received("iq", "stanza", #","type":"result","from":"rooms.example.net"\#(payload)"#, version),
            received("iq", "stanza", #","type":"result","from":"example.net"\#(payload)"#, version),
        ]
        var list = SessionList()
        let names = try lines.enumerated().map { number, fields in
            list.add(try record(number, fields), at: number, run: 1)
            return list.servers(limit: 1).map { "\($0.domain) \($0.software)" }
        }
        #expect(
            names == [
                ["example.net "], ["example.net http://prosody.im"], ["example.net http://prosody.im"],
                ["example.net Prosody 0.12.4"],
            ]
        )
    }

    @Test func `borders of bytes are known of complete captures and packets, not of logs and frames`() throws {
        func borders(_ details: String, isComplete: Bool = true) throws -> InspectedSession.Borders? {
            var list = SessionList()
            let began = #""kind":"session","code":"session-began","details":{\#(details)}"#
            list.add(try record(1, began), at: 1, run: 1, isComplete: isComplete)
            return list.all.first?.borders
        }
        #expect(try borders(#""upstream":"a""#) == .reads)
        #expect(try borders(#""upstream":"a""#, isComplete: false) == .partial)
        #expect(try borders(#""source":"packets""#) == .segments)
        #expect(try borders(#""source":"client-log""#) == .missing)
        #expect(try borders(#""transport":"websocket""#) == .missing)
    }

    @Test func `a resumed session has the number that it has in the table`() throws {
        let header = RecordedLines.header
        let ready = [#"{"resumes":1}"#, #"{"resumes":9223372036854775807}"#, #"{"resumes":"x"}"#, "{}"].enumerated()
            .map {
                #"{"sequence":1,"time":"2026-11-29T10:00:00.000000000Z","monotonic":1.5,"level":"info","kind":"session","part":"session","session":\#(2 + $0),"code":"session-ready","details":\#($1)}"#
            }
        let table = RecordTable()
        for header in [header, header.replacing(#""run":"a""#, with: #""run":"b""#)] {
            table.begin(try RecordHeader(json: Array(header.utf8).span.bytes))
            for line in [header] + ready {
                table.append { output in
                    output.append(bytes: Array(line.utf8))
                    output.endLine()
                }
            }
        }
        let inspection = Inspection(RecordedLines.subject, run: "run", table)
        inspection.surveyAll { true }
        let sessions = try InspectionAnswer(inspection.sessions()).objects("sessions")
        #expect(sessions.map { $0["session"] as? Int } == [2, 3, 4, 5, 20_000_002, 20_000_003, 20_000_004, 20_000_005])
        let resumed = sessions.compactMap { ($0["resumes"] as? NSNumber)?.uint64Value }
        #expect(resumed == [1, 9_223_372_036_854_775_807, 0, 0, 20_000_001, 9_223_372_036_874_775_807, 0, 0])
    }

    // MARK: Findings

    @Test func `of too many causes, the newest ones are listed, and the records of the others are counted`() throws {
        var findings = Findings(maximumCount: 80)
        for number in 1...500 {
            let line = try record(number, #""kind":"note","code":"code-\#(number)""#)
            var warning = line.record
            warning.level = .warn
            findings.add(warning, line.content.span, at: number)
        }
        let codes = try objects { findings.append(to: &$0) }.compactMap { $0["code"] as? String }
        #expect(
            codes.count <= 80 && codes.contains("code-500") && codes.contains("code-450") && !codes.contains("code-1")
        )
        #expect(findings.errors == 0)
        #expect(findings.others == UInt64(500 - codes.count))
    }

    @Test func `texts of findings are cut, and their filters still select the records`() throws {
        var findings = Findings()
        let long = String(repeating: "y", count: 3000)
        let line = try record(
            1,
            #""kind":"stanza","direction":"recv","length":9,"name":"iq","type":"error","condition":"\#(long)","summary":"\#(long)","payload":"{urn:x}\#(long)","xml":"<iq type='error'><a xmlns='urn:x'/><error><\#(long)/></error></iq>""#
        )
        findings.add(line.record, line.content.span, at: 1)
        let finding = try #require(try objects { findings.append(to: &$0) }.first)
        for name in ["code", "subject", "example"] {
            #expect((finding[name] as? String)?.utf8.count == 259, "\(name)")
        }
        let text = try #require(finding["filter"] as? String)
        #expect(text.utf8.count < 300)
        #expect(try RecordFilter(text).matches(line.record, content: line.content.span))
    }

    // MARK: Conversations

    @Test func `of too many conversations, the newest ones are listed, with the numbers that they had`() throws {
        var talks = Conversations(maximumCount: 80)
        for number in 1...300 {
            let line = try message(number, from: "peer\(number)@example.org")
            talks.add(line.record, line.content.span, at: number)
        }
        let shown = try objects { talks.append(to: &$0) }
        #expect(shown.count <= 80 && shown.count >= 70)
        #expect(talks.omitted == 300 - shown.count)
        let last = try #require(shown.first { $0["first"] as? String == "peer300@example.org" })
        #expect(last["conversation"] as? Int == 299)
        #expect(talks.positions(of: 299).positions == [300])
        #expect(talks.positions(of: 0).positions.isEmpty)
        #expect(!shown.contains { $0["first"] as? String == "peer1@example.org" })
    }

    @Test func `copies of new messages are recognised, however many there were before`() throws {
        var talks = Conversations()
        for session in 1...2 {
            let line = try message(7, from: "peer@example.org", session: session)
            talks.add(line.record, line.content.span, at: session)
        }
        #expect(talks.positions(of: 0).positions == [1])
    }

    @Test func `a message that a client sends belongs to its account, whatever sender it names`() throws {
        func sent(_ number: Int, by jid: String) throws -> RecordLine {
            try record(
                number,
                #""kind":"stanza","direction":"send","jid":"\#(jid)","length":9,"name":"message","from":"juliet@example.org/b","to":"romeo@example.net","payload":"{jabber:client}body","xml":"<message><body>hello</body></message>""#
            )
        }
        var talks = Conversations()
        // The second one is of a component, which sends for several addresses.
        for (position, jid) in ["mallory@example.org/x", "example.org"].enumerated() {
            let line = try sent(position, by: jid)
            talks.add(line.record, line.content.span, at: position)
        }
        let shown = try objects { talks.append(to: &$0) }
        let pairs = shown.map { [$0["first"], $0["second"]].compactMap { $0 as? String } }
        #expect(
            Set(pairs) == [["mallory@example.org", "romeo@example.net"], ["juliet@example.org", "romeo@example.net"]]
        )
        #expect(talks.positions(of: 0).positions == [0])
    }

    @Test func `addresses of conversations are cut`() throws {
        var talks = Conversations()
        let line = try message(1, from: String(repeating: "z", count: 3000) + "@example.org")
        talks.add(line.record, line.content.span, at: 1)
        let talk = try #require(try objects { talks.append(to: &$0) }.first)
        #expect((talk["second"] as? String)?.utf8.count == 259)
    }

    @Test func `records that the table no longer has are forgotten, and indices of messages do not change`() throws {
        var talks = Conversations()
        for number in 1...3000 {
            let peer = number <= 10 ? "early" : "late"
            let line = try message(number, from: "\(peer)@example.org")
            talks.add(line.record, line.content.span, at: number)
        }
        talks.forget(before: 2000, end: 3001)
        let shown = try objects { talks.append(to: &$0) }
        #expect(shown.map { $0["first"] as? String } == ["late@example.org"])
        #expect(shown.first?["items"] as? Int == 2990)
        let (removed, positions) = talks.positions(of: 1)
        #expect(removed == 1989 && positions.first == 2000 && positions.count == 1001)
    }

    @Test func `a chat of more than 8 MiB shows its newest messages, and the others on request`() throws {
        let body = String(repeating: "x", count: 200_000)
        let lines = (1...100).map { number in
            RecordedLines.line(3).replacing("m3'", with: "m\(number)'").replacing(
                #""id":"m3""#,
                with: #""id":"m\#(number)""#
            )
            .replacing("Hello 3", with: "\(number) \(body)")
        }
        let inspection = RecordedLines.inspection(lines)
        inspection.surveyAll { true }
        func numbers(before: Int?) throws -> (from: Int?, at: [Int?]) {
            let answer = try InspectionAnswer(inspection.messages(of: 0, before: before, count: 200))
            #expect(answer.number("items") == 100)
            return (answer.number("from"), answer.objects("messages").map { $0["at"] as? Int })
        }
        let newest = try numbers(before: nil)
        #expect(newest.at.last == 99 && newest.at.count == 41)
        #expect(newest.from == 59)
        let earlier = try numbers(before: newest.from)
        #expect(earlier.at.last == 58 && earlier.from == 18)
        #expect(try numbers(before: earlier.from).from == 0)
    }

    @Test func `a chat of a full table has a message for each of its indices`() throws {
        let table = RecordTable(RecordTable.Limits(records: .max, bytes: 800_000))
        let inspection = Inspection(RecordedLines.subject, run: "run", table)
        // The table removes lines some time before the conversations do. A quarter of the lines are messages.
        for end in stride(from: 600, through: 7200, by: 600) {
            for number in end - 599...end {
                table.append { output in
                    output.append(bytes: Array(RecordedLines.line(number).utf8))
                    output.endLine()
                }
            }
            inspection.surveyAll { true }
            let newest = try InspectionAnswer(inspection.messages(of: 0, before: nil, count: 500))
            #expect(newest.number("items") == end / 4)
            let kept = (1...end / 4).map { 4 * $0 - 2 }.filter { $0 >= table.range.lowerBound }
            #expect(newest.number("first") == end / 4 - kept.count)
            let from = try #require(newest.number("from"))
            let shown = newest.objects("messages").compactMap { $0["at"] as? Int }
            let areThoseOfTheIndices = shown == kept.suffix(end / 4 - from)
            #expect(areThoseOfTheIndices && !shown.isEmpty)
            let earlier = try InspectionAnswer(inspection.messages(of: 0, before: from, count: 500))
            #expect(earlier.number("from") == newest.number("first"))
            #expect(earlier.objects("messages").count == kept.count - shown.count)
        }
        #expect(table.range.lowerBound > 3000)
    }

    // MARK: Figures

    @Test func `of too many names, the less important half is removed and counted`() {
        var tally = Tally<UInt64>(limit: 100) { $0 }
        for number in 1...1000 {
            tally.change("name \(number)", from: 0) { $0 += number == 5 ? 1_000_000 : UInt64(number) }
        }
        let (shown, leftOff) = tally.first(10)
        #expect(shown.map(\.key).prefix(2) == ["name 5", "name 1000"])
        #expect(leftOff == 990)
        tally.change(String(repeating: "n", count: 10_000), from: 0) { $0 += 2_000_000 }
        #expect(tally.first(1).shown.first?.key.utf8.count == 259)
    }

    @Test func `the oldest values are forgotten, when there are too many and when their records are gone`() {
        var values = RecentValues<Int, Int>(limit: 100)
        for number in 0..<1000 { values.store(-number, for: number, at: number) }
        #expect(values.count <= 100)
        #expect((950..<1000).allSatisfy { values[$0] == -$0 })
        #expect(values[800] == nil)
        #expect(values.removeValue(for: 999) == -999)
        #expect(values[999] == nil)
        values.forget(before: 990, end: 1000)
        #expect(values[995] == -995)
        values.forget(before: 1001, end: 1001)
        values.forget(before: 1002, end: 1002)
        #expect(values.count == 0)
    }

    @Test func `the survey of a live run forgets records that are gone`() throws {
        let table = RecordTable(RecordTable.Limits(records: 2000, bytes: .max))
        var survey = RecordSurvey()
        for part in 0..<10 {
            for number in (part * 2000 + 1)...((part + 1) * 2000) {
                // Requests without an answer, and one with an answer.
                table.append { output in
                    output.append(bytes: Array(RecordedLines.line(number % 4 == 0 ? number - 1 : number).utf8))
                    output.endLine()
                }
            }
            survey.extend(in: table, until: .now + .seconds(60))
        }
        #expect(survey.missed == 0)
        #expect(survey.end == 20_000)
        #expect(survey.request(of: 19_997) == 19_996)
        #expect(survey.answer(to: 19_996) == 19_997)
        #expect(survey.request(of: 1) == nil)
        let (removed, positions) = survey.conversations.positions(of: 0)
        #expect(removed + positions.count == 5000)
        #expect(positions.count < 2000)
    }
}
