import Foundation
import Glibc
import Synchronization
import TapTestKit
import Testing

@testable import TapCapture

/// The state of files on the disk, and its time.
@Suite struct DurabilityTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    // MARK: - A writer that is killed

    private final class Counts: Sendable {
        let handed = Atomic<Int>(0)
        let ticks = Atomic<Int>(0)
    }

    /// Writes records until the process kills itself; beside them a thread that sleeps for 20 ms at a time notes in `ticks`
    /// how many records had been handed over.
    private static func flood(_ path: String, ticks: String, interval: Int) throws {
        let writer = try RecordWriter(path, lines: .init()) {
            $0.flushInterval = .milliseconds(interval)
            // Time brings the records to the file, and not their size.
            $0.flushSize = $0.capacity
        }
        let counts = Counts()
        Thread {
            let file = open(ticks, O_CREAT | O_WRONLY | O_APPEND, 0o600)
            while true {
                usleep(20_000)
                let line = Array("\(counts.handed.load(ordering: .acquiring))\n".utf8)
                _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
                counts.ticks.add(1, ordering: .relaxed)
            }
        }.start()
        let filler = String(repeating: "x", count: 500)
        for number in 1... {
            writer.append("\(number) \(filler)\n")
            counts.handed.store(number, ordering: .releasing)
            usleep(200)
            if counts.ticks.load(ordering: .relaxed) >= 40 { kill(getpid(), SIGKILL) }
        }
    }

    /// The last record in the file, and how many had been handed over at each tick.
    private func left(_ name: String) throws -> (last: Int, ticks: [Int]) {
        let text = try folder.text(name)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        let numbers = lines.map { Int($0.split(separator: " ")[0]) ?? -1 }
        #expect(numbers == Array(1..<(numbers.count + 1)), "each record once, in order, and whole")
        #expect(lines.allSatisfy { $0.utf8.count > 500 })
        return (numbers.count, try folder.lines("\(name).ticks").compactMap { Int($0) })
    }

    /// The clock is a thread that sleeps as long as the writer does, so that a slow machine is slow for both.
    @Test func `A writer killed under load loses only the last moments`() async throws {
        let (path, slow) = (folder.file("killed"), folder.file("slow"))
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            try Self.flood(path, ticks: path + ".ticks", interval: 20)
        }
        let (last, ticks) = try left("killed")
        // The writer has one wait of 20 ms; ten are allowed.
        let due = try #require(ticks.dropLast(10).last)
        #expect(due > 0 && last >= due, "\(last) of \(ticks)")
        // The same with a writer that waits for long: the figures tell the two apart.
        await #expect(processExitsWith: .signal(SIGKILL)) { [slow = slow as String] in
            try Self.flood(slow, ticks: slow + ".ticks", interval: 3_600_000)
        }
        let other = try left("slow")
        #expect(try other.last < #require(other.ticks.dropLast(10).last))
    }

    // MARK: - A writer that synchronizes

    @Test func `Each write is synchronised to disk, only if requested`() throws {
        let (synced, plain) = (folder.file("synced"), folder.file("plain"))
        let writers = [try RecordWriter(synced) { $0.syncs = true }, try RecordWriter(plain)]
        for number in 1...5 {
            for writer in writers {
                writer.append("record \(number)\n")
                #expect(writer.flush())
            }
            #expect(eventually { DataSync.count(synced) >= number })
        }
        for writer in writers { writer.close() }
        #expect(DataSync.count(plain) == 0)
    }

    @Test func `A failed disk synchronisation is reported, and nothing is lost once it succeeds again`() throws {
        let path = folder.file("x.log")
        let events = Events()
        let writer = try RecordWriter(path, events: events) {
            $0.syncs = true
            $0.retryInterval = .milliseconds(20)
        }
        DataSync.fail(path, true)
        writer.append("one\n")
        #expect(events.wait { if case .failed = $0 { true } else { false } })
        #expect(events.faults == [.writeFailed])
        writer.append("two\n")
        DataSync.fail(path, false)
        #expect(events.wait { if case .recovered = $0 { true } else { false } })
        writer.append("three\n")
        #expect(writer.close().isEmpty)
        #expect(try folder.lines("x.log").filter { !$0.hasPrefix("header") } == ["one", "two", "three", ""])
        #expect(DataSync.count(path) > 0)
    }

    // MARK: - A file that may not grow

    @Test func `A file size limit is handled like a full disk`() async throws {
        let path = folder.file("limited")
        await #expect(processExitsWith: .success) { [path = path as String] in
            signal(SIGXFSZ, SIG_IGN)
            var limit = rlimit()
            #expect(getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            limit.rlim_cur = 2000
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            let events = Events()
            let writer = try RecordWriter(path, events: events) {
                $0.retryInterval = .milliseconds(20)
                $0.capacity = 20_000
            }
            let filler = String(repeating: "x", count: 80)
            for number in 0..<40 { writer.append("record \(number) \(filler)\n") }
            #expect(events.wait { if case .failed = $0 { true } else { false } })
            #expect(events.faults == [.diskFull])
            limit.rlim_cur = limit.rlim_max
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
            #expect(events.wait { if case .recovered = $0 { true } else { false } })
            #expect(writer.close().isEmpty)
        }
        let lines = try folder.lines("limited").dropFirst().dropLast()
        #expect(
            lines.map { String($0.prefix { $0 != "x" }) } == (0..<40).map { "record \($0) " },
            "each once, none torn"
        )
    }

    // MARK: - A file that cannot be renamed

    @Test func `A file that cannot be renamed keeps its name and gets all records`() throws {
        let writer = try RecordWriter(folder.file("a.xtap"))
        writer.append("1\n")
        writer.rename(to: folder.file("nowhere/b.xtap"))
        writer.append("2\n")
        #expect(writer.flush())
        #expect(writer.close().isEmpty)
        #expect(try folder.lines("a.xtap") == ["header start dropped 0", "1", "2", ""])
    }
}
