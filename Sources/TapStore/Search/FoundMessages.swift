internal import TapRecord

/// A message that was found, with its copies: those of the sender and of the receiver, carbons, results of archives.
package struct FoundMessage: Sendable {
    /// A record of the message.
    package struct Copy: Sendable, Hashable {
        /// The run, the session in it, and the number of the record in it.
        package let run: String
        package let session: UInt64
        package let sequence: UInt64
        /// The account of the session.
        package let account: String
        fileprivate let direction: Direction
        fileprivate let source: AuditRow.Source

        fileprivate init(_ row: AuditRow) {
            (run, session, sequence, account) = (row.run, row.session, row.sequence, row.account)
            (direction, source) = (row.direction, row.source)
        }
    }

    /// The copy that is shown: the earliest; of a room, one with the sender's nickname.
    package private(set) var row: AuditRow
    /// All copies, the earliest first.
    package private(set) var copies: [Copy]

    fileprivate init(_ row: AuditRow) {
        self.row = row
        copies = [Copy(row)]
    }

    /// Returns whether another row can be a copy of this message. A session has each message without an id once in the same
    /// way: the same text again is another message.
    fileprivate func accepts(_ other: AuditRow) -> Bool {
        guard other.originID == nil, other.id == nil else { return true }
        return !copies.contains { copy in
            copy.run == other.run && copy.session == other.session && copy.direction == other.direction
                && copy.source == other.source
        }
    }

    /// Returns whether this message was sent to a room without an id and the other row is the room's copy, or the reverse:
    /// some rooms add an id.
    fileprivate func isReflection(_ other: AuditRow) -> Bool {
        let isSent = other.direction == .send && other.id == nil && other.originID == nil
        if isSent { return !copies.contains { $0.direction == .send } }
        return other.direction == .recv && row.direction == .send && row.id == nil && row.originID == nil
            && copies.allSatisfy { $0.direction == .send }
    }

    fileprivate mutating func add(_ other: AuditRow) {
        copies.append(Copy(other))
        // Only the room's own copies name the sender by the nickname.
        if row.isOfRoom, row.direction == .send, other.direction == .recv { row = other }
    }
}

/// The result of a search: each message once.
package struct FoundMessages {
    private var rows: [AuditRow] = []

    package init() {}

    /// Adds a row that matches.
    package mutating func add(_ row: AuditRow) { rows.append(row) }

    /// Number of rows, with copies.
    package var count: Int { rows.count }

    /// Returns the messages in the order of their times.
    package func messages() -> [FoundMessage] {
        var folder = MessageFolder()
        let ordered = rows.sorted {
            ($0.time, $0.seen, $0.run, $0.sequence) < ($1.time, $1.seen, $1.run, $1.sequence)
        }
        for row in ordered { folder.add(row) }
        return folder.messages
    }
}

/// Joins the copies of messages. Rows must be added in the order of their times.
private struct MessageFolder {
    /// Copies of a message lie within this time of each other, in nanoseconds: five minutes. After that, a client may use an
    /// id again.
    private static let copyTime: Int64 = 300_000_000_000

    private(set) var messages: [FoundMessage] = []
    /// The places of the messages with a key.
    private var byKey: [[UInt8]: [Int]] = [:]
    /// The places of the messages of rooms, by room and body.
    private var byRoom: [RoomText: [Int]] = [:]

    private struct RoomText: Hashable {
        let room: String?
        let body: String?
    }

    mutating func add(_ row: AuditRow) {
        guard let key = row.copyKey else { return messages.append(FoundMessage(row)) }
        let room = RoomText(room: row.peer, body: row.body)
        let place =
            recent(byKey[key], row).first { messages[$0].accepts(row) }
            ?? (row.isOfRoom ? recent(byRoom[room], row).first { messages[$0].isReflection(row) } : nil)
        if let place {
            messages[place].add(row)
        } else {
            messages.append(FoundMessage(row))
        }
        let found = place ?? messages.count - 1
        if byKey[key]?.last != found { byKey[key] = recent(byKey[key], row) + [found] }
        if row.isOfRoom, place == nil { byRoom[room] = recent(byRoom[room], row) + [found] }
    }

    private func recent(_ places: [Int]?, _ row: AuditRow) -> [Int] {
        let earliest = row.time.nanoseconds &- Self.copyTime
        return places?.filter { messages[$0].row.time.nanoseconds >= earliest } ?? []
    }
}
