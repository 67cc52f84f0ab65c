import Foundation
import Glibc
import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// Stores that are damaged, incomplete, read-only or on a full disk.
struct DamagedStoreTests {
    /// Number of rows in a transaction of ``fill(_:transactions:)``.
    private static let batch = 20

    /// Adds transactions, each with the same number of rows.
    private static func fill(_ store: SQLiteStore, transactions: Range<Int>) throws {
        for transaction in transactions {
            for number in 0..<batch {
                let place = transaction * batch + number
                var row = TestRow.message(
                    "word\(place) contract 合同 \(String(repeating: "x", count: place % 50))",
                    sequence: UInt64(place + 1),
                    account: "a\(place % 7)@example.org",
                    after: Int64(place) * 600
                )
                if place.isMultiple(of: 5) {
                    row.time = Timestamp(nanoseconds: row.time.nanoseconds - 90_000_000_000_000)
                }
                row.xml = String(repeating: "y", count: place % 200 * 10)
                try store.add(.stanza(row))
            }
            var session = AuditSession(run: "run", number: UInt64(transaction + 1))
            (session.account, session.began) = ("juliet@example.org", TestRow.message("").time)
            try store.add(.session(session))
            try store.commit()
        }
    }

    /// Does everything that commands do with a store, and returns the faults.
    private static func use(_ path: String) -> [StoreFault] {
        var faults: [StoreFault] = []
        func attempt(_ body: () throws(StoreFault) -> Void) {
            do throws(StoreFault) { try body() } catch { faults.append(error) }
        }
        let now = TestRow.message("", after: 200_000).time
        attempt { () throws(StoreFault) in
            let store = try SQLiteStore.open(path)
            attempt { () throws(StoreFault) in _ = try store.overview() }
            attempt { () throws(StoreFault) in _ = try store.faults() }
            attempt { () throws(StoreFault) in try store.sessions { _ in } }
            attempt { () throws(StoreFault) in _ = try store.avatars() }
            for text in ["", "word7* 合同"] {
                for account in [nil, "a3@example.org"] {
                    for times in [nil, TestRow.message("").time..<now] {
                        var query = SearchQuery(words: text)
                        (query.account, query.times) = (account, times)
                        for context in [nil, 1] {
                            attempt { () throws(StoreFault) in
                                var search = StoreSearch(store, query, context: context)
                                try search.show { _ in true }
                            }
                        }
                    }
                }
            }
        }
        attempt { () throws(StoreFault) in
            let store = try SQLiteStore.create(path, partSize: 30)
            for row in [
                TestRow.message("new", sequence: 9000, after: 100_000), TestRow.message("more", sequence: 9001),
            ] {
                do throws(StoreFault) {
                    try store.add(.stanza(row))
                    try store.commit()
                } catch {
                    faults.append(error)
                    store.abandon()
                }
            }
            attempt { () throws(StoreFault) in
                for _ in 0..<100 { guard try store.retain(StoreLimit(age: .seconds(100_000)), at: now) else { return } }
            }
            store.abandon()
            attempt { () throws(StoreFault) in
                for _ in 0..<100 { guard try store.retain(StoreLimit(bytes: 20_000), at: now) else { return } }
            }
            store.abandon()
            attempt { () throws(StoreFault) in try store.vacuum() }
            store.close()
        }
        return faults
    }

    /// Checks that faults are of damage, or of a file that has grown beyond the disk by damage.
    private static func check(_ faults: [StoreFault], _ path: String, _ subject: String) {
        for fault in faults {
            let isOfDamage =
                switch fault.code {
                case .corrupt, .foreign, .newer, .older, .row, .tooManyRuns, .full: true
                case .other: fault.description.hasSuffix("see 'xmpptap store check'")
                default: false
                }
            #expect(isOfDamage, "\(subject): \(fault)")
            #expect(
                fault.description.hasPrefix("\(path): ") && !fault.description.contains { $0.isNewline },
                "\(subject): \(fault)"
            )
        }
    }

    private static func original(in folder: TemporaryFolder, transactions: Int = 10) throws -> [UInt8] {
        let path = folder.path(of: "original.sqlite")
        let store = try SQLiteStore.create(path, partSize: 30)
        try fill(store, transactions: 0..<transactions)
        store.close()
        let data = try #require(FileManager.default.contents(atPath: path))
        #expect(!FileManager.default.fileExists(atPath: "\(path)-wal") || data.count > 50_000)
        return Array(data)
    }

    @Test("Bytes that were changed in any pages are reported as damage, and harm nothing else")
    func survivesChangedBytes() throws {
        let folder = try TemporaryFolder()
        let bytes = try Self.original(in: folder)
        var random = SeededGenerator(seed: 17)
        var reported = 0
        for number in 0..<40 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                // Headers of pages decide most; the first page has the schema.
                let page = Int.random(in: 0..<(bytes.count / 4096), using: &random) * 4096
                let place =
                    Bool.random(using: &random)
                    ? Int.random(in: 0..<24, using: &random) : Int.random(in: 0..<4096, using: &random)
                for offset in 0..<Int.random(in: 1...8, using: &random) where page + place + offset < bytes.count {
                    damaged[page + place + offset] = .random(in: 0...255, using: &random)
                }
            }
            let path = folder.path(of: "damaged\(number).sqlite")
            #expect(FileManager.default.createFile(atPath: path, contents: Data(damaged)))
            let faults = Self.use(path)
            Self.check(faults, path, "file \(number)")
            if !faults.isEmpty { reported += 1 }
        }
        #expect(reported > 10)
    }

    @Test("A file that was cut is reported as damage, or as another file")
    func survivesCuts() throws {
        let folder = try TemporaryFolder()
        let bytes = try Self.original(in: folder)
        var lengths = [
            1, 15, 16, 99, 100, 4095, 4096, 4097, 8192, bytes.count / 2, bytes.count - 4096, bytes.count - 1,
        ]
        var random = SeededGenerator(seed: 19)
        lengths += (0..<15).map { _ in Int.random(in: 1..<bytes.count, using: &random) }
        for length in lengths {
            let path = folder.path(of: "cut\(length).sqlite")
            #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes[..<length])))
            let faults = Self.use(path)
            // The last page may be unused.
            if length <= bytes.count - 4096 { #expect(!faults.isEmpty, "\(length) bytes") }
            Self.check(faults, path, "\(length) bytes")
        }
    }

    @Test("After an end at any moment, a store has all rows of its first transactions and none of others")
    func keepsWholeTransactions() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        var store = try SQLiteStore.create(path, partSize: 30)
        try Self.fill(store, transactions: 0..<4)
        store.close()
        store = try SQLiteStore.create(path, partSize: 30)
        try Self.fill(store, transactions: 4..<10)
        // A transaction that is not committed.
        for number in UInt64(1)...300 {
            try store.add(.stanza(TestRow.message("open", sequence: 1000 + number, after: Int64(number))))
        }
        let file = try #require(FileManager.default.contents(atPath: path))
        let log = try #require(FileManager.default.contents(atPath: "\(path)-wal"))
        #expect(log.count > 100_000)
        var random = SeededGenerator(seed: 23)
        var counts: Set<Int> = []
        for number in 0..<60 {
            let copy = folder.path(of: "copy\(number).sqlite")
            // The end of the log is missing, or was not written when the machine stopped.
            var rest = log
            let length = number == 0 ? log.count : Int.random(in: 0...log.count, using: &random)
            if number.isMultiple(of: 2) {
                rest = log.prefix(length)
            } else {
                for place in length..<min(log.count, length + 500) {
                    rest[place] = .random(in: 0...255, using: &random)
                }
            }
            #expect(FileManager.default.createFile(atPath: copy, contents: file))
            #expect(FileManager.default.createFile(atPath: "\(copy)-wal", contents: rest))
            let reader = try SQLiteStore.open(copy)
            #expect(try reader.faults() == [])
            let overview = try reader.overview()
            #expect(overview.stanzas.isMultiple(of: Self.batch) && (80...200).contains(overview.stanzas), "\(number)")
            counts.insert(overview.stanzas)
            var sessions = 0
            try reader.sessions { _ in sessions += 1 }
            #expect(sessions == overview.stanzas / Self.batch)
            #expect(try reader.rows(for: SearchQuery(words: "contract")).count == overview.stanzas)
            // Writing continues there.
            let writer = try SQLiteStore.create(copy, partSize: 30)
            try Self.fill(writer, transactions: 4..<11)
            #expect(try writer.overview().stanzas == 220)
        }
        #expect(counts.count > 3 && counts.contains(200))
    }

    // MARK: Read-only and full disks

    @Test(
        "A store on a file system without write access is read, and refuses rows",
        .enabled(if: geteuid() == 0, "needs root for a small file system")
    )
    func refusesReadOnlyDisk() throws {
        guard let disk = try SmallDisk(kilobytes: 8000) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let path = disk.file("a.sqlite")
        do {
            let store = try SQLiteStore.create(path)
            try Self.fill(store, transactions: 0..<3)
            store.close()
        }
        #expect(disk.allowWrites(false))
        let faults = [
            Self.fault { () throws(StoreFault) in try Self.addRow(path) },
            Self.fault { () throws(StoreFault) in _ = try SQLiteStore.create(disk.file("new.sqlite")) },
            Self.fault { () throws(StoreFault) in try SQLiteStore.openForMaintenance(path).vacuum() },
        ]
        for fault in faults {
            #expect(fault.map { [.readOnly, .unopened].contains($0.code) } ?? false, "\(fault?.description ?? "none")")
        }
        #expect(try SQLiteStore.open(path).overview().stanzas == 60)
        #expect(disk.allowWrites(true))
        try Self.addRow(path)
        #expect(try SQLiteStore.open(path).faults() == [])
    }

    private static func addRow(_ path: String) throws(StoreFault) {
        let store = try SQLiteStore.create(path)
        try store.add(.stanza(TestRow.message("new", sequence: 5000)))
        try store.commit()
        store.close()
    }

    private static func fault(_ body: () throws(StoreFault) -> Void) -> StoreFault? {
        do throws(StoreFault) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "A store on a file system without shared memory is refused with the reason",
        .enabled(if: geteuid() == 0 && TestProgram.bindfs.isInstalled, "needs root and bindfs")
    )
    func refusesWithoutSharedMemory() async throws {
        let folder = try TemporaryFolder()
        let (source, place) = (folder.path(of: "source"), folder.path(of: "place"))
        for path in [source, place] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        try Self.addRow("\(source)/a.sqlite")
        let mount = try ToolProcess(TestProgram.bindfs.rawValue, ["-o", "direct_io", source, place])
        guard try await mount.ending() == .exited(0) else { try Test.cancel("a file system cannot be mounted here") }
        defer { umount2(place, Int32(MNT_DETACH)) }
        for name in ["a.sqlite", "new.sqlite"] {
            let fault = Self.fault { () throws(StoreFault) in try Self.addRow("\(place)/\(name)") }
            #expect(fault?.description.hasSuffix("choose a local disk") ?? false, "\(fault?.description ?? "none")")
        }
        let fault = Self.fault { () throws(StoreFault) in _ = try SQLiteStore.open("\(place)/a.sqlite") }
        #expect(fault?.description.hasSuffix("choose a local disk") ?? false, "\(fault?.description ?? "none")")
        #expect(try SQLiteStore.open("\(source)/a.sqlite").faults() == [])
    }

    @Test(
        "On a full disk, creating, writing, deleting and rewriting a store fail as such, and leave it whole",
        .enabled(if: geteuid() == 0, "needs root for a small file system")
    )
    func survivesFullDisk() throws {
        guard let disk = try SmallDisk(kilobytes: 8000) else {
            try Test.cancel("a file system cannot be mounted here")
        }
        let path = disk.file("a.sqlite")
        var store = try SQLiteStore.create(path, partSize: 30)
        try Self.fill(store, transactions: 0..<50)
        store.close()
        let now = TestRow.message("", after: 1_000_000).time
        for pages in [0, 1, 2, 5, 20, 40] {
            disk.fill(leaving: pages)
            // The files of a new store need more space than a page.
            if pages < 2 {
                let fault = Self.fault { () throws(StoreFault) in _ = try SQLiteStore.create(disk.file("new.sqlite")) }
                #expect(fault?.code == .full, "\(fault?.description ?? "none") with \(pages) pages")
            }
            let written = Self.fault { () throws(StoreFault) in
                store = try SQLiteStore.create(path, partSize: 30)
                for number in UInt64(1)...2000 {
                    let text = "lost \(String(repeating: "z", count: 500))"
                    try store.add(.stanza(TestRow.message(text, sequence: 100_000 + number, after: 700_000)))
                }
                try store.commit()
            }
            #expect(written?.code == .full, "\(written?.description ?? "none") with \(pages) pages")
            store.abandon()
            let deleted = Self.fault { () throws(StoreFault) in
                while try store.retain(StoreLimit(age: .seconds(10)), at: now) {}
            }
            #expect(deleted == nil || deleted?.code == .full, "\(deleted?.description ?? "") with \(pages) pages")
            store.abandon()
            let rewritten = Self.fault { () throws(StoreFault) in try store.vacuum() }
            #expect(rewritten == nil || rewritten?.code == .full, "\(rewritten?.description ?? "") with \(pages) pages")
            store.abandon()
            disk.empty()
            for name in ["new.sqlite", "new.sqlite-wal", "new.sqlite-shm"] { unlink(disk.file(name)) }
            let reader = try SQLiteStore.open(path)
            #expect(try reader.faults() == [])
            let rows = try reader.overview().stanzas
            #expect(deleted == nil ? rows == 0 : rows <= 1000, "\(rows) rows with \(pages) pages")
            #expect(try reader.rows(for: SearchQuery(words: "lost")).isEmpty)
            // The same object continues when there is space.
            try Self.fill(store, transactions: 0..<50)
            #expect(try store.overview().stanzas == 1000)
            store.close()
        }
    }
}
