internal import TapCapture
internal import TapRecord

/// Sends a request to a server, and waits for the answer.
///
/// - Throws: The reason if no answer comes.
package typealias ClickHouseTransport =
    @Sendable (_ request: ClickHouseRequest) throws(ClickHouseUnreachable) -> ClickHouseAnswer

/// The answer to a request.
package struct ClickHouseAnswer: Sendable {
    package let status: Int
    /// The value of `X-ClickHouse-Exception-Code`: newer servers send it also with a status of success.
    package let exception: String?
    package let body: [UInt8]

    package init(status: Int, exception: String?, body: [UInt8]) {
        (self.status, self.exception, self.body) = (status, exception, body)
    }
}

/// A request to ClickHouse's interface for HTTP.
package struct ClickHouseRequest: Sendable {
    /// Path and query.
    package let target: String
    package let fields: [(String, String)]
    package let body: [UInt8]
}

/// A server does not answer.
package struct ClickHouseUnreachable: Error {
    package let text: String

    package init(text: String) { self.text = text }
}

/// A shard of a store: a ClickHouse server, or several with the same data, of which one answers. Used by one thread at a time.
final class ClickHouseServer {
    /// The major and minor version of a server.
    struct Version: Comparable {
        let major: Int
        let minor: Int

        static func < (one: Version, other: Version) -> Bool { (one.major, one.minor) < (other.major, other.minor) }
    }

    /// The database.
    private let database: String
    private let user: String?
    private let hosts: [ClickHouseAddress.Host]
    let path: String
    private let transports: [ClickHouseTransport]
    private let password: String?
    /// The index of the server that answered last.
    private var current = 0
    /// The known properties of each server.
    private var known: [Int: Known] = [:]

    private struct Known {
        var version: Version?
        /// The names of the settings of insertions that it has, among those that are used.
        var settings: Set<String>?
    }

    /// - Parameter servers: The servers, each with its transport.
    init(
        _ address: ClickHouseAddress,
        _ servers: [(host: ClickHouseAddress.Host, transport: ClickHouseTransport)],
        password: String?
    ) {
        database = address.database
        user = address.user
        path = address.description
        hosts = servers.map(\.host)
        transports = servers.map(\.transport)
        self.password = password
    }

    /// One of the servers of a shard.
    private init(_ shard: ClickHouseServer, at index: Int) {
        (database, user, path, password) = (shard.database, shard.user, shard.path, shard.password)
        hosts = [shard.hosts[index]]
        transports = [shard.transports[index]]
    }

    /// The server that answered last, for messages.
    var name: String { hosts.indices.contains(current) ? hosts[current].description : "" }

    /// The version of the server.
    func version() throws(StoreFault) -> Version {
        if let version = known[current]?.version { return version }
        let text = String(decoding: try run("SELECT version()", isInDatabase: false), as: UTF8.self)
        let numbers = text.split(separator: ".").prefix(2).compactMap { Int($0) }
        guard numbers.count == 2 else {
            throw StoreFault(code: .other("\(name) is not ClickHouse: its version is '\(text.prefix(40))'"), path: path)
        }
        let version = Version(major: numbers[0], minor: numbers[1])
        known[current, default: Known()].version = version
        return version
    }

    /// Returns which of some settings the server has, of a table of settings in the database `system`.
    func settings(_ names: [String], in table: String) throws(StoreFault) -> Set<String> {
        let list = names.map(Self.literal).joined(separator: ", ")
        // The store's database may not exist yet.
        let answer = try run(
            "SELECT name FROM system.\(table) WHERE name IN (\(list)) FORMAT TabSeparated",
            isInDatabase: false
        )
        return Set(String(decoding: answer, as: UTF8.self).split(separator: "\n").map(String.init))
    }

    /// Whether the server is of the old kind, without codecs, limits of age and tokens against duplicates.
    func isOld() throws(StoreFault) -> Bool { try version() < Version(major: 20, minor: 1) }

    /// Executes a statement and returns its answer. A statement is one of this program, with values as ``literal(_:)-(String)``.
    func run(
        _ statement: String,
        data: [UInt8] = [],
        isCompressed: Bool = false,
        settings: [(String, String)] = [],
        isInDatabase: Bool = true
    ) throws(StoreFault) -> [UInt8] {
        var query = settings
        if isInDatabase { query.append(("database", database)) }
        var body = data
        if data.isEmpty { body = Array(statement.utf8) } else { query.append(("query", statement)) }
        var fields: [(String, String)] = []
        if isCompressed { fields.append(("Content-Encoding", "gzip")) }
        if let user { fields.append(("X-ClickHouse-User", user)) }
        if let password { fields.append(("X-ClickHouse-Key", password)) }
        let pairs = query.map { "\($0)=\(Self.encoded($1))" }
        let request = ClickHouseRequest(
            target: "/?\(pairs.joined(separator: "&"))",
            fields: fields,
            body: body
        )
        return try send(request)
    }

    /// The servers of the shard, each alone.
    var all: [ClickHouseServer] { transports.indices.map { ClickHouseServer(self, at: $0) } }

    /// Sends a request to the server that answered last, and to the others if it cannot execute it.
    private func send(_ request: ClickHouseRequest) throws(StoreFault) -> [UInt8] {
        var fault = StoreFault(code: .unreachable("no host"), path: path)
        for attempt in transports.indices {
            let index = (current + attempt) % transports.count
            do throws(ClickHouseUnreachable) {
                let answer = try transports[index](request)
                if (200...299).contains(answer.status), answer.exception ?? "0" == "0" {
                    current = index
                    return answer.body
                }
                fault = self.fault(answer, of: index)
                // The rows are at fault, or the statement: another server would refuse them, too.
                if case .row = fault.code { break }
                if case .otherTables = fault.code { break }
            } catch {
                let host = "\(hosts[index])"
                let text = error.text.contains(host) ? error.text : "\(host): \(error.text)"
                fault = StoreFault(code: .unreachable("\(text); check that it runs, and its HTTP port"), path: path)
            }
        }
        throw fault
    }

    /// Returns the fault of an answer: its code is in the text, as in `Code: 60, e.displayText() = …`.
    private func fault(_ answer: ClickHouseAnswer, of index: Int) -> StoreFault {
        let text = String(decoding: answer.body.prefix(2000), as: UTF8.self)
        let code = text.firstMatch(of: #/Code: (\d+)/#).flatMap { Int($0.1) } ?? answer.exception.flatMap { Int($0) }
        let line = text.split(separator: "\n").first.map { String($0.prefix(300)) } ?? "HTTP \(answer.status)"
        let message = "\(hosts[index]): \(line)"
        let kind: StoreFault.Code =
            switch code {
            // UNKNOWN_TABLE and UNKNOWN_DATABASE.
            case 60, 81: .uninitialized
            // NO_SUCH_COLUMN_IN_TABLE, NUMBER_OF_COLUMNS_DOESNT_MATCH, UNKNOWN_IDENTIFIER, SYNTAX_ERROR.
            case 16, 20, 47, 62: .otherTables(message)
            // READONLY, and no right to write.
            case 164, 497: .other("the user may not do this; \(message)")
            // REQUIRED_PASSWORD, WRONG_PASSWORD, UNKNOWN_USER, AUTHENTICATION_FAILED.
            case 192, 193, 194, 516: .refusedLogin(message)
            // The rows of too many days in one batch have the code of too many parts.
            case 252 where message.contains("partitions for single INSERT block"): .row(message)
            case .some(let code) where Self.codesOfRows.contains(code): .row(message)
            case nil: .unreachable("HTTP \(answer.status): \(message)")
            default: .unreachable(message)
            }
        return StoreFault(code: kind, path: path)
    }

    /// The codes of errors in a row: CANNOT_PARSE_TEXT and others of parsing, TYPE_MISMATCH, ARGUMENT_OUT_OF_BOUND, CANNOT_CONVERT_TYPE,
    /// CANNOT_PARSE_NUMBER, INCORRECT_DATA, TOO_LARGE_STRING_SIZE, CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
    /// FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, VIOLATED_CONSTRAINT. After all others, the same batch is sent again.
    private static let codesOfRows: Set = [6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 117, 131, 349, 395, 469]

    // MARK: Rows

    /// Stores a batch.
    ///
    /// - Parameters:
    ///   - payload: The rows as gzip members.
    ///   - token: The same for each attempt, so that a server which knows tokens stores the batch once.
    func insert(_ payload: [UInt8], into table: SpoolBlock.Table, token: String) throws(StoreFault) {
        var settings: [(String, String)] = []
        // The server would answer before the rows are stored; a token lets it store the same batch once.
        let all = [("async_insert", "0"), ("insert_deduplication_token", token)]
        let has: Set<String>
        if let settings = known[current]?.settings {
            has = settings
        } else {
            has = try self.settings(all.map(\.0), in: "settings")
            known[current, default: Known()].settings = has
        }
        settings = all.filter { has.contains($0.0) }
        let answer = try run(
            "INSERT INTO \(ClickHouseSchema.name(of: table)) (\(ClickHouseSchema.columns(of: table))) FORMAT RowBinary",
            data: payload,
            isCompressed: true,
            settings: settings
        )
        guard answer.isEmpty else {
            // Only a success has no text: something else than ClickHouse may have answered.
            let text = String(decoding: answer.prefix(100), as: UTF8.self)
            throw StoreFault(code: .unreachable("\(name) answers '\(text)' to an insertion"), path: path)
        }
    }

    /// Deletes what is older than a limit: the oldest day of each table, and the sessions that have ended.
    ///
    /// - Parameter time: The present time; nil for that of the server's clock.
    /// - Returns: Whether there are more days.
    func retain(_ limit: StoreLimit, at time: Timestamp? = nil) throws(StoreFault) -> Bool {
        guard let age = limit.age else { return false }
        let now: Int64
        if let time { now = time.nanoseconds / 1_000_000_000 } else { now = try self.time() }
        // A server's times begin in 1970; an earlier one would be a time in the future.
        let start = max(0, now.subtractingReportingOverflow(age.wholeNanoseconds / 1_000_000_000).partialValue)
        let hasMoreStanzas = try dropDay(of: .stanza, before: start)
        let hasMoreGaps = try dropDay(of: .gap, before: start)
        guard !hasMoreStanzas, !hasMoreGaps else { return true }
        try deleteSessions(before: start)
        return false
    }

    /// The time of the server's clock, in seconds since 1970.
    private func time() throws(StoreFault) -> Int64 {
        var reader = RowBinaryReader(try run("SELECT toInt64(toUnixTimestamp(now())) FORMAT RowBinary"))
        let time = reader.integer(Int64.self)
        guard reader.isComplete else { throw StoreFault(code: .corrupt, path: path) }
        return time
    }

    /// Drops the partition of the oldest day before a time; returns whether there are more.
    private func dropDay(of table: SpoolBlock.Table, before start: Int64) throws(StoreFault) -> Bool {
        let name = ClickHouseSchema.name(of: table)
        let bound = "toDate(toDateTime(\(start), 'UTC'), 'UTC')"
        let statement = """
            SELECT DISTINCT partition FROM system.parts WHERE active AND table = '\(name)' AND database = \
            \(Self.literal(database)) AND partition < toString(\(bound)) ORDER BY partition LIMIT 2 FORMAT TabSeparated
            """
        let days = String(decoding: try run(statement), as: UTF8.self).split(separator: "\n")
        guard let day = days.first else { return false }
        _ = try run("ALTER TABLE \(name) DROP PARTITION \(Self.literal(String(day)))")
        return days.count > 1
    }

    /// The number of old sessions that can be kept: a server reads statements of 256 KiB.
    private static let keptSessions = 20_000

    /// Deletes the records of sessions that ended before a time. A session that has not ended is kept, whatever the day on which it began,
    /// unless its run has written nothing since then.
    private func deleteSessions(before start: Int64) throws(StoreFault) {
        let bound = "\(start) * 1000000000"
        let statement = """
            SELECT run, number FROM session GROUP BY run, number HAVING min(seen) < \(bound) AND (max(ended) >= \(bound) \
            OR max(ended) = 0 AND run IN (SELECT run FROM session WHERE seen >= \(bound))) LIMIT \(Self.keptSessions + 1) \
            FORMAT RowBinary
            """
        var reader = RowBinaryReader(try run(statement))
        var kept: [String: [String]] = [:]
        var count = 0
        while !reader.isAtEnd {
            let run = reader.text()
            kept[run, default: []].append("\(reader.integer(UInt64.self))")
            count += 1
        }
        guard reader.isComplete else { throw StoreFault(code: .corrupt, path: path) }
        guard count <= Self.keptSessions else {
            throw StoreFault(code: .other("more than \(Self.keptSessions) sessions of that age are open"), path: path)
        }
        // A replicated table refuses a deletion with a subquery.
        let old = kept.reduce(into: "seen < \(bound)") { condition, run in
            condition += " AND NOT (run = \(Self.literal(run.key)) AND number IN (\(run.value.joined(separator: ","))))"
        }
        var counter = RowBinaryReader(try run("SELECT count() FROM session WHERE \(old) FORMAT RowBinary"))
        let deleted = counter.integer(UInt64.self)
        guard counter.isComplete else { throw StoreFault(code: .corrupt, path: path) }
        // The server rewrites its files when it has time.
        if deleted > 0 { _ = try run("ALTER TABLE session DELETE WHERE \(old)") }
    }

    /// Checks that the store has the tables and columns of this version.
    func check() throws(StoreFault) {
        _ = try version()
        for table in SpoolBlock.Table.allCases {
            _ = try run(
                "SELECT \(ClickHouseSchema.columns(of: table)) FROM \(ClickHouseSchema.name(of: table)) LIMIT 0 FORMAT RowBinary"
            )
        }
    }

    /// Encodes a value of a query (RFC 3986 §2.1).
    private static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns a text as a literal of ClickHouse's SQL.
    static func literal(_ text: String) -> String {
        var literal = "'"
        for scalar in text.unicodeScalars {
            switch scalar {
            case "'", "\\":
                literal.unicodeScalars.append("\\")
                literal.unicodeScalars.append(scalar)
            case "\0": literal += "\\0"
            case "\n": literal += "\\n"
            case "\r": literal += "\\r"
            default: literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "'"
    }
}
