import Dispatch
import Foundation
import Glibc
import TapTestKit
import Testing

@testable import xmpptap

struct KeyLogFileTests {
    @Test(arguments: [false, true])
    func `A FIFO is refused at once, with or without a reader`(hasReader: Bool) throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "keys")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = hasReader ? open(path, O_RDONLY | O_NONBLOCK) : -1
        defer { if hasReader { close(reader) } }
        let failure = #expect(throws: Failure.self) { try KeyLogFile(path) }
        #expect(failure?.message == "--keylog \(path) is not a regular file; choose another name")
        #expect(failure?.status == .file)
        withExtendedLifetime(folder) {}
    }

    @Test func `Lines are appended without waiting for the disk, and written completely by a flush`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "keys")
        let queue = DispatchQueue(label: "test")
        let file = try KeyLogFile(path, writingOn: queue)
        // The disk takes nothing.
        queue.suspend()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for number in 0..<100 { file.append("CLIENT_RANDOM \(thread) \(number)") }
        }
        #expect(try String(contentsOfFile: path, encoding: .utf8).isEmpty)
        queue.resume()
        file.flush(within: .seconds(60))
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let expected = (0..<4).flatMap { thread in (0..<100).map { "CLIENT_RANDOM \(thread) \($0)" } }
        #expect(lines.map(String.init).sorted() == expected.sorted())
        withExtendedLifetime(folder) {}
    }

    @Test func `Lines beyond the limit are lost while the disk is blocked, and later ones are written`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "keys")
        let queue = DispatchQueue(label: "test")
        let file = try KeyLogFile(path, writingOn: queue)
        queue.suspend()
        let line = String(repeating: "a", count: (1 << 20) - 1)
        for _ in 0..<8 { file.append(line) }
        queue.resume()
        file.flush(within: .seconds(60))
        file.append("b")
        file.flush(within: .seconds(60))
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.utf8.count == KeyLogFile.capacity + 2 && text.hasSuffix("a\nb\n"))
        withExtendedLifetime(folder) {}
    }
}
