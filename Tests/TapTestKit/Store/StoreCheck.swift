internal import Glibc
internal import TapRecord
package import TapStore
import Testing

/// A check that every kind of audit store must pass.
package struct StoreCheck: Sendable, CustomTestStringConvertible {
    package let testDescription: String
    private let body: @Sendable (CheckedStore) throws -> Void

    init(_ description: String, _ body: @escaping @Sendable (CheckedStore) throws -> Void) {
        testDescription = description
        self.body = body
    }

    /// All checks, each for an empty store.
    package static let all = writing + sessions + retention + queries + words + texts

    /// Returns the differences between the behaviour of a store and the expected one.
    package func differences(_ opening: CheckedStore.Opening) throws -> [String] {
        let store = try CheckedStore(opening)
        try body(store)
        return store.differences
    }
}

/// A store that is checked, and the differences found.
package final class CheckedStore {
    /// How a store is opened. Each writer and each reader is another object for the same rows.
    package struct Opening: Sendable {
        let writer: @Sendable () throws -> any AuditWriter
        let reader: @Sendable () throws -> any AuditStore
        /// Opens the store for deleting old rows.
        let maintenance: @Sendable () throws -> any AuditStore

        package init(
            writer: @escaping @Sendable () throws -> any AuditWriter,
            reader: @escaping @Sendable () throws -> any AuditStore,
            maintenance: @escaping @Sendable () throws -> any AuditStore
        ) {
            self.writer = writer
            self.reader = reader
            self.maintenance = maintenance
        }
    }

    private let opening: Opening
    private var writer: any AuditWriter
    private var openReader: (any AuditStore)?
    private(set) var differences: [String] = []

    init(_ opening: Opening) throws {
        self.opening = opening
        writer = try opening.writer()
    }

    // MARK: Writing

    func add(_ rows: [AuditRow]) throws {
        openReader = nil
        for row in rows { try writer.add(.stanza(row)) }
    }

    func add(_ sessions: [AuditSession]) throws {
        openReader = nil
        for session in sessions { try writer.add(.session(session)) }
    }

    func add(gapFrom first: UInt64, stanzas: UInt64) throws {
        openReader = nil
        let time = CheckedRow.time(after: 0)
        let gap = StoreGap(run: "run", first: first, last: first + 50, stanzas: stanzas, reason: "a reason", time: time)
        try writer.add(.gap(gap))
    }

    func commit() throws { try writer.commit() }

    func abandon() { writer.abandon() }

    /// Adds and commits rows.
    func store(_ rows: [AuditRow]) throws {
        try add(rows)
        try commit()
    }

    /// Continues with another writer, as after a restart.
    func restart() throws {
        writer.close()
        writer = try opening.writer()
    }

    /// Deletes all rows that are older than an age at ``CheckedRow/noon``.
    func retain(_ limit: StoreLimit) throws {
        openReader = nil
        waitForSpool()
        let store = try opening.maintenance()
        for _ in 0..<1000 {
            guard try store.retain(limit, at: Timestamp(nanoseconds: CheckedRow.noon)) else { return }
        }
        differences.append("the deletion does not end")
    }

    // MARK: Reading

    /// Waits until committed rows on their way to a server have arrived.
    private func waitForSpool() {
        while writer.spool?.figures.bytes ?? 0 > 0 { usleep(2_000) }
    }

    private func reader() throws -> any AuditStore {
        waitForSpool()
        if let openReader { return openReader }
        let reader = try opening.reader()
        openReader = reader
        return reader
    }

    /// Returns the rows that match a query, in their order.
    func rows(_ query: SearchQuery) throws -> [AuditRow] {
        let rows = try reader().rows(for: query)
        let sorted = rows.sorted { $0.order < $1.order }
        if rows != sorted { differences.append("the rows of '\(query.text)' are not in order") }
        return sorted
    }

    /// Returns a line for each message that a search shows.
    func search(_ query: SearchQuery, context: Int) throws -> [String] {
        var lines: [String] = []
        var search = StoreSearch(try reader(), query, context: context)
        try search.show { message in
            lines.append(Self.line(message))
            return true
        }
        return lines
    }

    static func line(_ shown: ShownMessage) -> String {
        let copies = shown.message.copies.map { "\($0.run) \($0.sequence)" }.joined(separator: ",")
        return "\(shown.beginsRange ? "|" : "")\(shown.isMatch ? "*" : "")\(copies)"
    }

    /// Returns all stanzas in their order.
    func allRows() throws -> [AuditRow] {
        var query = SearchQuery(words: "")
        query.kinds = Set(AuditRow.Kind.allCases)
        return try rows(query)
    }

    func sessions() throws -> [AuditSession] {
        var sessions: [AuditSession] = []
        try reader().sessions { sessions.append($0) }
        return sessions.sorted { ($0.run, $0.number) < ($1.run, $1.number) }
    }

    func overview() throws -> StoreOverview { try reader().overview() }

    // MARK: Comparing

    func expect<Value: Equatable>(_ found: Value, _ expected: Value, _ subject: String) {
        guard found != expected else { return }
        differences.append("\(subject): \("\(found)".prefix(300)) instead of \("\(expected)".prefix(300))")
    }

    /// Compares rows, and names the first that differs.
    func expect(rows found: [AuditRow], _ expected: [AuditRow], _ subject: String) {
        guard found != expected else { return }
        let place = zip(found, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? min(found.count, expected.count)
        func row(_ rows: [AuditRow]) -> String {
            guard place < rows.count else { return "none" }
            let row = rows[place]
            return "\(row.run) \(row.sequence) '\(row.body?.prefix(60) ?? "-")' \("\(row)".utf8.count) bytes"
        }
        differences.append(
            "\(subject): \(found.count) rows instead of \(expected.count); row \(place) is \(row(found)), not \(row(expected))"
        )
    }
}
