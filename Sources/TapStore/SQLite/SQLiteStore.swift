internal import Glibc
internal import TapRecord

/// An audit store in one SQLite file; used by one thread at a time.
///
/// Addresses and other frequent texts are stored once, in the table `name`. The words of bodies are in an index for full-text
/// search, together with the account and the peer, so that a search for one account needs no other filter.
package final class SQLiteStore: AuditStore {
    /// The version of the schema.
    package static let version = 1
    /// `xtap`, in the header of the file.
    private static let application = 0x7874_6170
    /// Number of rows in one transaction.
    private static let batch = 20_000
    /// Number of low bits of a row's number that contain the record's number; the others contain the run's.
    private static let sequenceBits = 40

    private let database: SQLiteDatabase
    private let insertion: SQLiteStatement?
    private let wordInsertion: SQLiteStatement?
    private let nameInsertion: SQLiteStatement?
    private var names: [String: Int64] = [:]
    private var texts: [Int64: String] = [:]
    private var added = 0

    package var path: String { database.path }

    private init(_ database: SQLiteDatabase, isWritten: Bool) throws(StoreFault) {
        self.database = database
        insertion = isWritten ? try database.prepare(Self.insertSQL) : nil
        wordInsertion = isWritten ? try database.prepare("INSERT INTO word(rowid, words) VALUES (?, ?)") : nil
        nameInsertion =
            isWritten
            ? try database.prepare(
                "INSERT INTO name(text) VALUES (?) ON CONFLICT DO UPDATE SET text = text RETURNING id"
            )
            : nil
    }

    /// Opens a store for reading.
    package static func open(_ path: String) throws(StoreFault) -> SQLiteStore {
        guard access(path, F_OK) == 0 else { throw StoreFault(code: .missing, path: path) }
        var database = try SQLiteDatabase(path, .reading)
        do throws(StoreFault) {
            _ = try database.integer("PRAGMA user_version")
        } catch {
            // Without permission to write, SQLite can read only a file that no other program is writing.
            guard error.code == .readOnly || error.code == .unopened, access("\(path)-wal", F_OK) != 0 else {
                throw error
            }
            database = try SQLiteDatabase(path, .readingUnchanged)
        }
        guard try checkVersion(database) else { throw StoreFault(code: .foreign, path: path) }
        return try SQLiteStore(database, isWritten: false)
    }

    /// Opens a store for writing; creates it if the file does not exist.
    package static func create(_ path: String) throws(StoreFault) -> SQLiteStore {
        // SQLite itself would let others read it.
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file >= 0 { close(file) }
        let database = try SQLiteDatabase(path, .writing)
        if try !checkVersion(database) { try makeSchema(database) }
        try database.run("PRAGMA synchronous = NORMAL")
        return try SQLiteStore(database, isWritten: true)
    }

    /// Returns whether the file has a schema of this program; false if it is empty.
    private static func checkVersion(_ database: SQLiteDatabase) throws(StoreFault) -> Bool {
        let application = try database.integer("PRAGMA application_id") ?? 0
        let version = Int(try database.integer("PRAGMA user_version") ?? 0)
        if application == 0, version == 0, try database.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            return false
        }
        guard application == Self.application else { throw StoreFault(code: .foreign, path: database.path) }
        guard version <= Self.version else {
            throw StoreFault(code: .newer(version, known: Self.version), path: database.path)
        }
        return true
    }

    // MARK: Schema

    private static func makeSchema(_ database: SQLiteDatabase) throws(StoreFault) {
        // Before the first table; later it has no effect.
        try database.run("PRAGMA auto_vacuum = INCREMENTAL")
        try database.run("PRAGMA journal_mode = WAL")
        try database.run(
            """
            BEGIN IMMEDIATE;
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
            PRAGMA application_id = 0x78746170;
            PRAGMA user_version = 1;
            COMMIT;
            """
        )
    }

    private static let columns =
        "id, run, session, time, seen, account, resource, peer, peer_resource, direction, kind, type, stanza, payload, body, "
        + "subject, thread, stanza_id, stanza_by, origin_id, copy_key, size, action, rule, condition, round_trip, xml, source"

    private static let insertSQL =
        "INSERT OR IGNORE INTO stanza(\(columns)) VALUES (\(Array(repeating: "?", count: 28).joined(separator: ", ")))"

    // MARK: Writing

    package func add(_ row: AuditRow) throws(StoreFault) {
        guard let insertion, let wordInsertion else { throw StoreFault(code: .readOnly, path: path) }
        added += 1
        if added == 1 { try database.run("BEGIN IMMEDIATE") }
        let run = try intern(row.run)
        let (account, peer) = (try intern(row.account), try intern(ifAny: row.peer))
        let id = run << Self.sequenceBits | Int64(row.sequence & (1 << Self.sequenceBits - 1))
        let integers: [(Int32, Int64?)] = [
            (1, id), (2, run), (3, Int64(clamping: row.session)), (4, row.time.nanoseconds), (5, row.seen.nanoseconds),
            (6, account), (7, try intern(ifAny: row.resource)), (8, peer), (9, try intern(ifAny: row.peerResource)),
            (10, Int64(row.direction.rawValue)), (11, Int64(row.kind.rawValue)), (12, try intern(ifAny: row.type)),
            (14, try intern(ifAny: row.payload)), (19, try intern(ifAny: row.stanzaBy)), (22, Int64(row.size)),
            (23, try intern(ifAny: row.action)), (24, try intern(ifAny: row.rule)),
            (25, try intern(ifAny: row.condition)),
            (26, row.roundTrip), (28, Int64(row.source.rawValue)),
        ]
        for (index, value) in integers { insertion.bind(index, value) }
        for (index, id) in [(13, row.id), (18, row.stanzaID), (20, row.originID)] as [(Int32, String?)] {
            if let bytes = id.flatMap(CompactID.bytes) {
                insertion.bind(index, bytes)
            } else {
                insertion.bind(index, id)
            }
        }
        let texts = [(15, row.body), (16, row.subject), (17, row.thread), (27, row.xml)] as [(Int32, String?)]
        for (index, text) in texts { insertion.bind(index, text) }
        insertion.bind(21, row.copyKey)
        try insertion.run()
        if database.changes > 0, let body = row.body {
            var words = Set(Words.of(body)).sorted()
            words.append(Self.accountWord(account))
            if let peer { words.append(Self.peerWord(peer)) }
            wordInsertion.bind(1, id)
            wordInsertion.bind(2, words.joined(separator: " "))
            try wordInsertion.run()
        }
        if added >= Self.batch { try commit() }
    }

    package func commit() throws(StoreFault) {
        guard added > 0 else { return }
        try database.run("COMMIT")
        added = 0
    }

    /// Forgets the rows that are not committed, after an error; returns their number.
    func abandon() -> Int {
        defer { added = 0 }
        database.execute("ROLLBACK")
        // Names of this transaction are not stored.
        names.removeAll()
        return added
    }

    /// The words by which the index finds an account or a peer. The first character is of the private use area, so that no
    /// body contains it.
    private static func accountWord(_ number: Int64) -> String { "\u{E000}\(number)" }
    private static func peerWord(_ number: Int64) -> String { "\u{E001}\(number)" }

    private func intern(ifAny text: String?) throws(StoreFault) -> Int64? {
        guard let text else { return nil }
        return try intern(text)
    }

    /// Returns the number of a text, which is stored if it is new.
    private func intern(_ text: String) throws(StoreFault) -> Int64 {
        if let known = names[text] { return known }
        guard let nameInsertion else { throw StoreFault(code: .readOnly, path: path) }
        nameInsertion.bind(1, text)
        guard try nameInsertion.step(), let number = nameInsertion.integer(0) else {
            throw StoreFault(code: .corrupt, path: path)
        }
        nameInsertion.reset()
        // Resources and ids of archives can be many.
        if names.count >= 100_000 { names.removeAll(keepingCapacity: true) }
        names[text] = number
        return number
    }

    // MARK: Reading

    /// Returns the number of a text; nil if no stanza has it.
    private func find(_ text: String) throws(StoreFault) -> Int64? {
        let statement = try database.prepare("SELECT id FROM name WHERE text = ?")
        statement.bind(1, text)
        return try statement.step() ? statement.integer(0) : nil
    }

    private func text(of number: Int64?) throws(StoreFault) -> String? {
        guard let number else { return nil }
        if let known = texts[number] { return known }
        let statement = try database.prepare("SELECT text FROM name WHERE id = ?")
        statement.bind(1, number)
        guard try statement.step(), let text = statement.text(0) else { throw StoreFault(code: .corrupt, path: path) }
        if texts.count >= 100_000 { texts.removeAll(keepingCapacity: true) }
        texts[number] = text
        return text
    }

    package func candidates(for query: SearchQuery, _ body: (AuditRow) -> Void) throws(StoreFault) {
        var conditions: [String] = []
        var parameters: [Int64] = []
        var words = query.terms.map { "\"\($0.word)\"\($0.isPrefix ? "*" : "")" }
        /// Restricts the rows to those of an address; returns false if there are none.
        func restrict(_ address: String?, _ column: String, _ word: (Int64) -> String) throws(StoreFault) -> Bool {
            guard let address else { return true }
            guard let number = try find(address) else { return false }
            if !words.isEmpty {
                words.append("\"\(word(number))\"")
            } else {
                conditions.append("\(column) = ?")
                parameters.append(number)
            }
            return true
        }
        guard try restrict(query.account, "account", Self.accountWord), try restrict(query.peer, "peer", Self.peerWord),
            try restrict(query.room, "peer", Self.peerWord)
        else { return }
        if let (one, other) = query.pair {
            let numbers = (try find(one), try find(other))
            // Of two people, the store has at least one as account.
            guard let first = numbers.0, let second = numbers.1 else { return }
            conditions.append("(account = ? AND peer = ? OR account = ? AND peer = ?)")
            parameters += [first, second, second, first]
        }
        if let times = query.times {
            conditions.append("(time >= ? AND time < ? OR seen >= ? AND seen < ?)")
            let bounds = [times.lowerBound.nanoseconds, times.upperBound.nanoseconds]
            parameters += bounds + bounds
        }
        if query.kinds.isEmpty { conditions.append("kind = 0 AND body IS NOT NULL") }
        if !words.isEmpty { conditions.append("id IN (SELECT rowid FROM word WHERE word MATCH ?)") }
        let condition = conditions.isEmpty ? "1" : conditions.joined(separator: " AND ")
        let statement = try database.prepare("SELECT \(Self.columns) FROM stanza WHERE \(condition)")
        for (index, parameter) in parameters.enumerated() { statement.bind(Int32(index + 1), parameter) }
        if !words.isEmpty { statement.bind(Int32(parameters.count + 1), words.joined(separator: " AND ")) }
        while try statement.step() {
            if let row = try row(statement) { body(row) }
        }
    }

    private func row(_ statement: SQLiteStatement) throws(StoreFault) -> AuditRow? {
        guard let id = statement.integer(0), let run = try text(of: statement.integer(1)),
            let account = try text(of: statement.integer(5)),
            let direction = statement.integer(9).flatMap({ UInt8(exactly: $0) }).flatMap(Direction.init),
            let kind = statement.integer(10).flatMap({ AuditRow.Kind(rawValue: Int($0)) })
        else { throw StoreFault(code: .corrupt, path: path) }
        var row = AuditRow(
            run: run,
            sequence: UInt64(id & (1 << Self.sequenceBits - 1)),
            session: UInt64(clamping: statement.integer(2) ?? 0),
            time: Timestamp(nanoseconds: statement.integer(3) ?? 0),
            account: account,
            direction: direction,
            kind: kind,
            size: Int(clamping: statement.integer(21) ?? 0)
        )
        row.seen = Timestamp(nanoseconds: statement.integer(4) ?? 0)
        row.resource = try text(of: statement.integer(6))
        row.peer = try text(of: statement.integer(7))
        row.peerResource = try text(of: statement.integer(8))
        row.type = try text(of: statement.integer(11))
        row.id = statement.id(12)
        row.payload = try text(of: statement.integer(13))
        row.body = statement.text(14)
        row.subject = statement.text(15)
        row.thread = statement.text(16)
        row.stanzaID = statement.id(17)
        row.stanzaBy = try text(of: statement.integer(18))
        row.originID = statement.id(19)
        row.copyKey = statement.bytes(20)
        row.action = try text(of: statement.integer(22))
        row.rule = try text(of: statement.integer(23))
        row.condition = try text(of: statement.integer(24))
        row.roundTrip = statement.integer(25)
        row.xml = statement.text(26)
        row.source = statement.integer(27).flatMap { AuditRow.Source(rawValue: Int($0)) } ?? .live
        return row
    }

    // MARK: Maintenance

    package func overview() throws(StoreFault) -> StoreOverview {
        func count(_ sql: String) throws(StoreFault) -> Int { Int(clamping: try database.integer(sql) ?? 0) }
        var times: ClosedRange<Timestamp>?
        if let first = try database.integer("SELECT min(time) FROM stanza"),
            let last = try database.integer("SELECT max(time) FROM stanza"), first <= last
        {
            times = Timestamp(nanoseconds: first)...Timestamp(nanoseconds: last)
        }
        return StoreOverview(
            stanzas: try count("SELECT count(*) FROM stanza"),
            bodies: try count("SELECT count(*) FROM stanza WHERE body IS NOT NULL"),
            runs: try count("SELECT count(DISTINCT run) FROM stanza"),
            accounts: try count("SELECT count(DISTINCT account) FROM stanza"),
            times: times,
            bytes: ["", "-wal"].reduce(0) { sum, ending in
                var status = stat()
                return stat(path + ending, &status) == 0 ? sum + Int64(status.st_size) : sum
            }
        )
    }

    /// Checks the file; returns the faults, one line each.
    package func faults() throws(StoreFault) -> [String] {
        let statement = try database.prepare("PRAGMA integrity_check(20)")
        var faults: [String] = []
        while try statement.step() {
            if let fault = statement.text(0), fault != "ok" { faults.append(fault) }
        }
        return faults
    }
}

extension SQLiteStatement {
    /// The id in a column; nil if it has none.
    fileprivate func id(_ column: Int32) -> String? {
        isBlob(column) ? bytes(column).flatMap(CompactID.text) : text(column)
    }
}
