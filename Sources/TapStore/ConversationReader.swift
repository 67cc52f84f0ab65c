internal import TapRecord

/// Reads the messages of a conversation from a store, from some messages before a place on.
///
/// The copies of messages are joined as if the whole conversation was read: reading begins before all copies of the messages
/// that come out.
struct ConversationReader {
    private let conversation: Conversation
    private let query: SearchQuery
    private let place: RowOrder
    private let hasDigests: Bool
    private var rows: any RowSource
    private var folder = MessageFolder()
    private var ahead: FoundMessage?
    private var isAtEnd = false
    /// The messages before the place, the earliest first.
    private(set) var before: [FoundMessage] = []

    /// - Parameters:
    ///   - query: The query that all messages match.
    ///   - place: The next message is the first that does not begin before it.
    ///   - count: The number of messages before it.
    init(
        _ store: any AuditStore,
        _ conversation: Conversation,
        _ query: SearchQuery,
        at place: RowOrder,
        count: Int,
        hasDigests: Bool
    ) throws(StoreFault) {
        (self.conversation, self.query, self.place, self.hasDigests) = (conversation, query, place, hasDigests)
        let time = place.time.nanoseconds
        rows = try store.rows(of: conversation, query, from: place.time, isBackwards: false)
        var earlier: [AuditRow] = []
        var backwards = try store.rows(of: conversation, query, from: place.time, isBackwards: true)
        var wanted = 1
        while let next = try backwards.next() {
            earlier.insert(contentsOf: next.filter { isIncluded($0) && $0.order < place }, at: 0)
            guard earlier.count >= wanted, let oldest = next.first else { continue }
            if Self.suffice(earlier, since: oldest.time.nanoseconds, before: time, count) { break }
            wanted = earlier.count * 2
        }
        for row in earlier { folder.add(FoundRow(row, hasDigest: hasDigests)) }
        while let message = try read() {
            guard message.order < place else {
                ahead = message
                break
            }
            before.append(message)
            if before.count > count { before.removeFirst() }
        }
    }

    private func isIncluded(_ row: AuditRow) -> Bool { row.conversation == conversation && query.matches(row) }

    /// Returns whether rows contain all copies of the last messages, and of those that can still get copies.
    ///
    /// - Parameters:
    ///   - oldest: The time from which on all rows are there.
    ///   - time: The time of the next row.
    ///   - count: The number of messages.
    private static func suffice(_ rows: [AuditRow], since oldest: Int64, before time: Int64, _ count: Int) -> Bool {
        var folder = MessageFolder()
        for row in rows { folder.add(FoundRow(row)) }
        folder.end()
        var begins: [Int64] = []
        while let message = folder.next() { begins.append(message.order.time.nanoseconds) }
        guard begins.count >= count else { return false }
        var start = time &- MessageFolder.copyTime
        if count > 0 { start = min(start, begins[begins.count - count]) }
        guard oldest < start else { return false }
        // Rows of a group are joined in a way that depends on those of the last minutes before them.
        var first: [MessageFolder.Group: Int64] = [:]
        for row in rows.reversed() {
            guard let group = MessageFolder.Group(row) else { continue }
            let begin = first[group].map { $0 &- MessageFolder.copyTime } ?? start
            if row.time.nanoseconds >= begin { first[group] = row.time.nanoseconds }
        }
        return first.values.allSatisfy { $0 &- MessageFolder.copyTime > oldest }
    }

    /// Returns the next message; nil at the end of the conversation.
    mutating func next() throws(StoreFault) -> FoundMessage? {
        guard let ahead else { return try read() }
        self.ahead = nil
        return ahead
    }

    private mutating func read() throws(StoreFault) -> FoundMessage? {
        while true {
            if let message = folder.next() { return message }
            guard !isAtEnd else { return nil }
            guard let next = try rows.next() else {
                isAtEnd = true
                folder.end()
                continue
            }
            for row in next where isIncluded(row) && row.order >= place {
                folder.add(FoundRow(row, hasDigest: hasDigests))
            }
        }
    }
}
