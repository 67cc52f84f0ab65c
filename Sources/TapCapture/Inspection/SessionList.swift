internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// The sessions of a table, as a list shows them.
struct SessionList {
    /// Maximum number of sessions; the records of later ones are still in the table.
    static let maximumCount = 20_000
    /// Maximum number of peers counted for a session.
    private static let maximumPeers = 256

    /// What ``SessionOverview`` does not have.
    fileprivate struct More {
        var key: RunNumbers.Session
        var first: Int
        var last: Int
        var records: UInt64 = 0
        var software: String?
        var mechanism: String?
        var server: String?
        /// The source of the session; nil if xmpptap has relayed it.
        var source: String?
        var clientTLS: String?
        var serverTLS: String?
        var isReady = false
        var hasEnded = false
        var messages: UInt64 = 0
        var peers: Set<String> = []
        var diagnosis: LoginDiagnosis?
        var failure: Int?
        var resumes: String?
        var line = Sparkline(intervals: 32, width: 10_000_000)
    }

    private var overview = SessionOverview()
    private var runs = RunNumbers()
    private var places: [RunNumbers.Session: Int] = [:]
    private var more: [More] = []
    /// Number of sessions that are not in the list.
    private(set) var omitted = 0
    private var others: Set<RunNumbers.Session> = []

    /// Number of sessions.
    var count: Int { more.count }

    mutating func add(_ header: RecordHeader) {
        overview.add(header)
        runs.add(header)
    }

    mutating func add(_ line: RecordLine, at position: Int) {
        let record = line.record
        guard record.session > 0 else { return }
        let key = runs.session(of: record)
        let place = places[key, default: more.count]
        if place == more.count {
            guard place < Self.maximumCount else {
                if others.insert(key).inserted { omitted += 1 }
                return
            }
            places[key] = place
            more.append(More(key: key, first: position, last: position))
        }
        overview.add(line, isChosen: true)
        more[place].add(record, line.content.span, at: position, Self.maximumPeers)
    }

    /// Returns a line for each of the first sessions.
    func lines(limit: Int) -> [String] {
        zip(overview.all, more).prefix(limit).map { session, more in
            let failure = more.diagnosis.map { ": login failed: \($0.finding)" } ?? ""
            return "session \(session.number), \(session.jid ?? "not logged in")\(failure)"
        }
    }

    /// Writes the sessions as an array.
    func append(to output: inout LineBuffer) {
        output.openArray()
        for (session, more) in zip(overview.all, more) {
            output.openObject()
            output.field("session", session.number)
            output.field("run", session.run)
            output.field("jid", session.jid ?? "")
            output.field("remote", session.remote ?? "")
            output.field("server", more.server ?? "")
            output.field("source", more.source ?? "")
            output.field("software", more.software ?? "")
            output.field("mechanism", more.mechanism ?? "")
            output.field("client_tls", more.clientTLS ?? "")
            output.field("server_tls", more.serverTLS ?? "")
            output.field("state", literal: more.state)
            output.field("resumes", more.resumes ?? "")
            output.field("began", Int(session.began.nanoseconds / 1000))
            output.field("duration", Int(session.duration / 1000))
            output.field("first", more.first)
            output.field("last", more.last)
            output.field("records", more.records)
            output.field("messages", more.messages)
            output.field("sent", session.sent.stanzas)
            output.field("received", session.received.stanzas)
            output.field("sent_bytes", session.sent.bytes)
            output.field("received_bytes", session.received.bytes)
            output.field("errors", session.errors)
            output.field("peers", more.peers.count)
            output.field("close_reason", session.closeReason ?? "")
            output.field("slowest", session.slowest.map { Int($0.roundTrip / 1000) } ?? 0)
            if let diagnosis = more.diagnosis {
                output.field("failure")
                output.openObject()
                output.field("at", more.failure ?? 0)
                output.field("step", diagnosis.loginStep.rawValue)
                output.field("cause", diagnosis.cause.rawValue)
                output.field("finding", "\(diagnosis.finding)")
                output.field("side", diagnosis.side.rawValue)
                if let rule = diagnosis.rule { output.field("rule", rule) }
                if let isProxy = diagnosis.isProxyTheCause { output.field("proxy", isProxy) }
                if let advice = diagnosis.advice { output.field("advice", advice) }
                output.closeObject()
            }
            output.field("line")
            output.openArray()
            for count in more.line.counts {
                output.separate()
                output.append(decimal: UInt64(count))
            }
            output.closeArray()
            output.closeObject()
        }
        output.closeArray()
    }
}

extension SessionList.More {
    var state: StaticString {
        if diagnosis != nil { return "failed" }
        if hasEnded { return "ended" }
        return isReady ? "open" : "connecting"
    }

    mutating func add(_ record: Record, _ content: Span<UInt8>, at position: Int, _ maximumPeers: Int) {
        last = position
        records += 1
        line.add(at: record.time.nanoseconds)
        if let name = record.sasl?["software"]?.text { software = name }
        if let name = record.sasl?["mechanism"]?.text { mechanism = name }
        if record.kind == .stanza {
            if let name = record.name, content.slice(name).equals("message") { messages += 1 }
            if peers.count < maximumPeers, let direction = record.direction,
                let peer = direction == .send ? record.to : record.from
            {
                peers.insert(content.slice(peer).bareText)
            }
        }
        switch record.code {
        case Record.Code.sessionBegan:
            source = record.details?[Record.Detail.source]?.text
            server = record.details?[Record.Detail.upstream]?.text ?? server
        case Record.Code.tlsOpened:
            let version = record.tls?["version"]?.text
            if record.leg == .client { clientTLS = version } else { serverTLS = version }
        case Record.Code.sessionReady:
            isReady = true
            resumes = record.details?[Record.Detail.resumes]?.text
        case Record.Code.loginFailed:
            diagnosis = LoginDiagnosis(record)
            failure = position
        case Record.Code.sessionEnded:
            hasEnded = true
            if mechanism == nil { mechanism = record.details?["mechanism"]?.text }
        default: break
        }
    }
}

extension Span<UInt8> {
    /// The text before the first slash: the bare JID of a full one.
    var bareText: String {
        var end = 0
        while end < count, self[end] != 0x2F { end += 1 }
        return extracting(..<end).string()
    }
}
