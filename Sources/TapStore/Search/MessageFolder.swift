internal import TapRecord

/// Joins the copies of messages. Rows must be added in their order; messages come out in the order of their earliest copies.
///
/// A message comes out when no further copy can follow, so that only those of a few minutes are in memory.
package struct MessageFolder {
    /// Copies of a message lie within this time of each other, in nanoseconds: five minutes. After that, a client may use an
    /// id again.
    static let copyTime: Int64 = 300_000_000_000

    /// Rows that can belong to the same message have the same group: of rooms, which may add an id, the room and the body.
    struct Group: Hashable {
        private enum Content: Equatable {
            case key([UInt8])
            /// What ``MessageKey`` is a digest of. The receiver of a room's message is empty.
            case message(sender: ExactText, receiver: ExactText, id: ExactText, body: ExactText)
            case room(ExactText, body: ExactText)
        }

        private let content: Content

        /// Creates the group of a row; nil for a row that has no copies.
        init?(_ row: AuditRow) {
            guard row.isOfRoom, let body = row.body else {
                self.init(copiesOf: row)
                return
            }
            self.init(content: .room(ExactText(row.peer ?? ""), body: ExactText(body)))
        }

        private init(content: Content) { self.content = content }

        /// Creates the group of a row's copies; nil for a row that has none. Copies to which a room has added an id have only the other
        /// group in common.
        init?(copiesOf row: AuditRow) {
            guard row.kind == .message, let body = row.body else { return nil }
            // Earlier versions have stored a key for all messages.
            if let key = row.copyKey, !StoredContent.Bodies.isStored(body) {
                self.init(content: .key(key))
                return
            }
            self.init(
                content: .message(
                    sender: ExactText(row.isOfRoom ? row.peer ?? "" : row.sender),
                    receiver: ExactText(row.isOfRoom ? "" : row.receiver),
                    id: ExactText(row.originID ?? row.id ?? ""),
                    body: ExactText(body)
                )
            )
        }

        func hash(into hasher: inout Hasher) {
            switch content {
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
        /// A group of the message, and its hash.
        struct Registration {
            let hash: Int
            let group: Group
        }

        var message: FoundMessage
        /// The groups under which the message is registered; most have one.
        private(set) var first: Registration?
        private(set) var others: [Registration] = []

        init(_ message: FoundMessage) { self.message = message }

        func has(_ group: Group) -> Bool { first?.group == group || others.contains { $0.group == group } }

        func add(_ registration: Registration) {
            if first == nil { first = registration } else { others.append(registration) }
        }
    }

    /// The numbers of entries with the same hash, in ascending order of registration. Most are single, and need no array.
    private enum Numbers {
        case one(Int)
        case many([Int])
    }

    /// The messages that can get copies, and those after them.
    private var open: [Entry] = []
    /// The number of entries at the beginning of ``open`` that have come out.
    private var taken = 0
    /// The number of messages removed from ``open``.
    private var removed = 0
    /// The numbers of the open messages by the hashes of their groups, so that each is hashed once.
    private var numbers: [Int: Numbers] = [:]
    /// The time of the last row.
    private var now = Int64.min
    private var isEnded = false

    package init() {}

    /// Adds the next row.
    package mutating func add(_ found: FoundRow) {
        now = found.row.time.nanoseconds
        guard let key = Group(copiesOf: found.row) else { return open.append(Entry(FoundMessage(found))) }
        let hash = key.hashValue
        let room = found.row.isOfRoom ? Group(found.row).map { Entry.Registration(hash: $0.hashValue, group: $0) } : nil
        let known =
            number(key, hash) { $0.accepts(found.row) }
            ?? room.flatMap { room in number(room.group, room.hash) { $0.isReflection(found.row) } }
        let place = known ?? removed + open.count
        if known != nil {
            open[place - removed].message.add(found)
        } else {
            open.append(Entry(FoundMessage(found)))
        }
        register(place, Entry.Registration(hash: hash, group: key))
        if known == nil, let room { register(place, room) }
    }

    private mutating func register(_ number: Int, _ registration: Entry.Registration) {
        let entry = open[number - removed]
        guard !entry.has(registration.group) else { return }
        entry.add(registration)
        switch numbers[registration.hash] {
        case nil: numbers[registration.hash] = .one(number)
        case .one(let other): numbers[registration.hash] = .many([other, number])
        case .many(let others): numbers[registration.hash] = .many(others.filter { isOpen($0) } + [number])
        }
    }

    /// Returns the first open message of a group that meets a condition.
    private func number(_ group: Group, _ hash: Int, where condition: (FoundMessage) -> Bool) -> Int? {
        func fits(_ number: Int) -> Bool {
            isOpen(number) && open[number - removed].has(group) && condition(open[number - removed].message)
        }
        return switch numbers[hash] {
        case nil: nil
        case .one(let number): fits(number) ? number : nil
        case .many(let numbers): numbers.first(where: fits)
        }
    }

    /// Whether a message has not come out, and can get copies.
    private func isOpen(_ number: Int) -> Bool {
        number >= removed + taken && !isComplete(open[number - removed].message)
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
        guard isEnded || entry.first == nil || isComplete(entry.message) else { return nil }
        taken += 1
        if let first = entry.first { forget(first.hash) }
        for other in entry.others { forget(other.hash) }
        if taken >= 64, taken * 2 >= open.count {
            open.removeFirst(taken)
            removed += taken
            taken = 0
        }
        return entry.message
    }

    /// Removes the numbers of messages that have come out.
    private mutating func forget(_ hash: Int) {
        switch numbers[hash] {
        case nil: return
        case .one(let number): if number < removed + taken { numbers[hash] = nil }
        case .many(let all):
            let rest = all.filter { $0 >= removed + taken }
            numbers[hash] = rest.isEmpty ? nil : .many(rest)
        }
    }
}
