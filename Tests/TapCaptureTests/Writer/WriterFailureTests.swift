import Dispatch
import Foundation
import Glibc
import Synchronization
import TapCapture
import TapTestKit
import Testing

@Suite struct WriterFailureTests {
    private func isFailure(_ event: RecordWriter.Event) -> Bool {
        if case .failed = event { true } else { false }
    }

    private func text(from descriptor: Int32) -> String {
        var buffer = [UInt8](repeating: 0, count: 1000)
        let count = read(descriptor, &buffer, buffer.count)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }

    private func isRecovery(_ event: RecordWriter.Event) -> Bool {
        if case .recovered = event { true } else { false }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"))
    func `on a full disk, records wait, then are dropped, and the loss is reported`() throws {
        guard let disk = try SmallDisk(kilobytes: 64) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let events = Events()
        let writer = try RecordWriter(disk.file("x.log"), events: events) {
            $0.capacity = 20_000
            $0.retryInterval = .milliseconds(20)
        }
        writer.append("first\n")
        writer.flush()
        disk.fill(leaving: 1)
        let filler = String(repeating: "x", count: 80)
        var outcomes: [RecordWriter.Outcome] = []
        for number in 0..<1000 {
            outcomes.append(writer.append("record \(number) \(filler)\n"))
            if number == 100 { #expect(events.wait(for: isFailure)) }
        }
        // The relay is never stopped by it.
        #expect(!writer.isCongested)
        #expect(!writer.flush(within: .milliseconds(50)))
        let firstDropped = try #require(outcomes.firstIndex(of: .dropped))
        #expect(outcomes[firstDropped...].allSatisfy { $0 == .dropped })
        #expect(writer.counters.dropped.records == UInt64(1000 - firstDropped))
        #expect(writer.counters.pending <= 20_000)

        disk.empty()
        #expect(events.wait(for: isRecovery))
        writer.append("last\n")
        let loss = writer.close()
        #expect(loss.records == UInt64(1000 - firstDropped))

        let bytes = (firstDropped..<1000).reduce(0) { $0 + "record \($1) \(filler)\n".utf8.count }
        #expect(loss.bytes == UInt64(bytes))
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: disk.file("x.log"))), as: UTF8.self)
        // Each line once, none torn, and the loss reported exactly at its place.
        #expect(
            text.split(separator: "\n").map(String.init)
                == ["header start dropped 0", "first"] + (0..<firstDropped).map { "record \($0) \(filler)" }
                + ["lost \(loss.records) records, \(loss.bytes) bytes", "header loss dropped \(loss.records)", "last"]
        )
        #expect(events.list.count(where: isFailure) == 1)
        // Room may be reported behind the recovery.
        #expect(events.list.last { $0 != .room } == .recovered(loss))
        #expect(events.faults == [.diskFull])
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"))
    func `waiting records and the loss are written before the next header`() throws {
        guard let disk = try SmallDisk(kilobytes: 64) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let events = Events()
        let lines = RecordWriter.Lines(
            header: { Array("header after \($0.records)\n".utf8) },
            loss: { Array("lost \($0.records)\n".utf8) }
        )
        let writer = try RecordWriter(disk.file("x.log"), events: events, lines: lines) {
            $0.capacity = 20_000
            $0.retryInterval = .milliseconds(20)
        }
        disk.fill(leaving: 0)
        let filler = String(repeating: "x", count: 80)
        for number in 0..<1000 {
            writer.append("record \(number) \(filler)\n")
            if number == 100 { #expect(events.wait(for: isFailure)) }
        }
        disk.empty()
        #expect(events.wait(for: isRecovery))
        writer.append("last\n")
        writer.flush()
        writer.reopen()
        func text() throws -> String {
            String(decoding: try Data(contentsOf: URL(fileURLWithPath: disk.file("x.log"))), as: UTF8.self)
        }
        #expect(eventually { (try? text().split(separator: "\n").last?.hasPrefix("header")) == true })
        writer.append("behind\n")
        writer.close()
        var records = 0
        var headers = 0
        for line in try text().split(separator: "\n") {
            guard line.hasPrefix("header") else {
                records += 1
                continue
            }
            #expect(line == "header after \(records)")
            headers += 1
        }
        #expect(headers == 3)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"), arguments: ["x.log", "x.log.gz"])
    func `a disk that is full for a moment loses nothing`(_ name: String) throws {
        guard let disk = try SmallDisk(kilobytes: 64) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let events = Events()
        let writer = try RecordWriter(disk.file(name), events: events) { $0.retryInterval = .milliseconds(20) }
        disk.fill(leaving: 0)
        // More than a page, compressed too.
        let records = (0..<200 as Range<UInt64>).map { number in
            let filler = (1...6).map { String((number * 6 + $0) &* 0x9E37_79B9_7F4A_7C15, radix: 16) }
            return "record \(number) \(filler.joined())"
        }
        for record in records { #expect(writer.append(record + "\n") == .taken) }
        #expect(events.wait(for: isFailure))
        disk.empty()
        #expect(events.wait(for: isRecovery))
        #expect(writer.close().isEmpty)
        let text = try contents(disk.file(name))
        #expect(
            text.split(separator: "\n").map(String.init)
                == ["header start dropped 0"] + records
        )
        #expect(events.list == [try #require(events.list.first), .recovered(.init())])
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"))
    func `removing the file frees space, and the log continues`() throws {
        guard let disk = try SmallDisk(kilobytes: 64) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let events = Events()
        let writer = try RecordWriter(disk.file("x.log"), events: events) { $0.retryInterval = .milliseconds(20) }
        let filler = String(repeating: "x", count: 80)
        for number in 0..<1000 { writer.append("record \(number) \(filler)\n") }
        #expect(events.wait(for: isFailure))
        unlink(disk.file("x.log"))
        _ = eventually(1) { (try? Data(contentsOf: URL(fileURLWithPath: disk.file("x.log"))).isEmpty) == false }
        writer.close()
        let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: disk.file("x.log"))), as: UTF8.self)
        let lines = text.split(separator: "\n").map(String.init)
        // The records of the deleted file are lost; the one that was torn in it is whole in the new one.
        let lost = try #require(lines.first { $0.hasPrefix("lost ") }?.split(separator: " ")[1])
        #expect(lines.first == "header reopened dropped \(lost)")
        #expect(lines.contains("header loss dropped \(lost)"))
        let numbers = lines.filter { $0.hasPrefix("record ") && $0.hasSuffix(filler) }
            .compactMap { Int($0.split(separator: " ")[1]) }
        #expect(numbers.count == lines.count - 3)
        #expect(Int(lost).map { Array($0..<1000) } == numbers)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"))
    func `closing on a full disk ends, and counts the lost records`() throws {
        guard let disk = try SmallDisk(kilobytes: 64) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let events = Events()
        let writer = try RecordWriter(disk.file("x.log"), events: events)
        disk.fill(leaving: 0)
        // Fill the rest of the file's first page as well.
        writer.append(String(repeating: "x", count: 5000) + "\n")
        for _ in 0..<10 { writer.append("record\n") }
        let start = Date()
        let loss = writer.close()
        #expect(Date().timeIntervalSince(start) < 5)
        #expect(loss.records == 11)
        #expect(writer.counters.dropped == loss)
        #expect(events.faults == [.diskFull])
    }

    @Test func `a broken pipe is reported once, and lost records are counted`() throws {
        for nonblocking in [false, true] {
            let pipe = Pipe(nonblocking: nonblocking)
            let events = Events()
            let writer = try RecordWriter("/dev/fd/\(pipe.writer)", events: events, lines: .init())
            writer.append("a\n")
            writer.flush()
            #expect(pipe.drain(patience: 50) == Array("a\n".utf8))
            pipe.closeReader()
            // A process that another test starts has the reading end for a moment.
            #expect(
                eventually {
                    writer.append("b\n")
                    return events.list.contains(where: isFailure)
                }
            )
            #expect(eventually { writer.append("c\n") == .dropped })
            #expect(!writer.flush())
            let loss = writer.close()
            #expect(loss.records >= 2)
            #expect(loss.bytes == loss.records * 2)
            #expect(events.faults == [.brokenPipe])
            guard case .failed(let fault) = try #require(events.list.first) else { return }
            #expect(fault.description == "cannot write /dev/fd/\(pipe.writer): its reader has closed the pipe")
        }
    }

    @Test func `writing to a socket that the peer has closed is a broken pipe`() throws {
        var ends: [Int32] = [-1, -1]
        socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        let events = Events()
        let writer = try RecordWriter("/dev/fd/\(ends[0])", events: events, lines: .init())
        close(ends[1])
        writer.append("a\n")
        #expect(events.wait(for: isFailure))
        #expect(writer.close().records == 1)
        #expect(events.faults == [.brokenPipe])
        close(ends[0])
    }

    @Test func `a slowly read pipe loses nothing and stops the sources`() throws {
        for nonblocking in [false, true] {
            let pipe = Pipe(nonblocking: nonblocking, capacity: 4096)
            let events = Events()
            let writer = try RecordWriter("/dev/fd/\(pipe.writer)", events: events, lines: .init()) {
                $0.capacity = 100_000
                $0.stallNotice = .seconds(600)
            }
            var expected: [UInt8] = []
            var outcome = RecordWriter.Outcome.taken
            var number = 0
            while outcome == .taken, number < 100_000 {
                let line = Array("record \(number)\n".utf8)
                outcome = writer.append(line)
                expected += line
                number += 1
            }
            #expect(outcome == .congested)
            #expect(writer.isCongested)
            #expect(!events.list.contains(.room))
            #expect(!writer.flush(within: .milliseconds(50)))
            #expect(pipe.drain() == expected)
            #expect(events.wait { $0 == .room })
            #expect(!writer.isCongested)
            #expect(writer.append("x\n") == .taken)
            #expect(writer.close().isEmpty)
            #expect(events.list == [.room])
            #expect(pipe.drain() == Array("x\n".utf8))
        }
    }

    @Test func `a reader that stalls is reported once, and again when it continues`() throws {
        let pipe = Pipe(capacity: 4096)
        let events = Events()
        let writer = try RecordWriter("/dev/fd/\(pipe.writer)", events: events, lines: .init()) {
            $0.capacity = 100_000
            $0.stallNotice = .milliseconds(300)
        }
        for _ in 0..<2 {
            let before = events.list.count
            while writer.append("record\n") == .taken {}
            #expect(eventually { events.list.count > before })
            usleep(400_000)
            #expect(events.list[before...] == [.stalled], "once")
            _ = pipe.drain()
            #expect(eventually { events.list.count == before + 3 })
            #expect(events.list[before + 1] == .room)
            guard case .flowing(let duration) = events.list[before + 2] else {
                Issue.record("\(events.list[before...])")
                return
            }
            #expect(duration >= .milliseconds(700))
        }
        #expect(writer.close().isEmpty)
    }

    @Test func `a thread that appends to a full buffer waits`() throws {
        let pipe = Pipe(capacity: 8192)
        let writer = try RecordWriter("/dev/fd/\(pipe.writer)", lines: .init()) { $0.capacity = 10_000 }
        let line = Array((String(repeating: "x", count: 99) + "\n").utf8)
        let thread = Thread { for _ in 0..<5000 { writer.append(line) } }
        thread.start()
        #expect(eventually { writer.counters.waits > 0 })
        #expect(writer.counters.pending <= 10_000)
        var bytes = 0
        while bytes < 500_000 {
            let count = pipe.drain(patience: 1000).count
            #expect(count > 0)
            if count == 0 { break }
            bytes += count
        }
        #expect(bytes == 500_000)
        #expect(writer.close().isEmpty)
    }

    @Test func `closing does not wait forever for a reader that has stopped`() throws {
        let pipe = Pipe(capacity: 8192)
        let writer = try RecordWriter("/dev/fd/\(pipe.writer)", lines: .init())
        let record = String(repeating: "x", count: 999) + "\n"
        for _ in 0..<1000 { writer.append(record) }
        let start = Date()
        let loss = writer.close(within: .milliseconds(300))
        #expect(Date().timeIntervalSince(start) < 5)
        let read = pipe.drain().count
        #expect(read >= 4096)
        // Torn records count as lost.
        #expect(loss.records == 1000 - UInt64(read / 1000))
    }

    @Test func `a FIFO waits for its next reader`() throws {
        let folder = try Folder()
        let path = folder.file("fifo")
        mkfifo(path, 0o600)
        let refusal = #expect(throws: WriterFault.self) { try RecordWriter(path) }
        #expect(refusal?.description == "no process reads from \(path); start its reader first")
        let first = open(path, O_RDONLY | O_NONBLOCK)
        let events = Events()
        let writer = try RecordWriter(path, events: events) { $0.retryInterval = .milliseconds(20) }
        writer.append("a\n")
        writer.flush()
        #expect(text(from: first) == "header start dropped 0\na\n")
        close(first)
        writer.append("b\n")
        #expect(events.wait(for: isFailure))
        writer.append("c\n")
        let second = open(path, O_RDONLY | O_NONBLOCK)
        #expect(events.wait(for: isRecovery))
        #expect(writer.close().isEmpty)
        #expect(text(from: second) == "header reopened dropped 0\nb\nc\n")
        close(second)
    }

    @Test func `an event callback may append records`() throws {
        let box = WriterBox()
        let pipe = Pipe()
        let failing = try RecordWriter(
            .path("/dev/fd/\(pipe.writer)"),
            onEvent: { event in if case .failed = event { box.append("told\n") } }
        )
        box.writer = failing
        pipe.closeReader()
        failing.append("a\n")
        // Both the record and the text that the callback appended, without waiting for itself.
        #expect(eventually { failing.counters.dropped.records == 2 })
        box.writer = nil
        failing.close()
    }

    @Test func `a writer that opens its file later keeps the records appended before`() throws {
        let folder = try Folder()
        let gate = DispatchSemaphore(value: 0)
        let lines = RecordWriter.Lines(header: { _ in
            gate.wait()
            return Array("header\n".utf8)
        })
        let writer = try RecordWriter(
            .path(folder.file("x.log")),
            lines: lines,
            onOpeningFailure: { Issue.record("\($0)") }
        )
        // The file system takes its time.
        #expect(writer.append(Array("one".utf8)) == .taken)
        writer.rename(to: folder.file("y.log"))
        gate.signal()
        #expect(writer.close().isEmpty)
        let written = try folder.lines("y.log")
        #expect(written == ["header", "one", ""], "\(written)")
    }

    @Test func `a writer that cannot open its file reports this once, and discards its records`() throws {
        let folder = try Folder()
        let faults = Mutex<[WriterFault]>([])
        let writer = try RecordWriter(
            .path(folder.file("none/x.log")),
            onOpeningFailure: { fault in
                faults.withLock { $0.append(fault) }
            }
        )
        writer.append(Array("one".utf8))
        #expect(eventually { writer.isFinished })
        #expect(writer.append(Array("two".utf8)) == .dropped)
        #expect(!writer.isCongested && writer.flush() == false)
        #expect(writer.close().isEmpty)
        #expect(eventually { faults.withLock { $0.map(\.code) } == [.cannotOpen] })
    }
}

/// Lets a callback reach the writer it belongs to.
private final class WriterBox: @unchecked Sendable {
    private let lock = NSLock()
    private var value: RecordWriter?

    var writer: RecordWriter? {
        get { lock.withLock { value } }
        set { lock.withLock { value = newValue } }
    }

    func append(_ text: String) { writer?.append(text) }
}
