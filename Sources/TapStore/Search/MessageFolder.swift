internal import TapRecord

/// Joins the copies of messages. Rows must be added in their order; messages come out in the order of their earliest copies.
///
/// A message comes out when no further copy can follow, so that only those of a few minutes are in memory.
package struct MessageFolder {
    /// Copies of a message lie within this time of each other, in nanoseconds: five minutes. After that, a client may use an
    /// id again.
    static let copyTime: Int64 = 300_000_000_000

    /// Rows that can belong to the same message have the same group: of rooms, which may add an id, the room and the body.
    enum Group: Hashable {
        case key([UInt8])
        /// What ``MessageKey`` is a digest of. The receiver of a room's message is empty.
        case message(sender: ExactText, receiver: ExactText, id: ExactText, body: ExactText)
        case room(String?, body: String?)

        /// Creates the group of a row; nil for a row that has no copies.
        init?(_ row: AuditRow) {
            if row.isOfRoom, row.body != nil {
                self = .room(row.peer, body: row.body)
            } else {
                self.init(copiesOf: row)
            }
        }

        /// Creates the group of a row's copies; nil for a row that has none. Copies to which a room has added an id have only the other
        /// group in common.
        init?(copiesOf row: AuditRow) {
            guard row.kind == .message, let body = row.body else { return nil }
            // Earlier versions have stored a key for all messages.
            if let key = row.copyKey, !StoredContent.Bodies.isStored(body) {
                self = .key(key)
                return
            }
            self = .message(
                sender: ExactText(row.isOfRoom ? row.peer ?? "" : row.sender),
                receiver: ExactText(row.isOfRoom ? "" : row.receiver),
                id: ExactText(row.originID ?? row.id ?? ""),
                body: ExactText(body)
            )
        }

        func hash(into hasher: inout Hasher) {
            switch self {
            // An array would hash its bytes one by one.
            case .key(let key): key.withUnsafeBytes { hasher.combine(bytes: $0) }
            case .message(let sender, let receiver, let id, let body):
                hasher.combine(sender)
                hasher.combine(receiver)
                hasher.combine(id)
                hasher.combine(body)
            case .room(let room, let body):
                hasher.combine(room)
                hasher.combine(body)
            }
        }
    }

    /// A class, because copies of the message would take a fifth of the time of a search.
    private final class Entry {
        var message: FoundMessage
        /// The groups and keys under which the message is registered.
        var groups: [Group] = []

        init(_ message: FoundMessage) { self.message = message }
    }

    /// The messages that can get copies, and those after them.
    private var open: [Entry] = []
    /// The number of entries at the beginning of ``open`` that have come out.
    private var taken = 0
    /// The number of messages removed from ``open``.
    private var removed = 0
    /// The numbers of the open messages by key and by room and body.
    private var numbers: [Group: [Int]] = [:]
    /// The time of the last row.
    private var now = Int64.min
    private var isEnded = false

    package init() {}

    /// Adds the next row.
    package mutating func add(_ found: FoundRow) {
        let row = found.row
        now = row.time.nanoseconds
        guard let key = Group(copiesOf: row), let group = Group(row) else {
            return open.append(Entry(FoundMessage(found)))
        }
        let number =
            recent(key).first { open[$0 - removed].message.accepts(row) }
            ?? (row.isOfRoom ? recent(group).first { open[$0 - removed].message.isReflection(row) } : nil)
        if let number {
            open[number - removed].message.add(found)
        } else {
            open.append(Entry(FoundMessage(found)))
        }
        let place = number ?? removed + open.count - 1
        if numbers[key]?.last != place { register(place, key) }
        if row.isOfRoom, number == nil { register(place, group) }
    }

    private mutating func register(_ number: Int, _ group: Group) {
        numbers[group] = recent(group) + [number]
        open[number - removed].groups.append(group)
    }

    private func recent(_ group: Group) -> [Int] {
        numbers[group]?.filter { $0 >= removed + taken && !isComplete(open[$0 - removed].message) } ?? []
    }

    private func isComplete(_ message: FoundMessage) -> Bool {
        message.row.time.nanoseconds < now &- Self.copyTime
    }

    /// Declares that no row follows.
    package mutating func end() { isEnded = true }

    /// Returns the next message that cannot get another copy; nil if there is none yet.
    package mutating func next() -> FoundMessage? {
        guard taken < open.count else { return nil }
        let entry = open[taken]
        guard isEnded || isComplete(entry.message) || entry.groups.isEmpty else { return nil }
        taken += 1
        for group in entry.groups {
            numbers[group]?.removeAll { $0 <= removed + taken - 1 }
            if numbers[group]?.isEmpty == true { numbers[group] = nil }
        }
        if taken >= 64, taken * 2 >= open.count {
            open.removeFirst(taken)
            removed += taken
            taken = 0
        }
        return entry.message
    }
}
