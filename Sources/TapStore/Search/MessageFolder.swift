internal import TapRecord

/// The part of a row that decides of which message it is a copy.
struct MessageCopy {
    /// The key that all copies of a message share; see ``MessageKey``.
    struct Key: Hashable {
        private let first: UInt64
        private let second: UInt64

        fileprivate init?(_ bytes: [UInt8]?) {
            guard let bytes, bytes.count == 16 else { return nil }
            func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
            (first, second) = (number(bytes[..<8]), number(bytes[8...]))
        }
    }

    /// Nil if the row is a message without copies.
    let key: Key?
    /// The time of the message, in nanoseconds.
    let time: Int64
    /// A hash of the room and the body; nil if the message is not one of a room.
    let room: Int?
    /// A hash of the run and the session in it.
    let session: Int
    let direction: Direction
    let source: AuditRow.Source
    /// Whether the sender has given the message an id.
    let hasID: Bool

    init(_ row: AuditRow) {
        key = Key(row.copyKey)
        time = row.time.nanoseconds
        room = row.isOfRoom ? Self.hash(row.peer, row.body) : nil
        session = Self.hash(row.run, row.session)
        (direction, source) = (row.direction, row.source)
        hasID = row.originID != nil || row.id != nil
    }

    private static func hash(_ one: some Hashable, _ other: some Hashable) -> Int {
        var hasher = Hasher()
        hasher.combine(one)
        hasher.combine(other)
        return hasher.finalize()
    }

    /// Returns whether this copy came to its session in the same way as another one.
    fileprivate func isBeside(_ other: MessageCopy) -> Bool {
        session == other.session && direction == other.direction && source == other.source
    }
}

/// Numbers messages so that all copies of a message have the same number. Copies must be added in the order of their times.
///
/// Memory is used for the messages of the last five minutes only.
struct MessageFolder {
    /// Copies of a message lie within this time of each other, in nanoseconds: five minutes. After that, a client may use an
    /// id again.
    private static let copyTime: Int64 = 300_000_000_000

    private struct Message {
        /// The copy that is shown: the earliest; of a room, one with the sender's nickname.
        var shown: MessageCopy
        var copies: [MessageCopy]

        /// Returns whether another row can be a copy of this message. A session has each message without an id once in the
        /// same way: the same text again is another message.
        func accepts(_ other: MessageCopy) -> Bool { other.hasID || !copies.contains { $0.isBeside(other) } }

        /// Returns whether this message was sent to a room without an id and the other row is the room's copy, or the
        /// reverse: some rooms add an id.
        func isReflection(_ other: MessageCopy) -> Bool {
            if other.direction == .send, !other.hasID { return !copies.contains { $0.direction == .send } }
            return other.direction == .recv && shown.direction == .send && !shown.hasID
                && copies.allSatisfy { $0.direction == .send }
        }
    }

    /// The messages that can get more copies, by number.
    private var open: [Int: Message] = [:]
    /// The number of the next message.
    private var next = 0
    /// Messages with lower numbers get no more copies.
    private(set) var firstOpen = 0
    /// The numbers of the open messages with a key, and of those of rooms by room and body.
    private var byKey: [MessageCopy.Key: [Int]] = [:]
    private var byRoom: [Int: [Int]] = [:]

    /// Adds a copy; returns the number of its message, from 0, and whether this copy is the one to show.
    mutating func add(_ copy: MessageCopy) -> (number: Int, isShown: Bool) {
        let (start, isTooEarly) = copy.time.subtractingReportingOverflow(Self.copyTime)
        let earliest = isTooEarly ? .min : start
        close(before: earliest)
        guard let number = find(copy, earliest), var message = open[number] else { return (begin(copy), true) }
        // Only the room's own copies name the sender by the nickname.
        let isShown = copy.room != nil && message.shown.direction == .send && copy.direction == .recv
        if isShown { message.shown = copy }
        // A copy that came in the same way as another one makes no difference.
        if !message.copies.contains(where: { $0.isBeside(copy) && $0.key == copy.key }) { message.copies.append(copy) }
        open[number] = message
        if let key = copy.key, byKey[key]?.contains(number) != true { byKey[key, default: []].append(number) }
        return (number, isShown)
    }

    private func find(_ copy: MessageCopy, _ earliest: Int64) -> Int? {
        guard let key = copy.key else { return nil }
        func first(_ numbers: [Int]?, _ isMessage: (Message) -> Bool) -> Int? {
            numbers?.first { number in open[number].map { $0.shown.time >= earliest && isMessage($0) } ?? false }
        }
        return first(byKey[key]) { $0.accepts(copy) }
            ?? copy.room.flatMap { room in first(byRoom[room]) { $0.isReflection(copy) } }
    }

    private mutating func begin(_ copy: MessageCopy) -> Int {
        defer { next += 1 }
        open[next] = Message(shown: copy, copies: [copy])
        if let key = copy.key {
            byKey[key, default: []].append(next)
            if let room = copy.room { byRoom[room, default: []].append(next) }
        }
        return next
    }

    /// Forgets messages that were shown before a time.
    private mutating func close(before earliest: Int64) {
        while firstOpen < next, let message = open[firstOpen], message.shown.time < earliest {
            open[firstOpen] = nil
            for copy in message.copies {
                if let key = copy.key { Self.remove(firstOpen, from: &byKey, key) }
                if let room = copy.room { Self.remove(firstOpen, from: &byRoom, room) }
            }
            firstOpen += 1
        }
    }

    private static func remove<Key: Hashable>(_ number: Int, from numbers: inout [Key: [Int]], _ key: Key) {
        guard let index = numbers[key]?.firstIndex(of: number) else { return }
        numbers[key]?.remove(at: index)
        if numbers[key]?.isEmpty == true { numbers[key] = nil }
    }
}
