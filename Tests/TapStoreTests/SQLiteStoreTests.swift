import Foundation
import Synchronization
import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// The store in a SQLite file.
@Suite(.timeLimit(.minutes(2)))
struct SQLiteStoreTests {
    private static func bodies(_ store: SQLiteStore, _ query: SearchQuery) throws -> [String] {
        var bodies: [String] = []
        try store.candidates(for: query) { if query.matches($0) { bodies.append($0.body ?? "-") } }
        return bodies.sorted()
    }

    @Test("Rows are read as they were written, with any text, and adding a row again has no effect")
    func keepsRows() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let texts = [
            "", "'; DROP TABLE stanza; --", "\"%_*\u{0}x", String(repeating: "合同 Vertrag ", count: 70_000),
            "\u{10FFFF}", "0b5c1fd0-1dcb-4e3a-9f00-00ff00ff00ff", "0B5C1FD0-1dcb-4e3a-9f00-00ff00ff00ff",
            "0b5c1fd0-1dcb-4e3a-9f00x00ff00ff00ff",
        ]
        var rows: [AuditRow] = []
        for (number, text) in texts.enumerated() {
            var row = TestRow.message(text, sequence: UInt64(number + 1), peer: "\(text.prefix(50))@x", id: text)
            (row.resource, row.peerResource, row.payload, row.thread, row.subject) = (text, text, text, text, text)
            (row.stanzaID, row.stanzaBy, row.originID, row.action, row.rule) = (text, text, text, text, text)
            (row.condition, row.roundTrip, row.xml) = (text, -1, text)
            row.seen = Timestamp(nanoseconds: .max)
            rows.append(row)
        }
        for _ in 0..<2 {
            let store = try SQLiteStore.create(path)
            for row in rows { try store.add(row) }
            try store.commit()
        }
        let store = try SQLiteStore.open(path)
        var read: [AuditRow] = []
        try store.candidates(for: SearchQuery(words: "")) { read.append($0) }
        #expect(read.sorted { $0.sequence < $1.sequence } == rows)
        #expect(try store.faults() == [])
        let overview = try store.overview()
        #expect(overview.stanzas == 8 && overview.bodies == 8 && overview.accounts == 1 && overview.runs == 1)
    }

    @Test("The index finds what the matcher finds, for each kind of query")
    func findsWhatMatches() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"))
        var random = SeededGenerator(seed: 3)
        let words = ["contract", "Contracts", "naïve", "合同", "мир", "x1", "a7", "e000"]
        let people = (1...4).map { "p\($0)@example.org" }
        var rows: [AuditRow] = []
        for number in 1...300 {
            let body = (0..<Int.random(in: 1...4, using: &random)).map { _ in words.randomElement(using: &random) ?? ""
            }
            let pair = people.shuffled(using: &random)
            var row = TestRow.message(
                body.joined(separator: " "),
                sequence: UInt64(number),
                account: pair[0],
                peer: pair[1],
                direction: Bool.random(using: &random) ? .send : .recv,
                type: Bool.random(using: &random) ? "chat" : "groupchat",
                after: Int64(number)
            )
            if number.isMultiple(of: 10) { (row.kind, row.body) = (.iq, nil) }
            rows.append(row)
            try store.add(row)
        }
        try store.commit()
        var queries: [SearchQuery] = ["", "contract", "contr*", "naive мир", "合同 x1", "合", "同", "a7", "nothing"].map {
            SearchQuery(words: $0)
        }
        for text in ["", "contr*", "合同"] {
            var query = SearchQuery(words: text)
            query.account = people[0]
            queries.append(query)
            query.peer = people[1]
            queries.append(query)
            query = SearchQuery(words: text)
            query.pair = (people[2], people[1])
            queries.append(query)
            query = SearchQuery(words: text)
            query.room = people[3]
            queries.append(query)
            query.times = rows[50].time..<rows[200].time
            queries.append(query)
            query = SearchQuery(words: "")
            query.kinds = [.iq]
            query.account = "nobody@example.org"
            queries.append(query)
        }
        for query in queries {
            let expected = rows.filter { query.matches($0) }.map { $0.body ?? "-" }.sorted()
            #expect(try Self.bodies(store, query) == expected, "\(query)")
        }
    }

    @Test("A file that is no store, newer, damaged, missing, locked or not writable is refused with the reason")
    func refusesFaultyFiles() throws {
        let folder = try TemporaryFolder()
        func refused(_ body: () throws(StoreFault) -> Void) -> StoreFault.Code? {
            do throws(StoreFault) {
                try body()
                return nil
            } catch {
                #expect("\(error)".hasPrefix(folder.path))
                return error.code
            }
        }
        let text = try folder.write(
            "some text, longer than the header of a database, which has a hundred bytes; so it goes "
                + "on for a while\n",
            to: "text"
        )
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.open(text) } == .foreign)
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.create(text) } == .foreign)
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.open(folder.path(of: "none")) } == .missing)
        let foreign = try SQLiteDatabase(folder.path(of: "foreign"), .writing)
        try foreign.run("CREATE TABLE t(a)")
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.create(folder.path(of: "foreign")) } == .foreign)

        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path)
        try store.add(TestRow.message("hi"))
        #expect(
            refused { () throws(StoreFault) in
                let second = try SQLiteStore.create(path)
                try second.add(TestRow.message("hi", sequence: 2))
            } == .locked
        )
        try store.commit()
        let reader = try SQLiteStore.open(path)
        #expect(refused { () throws(StoreFault) in try reader.add(TestRow.message("hi")) } == .readOnly)
        let newer = try SQLiteDatabase(path, .writing)
        try newer.run("PRAGMA user_version = 2")
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.open(path) } == .newer(2, known: 1))
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.create(path) } == .newer(2, known: 1))
    }

    @Test("A store that another program writes to loses stanzas until it is free, and says how many")
    func countsLosses() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let events = Mutex<[String]>([])
        let feed = try StoreFeed(path, run: "run", keepsXML: false) { event in
            switch event {
            case .failed(let fault): events.withLock { $0.append("\(fault.code)") }
            case .recovered(let dropped): events.withLock { $0.append("lost \(dropped)") }
            }
        }
        let pipe = try #require(FileHandle(forWritingAtPath: feed.destination))
        feed.started()
        var number = 0
        func send() throws {
            number += 1
            let line =
                #"{"sequence":\#(number),"time":"2026-11-21T17:22:42.102000000Z","monotonic":1,"level":"info","kind":"stanza","#
                + #""session":1,"jid":"a@b/c","direction":"send","name":"message","xml":"<message><body>x</body></message>"}"#
            try pipe.write(contentsOf: Data("\(line)\nno record\n".utf8))
        }
        let other = try SQLiteDatabase(path, .writing)
        try other.run("BEGIN IMMEDIATE")
        for expected in ["locked", "lost"] {
            // The store is tried again after some seconds.
            while events.withLock({ $0.last?.hasPrefix(expected) }) != true {
                try send()
                try await Task.sleep(for: .milliseconds(100))
            }
            if expected == "locked" { try other.run("COMMIT") }
        }
        // Rows are committed although more arrive all the time.
        while try SQLiteStore.open(path).overview().stanzas == 0 {
            try send()
            try await Task.sleep(for: .milliseconds(100))
        }
        try pipe.close()
        let lost = feed.finish()
        #expect(lost > 0 && events.withLock { $0 } == ["locked", "lost \(lost)"])
        #expect(try SQLiteStore.open(path).overview().stanzas == number - lost)
    }
}
