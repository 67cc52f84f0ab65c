import Foundation
import Synchronization
import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// The store in a SQLite file.
struct SQLiteStoreTests {
    private static func bodies(_ store: SQLiteStore, _ query: SearchQuery) throws -> [String] {
        try store.rows(for: query).map { $0.body ?? "-" }.sorted()
    }

    @Test("The write-ahead log of a store that always has a reader is written to the file, and emptied")
    func emptiesLog() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path)
        (store.usualLog, store.greatLog) = (100_000, 1_000_000)
        var number: UInt64 = 0
        func write(_ count: Int) throws {
            for _ in 0..<count {
                number += 1
                try store.add(.stanza(TestRow.message(String(repeating: "text ", count: 1000), sequence: number)))
            }
            try store.commit()
        }
        func logSize() throws -> Int {
            try FileManager.default.attributesOfItem(atPath: "\(path)-wal")[.size] as? Int ?? 0
        }
        try write(1)
        // The second reader begins before the first one ends, so that a reader is always there.
        func reader() throws -> SQLiteDatabase {
            let reader = try SQLiteDatabase(path, .reading)
            try reader.run("BEGIN")
            _ = try reader.integer("SELECT count(*) FROM stanza")
            return reader
        }
        let first = try reader()
        try write(500)
        #expect(try logSize() > 1_000_000, "a reader needs the log")
        let second = try reader()
        try first.run("COMMIT")
        try write(1)
        // The second reader needs nothing but the end of the log.
        try second.run("COMMIT")
        try write(1)
        #expect(try logSize() == 0)
        #expect(try store.overview().stanzas == 503)
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
            for row in rows { try store.add(.stanza(row)) }
            try store.commit()
        }
        let store = try SQLiteStore.open(path)
        let read = try store.rows(for: SearchQuery(words: ""))
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
            try store.add(.stanza(row))
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
        try store.add(.stanza(TestRow.message("hi")))
        #expect(
            refused { () throws(StoreFault) in
                let second = try SQLiteStore.create(path)
                try second.add(.stanza(TestRow.message("hi", sequence: 2)))
            } == .locked
        )
        try store.commit()
        let reader = try SQLiteStore.open(path)
        #expect(refused { () throws(StoreFault) in try reader.add(.stanza(TestRow.message("hi"))) } == .readOnly)
        let newer = try SQLiteDatabase(path, .writing)
        try newer.run("PRAGMA user_version = 6")
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.open(path) } == .newer(6, known: 5))
        #expect(refused { () throws(StoreFault) in _ = try SQLiteStore.create(path) } == .newer(6, known: 5))
    }

    @Test("A row whose names the store refuses leaves nothing to the next row")
    func keepsRowsApart() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path)
        try SQLiteDatabase(path, .writing).run(
            "CREATE TRIGGER no BEFORE INSERT ON name WHEN NEW.text = 'no' BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
        var refused = TestRow.message("delayed", sequence: 1)
        refused.time = Timestamp(nanoseconds: refused.seen.nanoseconds - 1_000_000_000)
        refused.resource = "phone"
        refused.condition = "no"
        #expect(throws: StoreFault.self) { try store.add(refused) }
        var next = TestRow.message("next", sequence: 2)
        next.resource = nil
        try store.add(next)
        try store.commit()
        #expect(try store.rows(for: SearchQuery(words: "")) == [next])
    }

    @Test("A store of an earlier version is brought up to date, with its words", arguments: [1, 2, 3, 4])
    func updates(version: Int) throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        if version >= 3 {
            let current = try SQLiteStore.create(path)
            try current.add(.stanza(TestRow.message("old words", after: 0)))
            try current.commit()
        }
        let old = try SQLiteDatabase(path, .writing)
        try old.run([Self.version1, Self.version2, Self.version3, Self.version4][version - 1])
        #expect(throws: StoreFault.self) { try SQLiteStore.open(path) }
        let store = try SQLiteStore.create(path)
        var new = TestRow.message("new words", sequence: 9)
        new.tap = "tap"
        try store.add(.stanza(new))
        let time = Timestamp(nanoseconds: 1_795_000_000_000_000_000)
        let gap = StoreGap(
            run: "run",
            first: 3,
            last: 8,
            stanzas: 5,
            reason: "the store could not be written",
            time: time
        )
        try store.add(.gap(gap))
        try store.commit()
        #expect(try store.overview().missing == 5)
        #expect(try Self.bodies(store, SearchQuery(words: "words")) == ["new words", "old words"])
        #expect(try Self.bodies(SQLiteStore.open(path), SearchQuery(words: "OLD")) == ["old words"])
        #expect(try Self.bodies(store, SearchQuery(words: "")) == ["new words", "old words"])
        let row = TestRow.message("", after: 0)
        #expect(try store.times()?.lowerBound == row.time)
        #expect(try store.faults() == [])
    }

    /// The statements by which version 1 made a store with one message.
    private static let version1: StaticString = """
        PRAGMA auto_vacuum = INCREMENTAL;
        PRAGMA journal_mode = WAL;
        CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
        CREATE TABLE stanza(
            id INTEGER PRIMARY KEY, run INTEGER NOT NULL, session INTEGER NOT NULL,
            time INTEGER NOT NULL, seen INTEGER NOT NULL,
            account INTEGER NOT NULL, resource INTEGER, peer INTEGER, peer_resource INTEGER,
            direction INTEGER NOT NULL, kind INTEGER NOT NULL, source INTEGER NOT NULL, type INTEGER, stanza TEXT, payload INTEGER,
            body TEXT, subject TEXT, thread TEXT, stanza_id TEXT, stanza_by INTEGER, origin_id TEXT, copy_key BLOB,
            size INTEGER NOT NULL, action INTEGER, rule INTEGER, condition INTEGER, round_trip INTEGER, xml TEXT);
        CREATE INDEX stanza_place ON stanza(account, peer, time);
        CREATE INDEX stanza_time ON stanza(time);
        CREATE VIRTUAL TABLE word USING fts5(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
        INSERT INTO name VALUES (1, 'run'), (2, 'juliet@example.org'), (3, 'romeo@example.org');
        INSERT INTO stanza(id, run, session, time, seen, account, peer, direction, kind, source, body, size) VALUES
            (1099511627777, 1, 1, 1795000000000000000, 1795000000000000000, 2, 3, 0, 0, 0, 'old words', 100);
        INSERT INTO word(rowid, words) VALUES (1099511627777, 'old words');
        PRAGMA application_id = 0x78746170;
        PRAGMA user_version = 1;
        """

    /// The statements that make a store of version 3 from one of today.
    private static let version3: StaticString =
        "ALTER TABLE run DROP COLUMN tap; DROP TABLE gap; PRAGMA user_version = 3"
    private static let version4: StaticString = "DROP TABLE gap; PRAGMA user_version = 4"

    /// The statements by which version 2 made a store with one message, which was delayed.
    private static let version2: StaticString = """
        PRAGMA auto_vacuum = INCREMENTAL;
        PRAGMA journal_mode = WAL;
        CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
        CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT NOT NULL, part INTEGER NOT NULL, UNIQUE(name, part));
        CREATE TABLE stanza(
            id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seen INTEGER NOT NULL, time INTEGER NOT NULL,
            account INTEGER NOT NULL, resource INTEGER, peer INTEGER, peer_resource INTEGER,
            direction INTEGER NOT NULL, kind INTEGER NOT NULL, source INTEGER NOT NULL, type INTEGER, stanza TEXT,
            payload INTEGER, body TEXT, subject TEXT, thread TEXT, stanza_id TEXT, stanza_by INTEGER, origin_id TEXT,
            copy_key BLOB, size INTEGER NOT NULL, action INTEGER, rule INTEGER, condition INTEGER, round_trip INTEGER,
            xml TEXT);
        CREATE INDEX stanza_place ON stanza(account, peer, time);
        CREATE INDEX stanza_delayed ON stanza(time) WHERE time <> seen;
        CREATE TABLE session(
            run TEXT NOT NULL, number INTEGER NOT NULL, account INTEGER, client TEXT, began INTEGER, ended INTEGER,
            cause INTEGER, finding TEXT, close_reason INTEGER, PRIMARY KEY(run, number)) WITHOUT ROWID;
        CREATE TABLE picture(hash BLOB PRIMARY KEY, type TEXT NOT NULL, bytes BLOB NOT NULL);
        CREATE TABLE avatar(
            hash BLOB NOT NULL, contact INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            PRIMARY KEY(hash, contact)) WITHOUT ROWID;
        CREATE TABLE vcard(
            hash BLOB NOT NULL, contact INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, xml TEXT NOT NULL,
            PRIMARY KEY(hash, contact));
        CREATE INDEX vcard_last ON vcard(last);
        CREATE TABLE part(number INTEGER PRIMARY KEY, start INTEGER NOT NULL UNIQUE);
        CREATE VIRTUAL TABLE word_1 USING fts5(words, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
        INSERT INTO part VALUES (1, 1794960000000000000);
        INSERT INTO run VALUES (0, 'run', 0);
        INSERT INTO name VALUES (2, 'juliet@example.org'), (3, 'romeo@example.org');
        INSERT INTO stanza(id, session, time, seen, account, peer, direction, kind, source, body, size) VALUES
            (5847642641163878401, 1, 1794999999000000000, 1795000000000000000, 2, 3, 0, 0, 0, 'old words', 100);
        INSERT INTO word_1(rowid, words) VALUES (5847642641163878401, 'old words');
        PRAGMA application_id = 0x78746170;
        PRAGMA user_version = 2;
        """

    @Test("Rows of any number of minutes come in the order of their times, whatever the order of their records")
    func readsInOrder() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"))
        var random = SeededGenerator(seed: 8)
        var rows: [AuditRow] = []
        for number in 0..<4000 {
            // Usually, the clock advances.
            let jump = number.isMultiple(of: 50) ? Int64.random(in: -100_000...100_000, using: &random) : 0
            var row = TestRow.message("n\(number)", sequence: UInt64(number + 1), after: Int64(number) * 40 + jump)
            row.run = number.isMultiple(of: 3) ? "run" : "other"
            if number.isMultiple(of: 20) {
                row.time = Timestamp(
                    nanoseconds: row.seen.nanoseconds - Int64.random(in: 1...Int64(1e15), using: &random)
                )
            }
            rows.append(row)
            try store.add(.stanza(row))
            if number.isMultiple(of: 7) { try store.commit() }
        }
        try store.commit()
        // Rows that are not committed have no minutes.
        try store.add(.stanza(TestRow.message("never", sequence: 5000, after: 1)))
        store.abandon()
        let seen = rows.map(\.seen).sorted()
        #expect(try store.times() == seen[0]...seen[seen.count - 1])
        for range in [0..<4000, 11..<21, 501..<3001] {
            var query = SearchQuery(words: "")
            if range.count < 4000 { query.times = rows[range.lowerBound].time..<rows[range.upperBound].time }
            var read: [AuditRow] = []
            try store.rows(for: query) { row in
                read.append(row)
                return true
            }
            #expect(read == rows.filter { query.matches($0) }.sorted { $0.order < $1.order })
        }
    }

    @Test("The words of a part are merged into one list when it is complete")
    func mergesWords() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path, partSize: 600)
        for number in 0..<1000 {
            try store.add(
                .stanza(TestRow.message("word n\(number)", sequence: UInt64(number + 1), after: Int64(number)))
            )
            if number.isMultiple(of: 50) { try store.commit() }
        }
        try store.commit()
        let database = try SQLiteDatabase(path, .reading)
        #expect(try database.integer("SELECT count(DISTINCT segid) FROM word_1_idx") == 1)
        #expect(try database.integer("SELECT count(DISTINCT segid) FROM word_2_idx") ?? 0 > 1)
        #expect(try Self.bodies(store, SearchQuery(words: "word")).count == 1000)
        #expect(try store.faults() == [])
    }

    @Test("A limit of the size is kept with stanzas of any size: parts have the number of rows that fits")
    func fitsParts() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        // Rows of 250 bytes would make parts of an eighth of the limit.
        let limit: Int64 = 8_000_000
        let store = try SQLiteStore.create(path, partSize: Int(limit / 8 / 250))
        var greatest: Int64 = 0
        for number in 0..<10_000 {
            var row = TestRow.message("word n\(number)", sequence: UInt64(number + 1), after: Int64(number))
            row.xml = String(repeating: "<x/>", count: 1000)
            try store.add(.stanza(row))
            guard number.isMultiple(of: 50) else { continue }
            while try store.retain(StoreLimit(bytes: limit), at: row.time) {}
            greatest = max(greatest, try store.overview().bytes)
        }
        #expect(greatest <= limit)
        #expect(try store.overview().bytes >= limit / 2)
        #expect(try StorePart.all(in: SQLiteDatabase(path, .reading)).count > 5)
    }

    @Test("Rows are divided into parts by day and number, and are found whatever the order in which they were added")
    func dividesIntoParts() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        var random = SeededGenerator(seed: 5)
        let hours = (0..<96).shuffled(using: &random)
        var store = try SQLiteStore.create(path, partSize: 10)
        for (index, hour) in hours.enumerated() {
            if index.isMultiple(of: 30) { store = try SQLiteStore.create(path, partSize: 10) }
            var row = TestRow.message("word n\(hour)", sequence: UInt64(hour + 1), after: Int64(hour) * 3600)
            // A message that was delayed for a day.
            if hour.isMultiple(of: 7) { row.time = Timestamp(nanoseconds: row.time.nanoseconds - 86_400_000_000_000) }
            try store.add(.stanza(row))
            try store.commit()
        }
        let database = try SQLiteDatabase(path, .reading)
        let parts = try StorePart.all(in: database)
        #expect(parts.count >= 5)
        for part in parts {
            // A part has stanzas of one day only.
            let days = try database.integer(
                "SELECT count(DISTINCT seen / 86400000000000) FROM stanza WHERE seen >= \(part.start) AND seen < \(part.end)"
            )
            #expect(days ?? 0 <= 1)
        }
        #expect(try Self.bodies(store, SearchQuery(words: "word")).count == 96)
        for hour in 0..<96 {
            #expect(try Self.bodies(store, SearchQuery(words: "n\(hour)")) == ["word n\(hour)"])
            var query = SearchQuery(words: "word")
            let start = TestRow.message("", after: Int64(hour) * 3600).time
            query.times = start..<Timestamp(nanoseconds: start.nanoseconds + 1)
            let late = hour + 24
            let expected = [hour] + (late < 96 && late.isMultiple(of: 7) ? [late] : [])
            #expect(try Self.bodies(store, query) == expected.map { "word n\($0)" }.sorted())
        }
    }

    @Test("Old rows are deleted by age and by size, with their words, and the file becomes smaller")
    func deletesOldRows() throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        let store = try SQLiteStore.create(path, partSize: 2000)
        for number in 0..<20_000 {
            let text = "secret\(number) \(String(repeating: "x", count: 200))"
            try store.add(.stanza(TestRow.message(text, sequence: UInt64(number + 1), after: Int64(number) * 30)))
        }
        var session = AuditSession(run: "run", number: 1)
        session.ended = TestRow.message("", after: 0).time
        try store.add(.session(session))
        try store.commit()
        let now = TestRow.message("", after: 20_000 * 30).time
        func retain(_ limit: StoreLimit) throws { while try store.retain(limit, at: now) {} }

        let full = try store.overview()
        try retain(StoreLimit(age: .seconds(86_400 * 3)))
        let aged = try store.overview()
        #expect(aged.stanzas == 8640 && aged.bytes < full.bytes * 3 / 4)
        var sessions = 0
        try store.sessions { _ in sessions += 1 }
        #expect(sessions == 0)
        #expect(try Self.bodies(store, SearchQuery(words: "secret19999")).count == 1)
        #expect(try Self.bodies(store, SearchQuery(words: "secret100")) == [])
        try store.vacuum()
        let bytes = try #require(FileManager.default.contents(atPath: path))
        #expect(bytes.range(of: Data("secret19999".utf8)) != nil && bytes.range(of: Data("secret100 ".utf8)) == nil)

        try retain(StoreLimit(bytes: aged.bytes / 2))
        let small = try store.overview()
        #expect(small.bytes <= aged.bytes / 2 + 2000 * 600 && small.stanzas > 0, "\(full) \(aged) \(small)")
        #expect(try store.faults() == [])
        // Rows can be added to the rest.
        try store.add(.stanza(TestRow.message("later", sequence: 30_000, after: 20_000 * 30)))
        try store.commit()
        #expect(try Self.bodies(store, SearchQuery(words: "later")) == ["later"])
    }

    @Test("What several records say of a session is one row")
    func joinsSessions() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"))
        var (began, failed, ended) = (
            AuditSession(run: "run", number: 7), AuditSession(run: "run", number: 7),
            AuditSession(run: "run", number: 7)
        )
        (began.client, began.began) = ("192.0.2.1:5222", Timestamp(nanoseconds: 1))
        (failed.account, failed.cause, failed.finding) = (
            "juliet@example.org", "wrong-password", "the password is wrong"
        )
        (ended.ended, ended.closeReason) = (Timestamp(nanoseconds: 2), "closed")
        for session in [began, failed, ended, began] { try store.add(.session(session)) }
        try store.commit()
        var expected = ended
        (expected.client, expected.began) = (began.client, began.began)
        (expected.account, expected.cause, expected.finding) = (failed.account, failed.cause, failed.finding)
        var found: [AuditSession] = []
        try store.sessions { found.append($0) }
        #expect(found == [expected])
    }
}
