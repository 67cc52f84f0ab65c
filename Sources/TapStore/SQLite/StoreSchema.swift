/// The tables of a store.
enum StoreSchema {
    /// The version of the schema. ``Words`` belong to it.
    static let version = 2
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
        default: break
        }
    }

    private static func create(_ database: SQLiteDatabase) throws(StoreFault) {
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
            CREATE INDEX stanza_seen ON stanza(seen);
            CREATE INDEX stanza_delayed ON stanza(time) WHERE time <> seen;
            """
        )
        try database.run(newTables)
        try database.run("PRAGMA application_id = 0x78746170; PRAGMA user_version = 2; COMMIT")
    }

    /// Version 1 had one index of words, and neither sessions nor an index of the times at which stanzas were seen.
    private static func updateFrom1(_ database: SQLiteDatabase) throws(StoreFault) {
        try database.run("BEGIN IMMEDIATE")
        do throws(StoreFault) {
            try database.run(
                """
                DROP TABLE word;
                DROP INDEX stanza_time;
                CREATE INDEX stanza_seen ON stanza(seen);
                CREATE INDEX stanza_delayed ON stanza(time) WHERE time <> seen;
                """
            )
            try database.run(newTables)
            try RowWriter(database, partSize: SQLiteStore.usualPartSize).indexAll()
            try database.run("PRAGMA user_version = 2; COMMIT")
        } catch {
            database.execute("ROLLBACK")
            throw error
        }
    }

    /// The tables that version 2 has added.
    private static let newTables: StaticString = """
        CREATE TABLE session(
            run INTEGER NOT NULL, number INTEGER NOT NULL, account INTEGER, client TEXT, began INTEGER, ended INTEGER,
            cause INTEGER, finding TEXT, close_reason INTEGER, PRIMARY KEY(run, number)) WITHOUT ROWID;
        CREATE TABLE part(number INTEGER PRIMARY KEY, start INTEGER NOT NULL UNIQUE);
        """
}
