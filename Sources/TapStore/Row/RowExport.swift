internal import TapRecord
internal import TapSecurity

/// All columns of an audit store's rows, for other programs.
package enum RowExport {
    /// The names of the columns, in the order of ``values(_:)``.
    package static let columns: [StaticString] = [
        "time", "seen", "tap", "run", "session", "sequence", "account", "resource", "peer", "peer_resource",
        "direction",
        "kind", "source", "type", "id", "payload", "body", "subject", "thread", "stanza_id", "stanza_by", "origin_id",
        "copy_key", "size", "action", "rule", "condition", "round_trip", "xml",
    ]

    private enum Value {
        case text(String?)
        case number(Int)
        case none
    }

    private static func values(_ row: AuditRow) -> [Value] {
        let source: String? =
            switch row.source {
            case .live: nil
            case .carbon: "carbon"
            case .archive: "archive"
            }
        return [
            .text(row.time.text), .text(row.seen.text), .text(row.tap), .text(row.run),
            .number(Int(clamping: row.session)),
            .number(Int(clamping: row.sequence)), .text(row.account), .text(row.resource), .text(row.peer),
            .text(row.peerResource), .text("\(row.direction.name)"), .text(row.kind.name), .text(source),
            .text(row.type), .text(row.id), .text(row.payload), .text(row.body), .text(row.subject), .text(row.thread),
            .text(row.stanzaID), .text(row.stanzaBy), .text(row.originID),
            .text((row.copyKey ?? MessageKey(row)?.bytes)?.hexadecimal),
            .number(row.size), .text(row.action), .text(row.rule), .text(row.condition),
            row.roundTrip.map { .number(Int(clamping: $0)) } ?? .none, .text(row.xml),
        ]
    }

    /// The row as a JSON object, without the columns that it lacks.
    ///
    /// - Parameter reason: Why a server does not accept the row, as the first field; nil for none.
    package static func json(_ row: AuditRow, reason: String? = nil) -> String {
        LineBuffer.object { line in
            if let reason { line.field("reason", reason) }
            for (name, value) in zip(columns, values(row)) {
                switch value {
                case .text(let text): if let text { line.field(name, text) }
                case .number(let number): line.field(name, number)
                case .none: continue
                }
            }
        }
    }

    /// The values of all columns as text; empty if the row has none.
    package static func texts(_ row: AuditRow) -> [String] {
        values(row).map { value in
            switch value {
            case .text(let text): text ?? ""
            case .number(let number): "\(number)"
            case .none: ""
            }
        }
    }
}
