/// A message as a search shows it.
package struct ShownMessage: Sendable {
    package let message: FoundMessage
    /// Whether it was looked for; otherwise, it is near one that was.
    package var isMatch = true
    /// Whether the message before it in the conversation is not shown.
    package var beginsRange = false

    package init(_ message: FoundMessage, isMatch: Bool = true, beginsRange: Bool = false) {
        self.message = message
        self.isMatch = isMatch
        self.beginsRange = beginsRange
    }
}

/// Shows matches with the messages around them, in ranges: those of matches that overlap or touch are one.
///
/// Matches must come in the order of their times, each with the messages of its conversation from there on.
struct ContextRanges {
    private let query: SearchQuery
    private let count: Int
    /// The last message shown of each conversation.
    private var shown: [Conversation: RowOrder] = [:]

    init(_ query: SearchQuery, _ count: Int) {
        self.query = query
        self.count = count
    }

    /// Returns whether a match was shown in the range of an earlier one.
    func covers(_ message: FoundMessage) -> Bool {
        shown[message.row.conversation].map { message.order <= $0 } ?? false
    }

    /// Shows the range that begins before a match.
    ///
    /// - Parameters:
    ///   - before: The last messages before it.
    ///   - next: Returns the next message of the conversation, beginning with the match; nil at its end.
    ///   - body: Returns false to stop.
    /// - Returns: Whether to continue.
    mutating func show<Fault: Error>(
        _ match: FoundMessage,
        before: [FoundMessage],
        next: () throws(Fault) -> FoundMessage?,
        _ body: (ShownMessage) throws(Fault) -> Bool
    ) throws(Fault) -> Bool {
        let conversation = match.row.conversation
        // Matches come in order of time: ranges that have ended before this one are not needed.
        if shown.count >= 10_000 { shown = shown.filter { $0.value >= match.order } }
        shown[conversation] = match.order
        var isFirst = true
        func show(_ message: FoundMessage, isMatch: Bool) throws(Fault) -> Bool {
            defer { isFirst = false }
            return try body(ShownMessage(message, isMatch: isMatch, beginsRange: isFirst))
        }
        for message in before {
            guard try show(message, isMatch: false) else { return false }
        }
        // Messages after the last match: the first of them are shown, the others only if a match follows soon.
        var between: [FoundMessage] = []
        var trailing = 0
        while trailing <= 2 * count, let message = try next() {
            guard query.matches(message.row) else {
                trailing += 1
                if trailing > count {
                    between.append(message)
                } else if try !show(message, isMatch: false) {
                    return false
                }
                continue
            }
            for message in between {
                guard try show(message, isMatch: false) else { return false }
            }
            guard try show(message, isMatch: true) else { return false }
            (between, trailing) = ([], 0)
            shown[conversation] = message.order
        }
        return true
    }
}
