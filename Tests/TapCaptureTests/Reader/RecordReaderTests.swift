import Foundation
import Glibc
import TapCapture
import TapRecord
import Testing

@Suite struct RecordReaderTests {
    private func header(
        _ second: Int64 = 0,
        run: String = "r",
        complete: Bool = true,
        version: Int64 = 1,
        before: UInt64? = nil
    ) -> String {
        var header = RecordHeader(
            tool: "test",
            time: Timestamp(nanoseconds: second * 1_000_000_000),
            level: "verbose",
            isComplete: complete,
            redaction: .secrets,
            run: run,
            recordsBefore: before
        )
        header.version = version
        var line = LineBuffer()
        header.append(to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    private func record(_ sequence: UInt64, at second: Int64 = 0, code: String? = nil, message: String = "words")
        -> String
    {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: second * 1_000_000_000),
            monotonic: 0,
            kind: .note,
            level: .info,
            part: .net
        )
        record.code = code
        record.message = Prose(message)
        var form = JSONForm()
        var line = LineBuffer()
        form.append(record, content: [UInt8]().span, [], to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// What files hold, in short: `h` for headers, the sequence of records, damage in words.
    private func read(_ paths: [String]) throws -> [String] {
        let reader = try RecordReader(paths)
        var entries: [String] = []
        while let entry = try reader.next() {
            switch entry {
            case .header: entries.append("h")
            case .record(let line): entries.append("\(line.record.sequence)")
            case .damage(let line): entries.append(line.description)
            case .gap(let gap): entries.append(gap.description)
            }
        }
        return entries
    }

    private func fault(_ path: String) -> ReaderFault? {
        do throws(ReaderFault) {
            let reader = try RecordReader([path])
            while try reader.next() != nil {}
            return nil
        } catch {
            return error
        }
    }

    private func refusal(_ path: String) -> String? { fault(path)?.description }

    /// Sequences of records, each `h` with the run and the records before it.
    private func runs(_ paths: [String]) throws -> [String] {
        let reader = try RecordReader(paths)
        var entries: [String] = []
        while let entry = try reader.next() {
            switch entry {
            case .header(let header): entries.append("\(header.run)+\(header.recordsBefore.map { "\($0)" } ?? "-")")
            case .record(let line): entries.append("\(line.record.sequence)")
            case .damage, .gap: entries.append("?")
            }
        }
        return entries
    }

    @Test func `records of several logs are merged by time`() throws {
        let folder = try Folder()
        try folder.write(header(0, run: "a", before: 0) + record(1, at: 1) + record(2, at: 4), "a.xtap.1")
        try folder.write(header(5, run: "a", before: 2) + record(3, at: 7) + record(4, at: 7), "a.xtap")
        // A clock that was set back keeps its records in the order of the file.
        try folder.write(
            header(2, run: "b", before: 0) + record(11, at: 3) + record(12, at: 6) + record(13, at: 2),
            "b.xtap"
        )
        let files = ["b.xtap", "a.xtap", "a.xtap.1"].map(folder.file)
        #expect(
            try runs(files) == [
                "a+0", "1", "b+0", "11", "a+1", "2", "a+2", "b+1", "12", "13", "a+2", "3", "4",
            ]
        )
        let reader = try RecordReader(files)
        while try reader.next() != nil {}
        let progress = try #require(reader.progress)
        #expect(progress.read == progress.size && progress.size > 500)
    }

    @Test func `a followed file is read as it grows and after a rotation`() throws {
        let folder = try Folder()
        let path = folder.file("x.xtap")
        try folder.write(header(before: 0) + record(1), "x.xtap")
        let reader = try RecordReader([path])
        reader.follows = true
        func entries() throws -> [String] {
            var entries: [String] = []
            while let entry = try reader.next() {
                switch entry {
                case .header: entries.append("h")
                case .record(let line): entries.append("\(line.record.sequence)")
                case .damage(let line): entries.append("\(line.reason)")
                case .gap: entries.append("gap")
                }
            }
            return entries
        }
        #expect(try entries() == ["h", "1"])
        let half = record(2).utf8.count / 2
        try folder.append(String(record(2).prefix(half)), "x.xtap")
        #expect(try entries() == [])
        try folder.append(String(record(2).dropFirst(half)), "x.xtap")
        #expect(try entries() == ["2"])
        // Data written before the file is moved is read before the new file.
        try folder.append(record(3) + "{\"seq", "x.xtap")
        #expect(rename(path, path + ".1") == 0)
        #expect(try entries() == ["3"], "the name is free for the moment")
        try folder.write(header(before: 3) + record(4), "x.xtap")
        #expect(try entries() == ["incomplete", "h", "4"])
        // Emptied in place, as by copytruncate: seen by its size.
        #expect(truncate(path, 0) == 0)
        #expect(try entries() == [])
        try folder.append(header(before: 4) + record(5), "x.xtap")
        #expect(try entries() == ["h", "5"])
    }

    @Test func `A file without records or items may become readable if it is short text`() throws {
        let folder = try Folder()
        func fault(_ path: String) throws -> ReaderFault {
            try #require(throws: ReaderFault.self) { _ = try RecordReader([path]) }
        }
        for text in ["", "{\"xmppt", "DEBUG    Loaded Plugin: XEP-0030\n"] {
            try folder.write(text, "x.log")
            #expect(try fault(folder.file("x.log")).mayPass, "\(text)")
        }
        try folder.write("SQLite format 3\u{0}", "x.log")
        #expect(try !fault(folder.file("x.log")).mayPass)
        #expect(try !fault(folder.file("missing.log")).mayPass)
    }

    @Test func `lines without the required text are skipped, and counted for gaps`() throws {
        let folder = try Folder()
        // Larger than one read, with matches on both sides of its end, and in two notations.
        var text = header(before: 0)
        var wanted: [UInt64] = []
        for sequence: UInt64 in 1...4000 {
            let isWanted = sequence.isMultiple(of: 97)
            let words = isWanted ? "wherefore" : sequence == 500 ? "&#119;" : "words \(sequence)"
            if isWanted || sequence == 500 { wanted.append(sequence) }
            text += record(sequence, message: words)
        }
        text += header(run: "other", before: 7).replacing("{\"xtap\"", with: "{ \"xtap\"")
        text += record(1, message: "wherefore")
        try folder.write(text, "x.xtap")
        let reader = try RecordReader([folder.file("x.xtap")])
        reader.requiredLiterals = [Array("wherefore".utf8)]
        var found: [UInt64] = []
        var gaps: [MissingRecords] = []
        while let entry = try reader.next() {
            switch entry {
            case .record(let line): found.append(line.record.sequence)
            case .gap(let gap): gaps.append(gap)
            case .header, .damage: break
            }
        }
        #expect(found == wanted + [1])
        #expect(gaps.map(\.line) == [4002] && gaps.map(\.count) == [7])
    }

    @Test func `logs with equal times are not interleaved`() throws {
        let folder = try Folder()
        try folder.write(header(0, run: "a", before: 0) + record(1, at: 1) + record(2, at: 1), "a.xtap")
        try folder.write(header(0, run: "b", before: 0) + record(1, at: 1) + record(2, at: 1), "b.xtap")
        #expect(try runs(["a.xtap", "b.xtap"].map(folder.file)) == ["a+0", "b+0", "1", "2", "a+0", "1", "2"])
    }

    @Test func `records are read in the order of the file`() throws {
        let folder = try Folder()
        try folder.write(header() + record(1) + record(2) + "\n" + header() + record(5), "x.xtap")
        let reader = try RecordReader([folder.file("x.xtap")])
        #expect(reader.firstHeader.run == "r")
        #expect(try read([folder.file("x.xtap")]) == ["h", "1", "2", "h", "5"])
    }

    @Test func `sequence numbers out of order are not a loss`() throws {
        let folder = try Folder()
        try folder.write(header() + record(2) + record(1) + record(4), "x.xtap.1")
        try folder.write(header(1) + record(3) + record(5), "x.xtap")
        let reader = try RecordReader([folder.file("x.xtap"), folder.file("x.xtap.1")])
        while try reader.next() != nil {}
        #expect(reader.isComplete)
        #expect(try read([folder.file("x.xtap"), folder.file("x.xtap.1")]) == ["h", "2", "1", "4", "h", "3", "5"])
    }

    @Test func `lines skipped by a filter do not count as missing`() throws {
        let folder = try Folder()
        try folder.write(header(10, before: 0) + record(1) + record(2), "x.log.1")
        try folder.write(header(20, before: 2) + record(3), "x.log")
        let reader = try RecordReader([folder.file("x.log"), folder.file("x.log.1")])
        // All but the last.
        reader.skipsLine = { line in
            line.withUnsafeBytes { !$0.starts(with: "{\"xtap\"".utf8) && !$0.starts(with: "{\"sequence\":3".utf8) }
        }
        var sequences: [UInt64] = []
        while let entry = try reader.next() {
            switch entry {
            case .record(let line): sequences.append(line.record.sequence)
            case .gap, .damage: Issue.record("\(entry)")
            case .header: break
            }
        }
        #expect(sequences == [3] && reader.isComplete)
    }

    @Test func `an incomplete last line is reported and skipped`() throws {
        let folder = try Folder()
        let text = header() + record(1)
        let last = record(2, message: "Ärger 😀")
        let path = folder.file("x.xtap")
        for count in 1..<last.utf8.count {
            let torn = Data(text.utf8) + Data(last.utf8.prefix(count))
            try torn.write(to: URL(fileURLWithPath: path))
            #expect(
                try read([path]) == [
                    "h", "1",
                    "line 3 of \(path) is incomplete: xmpptap was stopped, or the disk was full, while it was written",
                ]
            )
            // The same after another run has added to it.
            guard count < last.utf8.count - 1 else { continue }
            try (torn + Data(("\n" + header() + record(3)).utf8)).write(to: URL(fileURLWithPath: path))
            let entries = try read([path])
            #expect(entries.count == 5)
            #expect(entries[2].hasPrefix("line 3 of \(path) is incomplete"))
            #expect(entries[3...] == ["h", "3"])
        }
    }

    @Test func `other damaged lines are reported and skipped too`() throws {
        let folder = try Folder()
        try folder.write(header() + record(1) + "garbage\n{}\n\u{0}\u{0}\n" + record(2), "x.xtap")
        let path = folder.file("x.xtap")
        #expect(
            try read([path]) == [
                "h", "1",
                "line 3 of \(path) skipped: not JSON at byte 0: an unexpected byte",
                "line 4 of \(path) skipped: a record without \"sequence\"",
                "line 5 of \(path) skipped: not JSON at byte 0: an unexpected byte",
                "2",
            ]
        )
    }

    @Test func `the parts of a run are read in order, whatever the order of the arguments`() throws {
        let folder = try Folder()
        try folder.write(header(30) + record(5) + record(6), "x.log")
        try folder.write(header(20) + record(3) + record(4), "x.log.1")
        try folder.write(header(10) + record(1) + record(2), "x.log.2")
        let paths = ["x.log", "x.log.2", "x.log.1"].map(folder.file)
        #expect(try read(paths) == ["h", "1", "2", "h", "3", "4", "h", "5", "6"])
        #expect(try RecordReader(paths).firstHeader.time.nanoseconds == 10_000_000_000)
    }

    private static let reason = "in a file of the run that was not named, or that no longer exists"

    @Test func `missing parts of a run are reported`() throws {
        let folder = try Folder()
        try folder.write(header(30, before: 4) + record(5) + record(6), "x.log")
        try folder.write(header(20, before: 2) + record(3) + record(4), "x.log.1")
        try folder.write(header(10, before: 0) + record(1) + record(2), "x.log.2")
        let (new, middle, old) = (folder.file("x.log"), folder.file("x.log.1"), folder.file("x.log.2"))
        func isComplete(_ paths: [String]) throws -> [Bool] {
            let reader = try RecordReader(paths)
            let atFirst = reader.isComplete
            while try reader.next() != nil {}
            return [atFirst, reader.isComplete]
        }
        #expect(try read([new, middle, old]) == ["h", "1", "2", "h", "3", "4", "h", "5", "6"])
        #expect(try isComplete([new, middle, old]) == [true, true])
        #expect(
            try read([new, old])
                == ["h", "1", "2", "2 records are missing before \(new): \(Self.reason)", "h", "5", "6"]
        )
        #expect(try isComplete([new, old]) == [true, false])
        #expect(
            try read([new, middle])
                == ["2 records are missing before \(middle): \(Self.reason)", "h", "3", "4", "h", "5", "6"]
        )
        #expect(try isComplete([new, middle]) == [false, false])
        #expect(try read([new])[0] == "4 records are missing before \(new): \(Self.reason)")
    }

    @Test func `parts are read in order even if the clock was set back`() throws {
        let folder = try Folder()
        try folder.write(header(30, before: 0) + record(1), "x.log.2")
        try folder.write(header(10, before: 1) + record(2), "x.log.1")
        try folder.write(header(20, before: 2) + record(3), "x.log")
        try folder.write(header(15, run: "other", before: 0) + record(9), "y.log")
        let paths = ["y.log", "x.log", "x.log.1", "x.log.2"].map(folder.file)
        #expect(try read(paths) == ["h", "9", "h", "1", "h", "2", "h", "3"])
    }

    @Test func `records are counted separately for each run and each log`() throws {
        let folder = try Folder()
        let text = header(before: 0) + record(1) + header(5, run: "s", before: 0) + record(1) + record(2)
        try folder.write(text + header(6, run: "s", before: 2) + record(3), "x.log")
        #expect(try read([folder.file("x.log")]) == ["h", "1", "h", "1", "2", "h", "3"])
        // Giving a file twice does not create a gap either.
        #expect(try read([folder.file("x.log"), folder.file("x.log")]).count == 14)
        let path = folder.file("y.log")
        try folder.write(text + "{}\n" + header(6, run: "s", before: 4) + record(5), "y.log")
        #expect(try read([path])[6] == "1 record is missing before line 7 of \(path): \(Self.reason)")
    }

    @Test func `the reader knows whether a file is complete`() throws {
        let folder = try Folder()
        func isComplete(_ text: String) throws -> Bool {
            try folder.write(text, "x.xtap")
            let reader = try RecordReader([folder.file("x.xtap")])
            while try reader.next() != nil {}
            return reader.isComplete
        }
        #expect(try isComplete(header() + record(1)))
        #expect(try !isComplete(header(complete: false) + record(1)))
        #expect(try !isComplete(header() + record(1) + header(complete: false)))
        #expect(try !isComplete(header() + record(1, code: "records-dropped")))
        #expect(try !isComplete(header() + record(1) + "{\"seq"))
        #expect(try !isComplete(header() + "x\n" + record(1)))
    }

    @Test func `a file that is not a log is refused with the reason`() throws {
        let folder = try Folder()
        let path = folder.file("x")
        let notOurs =
            "\(path) is neither a log or capture of xmpptap nor a log of a client or server that shows XMPP"
        for text in [
            "12:00:00.000 words\n", "{}\n", "{\"xtap\":\"x\"}\n", "x", "\n\n", "\u{0}",
        ] {
            try folder.write(text, "x")
            #expect(refusal(path) == notOurs)
        }
        for text in ["", "{\"xtap\":1,\"tool"] {
            try folder.write(text, "x")
            #expect(refusal(path) == "\(path) contains no records yet")
        }
        #expect(refusal(folder.file("no")) == "cannot open \(folder.file("no")): No such file or directory")
        try folder.write("", "x.xtap")
        #expect(refusal(folder.path) == "\(folder.path) is a folder without captures (*.xtap); name the files to read")
    }

    @Test func `files of other formats are refused with the name of the format`() throws {
        let folder = try Folder()
        let path = folder.file("x")
        let zeros = [UInt8](repeating: 0, count: 5000)
        func text(_ text: String) -> [UInt8] { Array(text.utf8) }
        let cases: [([UInt8], FileFormat, String)] = [
            (text("# 2026-11-21T17:22:42.102000000Z xmpptap 0.1.0 log info\n"), .textLog, "a text log"),
            (text("17:22:42.102 info [3] net: 127.0.0.1:1 connected\n"), .textLog, "a text log"),
            (text("listening\n17:22:42.102 warn [13 ~romeo] RECV: words\n"), .textLog, "a text log"),
            (text(record(1) + record(2)), .headerless, "not with the header"),
            (text("BZh9") + zeros, .bzip2, "compressed (bzip2)"),
            ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0] + zeros, .xz, "compressed (xz)"),
            (text("PK\u{3}\u{4}") + zeros, .zip, "compressed (zip)"),
            ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + zeros, .image, "an image"),
            (text("GIF89a"), .image, "image"),
            ([0xFF, 0xD8, 0xFF, 0xE0], .image, "image"), (text("%PDF-1.7\n"), .pdf, "PDF"),
            (text("SQLite format 3\u{0}") + zeros, .sqlite, "SQLite"),
            (text("<?xml version=\"1.0\"?>\n<svg xmlns=\"x\">\n</svg>\n"), .svg, "SVG"),
            (text("<!DOCTYPE html>\n<html></html>\n"), .html, "HTML"),
        ]
        for (bytes, format, phrase) in cases {
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let fault = try #require(self.fault(path))
            #expect(fault.code == .otherFormat(format))
            let words = fault.description
            #expect(words.hasPrefix("\(path) ") && words.contains(phrase), "\(words)")
        }
        #expect(Set(cases.map(\.1) + [.gzip, .zstd]) == Set(FileFormat.allCases), "gzip and zstd are decompressed")
    }

    @Test func `the logs of two clients are two runs`() throws {
        let folder = try Folder()
        for name in ["a.log", "b.log"] { try folder.write("SEND: <presence/>\n", name) }
        let runs = try ["a.log", "b.log", "a.log"].map { try RecordReader([folder.file($0)]).firstHeader.run }
        #expect(runs[0] != runs[1])
        #expect(runs[0] == runs[2], "the same file is the same run")
    }

    @Test func `a newer schema is refused, in the first header or a later one`() throws {
        let folder = try Folder()
        let path = folder.file("x")
        let newer =
            "\(path) was written by a newer xmpptap (schema 2, this version reads up to 1); use that version"
        try folder.write("{\"xtap\":2,\"anything\":[{}]}\n", "x")
        #expect(refusal(path) == newer)
        try folder.write(header() + record(1) + header(version: 2), "x")
        #expect(refusal(path) == newer)
    }

    @Test func `lines of all sizes are read`() throws {
        let folder = try Folder()
        var text = header()
        // Around the size of a read, so that lines begin and end at every place of it.
        let sizes = (0..<40).map { $0 * 13_107 }
        for (index, size) in sizes.enumerated() {
            text += record(UInt64(index + 1), message: String(repeating: "x", count: size))
        }
        try folder.write(text, "x")
        #expect(try read([folder.file("x")]) == ["h"] + sizes.indices.map { "\($0 + 1)" })
    }

    @Test func `a line that is too long is skipped in bounded memory`() throws {
        let folder = try Folder()
        let handle = try {
            try folder.write(header() + record(1), "x")
            return try #require(FileHandle(forWritingAtPath: folder.file("x")))
        }()
        try handle.seekToEnd()
        let piece = Data(repeating: 0x78, count: 1 << 20)
        for _ in 0..<70 { try handle.write(contentsOf: piece) }
        try handle.write(contentsOf: Data(("\n" + record(2)).utf8))
        try handle.close()
        let path = folder.file("x")
        #expect(try read([path]) == ["h", "1", "line 3 of \(path) is too long", "2"])
    }

    @Test func `an endless device is refused by its first line`() {
        #expect(fault("/dev/zero")?.code == .notOurs)
    }

    @Test func `a named pipe is read to its end`() throws {
        let folder = try Folder()
        let path = folder.file("x.xtap")
        try #require(mkfifo(path, 0o600) == 0)
        let writer = open(path, O_RDWR)
        let text = Array((header() + record(1) + record(2).dropLast(9)).utf8)
        try #require(write(writer, text, text.count) == text.count)
        let reader = try RecordReader([path])
        close(writer)
        var entries = 0
        while let entry = try reader.next() {
            entries += 1
            if case .damage(let damage) = entry { #expect(damage.isInterruption && damage.line == 3) }
        }
        #expect(entries == 3 && reader.progress == nil)
    }

    @Test func `the files of a rotating writer are read back`() throws {
        let folder = try Folder()
        let first = header(1)
        let later = header(2)
        let lines = RecordWriter.Lines(header: { Array(($0.reason == .start ? first : later).utf8) })
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 4000, keep: 100), lines: lines)
        for number in 1...500 { writer.append(record(UInt64(number))) }
        writer.close()
        let names = (1...Int(writer.counters.rotations)).reversed().map { "x.log.\($0)" } + ["x.log"]
        #expect(names.count > 10)
        let numbers = try read(names.map(folder.file)).compactMap(Int.init)
        #expect(numbers == Array(1...500))
    }
}
