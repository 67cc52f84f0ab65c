internal import TapRecord
internal import XMPPCore

/// The conversations of a table: messages between two accounts, or in a room, over all sessions.
struct Conversations {
    /// Maximum number of messages whose copies in other sessions are recognised.
    private static let maximumSeen = 400_000
    /// Maximum number of bytes of the last text in the list.
    private static let maximumText = 120
    /// In place of a position, for a message from the session of its sender.
    private static let sent = -1

    /// Namespaces of messages without a text that belong to a conversation: receipts, markers, reactions and
    /// retractions.
    private static let marks: Set<String> = [
        "urn:xmpp:receipts", "urn:xmpp:chat-markers:0", "urn:xmpp:reactions:0", "urn:xmpp:message-retract:1",
        "urn:xmpp:message-retract:0",
    ]
    /// Namespaces of messages that contain other messages.
    private static let wrappers = ["urn:xmpp:carbons:2", "urn:xmpp:mam:2", "urn:xmpp:mam:1"]

    fileprivate struct Key: Hashable {
        let first: String
        /// Empty for a room.
        let second: String
    }

    fileprivate struct Talk {
        let key: Key
        var messages: UInt64 = 0
        /// The positions of its records that the table still has.
        var positions: [Int] = []
        /// Number of its records that the table no longer has.
        var removed = 0
        var last = 0
        var time: Int64 = 0
        var text = ""
    }

    /// Maximum number of conversations.
    private let maximumCount: Int
    /// The numbers of the conversations, which do not change when others are removed.
    private var numbers: [Key: Int] = [:]
    private var talks: [Int: Talk] = [:]
    /// The number of the next conversation.
    private(set) var next = 0
    /// The positions of messages by their hashes; ``sent`` for those of the sender's session.
    private var seen = RecentValues<Int, Int>(limit: maximumSeen)
    /// The position up to which records were forgotten.
    private var forgotten = 0
    private var body: [UInt8] = []

    /// Number of conversations that are no longer in the list; those that were continued later are counted, too.
    var omitted: Int { next - talks.count }

    /// - Parameter maximumCount: Maximum number of conversations; the latest ones are kept.
    init(maximumCount: Int = 5000) { self.maximumCount = max(1, maximumCount) }

    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        guard record.kind == .stanza, let direction = record.direction, let name = record.name,
            content.slice(name).equals("message")
        else { return }
        let payload = record.payloadText(content)
        guard !Self.wrappers.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        let hasBody = record.readBody(content, into: &body)
        guard hasBody || Self.marks.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        func word(_ text: String) -> String { text.cut(to: RecordSurvey.maximumText) }
        let account = word(record.jid.map { String($0.prefix { $0 != "/" }) } ?? "")
        // A client can write any address, which its server replaces or refuses. Components and servers, which have no
        // resource, send for several addresses.
        let isBound = direction == .send && record.jid?.utf8.contains(UInt8(ascii: "/")) ?? false
        let named = isBound ? nil : record.from
        let from = named.map { word(content.slice($0).bareText) } ?? (direction == .send ? account : "")
        let to = record.to.map { word(content.slice($0).bareText) } ?? account
        let isRoom = record.type.map { content.slice($0).equals("groupchat") } ?? false
        let key =
            isRoom
            ? Key(first: direction == .send ? to : from, second: "")
            : Key(first: min(from, to), second: max(from, to))
        let number = number(of: key)
        // The sessions of both accounts, and of several clients of one account, contain the same message.
        if let id = record.id, !id.isEmpty {
            var hasher = Hasher()
            hasher.combine(number)
            hasher.combine(content.slice(id).string())
            hasher.combine(payload)
            hasher.combine(body)
            // Two people can use the same id. In a room, an own message has the address of the account.
            if !isRoom { hasher.combine(from) }
            let hash = hasher.finalize()
            let copy = seen[hash]
            let isSent = direction == .send
            if let copy {
                // The receiver's session may be recorded first, but a message belongs to its sender.
                guard isSent, copy != Self.sent else { return }
                seen.store(Self.sent, for: hash, at: position)
                talks[number]?.replace(copy, by: position)
                return
            }
            seen.store(isSent ? Self.sent : position, for: hash, at: position)
        }
        var text: String?
        if hasBody { text = body.span.cut(to: Self.maximumText).string() }
        talks[number]?.add(at: position, time: record.time.nanoseconds, text)
    }

    /// Returns the number of a conversation, which is created if there is none.
    private mutating func number(of key: Key) -> Int {
        if let number = numbers[key] { return number }
        if talks.count >= maximumCount {
            let oldest = talks.sorted { $0.value.last < $1.value.last }.prefix(max(1, maximumCount / 8))
            for (number, _) in oldest { remove(number) }
        }
        let number = next
        next += 1
        numbers[key] = number
        talks[number] = Talk(key: key)
        return number
    }

    private mutating func remove(_ number: Int) {
        guard let talk = talks.removeValue(forKey: number) else { return }
        numbers[talk.key] = nil
    }

    /// Forgets the records before a position, and the conversations that have no others.
    ///
    /// - Parameters:
    ///   - position: The position of the first record that is left.
    ///   - end: The position of the next record.
    mutating func forget(before position: Int, end: Int) {
        seen.forget(before: position, end: end)
        // All conversations are looked at, so this is done in large steps.
        guard position - forgotten >= max(1024, talks.count) else { return }
        forgotten = position
        for number in Array(talks.keys) {
            talks[number]?.forget(before: position)
            if talks[number]?.positions.isEmpty ?? false { remove(number) }
        }
    }

    /// Writes the conversations as an array, the latest first.
    ///
    /// - Parameter matches: Positions of records that were searched for, ascending; the number of those in each conversation is
    ///   written, too.
    func append(to output: inout LineBuffer, matches: [Int]? = nil) {
        output.openArray()
        for (number, talk) in talks.sorted(by: { ($0.value.time, $0.key) > ($1.value.time, $1.key) }) {
            output.openObject()
            output.field("conversation", number)
            output.field("first", talk.key.first)
            output.field("second", talk.key.second)
            output.field("messages", talk.messages)
            output.field("items", talk.removed + talk.positions.count)
            output.field("time", Int(talk.time / 1000))
            output.field("text", talk.text)
            if let matches { output.field("found", matches.common(with: talk.positions).count) }
            output.closeObject()
        }
        output.closeArray()
    }

    /// Returns the positions of the messages of a conversation that the table still has, and the number of those that
    /// it no longer has; empty if the conversation is unknown.
    func positions(of conversation: Int) -> (removed: Int, positions: [Int]) {
        talks[conversation].map { ($0.removed, $0.positions) } ?? (0, [])
    }
}

extension Conversations.Talk {
    fileprivate mutating func add(at position: Int, time: Int64, _ text: String?) {
        positions.append(position)
        last = position
        self.time = time
        guard let text else { return }
        messages += 1
        self.text = text
    }

    /// Replaces the record of a message by a later one of the same message.
    fileprivate mutating func replace(_ old: Int, by new: Int) {
        guard let index = positions.lastIndex(of: old) else { return }
        positions.remove(at: index)
        positions.append(new)
        last = new
    }

    fileprivate mutating func forget(before position: Int) {
        let count = positions.firstIndex { $0 >= position } ?? positions.count
        positions.removeFirst(count)
        removed += count
    }
}

extension [Int] {
    /// The numbers that are also in another array; both are ascending.
    func common(with other: [Int]) -> [Int] {
        let (few, many) = count < other.count ? (self, other) : (other, self)
        var from = 0
        return few.filter { number in
            var (low, high) = (from, many.count)
            while low < high {
                let middle = (low + high) / 2
                if many[middle] < number { low = middle + 1 } else { high = middle }
            }
            from = low
            return low < many.count && many[low] == number
        }
    }
}
