import Foundation
import TapCapture
import TapRecord
import TapStore
import TapTestKit
import Testing

@testable import xmpptap

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// The records that a page shows of an audit store.
struct StoreRecordsTests {
    private static let beginning: Int64 = 1_795_000_000_000_000_000

    private static func time(_ seconds: Int64) -> Timestamp {
        Timestamp(nanoseconds: beginning + seconds * 1_000_000_000)
    }

    private static func row(
        _ sequence: UInt64,
        _ direction: Direction,
        _ kind: AuditRow.Kind = .message,
        run: String = "run 1",
        at seconds: Int64
    ) -> AuditRow {
        var row = AuditRow(
            run: run,
            sequence: sequence,
            session: 1,
            time: time(seconds),
            account: "juliet@example.org",
            direction: direction,
            kind: kind,
            size: 100
        )
        (row.resource, row.id) = ("balcony", "id\(sequence)")
        return row
    }

    private typealias Object = [String: Any]

    private static func object(_ bytes: [UInt8]) throws -> Object {
        try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? Object)
    }

    /// Stores entries, and returns the inspection of their records.
    private static func inspect(_ entries: [AuditEntry]) throws -> Inspection {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "audit.sqlite")
        let store = try SQLiteStore.create(path)
        for entry in entries { try store.add(entry) }
        try store.commit()
        var records = StoreRecords(.file(path))
        let subject = Inspection.Subject(title: "audit.sqlite", tool: "test", isLive: false, redaction: "as recorded")
        let inspection = Inspection(subject, run: "page", records.table)
        records.load(inspection) { true }
        inspection.surveyAll { true }
        return inspection
    }

    private static func records(_ inspection: Inspection) throws -> [Object] {
        try inspection.table.range.compactMap { try object(inspection.record(at: $0))["record"] as? Object }
    }

    @Test("Any address, id and text becomes the XML of one stanza, in which nothing else begins")
    func writesXML() throws {
        let texts = ["O'Brien", "x' to='y", "a\"b", "<iq/>", "&amp;", "]]>", "é 合同", "\u{202E}"]
        var entries: [AuditEntry] = []
        for (number, text) in texts.enumerated() {
            var row = Self.row(UInt64(number + 1), .recv, at: Int64(number))
            (row.peer, row.peerResource, row.type) = ("room@example.org", text, "groupchat")
            (row.id, row.body, row.subject, row.thread) = (text, text, text, text)
            entries.append(.stanza(row))
        }
        var iq = Self.row(100, .recv, .iq, at: 100)
        iq.payload = "{it's <here>}x y='z'"
        entries.append(.stanza(iq))
        let inspection = try Self.inspect(entries)
        let records = try Self.records(inspection)
        for (record, text) in zip(records, texts) {
            let document = try XMLDocument(xmlString: record["xml"] as? String ?? "")
            let message = try #require(document.rootElement())
            #expect(message.attributes?.first { $0.name == "id" }?.stringValue == text)
            #expect(message.attributes?.first { $0.name == "from" }?.stringValue == "room@example.org/\(text)")
            #expect(message.attributes?.contains { $0.name == "to" } == false && message.attributes?.count == 3)
            #expect(message.elements(forName: "body").first?.stringValue == text)
            #expect(message.childCount == 3)
        }
        #expect(records.last?["xml"] as? String == "<iq xmlns='jabber:client' id='id100'></iq>")
        let conversations = try Self.object(inspection.conversations())["conversations"] as? [Object]
        #expect(conversations?.first?["messages"] as? Int == texts.count)
        #expect(conversations?.first?["first"] as? String == "room@example.org")
    }

    @Test("Records are in the order in which they were seen, whatever time their senders claim")
    func ordersByArrival() throws {
        var session = AuditSession(run: "run 1", number: 1)
        (session.account, session.began, session.ended) = ("juliet@example.org", Self.time(0), Self.time(100))
        session.closeReason = "closed"
        var delayed = Self.row(2, .recv, at: 20)
        (delayed.time, delayed.body) = (Timestamp(nanoseconds: 1_000_000_000_000_000_000), "old")
        var early = Self.row(4, .recv, at: 40)
        (early.time, early.body) = (Self.time(25), "a little late")
        let rows = [Self.row(1, .send, at: 10), delayed, Self.row(3, .send, at: 30), early, Self.row(5, .send, at: 50)]
        let inspection = try Self.inspect(rows.map { .stanza($0) } + [.session(session)])
        let records = try Self.records(inspection)
        #expect(records.compactMap { $0["sequence"] as? Int } == [0, 1, 2, 3, 4, 5, 0])
        #expect(records.first?["code"] as? String == "session-began")
        #expect(records.last?["code"] as? String == "session-ended")
        let details = records[2]["details"] as? Object
        #expect(details?["time_of_stanza"] as? String == "2001-09-09T01:46:40.000000000Z")
        let sessions = try Self.object(inspection.sessions())["sessions"] as? [Object]
        #expect(sessions?.count == 1 && sessions?.first?["state"] as? String == "ended")
        #expect(sessions?.first?["began"] as? Int64 == Self.beginning / 1000)
        #expect(sessions?.first?["duration"] as? Int == 100_000_000)
    }

    @Test("An answer belongs to its request, a failed login has its cause, and runs are kept apart")
    func joinsAnswers() throws {
        var request = Self.row(1, .send, .iq, at: 1)
        (request.type, request.payload, request.peer) = ("get", "{urn:xmpp:ping}ping", "example.org")
        var answer = Self.row(2, .recv, .iq, at: 2)
        (answer.type, answer.id, answer.peer, answer.roundTrip) = ("result", request.id, "example.org", 1_000_000_000)
        var failed = AuditSession(run: "run 1", number: 2)
        (failed.account, failed.began, failed.ended) = ("romeo", Self.time(3), Self.time(4))
        (failed.cause, failed.finding) = ("wrong-password", "the password is wrong")
        let other = Self.row(1, .send, run: "run 2", at: 5)
        let inspection = try Self.inspect([.stanza(request), .stanza(answer), .session(failed), .stanza(other)])
        let trips = try Self.object(inspection.measures())["trips"] as? [Object]
        #expect(trips?.count == 1 && trips?.first?["answers"] as? Int == 1 && trips?.first?["requests"] as? Int == 1)
        let sessions = try #require(try Self.object(inspection.sessions())["sessions"] as? [Object])
        #expect(sessions.compactMap { $0["session"] as? Int }.sorted() == [1, 2, 20_000_001])
        let failure = sessions.first { $0["session"] as? Int == 2 }?["failure"] as? Object
        #expect(failure?["cause"] as? String == "wrong-password")
        #expect(failure?["finding"] as? String == "the password is wrong")
        #expect(try Self.object(inspection.state(build: ""))["redaction"] as? String == "as recorded")
    }
}
