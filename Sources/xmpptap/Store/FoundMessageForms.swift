internal import TapRecord
internal import TapStore

extension FoundMessage {
    /// The name by which people know the sender: in a room, the nickname.
    var senderName: String {
        row.isOfRoom && row.direction == .recv ? row.peerResource ?? row.sender : row.sender
    }

    /// A stanza without a body in words: its kind, type, payload and condition.
    var description: String {
        [row.kind.name, row.type, payload, row.condition].compactMap(\.self).joined(separator: " ")
    }

    /// The payload of a stanza without a body; nil for others, of which it is the body, mostly.
    var payload: String? { row.body == nil ? row.payload : nil }

    /// The number of copies, the action of a rule, and the round trip of an answer.
    var notes: [String] {
        var notes: [String] = []
        if copies.count > 1 { notes.append("\(copies.count) copies") }
        if let action = row.action { notes.append([action, row.rule].compactMap(\.self).joined(separator: " by ")) }
        if let roundTrip = row.roundTrip { notes.append("after \(LineBuffer.duration(roundTrip))") }
        return notes
    }
}

extension ShownMessage {
    /// The message as a JSON object.
    ///
    /// - Parameter hasContext: Whether there are messages that do not match.
    func json(hasContext: Bool) -> String {
        let row = message.row
        return LineBuffer.object { line in
            line.field("time", row.time.text)
            line.field("from", row.sender)
            line.field("to", row.receiver)
            line.field("kind", row.kind.name)
            if let type = row.type { line.field("type", type) }
            if let id = row.originID ?? row.id { line.field("id", id) }
            if let thread = row.thread { line.field("thread", thread) }
            if let subject = row.subject { line.field("subject", subject) }
            if let body = row.body { line.field("body", body) }
            if let payload = message.payload { line.field("payload", payload) }
            if let condition = row.condition { line.field("condition", condition) }
            if let roundTrip = row.roundTrip { line.field("round_trip", seconds: roundTrip) }
            if let action = row.action { line.field("action", action) }
            if let rule = row.rule { line.field("rule", rule) }
            if hasContext { line.field("match", isMatch) }
            line.field("copies")
            line.openArray()
            for copy in message.copies {
                line.openObject()
                line.field("account", copy.account)
                if let tap = copy.tap { line.field("tap", tap) }
                line.field("run", copy.run)
                line.field("session", copy.session)
                line.field("sequence", copy.sequence)
                line.closeObject()
            }
            line.closeArray()
        }
    }

    /// The names of the values of ``csv(hasContext:)``.
    static func csvNames(hasContext: Bool) -> String {
        "time,from,to,kind,type,id,body,payload,condition,round_trip,copies\(hasContext ? ",match" : "")"
    }

    /// The message as a line of comma-separated values.
    func csv(hasContext: Bool) -> String {
        let row = message.row
        var values = [
            row.time.text, row.sender, row.receiver, row.kind.name, row.type ?? "", row.originID ?? row.id ?? "",
            row.body ?? "", message.payload ?? "", row.condition ?? "",
            row.roundTrip.map { roundTrip in LineBuffer.text { $0.append(seconds: roundTrip) } } ?? "",
            "\(message.copies.count)",
        ]
        if hasContext { values.append("\(isMatch)") }
        return CSVLine.text(values)
    }
}
