import Foundation
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// Captures with chained lines, and their verification.
@Suite struct HashChainTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    /// Headers as a log writes them.
    private static func lines(of run: String) -> RecordWriter.Lines {
        RecordWriter.Lines(
            header: { opening in
                var line = LineBuffer()
                RecordHeader(
                    tool: "test",
                    time: Timestamp(nanoseconds: 1_795_281_764_262_000_000),
                    level: "verbose",
                    isComplete: opening.dropped.isEmpty,
                    redaction: .secrets,
                    run: run,
                    recordsBefore: opening.records
                ).append(to: &line)
                return line.bytes
            },
            loss: { Array("{\"code\":\"records-dropped\",\"message\":\"\($0.records)\"}\n".utf8) }
        )
    }

    private func record(_ number: Int, _ text: String = "") -> String {
        #"{"sequence":\#(number),"time":"2026-11-21T17:22:44.262Z","monotonic":1.5,"level":"info","part":"session","kind":"note","#
            + #""message":"\#(text)"}"#
    }

    /// A log of `count` records in parts of `size` bytes; gives its files, the oldest first, and the end of its chain.
    private func log(_ count: Int, size: UInt64 = .max, _ body: (RecordWriter, Int) -> Void = { _, _ in }) throws -> (
        paths: [String], head: String
    ) {
        let writer = try RecordWriter(
            folder.file("x.xtap"),
            rotation: RecordWriter.Rotation(size: size, keep: 99),
            lines: Self.lines(of: UUID().uuidString)
        ) { $0.hasChain = true }
        for number in 1...count {
            writer.append(record(number, String(repeating: "x", count: number % 97)))
            body(writer, number)
        }
        #expect(writer.close().isEmpty)
        let parts = (1...99).map { folder.file("x-\($0 < 10 ? "000" : "00")\($0).xtap") }.filter {
            FileManager.default.fileExists(atPath: $0)
        }
        return (parts + [folder.file("x.xtap")], try #require(writer.counters.chain))
    }

    @Test(arguments: [UInt64.max, 10_000, 2_000, 1])
    func `A hash chain spans all files of a log`(size: UInt64) throws {
        let (paths, head) = try log(60, size: size) { writer, number in
            if number % 7 == 0 { writer.flush() }
        }
        #expect(size > 10_000 || paths.count > 1)
        let check = try HashChainVerification(paths.shuffled())
        #expect(check.firstBreak == nil)
        #expect(check.records == 60)
        #expect(check.heads == [head])
        #expect(!check.beginsWithin && !check.isTorn)
        guard paths.count > 1 else { return }
        let last = try HashChainVerification(Array(paths.dropFirst()))
        #expect(last.firstBreak == nil)
        #expect(last.beginsWithin)
        #expect(last.heads == [head])
        // A part in the middle does not begin a chain.
        let gap = try HashChainVerification([paths[0]] + paths.dropFirst(2))
        #expect(paths.count == 2 || gap.firstBreak != nil)
    }

    @Test func `After a file is moved away, its successor continues the chain`() throws {
        let (paths, head) = try log(20) { writer, number in
            guard number == 10 else { return }
            writer.flush()
            rename(folder.file("x.xtap"), folder.file("x-0001.xtap"))
            writer.reopen()
            #expect(eventually { FileManager.default.fileExists(atPath: folder.file("x.xtap")) })
        }
        #expect(paths.count == 2)
        let check = try HashChainVerification(paths)
        #expect(check.firstBreak == nil)
        #expect(check.records == 20)
        #expect(check.heads == [head])
    }

    @Test func `A run that appends to a file begins a new chain`() throws {
        let (paths, first) = try log(5)
        // The thread that wrote the first gives the file up a moment after it has said that it has ended.
        var again: (paths: [String], head: String)?
        _ = eventually {
            again = try? log(6)
            return again != nil
        }
        let second = try #require(again)
        let check = try HashChainVerification(paths)
        #expect(check.firstBreak == nil)
        #expect(check.records == 11)
        #expect(check.heads == [first, second.head])
        #expect(first != second.head)
    }

    @Test func `A changed line is detected at that line or the next, never before`() throws {
        let (paths, head) = try log(12)
        let lines = try folder.lines("x.xtap").dropLast().map(\.self)
        #expect(lines.count == 13)
        func check(_ lines: [String]) throws -> HashChainVerification {
            try folder.write(lines.map { "\($0)\n" }.joined(), "y.xtap")
            return try HashChainVerification([folder.file("y.xtap")])
        }
        for place in lines.indices {
            var changed = lines
            changed[place] = changed[place].replacing(
                place == 0 ? "\"test\"" : "info",
                with: place == 0 ? "\"best\"" : "warn"
            )
            #expect(try check(changed).firstBreak?.line == place + 1)
            var unchained = lines
            unchained[place] = unchained[place].replacing(/,"chain":"[0-9a-f]*"/, with: "")
            #expect(try check(unchained).firstBreak?.hasNoChain == true)
            #expect(try check(unchained).firstBreak?.line == place + 1)
            guard place > 0 else { continue }
            var removed = lines
            removed.remove(at: place)
            let cut = try check(removed)
            if place == lines.count - 1 {
                #expect(cut.firstBreak == nil)
                #expect(cut.heads != [head], "only who knows the end of the chain sees that")
            } else {
                #expect(cut.firstBreak?.line == place + 1)
                #expect(cut.firstBreak?.sequence == UInt64(place + 1))
            }
            var inserted = lines
            inserted.insert(record(99), at: place)
            #expect(try check(inserted).firstBreak?.line == place + 1)
            var twice = lines
            twice.insert(lines[place], at: place)
            #expect(try check(twice).firstBreak?.line == place + 2)
            guard place > 1 else { continue }
            var moved = lines
            moved.swapAt(place, place - 1)
            #expect(try check(moved).firstBreak?.line == place)
        }
        #expect(try HashChainVerification(paths).heads == [head])
    }

    @Test func `A torn last line does not break the chain`() throws {
        _ = try log(3)
        try folder.append("{\"sequence\":4,\"ti", "x.xtap")
        let check = try HashChainVerification([folder.file("x.xtap")])
        #expect(check.firstBreak == nil)
        #expect(check.isTorn)
        #expect(check.records == 3)
    }

    @Test func `Records are read without their chain fields`() throws {
        let (paths, _) = try log(3)
        let reader = try RecordReader(paths)
        var count = 0
        while let entry = try reader.next() {
            guard case .record(let line) = entry else { continue }
            count += 1
            #expect(line.unknown.isEmpty)
        }
        #expect(count == 3)
    }

    @Test func `A file that is not a capture is refused with its name`() throws {
        try folder.write("hello\n", "z.txt")
        #expect(throws: ReaderFault.self) { try HashChainVerification([folder.file("z.txt")]) }
        #expect(throws: ReaderFault.self) { try HashChainVerification([folder.file("none")]) }
    }
}
