internal import TapCapture
internal import TapRecord
internal import TapStore

/// The stanzas and sessions of an audit store as records, for the page.
///
/// A store has the columns of a stanza, and its XML only if that was asked for: otherwise, the XML is made again from the columns, and
/// the record says so.
struct StoreRecords {
    let table = RecordTable(spills: true)
    /// Maximum number of delayed stanzas, and of requests without an answer so far, that are kept in memory.
    private static let maximumWaiting = 100_000

    private let place: StorePlace
    private var query = SearchQuery(words: "")
    private var sessions: [AuditSession] = []
    /// Beginnings, failed logins and ends of sessions, in the order of time.
    private var events: [Event] = []
    private var next = 0
    /// Stanzas that were delayed, by the time at which they were seen: a store has them in the order of the time of the stanza.
    private var delayed = DelayedRows()
    private var requests: [Request: UInt64] = [:]
    private var run = ""
    private var beginning: Timestamp?

    private struct Event: Comparable {
        enum Kind: Int {
            case began, failed, ended
        }

        let time: Timestamp
        let kind: Kind
        /// The index of the session.
        let session: Int

        static func < (one: Event, other: Event) -> Bool {
            (one.time, one.kind.rawValue, one.session) < (other.time, other.kind.rawValue, other.session)
        }
    }

    /// Rows by the time at which they were seen.
    private struct DelayedRows {
        private var rows: [Int: AuditRow] = [:]
        /// The latest first.
        private var order: [(seen: Timestamp, number: Int)] = []
        private var number = 0

        var count: Int { order.count }
        /// The earliest time.
        var first: Timestamp? { order.last?.seen }

        mutating func insert(_ row: AuditRow) {
            var (low, high) = (0, order.count)
            while low < high {
                let middle = (low + high) / 2
                if order[middle].seen > row.seen { low = middle + 1 } else { high = middle }
            }
            number += 1
            order.insert((row.seen, number), at: low)
            rows[number] = row
        }

        mutating func removeFirst() -> AuditRow? { order.popLast().flatMap { rows.removeValue(forKey: $0.number) } }
    }

    /// A request that is not answered yet.
    private struct Request: Hashable {
        let run: String
        let session: UInt64
        let id: String
        let isSent: Bool
    }

    init(_ place: StorePlace) {
        self.place = place
        query.kinds = Set(AuditRow.Kind.allCases)
    }

    /// Reads the store, and adds its records to the table, in the order in which they were seen.
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
            let index = sessions.count
            sessions.append(session)
            if let began = session.began { events.append(Event(time: began, kind: .began, session: index)) }
            if session.cause != nil, let time = session.ended ?? session.began {
                events.append(Event(time: time, kind: .failed, session: index))
            }
            if let ended = session.ended { events.append(Event(time: ended, kind: .ended, session: index)) }
        }
        events.sort()
        var count: UInt64 = 0
        var isWanted = true
        func take(_ row: AuditRow) -> Bool {
            guard isWanted else { return false }
            if count.isMultiple(of: 256) {
                inspection.setProgress(count, of: max(total, count))
                if let fault = table.spillFault { inspection.setTrouble(fault) }
                isWanted = goesOn() && table.spillFault == nil
            }
            count += 1
            if row.seen > row.time { delayed.insert(row) }
            // The sender's time can be later, too.
            let time = min(row.time, row.seen)
            while let first = delayed.first, first <= time || delayed.count > Self.maximumWaiting {
                if let earlier = delayed.removeFirst() { add(earlier) }
            }
            if row.seen <= row.time { add(row) }
            return isWanted
        }
        try store.rows(for: query) { take($0) }
        guard isWanted else { return }
        while let row = delayed.removeFirst() { add(row) }
        addEvents(until: Timestamp(nanoseconds: .max))
        inspection.setProgress(count, of: count)
    }

    private mutating func addEvents(until time: Timestamp) {
        while next < events.count, events[next].time <= time {
            let event = events[next]
            next += 1
            add(sessions[event.session], event.kind, at: event.time)
        }
    }

    /// Begins a record; its object remains open.
    ///
    /// - Parameter number: The number of the record in its run; 0 if it is not known.
    private mutating func begin(at time: Timestamp, number: UInt64, to line: inout LineBuffer) {
        if beginning == nil { beginning = time }
        let monotonic = time.nanoseconds.subtractingReportingOverflow(beginning?.nanoseconds ?? 0)
        line.openObject()
        line.field("sequence", number)
        line.field("time", time.text)
        line.field("monotonic", seconds: monotonic.overflow ? 0 : max(0, monotonic.partialValue))
    }

    /// Assigns the next records to a run.
    private mutating func enter(_ run: String) {
        guard run != self.run else { return }
        self.run = run
        table.begin(run: run)
    }

    /// The number of the request that an iq answers; nil if it is not known.
    private mutating func request(of row: AuditRow) -> UInt64? {
        guard row.kind == .iq, let id = row.id else { return nil }
        let isSent = row.direction == .send
        guard row.type == "get" || row.type == "set" else {
            return requests.removeValue(forKey: Request(run: row.run, session: row.session, id: id, isSent: !isSent))
        }
        if requests.count >= Self.maximumWaiting { requests.removeAll() }
        requests[Request(run: row.run, session: row.session, id: id, isSent: isSent)] = row.sequence
        return nil
    }

    private mutating func add(_ session: AuditSession, _ kind: Event.Kind, at time: Timestamp) {
        enter(session.run)
        var line = LineBuffer()
        begin(at: time, number: session.source?.sequence ?? 0, to: &line)
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
        addEvents(until: row.seen)
        enter(row.run)
        var line = LineBuffer()
        begin(at: row.seen, number: row.sequence, to: &line)
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
        if let request = request(of: row) { line.field("answers", request) }
        if let time = row.roundTrip { line.field("round_trip", seconds: max(0, time)) }
        if let condition = row.condition { line.field("condition", condition) }
        if let action = row.action { line.field("action", action) }
        if let rule = row.rule { line.field("rule", rule) }
        line.field("xml", row.xml ?? Self.xml(row, from: from, to: to))
        line.field("details")
        line.openObject()
        if row.xml == nil { line.field("xml", "made again from the columns of the store, which keeps none") }
        if row.seen != row.time { line.field("time_of_stanza", row.time.text) }
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

    /// A stanza with the texts of the columns.
    private static func xml(_ row: AuditRow, from: String?, to: String?) -> String {
        var xml = "<\(row.kind.name) xmlns='jabber:client'"
        for (name, value) in [("type", row.type), ("id", row.id), ("from", from), ("to", to)] {
            if let value { xml += " \(name)='\(attribute(value))'" }
        }
        xml += ">"
        for (name, text) in [("subject", row.subject), ("body", row.body), ("thread", row.thread)] {
            if let text { xml += "<\(name)>\(HTMLText.markup(text))</\(name)>" }
        }
        if row.body == nil, let (namespace, name) = payload(row) {
            xml += "<\(name) xmlns='\(attribute(namespace))'/>"
        }
        return xml + "</\(row.kind.name)>"
    }

    /// A text between single quotes.
    private static func attribute(_ text: String) -> String { HTMLText.markup(text).replacing("'", with: "&apos;") }

    /// The namespace and the name of the first child.
    private static func payload(_ row: AuditRow) -> (namespace: String, name: String)? {
        guard let payload = row.payload, payload.hasPrefix("{"), let end = payload.lastIndex(of: "}") else {
            return nil
        }
        let name = String(payload[payload.index(after: end)...])
        // The XML has to be well-formed, and the payload of a store can be any text.
        guard name.wholeMatch(of: /[\p{L}_][\p{L}\p{N}_.-]*/) != nil else { return nil }
        return (String(payload[payload.index(after: payload.startIndex)..<end]), name)
    }
}
