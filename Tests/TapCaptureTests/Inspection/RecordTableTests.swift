import Glibc
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// The lines of records by position.
struct RecordTableTests {
    private func texts(_ table: RecordTable, _ positions: Range<Int>) -> [String] {
        var texts: [String] = []
        table.read(positions) { position, line in
            let text = line?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            texts.append("\(position) \(text ?? "missing")")
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
    }

    @Test func `a read reports each position, also those of lines that are gone`() {
        let table = RecordTable(RecordTable.Limits(records: 2000, bytes: .max))
        append(10_000, to: table)
        let first = table.range.lowerBound
        let read = texts(table, (first - 2)..<(first + 2))
        #expect(read.map { Int($0.prefix { $0 != " " }) } == [first - 2, first - 1, first, first + 1])
        #expect(read.map { $0.hasSuffix("missing") } == [true, true, false, false])
        var found: [Int] = []
        table.read([3, 4, first - 1, first + 5, 9999, 10_000][...]) { position, _ in found.append(position) }
        #expect(found == [3, 4, first - 1, first + 5, 9999])
        #expect(table.byteCounts(of: [3, first, 9999, 10_000][...]) == [0, 10, 10, 0])
    }

    @Test func `rows keep their places when the file becomes shorter`() throws {
        let folder = try TemporaryFolder()
        let lines = [RecordedLines.log] + RecordedLines.lines(100)
        let path = try folder.write(lines.joined(separator: "\n") + "\n", to: "x.log")
        let (files, inspection) = try RecordedLines.opened([path])
        #expect(files.table.range == 0..<101)
        // The file is cut within the 51st line.
        let size = lines[..<50].reduce(0) { $0 + $1.utf8.count + 1 }
        #expect(truncate(path, size + 10) == 0)
        let rows = try InspectionAnswer(inspection.rows(nil, .from(48), count: 4))
        #expect(rows.numbers("at") == [48, 49, 50, 51])
        #expect(rows.texts("kind") == ["stanza", "stanza", "damage", "damage"])
        #expect(rows.texts("text").last?.contains("the file has become shorter") == true)
        let record = try InspectionAnswer(inspection.record(at: 50))
        #expect((record.fields["row"] as? [String: Any])?["kind"] as? [String] == ["damage"])
        #expect(record.fields["record"] == nil)
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
}
