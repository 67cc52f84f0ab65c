internal import TapNetwork
internal import TapRecord

/// A session of a running proxy, as that lists it.
struct RunningSession {
    /// Its number within the run.
    let number: UInt64
    /// Its fields, as the proxy sends them.
    let json: JSONValue

    /// The full JID once it is bound.
    var jid: String? { json["jid"]?.text }

    /// Reads a session of a list.
    init(_ json: JSONValue) throws(ControlClientError) {
        guard let number = json["session"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
            throw .unexpected("a session without a number")
        }
        self.number = number
        self.json = json
    }

    /// Who is at a side of it.
    func name(of side: Side) -> String {
        let name = side == .client ? jid : json["domain"]?.text
        return name ?? "the \(side.rawValue) of session \(number)"
    }

    /// The path of what belongs to it.
    func path(_ rest: String = "") -> String { "/sessions/\(number)\(rest)" }
}

/// Sessions as a table for people.
struct SessionTable {
    let sessions: [RunningSession]

    /// The lines, each at most `width` columns wide, if that can be.
    func lines(width: Int?) -> [String] { lines(OutputStyle(width: width)) }

    /// The lines, each at most as wide as the terminal, if that can be.
    func lines(_ style: OutputStyle) -> [String] {
        let rows = sessions.map { session in
            let json = session.json
            return [
                "\(session.number)", json["jid"]?.text ?? json["domain"]?.text.map { "~@\($0)" } ?? "-",
                json["client"]?.text ?? "-", json["phase"]?.text ?? "-", tls(json["tls"]),
                json["age_ns"]?.integer.map(LineBuffer.duration) ?? "-", count(json["sent"]), count(json["received"]),
            ]
        }
        let header = ["SESSION", "JID", "CLIENT", "PHASE", "TLS", "AGE", "SENT", "RECEIVED"]
        var table = TextTable(header: header, rows: rows, numeric: [0, 6, 7], flexible: [1, 2])
        table.colour = { $0 == 3 ? Self.colour(phase: $1) : nil }
        return table.lines(style)
    }

    /// The colour of a session's phase.
    static func colour(phase: String) -> Colour? { phase == "ready" ? .green : .yellow }

    private func count(_ side: JSONValue?) -> String { side?["stanzas"]?.integer.map { "\($0)" } ?? "-" }

    /// The version of both legs, or of each: `1.3`, `1.3/1.2`.
    private func tls(_ json: JSONValue?) -> String {
        let versions = ["client", "server"].map { leg -> String in
            let name = json?[leg]?.text ?? "-"
            return name.hasPrefix("TLSv") ? String(name.dropFirst(4)) : name
        }
        return versions[0] == versions[1] ? versions[0] : versions.joined(separator: "/")
    }
}
