internal import TapNetwork
internal import TapRecord

/// A report on one session of a running proxy, as text for users.
struct SessionReport {
    /// The lists that the report contains: the name of each, which is also its request path, and the fields that are
    /// shown.
    static let parts: [(name: String, fields: [String])] = [
        ("timeline", ["step", "outcome", "duration_ns", "condition", "reason"]),
        ("roster", ["jid", "state"]),
        ("requests", ["direction", "id", "to", "summary", "age_ns"]),
    ]

    let session: RunningSession

    /// Returns the lines; tables are at most `width` columns wide if possible. With nil, nothing is cut.
    func lines(width: Int?) -> [String] { lines(OutputStyle(width: width)) }

    /// Returns the lines, with control characters escaped, at most as wide as the terminal if possible.
    func lines(_ style: OutputStyle) -> [String] {
        let jid = session.json["jid"]?.text ?? "(not bound)"
        let who = "\(session.number) \(jid), \(session.json["phase"]?.text ?? "")"
        var lines: [String] = []
        for (name, text) in [("session", who)] + fields {
            let head = style.paint(name.padded(to: 10), .dim)
            for (number, line) in style.wrapped(Console.escaped(text), indent: 10).enumerated() {
                lines.append(style.drawn((number == 0 ? head : String(repeating: " ", count: 10)) + line))
            }
        }
        let json = session.json
        for part in Self.parts {
            let items = json[part.name]?.values ?? []
            guard !items.isEmpty else { continue }
            lines.append(style.paint("\(part.name):", .dim))
            var inner = style
            inner.width = style.width.map { $0 - 2 }
            lines += Self.table(items, part.fields).lines(inner).map { "  \($0)" }
        }
        return lines
    }

    /// The session's attributes besides its number, by name.
    private var fields: [(name: String, text: String)] {
        let json = session.json
        var fields: [(String, String)] = []
        for leg in ["client", "server"] {
            let tls = json["tls"]?[leg]?.text.map { ", \($0)" } ?? ", no TLS"
            fields.append((leg, "\(json[leg]?.text ?? "-")\(tls)"))
        }
        if let domain = json["domain"]?.text { fields.append(("domain", domain)) }
        let age = json["age_ns"]?.integer.map { " (\(LineBuffer.duration($0)) ago)" } ?? ""
        fields.append(("began", "\(json["began"]?.text ?? "-")\(age)"))
        for way in ["sent", "received"] {
            let stanzas = json[way]?["stanzas"]?.integer ?? 0
            let bytes = UInt64(clamping: json[way]?["bytes"]?.integer ?? 0)
            let size = LineBuffer.text { $0.append(size: bytes) }
            fields.append((way, "\(Plural.of(Int(stanzas), "stanza")), \(size)"))
        }
        fields.append(("injected", "\(json["injected"]?.integer ?? 0)"))
        if let held = json["held"]?.integer, held > 0 { fields.append(("held", "\(held)")) }
        if json["rewrites"]?.bool == true { fields.append(("counts", "of stream management are translated")) }
        if let level = json["level"]?.text { fields.append(("level", level)) }
        return fields
    }

    /// Returns a table of a list's items, with the fields that at least one item has.
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
        var table = TextTable(
            header: fields.map { ($0.hasSuffix("_ns") ? String($0.dropLast(3)) : $0).uppercased() },
            rows: rows,
            // Columns of texts and addresses may be cut.
            flexible: fields.indices.filter { ["jid", "to", "id", "summary", "reason"].contains(fields[$0]) }
        )
        table.colour = { column, text in
            guard fields[column] == "outcome" else { return nil }
            return text == "ok" ? .green : text == "failed" ? .red : .dim
        }
        return table
    }
}

/// A held stanza, as text for users.
struct HeldStanza {
    let json: JSONValue

    var line: String {
        let number = json["number"]?.integer ?? 0
        let direction = json["direction"]?.text?.uppercased() ?? ""
        let rule = (json["rule"] ?? json["filter"])?.text.map { " \($0)" } ?? ""
        let time = json["remaining_ns"]?.integer.map { ", passes in \(LineBuffer.duration($0))" } ?? ""
        return "\(number) \(direction)\(rule)\(time): \(json["stanza"]?.text ?? json["base64"]?.text ?? "")"
    }
}
