import Foundation
import Glibc
import TapCapture
import Testing

/// A file that is deleted or moved while it is written.
@Suite struct WriterDeletionTests {
    private let folder: Folder
    private let events = Events()

    init() throws { folder = try Folder() }

    private func writer(
        _ name: String = "x.log",
        _ adjust: (inout RecordWriter.Options) -> Void = { _ in }
    ) throws -> RecordWriter {
        try RecordWriter(folder.file(name), events: events) {
            $0.placeCheckInterval = .milliseconds(20)
            $0.retryInterval = .milliseconds(20)
            adjust(&$0)
        }
    }

    private func isRecovery(_ event: RecordWriter.Event) -> Bool {
        if case .recovered = event { true } else { false }
    }

    @Test func `A deleted file is created again while the writer is idle, with the loss noted in it`() throws {
        let writer = try writer()
        for number in 0..<3 { writer.append("record \(number)\n") }
        #expect(writer.flush())
        unlink(folder.file("x.log"))
        #expect(events.wait(for: isRecovery))
        writer.append("last\n")
        #expect(writer.close().records == 3)
        let expected = "header reopened dropped 3\nlost 3 records, 27 bytes\nlast\n"
        #expect(try folder.text("x.log") == expected)
        #expect(events.faults == [.deleted])
        guard case .recovered(let loss) = try #require(events.list.last) else { return }
        #expect(loss.records == 3 && loss.deletedFile == folder.file("x.log"))
        #expect(writer.counters.kept == 2, "the loss and the last record")
        #expect(folder.rights("x.log") == 0o600)
    }

    @Test(arguments: [false, true])
    func `The deletion of a file is detected at the end`(_ isReplaced: Bool) throws {
        let writer = try writer { $0.placeCheckInterval = .seconds(1000) }
        for number in 0..<3 { writer.append("record \(number)\n") }
        #expect(writer.flush())
        unlink(folder.file("x.log"))
        if isReplaced { try folder.write("theirs\n", "x.log") }
        #expect(writer.close().records == 3)
        let expected = (isReplaced ? "theirs\n" : "") + "header reopened dropped 3\nlost 3 records, 27 bytes\n"
        #expect(try folder.text("x.log") == expected)
        #expect(writer.counters.kept == 1)
        #expect(events.faults == [.deleted])
    }

    @Test func `Reopening a deleted file reports the loss`() throws {
        let writer = try writer { $0.placeCheckInterval = .seconds(1000) }
        writer.append("record 0\n")
        #expect(writer.flush())
        unlink(folder.file("x.log"))
        writer.reopen()
        #expect(events.wait(for: isRecovery))
        writer.close()
        #expect(try folder.text("x.log") == "header reopened dropped 1\nlost 1 records, 9 bytes\n")
    }

    @Test func `Rotation of a deleted file reports the loss`() throws {
        let writer = try RecordWriter(folder.file("x.log"), rotation: .init(size: 60, keep: 5), events: events) {
            $0.placeCheckInterval = .seconds(1000)
        }
        writer.append("record 0\n")
        #expect(writer.flush())
        unlink(folder.file("x.log"))
        for number in 1..<5 { writer.append("record \(number)\n") }
        let loss = writer.close()
        #expect(loss.records > 0)
        #expect(events.faults == [.deleted])
        let text = try folder.text("x.log") + ((try? folder.text("x.log.1")) ?? "")
        #expect(text.contains("lost \(loss.records) records"))
    }

    @Test func `Records wait until the folder of a deleted file exists again`() throws {
        let sub = folder.file("sub")
        try FileManager.default.createDirectory(atPath: sub, withIntermediateDirectories: false)
        let writer = try writer("sub/x.log")
        writer.append("record 0\n")
        #expect(writer.flush())
        try FileManager.default.removeItem(atPath: sub)
        #expect(events.wait { if case .notice = $0 { true } else { false } })
        writer.append("record 1\n")
        #expect(!events.list.contains(where: isRecovery))
        try FileManager.default.createDirectory(atPath: sub, withIntermediateDirectories: false)
        #expect(events.wait(for: isRecovery))
        writer.close()
        let lines = try folder.lines("sub/x.log")
        #expect(lines.prefix(2) == ["header reopened dropped 1", "lost 1 records, 9 bytes"])
        #expect(lines.contains("record 1"))
        #expect(events.faults == [.deleted, .cannotOpen])
    }

    @Test func `A moved file keeps its records, and later ones go to a new file`() throws {
        let writer = try writer()
        writer.append("one\n")
        #expect(writer.flush())
        rename(folder.file("x.log"), folder.file("moved"))
        #expect(eventually { access(folder.file("x.log"), F_OK) == 0 })
        writer.append("two\n")
        #expect(writer.close().isEmpty)
        #expect(try folder.text("moved") == "header start dropped 0\none\n")
        #expect(try folder.text("x.log") == "header reopened dropped 0\ntwo\n")
        #expect(events.list == [.notice(try #require(fault))])
        #expect(events.faults == [.moved])
    }

    private var fault: WriterFault? {
        for case .notice(let fault) in events.list { return fault }
        return nil
    }

    @Test func `The hash chain of a new file continues that of the deleted one`() throws {
        let lines = RecordWriter.Lines(
            header: { Array("{\"header\":\"\($0.reason)\"}\n".utf8) },
            loss: { Array("{\"lost\":\($0.records)}\n".utf8) }
        )
        let writer = try RecordWriter(folder.file("x.xtap"), events: events, lines: lines) {
            $0.placeCheckInterval = .milliseconds(20)
            $0.hasChain = true
        }
        writer.append("{\"record\":0}\n")
        #expect(writer.flush())
        unlink(folder.file("x.xtap"))
        #expect(events.wait(for: isRecovery))
        writer.append("{\"record\":1}\n")
        writer.close()
        let written = try folder.lines("x.xtap").filter { !$0.isEmpty }
        #expect(written.count == 3)
        #expect(written.allSatisfy { $0.contains(",\"chain\":\"") })
        let head = try #require(writer.counters.chain)
        #expect(written.last?.contains(head) == true)
    }
}
