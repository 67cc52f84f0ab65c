/// The rows of recordings that match a search, in any order.
///
/// Archives send messages of any age, so that the first message is known only after the last record was read: all rows are
/// kept and sorted.
package struct FoundMessages {
    private let query: SearchQuery
    private let context: Int?
    private let hasDigests: Bool
    private var rows: [FoundRow] = []

    /// - Parameters:
    ///   - context: The number of messages to show before and after each that matches; nil shows only these.
    ///   - hasDigests: Whether the digests of stanzas are computed.
    package init(_ query: SearchQuery, context: Int? = nil, hasDigests: Bool = false) {
        self.query = context == nil ? query : query.withoutWords
        self.context = context
        self.hasDigests = hasDigests
    }

    /// Adds a row if it may be shown.
    package mutating func add(_ row: AuditRow) {
        if query.matches(row) { rows.append(FoundRow(row, hasDigest: hasDigests)) }
    }

    /// Calls `body` with each message to show, until it returns false.
    ///
    /// - Parameter query: The query with its words.
    package func show(_ query: SearchQuery, _ body: (ShownMessage) -> Bool) {
        var folder = MessageFolder()
        for row in rows.sorted(by: { $0.row.order < $1.row.order }) { folder.add(row) }
        folder.end()
        guard let context else {
            while let message = folder.next() {
                guard body(ShownMessage(message)) else { return }
            }
            return
        }
        var conversations: [Conversation: [FoundMessage]] = [:]
        var matches: [(conversation: Conversation, place: Int)] = []
        while let message = folder.next() {
            let conversation = message.row.conversation
            if query.matches(message.row) { matches.append((conversation, conversations[conversation]?.count ?? 0)) }
            conversations[conversation, default: []].append(message)
        }
        var ranges = ContextRanges(query, context)
        for (conversation, place) in matches {
            guard let messages = conversations[conversation], !ranges.covers(messages[place]) else { continue }
            var rest = messages[place...]
            let before = messages[max(0, place - context)..<place]
            guard ranges.show(messages[place], before: Array(before), next: { rest.popFirst() }, body) else { return }
        }
    }
}
