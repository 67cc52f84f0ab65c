internal import CSQLite
internal import TapCapture

/// A connection to a SQLite database; used by one thread at a time.
///
/// GRDB would do the same, but adds 74 s of CPU time to a clean build of xmpptap, a seventh of the whole.
final class SQLiteDatabase {
    let path: String
    private let identity: [UInt64]?
    fileprivate let connection: OpaquePointer

    /// How a database is opened.
    enum Mode {
        /// The file must exist, and is not changed.
        case reading
        /// As ``reading``, for a file that no other program changes.
        case readingUnchanged
        /// The file is created if it does not exist.
        case writing
    }

    /// Configures SQLite, once and before the first connection.
    private static let configuration: Void = { _ = xmpptap_omit_memory_statistics() }()

    /// Opens a file.
    init(_ path: String, _ mode: Mode) throws(StoreFault) {
        _ = Self.configuration
        self.path = path
        var opened: OpaquePointer?
        // A reader that may not write would leave the files of the write-ahead log behind.
        let flags =
            switch mode {
            case .reading: SQLITE_OPEN_READWRITE
            case .readingUnchanged: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            case .writing: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        let name = mode == .readingUnchanged ? Self.unchangedURI(path) : path
        let status = sqlite3_open_v2(name, &opened, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nil)
        guard status == SQLITE_OK, let opened else {
            let fault = StoreFault(status, opened, path)
            sqlite3_close_v2(opened)
            throw fault
        }
        connection = opened
        identity = FileStatus(path: path)?.identity
        sqlite3_busy_timeout(connection, 2000)
        // A damaged file must not make SQLite run functions that its schema names.
        execute("PRAGMA trusted_schema = OFF")
        if mode != .writing { execute("PRAGMA query_only = ON") }
    }

    deinit { sqlite3_close_v2(connection) }

    private static func unchangedURI(_ path: String) -> String {
        let escaped = path.utf8.map { byte in
            let isPlain = (0x21...0x7E).contains(byte) && ![0x23, 0x25, 0x3F].contains(byte)
            return isPlain
                ? String(decoding: [byte], as: UTF8.self) : "%\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))"
        }
        return "file:\(escaped.joined())?immutable=1"
    }

    /// Executes statements without results.
    func run(_ sql: StaticString) throws(StoreFault) {
        let status = sqlite3_exec(connection, sql.description, nil, nil, nil)
        guard status == SQLITE_OK else { throw StoreFault(status, connection, path) }
    }

    /// As ``run(_:)-(StaticString)``, for statements that contain numbers or names of tables. The text is never data.
    func run(sql: String) throws(StoreFault) {
        let status = sqlite3_exec(connection, sql, nil, nil, nil)
        guard status == SQLITE_OK else { throw StoreFault(status, connection, path) }
    }

    /// Executes statements; an error has no effect.
    func execute(_ sql: StaticString) { sqlite3_exec(connection, sql.description, nil, nil, nil) }

    /// Compiles a statement. The text is one of this program, never data.
    func prepare(_ sql: String) throws(StoreFault) -> SQLiteStatement { try SQLiteStatement(self, sql) }

    /// Returns the integer in the first column of the first row; nil without one.
    func integer(_ sql: String) throws(StoreFault) -> Int64? {
        let statement = try prepare(sql)
        return try statement.step() ? statement.integer(0) : nil
    }

    /// Whether the path still names the file that was opened.
    var isInPlace: Bool { FileStatus(path: path)?.identity == identity }

    /// Number of rows that the last statement has inserted, changed or deleted.
    var changes: Int { Int(sqlite3_changes(connection)) }
}

/// A compiled statement.
final class SQLiteStatement {
    private let database: SQLiteDatabase
    private let statement: OpaquePointer

    fileprivate init(_ database: SQLiteDatabase, _ sql: String) throws(StoreFault) {
        self.database = database
        var compiled: OpaquePointer?
        let status = sqlite3_prepare_v2(database.connection, sql, -1, &compiled, nil)
        guard status == SQLITE_OK, let compiled else { throw StoreFault(status, database.connection, database.path) }
        statement = compiled
    }

    deinit { sqlite3_finalize(statement) }

    // MARK: Parameters, from 1

    func bind(_ index: Int32, _ value: Int64?) {
        if let value { sqlite3_bind_int64(statement, index, value) } else { sqlite3_bind_null(statement, index) }
    }

    func bind(_ index: Int32, _ text: String?) {
        guard var text else { return _ = sqlite3_bind_null(statement, index) }
        text.withUTF8 { _ = xmpptap_bind_text(statement, index, $0.baseAddress, UInt64($0.count)) }
    }

    /// As ``bind(_:_:)-(_,Int64?)``. A parameter that is not bound is NULL.
    func bind(ifAny index: Int32, _ value: Int64?) { if let value { sqlite3_bind_int64(statement, index, value) } }

    func bind(_ index: Int32, _ bytes: [UInt8]?) {
        guard let bytes else { return _ = sqlite3_bind_null(statement, index) }
        bytes.withUnsafeBytes { _ = xmpptap_bind_blob(statement, index, $0.baseAddress, UInt64($0.count)) }
    }

    /// Binds bytes that SQLite does not copy: they must not change until the statement is reset. An empty text must have an address.
    func bindUncopied(_ index: Int32, _ bytes: UnsafeBufferPointer<UInt8>, isBlob: Bool) {
        if isBlob {
            sqlite3_bind_blob64(statement, index, bytes.baseAddress, UInt64(bytes.count), nil)
        } else {
            UnsafeRawBufferPointer(bytes).withMemoryRebound(to: CChar.self) {
                _ = sqlite3_bind_text64(statement, index, $0.baseAddress, UInt64($0.count), nil, UInt8(SQLITE_UTF8))
            }
        }
    }

    // MARK: Steps

    /// Executes the statement up to its next row; returns false at its end.
    func step() throws(StoreFault) -> Bool {
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let status:
            reset()
            throw StoreFault(status, database.connection, database.path)
        }
    }

    /// Executes a statement without rows, and prepares it for the next execution.
    func run() throws(StoreFault) {
        _ = try step()
        reset()
    }

    /// As ``run()``, with further parameters.
    func run(_ texts: borrowing BoundTexts) throws(StoreFault) {
        let places = texts.places
        try texts.bytes.withUnsafeBufferPointer { bytes throws(StoreFault) in
            for (number, place) in places.enumerated() {
                let end = number + 1 < places.count ? places[number + 1].start : bytes.count
                bindUncopied(
                    place.index,
                    UnsafeBufferPointer(rebasing: bytes[place.start..<end]),
                    isBlob: place.isBlob
                )
            }
            try run()
        }
    }

    /// Prepares the statement for the next execution: all parameters are NULL.
    func reset() {
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
    }

    // MARK: Columns of the current row, from 0

    func integer(_ column: Int32) -> Int64? {
        sqlite3_column_type(statement, column) == SQLITE_NULL ? nil : sqlite3_column_int64(statement, column)
    }

    func isBlob(_ column: Int32) -> Bool { sqlite3_column_type(statement, column) == SQLITE_BLOB }

    func text(_ column: Int32) -> String? {
        guard let bytes = sqlite3_column_text(statement, column) else { return nil }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// The id in a column; nil if it has none.
    func id(_ column: Int32) -> String? {
        guard isBlob(column) else { return text(column) }
        let start = sqlite3_column_blob(statement, column)
        return CompactID.text(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }

    func bytes(_ column: Int32) -> [UInt8]? {
        guard let start = sqlite3_column_blob(statement, column) else { return nil }
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
    }
}

extension StoreFault {
    /// Creates the fault of a result code of SQLite.
    fileprivate init(_ status: Int32, _ connection: OpaquePointer?, _ path: String) {
        let message = connection.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "cannot be opened"
        let code: Code =
            switch status & 0xFF {
            case SQLITE_BUSY, SQLITE_LOCKED: .locked
            case SQLITE_READONLY, SQLITE_PERM: .readOnly
            case SQLITE_FULL: .full
            case SQLITE_CORRUPT: .corrupt
            case SQLITE_NOTADB: .foreign
            case SQLITE_CANTOPEN: .unopened
            // SQLITE_IOERR_SHMOPEN, SHMSIZE, SHMLOCK and SHMMAP: the write-ahead log needs shared memory.
            case SQLITE_IOERR where (18...21).contains(status >> 8):
                .other("its file system does not support shared memory, as some networks' do not; choose a local disk")
            // The statements are fixed: they fail if the file has not the tables that they name.
            case SQLITE_ERROR: .other("\(message); see 'xmpptap store check'")
            case SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_RANGE: .row(message)
            default: .other(message)
            }
        self.init(code: code, path: path)
    }
}
