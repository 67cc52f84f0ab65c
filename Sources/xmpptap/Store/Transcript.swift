internal import TapRecord
internal import TapStore

/// Found messages as lines for people: a heading for each conversation, and a line for each message.
///
/// Up to ``limit`` messages are grouped by conversation. After that, messages are printed as they come, with a heading
/// whenever the conversation changes, so that memory does not depend on their number.
struct Transcript {
    static let limit = 10_000

    private let paint: Paint
    private let hasContext: Bool
    private let limit: Int
    /// The messages that wait for the end of the search; nil once there were too many.
    private var waiting: [ShownMessage]? = []
    /// The conversation of the last line.
    private var last: Conversation?

    /// - Parameter hasContext: Whether messages are shown that do not match: matches are marked.
    init(paint: Paint, hasContext: Bool, limit: Int = Self.limit) {
        self.paint = paint
        self.hasContext = hasContext
        self.limit = limit
    }

    /// Adds a message; returns the lines that can be printed.
    mutating func add(_ shown: ShownMessage) -> [String] {
        guard let waiting else { return lines(shown) }
        guard waiting.count >= limit else {
            self.waiting?.append(shown)
            return []
        }
        self.waiting = nil
        return (waiting + [shown]).flatMap { lines($0) }
    }

    /// Returns the remaining lines, the conversation that began first before the others.
    mutating func end() -> [String] {
        guard let waiting else { return [] }
        var conversations: [[ShownMessage]] = []
        var places: [Conversation: Int] = [:]
        for shown in waiting {
            let conversation = shown.message.row.conversation
            if let place = places[conversation] {
                conversations[place].append(shown)
            } else {
                places[conversation] = conversations.count
                conversations.append([shown])
            }
        }
        return conversations.joined().flatMap { lines($0) }
    }

    private mutating func lines(_ shown: ShownMessage) -> [String] {
        let conversation = shown.message.row.conversation
        let line = line(shown)
        if conversation == last { return hasContext && shown.beginsRange ? ["--", line] : [line] }
        let heading = Console.escaped(conversation.title)
        defer { last = conversation }
        return last == nil ? [heading, line] : ["", heading, line]
    }

    private func line(_ shown: ShownMessage) -> String {
        let message = shown.message
        let isMarked = hasContext && shown.isMatch
        let sender = message.senderName
        let text = message.row.body ?? message.description
        let notes = message.notes
        let note = notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))"
        let line = "\(message.row.time.stamp(in: .utc))  \(Console.escaped("\(sender): \(text)\(note)"))"
        guard paint.isOn else { return "\(isMarked ? "*" : " ") \(line)" }
        return "  \(paint(line, isMarked ? .yellow : nil))"
    }
}
