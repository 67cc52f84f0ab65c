internal import TapCapture
package import TapRecord

/// Adds the stanzas and sessions of runs to a store.
///
/// A row is identified by its run and its number in the run: adding it again has no effect.
package protocol AuditWriter: AnyObject {
    /// Adds a stanza. It is kept when ``commit()`` returns, or before.
    func add(_ row: AuditRow) throws(StoreFault)
    /// Adds what is known of a session.
    func add(_ session: AuditSession) throws(StoreFault)
    /// Adds the number of stanzas that the store lacks.
    func add(_ gap: StoreGap) throws(StoreFault)

    /// Keeps the rows that were added, whatever happens to the program. Of a server's store they may still be on their way.
    func commit() throws(StoreFault)

    /// Forgets the rows that are not committed, after an error.
    func abandon()

    /// Deletes some of the rows that a limit excludes; see ``AuditStore/retain(_:at:)``.
    func retain(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool

    /// Whether the store is still at its place: a file may have been moved or deleted.
    var isInPlace: Bool { get }

    /// Prepares the end of writing, after which the writer is not used. Waits a few seconds at most.
    func close()

    /// Sends the added rows to the store, so that they can be read, and closes the writer. May take long.
    func finish() throws(StoreFault)
}

extension AuditWriter {
    /// Adds an entry of any kind.
    package func add(_ entry: AuditEntry) throws(StoreFault) {
        switch entry {
        case .stanza(let row): try add(row)
        case .session(let session): try add(session)
        case .gap(let gap): try add(gap)
        }
    }
}

/// Stanzas and sessions that can be searched.
package protocol AuditStore: AnyObject {
    /// Deletes some of the rows that a limit excludes; the rest is for later calls, so that none takes long.
    ///
    /// - Returns: Whether there is more to delete.
    func retain(_ limit: StoreLimit, at now: Timestamp) throws(StoreFault) -> Bool

    /// Calls `body` with each row that matches a query, in order of time, until it returns false.
    func rows(for query: SearchQuery, _ body: (AuditRow) throws(StoreFault) -> Bool) throws(StoreFault)

    /// Returns the rows that may be those of a conversation and match a query: from a time on, or backwards, from those of this
    /// time. The caller checks them.
    func rows(
        of conversation: Conversation,
        _ query: SearchQuery,
        from time: Timestamp,
        isBackwards: Bool
    ) throws(StoreFault) -> any RowSource

    /// Whether all rows that match a query without its words should be read at once, because they are few, or many of them have
    /// the words. Otherwise, the messages around each match are read separately.
    func isDense(_ query: SearchQuery) throws(StoreFault) -> Bool

    /// Returns the times at which the first and last stanza were seen; nil for an empty store.
    func times() throws(StoreFault) -> ClosedRange<Timestamp>?

    /// Calls `body` with each session, in no particular order.
    func sessions(_ body: (AuditSession) -> Void) throws(StoreFault)

    /// Returns facts about the store.
    func overview() throws(StoreFault) -> StoreOverview
}

/// The rows of a conversation, in parts.
package protocol RowSource {
    /// Returns the next rows, the earliest first; nil at the end. Read backwards, each part is before the one that was read
    /// last.
    mutating func next() throws(StoreFault) -> [AuditRow]?
}

/// Facts about a store.
package struct StoreOverview: Sendable, Hashable {
    /// Number of stanzas, and of messages with a body among them.
    package var stanzas = 0
    package var bodies = 0
    /// Whether these numbers are estimated, to one percent.
    package var isEstimated = false
    /// Number of runs, and of accounts.
    package var runs = 0
    package var accounts = 0
    /// Number of stanzas that a full or damaged spool has lost.
    package var missing = 0
    /// Number of different pictures of avatars, and of different vCards.
    package var pictures = 0
    package var vCards = 0
    /// The times of the first and last stanza; nil for an empty store.
    package var times: ClosedRange<Timestamp>?
    /// Number of bytes of its files.
    package var bytes: Int64 = 0

    init() {}

    /// Adds the figures of another part of the store, except for the number of runs.
    mutating func add(_ part: StoreOverview) {
        // The counts come from servers.
        func sum(_ one: Int, _ other: Int) -> Int {
            let (sum, isTooLarge) = one.addingReportingOverflow(other)
            return isTooLarge ? .max : sum
        }
        stanzas = sum(stanzas, part.stanzas)
        bodies = sum(bodies, part.bodies)
        isEstimated = isEstimated || part.isEstimated
        accounts = sum(accounts, part.accounts)
        missing = sum(missing, part.missing)
        pictures = sum(pictures, part.pictures)
        vCards = sum(vCards, part.vCards)
        bytes = Int64(clamping: sum(Int(clamping: bytes), Int(clamping: part.bytes)))
        guard let more = part.times else { return }
        let known = times ?? more
        times = min(known.lowerBound, more.lowerBound)...max(known.upperBound, more.upperBound)
    }
}

/// A store cannot be opened, read or written.
package struct StoreFault: Error, Sendable, Hashable {
    /// The kind of fault.
    package enum Code: Sendable, Hashable {
        /// The file is not a store of xmpptap.
        case foreign
        /// The store was written by a newer program: the version of its schema, and the newest that is known.
        case newer(Int, known: Int)
        /// Another program is writing to the store.
        case locked
        case readOnly
        case full
        case corrupt
        /// The file does not exist.
        case missing
        /// The file cannot be opened.
        case unopened
        /// The store was written by an older program: the version of its schema.
        case older(Int)
        /// The store has stanzas of as many runs as it can number.
        case tooManyRuns(Int64)
        /// The file was deleted or moved while it was being written.
        case moved
        /// No server answers, or it cannot answer now, with the reason.
        case unreachable(String)
        /// The server has no store of this name.
        case uninitialized
        /// The server's tables are not those of this version, with its message.
        case otherTables(String)
        /// The spool is full.
        case spoolFull
        /// The server does not accept the user or the password, with its message.
        case refusedLogin(String)
        /// A row cannot be stored, with the message of SQLite or of the server; others can.
        case row(String)
        /// Another error of SQLite, with its message.
        case other(String)
    }

    package let code: Code
    /// The path of the store.
    package let path: String

    package init(code: Code, path: String) { (self.code, self.path) = (code, path) }
}

extension StoreFault: CustomStringConvertible {
    /// The fault and the remedy, in one line.
    package var description: String { "\(path): \(reason)" }

    /// The description without the path.
    package var reason: String {
        switch code {
        case .foreign: "not a store of xmpptap; name another file"
        case .newer(let version, let known):
            "written by a newer xmpptap (schema \(version), this program knows \(known)); install that version"
        case .locked: "another program is writing to it; wait until it has ended"
        case .readOnly: "it cannot be written; check its permissions and those of its folder"
        case .full: "the disk is full; make space, or choose another disk"
        case .corrupt: "damaged; convert the recordings to a new store"
        case .missing where path.contains("://"): "a store on servers; this command is for files"
        case .missing: "no such file"
        case .unopened where FileStatus(path: path)?.isFolder == true: "it is a folder; name a file in it"
        case .unopened: "it cannot be opened; check that its folder exists, and the permissions of both"
        case .older(let version):
            "written by an older xmpptap (schema \(version)); bring it up to date with 'xmpptap store vacuum'"
        case .tooManyRuns(let count): "it has stanzas of \(count) runs, and can have no more; name a new file"
        case .moved: "deleted or moved while it was being written; a new store is begun"
        case .unreachable(let reason): "cannot be reached: \(reason)"
        case .uninitialized: "there is no such store; create it with 'xmpptap store init \(path)'"
        case .otherTables(let message):
            "its tables are of another version of xmpptap; name another database, or create the missing columns: \(message)"
        case .spoolFull:
            "the spool is full; make the store reachable, or allow more by --store-spool-size"
        case .refusedLogin(let message):
            "the login was refused; check the user and --store-password-file: \(message)"
        case .row(let message): "a stanza cannot be stored: \(message)"
        case .other(let message): message
        }
    }
}
