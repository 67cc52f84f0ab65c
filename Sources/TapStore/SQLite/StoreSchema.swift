internal import TapRecord

/// The tables of a store.
enum StoreSchema {
    /// The version of the schema. ``Words`` belong to it.
    static let version = 5
    /// `xtap`, in the header of the file.
    private static let application = 0x7874_6170

    /// Returns the version of a file's schema; nil if it is empty.
    static func version(of database: SQLiteDatabase) throws(StoreFault) -> Int? {
        let application = try database.integer("PRAGMA application_id") ?? 0
        let version = Int(clamping: try database.integer("PRAGMA user_version") ?? 0)
        if application == 0, version == 0, try database.integer("SELECT count(*) FROM sqlite_schema") == 0 {
            return nil
        }
        guard application == Self.application, version > 0 else {
            throw StoreFault(code: .foreign, path: database.path)
        }
        guard version <= Self.version else {
            throw StoreFault(code: .newer(version, known: Self.version), path: database.path)
        }
        return version
    }

    /// Creates the tables, or brings those of an older version up to date.
    static func prepare(_ database: SQLiteDatabase) throws(StoreFault) {
        switch try version(of: database) {
        case nil: try create(database)
        case 1: try updateFrom1(database)
        case 2: try updateFrom2(database)
        case 3:
            try change(database, from: 3) { () throws(StoreFault) in
                try database.run(tapColumn)
                try database.run(gapTable)
            }
        case 4: try change(database, from: 4) { () throws(StoreFault) in try database.run(gapTable) }
        default: break
        }
    }

    private static func create(_ database: SQLiteDatabase) throws(StoreFault) {
        // Before the first table; later it has no effect.
        try database.run("PRAGMA auto_vacuum = INCREMENTAL")
        try database.run("PRAGMA journal_mode = WAL")
        try change(database, from: nil) { () throws(StoreFault) in
            try database.run(tables)
            try database.run(gapTable)
            try database.run(stanzaTables)
        }
    }

    /// Changes the tables in a transaction, unless another program has done so meanwhile.
    private static func change(
        _ database: SQLiteDatabase,
        from version: Int?,
        _ body: () throws(StoreFault) -> Void
    ) throws(StoreFault) {
        try database.run("BEGIN IMMEDIATE")
        do throws(StoreFault) {
            guard try self.version(of: database) == version else {
                database.execute("ROLLBACK")
                return
            }
            try body()
            try database.run("PRAGMA application_id = 0x78746170; PRAGMA user_version = 5; COMMIT")
        } catch {
            database.execute("ROLLBACK")
            throw error
        }
    }

    /// Version 3 had no names of taps.
    private static let tapColumn: StaticString = "ALTER TABLE run ADD COLUMN tap TEXT"

    /// Version 4 did not say which stanzas it lacks; see ``StoreGap``.
    private static let gapTable: StaticString = """
        CREATE TABLE gap(
            run TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, stanzas INTEGER NOT NULL, reason TEXT NOT NULL,
            seen INTEGER NOT NULL, PRIMARY KEY(run, first, reason)) WITHOUT ROWID;
        """

    /// Names are the texts that occur again and again. Of a run, `part` is ``RowNumber/group(of:)``.
    private static let tables: StaticString = """
        CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
        CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT NOT NULL, part INTEGER NOT NULL, tap TEXT, UNIQUE(name, part));
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
        """

    /// `received` is the time at which a delayed stanza was seen: most have one time, which is stored once. For `minute`, see
    /// ``StoreMinute``.
    private static let stanzaTables: StaticString = """
        CREATE TABLE stanza(
            id INTEGER PRIMARY KEY, session INTEGER NOT NULL, time INTEGER NOT NULL, received INTEGER,
            account INTEGER NOT NULL, resource INTEGER, peer INTEGER, peer_resource INTEGER,
            direction INTEGER NOT NULL, kind INTEGER NOT NULL, source INTEGER NOT NULL, type INTEGER, stanza TEXT,
            payload INTEGER, body TEXT, subject TEXT, thread TEXT, stanza_id TEXT, stanza_by INTEGER, origin_id TEXT,
            copy_key BLOB, size INTEGER NOT NULL, action INTEGER, rule INTEGER, condition INTEGER, round_trip INTEGER,
            xml TEXT, seen INTEGER AS (coalesce(received, time)));
        CREATE INDEX stanza_place ON stanza(account, peer, time);
        CREATE INDEX stanza_delayed ON stanza(time) WHERE received IS NOT NULL;
        CREATE TABLE minute(
            start INTEGER NOT NULL, run INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
            PRIMARY KEY(start, run)) WITHOUT ROWID;
        """

    /// Version 1 had one index of words, an index of times, and neither sessions nor runs. Its rows are inserted again.
    private static func updateFrom1(_ database: SQLiteDatabase) throws(StoreFault) {
        try change(database, from: 1) { () throws(StoreFault) in
            try database.run(
                """
                DROP TABLE word;
                DROP INDEX stanza_place;
                DROP INDEX stanza_time;
                ALTER TABLE stanza RENAME TO stanza1;
                ALTER TABLE name RENAME TO name1;
                """
            )
            try database.run(tables)
            try database.run(gapTable)
            try database.run(stanzaTables)
            try copyRows(
                of: "stanza1",
                names: "name1",
                run: "(SELECT text FROM name1 WHERE name1.id = run), id & 0xFFFFFFFFFF",
                database
            )
            try database.run("DROP TABLE stanza1; DROP TABLE name1")
        }
    }

    /// Version 2 had both times of every stanza, words in the order of records, and no minutes. Its rows are inserted again.
    private static func updateFrom2(_ database: SQLiteDatabase) throws(StoreFault) {
        try change(database, from: 2) { () throws(StoreFault) in
            try database.run(tapColumn)
            try database.run(gapTable)
            for part in try StorePart.all(in: database) { try database.run(sql: "DROP TABLE \(part.table)") }
            try database.run(
                """
                DELETE FROM part;
                DROP INDEX stanza_place;
                DROP INDEX stanza_delayed;
                ALTER TABLE stanza RENAME TO stanza2;
                """
            )
            try database.run(stanzaTables)
            try copyRows(
                of: "stanza2 JOIN (SELECT id AS run, name, part FROM run) ON run = stanza2.id >> 32 & 65535",
                names: "name",
                run: "name, part << 32 | (id & 0xFFFFFFFF)",
                database
            )
            try database.run("DROP TABLE stanza2")
        }
    }

    /// - Parameters:
    ///   - table: The old table of the stanzas.
    ///   - names: The table of the names.
    ///   - run: The columns with the name of the run and the number in it.
    private static func copyRows(
        of table: String,
        names: String,
        run: String,
        _ database: SQLiteDatabase
    ) throws(StoreFault) {
        func name(_ column: String) -> String { "(SELECT text FROM \(names) AS n WHERE n.id = \(column))" }
        let writer = try RowWriter(database, partSize: SQLiteStore.usualPartSize)
        let statement = try database.prepare(
            """
            SELECT \(run), session, time, seen, \(name("account")), \(name("resource")), \(name("peer")),
            \(name("peer_resource")), direction, kind, source, \(name("type")), stanza, \(name("payload")), body, subject,
            thread, stanza_id, \(name("stanza_by")), origin_id, copy_key, size, \(name("action")), \(name("rule")),
            \(name("condition")), round_trip, xml FROM \(table) ORDER BY seen
            """
        )
        while try statement.step() {
            guard let run = statement.text(0), let account = statement.text(5),
                let direction = statement.integer(9).flatMap({ UInt8(exactly: $0) }).flatMap(Direction.init),
                let kind = statement.integer(10).flatMap({ AuditRow.Kind(rawValue: Int(clamping: $0)) })
            else { throw StoreFault(code: .corrupt, path: database.path) }
            var row = AuditRow(
                run: run,
                sequence: UInt64(clamping: statement.integer(1) ?? 0),
                session: UInt64(clamping: statement.integer(2) ?? 0),
                time: Timestamp(nanoseconds: statement.integer(3) ?? 0),
                account: account,
                direction: direction,
                kind: kind,
                size: Int(clamping: statement.integer(22) ?? 0)
            )
            row.seen = Timestamp(nanoseconds: statement.integer(4) ?? 0)
            (row.resource, row.peer, row.peerResource) = (statement.text(6), statement.text(7), statement.text(8))
            row.source = statement.integer(11).flatMap { AuditRow.Source(rawValue: Int(clamping: $0)) } ?? .live
            (row.type, row.id, row.payload) = (statement.text(12), statement.id(13), statement.text(14))
            (row.body, row.subject, row.thread) = (statement.text(15), statement.text(16), statement.text(17))
            (row.stanzaID, row.stanzaBy, row.originID) = (statement.id(18), statement.text(19), statement.id(20))
            row.copyKey = statement.bytes(21)
            (row.action, row.rule, row.condition) = (statement.text(23), statement.text(24), statement.text(25))
            (row.roundTrip, row.xml) = (statement.integer(26), statement.text(27))
            try writer.add(row)
        }
        try writer.complete()
    }
}
