internal import TapCapture
internal import TapRecord

/// Deletes the oldest rows of a store, in small steps.
///
/// The age is that at which a row was seen, because a sender can forge the time of a delay. Rows are deleted exactly, their words
/// with the ``StorePart``, at most a day later.
struct Retention {
    /// The maximum number of rows that one step deletes, and of pages that it returns to the file system.
    private static let (rows, pages) = (5_000, 2_000)
    /// The same for avatars, of which each may be the last with its picture.
    private static let avatars = 50

    private let database: SQLiteDatabase
    private(set) var hasDeleted = false
    private(set) var hasDroppedPart = false

    init(_ database: SQLiteDatabase) { self.database = database }

    /// Does one step; returns whether there is more to do.
    mutating func apply(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool {
        var bound = Int64.min
        if let age = limit.age {
            bound = now.nanoseconds.subtractingReportingOverflow(age.wholeNanoseconds).partialValue
        }
        let parts = try StorePart.all(in: database)
        // The newest part is kept: it is the one that is being written.
        let isTooLarge =
            try limit.fileBytes.map { bytes throws(StoreFault) in try Self.usedBytes(database) > bytes } ?? false
        if isTooLarge, parts.count > 1 { bound = max(bound, parts[0].end) }
        var hasMore = false
        // When the first part is gone, the file may still be too large.
        if bound > .min { hasMore = try delete(before: bound, parts) || isTooLarge && parts.count > 2 }
        let free = try database.integer("PRAGMA freelist_count") ?? 0
        if free > 0 { try database.run(sql: "PRAGMA incremental_vacuum(\(Self.pages))") }
        return hasMore || free > Self.pages
    }

    /// The number of bytes of the pages in use.
    static func usedBytes(_ database: SQLiteDatabase) throws(StoreFault) -> Int64 {
        let pages =
            (try database.integer("PRAGMA page_count") ?? 0) - (try database.integer("PRAGMA freelist_count") ?? 0)
        return pages * (try database.integer("PRAGMA page_size") ?? 0)
    }

    private mutating func delete(before bound: Int64, _ parts: [StorePart]) throws(StoreFault) -> Bool {
        try database.run("BEGIN IMMEDIATE")
        do throws(StoreFault) {
            var hasMore = try deleteRows(before: bound) == Self.rows
            if !hasMore { hasMore = try deleteProfiles(before: bound) }
            if !hasMore { try dropParts(before: bound, parts) }
            try database.run("COMMIT")
            return hasMore
        } catch {
            database.execute("ROLLBACK")
            throw error
        }
    }

    /// Deletes rows of earlier days, and those of the day itself, run by run. Returns their number, at most ``rows``.
    private mutating func deleteRows(before bound: Int64) throws(StoreFault) -> Int {
        let day = RowNumber.first(onDayOf: bound)
        try database.run(
            sql: "DELETE FROM stanza WHERE id IN (SELECT id FROM stanza WHERE id < \(day.value) LIMIT \(Self.rows))"
        )
        var count = database.changes
        let end = RowNumber.first(afterDayOf: bound)
        let next = try database.prepare("SELECT min(id) FROM stanza WHERE id >= ? AND id < ?")
        var place = day
        while count < Self.rows {
            next.reset()
            next.bind(1, place.value)
            next.bind(2, end.value)
            guard try next.step(), let first = next.integer(0).map({ RowNumber($0) }) else { break }
            count += try deleteRows(from: first, before: bound, Self.rows - count)
            place = first.nextRun
        }
        if count > 0 { hasDeleted = true }
        return count
    }

    /// Deletes rows of a run on one day. Its rows are in the order of time, unless the clock jumped: the others are deleted with their
    /// day.
    private func deleteRows(from first: RowNumber, before bound: Int64, _ limit: Int) throws(StoreFault) -> Int {
        let rows = try database.prepare("SELECT id, seen FROM stanza WHERE id >= ? AND id < ? ORDER BY id LIMIT ?")
        rows.bind(1, first.value)
        rows.bind(2, first.nextRun.value)
        rows.bind(3, Int64(limit))
        var end = first.value
        while try rows.step(), let id = rows.integer(0), let seen = rows.integer(1), seen < bound { end = id + 1 }
        rows.reset()
        guard end > first.value else { return 0 }
        try database.run(sql: "DELETE FROM stanza WHERE id >= \(first.value) AND id < \(end)")
        return database.changes
    }

    /// Deletes avatars and vCards that were last seen before a time, and the pictures that no avatar has any more. Returns whether there
    /// is more to delete.
    private mutating func deleteProfiles(before bound: Int64) throws(StoreFault) -> Bool {
        try database.run(
            sql: """
                DELETE FROM vcard WHERE rowid IN (SELECT rowid FROM vcard WHERE last < \(bound) LIMIT \(Self.rows))
                """
        )
        let cards = database.changes
        // There are few of them.
        try database.run(sql: "DELETE FROM gap WHERE seen < \(bound)")
        let old = try database.prepare(
            """
            DELETE FROM avatar WHERE (hash, contact) IN
            (SELECT hash, contact FROM avatar WHERE last < \(bound) LIMIT \(Self.avatars)) RETURNING hash
            """
        )
        var hashes: [[UInt8]] = []
        while try old.step() { if let hash = old.bytes(0) { hashes.append(hash) } }
        let picture = try database.prepare(
            "DELETE FROM picture WHERE hash = ? AND NOT EXISTS (SELECT 1 FROM avatar WHERE avatar.hash = picture.hash)"
        )
        for hash in hashes {
            picture.bind(1, hash)
            try picture.run()
        }
        if cards > 0 || !hashes.isEmpty { hasDeleted = true }
        return cards == Self.rows || hashes.count == Self.avatars
    }

    private mutating func dropParts(before bound: Int64, _ parts: [StorePart]) throws(StoreFault) {
        for part in parts.dropLast() where part.end <= bound {
            try database.run(sql: "DROP TABLE \(part.table)")
            try database.run(sql: "DELETE FROM part WHERE number = \(part.number)")
            (hasDeleted, hasDroppedPart) = (true, true)
        }
        let day = RowNumber.first(onDayOf: bound).dayStart
        try database.run(sql: "DELETE FROM minute WHERE start < \(day)")
        // A session that has not ended may still run.
        try database.run(sql: "DELETE FROM session WHERE ended < \(bound)")
    }

    /// Deletes the names and runs that no row has.
    static func removeUnusedNames(_ database: SQLiteDatabase) throws(StoreFault) {
        try database.run("DELETE FROM run WHERE id NOT IN (SELECT DISTINCT id >> 32 & 65535 FROM stanza)")
        try database.run("DELETE FROM minute WHERE run NOT IN (SELECT id FROM run)")
        let stanzaColumns = [
            "account", "resource", "peer", "peer_resource", "type", "payload", "stanza_by", "action", "rule",
            "condition",
        ]
        let uses =
            stanzaColumns.map { "SELECT \($0) FROM stanza" }
            + ["account", "cause", "close_reason"].map { "SELECT \($0) FROM session" }
            + ["avatar", "vcard"].map { "SELECT contact FROM \($0)" }
        try database.run(
            sql:
                "DELETE FROM name WHERE id NOT IN (SELECT * FROM (\(uses.joined(separator: " UNION "))) WHERE 1 NOTNULL)"
        )
    }
}

extension StoreLimit {
    /// The number of bytes of the write-ahead log at which it is written to the file, without a limit.
    private static let usualLog: Int64 = 16 << 20

    /// The number of bytes of the file at which the oldest rows are deleted: the limit without the room that the write-ahead log
    /// needs, which has a transaction with a page of the index for each row.
    var fileBytes: Int64? { bytes.map { $0 - min($0 / 8, 3 * Self.usualLog) } }

    /// The number of bytes of the write-ahead log at which it is written to the file.
    var logBytes: Int64 { min(Self.usualLog, bytes.map { $0 / 32 } ?? .max) }
}
