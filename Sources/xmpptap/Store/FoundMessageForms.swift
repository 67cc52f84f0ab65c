internal import TapRecord
internal import TapStore

/// Found messages as lines for people, by conversation: a heading with the addresses, and a line for each message.
struct Transcript {
    private var conversations: [(heading: String, lines: [String])] = []
    private var places: [String: Int] = [:]

    /// Adds the next message, in the order of the times.
    mutating func add(_ message: FoundMessage) {
        let row = message.row
        let ends = row.isOfRoom ? row.receiver : Set([row.sender, row.receiver]).sorted().joined(separator: " and ")
        let sender = row.isOfRoom && row.direction == .recv ? row.peerResource ?? row.sender : row.sender
        var notes: [String] = []
        if message.copies.count > 1 { notes.append("\(message.copies.count) copies") }
        if let action = row.action { notes.append([action, row.rule].compactMap(\.self).joined(separator: " by ")) }
        let note = notes.isEmpty ? "" : " (\(notes.joined(separator: ", ")))"
        let line = "  \(row.time.short)  \(Console.escaped("\(sender): \(row.body ?? "")\(note)"))"
        if let place = places[ends] { return conversations[place].lines.append(line) }
        places[ends] = conversations.count
        conversations.append((Console.escaped(ends), [line]))
    }

    /// The lines, the conversation with the earliest message first.
    var lines: [String] {
        Array(conversations.map { [$0.heading] + $0.lines }.joined(separator: [""]))
    }
}

extension Timestamp {
    /// RFC 3339 in UTC, with nine digits after the second.
    var exact: String { text { $0.append($1, to: &$2) } }

    /// RFC 3339 in UTC, with three digits after the second.
    var short: String { text { $0.appendStamp($1, to: &$2) } }

    private func text(_ write: (inout TimestampWriter, Timestamp, inout LineBuffer) -> Void) -> String {
        var writer = TimestampWriter()
        return LineBuffer.text { write(&writer, self, &$0) }
    }
}

extension FoundMessage {
    /// The message as a JSON object.
    var json: String {
        LineBuffer.object { line in
            line.field("time", row.time.exact)
            line.field("from", row.sender)
            line.field("to", row.receiver)
            line.field("kind", row.kind.name)
            if let type = row.type { line.field("type", type) }
            if let id = row.originID ?? row.id { line.field("id", id) }
            if let thread = row.thread { line.field("thread", thread) }
            if let subject = row.subject { line.field("subject", subject) }
            line.field("body", row.body ?? "")
            if let action = row.action { line.field("action", action) }
            if let rule = row.rule { line.field("rule", rule) }
            line.field("copies")
            line.openArray()
            for copy in copies {
                line.openObject()
                line.field("account", copy.account)
                line.field("run", copy.run)
                line.field("session", copy.session)
                line.field("sequence", copy.sequence)
                line.closeObject()
            }
            line.closeArray()
        }
    }

    /// The names of the values of ``csv``.
    static let csvNames = "time,from,to,type,id,body,copies"

    /// The message as a line of comma-separated values.
    var csv: String {
        let values = [
            row.time.exact, row.sender, row.receiver, row.type ?? "", row.originID ?? row.id ?? "", row.body ?? "",
            "\(copies.count)",
        ]
        return values.map(Self.quoted).joined(separator: ",")
    }

    /// Quotes a value (RFC 4180 §2). A value that a spreadsheet would take for a formula gets an apostrophe before it.
    static func quoted(_ value: String) -> String {
        let isFormula = value.first.map { "=+-@\t\r".contains($0) } ?? false
        let text = isFormula ? "'\(value)" : value
        guard text.contains(where: { "\",\r\n".contains($0) || $0 == "\r\n" }) || isFormula else { return text }
        return "\"\(text.replacing("\"", with: "\"\""))\""
    }
}
