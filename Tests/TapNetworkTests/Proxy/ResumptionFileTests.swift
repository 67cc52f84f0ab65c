import Foundation
import Glibc
import NIOCore
import NIOPosix
import Synchronization
import TapTestKit
import Testing

@testable import TapNetwork

extension ResumptionFile {
    fileprivate func knows(_ mark: [UInt8]) -> Bool { found(of: [mark]).contains(mark) }
}

/// Tests the file of sessions that cannot be resumed.
@Suite struct ResumptionFileTests {
    private final class Failures: Sendable { let told = Mutex<[String]>([]) }

    private static func mark(_ number: Int) -> [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: number >> ($0 % 4 * 8)) ^ UInt8($0) }
    }

    @Test func `marks that one process adds are known to another`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "state/xmpptap/resumption")
        let file = ResumptionFile(path: path) { Issue.record("\($0)") }
        #expect(!file.knows(Self.mark(1)))
        file.add([Self.mark(1)])
        file.add([Self.mark(2)])
        let other = ResumptionFile(path: path) { Issue.record("\($0)") }
        #expect(other.knows(Self.mark(1)) && other.knows(Self.mark(2)) && !other.knows(Self.mark(3)))
        other.add([Self.mark(3)])
        #expect(file.knows(Self.mark(3)))
        let rights = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(rights == 0o600)
    }

    @Test func `the newest marks are kept if there are too many, and a torn file keeps its complete marks`() throws {
        let folder = try TemporaryFolder()
        let most = 2 * ResumptionFile.capacity
        let path = try folder.write("", to: "resumption")
        try Data((0..<most).flatMap(Self.mark)).write(to: URL(filePath: path))
        let file = ResumptionFile(path: path) { Issue.record("\($0)") }
        #expect(file.knows(Self.mark(0)))
        file.add([Self.mark(most)])
        #expect(!file.knows(Self.mark(0)) && file.knows(Self.mark(most)) && file.knows(Self.mark(most - 1)))
        #expect(try Data(contentsOf: URL(filePath: path)).count == ResumptionFile.capacity * 16)
        try Data(Self.mark(7) + [1, 2, 3]).write(to: URL(filePath: path))
        #expect(file.knows(Self.mark(7)) && !file.knows(Self.mark(0)))
    }

    @Test func `a file that two processes shorten at the same time keeps the marks of both`() async throws {
        let folder = try TemporaryFolder()
        let most = 2 * ResumptionFile.capacity
        let full = Data((0..<most).flatMap(Self.mark))
        for round in 0..<40 {
            let path = folder.path(of: "resumption\(round)")
            try full.write(to: URL(filePath: path))
            await withTaskGroup(of: Void.self) { group in
                for process in 0..<2 {
                    group.addTask {
                        let file = ResumptionFile(path: path) { Issue.record("\($0)") }
                        for number in 0..<20 { file.add([Self.mark(most + process * 100 + number)]) }
                    }
                }
            }
            let file = ResumptionFile(path: path) { Issue.record("\($0)") }
            let lost = [0, 100].flatMap { $0..<$0 + 20 }.filter { !file.knows(Self.mark(most + $0)) }
            guard lost.isEmpty else {
                Issue.record("round \(round): \(lost.count) marks lost")
                return
            }
        }
    }

    @Test func `a locked file is read without the lock, and written after the lock is released`() throws {
        let folder = try TemporaryFolder()
        let failures = Failures()
        let path = folder.path(of: "resumption")
        let file = ResumptionFile(path: path, lockTime: .milliseconds(20)) { reason in
            failures.told.withLock { $0.append(reason) }
        }
        file.add([Self.mark(1)])
        let other = try FileHandle(forUpdating: URL(filePath: path))
        #expect(flock(other.fileDescriptor, LOCK_EX) == 0)
        file.add([Self.mark(2)])
        #expect(failures.told.withLock { $0.count } == 1)
        let another = ResumptionFile(path: path, lockTime: .milliseconds(20)) { Issue.record("\($0)") }
        #expect(file.knows(Self.mark(1)) && file.knows(Self.mark(2)) && file.hasUnwrittenMarks)
        #expect(another.knows(Self.mark(1)) && !another.knows(Self.mark(2)))
        try other.close()
        file.add([Self.mark(3)])
        #expect(!file.hasUnwrittenMarks)
        #expect(another.knows(Self.mark(2)) && another.knows(Self.mark(3)))
        #expect(try Data(contentsOf: URL(filePath: path)) == Data((1...3).flatMap(Self.mark)))
    }

    @Test func `marks that wait for a lock are written when it is released`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("", to: "resumption")
        let file = ResumptionFile(path: path, lockTime: .milliseconds(5)) { _ in }
        let other = try FileHandle(forUpdating: URL(filePath: path))
        #expect(flock(other.fileDescriptor, LOCK_EX) == 0)
        let queue = JournalQueue(file, retryInterval: .milliseconds(10))
        try await queue.add(Self.mark(1), on: MultiThreadedEventLoopGroup.singleton.any()).get()
        #expect(file.hasUnwrittenMarks)
        try other.close()
        let end = ContinuousClock.now + .seconds(60)
        while file.hasUnwrittenMarks, ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(5)) }
        #expect(try Data(contentsOf: URL(filePath: path)) == Data(Self.mark(1)))
    }

    @Test(.enabled(if: geteuid() == 0, "needs root for a small file system"))
    func `a disk with space for only some of the marks counts as full`() throws {
        let folder = try TemporaryFolder()
        let disk = folder.path(of: "disk")
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
        guard mount("tmpfs", disk, "tmpfs", 0, "size=4k") == 0 else {
            try Test.cancel("a file system cannot be mounted here")
        }
        defer { umount2(disk, Int32(MNT_DETACH)) }
        let failures = Failures()
        let file = ResumptionFile(path: disk + "/resumption") { reason in
            failures.told.withLock { $0.append(reason) }
        }
        errno = 0
        file.add((0..<300).map(Self.mark))
        #expect(failures.told.withLock { $0 } == [String(cString: strerror(ENOSPC))])
        #expect(try Data(contentsOf: URL(filePath: disk + "/resumption")).isEmpty)
        #expect(file.knows(Self.mark(299)))
    }

    @Test func `a file that cannot be written is reported once`() throws {
        let folder = try TemporaryFolder()
        let failures = Failures()
        let file = ResumptionFile(path: try folder.write("", to: "plain") + "/resumption") { reason in
            failures.told.withLock { $0.append(reason) }
        }
        file.add([Self.mark(1)])
        file.add([Self.mark(2)])
        #expect(failures.told.withLock { $0 } == ["Not a directory"])
        #expect(file.knows(Self.mark(1)) && file.hasUnwrittenMarks)
    }
}
