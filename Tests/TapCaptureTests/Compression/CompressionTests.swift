import Foundation
import Glibc
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

private let isZstdThere = Compression.zstd.isAvailable

extension Compressor {
    fileprivate func compress(_ bytes: [UInt8]) -> [UInt8]? { compress(bytes.span.bytes) }
}

/// Files that are compressed while they are written, and read as if they were not.
@Suite("Compressed files")
struct CompressionTests {
    static var all: [Compression] { isZstdThere ? Compression.allCases : [.gzip] }

    /// The header of a log, and a record for the reader.
    private static let header: String = {
        var line = LineBuffer()
        RecordHeader.test(run: "r").append(to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }()

    private static func record(_ sequence: UInt64, _ filler: String = "") -> String {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: Int64(sequence)),
            monotonic: 0,
            kind: .note,
            level: .info,
            part: .net
        )
        record.message = Prose("words \(sequence &* 0x9E37_79B9_7F4A_7C15) \(filler)")
        var form = JSONForm()
        var line = LineBuffer()
        form.append(record, content: [UInt8]().span, [], to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    /// A member with its end.
    private static func member(_ text: String, _ compression: Compression) throws -> [UInt8] {
        try start(text, compression) { $0.finish() }
    }

    /// A member that was flushed, with the rest of the output.
    private static func start(
        _ text: String,
        _ compression: Compression,
        _ end: (Compressor) -> [UInt8] = { _ in [] }
    ) throws -> [UInt8] {
        let compressor = try #require(Compressor(compression))
        let bytes = Array(text.utf8)
        return try #require(compressor.compress(bytes)) + end(compressor)
    }

    private struct Found: Equatable {
        /// `h` for headers, numbers of records, `?` for damage.
        var entries: [String] = []
        var damage: [DamagedLine.Reason] = []
        var fault: ReaderFault.Code?
    }

    private static func read(_ path: String) -> Found {
        var found = Found()
        do throws(ReaderFault) {
            let reader = try RecordReader([path])
            while let entry = try reader.next() {
                switch entry {
                case .header: found.entries.append("h")
                case .record(let line): found.entries.append("\(line.record.sequence)")
                case .damage(let line):
                    found.entries.append("?")
                    found.damage.append(line.reason)
                case .gap: found.entries.append("gap")
                }
            }
        } catch {
            found.fault = error.code
        }
        return found
    }

    private static func read(_ bytes: [UInt8], in folder: Folder? = nil) throws -> Found {
        let folder = try folder ?? Folder()
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file("x")))
        return withExtendedLifetime(folder) { read(folder.file("x")) }
    }

    @Test("Flushed data can be read before the end, and the closed file is a valid archive", arguments: all)
    func written(_ compression: Compression) throws {
        let folder = try Folder()
        let path = folder.file("x.xtap\(compression.ending)")
        let lines = RecordWriter.Lines(header: { _ in Array(Self.header.utf8) })
        let writer = try RecordWriter(path, lines: lines)
        for number in 1...500 as ClosedRange<UInt64> {
            writer.append(Self.record(number))
            if number.isMultiple(of: 100) { #expect(writer.flush()) }
        }
        let numbers = (1...500).map(String.init)
        let open = Self.read(path)
        #expect(open.entries == ["h"] + numbers + ["?"])
        let size = try #require(FileStatus(path: path)?.size)
        #expect(open.damage == [.compressed(.truncated(at: size))])
        writer.close()
        #expect(Self.read(path) == Found(entries: ["h"] + numbers))
        let text = try contents(path)
        #expect(text == Self.header + (1...500).map { Self.record($0) }.joined())
        #expect(try #require(FileStatus(path: path)?.size) < text.utf8.count / 2)
        if compression == .gzip {
            let check = Process()
            check.executableURL = URL(fileURLWithPath: "/bin/gzip")
            check.arguments = ["-t", path]
            try check.run()
            check.waitUntilExit()
            #expect(check.terminationStatus == 0)
        }
    }

    @Test("A writer appends to a file whose writer was closed or killed", arguments: all)
    func addedTo(_ compression: Compression) throws {
        let folder = try Folder()
        // Use a copy: a writer's thread keeps its file open for a moment.
        func add(_ number: UInt64, to name: String, asKilled killed: String) throws -> String {
            let path = folder.file(name + compression.ending)
            let writer = try RecordWriter(path, lines: .init(header: { _ in Array(Self.header.utf8) }))
            writer.append(Self.record(number))
            writer.flush()
            try FileManager.default.copyItem(atPath: path, toPath: folder.file(killed + compression.ending))
            writer.close()
            try FileManager.default.copyItem(atPath: path, toPath: folder.file("\(name)-copy\(compression.ending)"))
            return path
        }
        _ = try add(1, to: "a", asKilled: "b")
        #expect(Self.read(try add(2, to: "a-copy", asKilled: "c")) == Found(entries: ["h", "1", "h", "2"]))
        let size = try #require(FileStatus(path: folder.file("c\(compression.ending)"))?.size)
        let found = Self.read(try add(3, to: "c", asKilled: "d"))
        #expect(found.entries == ["h", "1", "h", "2", "?", "h", "3"])
        #expect(found.damage == [.compressed(.truncated(at: size))])
        #expect(DamagedLine(reason: .compressed(.truncated(at: 1)), path: "x", line: 1).isInterruption)
    }

    @Test("Rotation loses nothing, and each rotated file is a complete archive", arguments: all)
    func rotated(_ compression: Compression) throws {
        let folder = try Folder()
        let name = "x.log\(compression.ending)"
        let writer = try RecordWriter(folder.file(name), rotation: .init(size: 5000, keep: 1000))
        for number in 0..<20_000 { writer.append("record \(number &* 0x9E37_79B9)\n") }
        writer.close()
        let parts = Int(writer.counters.rotations)
        #expect(parts > 5)
        var lines: [String] = []
        for part in (1...parts).reversed().map({ "\(name).\($0)" }) + [name] {
            #expect(try #require(FileStatus(path: folder.file(part))?.size) <= 5100)
            lines += try contents(folder.file(part)).split(separator: "\n").map(String.init)
        }
        #expect(lines.filter { $0.hasPrefix("record ") } == (0..<20_000).map { "record \($0 &* 0x9E37_79B9)" })
        #expect(lines.count == 20_000 + parts + 1)
    }

    @Test("A file truncated by another program is readable from there on", arguments: all)
    func cut(_ compression: Compression) throws {
        let folder = try Folder()
        let path = folder.file("x.log\(compression.ending)")
        let writer = try RecordWriter(path)
        writer.append("before\n")
        writer.flush()
        #expect(truncate(path, 0) == 0)
        writer.append("after\n")
        writer.close()
        #expect(try contents(path) == "after\n")
    }

    @Test("Without libzstd, .zst files are neither written nor read, and gzip still works", .enabled(if: isZstdThere))
    func withoutLibrary() throws {
        let folder = try Folder()
        try Data(try Self.member(Self.header, .zstd)).write(to: URL(fileURLWithPath: folder.file("there.xtap.zst")))
        try Zstandard.$file.withValue("libzstd-that-nobody-has.so.1") {
            #expect(!Compression.zstd.isAvailable)
            #expect(Compressor(.zstd) == nil)
            let fault = #expect(throws: WriterFault.self) { try RecordWriter(folder.file("new.xtap.zst")) }
            #expect(fault?.code == .noLibrary)
            #expect(
                fault?.description == "cannot compress \(folder.file("new.xtap.zst")): libzstd.so.1 is not installed; "
                    + "install it, or use the ending .gz"
            )
            #expect(!FileManager.default.fileExists(atPath: folder.file("new.xtap.zst")), "nothing is left behind")
            let reading = #expect(throws: ReaderFault.self) { try RecordReader([folder.file("there.xtap.zst")]) }
            #expect(reading?.code == .otherFormat(.zstd), "\(String(describing: reading))")
            let writer = try RecordWriter(
                folder.file("x.xtap.gz"),
                lines: .init(header: { _ in Array(Self.header.utf8) })
            )
            writer.append(Self.record(1))
            writer.close()
            #expect(Self.read(folder.file("x.xtap.gz")) == Found(entries: ["h", "1"]))
        }
        #expect(Compression.zstd.isAvailable)
        #expect(Self.read(folder.file("there.xtap.zst")).entries == ["h"])
    }

    @Test("A file whose content does not match its extension is not appended to")
    func refused() throws {
        let folder = try Folder()
        try folder.write(Self.header, "plain.gz")
        try Data(try Self.member(Self.header, .gzip)).write(to: URL(fileURLWithPath: folder.file("packed.log")))
        for name in ["plain.gz", "packed.log"] {
            let before = try Data(contentsOf: URL(fileURLWithPath: folder.file(name)))
            let fault = #expect(throws: WriterFault.self) { try RecordWriter(folder.file(name)) }
            #expect(fault?.code == .otherCompression)
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file(name))) == before)
        }
    }

    @Test("All members of a file are read, and a damaged one loses only data after the damage", arguments: all)
    func damaged(_ compression: Compression) throws {
        let first = try Self.member(Self.header + Self.record(1), compression)
        let later = try Self.member(Self.record(4), compression)
        // The second record of the member is flushed separately.
        let compressor = try #require(Compressor(compression))
        var middle: [UInt8] = []
        for number in [2, 3] as [UInt64] {
            let bytes = Array(Self.record(number, String(repeating: "\(number)äöü", count: 50)).utf8)
            middle += try #require(compressor.compress(bytes))
        }
        let flushed = middle.count
        middle += compressor.finish()
        #expect(try Self.read(first + middle + later) == Found(entries: ["h", "1", "2", "3", "4"]))

        // An invalid block.
        var damaged = first + middle + later
        damaged.replaceSubrange(first.count + flushed..<first.count + middle.count, with: [0xFF, 0xFF, 0xFF])
        let found = try Self.read(damaged)
        #expect(found.entries == ["h", "1", "2", "3", "?", "4"])
        guard case .compressed(let fault)? = found.damage.first else { return #expect(Bool(false), "\(found)") }
        switch fault {
        case .damaged(let place, let reason):
            #expect((first.count + flushed...first.count + flushed + 3).contains(Int(place)) && !reason.isEmpty)
            #expect(!DamagedLine(reason: .compressed(fault), path: "x", line: 1).isInterruption)
        case .truncated: Issue.record("\(fault)")
        }
        // Data after the last member that is not a member.
        let trailing = try Self.read(first + Array("garbage".utf8))
        #expect(trailing.entries == ["h", "1", "?"])
    }

    @Test("A truncated file returns a prefix of its records, and a damaged one is read without a crash", arguments: all)
    func hostile(_ compression: Compression) throws {
        let file =
            try Self.member(Self.header + Self.record(1), compression)
            + Self.member((2...6).map { Self.record($0) }.joined(), compression)
        let whole = ["h", "1", "2", "3", "4", "5", "6"]
        #expect(try Self.read(file).entries == whole)
        let folder = try Folder()
        for length in 0..<file.count {
            let found = try Self.read(Array(file.prefix(length)), in: folder)
            #expect(whole.starts(with: found.entries.filter { $0 != "?" }), "\(length): \(found)")
            // Only the border of two members is an end.
            #expect(
                found.fault != nil || found.damage.count == 1 || found.entries == ["h", "1"],
                "\(length): \(found)"
            )
            #expect(
                found.damage.allSatisfy { $0 == .compressed(.truncated(at: UInt64(length))) },
                "\(length): \(found)"
            )
        }
        for place in 0..<file.count {
            var wrong = file
            wrong[place] ^= ([0x01, 0x80, 0xFF] as [UInt8])[place % 3]
            let found = try Self.read(wrong, in: folder)
            #expect(found.entries.count < 50, "\(place)")
        }
    }

    @Test("A file that is compressed twice is reported")
    func twice() throws {
        let inner = try Self.member(Self.header, .gzip)
        let compressor = try #require(Compressor(.gzip))
        let outer = try #require(compressor.compress(inner)) + compressor.finish()
        #expect(try Self.read(outer).fault == .otherFormat(.gzip))
    }

    @Test("A growing compressed file is followed", arguments: all)
    func followed(_ compression: Compression) throws {
        let folder = try Folder()
        let path = folder.file("x\(compression.ending)")
        let writer = try RecordWriter(path, lines: .init(header: { _ in Array(Self.header.utf8) }))
        writer.flush()
        let reader = try RecordReader([path])
        reader.follows = true
        func numbers() throws -> [UInt64] {
            var numbers: [UInt64] = []
            while let entry = try reader.next() {
                switch entry {
                case .record(let line): numbers.append(line.record.sequence)
                case .damage(let line): Issue.record("\(line)")
                case .header, .gap: continue
                }
            }
            return numbers
        }
        #expect(try numbers() == [])
        // Often at the end, without anything new.
        for number in 1...40 as ClosedRange<UInt64> {
            writer.append(Self.record(number))
            #expect(writer.flush())
            #expect(try numbers() == [number])
            #expect(try numbers() == [])
        }
        writer.close()
        #expect(try numbers() == [])
    }

    @Test(
        "Compressed client logs and packet captures are read, up to where they are truncated",
        arguments: all
    )
    func foreign(_ compression: Compression) throws {
        let log = """
            DEBUG    SEND: <presence xmlns='jabber:client' id='a'/>
            DEBUG    RECV: <message xmlns='jabber:client' id='b'><body>x</body></message>

            """
        let plain = try Self.read(Array(log.utf8))
        #expect(plain.fault == nil && plain.entries.count > 2, "\(plain)")
        #expect(try Self.read(Self.member(log, compression)) == plain)
        let cut = try Self.read(Self.start(log, compression))
        #expect(cut.entries.filter { $0 != "?" } == plain.entries && cut.damage.count == 1, "\(cut)")

        let packet = PacketBuilder.version4(.client, .server, PacketBuilder.tcp(.client, .server, sequence: 1))
        let pcap = PacketBuilder.pcap([(1_700_000_000_000_000_000, packet)])
        let packets = try Self.read(pcap)
        let compressor = try #require(Compressor(compression))
        let flushed = try #require(compressor.compress(pcap))
        #expect(try Self.read(flushed + compressor.finish()) == packets)
        #expect(try Self.read(flushed).damage == [.packets(.compressed(.truncated(at: UInt64(flushed.count))))])
        let garbage = [UInt8](repeating: 0xFF, count: 8)
        guard case .packets(.compressed(.damaged))? = try Self.read(flushed + garbage).damage.first else {
            return #expect(Bool(false))
        }
    }
}
