import TapRecord
import TapStore

/// Rows for the checks of stores.
enum CheckedRow {
    static let juliet = "juliet@example.org"
    static let romeo = "romeo@example.org"
    static let room = "hall@rooms.example.org"
    /// 2026-11-22, noon.
    static let noon: Int64 = 1_795_348_800_000_000_000
    static let day: Int64 = 86_400_000_000_000

    static func time(after seconds: Int64) -> Timestamp { Timestamp(nanoseconds: noon + seconds * 1_000_000_000) }

    /// Returns the row of a message from Juliet to Romeo.
    static func message(
        _ sequence: UInt64,
        _ body: String? = "hi",
        run: String = "run",
        account: String = juliet,
        peer: String? = romeo,
        direction: Direction = .send,
        kind: AuditRow.Kind = .message,
        type: String? = "chat",
        after seconds: Int64? = nil
    ) -> AuditRow {
        var row = AuditRow(
            run: run,
            sequence: sequence,
            session: 1,
            time: time(after: seconds ?? Int64(clamping: sequence)),
            account: account,
            direction: direction,
            kind: kind,
            size: 100
        )
        (row.peer, row.type, row.body) = (peer, type, body)
        return row
    }

    /// Returns a row with a text in all fields that can have one.
    ///
    /// - Parameter name: The text of fields that are parts of an index: names and ids.
    static func full(_ sequence: UInt64, _ text: String, name: String) -> AuditRow {
        var row = message(sequence, text, run: name, account: name, peer: name)
        (row.resource, row.peerResource, row.type, row.payload) = (name, name, name, name)
        (row.id, row.thread, row.stanzaID, row.stanzaBy, row.originID) = (name, text, name, name, name)
        (row.subject, row.action, row.rule, row.condition, row.xml) = (text, name, name, name, text)
        row.tap = name
        row.copyKey = Array(0...255)
        return row
    }
}
