import Foundation
import Synchronization
import TapCore
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// A log for each session.
@Suite struct SessionLogsTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    private static let run = LoggedRun(
        tool: "test",
        word: "w",
        redaction: .secrets,
        run: Run(),
        now: { Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0) }
    )

    private static func record(_ sequence: UInt64, _ session: UInt64, jid: String? = nil, code: String? = nil) -> Record
    {
        var record = Record(
            sequence: sequence,
            time: Timestamp(nanoseconds: Int64(sequence)),
            monotonic: Int64(sequence),
            kind: .session,
            level: .info,
            part: .session,
            session: session,
            jid: jid
        )
        record.code = code
        return record
    }

    private func sink(_ session: UInt64) throws -> LogSink {
        var configuration = LogSink.Configuration(
            .path(folder.file("\(session).xtap")),
            form: .json,
            spec: LogSpec(level: .verbose),
            isCapture: true
        )
        configuration.session = session
        return try LogSink(configuration, run: Self.run)
    }

    private func logs() -> SessionLogs {
        SessionLogs(level: .verbose, open: { try? self.sink($0) }) { _, jid in self.folder.file("\(jid).xtap") }
    }

    private func write(_ record: Record, to logs: SessionLogs) {
        let nothing: [UInt8] = []
        logs.write(record.shown, content: nothing.span)
    }

    /// The numbers of the records of a file, whose header must be of its session.
    private func numbers(_ name: String, of session: UInt64) throws -> [UInt64] {
        let reader = try RecordReader([folder.file(name)])
        #expect(reader.firstHeader.session == session)
        #expect(reader.firstHeader.isComplete)
        var numbers: [UInt64] = []
        while let entry = try reader.next() {
            if case .record(let line) = entry { numbers.append(line.record.sequence) }
        }
        return numbers
    }

    @Test func `Each session has its own file, named after its JID, until it ends`() throws {
        let logs = logs()
        write(Self.record(1, 0), to: logs)
        write(Self.record(2, 1), to: logs)
        write(Self.record(3, 2), to: logs)
        write(Self.record(4, 1, jid: "romeo@example.net"), to: logs)
        write(Self.record(5, 2), to: logs)
        write(Self.record(6, 1, jid: "romeo@example.net", code: Record.Code.sessionEnded), to: logs)
        // Its file is complete while other sessions continue.
        #expect(eventually { (try? folder.lines("romeo@example.net.xtap").count) == 5 })
        write(Self.record(7, 2), to: logs)
        #expect(logs.close().isEmpty)
        #expect(try numbers("romeo@example.net.xtap", of: 1) == [2, 4, 6])
        #expect(try numbers("2.xtap", of: 2) == [3, 5, 7])
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        #expect(names == ["2.xtap", "romeo@example.net.xtap"], "a record of no session is in none")
        #expect(logs.counters.records == 6)
    }

    @Test func `If a session's file cannot be opened, its records are skipped, without another attempt`() throws {
        let opened = Mutex<[UInt64]>([])
        let logs = SessionLogs(level: .verbose) { session in
            opened.withLock { $0.append(session) }
            return session == 1 ? nil : try? self.sink(session)
        }
        for sequence in 1...6 as ClosedRange<UInt64> { write(Self.record(sequence, 1 + sequence % 2), to: logs) }
        #expect(logs.close().isEmpty)
        #expect(opened.withLock { $0 } == [2, 1])
        #expect(try numbers("2.xtap", of: 2) == [1, 3, 5])
    }

    @Test func `Moved session files are replaced, and sessions on several threads stay separate`() async throws {
        let logs = logs()
        await withTaskGroup { group in
            for session in 1...8 as ClosedRange<UInt64> {
                group.addTask {
                    for number in 0..<200 as Range<UInt64> {
                        write(Self.record(session * 1000 + number, session), to: logs)
                    }
                }
            }
        }
        for session in 1...8 as ClosedRange<UInt64> {
            let name = "\(session).xtap"
            #expect(eventually { (try? folder.lines(name).count) == 202 })
            #expect(rename(folder.file(name), folder.file("\(name).1")) == 0)
        }
        logs.reopen()
        for session in 1...8 as ClosedRange<UInt64> {
            #expect(eventually { (try? folder.lines("\(session).xtap").count) == 2 })
            write(Self.record(session * 1000 + 200, session), to: logs)
        }
        #expect(!logs.isCongested)
        #expect(logs.close().isEmpty)
        for session in 1...8 as ClosedRange<UInt64> {
            #expect(try numbers("\(session).xtap.1", of: session) == (0..<200).map { session * 1000 + $0 })
            #expect(try folder.lines("\(session).xtap").count == 3)
        }
    }

    @Test func `Closing the logs writes all records and drops none`() throws {
        let logs = logs()
        write(Self.record(1, 1), to: logs)
        #expect(logs.close().isEmpty)
        #expect(logs.counters.dropped.isEmpty)
        #expect(try numbers("1.xtap", of: 1) == [1])
    }
}
