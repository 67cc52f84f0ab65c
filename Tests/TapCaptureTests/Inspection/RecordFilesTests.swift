import Foundation
import TapRecord
import TapRules
import TapTestKit
import Testing

@testable import TapCapture

/// The records of files, as a page shows them.
struct RecordFilesTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func write(_ lines: [String], to name: String) throws -> String {
        try folder.write(lines.joined(separator: "\n") + "\n", to: name)
    }

    // MARK: Files that are not copied

    @Test func `the lines of a log are indexed without a copy, with an incomplete last line`() throws {
        let lines = [RecordedLines.log] + RecordedLines.lines(3000)
        let path = try folder.write(lines.joined(separator: "\n") + "\n{\"sequence\":", to: "x.log")
        let (files, inspection) = try RecordedLines.opened([path])
        #expect(files.table.range == 0..<3002)
        #expect(files.table.descriptor >= 0)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(-2), count: 10))
        #expect(rows.texts("kind") == ["stanza", "damage"])
        #expect(rows.numbers("number") == [3000, 0])
        let first = try InspectionAnswer(inspection.rows(nil, .from(0), count: 2))
        #expect(first.texts("kind") == ["header", "stanza"])
    }

    @Test func `empty lines have no row`() throws {
        let lines = RecordedLines.lines(4)
        let path = try folder.write(
            "\(RecordedLines.log)\n\n\n\(lines[0])\n\(lines[1])\n\n\(lines[2])\n\n\n",
            to: "x.log"
        )
        let (_, inspection) = try RecordedLines.opened([path])
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 10))
        #expect(rows.texts("kind") == ["header", "stanza", "stanza", "stanza"])
        let record = try InspectionAnswer(inspection.record(at: 2)).fields["record"] as? [String: Any]
        #expect(record?["sequence"] as? Int == 2)
    }

    @Test func `a line that is too long is a row that says so, and the records after it are read`() throws {
        let path = try write([RecordedLines.log, RecordedLines.line(1)], to: "x.log")
        let file = try #require(FileHandle(forWritingAtPath: path))
        defer { try? file.close() }
        // A hole without a newline needs no space on the disk.
        let end = UInt64(RecordReader.maximumLineLength) + (4 << 20)
        try file.seek(toOffset: end)
        try file.write(contentsOf: Data(("\n" + RecordedLines.line(2) + "\n" + RecordedLines.line(3) + "\n").utf8))
        let (files, inspection) = try RecordedLines.opened([path])
        #expect(files.table.range == 0..<5)
        #expect(files.table.byteCount < 10_000)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 10))
        #expect(rows.texts("kind") == ["header", "stanza", "damage", "stanza", "stanza"])
        #expect(rows.numbers("number") == [0, 1, 0, 2, 3])
        #expect(rows.texts("text")[2].contains("line 3 of x.log is too long"))
        let last = try InspectionAnswer(inspection.record(at: 4)).fields["record"] as? [String: Any]
        #expect(last?["sequence"] as? Int == 3)
    }

    @Test func `lines after 4 GiB of a file are read`() throws {
        let path = try write([RecordedLines.log], to: "x.log")
        let file = try #require(FileHandle(forWritingAtPath: path))
        let offset: UInt64 = 5 << 30
        try file.seek(toOffset: offset)
        let lines = RecordedLines.lines(3).map { $0 + "\n" }
        try file.write(contentsOf: Data(lines.joined().utf8))
        try file.close()
        let table = RecordTable(descriptor: open(path, O_RDONLY | O_CLOEXEC))
        var ends: [UInt32] = []
        for line in lines { ends.append((ends.last ?? 0) + UInt32(line.utf8.count)) }
        table.append(ends: ends, at: offset)
        let rows = try InspectionAnswer(
            Inspection(RecordedLines.subject, run: "run", table).rows(nil, .from(0), count: 5)
        )
        #expect(rows.numbers("number") == [1, 2, 3])
    }

    @Test(arguments: [true, false]) func `a gap of the run is a row that says so`(isCopied: Bool) throws {
        let before = #""records_before":0"#
        let later = RecordedLines.log.replacing(before, with: #""records_before":12"#)
        let path = try write(
            [RecordedLines.log] + RecordedLines.lines(5) + [later, RecordedLines.line(13)],
            to: "x.log"
        )
        // Two files are merged; a single one is not copied.
        let other = RecordedLines.log.replacing(#""run":"a""#, with: #""run":"b""#)
        let paths = isCopied ? [path, try write([other], to: "y.log")] : [path]
        let (files, inspection) = try RecordedLines.opened(paths)
        #expect((files.table.descriptor >= 0) != isCopied)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 20))
        let gap = try #require(rows.texts("kind").firstIndex(of: "gap"))
        #expect(rows.texts("kind").count { $0 == "gap" } == 1)
        #expect(rows.texts("text")[gap].hasPrefix("7 records are missing before line 7 of x.log"))
        #expect(rows.texts("kind")[gap + 1] == "header" && rows.numbers("number")[gap + 2] == 13)
        #expect(!rows.texts("text")[gap].contains("/"))
    }

    // MARK: Several runs

    @Test(arguments: [1, 2]) func `sessions of different runs have different numbers`(fileCount: Int) throws {
        let other = RecordedLines.log.replacing(#""run":"a""#, with: #""run":"b""#)
            .replacing("10:00:00Z", with: "11:00:00Z")
        let later = RecordedLines.lines(8).map { $0.replacing("T10:", with: "T11:").replacing("romeo", with: "paris") }
        let (first, second) = ([RecordedLines.log] + RecordedLines.lines(4), [other] + later)
        // A run may also be appended to the file of another one.
        let paths =
            fileCount == 1
            ? [try write(first + second, to: "x.log")]
            : [try write(first, to: "x.log"), try write(second, to: "y.log")]
        let (_, inspection) = try RecordedLines.opened(paths)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 50))
        #expect(
            rows.numbers("session") == [0, 2, 1, 2, 1, 0] + [
                20_000_002, 20_000_001, 20_000_002, 20_000_001, 20_000_002, 20_000_001, 20_000_002, 20_000_001,
            ]
        )
        inspection.surveyAll { true }
        let sessions = try InspectionAnswer(inspection.sessions()).objects("sessions")
        #expect(sessions.map { $0["session"] as? Int } == [2, 1, 20_000_002, 20_000_001])
        #expect(sessions.map { $0["number"] as? Int } == [2, 1, 2, 1])
        #expect(sessions.map { $0["run"] as? Int } == [1, 1, 2, 2])
        #expect(sessions.map { $0["records"] as? Int } == [2, 2, 4, 4])
        #expect(sessions[3]["jid"] as? String == "paris1@example.net/orchard")
        // The filter, the record and the answers to requests know the same numbers.
        let filter = try RecordFilter("session:20000001")
        let found = try InspectionAnswer(inspection.rows(filter, .from(0), count: 50))
        #expect(found.numbers("number") == [2, 4, 6, 8])
        #expect(
            try InspectionAnswer(inspection.rows(RecordFilter("session:1"), .from(0), count: 50)).numbers("number") == [
                2, 4,
            ]
        )
        let at = try #require(found.numbers("at").first)
        let answer = try InspectionAnswer(inspection.record(at: at))
        #expect((answer.fields["record"] as? [String: Any])?["session"] as? Int == 20_000_001)
        #expect(answer.number("request") == at - 1)
        #expect(try InspectionAnswer(inspection.record(at: 2)).number("request") == 1)
        let page = try #require(String(bytes: inspection.export(build: "b", view: "records"), encoding: .utf8))
        #expect(page.split(separator: "\n").count { $0.contains(#""session":20000001"#) } == 5)
    }

    @Test func `answers and requests of the same run are paired, even if logs of two runs alternate`() throws {
        let other = RecordedLines.log.replacing(#""run":"a""#, with: #""run":"b""#)
        let later = RecordedLines.lines(40).map { $0.replacing("romeo", with: "paris") }
        let paths = [
            try write([RecordedLines.log] + RecordedLines.lines(40), to: "x.log"),
            try write([other] + later, to: "y.log"),
        ]
        let (_, inspection) = try RecordedLines.opened(paths)
        inspection.surveyAll { true }
        let trips = try InspectionAnswer(inspection.measures()).objects("trips")
        #expect(trips.first?["requests"] as? Int == 20)
        #expect(trips.first?["answers"] as? Int == 20)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 200))
        for (at, number) in zip(rows.numbers("at"), rows.numbers("number")) where number % 4 == 2 {
            let request = try #require(try InspectionAnswer(inspection.record(at: at)).number("request"))
            #expect(rows.numbers("number")[request] == number - 1)
            #expect(rows.numbers("session")[request] / 10_000_000 == rows.numbers("session")[at] / 10_000_000)
        }
    }

    @Test func `the state names the redaction of all files, the weakest first`() throws {
        let bare = RecordedLines.log.replacing("\"secrets\"", with: "\"none\"").replacing(
            #""run":"a""#,
            with: #""run":"b""#
        )
        let first = try write([RecordedLines.log, RecordedLines.line(1)], to: "x.log")
        let second = try write([bare, RecordedLines.line(1)], to: "y.log")
        func redaction(_ paths: [String]) throws -> String? {
            try InspectionAnswer(RecordedLines.opened(paths).1.state(build: "b")).fields["redaction"] as? String
        }
        #expect(try redaction([first]) == "secrets")
        #expect(try redaction([second]) == "none")
        #expect(try redaction([first, second]) == "none, secrets")
        let both = try write([RecordedLines.log, RecordedLines.line(1), bare, RecordedLines.line(1)], to: "z.log")
        #expect(try redaction([both]) == "none, secrets")
    }

    // MARK: Complete captures

    /// A complete capture of a failed login by an older version, which did not record steps.
    private func captureWithoutSteps() throws -> String {
        var number = 0
        func line(_ fields: String) -> String {
            number += 1
            return
                #"{"sequence":\#(number),"time":"2026-11-29T10:00:0\#(number).000000000Z","monotonic":\#(number).0,"level":"verbose","session":1,\#(fields)}"#
        }
        func item(_ direction: String, _ kind: String, _ name: String, _ xml: String) -> String {
            let leg = direction == "send" ? "client" : "server"
            return line(
                #""kind":"\#(kind)","direction":"\#(direction)","leg":"\#(leg)","epoch":1,"length":\#(xml.utf8.count),"name":"\#(name)","xml":"\#(xml)""#
            )
        }
        let stream = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'"
        let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"
        return try write(
            [
                RecordedLines.header, line(#""kind":"session","code":"session-began","remote":"192.0.2.7:40312""#),
                item("send", "stream-open", "stream", "<stream:stream to='example.org' \(stream)>"),
                item("recv", "stream-open", "stream", "<stream:stream from='example.org' id='s1' \(stream)>"),
                item(
                    "recv",
                    "element",
                    "features",
                    "<stream:features><mechanisms \(sasl)><mechanism>PLAIN</mechanism></mechanisms></stream:features>"
                ),
                item("send", "element", "auth", "<auth \(sasl) mechanism='PLAIN'>AGp1bGlldAB4</auth>"),
                item("recv", "element", "failure", "<failure \(sasl)><not-authorized/></failure>"),
                line(#""kind":"session","code":"session-ended","details":{"close_reason":"closed"}"#),
            ],
            to: "old.xtap"
        )
    }

    @Test func `a complete capture has the records that explain makes of it`() throws {
        let path = try captureWithoutSteps()
        let reanalysis = CaptureReanalyzer(try RecordReader([path]))
        var form = JSONForm()
        var expected: [String] = []
        while let entry = try reanalysis.next() {
            guard case .record(let line) = entry else { continue }
            expected.append(LineBuffer.text { form.append(line, [.content, .chunks], to: &$0) })
        }
        // The steps of the login are not in the file.
        #expect(expected.contains { $0.contains(#""code":"step""#) && $0.contains("sasl: failed, not-authorized") })
        let (files, inspection) = try RecordedLines.opened([path])
        var shown: [String] = []
        files.table.read(1..<files.table.range.upperBound) { _, line in
            shown.append(line?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } ?? "")
        }
        #expect(shown == expected)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 50))
        #expect(rows.texts("code").contains("step"))
    }

    @Test func `a capture that is too large is shown as it was recorded, with a row that says so`() throws {
        let path = try captureWithoutSteps()
        let (files, inspection) = try RecordedLines.opened([path], reanalysedBytes: 100)
        #expect(files.table.descriptor >= 0)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 50))
        #expect(rows.texts("kind").prefix(3) == ["header", "header", "session"])
        #expect(rows.texts("text").first?.contains("are not decoded again") == true)
        #expect(!rows.texts("code").contains("step"))
        #expect(rows.numbers("at").count == 9)
    }
}
