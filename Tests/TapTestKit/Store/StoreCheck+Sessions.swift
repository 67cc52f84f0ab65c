import TapRecord
import TapStore

/// Checks of sessions, of which several records are joined.
extension StoreCheck {
    static let sessions = [
        StoreCheck("the records of a session in one transaction are one session") { try joinsSessions($0, .together) },
        StoreCheck("the records of a session in several transactions are one session") {
            try joinsSessions($0, .commit)
        },
        StoreCheck("the records of a session before and after a restart are one session") {
            try joinsSessions($0, .restart)
        },
    ]

    private enum Separation {
        case together, commit, restart
    }

    /// Returns a session with the fields of the record at `sequence`, or, if that is nil, of all its records.
    private static func session(
        _ number: UInt64,
        run: String = "run",
        at sequence: UInt64? = nil,
        _ change: (inout AuditSession) -> Void
    ) -> AuditSession {
        var session = AuditSession(run: run, number: number)
        session.source = sequence.map { RecordPlace(sequence: $0, time: CheckedRow.time(after: 1)) }
        change(&session)
        return session
    }

    private static func joinsSessions(_ store: CheckedStore, _ separation: Separation) throws {
        let text = "it's \\ \0 \u{2028} 合同"
        // The records of sessions in the order in which a proxy writes them, and the sessions that they are.
        let (began, ended) = (CheckedRow.time(after: 1), CheckedRow.time(after: 9))
        let parts = [
            [session(1, at: 1) { ($0.client, $0.began) = ("192.0.2.1:5222", began) }],
            [session(1, at: 2) { $0.account = CheckedRow.juliet }],
            [session(1, at: 3) { ($0.cause, $0.finding) = ("wrong-password", text) }],
            [
                session(1, at: 4) { ($0.ended, $0.closeReason) = (ended, "closed") },
                session(2, at: 5) { $0.began = began },
            ],
            [
                session(2, at: 6) { $0.account = text }, session(1, run: "other", at: 1) { $0.client = "[::1]:5222" },
                session(UInt64(Int64.max), at: 7) { ($0.began, $0.ended) = (ended, began) },
            ],
            // Records can be added again.
            [session(1, at: 1) { ($0.client, $0.began) = ("192.0.2.1:5222", began) }],
        ]
        for part in parts {
            try store.add(part)
            if separation != .together { try store.commit() }
            if separation == .restart { try store.restart() }
        }
        try store.commit()
        let expected = [
            session(1, run: "other") { $0.client = "[::1]:5222" },
            session(1) {
                ($0.client, $0.began, $0.ended, $0.closeReason) = ("192.0.2.1:5222", began, ended, "closed")
                ($0.account, $0.cause, $0.finding) = (CheckedRow.juliet, "wrong-password", text)
            },
            session(2) { ($0.began, $0.account) = (began, text) },
            session(UInt64(Int64.max)) { ($0.began, $0.ended) = (ended, began) },
        ]
        let found = try store.sessions()
        store.expect(found.map { "\($0.run) \($0.number)" }, expected.map { "\($0.run) \($0.number)" }, "sessions")
        for (found, expected) in zip(found, expected) { store.expect(found, expected, "session") }
    }
}
