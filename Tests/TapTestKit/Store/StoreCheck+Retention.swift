import Glibc
import TapRecord
import TapStore

/// Checks of the deletion of old rows. A store may keep them a day longer.
extension StoreCheck {
    static let retention = [
        StoreCheck("rows older than a limit are deleted with their words, younger ones are not", deletesByAge),
        StoreCheck("sessions that ended before a limit are deleted, open ones are not", deletesSessions),
        StoreCheck("a limit of more years than a store has deletes nothing", keepsWithinAge),
    ]

    @Sendable private static func deletesByAge(_ store: CheckedStore) throws {
        var rows = (UInt64(0)..<240).map { hour in
            CheckedRow.message(
                hour + 1,
                "word\(hour) text",
                run: "run \(hour / 60)",
                after: -Int64(hour) * 3600
            )
        }
        // Only the time at which a stanza was seen counts: a sender can forge that of a delay.
        rows[1].time = Timestamp(nanoseconds: 0)
        rows[200].time = Timestamp(nanoseconds: CheckedRow.noon)
        // The clock of the machine was wrong.
        (rows[2].seen, rows[2].time) = (Timestamp(nanoseconds: 1), Timestamp(nanoseconds: 1))
        (rows[3].seen, rows[3].time) = (
            CheckedRow.time(after: 86_400 * 10_000), CheckedRow.time(after: 86_400 * 10_000)
        )
        try store.store(rows)
        for days in [Int64(8), 3, 1] {
            try store.retain(StoreLimit(age: .seconds(86_400 * days)))
            let bound = CheckedRow.noon - days * CheckedRow.day
            let young = rows.filter { $0.seen.nanoseconds >= bound }
            let found = try store.allRows()
            store.expect(
                rows: found.filter { $0.seen.nanoseconds >= bound },
                young.sorted { $0.order < $1.order },
                "rows of \(days) days"
            )
            let old = found.filter { $0.seen.nanoseconds < bound - CheckedRow.day }
            store.expect(rows: old, [], "rows older than \(days + 1) days")
            store.expect(
                try store.rows(SearchQuery(words: "text")).count(where: { $0.seen.nanoseconds >= bound }),
                young.count,
                "rows with a word"
            )
            store.expect(rows: try store.rows(SearchQuery(words: "word239")), [], "rows with a deleted word")
        }
        // Deleted rows can be added again: recordings may be older than the limit.
        let again = Array(rows[100..<110])
        try store.store(again)
        let bound = CheckedRow.noon - 2 * CheckedRow.day
        store.expect(
            rows: try store.allRows().filter { $0.seen.nanoseconds < bound },
            again.sorted { $0.order < $1.order },
            "rows that were added again"
        )
    }

    @Sendable private static func deletesSessions(_ store: CheckedStore) throws {
        for number in UInt64(1)...40 {
            var session = AuditSession(run: "run", number: number)
            session.began = CheckedRow.time(after: -Int64(number) * 43_200 - 60)
            // Every third session is open.
            if !number.isMultiple(of: 3) { session.ended = CheckedRow.time(after: -Int64(number) * 43_200) }
            session.account = CheckedRow.juliet
            session.source = RecordPlace(sequence: number, time: session.began ?? CheckedRow.time(after: 0))
            try store.add([session])
        }
        try store.store([CheckedRow.message(1, after: 0)])
        try store.retain(StoreLimit(age: .seconds(86_400 * 5)))
        let bound = CheckedRow.noon - 5 * CheckedRow.day
        let kept = (UInt64(1)...40).filter { number in
            number.isMultiple(of: 3) || CheckedRow.noon - Int64(number) * 43_200_000_000_000 >= bound
        }
        // A server deletes them when it has time.
        for _ in 0..<200 where try store.sessions().count > kept.count { usleep(50_000) }
        store.expect(try store.sessions().map(\.number), kept, "sessions")
    }

    @Sendable private static func keepsWithinAge(_ store: CheckedStore) throws {
        let rows = (UInt64(1)...20).map { CheckedRow.message($0, after: -Int64($0) * 86_400 * 100) }
        try store.store(rows)
        // More than the time since 1970, and the longest time.
        for years in [Int64(57), 100, 290] {
            try store.retain(StoreLimit(age: .seconds(86_400 * 365 * years)))
            store.expect(rows: try store.allRows(), rows.reversed(), "rows of \(years) years")
        }
        try store.retain(StoreLimit(age: .nanoseconds(Int64.max)))
        store.expect(rows: try store.allRows(), rows.reversed(), "rows of the longest time")
        try store.retain(StoreLimit())
        store.expect(rows: try store.allRows(), rows.reversed(), "rows without a limit")
    }
}
