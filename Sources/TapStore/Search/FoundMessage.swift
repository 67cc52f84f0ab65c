package import TapRecord

/// A message that was found, with its copies: those of the sender and of the receiver, carbons, results of archives.
package struct FoundMessage: Sendable {
    /// A record of the message.
    package struct Copy: Sendable, Hashable {
        /// The name of the xmpptap that recorded it; nil if it is not known.
        package let tap: String?
        /// The run, the session in it, and the number of the record in it.
        package let run: String
        package let session: UInt64
        package let sequence: UInt64
        /// The account of the session.
        package let account: String
        package let source: AuditRow.Source
        /// The digest of the stanza; nil unless it was asked for.
        package let digest: StanzaDigest?
        fileprivate let direction: Direction
        /// Whether the account sent the message.
        package var isSent: Bool { direction == .send }

        fileprivate init(_ found: FoundRow) {
            let row = found.row
            (run, session, sequence, account) = (row.run, row.session, row.sequence, row.account)
            (tap, direction, source) = (row.tap, row.direction, row.source)
            digest = found.digest
        }
    }

    private let first: FoundRow
    private var others: [Copy] = []
    private var shown: FoundRow

    /// The copy that is shown: the earliest; of a room, one with the sender's nickname.
    package var row: AuditRow { shown.row }
    /// All copies, the earliest first.
    package var copies: [Copy] { [Copy(first)] + others }
    /// The place of the earliest copy in the order of rows.
    package var order: RowOrder { first.row.order }

    init(_ found: FoundRow) { (first, shown) = (found, found) }

    /// Returns whether another row can be a copy of this message. A session has each message without an id once in the same
    /// way: the same text again is another message.
    func accepts(_ other: AuditRow) -> Bool {
        guard other.originID == nil, other.id == nil else { return true }
        return !isSame(first.row, other)
            && !others.contains { copy in
                copy.run == other.run && copy.session == other.session && copy.direction == other.direction
                    && copy.source == other.source
            }
    }

    private func isSame(_ row: AuditRow, _ other: AuditRow) -> Bool {
        row.run == other.run && row.session == other.session && row.direction == other.direction
            && row.source == other.source
    }

    /// Returns whether this message was sent to a room without an id and the other row is the room's copy, or the reverse:
    /// some rooms add an id.
    func isReflection(_ other: AuditRow) -> Bool {
        let isSent = other.direction == .send && other.id == nil && other.originID == nil
        if isSent { return first.row.direction != .send && !others.contains { $0.direction == .send } }
        return other.direction == .recv && row.direction == .send && row.id == nil && row.originID == nil
            && first.row.direction == .send && others.allSatisfy { $0.direction == .send }
    }

    mutating func add(_ other: FoundRow) {
        others.append(Copy(other))
        // Only the room's own copies name the sender by the nickname.
        if row.isOfRoom, row.direction == .send, other.row.direction == .recv { shown = other }
    }
}

/// The order of rows in a search.
package struct RowOrder: Sendable, Hashable, Comparable {
    package let time: Timestamp
    let seen: Timestamp
    let run: String
    let sequence: UInt64

    package static func < (left: RowOrder, right: RowOrder) -> Bool {
        (left.time, left.seen, left.run, left.sequence) < (right.time, right.seen, right.run, right.sequence)
    }
}

extension AuditRow {
    /// The place of the row in the order of a search.
    package var order: RowOrder { RowOrder(time: time, seen: seen, run: run, sequence: sequence) }

    /// The conversation to which the stanza belongs.
    package var conversation: Conversation {
        isOfRoom ? .room(receiver) : .people([sender, receiver].min() ?? sender, [sender, receiver].max() ?? receiver)
    }
}

/// The stanzas of a room, or those between two addresses.
package enum Conversation: Sendable, Hashable {
    case room(String)
    /// The bare addresses in order; both are the same if an account writes to itself.
    case people(String, String)

    /// The addresses as text.
    package var title: String {
        switch self {
        case .room(let room): room
        case .people(let one, let other): one == other ? one : "\(one) and \(other)"
        }
    }
}

/// A row without its XML, of which only the digest is kept.
///
/// A class, because a copy of a row copies its many texts.
package final class FoundRow: Sendable {
    package let row: AuditRow
    package let digest: StanzaDigest?

    /// - Parameter hasDigest: Whether the digest is computed.
    package init(_ row: AuditRow, hasDigest: Bool = false) {
        digest = hasDigest ? StanzaDigest(row) : nil
        var row = row
        row.xml = nil
        self.row = row
    }
}
