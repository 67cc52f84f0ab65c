import TapRecord
import TapStore

/// Checks of the fields of queries, of times, and of the borders between pages.
extension StoreCheck {
    static let queries = [
        StoreCheck("each combination of a query's fields finds the rows that match", findsByFields),
        StoreCheck("a stanza is found by its own time and by that at which it was seen", findsByTime),
        StoreCheck(
            "no row is missing or repeated between pages, also with equal times and rows sent twice",
            readsPages
        ),
        StoreCheck("a search shows the messages around those that it finds, as in recordings", showsContext),
    ]

    private static let people = (1...4).map { "p\($0)@example.org" } + ["o'brien@example.org"]

    /// Returns stanzas of all kinds between some people and a room.
    private static func talk(_ random: inout SeededGenerator) -> [AuditRow] {
        let words = ["contract", "Contracts", "naïve", "合同", "мир", "x1", "계약", "e000"]
        return (UInt64(1)...400).map { number in
            let body = (0..<Int.random(in: 1...4, using: &random)).map { _ in words.randomElement(using: &random) ?? ""
            }
            let pair = people.shuffled(using: &random)
            let isOfRoom = Int.random(in: 0..<4, using: &random) == 0
            var row = CheckedRow.message(
                number,
                body.joined(separator: " "),
                run: Bool.random(using: &random) ? "run" : "other",
                account: pair[0],
                peer: isOfRoom ? CheckedRow.room : [pair[1], pair[0], nil].randomElement(using: &random) ?? nil,
                direction: Bool.random(using: &random) ? .send : .recv,
                kind: AuditRow.Kind.allCases.randomElement(using: &random) ?? .iq,
                type: isOfRoom ? "groupchat" : "chat",
                // Over some days, with equal times.
                after: Int64.random(in: 0..<200, using: &random) * 3000
            )
            if isOfRoom { row.peerResource = "nick" }
            if row.kind != .message || Int.random(in: 0..<9, using: &random) == 0 { row.body = nil }
            if Int.random(in: 0..<5, using: &random) == 0 {
                row.time = Timestamp(
                    nanoseconds: row.seen.nanoseconds - Int64.random(in: 0...200_000, using: &random) * 1_000_000_000
                )
                row.source = .archive
            }
            return row
        }
    }

    @Sendable private static func showsContext(_ store: CheckedStore) throws {
        var random = SeededGenerator(seed: 33)
        let rows = talk(&random)
        try store.store(rows)
        for text in ["contract", "мир", "e000 x1"] {
            for change in [
                { _ in }, { $0.account = people[0] }, { $0.room = CheckedRow.room },
                { $0.pair = (people[1], people[2]) },
            ]
                as [(inout SearchQuery) -> Void]
            {
                var query = SearchQuery(words: text)
                change(&query)
                for context in [0, 1, 4] {
                    var found = FoundMessages(query, context: context)
                    for row in rows { found.add(row) }
                    var expected: [String] = []
                    found.show(query) { message in
                        expected.append(CheckedStore.line(message))
                        return true
                    }
                    let shown = try store.search(query, context: context)
                    store.expect(shown, expected, "'\(text)' with \(context) messages around")
                }
            }
        }
    }

    private static func combinations() -> [SearchQuery] {
        let times: [Range<Timestamp>?] = [
            nil, CheckedRow.time(after: 100_000)..<CheckedRow.time(after: 300_000),
            Timestamp(nanoseconds: .min)..<Timestamp(nanoseconds: .max),
        ]
        let kinds: [Set<AuditRow.Kind>] = [[], [.iq, .presence], Set(AuditRow.Kind.allCases)]
        var queries: [SearchQuery] = []
        for text in ["", "contr*", "naive МИР", "계약", "合", "nothing"] {
            for times in times {
                for kinds in kinds where text.isEmpty || kinds.isEmpty || kinds.contains(.message) {
                    var plain = SearchQuery(words: text)
                    (plain.times, plain.kinds) = (times, kinds)
                    queries.append(plain)
                    func add(_ change: (inout SearchQuery) -> Void) {
                        var query = plain
                        change(&query)
                        queries.append(query)
                    }
                    add { $0.account = people[0] }
                    add { $0.peer = people[4] }
                    add { ($0.account, $0.peer) = (people[4], people[1]) }
                    add { $0.pair = (people[4], people[1]) }
                    add { ($0.pair, $0.account) = ((people[4], people[1]), people[1]) }
                    // Stanzas of an account to itself may name no other end.
                    add { $0.pair = (people[2], people[2]) }
                    add { $0.pair = (people[2], CheckedRow.room) }
                    add { $0.room = CheckedRow.room }
                    add { ($0.room, $0.account) = (CheckedRow.room, people[3]) }
                    add { $0.room = people[3] }
                    add { $0.account = "nobody@example.org" }
                }
            }
        }
        return queries
    }

    @Sendable private static func findsByFields(_ store: CheckedStore) throws {
        var random = SeededGenerator(seed: 7)
        let rows = talk(&random)
        for part in 0..<4 { try store.store(rows[(part * 100)..<(part * 100 + 100)].shuffled(using: &random)) }
        for query in combinations() {
            let expected = rows.filter { query.matches($0) }.sorted { $0.order < $1.order }
            store.expect(rows: try store.rows(query), expected, describe(query))
        }
    }

    private static func describe(_ query: SearchQuery) -> String {
        var parts = ["'\(query.text)'"]
        if let account = query.account { parts.append("account \(account)") }
        if let peer = query.peer { parts.append("peer \(peer)") }
        if let (one, other) = query.pair { parts.append("between \(one) and \(other)") }
        if let room = query.room { parts.append("room \(room)") }
        if let times = query.times { parts.append("\(times.lowerBound.nanoseconds)..<\(times.upperBound.nanoseconds)") }
        if !query.kinds.isEmpty { parts.append(query.kinds.map(\.name).sorted().joined(separator: "+")) }
        return parts.joined(separator: ", ")
    }

    @Sendable private static func findsByTime(_ store: CheckedStore) throws {
        // Times in any order, as if the clock was changed again and again, and delayed stanzas.
        let moments: [Int64] = [0, 86_400 * 400, -86_400 * 400, 5, 86_400 * 399, -7, 86_399, 43_200, 43_199, 6]
        var rows: [AuditRow] = []
        for seen in moments {
            for time in moments {
                var row = CheckedRow.message(UInt64(rows.count + 1), "text \(rows.count)")
                (row.seen, row.time) = (CheckedRow.time(after: seen), CheckedRow.time(after: time))
                rows.append(row)
            }
        }
        for start in stride(from: 0, to: rows.count, by: 7) {
            try store.store(Array(rows[start..<min(start + 7, rows.count)]))
        }
        let lengths: [Int64] = [0, 1, 7, 86_400, 86_400 * 800]
        for words in ["", "text"] {
            for start in moments {
                for length in lengths {
                    for account in [nil, CheckedRow.juliet] {
                        var query = SearchQuery(words: words)
                        query.account = account
                        query.times = CheckedRow.time(after: start)..<CheckedRow.time(after: start + length)
                        let expected = rows.filter { query.matches($0) }.sorted { $0.order < $1.order }
                        store.expect(rows: try store.rows(query), expected, describe(query))
                    }
                }
            }
        }
    }

    @Sendable private static func readsPages(_ store: CheckedStore) throws {
        // Stores read up to 20,000 rows at a time.
        let rows = (UInt64(0)..<40_100).map { number in
            CheckedRow.message(
                number + 1,
                number.isMultiple(of: 1000) ? "needle \(number)" : "hay \(number)",
                run: number.isMultiple(of: 3) ? "other" : "run",
                account: people[Int(number % 5)],
                // Groups of 300 rows have the same time; one of them is across each border.
                after: Int64(number / 300)
            )
        }
        let sorted = rows.sorted { $0.order < $1.order }
        try store.store(rows)
        try store.restart()
        try store.store(Array(sorted[19_900..<20_100]) + Array(sorted[39_990..<40_010]))
        store.expect(rows: try store.rows(SearchQuery(words: "")), sorted, "all rows")
        store.expect(
            rows: try store.rows(SearchQuery(words: "needle")),
            sorted.filter { $0.body?.hasPrefix("needle") ?? false },
            "rows with a word"
        )
        var query = SearchQuery(words: "")
        query.times = CheckedRow.time(after: 66)..<CheckedRow.time(after: 68)
        store.expect(try store.rows(query).count, 600, "rows of the times at the border")
        store.expect(try store.overview().stanzas, 40_100, "number of stanzas")
    }
}
