import TapRecord
import TapStore

/// Checks of rows that are added, added again and abandoned.
extension StoreCheck {
    static let writing = [
        StoreCheck("rows are read as they were written", readsRows),
        StoreCheck("adding a row again has no effect", ignoresKnownRows),
        StoreCheck("rows with the same number in different runs are different", tellsRunsApart),
        StoreCheck("abandoned rows are not stored, and can be added again", abandons),
        StoreCheck("the overview counts each row once", counts),
    ]

    @Sendable private static func readsRows(_ store: CheckedStore) throws {
        var rows: [AuditRow] = []
        for kind in AuditRow.Kind.allCases {
            for direction in [Direction.send, .recv] {
                for source in [AuditRow.Source.live, .carbon, .archive] {
                    var row = CheckedRow.message(UInt64(rows.count + 1), direction: direction, kind: kind)
                    row.source = source
                    rows.append(row)
                }
            }
        }
        for kind in AuditRow.Kind.allCases {
            // The other end and the type are missing in stanzas for the account itself.
            rows.append(CheckedRow.message(UInt64(rows.count + 1), nil, peer: nil, kind: kind, type: nil))
        }
        let uuid = "0b5c1fd0-1dcb-4e3a-9f00-00ff00ff00ff"
        for id in [uuid, uuid.uppercased(), "\(uuid) ", String(uuid.dropLast()), "0", " "] {
            rows.append(CheckedRow.full(UInt64(rows.count + 1), id, name: id))
        }
        // An empty text is not a missing one.
        var empty = CheckedRow.message(UInt64(rows.count + 1), "")
        empty.subject = ""
        rows.append(empty)
        let times: [Int64] = [.min, -1, 0, 1, CheckedRow.noon, 4_294_967_295_999_999_999, .max - 1, .max]
        for seen in times {
            for time in times {
                var row = CheckedRow.message(UInt64(rows.count + 1))
                (row.seen, row.time) = (Timestamp(nanoseconds: seen), Timestamp(nanoseconds: time))
                (row.roundTrip, row.size) = (time, seen < 0 ? 0 : Int(seen))
                rows.append(row)
            }
        }
        for sequence in [0, 0xFFFF_FFFF, 0x1_0000_0000, 0x1_0000_0001, UInt64(Int64.max), .max] {
            var row = CheckedRow.message(sequence, "number \(sequence)", run: "long", after: 0)
            row.session = UInt64(Int64.max)
            rows.append(row)
        }
        try store.store(rows)
        store.expect(rows: try store.allRows(), rows.sorted { $0.order < $1.order }, "all rows")
        let bodies = rows.filter { $0.kind == .message && $0.body != nil }
        store.expect(
            rows: try store.rows(SearchQuery(words: "")),
            bodies.sorted { $0.order < $1.order },
            "messages with a body"
        )
    }

    @Sendable private static func ignoresKnownRows(_ store: CheckedStore) throws {
        let rows = (UInt64(1)...40).map { CheckedRow.message($0, "text \($0)") }
        try store.store(Array(rows[0..<20] + rows[10..<15]))
        try store.store(Array(rows[0..<5]))
        try store.restart()
        try store.store(Array(rows[5..<30]))
        try store.restart()
        // A whole batch is sent again if its answer was lost.
        for _ in 0..<2 { try store.store(Array(rows[30..<40])) }
        store.expect(rows: try store.allRows(), rows, "all rows")
        store.expect(rows: try store.rows(SearchQuery(words: "text")), rows, "rows with a word")
        let overview = try store.overview()
        store.expect([overview.stanzas, overview.bodies], [40, 40], "counts")
    }

    @Sendable private static func tellsRunsApart(_ store: CheckedStore) throws {
        let runs = ["run", "run ", "Run", "r\u{FC}n", "0"]
        let rows = runs.map { CheckedRow.message(1, "text of \($0)", run: $0) }
        try store.store(rows)
        store.expect(rows: try store.allRows(), rows.sorted { $0.order < $1.order }, "all rows")
        store.expect(try store.overview().runs, runs.count, "number of runs")
    }

    @Sendable private static func abandons(_ store: CheckedStore) throws {
        let rows = (UInt64(1)...30).map {
            CheckedRow.message($0, "text \($0)", run: "run \($0)", account: "a\($0)@example.org")
        }
        try store.store(Array(rows[0..<10]))
        try store.add(Array(rows[5..<20]))
        store.abandon()
        try store.commit()
        store.expect(rows: try store.allRows(), Array(rows[0..<10]), "rows after abandoning")
        store.abandon()
        try store.store(Array(rows[10..<30]))
        store.expect(rows: try store.allRows(), rows, "rows after adding them again")
        store.expect(try store.rows(SearchQuery(words: "text")).count, 30, "rows with a word")
        try store.commit()
        store.expect(try store.overview().accounts, 30, "number of accounts")
    }

    @Sendable private static func counts(_ store: CheckedStore) throws {
        let empty = try store.overview()
        store.expect(
            [empty.stanzas, empty.bodies, empty.runs, empty.accounts, empty.pictures, empty.vCards],
            [0, 0, 0, 0, 0, 0],
            "counts of an empty store"
        )
        store.expect(empty.times, nil, "times of an empty store")
        store.expect(try store.sessions(), [], "sessions of an empty store")
        var rows = (UInt64(1)...10).map { number in
            CheckedRow.message(
                number,
                number.isMultiple(of: 2) ? "text" : nil,
                run: "run \(number % 3)",
                account: "a\(number % 4)@example.org",
                after: Int64(number) * 100_000
            )
        }
        // The times are those at which stanzas were seen.
        rows[9].time = CheckedRow.time(after: -1_000_000)
        for _ in 0..<2 { try store.store(rows) }
        let overview = try store.overview()
        store.expect([overview.stanzas, overview.bodies, overview.runs, overview.accounts], [10, 5, 3, 4], "counts")
        store.expect(
            overview.times,
            CheckedRow.time(after: 100_000)...CheckedRow.time(after: 1_000_000),
            "times of the first and last stanza"
        )
        store.expect(overview.bytes > 0, true, "the store has bytes")
        store.expect(overview.missing, 0, "missing stanzas")
        for number in 1...2 { try store.add(gapFrom: UInt64(number * 100), stanzas: 7) }
        try store.commit()
        store.expect(try store.overview().missing, 14, "missing stanzas after two gaps")
    }
}
