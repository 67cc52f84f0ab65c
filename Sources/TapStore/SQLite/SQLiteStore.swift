internal import Glibc
internal import TapCapture
package import TapRecord

/// An audit store in one SQLite file; used by one thread at a time.
///
/// Addresses and other frequent texts are stored once, in the table `name`. The words of bodies are in indexes for full-text
/// search, one for each ``StorePart``, together with the account and the peer, so that a search for one account needs no
/// other filter.
package final class SQLiteStore: AuditStore, AuditWriter {
    private struct StoredRun {
        let name: String
        /// The group of the records' numbers; see ``RowNumber``.
        let group: Int64
        let tap: String?
    }

    /// The version of the schema.
    package static let version = StoreSchema.version
    /// The usual number of stanzas in a part.
    package static let usualPartSize = 1_000_000
    /// Number of rows in one transaction.
    private static let batch = 20_000
    let database: SQLiteDatabase
    private let writer: RowWriter?
    private var texts = TextCache()
    private var runs: [Int64: StoredRun] = [:]
    /// The conditions of the conversations that were read last; see ``conversationPlaces(_:)``.
    var places: [Conversation: [String]] = [:]
    private var added = 0
    /// Changes when another program has committed.
    private var dataVersion: Int64?
    /// Whether deletions are only in the write-ahead log.
    private var hasDeleted = false

    package var path: String { database.path }

    private init(_ database: SQLiteDatabase, isWritten: Bool, partSize: Int = usualPartSize) throws(StoreFault) {
        self.database = database
        writer = isWritten ? try RowWriter(database, partSize: partSize) : nil
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
        guard let version = try StoreSchema.version(of: database) else { throw StoreFault(code: .foreign, path: path) }
        guard version == StoreSchema.version else { throw StoreFault(code: .older(version), path: path) }
        return try SQLiteStore(database, isWritten: false)
    }

    /// Opens a store for writing; creates it if the file does not exist, and brings one of an older version up to date.
    ///
    /// - Parameters:
    ///   - partSize: The number of messages with a body after which a new part begins.
    ///   - isDurable: Whether what was committed survives a power cut. Otherwise, as much as the write-ahead log contains can be lost, but
    ///     nothing is damaged.
    package static func create(
        _ path: String,
        partSize: Int = usualPartSize,
        isDurable: Bool = false
    ) throws(StoreFault) -> SQLiteStore {
        // SQLite itself would let others read it.
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        if file >= 0 { Glibc.close(file) }
        let database = try SQLiteDatabase(path, .writing)
        try StoreSchema.prepare(database)
        try database.run(sql: "PRAGMA synchronous = \(isDurable ? "FULL" : "NORMAL")")
        // The store writes the log to the file itself: SQLite would do it within a commit.
        try database.run("PRAGMA wal_autocheckpoint = 0")
        // The log's size is that of its contents, and not the greatest that it ever had.
        try database.run("PRAGMA journal_size_limit = 0")
        // In kB. Rows of many conversations change as many pages of the index.
        try database.run("PRAGMA cache_size = -16000")
        return try SQLiteStore(database, isWritten: true, partSize: partSize)
    }

    /// Opens a store that exists for changes other than new rows.
    package static func openForMaintenance(_ path: String) throws(StoreFault) -> SQLiteStore {
        guard access(path, F_OK) == 0 else { throw StoreFault(code: .missing, path: path) }
        return try create(path)
    }

    // MARK: Writing

    package func add(_ row: AuditRow) throws(StoreFault) {
        try insert { writer throws(StoreFault) in try writer.add(row) }
    }

    package func add(_ session: AuditSession) throws(StoreFault) {
        try insert { writer throws(StoreFault) in try writer.add(session) }
    }

    package func add(_ gap: StoreGap) throws(StoreFault) {
        try insert { writer throws(StoreFault) in try writer.add(gap) }
    }

    /// Inserts a row, and commits if enough rows were added.
    private func insert(_ body: (RowWriter) throws(StoreFault) -> Void) throws(StoreFault) {
        guard let writer else { throw StoreFault(code: .readOnly, path: path) }
        if added == 0 {
            try database.run("BEGIN IMMEDIATE")
            let version = try database.integer("PRAGMA data_version")
            // Another program may have added or deleted names, runs and parts.
            if version != dataVersion { writer.forget() }
            dataVersion = version
        }
        added += 1
        try body(writer)
        if added >= Self.batch { try commit() }
    }

    package func commit() throws(StoreFault) {
        guard added > 0 else { return }
        try writer?.complete()
        try database.run("COMMIT")
        added = 0
        writer?.mergeSome()
        checkpoint()
    }

    package func abandon() {
        added = 0
        database.execute("ROLLBACK")
        writer?.forget()
    }

    /// The number of bytes of the write-ahead log at which it is written to the file, and at which readers are waited for.
    var usualLog = StoreLimit().logBytes
    var greatLog: Int64 = 256 << 20

    /// Writes the write-ahead log to the file if it is large. Without waiting for readers, the log would grow as long as
    /// there always is one.
    private func checkpoint() {
        let size = Int64(clamping: FileStatus(path: "\(path)-wal")?.size ?? 0)
        guard size > usualLog else { return }
        if size > greatLog {
            writeLog()
        } else {
            database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        }
    }

    // SQLite itself would not write the log to a file that was moved.
    package func close() { writeLog() }

    package func finish() throws(StoreFault) { try commit() }

    /// Writes the whole write-ahead log to the file, unless readers need it.
    private func writeLog() { database.execute("PRAGMA wal_checkpoint(TRUNCATE)") }

    // MARK: Reading

    /// Returns the number of a text; nil if no stanza has it.
    func find(_ text: String) throws(StoreFault) -> Int64? {
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
        texts.add(text, number)
        return text
    }

    /// Returns the range of times at which the stanzas of some times were seen, also those that were delayed.
    func seenTimes(of times: Range<Timestamp>) throws(StoreFault) -> Range<Int64> {
        let statement = try database.prepare(
            "SELECT min(seen), max(seen) FROM stanza WHERE received IS NOT NULL AND time >= ? AND time < ?"
        )
        let (start, end) = (times.lowerBound.nanoseconds, times.upperBound.nanoseconds)
        statement.bind(1, start)
        statement.bind(2, end)
        guard try statement.step(), let first = statement.integer(0), let last = statement.integer(1) else {
            return start..<end
        }
        return min(start, first)..<max(end, last == .max ? last : last + 1)
    }

    private func run(_ number: Int64) throws(StoreFault) -> StoredRun {
        if let known = runs[number] { return known }
        let statement = try database.prepare("SELECT name, part, tap FROM run WHERE id = ?")
        statement.bind(1, number)
        guard try statement.step(), let name = statement.text(0), let group = statement.integer(1) else {
            throw StoreFault(code: .corrupt, path: path)
        }
        let run = StoredRun(name: name, group: group, tap: statement.text(2))
        runs[number] = run
        return run
    }

    func row(_ statement: SQLiteStatement) throws(StoreFault) -> AuditRow? {
        guard let id = statement.integer(0).map({ RowNumber($0) }), let seen = statement.integer(3),
            let account = try text(of: statement.integer(4)),
            let direction = statement.integer(8).flatMap({ UInt8(exactly: $0) }).flatMap(Direction.init),
            let kind = statement.integer(9).flatMap({ AuditRow.Kind(rawValue: Int(clamping: $0)) })
        else { throw StoreFault(code: .corrupt, path: path) }
        let run = try run(id.run)
        var row = AuditRow(
            run: run.name,
            sequence: id.sequence(group: run.group),
            session: UInt64(clamping: statement.integer(1) ?? 0),
            time: Timestamp(nanoseconds: statement.integer(2) ?? 0),
            account: account,
            direction: direction,
            kind: kind,
            size: Int(clamping: statement.integer(20) ?? 0)
        )
        row.seen = Timestamp(nanoseconds: seen)
        row.tap = run.tap
        row.resource = try text(of: statement.integer(5))
        row.peer = try text(of: statement.integer(6))
        row.peerResource = try text(of: statement.integer(7))
        row.type = try text(of: statement.integer(10))
        row.id = statement.id(11)
        row.payload = try text(of: statement.integer(12))
        row.body = statement.text(13)
        row.subject = statement.text(14)
        row.thread = statement.text(15)
        row.stanzaID = statement.id(16)
        row.stanzaBy = try text(of: statement.integer(17))
        row.originID = statement.id(18)
        row.action = try text(of: statement.integer(21))
        row.rule = try text(of: statement.integer(22))
        row.condition = try text(of: statement.integer(23))
        row.roundTrip = statement.integer(24)
        row.xml = statement.text(25)
        row.source = statement.integer(26).flatMap { AuditRow.Source(rawValue: Int(clamping: $0)) } ?? .live
        row.copyKey = statement.bytes(19)
        return row
    }

    package func sessions(_ body: (AuditSession) -> Void) throws(StoreFault) {
        let statement = try database.prepare(
            "SELECT run, number, account, client, began, ended, cause, finding, close_reason FROM session"
        )
        while try statement.step() {
            guard let run = statement.text(0), let number = statement.integer(1) else {
                throw StoreFault(code: .corrupt, path: path)
            }
            var session = AuditSession(run: run, number: UInt64(clamping: number))
            session.account = try text(of: statement.integer(2))
            session.client = statement.text(3)
            session.began = statement.integer(4).map { Timestamp(nanoseconds: $0) }
            session.ended = statement.integer(5).map { Timestamp(nanoseconds: $0) }
            session.cause = try text(of: statement.integer(6))
            session.finding = statement.text(7)
            session.closeReason = try text(of: statement.integer(8))
            body(session)
        }
    }

    // MARK: Maintenance

    /// Returns the times at which the first and last stanza were seen; nil for an empty store.
    package func times() throws(StoreFault) -> ClosedRange<Timestamp>? {
        guard let first = try time(isLast: false), let last = try time(isLast: true), first <= last else { return nil }
        return Timestamp(nanoseconds: first)...Timestamp(nanoseconds: last)
    }

    /// Returns the time at which the first or last stanza was seen.
    private func time(isLast: Bool) throws(StoreFault) -> Int64? {
        let (function, suffix) = isLast ? ("max", " DESC") : ("min", "")
        let statement = try database.prepare(
            "SELECT start, (SELECT \(function)(seen) FROM stanza WHERE id BETWEEN first AND last "
                + "AND seen BETWEEN start AND start + \(StoreMinute.length - 1)) FROM minute ORDER BY start\(suffix)"
        )
        var found: (start: Int64, time: Int64)?
        while try statement.step(), let start = statement.integer(0) {
            if let found, found.start != start { break }
            // A minute remains for some time when its rows were deleted.
            guard let time = statement.integer(1) else { continue }
            let best = found?.time ?? time
            found = (start, isLast ? max(best, time) : min(best, time))
        }
        return found?.time
    }

    package func overview() throws(StoreFault) -> StoreOverview {
        func count(_ sql: String) throws(StoreFault) -> Int { Int(clamping: try database.integer(sql) ?? 0) }
        var overview = StoreOverview()
        overview.stanzas = try count("SELECT count(*) FROM stanza")
        overview.bodies = try count("SELECT count(*) FROM stanza WHERE body IS NOT NULL")
        overview.runs = try count("SELECT count(DISTINCT name) FROM run")
        overview.accounts = try count("SELECT count(DISTINCT account) FROM stanza")
        overview.pictures = try count("SELECT count(*) FROM picture")
        overview.vCards = try count("SELECT count(DISTINCT hash) FROM vcard")
        overview.missing = try count("SELECT sum(stanzas) FROM gap")
        overview.times = try times()
        overview.bytes = [path, "\(path)-wal"].reduce(0) { $0 + Int64(clamping: FileStatus(path: $1)?.size ?? 0) }
        return overview
    }

    /// Checks the file; returns the faults, one line each.
    package func faults() throws(StoreFault) -> [String] {
        let statement = try database.prepare("PRAGMA integrity_check(20)")
        var faults: [String] = []
        while try statement.step() {
            guard let text = statement.text(0), text != "ok" else { continue }
            // A heading names the database, which is the only one.
            faults += text.split(separator: "\n").filter { !$0.hasPrefix("***") }.map(String.init)
        }
        return faults
    }

    package func retain(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool {
        try commit()
        usualLog = limit.logBytes
        if let bytes = limit.bytes { try writer?.fitParts(to: bytes) }
        var retention = Retention(database)
        let hasMore = try retention.apply(limit, at: now)
        if limit.bytes != nil { try writer?.beginMeasurement() }
        if retention.hasDroppedPart { writer?.forget() }
        if retention.hasDeleted { hasDeleted = true }
        if hasMore || !hasDeleted {
            checkpoint()
        } else {
            // Deleted data remains in the file until the log is written to it.
            writeLog()
            hasDeleted = false
        }
        return hasMore
    }

    /// Deletes names that no row has, and rewrites the file without unused space. Needs as much free space as the file has.
    package func vacuum() throws(StoreFault) {
        try commit()
        try Retention.removeUnusedNames(database)
        writer?.forget()
        try database.run("VACUUM")
        writeLog()
    }

    package var isInPlace: Bool { database.isInPlace }
}

extension StoreLimit {
    /// The number of stanzas in a part of a file, such that a limit of the size is kept within an eighth.
    var partSize: Int {
        guard let bytes else { return SQLiteStore.usualPartSize }
        // A row has 150 to 250 bytes.
        return max(100, min(SQLiteStore.usualPartSize, Int(clamping: bytes / 8 / 250)))
    }
}

/// The texts of the table `name`. Their numbers begin at 1 and have few gaps, and an array finds them in less time than a dictionary;
/// texts with large numbers are in a dictionary, which is cleared when it is full.
private struct TextCache {
    private static let limit: Int64 = 100_000

    private var first: [String?] = []
    private var others: [Int64: String] = [:]

    subscript(_ number: Int64) -> String? {
        number >= 0 && number < first.count ? first[Int(number)] : others[number]
    }

    mutating func add(_ text: String, _ number: Int64) {
        guard number >= 0, number < Self.limit else {
            if others.count >= Self.limit { others.removeAll(keepingCapacity: true) }
            others[number] = text
            return
        }
        let place = Int(number)
        if place >= first.count { first += Array(repeating: nil, count: place + 1 - first.count) }
        first[place] = text
    }
}
