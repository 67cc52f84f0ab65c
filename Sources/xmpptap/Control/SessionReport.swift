internal import TapNetwork
internal import TapRecord

/// One session of a running proxy, for people.
struct SessionReport {
    /// What a session has beside its own fields: name, which is also its path, and the fields that are shown.
    static let parts: [(name: String, fields: [String])] = [
        ("timeline", ["step", "outcome", "duration_ns", "condition", "reason"]),
        ("roster", ["jid", "state"]),
        ("requests", ["direction", "id", "to", "summary", "age_ns"]),
    ]

    let session: RunningSession

    /// The lines; tables are at most `width` columns wide where that can be, nil cuts nothing.
    func lines(width: Int?) -> [String] {
        let json = session.json
        var lines = ["session   \(session.number) \(json["jid"]?.text ?? "(not bound)"), \(json["phase"]?.text ?? "")"]
        for leg in ["client", "server"] {
            let tls = json["tls"]?[leg]?.text.map { ", \($0)" } ?? ", no TLS"
            lines.append("\(leg.padded(to: 9)) \(json[leg]?.text ?? "-")\(tls)")
        }
        if let domain = json["domain"]?.text { lines.append("domain    \(domain)") }
        let age = json["age_ns"]?.integer.map { " (\(LineBuffer.duration($0)) ago)" } ?? ""
        lines.append("began     \(json["began"]?.text ?? "-")\(age)")
        for way in ["sent", "received"] {
            let stanzas = json[way]?["stanzas"]?.integer ?? 0
            let bytes = UInt64(clamping: json[way]?["bytes"]?.integer ?? 0)
            lines.append(
                "\(way.padded(to: 9)) \(Plural.of(Int(stanzas), "stanza")), \(LineBuffer.text { $0.append(size: bytes) })"
            )
        }
        lines.append("injected  \(json["injected"]?.integer ?? 0)")
        if let held = json["held"]?.integer, held > 0 { lines.append("held      \(held)") }
        if json["rewrites"]?.bool == true { lines.append("counts    of stream management are translated") }
        if let level = json["level"]?.text { lines.append("level     \(level)") }
        for part in Self.parts {
            let items = json[part.name]?.values ?? []
            guard !items.isEmpty else { continue }
            lines.append("\(part.name):")
            lines += Self.table(items, part.fields).lines(width: width.map { $0 - 2 }).map { "  \($0)" }
        }
        return lines
    }

    /// The fields of a list's items that any of them has.
    private static func table(_ items: [JSONValue], _ fields: [String]) -> TextTable {
        let fields = fields.filter { field in items.contains { $0[field] != nil } }
        let rows = items.map { item in
            fields.map { field -> String in
                switch item[field] {
                case .text(let text): text
                case let value?: value.integer.map(LineBuffer.duration) ?? value.json
                case nil: ""
                }
            }
        }
        return TextTable(
            header: fields.map { ($0.hasSuffix("_ns") ? String($0.dropLast(3)) : $0).uppercased() },
            rows: rows,
            // Words and addresses, which can be long.
            flexible: fields.indices.filter { ["jid", "to", "id", "summary", "reason"].contains(fields[$0]) }
        )
    }
}

/// A stanza that a rule holds, for people.
struct HeldStanza {
    let json: JSONValue

    var line: String {
        let number = json["number"]?.integer ?? 0
        let direction = json["direction"]?.text?.uppercased() ?? ""
        let rule = json["rule"]?.text.map { " \($0)" } ?? ""
        let time = json["remaining_ns"]?.integer.map { ", passes in \(LineBuffer.duration($0))" } ?? ""
        return "\(number) \(direction)\(rule)\(time): \(json["stanza"]?.text ?? json["base64"]?.text ?? "")"
    }
}
