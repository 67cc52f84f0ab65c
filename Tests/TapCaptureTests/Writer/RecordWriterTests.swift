import Foundation
import Glibc
import TapCapture
import TapRecord
import Testing

@Suite struct RecordWriterTests {
    @Test func `records follow the header in order`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"))
        for number in 0..<1000 { #expect(writer.append("record \(number)\n") == .taken) }
        #expect(writer.close().isEmpty)
        let lines = try folder.lines("x.log")
        #expect(lines == ["header start dropped 0"] + (0..<1000).map { "record \($0)" } + [""])
        #expect(folder.rights("x.log") == 0o600)
    }

    @Test func `all ways to append a record write the same bytes`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init())
        var line = LineBuffer()
        line.append("buffer\n")
        writer.append(line)
        writer.append(line.span)
        writer.append(Array("no newline".utf8))
        writer.append(Array("two\nlines\n".utf8))
        writer.close()
        #expect(try folder.text("x.log") == "buffer\nbuffer\nno newline\ntwo\nlines\n")
    }

    @Test func `records reach the file without a flush`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init())
        for number in 1...6 {
            // After a record the thread polls for others for a while, and then has to be woken.
            if number.isMultiple(of: 2) { usleep(60_000) }
            writer.append("\(number)\n")
            #expect(eventually(5) { (try? folder.text("x.log").hasSuffix("\(number)\n")) == true })
        }
        writer.close()
    }

    @Test func `a flush waits for all records appended before`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init()) { $0.flushInterval = .seconds(60) }
        #expect(writer.flush())
        writer.append("a\n")
        #expect(writer.flush())
        #expect(try folder.text("x.log") == "a\n")
        let large = String(repeating: "x", count: 300_000) + "\n"
        writer.append(large)
        // Enough for a separate write, long before the interval is over.
        #expect(eventually { (try? folder.text("x.log").utf8.count) == 300_003 })
        writer.append("last\n")
        writer.close()
        #expect(try folder.text("x.log").hasSuffix("x\nlast\n"))
    }

    @Test func `concurrent appends lose no record and keep the order of each thread`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init()) { $0.capacity = 64 << 10 }
        let perThread = 5000
        let threads = (0..<8).map { number in
            let thread = Thread {
                for index in 0..<perThread {
                    writer.append("\(number) \(index) \(String(repeating: "y", count: index % 50))\n")
                }
            }
            thread.start()
            return thread
        }
        #expect(eventually(60) { threads.allSatisfy(\.isFinished) })
        #expect(writer.close().isEmpty)
        var next = [Int](repeating: 0, count: 8)
        for line in try folder.lines("x.log").dropLast() {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            let number = try #require(Int(words[0]))
            #expect(Int(words[1]) == next[number])
            #expect(words[2].count == next[number] % 50)
            next[number] += 1
        }
        #expect(next == [Int](repeating: perThread, count: 8))
        #expect(writer.counters.records == 40_000)
        #expect(writer.counters.pending == 0)
        #expect(writer.counters.pendingPeak <= 64 << 10)
    }

    @Test func `a record larger than the buffer is written`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init()) { $0.capacity = 1000 }
        let large = String(repeating: "x", count: 5000) + "\n"
        writer.append("a\n")
        writer.append(large)
        writer.append("b\n")
        #expect(writer.close().isEmpty)
        #expect(try folder.text("x.log") == "a\n" + large + "b\n")
    }

    @Test func `closing twice and appending after the close are harmless`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), lines: .init())
        writer.append("a\n")
        writer.close()
        #expect(writer.append("late\n") == .dropped)
        #expect(writer.close() == writer.counters.dropped)
        #expect(writer.counters.dropped.records == 1)
        #expect(try folder.text("x.log") == "a\n")
    }

    @Test func `a writer that is released still writes its pending records`() throws {
        let folder = try Folder()
        do {
            let writer = try RecordWriter(folder.file("x.log"), lines: .init()) { $0.flushInterval = .seconds(60) }
            writer.append("a\n")
        }
        #expect(eventually { (try? folder.text("x.log")) == "a\n" })
    }
}

@Suite struct WriterOpeningTests {
    private func message(_ path: String) -> String? {
        do throws(WriterFault) {
            try RecordWriter(path).close()
            return nil
        } catch {
            return error.description
        }
    }

    @Test func `records are appended to an existing file`() throws {
        let folder = try Folder()
        try folder.write("old\n", "x.log")
        let writer = try RecordWriter(folder.file("x.log"))
        writer.append("new\n")
        writer.close()
        #expect(try folder.text("x.log") == "old\nheader append dropped 0\nnew\n")
    }

    @Test func `an incomplete last line of an existing file is ended first`() throws {
        let folder = try Folder()
        try folder.write("old\nto", "x.log")
        try RecordWriter(folder.file("x.log")).close()
        #expect(try folder.text("x.log") == "old\nto\nheader append dropped 0\n")
        try folder.write("", "empty.log")
        try RecordWriter(folder.file("empty.log")).close()
        #expect(try folder.text("empty.log") == "header start dropped 0\n")
    }

    @Test func `an existing file loses the rights of other users`() throws {
        let folder = try Folder()
        for (before, after) in [(0o644, 0o640), (0o777, 0o640), (0o600, 0o600), (0o640, 0o640)] as [(mode_t, mode_t)] {
            try folder.write("old\n", "x.log")
            chmod(folder.file("x.log"), before)
            try RecordWriter(folder.file("x.log")).close()
            #expect(folder.rights("x.log") == after)
        }
    }

    @Test func `symbolic links are refused`() throws {
        let folder = try Folder()
        try folder.write("precious\n", "target")
        symlink(folder.file("target"), folder.file("link.log"))
        symlink(folder.file("nothing"), folder.file("dangling.log"))
        for name in ["link.log", "dangling.log"] {
            let path = folder.file(name)
            #expect(message(path) == "\(path) is a symbolic link, which logs do not follow; name the file itself")
        }
        #expect(try folder.text("target") == "precious\n")
        #expect(access(folder.file("nothing"), F_OK) != 0)
    }

    @Test func `a path that is not a file is refused with the reason`() throws {
        let folder = try Folder()
        #expect(message(folder.path) == "\(folder.path) is not a file, pipe or terminal; choose another name")
        let missing = folder.file("missing/x.log")
        let absent = "the folder \(folder.file("missing"))/ does not exist; create it first"
        #expect(message(missing) == "cannot open \(missing) for writing: \(absent)")
        // As typed for a capture of numbered files.
        let numbered = folder.file("missing") + "/"
        #expect(message(numbered) == "cannot open \(numbered) for writing: \(absent)")
        #expect(WriterFault.creating(missing)?.description == message(missing))
        #expect(WriterFault.creating(folder.file("x.log")) == nil)
        let below = folder.file("file/x.log")
        try folder.write("", "file")
        #expect(message(below) == "cannot open \(below) for writing: Not a directory")
        #expect(message("/dev/fd/987654") == "cannot open /dev/fd/987654 for writing: Bad file descriptor")
        #expect(message("/dev/fd/x")?.hasPrefix("cannot open /dev/fd/x for writing: ") == true)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root")) func `a file of another user is refused`() throws {
        let folder = try Folder()
        try folder.write("theirs\n", "x.log")
        chown(folder.file("x.log"), 65_534, 65_534)
        let path = folder.file("x.log")
        #expect(message(path) == "\(path) belongs to another user; choose another name or remove it")
        #expect(try folder.text("x.log") == "theirs\n")
    }

    @Test func `a file has only one writer at a time`() throws {
        let folder = try Folder()
        let path = folder.file("x.log")
        let writer = try RecordWriter(path)
        #expect(
            message(path) == "\(path) is being written by another log or another xmpptap; choose another name"
        )
        writer.close()
        #expect(eventually { message(path) == nil })
    }

    @Test func `a device is written without rotation`() throws {
        let writer = try RecordWriter("/dev/null", rotation: .init(size: 10))
        for _ in 0..<100 { writer.append("gone\n") }
        writer.reopen()
        #expect(writer.close().isEmpty)
        #expect(writer.counters.records == 100)
        #expect(writer.counters.rotations == 0)
    }

    @Test func `a full device is reported at the start`() {
        #expect(message("/dev/full") == "cannot write /dev/full: No space left on device")
    }

    @Test func `an open descriptor of this process can be the destination`() throws {
        let pipe = Pipe()
        let writer = try RecordWriter("/dev/fd/\(pipe.writer)")
        writer.append("a\n")
        writer.close()
        #expect(pipe.drain() == Array("header start dropped 0\na\n".utf8))
        // The copy was the writer's own; ours still works.
        #expect(write(pipe.writer, "b", 1) == 1)
    }
}
