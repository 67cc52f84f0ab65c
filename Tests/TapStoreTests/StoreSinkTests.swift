import Foundation
import Glibc
import Synchronization
import TapCapture
import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapStore

/// A store that is fed by a running program.
struct StoreSinkTests {
    private static let run = LoggedRun(
        tool: "xmpptap",
        word: "run",
        redaction: .secrets,
        run: Run(),
        now: { Run.Instant(time: Timestamp(nanoseconds: 1_795_000_000_000_000_000), monotonic: 0) }
    )

    /// Returns a record of a message as a session would make it, and its content.
    private static func message(_ number: UInt64, _ body: String) throws -> (RedactedRecord, [UInt8]) {
        let item = Array("<message to='romeo@example.org' id='m\(number)'><body>\(body)</body></message>".utf8)
        func range(_ text: String) -> ByteRange? {
            item.firstRange(of: text.utf8).map { ByteRange($0.lowerBound, $0.upperBound) }
        }
        var record = Record(
            sequence: number,
            time: Timestamp(nanoseconds: 1_795_000_000_000_000_000 + Int64(clamping: number)),
            monotonic: 0,
            kind: .stanza,
            level: .info,
            part: .session,
            session: 1,
            jid: "juliet@example.org/balcony"
        )
        record.direction = .send
        record.xml = ByteRange(0, item.count)
        record.name = range("message")
        record.to = range("romeo@example.org")
        record.id = range("m\(number)")
        record.length = UInt64(item.count)
        return (record.shown, item)
    }

    private static func rows(_ path: String) throws -> [AuditRow] {
        try SQLiteStore.open(path).rows(for: SearchQuery(words: "")).sorted { $0.sequence < $1.sequence }
    }

    @Test("Records become rows while the sink is open, and all of them at its end")
    func storesRecords() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let sink = try StoreSink(.init(.file(path), spec: LogSpec(level: .info)), run: Self.run) { event in
            Issue.record("\(event)")
        }
        for number in UInt64(1)...50 {
            let (record, content) = try Self.message(number, "text \(number) &amp; é")
            sink.write(record, content: content.span)
        }
        for _ in 0..<1200 {
            if try Self.rows(path).count == 50 { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        let row = try #require(try Self.rows(path).last)
        #expect(row.body == "text 50 & é" && row.account == "juliet@example.org" && row.resource == "balcony")
        #expect(row.peer == "romeo@example.org" && row.id == "m50" && row.sequence == 50 && row.session == 1)
        #expect(row.direction == .send && row.run == "run" && row.seen.nanoseconds == 1_795_000_000_000_000_050)
        let (record, content) = try Self.message(51, "last")
        sink.write(record, content: content.span)
        #expect(sink.close(within: .seconds(60), removingUnused: false).isEmpty)
        #expect(try Self.rows(path).count == 51)
    }

    @Test("Without bodies, or with their hashes, copies are still found to be one message")
    func keepsHashes() throws {
        for (bodies, body) in [(StoredContent.Bodies.off, ""), (.hash, "sha256:")] {
            let folder = try TemporaryFolder()
            let path = folder.path(of: "a.sqlite")
            var configuration = StoreSink.Configuration(.file(path), spec: LogSpec(level: .info))
            configuration.content.bodies = bodies
            let sink = try StoreSink(configuration, run: Self.run) { event in Issue.record("\(event)") }
            for (number, text) in [(UInt64(1), "one"), (2, "two")] {
                let (record, content) = try Self.message(number, text)
                sink.write(record, content: content.span)
            }
            _ = sink.close(within: .seconds(60), removingUnused: false)
            let rows = try Self.rows(path)
            #expect(rows.count == 2 && rows.allSatisfy { $0.body?.hasPrefix(body) == true })
            #expect(rows[0].copyKey != nil && rows[0].copyKey != rows[1].copyKey)
            // The digest of `one`, by another program.
            let digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
            if bodies == .hash { #expect(rows[0].body == "sha256:\(digest)") }
        }
    }

    @Test(
        "A store that another program writes to gets the buffered rows when it is free, and counts those that were dropped"
    )
    func waitsForLock() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let events = Mutex<[String]>([])
        let sink = try StoreSink(.init(.file(path), spec: LogSpec(level: .info)), run: Self.run) { event in
            switch event {
            case .failed(let fault): events.withLock { $0.append("\(fault.code)") }
            case .recovered(let loss): events.withLock { $0.append("lost \(loss.records)") }
            case .replaced, .rejected, .stalled, .flowing, .spool: events.withLock { $0.append("\(event)") }
            }
        }
        let other = try SQLiteDatabase(path, .writing)
        try other.run("BEGIN IMMEDIATE")
        var number: UInt64 = 0
        func send(_ body: String) throws {
            number += 1
            let (record, content) = try Self.message(number, body)
            sink.write(record, content: content.span)
        }
        while events.withLock({ $0.last }) != "locked" {
            try send("text")
            try await Task.sleep(for: .milliseconds(100))
        }
        // More than the buffer holds.
        for _ in 0..<300 { try send(String(repeating: "long ", count: 20_000)) }
        let lastLong = number
        try other.run("COMMIT")
        // The store is tried again after some seconds.
        while events.withLock({ $0.count }) < 2 { try await Task.sleep(for: .milliseconds(50)) }
        for _ in 0..<10 { try send("later") }
        let dropped = sink.close(within: .seconds(60), removingUnused: false).records
        #expect(dropped > 0 && dropped < 300)
        #expect(events.withLock { $0 } == ["locked", "lost \(dropped)"])
        let rows = try Self.rows(path)
        #expect(rows.count == Int(clamping: number - dropped))
        // The gap is between the last row that was buffered and the first later one.
        let first = try #require(rows.last { $0.sequence <= lastLong }?.sequence) + 1
        #expect(first + dropped == lastLong + 1)
        let store = try SQLiteStore.open(path)
        #expect(try store.overview().missing == Int(clamping: dropped))
        #expect(try store.database.integer("SELECT first FROM gap") == Int64(clamping: first))
        #expect(try store.database.integer("SELECT last FROM gap") == Int64(clamping: lastLong))
    }

    @Test("Stanzas that a store refuses are reported and counted as missing, also in two batches")
    func countsRefused() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let rejections = Mutex<[Int]>([])
        let sink = try StoreSink(.init(.file(path), spec: LogSpec(level: .info)), run: Self.run) { event in
            if case .rejected(let count, let fault) = event, case .row = fault.code {
                rejections.withLock { $0.append(count) }
            } else {
                Issue.record("\(event)")
            }
        }
        try SQLiteDatabase(path, .writing).run(
            "CREATE TRIGGER no BEFORE INSERT ON stanza WHEN NEW.body = 'no' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        let texts = ["one", "no", "no", "two", "no", "three"]
        for (number, text) in zip(UInt64(1)..., texts) {
            // The fourth begins another batch.
            while number == 4, rejections.withLock({ $0.reduce(0, +) }) < 2 {
                try await Task.sleep(for: .milliseconds(20))
            }
            let (record, content) = try Self.message(number, text)
            sink.write(record, content: content.span)
        }
        #expect(sink.close(within: .seconds(60), removingUnused: false).records == 3)
        #expect(rejections.withLock { $0.reduce(0, +) } == 3)
        #expect(try Self.rows(path).map(\.body) == ["one", "two", "three"])
        let store = try SQLiteStore.open(path)
        #expect(try store.overview().missing == 3)
        #expect(try store.database.integer("SELECT last FROM gap ORDER BY last DESC") == 5)
    }

    @Test("A store that is moved is begun anew, and the old one has all earlier rows")
    func replacesMoved() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let events = Mutex<[String]>([])
        let sink = try StoreSink(.init(.file(path), spec: LogSpec(level: .info)), run: Self.run) { event in
            events.withLock { $0.append("\(event)".prefix { $0 != "(" }.description) }
        }
        let (record, content) = try Self.message(1, "before")
        sink.write(record, content: content.span)
        while try Self.rows(path).isEmpty { try await Task.sleep(for: .milliseconds(50)) }
        try FileManager.default.moveItem(atPath: path, toPath: folder.path(of: "old.sqlite"))
        let (next, nextContent) = try Self.message(2, "after")
        sink.write(next, content: nextContent.span)
        #expect(sink.close(within: .seconds(60), removingUnused: false).isEmpty)
        #expect(events.withLock { $0 } == ["replaced"])
        #expect(try Self.rows(path).map(\.body) == ["after"])
        #expect(try Self.rows(folder.path(of: "old.sqlite")).map(\.body) == ["before"])
    }

    @Test(
        "On a full disk, rows wait until there is space, and none is lost",
        .enabled(if: geteuid() == 0, "needs root for a small file system")
    )
    func waitsForSpace() async throws {
        guard let disk = try SmallDisk(kilobytes: 8000) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let path = disk.file("a.sqlite")
        let events = Mutex<[String]>([])
        let sink = try StoreSink(.init(.file(path), spec: LogSpec(level: .info)), run: Self.run) { event in
            switch event {
            case .failed(let fault): events.withLock { $0.append("\(fault.code)") }
            case .recovered(let loss): events.withLock { $0.append("lost \(loss.records)") }
            case .replaced, .rejected, .stalled, .flowing, .spool: events.withLock { $0.append("\(event)") }
            }
        }
        var number: UInt64 = 0
        func send() throws {
            number += 1
            let (record, content) = try Self.message(number, "text \(String(repeating: "x", count: 2000))")
            sink.write(record, content: content.span)
        }
        try send()
        while try Self.rows(path).isEmpty { try await Task.sleep(for: .milliseconds(50)) }
        disk.fill(leaving: 40)
        for _ in 0..<500 { try send() }
        while events.withLock({ $0 }) != ["full"] { try await Task.sleep(for: .milliseconds(50)) }
        for _ in 0..<10 { try send() }
        // Earlier rows can be read meanwhile.
        #expect(try Self.rows(path).count == 1)
        disk.empty()
        while events.withLock({ $0.last }) != "lost 0" { try await Task.sleep(for: .milliseconds(50)) }
        #expect(sink.close(within: .seconds(60), removingUnused: false).isEmpty)
        #expect(try Self.rows(path).count == 511)
        #expect(events.withLock { $0 } == ["full", "lost 0"])
    }

    @Test(
        "A store with a limit of its size does not fill a disk with room for it and for the write-ahead log",
        .enabled(if: geteuid() == 0, "needs root for a small file system")
    )
    func staysWithinLimit() async throws {
        guard let disk = try SmallDisk(kilobytes: 48_000) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let path = disk.file("a.sqlite")
        var configuration = StoreSink.Configuration(.file(path), spec: LogSpec(level: .info))
        configuration.limit = StoreLimit(bytes: 2_000_000)
        let sink = try StoreSink(configuration, run: Self.run) { event in
            switch event {
            // The sink is given more than it can write.
            case .stalled, .flowing, .spool: break
            case .failed, .recovered, .replaced, .rejected: Issue.record("\(event)")
            }
        }
        // Twice as much as the disk has room for.
        for number in UInt64(1)...50_000 {
            let (record, content) = try Self.message(number, "text \(String(repeating: "x", count: 2000))")
            sink.write(record, content: content.span)
            while sink.isCongested { try await Task.sleep(for: .milliseconds(5)) }
        }
        #expect(sink.close(within: .seconds(100), removingUnused: false).isEmpty)
        let rows = try Self.rows(path)
        #expect(rows.last?.sequence == 50_000 && rows.count > 100 && rows.count < 6000)
    }
}
