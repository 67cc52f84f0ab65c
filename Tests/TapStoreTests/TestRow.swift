import TapRecord

@testable import TapStore

/// Rows for tests.
enum TestRow {
    /// Returns the row of a message from Juliet to Romeo.
    static func message(
        _ body: String,
        sequence: UInt64 = 1,
        session: UInt64 = 1,
        account: String = "juliet@example.org",
        peer: String? = "romeo@example.org",
        direction: Direction = .send,
        source: AuditRow.Source = .live,
        type: String = "chat",
        id: String? = "m1",
        after seconds: Int64 = 0
    ) -> AuditRow {
        var row = AuditRow(
            run: "run",
            sequence: sequence,
            session: session,
            time: Timestamp(nanoseconds: 1_795_000_000_000_000_000 + seconds * 1_000_000_000),
            account: account,
            direction: direction,
            kind: .message,
            size: 100
        )
        (row.peer, row.type, row.id, row.body, row.source) = (peer, type, id, body, source)
        return row
    }
}
