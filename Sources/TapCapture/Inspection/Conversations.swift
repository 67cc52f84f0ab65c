internal import TapRecord
internal import XMPPCore

/// The conversations of a table: messages between two accounts, or in a room, over all sessions.
struct Conversations {
    /// Maximum number of conversations.
    private static let maximumCount = 5000
    /// Maximum number of messages whose copies in other sessions are recognised.
    private static let maximumSeen = 200_000
    /// Maximum number of bytes of the last text in the list.
    private static let maximumText = 120

    /// Namespaces of messages without a text that belong to a conversation: receipts, markers, reactions and
    /// retractions.
    private static let marks: Set<String> = [
        "urn:xmpp:receipts", "urn:xmpp:chat-markers:0", "urn:xmpp:reactions:0", "urn:xmpp:message-retract:1",
        "urn:xmpp:message-retract:0",
    ]
    /// Namespaces of messages that contain other messages.
    private static let wrappers = ["urn:xmpp:carbons:2", "urn:xmpp:mam:2", "urn:xmpp:mam:1"]

    private struct Key: Hashable {
        let first: String
        /// Empty for a room.
        let second: String
    }

    private struct Talk {
        let key: Key
        var messages: UInt64 = 0
        var positions: [UInt32] = []
        var time: Int64 = 0
        var text = ""
    }

    /// Number of conversations.
    var count: Int { talks.count }

    private var places: [Key: Int] = [:]
    private var talks: [Talk] = []
    private var seen: Set<Int> = []
    private var body: [UInt8] = []

    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        guard record.kind == .stanza, let direction = record.direction, let name = record.name,
            content.slice(name).equals("message")
        else { return }
        let payload = record.payloadText(content)
        guard !Self.wrappers.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        let hasBody = record.readBody(content, into: &body)
        guard hasBody || Self.marks.contains(where: { payload.hasPrefix("{\($0)}") }) else { return }
        let account = record.jid.map { String($0.prefix { $0 != "/" }) } ?? ""
        let from = record.from.map { content.slice($0).bareText } ?? (direction == .send ? account : "")
        let to = record.to.map { content.slice($0).bareText } ?? account
        let isRoom = record.type.map { content.slice($0).equals("groupchat") } ?? false
        let key =
            isRoom
            ? Key(first: direction == .send ? to : from, second: "")
            : Key(first: min(from, to), second: max(from, to))
        var place = places[key] ?? talks.count
        if place == talks.count {
            guard place < Self.maximumCount else { return }
            places[key] = place
            talks.append(Talk(key: key))
            place = talks.count - 1
        }
        // The sessions of both accounts, and of several clients of one account, contain the same message.
        if let id = record.id, !id.isEmpty, seen.count < Self.maximumSeen {
            var hasher = Hasher()
            hasher.combine(place)
            hasher.combine(content.slice(id).string())
            hasher.combine(payload)
            hasher.combine(body)
            guard seen.insert(hasher.finalize()).inserted else { return }
        }
        talks[place].positions.append(UInt32(clamping: position))
        talks[place].time = record.time.nanoseconds
        guard hasBody else { return }
        talks[place].messages += 1
        var end = min(body.count, Self.maximumText)
        while end > 0, end < body.count, body[end] & 0xC0 == 0x80 { end -= 1 }
        talks[place].text = String(decoding: body[..<end], as: UTF8.self)
    }

    /// Writes the conversations as an array, the latest first.
    func append(to output: inout LineBuffer) {
        output.openArray()
        for (place, talk) in talks.enumerated().sorted(by: { $0.element.time > $1.element.time }) {
            output.openObject()
            output.field("conversation", place)
            output.field("first", talk.key.first)
            output.field("second", talk.key.second)
            output.field("messages", talk.messages)
            output.field("items", talk.positions.count)
            output.field("time", Int(talk.time / 1000))
            output.field("text", talk.text)
            output.closeObject()
        }
        output.closeArray()
    }

    /// Returns the positions of the messages of a conversation; empty if there is none with this number.
    func positions(of conversation: Int) -> [UInt32] {
        talks.indices.contains(conversation) ? talks[conversation].positions : []
    }
}
