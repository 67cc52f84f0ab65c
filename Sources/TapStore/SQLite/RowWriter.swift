internal import TapRecord

/// Inserts rows into the tables of a store. A transaction must be open.
final class RowWriter {
    private let database: SQLiteDatabase
    private var partSize: Int
    private let insertion: SQLiteStatement
    private let nameInsertion: SQLiteStatement
    private let sessionInsertion: SQLiteStatement
    private let profiles: ProfileWriter
    private let minutes: MinuteWriter
    private var parts: StoreParts
    private var names: [ExactText: Int64] = [:]
    private var runs: [ExactText: (group: Int64, number: Int64)] = [:]
    private var texts = BoundTexts()
    private var words = WordBuffer()
    /// The bytes in use when the measurement of rows began, and the rows added since then.
    private var usedBytes: Int64?
    private var addedRows = 0
    /// The bytes and the number of measured rows.
    private var growth: (bytes: Int64, rows: Int) = (0, 0)

    init(_ database: SQLiteDatabase, partSize: Int) throws(StoreFault) {
        self.database = database
        self.partSize = partSize
        insertion = try database.prepare(Self.insertSQL)
        nameInsertion = try database.prepare(
            "INSERT INTO name(text) VALUES (?) ON CONFLICT DO UPDATE SET text = text RETURNING id"
        )
        sessionInsertion = try database.prepare(Self.sessionSQL)
        profiles = try ProfileWriter(database)
        minutes = try MinuteWriter(database)
        parts = try StoreParts(database, size: partSize)
    }

    /// The columns in the order of ``SQLiteStore/row(_:)``.
    static let columns = columns(time: "seen")
    /// The same as they are stored.
    static let storedColumns = columns(time: "received")

    private static func columns(time: String) -> String {
        "id, session, time, \(time), account, resource, peer, peer_resource, direction, kind, type, stanza, payload, body, "
            + "subject, thread, stanza_id, stanza_by, origin_id, copy_key, size, action, rule, condition, round_trip, xml, source"
    }

    private static let insertSQL =
        "INSERT OR IGNORE INTO stanza(\(storedColumns)) "
        + "VALUES (\(Array(repeating: "?", count: 27).joined(separator: ", ")))"

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
        let seen = row.seen.nanoseconds
        let run = try number(ofRun: row.run, RowNumber.group(of: row.sequence), tap: row.tap)
        let id = RowNumber(seen: seen, run: run, sequence: row.sequence).value
        let account = try intern(row.account)
        let peer = try intern(ifAny: row.peer)
        // If one of these fails, no parameter may be bound yet: it would stay for the next row.
        let (resource, peerResource) = (try intern(ifAny: row.resource), try intern(ifAny: row.peerResource))
        let (type, payload) = (try intern(ifAny: row.type), try intern(ifAny: row.payload))
        let stanzaBy = try intern(ifAny: row.stanzaBy)
        let (action, rule) = (try intern(ifAny: row.action), try intern(ifAny: row.rule))
        let condition = try intern(ifAny: row.condition)
        let part = try parts.part(of: seen)
        texts.removeAll()
        insertion.bind(1, id)
        insertion.bind(2, Int64(clamping: row.session))
        insertion.bind(3, row.time.nanoseconds)
        if row.time != row.seen { insertion.bind(4, seen) }
        insertion.bind(5, account)
        insertion.bind(ifAny: 6, resource)
        insertion.bind(ifAny: 7, peer)
        insertion.bind(ifAny: 8, peerResource)
        insertion.bind(9, Int64(row.direction.rawValue))
        insertion.bind(10, Int64(row.kind.rawValue))
        insertion.bind(ifAny: 11, type)
        texts.append(12, id: row.id)
        insertion.bind(ifAny: 13, payload)
        texts.append(14, row.body)
        texts.append(15, row.subject)
        texts.append(16, row.thread)
        texts.append(17, id: row.stanzaID)
        insertion.bind(ifAny: 18, stanzaBy)
        texts.append(19, id: row.originID)
        texts.append(20, row.copyKey)
        insertion.bind(21, Int64(row.size))
        insertion.bind(ifAny: 22, action)
        insertion.bind(ifAny: 23, rule)
        insertion.bind(ifAny: 24, condition)
        insertion.bind(ifAny: 25, row.roundTrip)
        texts.append(26, row.xml)
        insertion.bind(27, Int64(row.source.rawValue))
        try insertion.run(texts)
        let isNew = database.changes > 0
        // Also of a known row: it may have been added without avatars.
        for profile in row.profiles { try profiles.add(profile, contact: try intern(profile.contact), seen: seen) }
        guard isNew else { return }
        addedRows += 1
        try minutes.add(id, run, seen: seen)
        guard let body = row.body else { return }
        words.add(RowNumber(id).words(of: account), part) { bytes in
            Self.addWords(to: &bytes, body: body, account: account, peer: peer)
        }
        if words.isFull { try words.write(to: parts) }
    }

    /// Writes what is not yet in the tables. Call it before the transaction is committed.
    func complete() throws(StoreFault) {
        try minutes.write()
        try words.write(to: parts)
    }

    /// Inserts a session, or completes it.
    func add(_ session: AuditSession) throws(StoreFault) {
        sessionInsertion.bind(1, session.run)
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

    /// Inserts a gap.
    func add(_ gap: StoreGap) throws(StoreFault) {
        let statement = try database.prepare("INSERT OR REPLACE INTO gap VALUES (?, ?, ?, ?, ?, ?)")
        statement.bind(1, gap.run)
        statement.bind(2, Int64(clamping: gap.first))
        statement.bind(3, Int64(clamping: gap.last))
        statement.bind(4, Int64(clamping: gap.stanzas))
        statement.bind(5, gap.reason)
        statement.bind(6, gap.time.nanoseconds)
        try statement.run()
    }

    /// Merges some of the words. No transaction must be open.
    func mergeSome() { parts.mergeSome() }

    /// Makes parts so small that a limit of the size is kept within an eighth, by the measured size of the rows. Call it before rows
    /// are deleted, and ``beginMeasurement()`` afterwards.
    func fitParts(to limit: Int64) throws(StoreFault) {
        if let usedBytes {
            growth.bytes += max(0, try Retention.usedBytes(database) - usedBytes)
            growth.rows += addedRows
        }
        addedRows = 0
        guard growth.rows >= 100, growth.bytes > 0 else { return }
        let size = Double(limit) / 8 * Double(growth.rows) / Double(growth.bytes)
        partSize = max(100, Int(min(size, Double(SQLiteStore.usualPartSize))))
        parts.size = partSize
        // Later rows may have another size.
        if growth.rows > 100_000 { growth = (growth.bytes / 2, growth.rows / 2) }
    }

    func beginMeasurement() throws(StoreFault) {
        usedBytes = try Retention.usedBytes(database)
        addedRows = 0
    }

    /// Forgets what the tables are known to contain, after a transaction was rolled back or parts were deleted.
    func forget() {
        names.removeAll()
        runs.removeAll()
        minutes.forget()
        words.removeAll()
        // Reading failed, so writing will too, and reports the fault.
        if let current = try? StoreParts(database, size: partSize) { parts = current }
    }

    // MARK: Words

    private static func addWords(to words: inout [UInt8], body: String, account: Int64, peer: Int64?) {
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

    /// Returns the number of a run, or of a part of a very long one, which is stored if it is new.
    private func number(ofRun name: String, _ group: Int64, tap: String?) throws(StoreFault) -> Int64 {
        let exact = ExactText(name)
        if let known = runs[exact], known.group == group { return known.number }
        let statement = try database.prepare(
            """
            INSERT INTO run(id, name, part, tap) SELECT coalesce(max(id) + 1, 0), ?, ?, ? FROM run WHERE true
            ON CONFLICT DO UPDATE SET tap = coalesce(tap, excluded.tap) RETURNING id
            """
        )
        statement.bind(1, name)
        statement.bind(2, group)
        statement.bind(3, tap)
        guard try statement.step(), let number = statement.integer(0) else {
            throw StoreFault(code: .corrupt, path: database.path)
        }
        guard number < RowNumber.runLimit else {
            throw StoreFault(code: .tooManyRuns(RowNumber.runLimit), path: database.path)
        }
        runs[exact] = (group, number)
        return number
    }

    private func intern(ifAny text: String?) throws(StoreFault) -> Int64? {
        guard let text else { return nil }
        return try intern(text)
    }

    /// Returns the number of a text, which is stored if it is new.
    private func intern(_ text: String) throws(StoreFault) -> Int64 {
        let exact = ExactText(text)
        if let known = names[exact] { return known }
        nameInsertion.bind(1, text)
        guard try nameInsertion.step(), let number = nameInsertion.integer(0) else {
            throw StoreFault(code: .corrupt, path: database.path)
        }
        nameInsertion.reset()
        // Resources and ids of archives can be many.
        if names.count >= 100_000 { names.removeAll(keepingCapacity: true) }
        names[exact] = number
        return number
    }
}
