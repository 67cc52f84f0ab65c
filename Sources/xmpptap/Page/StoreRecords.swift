internal import TapCapture
internal import TapRecord
internal import TapStore

/// The stanzas and sessions of an audit store as records, for the page.
///
/// A store has the columns of a stanza, and its XML only if that was asked for: otherwise, the XML is made again from the columns, and
/// the record says so.
struct StoreRecords {
    let table = RecordTable(spills: true)
    private let place: StorePlace
    private var query = SearchQuery(words: "")
    /// What happened to sessions, in the order of time.
    private var events: [(time: Timestamp, session: AuditSession, kind: EventKind)] = []
    private var next = 0
    private var run = ""
    private var beginning: Timestamp?
    private var sequence: UInt64 = 0

    private enum EventKind {
        case began, failed, ended
    }

    init(_ place: StorePlace) {
        self.place = place
        query.kinds = Set(AuditRow.Kind.allCases)
    }

    /// Reads the store, and adds its records to the table, in the order of time.
    ///
    /// - Parameter goesOn: Returns whether to continue.
    mutating func load(_ inspection: Inspection, while goesOn: () -> Bool) {
        do throws(StoreFault) {
            try read(inspection, while: goesOn)
        } catch {
            inspection.setTrouble("\(error)")
        }
    }

    private mutating func read(_ inspection: Inspection, while goesOn: () -> Bool) throws(StoreFault) {
        let store = try place.open()
        let total = UInt64(clamping: try store.overview().stanzas)
        try store.sessions { session in
            if let began = session.began { events.append((began, session, .began)) }
            if session.cause != nil, let time = session.ended ?? session.began {
                events.append((time, session, .failed))
            }
            if let ended = session.ended { events.append((ended, session, .ended)) }
        }
        // Stable: a login fails before its session ends.
        let order = events.indices.sorted { (events[$0].time, $0) < (events[$1].time, $1) }
        events = order.map { events[$0] }
        var count: UInt64 = 0
        var isWanted = true
        try store.candidates(for: query) { row in
            guard isWanted, query.matches(row) else { return }
            if count.isMultiple(of: 256) {
                inspection.setProgress(count, of: max(total, count))
                if let fault = table.spillFault { inspection.setTrouble(fault) }
                isWanted = goesOn() && table.spillFault == nil
            }
            count += 1
            addEvents(until: row.time)
            add(row)
        }
        addEvents(until: Timestamp(nanoseconds: .max))
        inspection.setProgress(count, of: count)
    }

    private mutating func addEvents(until time: Timestamp) {
        while next < events.count, events[next].time <= time {
            let event = events[next]
            next += 1
            add(event.session, event.kind, at: event.time)
        }
    }

    /// Begins a record, whose object is open.
    private mutating func begin(_ run: String, at time: Timestamp, number: UInt64?, to line: inout LineBuffer) {
        if beginning == nil { beginning = time }
        let monotonic = time.nanoseconds.subtractingReportingOverflow(beginning?.nanoseconds ?? 0)
        sequence += 1
        line.openObject()
        line.field("sequence", number ?? sequence)
        line.field("time", time.text)
        line.field("monotonic", seconds: monotonic.overflow ? 0 : max(0, monotonic.partialValue))
    }

    /// Assigns the next records to a run.
    private mutating func enter(_ run: String, at time: Timestamp) {
        guard run != self.run else { return }
        self.run = run
        table.begin(
            RecordHeader(tool: TapRun.tool, time: time, level: "info", isComplete: false, redaction: .secrets, run: run)
        )
    }

    private mutating func add(_ session: AuditSession, _ kind: EventKind, at time: Timestamp) {
        enter(session.run, at: time)
        var line = LineBuffer()
        begin(session.run, at: time, number: session.source?.sequence, to: &line)
        line.field("level", literal: kind == .failed ? "error" : "info")
        line.field("kind", literal: kind == .failed ? "note" : "session")
        line.field("session", session.number)
        if let account = session.account { line.field(session.cause == nil ? "jid" : "user", account) }
        if let client = session.client { line.field("remote", client) }
        switch kind {
        case .began:
            line.field("code", Record.Code.sessionBegan)
            line.field("message", "session began")
        case .failed:
            line.field("code", Record.Code.loginFailed)
            line.field("message", "login failed: \(session.finding ?? session.cause ?? "")")
            line.field("details")
            line.openObject()
            line.field("cause", session.cause ?? "")
            if let finding = session.finding { line.field("finding", finding) }
            line.closeObject()
        case .ended:
            line.field("code", Record.Code.sessionEnded)
            line.field("message", "session ended")
            if let began = session.began {
                line.field("round_trip", seconds: max(0, time.nanoseconds &- began.nanoseconds))
            }
            line.field("details")
            line.openObject()
            line.field("close_reason", session.closeReason ?? "unknown")
            line.closeObject()
        }
        line.closeObject()
        add(line)
    }

    private mutating func add(_ row: AuditRow) {
        enter(row.run, at: row.time)
        var line = LineBuffer()
        begin(row.run, at: row.time, number: row.sequence, to: &line)
        line.field("level", literal: row.condition == nil ? "info" : "warn")
        line.field("kind", literal: "stanza")
        line.field("session", row.session)
        line.field("jid", Self.address(row.account, row.resource))
        line.field("direction", literal: row.direction == .send ? "send" : "recv")
        line.field("leg", literal: row.direction == .send ? "client" : "server")
        line.field("length", UInt64(clamping: row.size))
        line.field("name", row.kind.name)
        if let id = row.id { line.field("id", id) }
        if let type = row.type { line.field("type", type) }
        let peer = row.peer.map { Self.address($0, row.peerResource) }
        let (from, to) = row.direction == .send ? (nil, peer) : (peer, nil)
        if let from { line.field("from", from) }
        if let to { line.field("to", to) }
        if let payload = row.payload { line.field("payload", payload) }
        if let time = row.roundTrip { line.field("round_trip", seconds: max(0, time)) }
        if let condition = row.condition { line.field("condition", condition) }
        if let action = row.action { line.field("action", action) }
        if let rule = row.rule { line.field("rule", rule) }
        line.field("xml", row.xml ?? Self.xml(row, from: from, to: to))
        line.field("details")
        line.openObject()
        if row.xml == nil { line.field("xml", "made again from the columns of the store, which keeps none") }
        if row.seen != row.time { line.field("seen", row.seen.text) }
        if row.source != .live { line.field("of", row.source == .carbon ? "a carbon copy" : "an archive") }
        if let tap = row.tap { line.field("tap", tap) }
        line.closeObject()
        line.closeObject()
        add(line)
    }

    private func add(_ line: borrowing LineBuffer) {
        let bytes = line.bytes
        table.append { output in
            output.append(bytes: bytes.span.bytes)
            output.endLine()
        }
    }

    private static func address(_ bare: String, _ resource: String?) -> String {
        resource.map { "\(bare)/\($0)" } ?? bare
    }

    /// A stanza with what the columns have of it.
    private static func xml(_ row: AuditRow, from: String?, to: String?) -> String {
        var xml = "<\(row.kind.name) xmlns='jabber:client'"
        for (name, value) in [("type", row.type), ("id", row.id), ("from", from), ("to", to)] {
            if let value { xml += " \(name)='\(HTMLText.markup(value))'" }
        }
        xml += ">"
        for (name, text) in [("subject", row.subject), ("body", row.body), ("thread", row.thread)] {
            if let text { xml += "<\(name)>\(HTMLText.markup(text))</\(name)>" }
        }
        if row.body == nil, let (namespace, name) = payload(row) {
            xml += "<\(name) xmlns='\(HTMLText.markup(namespace))'/>"
        }
        return xml + "</\(row.kind.name)>"
    }

    /// The namespace and the name of the first child.
    private static func payload(_ row: AuditRow) -> (namespace: String, name: String)? {
        guard let payload = row.payload, payload.hasPrefix("{"), let end = payload.lastIndex(of: "}") else {
            return nil
        }
        let name = String(payload[payload.index(after: end)...])
        // What could not be a name is left out: the XML has to be well-formed.
        guard name.wholeMatch(of: /[\p{L}_][\p{L}\p{N}_.-]*/) != nil else { return nil }
        return (String(payload[payload.index(after: payload.startIndex)..<end]), name)
    }
}
