import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// The lines of records by position.
struct RecordTableTests {
    private func texts(_ table: RecordTable, _ positions: Range<Int>) -> [String] {
        var texts: [String] = []
        table.read(positions) { position, line in
            texts.append("\(position) " + line.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        }
        return texts
    }

    private func append(_ count: Int, to table: RecordTable, size: Int = 10) {
        for number in 0..<count {
            table.append { line in
                line.append(bytes: Array(String(repeating: "x", count: size - 1).utf8))
                line.append(decimal: number % 10)
            }
        }
    }

    @Test(arguments: [false, true]) func `lines are read back by their positions`(spills: Bool) {
        let table = RecordTable(spills: spills)
        append(5000, to: table, size: 500)
        #expect(table.range == 0..<5000)
        #expect(table.byteCount == 2_500_000)
        #expect(texts(table, 2046..<2050).map { $0.split(separator: " ").first } == ["2046", "2047", "2048", "2049"])
        #expect(texts(table, 2046..<2047).first?.last == "6")
        #expect(texts(table, 4999..<6000).count == 1)
        #expect(texts(table, 7000..<8000).isEmpty)
    }

    @Test func `a limited table drops the oldest lines and keeps the positions of the others`() {
        let table = RecordTable(RecordTable.Limits(records: 2000, bytes: .max))
        append(10_000, to: table)
        #expect(table.range.upperBound == 10_000)
        #expect(table.range.count >= 2000 && table.range.count <= 3100)
        #expect(texts(table, 9999..<10_000).first?.hasPrefix("9999 ") == true)
        // A read that begins among dropped lines continues with the first one that is left.
        #expect(texts(table, 0..<table.range.lowerBound).isEmpty)
        #expect(texts(table, 0..<(table.range.lowerBound + 1)).count == 1)
    }

    @Test func `a table is limited by bytes too`() {
        let table = RecordTable(RecordTable.Limits(records: .max, bytes: 1 << 20))
        append(100, to: table, size: 100_000)
        #expect(table.byteCount <= 1 << 20)
        #expect(table.range.upperBound == 100)
        #expect(table.range.lowerBound > 80)
    }

    @Test func `positions that are not neighbours are read in order`() {
        let table = RecordTable()
        append(3000, to: table)
        var found: [Int] = []
        table.read([1, 2, 3, 1500, 2999][...]) { position, _ in found.append(position) }
        #expect(found == [1, 2, 3, 1500, 2999])
    }

    @Test func `the lines of a capture are indexed without a copy, with an incomplete last line`() throws {
        let folder = try TemporaryFolder()
        let lines = [RecordedLines.header] + RecordedLines.lines(3000)
        let path = try folder.write(lines.joined(separator: "\n") + "\n{\"sequence\":", to: "x.xtap")
        let files = try RecordFiles([path])
        let inspection = Inspection(
            Inspection.Subject(title: "x", tool: "test", isLive: false, redaction: "secrets"),
            run: "run",
            files.table
        )
        files.load(inspection) { true }
        #expect(files.table.range == 0..<3002)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(-2), count: 10))
        #expect(rows.texts("kind") == ["stanza", "damage"])
        #expect(rows.numbers("number") == [3000, 0])
        let first = try InspectionAnswer(inspection.rows(nil, .from(0), count: 2))
        #expect(first.texts("kind") == ["header", "stanza"])
    }

    @Test func `the records of several files are merged`() throws {
        let folder = try TemporaryFolder()
        let first = try folder.write(
            ([RecordedLines.header] + RecordedLines.lines(20)).joined(separator: "\n") + "\n",
            to: "x.xtap"
        )
        let other = RecordedLines.header.replacing(#""run":"a""#, with: #""run":"b""#)
        let second = try folder.write(
            ([other] + RecordedLines.lines(10)).joined(separator: "\n") + "\n",
            to: "y.xtap"
        )
        let files = try RecordFiles([first, second])
        let inspection = Inspection(
            Inspection.Subject(title: "x", tool: "test", isLive: false, redaction: "secrets"),
            run: "run",
            files.table
        )
        files.load(inspection) { true }
        let rows = try InspectionAnswer(inspection.rows(nil, .from(0), count: 2000))
        #expect(rows.texts("kind").count { $0 == "stanza" } == 30)
        inspection.surveyAll { true }
        #expect(try InspectionAnswer(inspection.sessions()).objects("sessions").count == 4)
    }
}
