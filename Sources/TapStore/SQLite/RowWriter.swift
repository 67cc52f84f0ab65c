internal import TapRecord

/// Inserts rows into the tables of a store. A transaction must be open.
final class RowWriter {
    /// Number of low bits of a row's number that contain the record's number; the others contain the run's.
    static let sequenceBits = 40

    private let database: SQLiteDatabase
    private let partSize: Int
    private let insertion: SQLiteStatement
    private let nameInsertion: SQLiteStatement
    private let sessionInsertion: SQLiteStatement
    private var parts: StoreParts
    private var names: [String: Int64] = [:]
    private var words: [UInt8] = []

    init(_ database: SQLiteDatabase, partSize: Int) throws(StoreFault) {
        self.database = database
        self.partSize = partSize
        insertion = try database.prepare(Self.insertSQL)
        nameInsertion = try database.prepare(
            "INSERT INTO name(text) VALUES (?) ON CONFLICT DO UPDATE SET text = text RETURNING id"
        )
        sessionInsertion = try database.prepare(Self.sessionSQL)
        parts = try StoreParts(database, size: partSize)
    }

    static let columns =
        "id, run, session, time, seen, account, resource, peer, peer_resource, direction, kind, type, stanza, payload, body, "
        + "subject, thread, stanza_id, stanza_by, origin_id, copy_key, size, action, rule, condition, round_trip, xml, source"

    private static let insertSQL =
        "INSERT OR IGNORE INTO stanza(\(columns)) VALUES (\(Array(repeating: "?", count: 28).joined(separator: ", ")))"

    private static let sessionSQL = """
        INSERT INTO session(run, number, account, client, began, ended, cause, finding, close_reason)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(run, number) DO UPDATE SET
        account = coalesce(excluded.account, account), client = coalesce(excluded.client, client),
        began = coalesce(excluded.began, began), ended = coalesce(excluded.ended, ended),
        cause = coalesce(excluded.cause, cause), finding = coalesce(excluded.finding, finding),
        close_reason = coalesce(excluded.close_reason, close_reason)
        """

    /// Inserts a stanza; does nothing if the store has it.
    func add(_ row: AuditRow) throws(StoreFault) {
        let run = try intern(row.run)
        let id = run << Self.sequenceBits | Int64(row.sequence & (1 << Self.sequenceBits - 1))
        let account = try intern(row.account)
        let peer = try intern(ifAny: row.peer)
        let part = try parts.part(of: row.seen.nanoseconds)
        insertion.bind(1, id)
        insertion.bind(2, run)
        insertion.bind(3, Int64(clamping: row.session))
        insertion.bind(4, row.time.nanoseconds)
        insertion.bind(5, row.seen.nanoseconds)
        insertion.bind(6, account)
        insertion.bind(7, try intern(ifAny: row.resource))
        insertion.bind(8, peer)
        insertion.bind(9, try intern(ifAny: row.peerResource))
        insertion.bind(10, Int64(row.direction.rawValue))
        insertion.bind(11, Int64(row.kind.rawValue))
        insertion.bind(12, try intern(ifAny: row.type))
        bind(13, id: row.id)
        insertion.bind(14, try intern(ifAny: row.payload))
        insertion.bind(15, row.body)
        insertion.bind(16, row.subject)
        insertion.bind(17, row.thread)
        bind(18, id: row.stanzaID)
        insertion.bind(19, try intern(ifAny: row.stanzaBy))
        bind(20, id: row.originID)
        insertion.bind(21, row.copyKey)
        insertion.bind(22, Int64(row.size))
        insertion.bind(23, try intern(ifAny: row.action))
        insertion.bind(24, try intern(ifAny: row.rule))
        insertion.bind(25, try intern(ifAny: row.condition))
        insertion.bind(26, row.roundTrip)
        insertion.bind(27, row.xml)
        insertion.bind(28, Int64(row.source.rawValue))
        try insertion.run()
        guard let body = row.body, database.changes > 0 else { return }
        Self.setWords(&words, body: body, account: account, peer: peer)
        try parts.add(words, id, to: part)
    }

    private func bind(_ index: Int32, id: String?) {
        if let bytes = id.flatMap(CompactID.bytes) {
            insertion.bind(index, bytes)
        } else {
            insertion.bind(index, id)
        }
    }

    /// Inserts a session, or completes it.
    func add(_ session: AuditSession) throws(StoreFault) {
        sessionInsertion.bind(1, try intern(session.run))
        sessionInsertion.bind(2, Int64(clamping: session.number))
        sessionInsertion.bind(3, try intern(ifAny: session.account))
        sessionInsertion.bind(4, session.client)
        sessionInsertion.bind(5, session.began?.nanoseconds)
        sessionInsertion.bind(6, session.ended?.nanoseconds)
        sessionInsertion.bind(7, try intern(ifAny: session.cause))
        sessionInsertion.bind(8, session.finding)
        sessionInsertion.bind(9, try intern(ifAny: session.closeReason))
        try sessionInsertion.run()
    }

    /// Indexes the words of all bodies that are stored.
    func indexAll() throws(StoreFault) {
        let statement = try database.prepare(
            "SELECT id, account, peer, seen, body FROM stanza WHERE body IS NOT NULL ORDER BY seen"
        )
        while try statement.step() {
            guard let id = statement.integer(0), let account = statement.integer(1), let seen = statement.integer(3),
                let body = statement.text(4)
            else { continue }
            Self.setWords(&words, body: body, account: account, peer: statement.integer(2))
            try parts.add(words, id, to: try parts.part(of: seen))
        }
    }

    /// Forgets what the tables are known to contain, after a transaction was rolled back or parts were deleted.
    func forget() {
        names.removeAll()
        // Reading failed, so writing will too, and reports the fault.
        if let current = try? StoreParts(database, size: partSize) { parts = current }
    }

    // MARK: Words

    private static func setWords(_ words: inout [UInt8], body: String, account: Int64, peer: Int64?) {
        words.removeAll(keepingCapacity: true)
        Words.append(of: body, to: &words)
        words += accountWord(account).utf8
        guard let peer else { return }
        words.append(0x20)
        words += peerWord(peer).utf8
    }

    /// The words by which the index finds an account or a peer. The first character is of the private use area, so that no
    /// body contains it.
    static func accountWord(_ number: Int64) -> String { "\u{E000}\(number)" }
    static func peerWord(_ number: Int64) -> String { "\u{E001}\(number)" }

    // MARK: Names

    private func intern(ifAny text: String?) throws(StoreFault) -> Int64? {
        guard let text else { return nil }
        return try intern(text)
    }

    /// Returns the number of a text, which is stored if it is new.
    private func intern(_ text: String) throws(StoreFault) -> Int64 {
        if let known = names[text] { return known }
        nameInsertion.bind(1, text)
        guard try nameInsertion.step(), let number = nameInsertion.integer(0) else {
            throw StoreFault(code: .corrupt, path: database.path)
        }
        nameInsertion.reset()
        // Resources and ids of archives can be many.
        if names.count >= 100_000 { names.removeAll(keepingCapacity: true) }
        names[text] = number
        return number
    }
}
