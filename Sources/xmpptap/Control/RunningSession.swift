internal import TapNetwork
internal import TapRecord

/// A session of a running proxy, as the proxy lists it.
struct RunningSession {
    /// The number of the session within the run.
    let number: UInt64
    /// The fields of the session, as sent by the proxy.
    let json: JSONValue

    /// The full JID; nil before a resource is bound.
    var jid: String? { json["jid"]?.text }

    /// Parses a session of the proxy's list.
    init(_ json: JSONValue) throws(ControlClientError) {
        guard let number = json["session"]?.integer.flatMap({ UInt64(exactly: $0) }) else {
            throw .unexpected("a session without a number")
        }
        self.number = number
        self.json = json
    }

    /// Returns the name of the peer on a side: the JID or the domain, if known.
    func name(of side: Side) -> String {
        let name = side == .client ? jid : json["domain"]?.text
        return name ?? "the \(side.rawValue) of session \(number)"
    }

    /// Returns the request path of the session, with `rest` appended.
    func path(_ rest: String = "") -> String { "/sessions/\(number)\(rest)" }
}

/// A table of sessions, as text for users.
struct SessionTable {
    let sessions: [RunningSession]

    /// Returns the lines, at most `width` columns wide if possible.
    func lines(width: Int?) -> [String] { lines(OutputStyle(width: width)) }

    /// Returns the lines, at most as wide as the terminal if possible.
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

    /// Returns the colour for the phase of a session.
    static func colour(phase: String) -> Colour? { phase == "ready" ? .green : .yellow }

    private func count(_ side: JSONValue?) -> String { side?["stanzas"]?.integer.map { "\($0)" } ?? "-" }

    /// Returns the TLS version of both legs, or both versions if they differ: `1.3`, `1.3/1.2`.
    private func tls(_ json: JSONValue?) -> String {
        let versions = ["client", "server"].map { leg -> String in
            let name = json?[leg]?.text ?? "-"
            return name.hasPrefix("TLSv") ? String(name.dropFirst(4)) : name
        }
        return versions[0] == versions[1] ? versions[0] : versions.joined(separator: "/")
    }
}
