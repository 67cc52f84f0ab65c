import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// Several programs that use a store at the same time, and a clock that jumps.
struct StoreWritersTests {
    private static func rows(_ store: SQLiteStore, _ text: String = "") throws -> [AuditRow] {
        try store.rows(for: SearchQuery(words: text)).sorted { $0.sequence < $1.sequence }
    }

    private static func row(_ number: Int, run: String, day: Int64, _ name: String) -> AuditRow {
        var row = TestRow.message(
            "text\(number) of \(name)",
            sequence: UInt64(number + 1),
            account: "\(name)@example.org",
            peer: "\(name)2@example.org",
            after: day * 86_400 + Int64(number)
        )
        (row.run, row.resource) = (run, name)
        return row
    }

    @Test("Two writers that take turns keep all rows, with names, runs and parts that either of them adds first")
    func takesTurns() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let stores = try [SQLiteStore.create(path, partSize: 3), SQLiteStore.create(path, partSize: 3)]
        var expected: [AuditRow] = []
        for number in 0..<60 {
            // Both use the same names and parts, now one first and then the other.
            let row = Self.row(number, run: "run\(number / 3)", day: Int64(number / 4), "n\(number / 3)")
            try stores[number / 2 % 2].add(.stanza(row))
            try stores[number / 2 % 2].commit()
            expected.append(row)
        }
        let reader = try SQLiteStore.open(path)
        #expect(try Self.rows(reader) == expected)
        for row in expected { #expect(try Self.rows(reader, row.body ?? "") == [row]) }
        #expect(try reader.faults() == [])
    }

    @Test("A writer continues with the right names, runs and parts after another program has deleted unused ones")
    func continuesAfterDeletion() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path, partSize: 3)
        var old: [AuditRow] = []
        for number in 0..<20 { old.append(Self.row(number, run: "old", day: 0, "old\(number % 3)")) }
        for row in old { try store.add(.stanza(row)) }
        try store.add(.stanza(Self.row(0, run: "first", day: 30, "first")))
        try store.commit()

        // As `xmpptap store retain` and `xmpptap store vacuum` do, beside a proxy.
        let other = try SQLiteStore.openForMaintenance(path)
        while try other.retain(StoreLimit(age: .seconds(86_400)), at: TestRow.message("", after: 86_400 * 30).time) {}
        try other.vacuum()
        #expect(try other.overview().stanzas == 1)
        try other.add(.stanza(Self.row(1, run: "other", day: 30, "other")))
        try other.commit()

        // The writer has used these names, runs and parts before.
        var added: [AuditRow] = []
        for number in 20..<30 { added.append(Self.row(number, run: "old", day: 30, "old\(number % 3)")) }
        added += old.prefix(5)
        for row in added { try store.add(.stanza(row)) }
        try store.commit()
        let reader = try SQLiteStore.open(path)
        let found = try Self.rows(reader).filter { $0.run == "old" }
        #expect(found == added.sorted { $0.sequence < $1.sequence })
        #expect(try Self.rows(reader).count == 17)
        for row in added { #expect(try Self.rows(reader, row.body ?? "") == [row]) }
        #expect(try reader.faults() == [])
    }

    @Test("If the clock jumps back and forth, rows are found by time and word, and only old ones are deleted")
    func survivesClock() throws {
        for seed in UInt64(1)...4 {
            var random = SeededGenerator(seed: seed)
            let folder = try TemporaryFolder()
            let path = folder.path(of: "a.sqlite")
            var store = try SQLiteStore.create(path, partSize: 4)
            var expected: [AuditRow] = []
            var clock: Int64 = 0
            for number in 0..<300 {
                let step: Int64 =
                    switch Int.random(in: 0..<20, using: &random) {
                    case 0: Int64.random(in: -864_000...864_000, using: &random)
                    case 1: Int64.random(in: -3...3, using: &random) * 86_400
                    default: Int64.random(in: 0...5, using: &random)
                    }
                clock += step
                var row = TestRow.message("word\(number) text", sequence: UInt64(number + 1), after: clock)
                if Int.random(in: 0..<10, using: &random) == 0 {
                    row.time = TestRow.message("", after: clock - 400_000).time
                }
                try store.add(.stanza(row))
                expected.append(row)
                if number.isMultiple(of: 7) { try store.commit() }
                if number.isMultiple(of: 50) {
                    try store.commit()
                    store.close()
                    store = try SQLiteStore.create(path, partSize: 4)
                }
                guard number.isMultiple(of: 60) else { continue }
                try store.commit()
                let now = TestRow.message("", after: clock).time
                while try store.retain(StoreLimit(age: .seconds(86_400 * 4)), at: now) {}
                let bound = TestRow.message("", after: clock - 86_400 * 4).time
                let found = try Self.rows(store)
                let young = expected.filter { $0.seen >= bound }
                #expect(found.filter { $0.seen >= bound } == young, "seed \(seed), row \(number)")
                #expect(try Self.rows(store, "text") == found, "seed \(seed), row \(number)")
                // Rows between those of a later clock are deleted with their day.
                let day = TestRow.message("", after: clock - 86_400 * 5).time
                #expect(found.allSatisfy { $0.seen >= day }, "seed \(seed), row \(number)")
                expected = found
            }
            try store.commit()
            for row in expected.shuffled(using: &random).prefix(40) {
                #expect(try Self.rows(store, "word\(row.sequence - 1)") == [row])
                var query = SearchQuery(words: "text")
                query.times = row.seen..<Timestamp(nanoseconds: row.seen.nanoseconds + 1)
                let found = try store.rows(for: query)
                #expect(Set(found) == Set(expected.filter { query.matches($0) }))
            }
            #expect(try store.faults() == [])
        }
    }
}
