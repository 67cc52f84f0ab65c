import PlainSQLite
import TapRecord
import TapStore

/// The rows as the plain loop takes them: the texts as bytes, the names as numbers.
final class PlainRows {
    private var names: [String: Int64] = [:]
    private var bytes: [UInt8] = []
    private var rows: [plain_row] = []

    /// Calls `body` with the rows and the names that no earlier rows had.
    func with(
        _ audited: [AuditRow],
        _ body: (UnsafeBufferPointer<plain_row>, [(String, Int64)]) throws -> Void
    ) rethrows {
        var new: [(String, Int64)] = []
        func number(_ name: String?) -> Int64 {
            guard let name else { return .min }
            if let known = names[name] { return known }
            let number = Int64(names.count + 1)
            names[name] = number
            new.append((name, number))
            return number
        }
        bytes.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        // The bytes move while there are more of them: texts begin at an offset until all are there.
        func text(_ text: String?) -> plain_text {
            guard let text else { return plain_text() }
            return append(Array(text.utf8), isBlob: false)
        }
        func append(_ added: [UInt8], isBlob: Bool) -> plain_text {
            bytes += added
            return plain_text(
                bytes: UnsafePointer(bitPattern: bytes.count - added.count + 1),
                count: Int32(added.count),
                is_blob: isBlob ? 1 : 0
            )
        }
        func id(_ id: String?) -> plain_text {
            guard let id else { return plain_text() }
            let digits = id.utf8.filter { $0 != 0x2D }.map { $0 < 0x40 ? $0 & 15 : $0 - 0x57 }
            guard id.utf8.count == 36, digits.count == 32 else { return text(id) }
            return append((0..<16).map { digits[2 * $0] << 4 | digits[2 * $0 + 1] }, isBlob: true)
        }
        for row in audited {
            var plain = plain_row()
            plain.id = (row.seen.nanoseconds / 86_400_000_000_000) << 48 | Int64(row.sequence)
            (plain.session, plain.time) = (Int64(row.session), row.time.nanoseconds)
            plain.received = row.seen == row.time ? .min : row.seen.nanoseconds
            (plain.account, plain.resource) = (number(row.account), number(row.resource))
            (plain.peer, plain.peer_resource) = (number(row.peer), number(row.peerResource))
            (plain.direction, plain.kind) = (Int64(row.direction.rawValue), Int64(row.kind.rawValue))
            (plain.type, plain.payload) = (number(row.type), number(row.payload))
            (plain.stanza_by, plain.size) = (number(row.stanzaBy), Int64(row.size))
            (plain.round_trip, plain.stanza, plain.stanza_id) = (row.roundTrip ?? .min, id(row.id), id(row.stanzaID))
            (plain.body, plain.subject) = (text(row.body), text(row.subject))
            if let key = row.copyKey { plain.copy_key = append(key, isBlob: true) }
            rows.append(plain)
        }
        try bytes.withUnsafeBytes { bytes in
            for index in rows.indices {
                for path in [\plain_row.stanza, \.body, \.subject, \.stanza_id, \.copy_key] {
                    guard let offset = rows[index][keyPath: path].bytes else { continue }
                    rows[index][keyPath: path].bytes =
                        bytes.baseAddress.map { $0.assumingMemoryBound(to: CChar.self) + Int(bitPattern: offset) - 1 }
                }
            }
            try rows.withUnsafeBufferPointer { try body($0, new) }
        }
    }
}
