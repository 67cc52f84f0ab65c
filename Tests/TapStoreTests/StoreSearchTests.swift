import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// A search shows the same in a store as in recordings.
struct StoreSearchTests {
    /// Returns a line for each message that a search shows.
    private static func shown(_ search: (_ body: (ShownMessage) -> Bool) throws -> Void) rethrows -> [String] {
        var lines: [String] = []
        try search { shown in
            let row = shown.message.row
            let copies = shown.message.copies.map { "\($0.sequence)" }.joined(separator: ",")
            lines.append(
                "\(shown.beginsRange ? "|" : " ")\(shown.isMatch ? "*" : " ")\(row.time.nanoseconds / 1_000_000_000 - 1_795_000_000) "
                    + "\(row.sender) \(row.receiver) \(row.kind) \(row.body ?? "-") \(copies)"
            )
            return true
        }
        return lines
    }

    private static func read(_ rows: [AuditRow], _ query: SearchQuery, _ context: Int?) -> [String] {
        var found = FoundMessages(query, context: context)
        for row in rows { found.add(row) }
        return shown { found.show(query, $0) }
    }

    private static func stored(_ store: SQLiteStore, _ query: SearchQuery, _ context: Int?) throws -> [String] {
        var search = StoreSearch(store, query, context: context)
        return try shown { body in try search.show { body($0) } }
    }

    private static let people = (1...4).map { "p\($0)@example.org" }
    private static let words = ["contract", "Contracts", "naïve", "合同", "мир", "x1", "ok"]

    /// Returns the rows of some conversations, in which messages have copies, are delayed, lack ids, or have no body.
    private static func talk(_ random: inout SeededGenerator) -> [AuditRow] {
        var rows: [AuditRow] = []
        var time: Int64 = 0
        for number in 1...120 {
            time += Int64.random(in: 0...(Bool.random(using: &random) ? 30 : 400), using: &random)
            let body = (0..<Int.random(in: 1...2, using: &random)).compactMap { _ in words.randomElement(using: &random)
            }
            .joined(separator: " ")
            let pair = people.shuffled(using: &random)
            let isOfRoom = Int.random(in: 0..<4, using: &random) == 0
            let id = Bool.random(using: &random) ? nil : "m\(Int.random(in: 0..<3, using: &random))"
            var copies = [
                TestRow.message(
                    body,
                    account: pair[0],
                    peer: isOfRoom
                        ? "hall@rooms.example.org" : Int.random(in: 0..<12, using: &random) == 0 ? nil : pair[1],
                    type: isOfRoom ? "groupchat" : "chat",
                    id: id,
                    after: time
                )
            ]
            if isOfRoom {
                for person in people {
                    var copy = TestRow.message(
                        body,
                        account: person,
                        peer: "hall@rooms.example.org",
                        direction: .recv,
                        type: "groupchat",
                        id: id ?? "r\(number)",
                        after: time + Int64.random(in: 0...2, using: &random)
                    )
                    copy.peerResource = pair[0]
                    copies.append(copy)
                }
            } else if Bool.random(using: &random) {
                copies.append(
                    TestRow.message(body, account: pair[1], peer: pair[0], direction: .recv, id: id, after: time + 1)
                )
            }
            for (index, copy) in copies.enumerated() {
                var row = copy
                row.session = UInt64((people.firstIndex(of: row.account) ?? 0) + 1)
                row.sequence = UInt64(rows.count + index + 1)
                if Int.random(in: 0..<5, using: &random) == 0 {
                    row.seen = Timestamp(
                        nanoseconds: row.time.nanoseconds + Int64.random(in: 1...20_000, using: &random) * 1_000_000_000
                    )
                    row.source = .archive
                }
                if number.isMultiple(of: 9) { (row.kind, row.body) = (.iq, nil) }
                if number.isMultiple(of: 10) { row.body = nil }
                copies[index] = row
            }
            rows += copies
        }
        return rows
    }

    /// Returns queries with and without words, addresses, times and kinds.
    private static func queries(_ rows: [AuditRow]) -> [SearchQuery] {
        ["", "contract", "contr*", "naive мир", "合", "nothing"].flatMap { text -> [SearchQuery] in
            let plain = SearchQuery(words: text)
            var queries = [plain]
            func add(_ change: (inout SearchQuery) -> Void) {
                var query = plain
                change(&query)
                queries.append(query)
            }
            add { $0.account = people[0] }
            add { ($0.account, $0.peer) = (people[0], people[1]) }
            add { $0.peer = people[2] }
            add { $0.pair = (people[2], people[1]) }
            add { $0.pair = (people[2], people[2]) }
            add { $0.room = "hall@rooms.example.org" }
            add { ($0.room, $0.account) = ("hall@rooms.example.org", people[3]) }
            add { $0.times = rows[50].time..<rows[120].time }
            add { ($0.times, $0.account) = (rows[50].time..<rows[120].time, people[1]) }
            add { $0.kinds = [.message] }
            add { ($0.kinds, $0.account) = ([.iq, .presence], people[1]) }
            return queries
        }
    }

    @Test("A store and recordings give the same messages in the same order, with any filter and context")
    func storeEqualsRecordings() throws {
        for seed in 1...4 {
            var random = SeededGenerator(seed: UInt64(seed))
            let rows = Self.talk(&random)
            let folder = try TemporaryFolder()
            // Small parts, so that a search crosses their borders.
            let store = try SQLiteStore.create(folder.path(of: "a.sqlite"), partSize: 20)
            for row in rows.shuffled(using: &random) { try store.add(.stanza(row)) }
            try store.commit()
            for query in Self.queries(rows) {
                for context in [nil, 0, 1, 3] {
                    let expected = Self.read(rows, query, context)
                    let found = try Self.stored(store, query, context)
                    #expect(found == expected, "seed \(seed), context \(context ?? -1): \(query)")
                }
            }
        }
    }

    @Test("With context, the matches are those without, and each message is shown once")
    func contextKeepsMatches() throws {
        var random = SeededGenerator(seed: 9)
        let rows = Self.talk(&random)
        for query in Self.queries(rows) {
            let matches = Self.read(rows, query, nil).map { $0.dropFirst(2) }
            let all = Self.read(rows, query, 2)
            #expect(Set(all.filter { $0.dropFirst().hasPrefix("*") }.map { $0.dropFirst(2) }) == Set(matches))
            #expect(Set(all).count == all.count)
        }
    }

    @Test("Ranges of context that overlap or touch are joined")
    func joinsRanges() throws {
        func ranges(_ pattern: String, _ context: Int) -> String {
            let rows = pattern.enumerated().map { index, character in
                TestRow.message(
                    character == "x" ? "found" : "other",
                    sequence: UInt64(index + 1),
                    id: "m\(index)",
                    after: Int64(index)
                )
            }
            return Self.read(rows, SearchQuery(words: "found"), context)
                .map { "\($0.hasPrefix("|") ? "|" : "")\($0.contains("found") ? "x" : ".")" }.joined()
        }
        #expect(ranges("..x...x..", 1) == "|.x.|.x.")
        #expect(ranges("..x..x..", 1) == "|.x..x.")
        #expect(ranges("x.......x", 3) == "|x...|...x")
        #expect(ranges("x......x", 3) == "|x......x")
        #expect(ranges("xx..x", 0) == "|xx|x")
        #expect(ranges("...", 5) == "")
    }

    @Test(
        "Messages around a match are told apart as in the whole conversation, if a text is repeated again and again"
    )
    func readsEarlierCopies() throws {
        // The text without an id is repeated each four minutes, so that all of it has to be read to tell messages apart.
        let rows = (0..<60).flatMap { index -> [AuditRow] in
            let (number, time) = (UInt64(index) * 2 + 1, Int64(index) * 240)
            return [
                TestRow.message("beat", sequence: number, id: nil, after: time),
                TestRow.message(
                    index == 50 ? "found" : "other",
                    sequence: number + 1,
                    id: "m\(index)",
                    after: time + 60
                ),
            ]
        }
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"))
        for row in rows { try store.add(.stanza(row)) }
        try store.commit()
        for context in 0...5 {
            let query = SearchQuery(words: "found")
            let expected = Self.read(rows, query, context)
            #expect(expected.count == 2 * context + 1)
            #expect(try Self.stored(store, query, context) == expected)
        }
    }

    @Test("The messages around a match are read from the index in order of time")
    func usesIndex() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"))
        for (number, peer) in ["romeo@example.org", "hall@rooms.example.org", nil].enumerated() {
            try store.add(.stanza(TestRow.message("hi", sequence: UInt64(number + 1), peer: peer)))
        }
        try store.commit()
        let conversations: [Conversation] = [
            .room("hall@rooms.example.org"), .people("juliet@example.org", "romeo@example.org"),
            .people("juliet@example.org", "juliet@example.org"),
        ]
        for place in try conversations.flatMap({ try store.conversationPlaces($0) }) {
            for order in [IDPages.Order.ascending, .descending] {
                var pages = IDPages(place, index: "stanza_place")
                pages.order = order
                let statement = try store.database.prepare("EXPLAIN QUERY PLAN \(pages.sql)")
                var plan: [String] = []
                while try statement.step() { plan.append(statement.text(3) ?? "") }
                let range = "(account=? AND peer=? AND time\(order == .ascending ? ">" : "<")?)"
                #expect(plan == ["SEARCH stanza USING COVERING INDEX stanza_place \(range)"], "\(pages.sql)")
            }
        }
    }
}
