package import TapRecord

/// A search in a store. It shows messages as the rows come; with context, after all of them if they are few.
package struct StoreSearch {
    private let store: any AuditStore
    private let query: SearchQuery
    private let context: Int?
    private let hasDigests: Bool
    private var folder = MessageFolder()
    private var ranges: ContextRanges

    /// - Parameters:
    ///   - context: The number of messages to show before and after each that matches; nil shows only these.
    ///   - hasDigests: Whether the digests of stanzas are computed.
    package init(_ store: any AuditStore, _ query: SearchQuery, context: Int? = nil, hasDigests: Bool = false) {
        self.store = store
        self.query = query
        self.context = context
        self.hasDigests = hasDigests
        ranges = ContextRanges(query, context ?? 0)
    }

    /// Calls `body` with each message to show, until it returns false.
    ///
    /// - Parameter onProgress: Is called with the time of each row.
    package mutating func show(
        onProgress: (Timestamp) -> Void = { _ in },
        _ body: (ShownMessage) -> Bool
    ) throws(StoreFault) {
        if let context, try store.isDense(query) {
            var found = FoundMessages(query, context: context, hasDigests: hasDigests)
            try store.rows(for: query.withoutWords) { row in
                onProgress(row.time)
                found.add(row)
                return true
            }
            return found.show(query, body)
        }
        var continues = true
        try store.rows(for: query) { (row) throws(StoreFault) in
            onProgress(row.time)
            // With context, the messages are read again from their conversations.
            folder.add(FoundRow(row, hasDigest: hasDigests && context == nil))
            continues = try showComplete(body)
            return continues
        }
        guard continues else { return }
        folder.end()
        _ = try showComplete(body)
    }

    private mutating func showComplete(_ body: (ShownMessage) -> Bool) throws(StoreFault) -> Bool {
        while let message = folder.next() {
            guard let context else {
                guard body(ShownMessage(message)) else { return false }
                continue
            }
            guard !ranges.covers(message) else { continue }
            guard try showRange(message, context, body) else { return false }
        }
        return true
    }

    private mutating func showRange(
        _ match: FoundMessage,
        _ context: Int,
        _ body: (ShownMessage) -> Bool
    ) throws(StoreFault) -> Bool {
        var reader = try ConversationReader(
            store,
            match.row.conversation,
            query.withoutWords,
            at: match.order,
            count: context,
            hasDigests: hasDigests
        )
        return try ranges.show(
            match,
            before: reader.before,
            next: { () throws(StoreFault) in try reader.next() },
            { (message) throws(StoreFault) in body(message) }
        )
    }
}
