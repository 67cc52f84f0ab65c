import Foundation
import Glibc
import TapCapture
import Testing

@Suite struct WriterRotationTests {
    @Test func `rotated parts keep their size, their number and whole records`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 200, keep: 3))
        for number in 100..<200 { writer.append("record \(number)\n  more of \(number)\n") }
        #expect(writer.close().isEmpty)
        var all: [String] = []
        for name in ["x.log.3", "x.log.2", "x.log.1", "x.log"] {
            let text = try folder.text(name)
            #expect(text.utf8.count <= 200)
            #expect(text.utf8.count > 120 || name == "x.log")
            #expect(text.hasPrefix("header rotation dropped 0\nrecord "))
            #expect(folder.rights(name) == 0o600)
            all += text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix("header") }
        }
        #expect(access(folder.file("x.log.4"), F_OK) != 0)
        // The remaining records are the last ones, without a gap.
        let expected = (100..<200).flatMap { ["record \($0)", "  more of \($0)"] }
        #expect(all == Array(expected.suffix(all.count)))
        #expect(writer.counters.rotations == 16)
    }

    @Test func `each header has the number of records before it`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 500, keep: 1000), lines: counting)
        for number in 100..<300 {
            writer.append("record \(number)\n")
            if number == 200 {
                writer.flush()
                writer.reopen()
                #expect(eventually { (try? folder.lines("x.log").dropLast().last?.hasPrefix("header")) == true })
            }
        }
        writer.close()
        let names = (1...Int(writer.counters.rotations)).reversed().map { "x.log.\($0)" } + ["x.log"]
        var records = 0
        var headers = 0
        for line in try names.flatMap({ try folder.lines($0) }) where !line.isEmpty {
            if line.hasPrefix("header") {
                #expect(line == "header after \(records)")
                headers += 1
            } else {
                records += 1
            }
        }
        #expect(records == 200)
        #expect(headers == names.count + 1)
    }

    @Test func `no record is lost across many parts`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 5000, keep: 1000))
        for number in 0..<20_000 { writer.append("record \(number)\n") }
        writer.close()
        var numbers: [Int] = []
        let parts = Int(writer.counters.rotations)
        for name in (1...parts).reversed().map({ "x.log.\($0)" }) + ["x.log"] {
            numbers += try folder.lines(name).compactMap { $0.hasPrefix("record ") ? Int($0.dropFirst(7)) : nil }
        }
        #expect(numbers == Array(0..<20_000))
    }

    @Test func `a record larger than the size limit gets a part for itself`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 50, keep: 9))
        let large = String(repeating: "x", count: 500)
        writer.append("a\n")
        writer.append(large + "\n")
        writer.append("b\n")
        writer.append(large + "\n")
        writer.close()
        #expect(try folder.lines("x.log.3") == ["header start dropped 0", "a", ""])
        #expect(try folder.lines("x.log.2") == ["header rotation dropped 0", large, ""])
        #expect(try folder.lines("x.log.1") == ["header rotation dropped 0", "b", ""])
        #expect(try folder.lines("x.log") == ["header rotation dropped 0", large, ""])
    }

    @Test func `a file that is already full is rotated at the first record`() throws {
        let folder = try Folder()
        try folder.write(String(repeating: "old\n", count: 100), "x.log")
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 100, keep: 2))
        writer.append("new\n")
        writer.close()
        #expect(try folder.text("x.log") == "header rotation dropped 0\nnew\n")
        #expect(try folder.text("x.log.1").hasSuffix("old\nheader append dropped 0\n"))
    }

    @Test func `the old file is removed if no rotated file is kept`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 60, keep: 0))
        for number in 0..<100 { writer.append("record \(number)\n") }
        writer.close()
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["x.log"])
        #expect(try folder.text("x.log").hasSuffix("record 99\n"))
    }

    @Test func `if rotation fails, the file grows`() throws {
        let folder = try Folder()
        // A folder with something in it cannot be replaced by a file.
        try FileManager.default.createDirectory(
            atPath: folder.file("x.log.1/in the way"),
            withIntermediateDirectories: true
        )
        let events = Events()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 100, keep: 1), events: events)
        for number in 0..<30 { writer.append("record \(number)\n") }
        writer.append(String(repeating: "x", count: 500) + "\n")
        #expect(writer.close().isEmpty)
        let lines = try folder.lines("x.log").filter { $0.hasPrefix("record") }
        #expect(lines == (0..<30).map { "record \($0)" })
        #expect(Set(events.faults) == [.cannotRotate])
        // Tried again only after as much again.
        #expect(events.list.count <= 8)
        #expect(
            events.list.first
                == .notice(
                    try #require(
                        events.list.lazy.compactMap { event in
                            if case .notice(let fault) = event { fault } else { nil }
                        }.first
                    )
                )
        )
    }

    @Test func `a file of another program at the path is not renamed`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 60, keep: 5))
        writer.append("before\n")
        writer.flush()
        rename(folder.file("x.log"), folder.file("moved"))
        try folder.write("theirs\n", "x.log")
        for number in 0..<4 { writer.append("record \(number)\n") }
        writer.close()
        #expect(try folder.text("moved").hasPrefix("header start dropped 0\nbefore\nrecord 0\n"))
        #expect(try folder.text("x.log").hasPrefix("theirs\nheader rotation dropped 0\nrecord "))
        #expect(access(folder.file("x.log.1"), F_OK) != 0)
    }

    @Test func `a file truncated by another program is not rotated too early`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 100, keep: 5))
        writer.append(String(repeating: "x", count: 60) + "\n")
        writer.flush()
        truncate(folder.file("x.log"), 0)
        writer.append(String(repeating: "y", count: 60) + "\n")
        writer.close()
        #expect(try folder.text("x.log") == String(repeating: "y", count: 60) + "\n")
        #expect(writer.counters.rotations == 0)
    }

    @Test func `a file that was moved away is reopened`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"))
        writer.append("one\n")
        writer.flush()
        rename(folder.file("x.log"), folder.file("x.log.old"))
        writer.append("two\n")
        writer.reopen()
        #expect(eventually { (try? folder.text("x.log")) == "header reopened dropped 0\n" })
        writer.append("three\n")
        writer.close()
        #expect(try folder.text("x.log.old") == "header start dropped 0\none\ntwo\n")
        #expect(try folder.text("x.log") == "header reopened dropped 0\nthree\n")
        #expect(folder.rights("x.log") == 0o600)
    }

    @Test func `reopening a file that was not moved only writes a header`() throws {
        let folder = try Folder()
        let writer = try RecordWriter(folder.file("x.log"))
        writer.append("one\n")
        writer.reopen()
        #expect(eventually { (try? folder.text("x.log").hasSuffix("header reopened dropped 0\n")) == true })
        writer.append("two\n")
        writer.close()
        #expect(try folder.text("x.log") == "header start dropped 0\none\nheader reopened dropped 0\ntwo\n")
    }

    @Test func `if reopening fails, the old file is written further`() throws {
        let folder = try Folder()
        let events = Events()
        let writer = try RecordWriter(folder.file("x.log"), events: events)
        rename(folder.file("x.log"), folder.file("old"))
        symlink(folder.file("elsewhere"), folder.file("x.log"))
        writer.reopen()
        #expect(events.wait { if case .notice = $0 { true } else { false } })
        writer.append("two\n")
        writer.close()
        #expect(try folder.text("old") == "header start dropped 0\ntwo\n")
        #expect(events.faults == [.isLink])
        #expect(access(folder.file("elsewhere"), F_OK) != 0)
    }

    @Test func `numbered files are new files, and keep their names`() throws {
        let folder = try Folder()
        try folder.write("theirs\n", "x-0002.xtap")
        let destination = RecordWriter.Destination.numbered(stem: folder.file("x"), ending: ".xtap")
        var options = RecordWriter.Options()
        options.rotation = .init(size: 50, keep: 1)
        let writer = try RecordWriter(destination, options: options, lines: markers)
        for number in 1...4 { writer.append("record \(number) of twenty bytes\n") }
        writer.close()
        #expect(try folder.lines("x-0002.xtap") == ["theirs", ""])
        #expect(try folder.lines("x-0004.xtap") == ["header rotation dropped 0", "record 3 of twenty bytes", ""])
        #expect(try folder.lines("x-0005.xtap") == ["header rotation dropped 0", "record 4 of twenty bytes", ""])
        #expect(access(folder.file("x-0003.xtap"), F_OK) != 0, "one full file is kept")
    }

    @Test func `numbered files sort by name, and all are kept without a limit`() throws {
        let folder = try Folder()
        var options = RecordWriter.Options()
        options.rotation = .init(size: 50, keep: .max)
        let destination = RecordWriter.Destination.numbered(stem: folder.file("x"), ending: ".xtap")
        let writer = try RecordWriter(destination, options: options, lines: markers)
        for number in 101...112 { writer.append("record \(number) of twenty bytes\n") }
        writer.close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names.count == 12)
        for (name, number) in zip(names, 101...112) {
            #expect(try folder.lines(name).contains("record \(number) of twenty bytes"))
        }
    }

    @Test func `Numbers in the names of rotated captures sort by time, and the oldest file is deleted first`() throws {
        let folder = try Folder()
        let foreign = ["x-1.xtap", "x-old.xtap", "xx-0001.xtap"]
        for name in foreign { try folder.write("theirs\n", name) }
        for (first, keep) in [(101, Int.max), (113, 12)] {
            // A process that another test starts has the lock of the first writer's file until it executes its program.
            var writer: RecordWriter?
            let isOpen = eventually {
                writer = try? RecordWriter(folder.file("x.xtap"), rotation: .init(size: 50, keep: keep))
                return writer != nil
            }
            guard isOpen, let writer else {
                Issue.record("x.xtap stays in use")
                return
            }
            for number in first..<(first + 12) { writer.append("record \(number) of twenty bytes\n") }
            writer.close()
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        let full = (12...23).map { "x-00\($0).xtap" }
        #expect(names == full + ["x-1.xtap", "x-old.xtap", "x.xtap", "xx-0001.xtap"])
        for (name, number) in zip(full + ["x.xtap"], 112...124) {
            #expect(try folder.lines(name).contains("record \(number) of twenty bytes"), "\(name)")
        }
        for name in foreign { #expect(try folder.text(name) == "theirs\n") }
    }

    @Test func `a file without records is removed on request`() throws {
        let folder = try Folder()
        try folder.write("old\n", "old.log")
        for name in ["old.log", "unused.log", "used.log", "kept.log"] {
            let writer = try RecordWriter(folder.file(name))
            if name == "used.log" { writer.append("1\n") }
            writer.close(removingUnused: name != "kept.log")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(left == ["kept.log", "old.log", "used.log"])
    }

    @Test func `a file that has reached its maximum age is rotated`() throws {
        let folder = try Folder()
        let age = Duration.milliseconds(200)
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(keep: 3, age: age))
        writer.append("a\n")
        writer.flush()
        usleep(250_000)
        writer.append("b\n")
        writer.close()
        #expect(try folder.lines("x.log.1") == ["header start dropped 0", "a", ""])
        #expect(try folder.lines("x.log") == ["header rotation dropped 0", "b", ""])
    }

    @Test func `old files are removed when a new one is opened`() throws {
        let folder = try Folder()
        let names = ["x.log.1", "x.log.2", "xmpptap-20200101T000000Z-1.xtap", "other-20200101T000000Z-1.xtap"]
        for name in names {
            try folder.write("old\n", name)
            if name == "x.log.1" { continue }
            let long = timespec(tv_sec: 1_000_000, tv_nsec: 0)
            #expect(utimensat(AT_FDCWD, folder.file(name), [long, long], 0) == 0)
        }
        let rotation = RecordWriter.Rotation(keepAge: .seconds(86_400))
        try RecordWriter(folder.file("x.log"), rotation: rotation).close()
        var options = RecordWriter.Options()
        options.rotation = rotation
        let stem = folder.file("xmpptap-20261121T172242Z")
        try RecordWriter(.numbered(stem: stem, ending: ".xtap"), options: options, lines: markers).close()
        let left = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(left == ["other-20200101T000000Z-1.xtap", "x.log", "x.log.1", "xmpptap-20261121T172242Z-0001.xtap"])
    }

    @Test func `a file with content is refused if appending is not allowed`() throws {
        let folder = try Folder()
        try folder.write("old\n", "x.log")
        try folder.write("", "empty.log")
        #expect { try RecordWriter(folder.file("x.log")) { $0.appends = false } } throws: {
            ($0 as? WriterFault)?.code == .exists
        }
        #expect(try folder.text("x.log") == "old\n")
        try RecordWriter(folder.file("empty.log")) { $0.appends = false }.close()
        #expect(try folder.text("empty.log") == "header start dropped 0\n")
    }

    @Test func `renaming keeps the records, and does not replace another file`() throws {
        let folder = try Folder()
        try folder.write("theirs\n", "b.xtap")
        let writer = try RecordWriter(folder.file("a.xtap")) { $0.syncs = true }
        writer.append("1\n")
        writer.rename(to: folder.file("b.xtap"))
        #expect(eventually { access(folder.file("b-2.xtap"), F_OK) == 0 })
        writer.append("2\n")
        writer.close()
        #expect(try folder.text("b.xtap") == "theirs\n")
        #expect(try folder.lines("b-2.xtap") == ["header start dropped 0", "1", "2", ""])
        #expect(access(folder.file("a.xtap"), F_OK) != 0)
    }
}
