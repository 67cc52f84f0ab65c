internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// The sessions of a table, as a list shows them.
struct SessionList {
    /// Maximum number of peers counted for a session.
    private static let maximumPeers = 256
    /// Maximum number of removed sessions that are recognised when they continue.
    private static let maximumRemoved = 100_000

    /// A session with what ``SessionOverview`` does not have.
    fileprivate struct Entry {
        var figures: SessionOverview.Session
        let first: Int
        var last: Int
        var records: UInt64 = 0
        var software = SoftwareName()
        var serverSoftware = SoftwareName()
        /// The domain of the server; nil until it is known.
        var domain: String?
        var borders: InspectedSession.Borders
        var mechanism: String?
        var server: String?
        /// The source of the session; nil if xmpptap has relayed it.
        var source: String?
        var clientTLS: String?
        var serverTLS: String?
        var isReady = false
        var hasEnded = false
        var messages: UInt64 = 0
        /// Hashes of the peers' addresses, which need less memory.
        var peers: Set<UInt32> = []
        var failure: InspectedSession.Failure?
        /// The number of the resumed session, as it is unique in the table.
        var resumes: UInt64?
        var line = Sparkline(intervals: 32, width: 10_000_000)
    }

    /// Maximum number of sessions.
    private let maximumCount: Int
    /// The places in ``entries`` by the number of the session.
    private var places: [UInt64: Int] = [:]
    private var entries: [Entry] = []
    /// Number of sessions that are no longer in the list.
    private(set) var omitted = 0
    private var removed = RecentValues<UInt64, Bool>(limit: maximumRemoved)

    /// Number of sessions.
    var count: Int { entries.count }

    /// - Parameter maximumCount: Maximum number of sessions; those with the latest records are kept.
    init(maximumCount: Int = 20_000) { self.maximumCount = max(1, maximumCount) }

    /// Adds a record.
    ///
    /// - Parameters:
    ///   - line: The record; the number of its session is unique in the table.
    ///   - run: The number of the run.
    ///   - isComplete: Whether the record is of a complete capture.
    mutating func add(_ line: RecordLine, at position: Int, run: Int, isComplete: Bool = false) {
        let record = line.record
        guard record.session > 0 else { return }
        if places[record.session] == nil {
            makeSpace(at: position)
            if removed.removeValue(for: record.session) != nil { omitted -= 1 }
            places[record.session] = entries.count
            let figures = SessionOverview.Session(record.session, of: run, first: record)
            let borders = isComplete ? InspectedSession.Borders.reads : .partial
            entries.append(Entry(figures: figures, first: position, last: position, borders: borders))
        }
        guard let place = places[record.session] else { return }
        entries[place].add(record, line.content.span, at: position, Self.maximumPeers)
    }

    /// Removes the sessions without new records if there are too many: first those that have ended.
    private mutating func makeSpace(at position: Int) {
        guard entries.count >= maximumCount else { return }
        let oldest = entries.indices.sorted { one, other in
            let (one, other) = (entries[one], entries[other])
            return one.hasEnded == other.hasEnded ? one.last < other.last : one.hasEnded
        }.prefix(max(1, maximumCount / 8))
        for place in oldest { removed.store(true, for: entries[place].figures.number, at: position) }
        omitted += oldest.count
        let gone = Set(oldest)
        entries = entries.indices.filter { !gone.contains($0) }.map { entries[$0] }
        places.removeAll(keepingCapacity: true)
        for (place, entry) in entries.enumerated() { places[entry.figures.number] = place }
    }

    /// Returns a line for each of the first sessions.
    func lines(limit: Int) -> [String] {
        entries.prefix(limit).map { entry in
            let failure = entry.failure.map { ": login failed: \($0.finding)" } ?? ""
            return "session \(entry.figures.number), \(entry.figures.jid ?? "not logged in")\(failure)"
        }
    }

    /// The sessions in the order of their first records.
    var all: [InspectedSession] { entries.map(\.session) }

    /// The servers of the sessions, each once, at most `limit`: their domains, and the names of their software, which are empty
    /// if they are not known.
    func servers(limit: Int) -> [(domain: String, software: String)] {
        var found: [(domain: String, software: String)] = []
        for entry in entries {
            guard let domain = entry.domain else { continue }
            let software = entry.serverSoftware.text ?? ""
            if let index = found.firstIndex(where: { $0.domain == domain }) {
                if found[index].software.isEmpty { found[index].software = software }
            } else if found.count < limit {
                found.append((domain, software))
            }
        }
        return found
    }

    /// Writes the sessions as an array.
    func append(to output: inout LineBuffer) {
        output.openArray()
        for entry in entries { entry.session.append(to: &output) }
        output.closeArray()
    }
}

extension SessionList.Entry {
    private var state: InspectedSession.State {
        if failure != nil { return .failed }
        if hasEnded { return .ended }
        return isReady ? .open : .connecting
    }

    /// The session with its figures so far.
    var session: InspectedSession {
        InspectedSession(
            number: figures.number,
            run: figures.run,
            jid: figures.jid ?? "",
            remote: figures.remote ?? "",
            server: server ?? "",
            source: source ?? "",
            software: software.text ?? "",
            borders: borders,
            mechanism: mechanism ?? "",
            clientTLS: clientTLS ?? "",
            serverTLS: serverTLS ?? "",
            state: state,
            resumes: resumes ?? 0,
            began: figures.began,
            duration: figures.duration,
            first: first,
            last: last,
            records: records,
            messages: messages,
            sent: figures.sent,
            received: figures.received,
            errors: figures.errors,
            peers: peers.count,
            closeReason: figures.closeReason ?? "",
            slowest: figures.slowest?.roundTrip ?? 0,
            failure: failure,
            traffic: line.counts
        )
    }

    mutating func add(_ record: Record, _ content: Span<UInt8>, at position: Int, _ maximumPeers: Int) {
        func word(_ text: String?) -> String? { text?.cut(to: RecordSurvey.maximumText) }
        figures.add(record)
        figures.cutTexts(to: RecordSurvey.maximumText)
        last = position
        records += 1
        line.add(at: record.time.nanoseconds)
        // The beginning of the session may not have been recorded.
        if record.jid != nil { isReady = true }
        software.read(record, content)
        if domain == nil { domain = word(record.jid.flatMap { (try? JID(parsing: $0))?.domain } ?? record.domain) }
        if let domain { serverSoftware.read(record, content, ofServer: domain) }
        if let name = record.sasl?["mechanism"]?.text { mechanism = word(name) }
        if record.kind == .stanza {
            if let name = record.name, content.slice(name).equals("message") { messages += 1 }
            if peers.count < maximumPeers, let direction = record.direction,
                let peer = direction == .send ? record.to : record.from
            {
                peers.insert(UInt32(truncatingIfNeeded: content.slice(peer).bareText.hashValue))
            }
        }
        switch record.code {
        case Record.Code.sessionBegan:
            source = word(record.details?[Record.Detail.source]?.text)
            server = word(record.details?[Record.Detail.upstream]?.text) ?? server
            switch source {
            case nil where record.details?[Record.Detail.transport] == nil: break
            case Record.Beginning.packets.source where record.details?[Record.Detail.transport] == nil:
                borders = .segments
            default: borders = .missing
            }
        case Record.Code.tlsOpened:
            let version = word(record.tls?["version"]?.text)
            if record.leg == .client { clientTLS = version } else { serverTLS = version }
        case Record.Code.sessionReady:
            isReady = true
            let earlier = record.details?[Record.Detail.resumes]?.text
            resumes = earlier.flatMap { UInt64($0) }.map { TableRuns.session($0, of: figures.run) }
        case Record.Code.loginFailed:
            failure =
                LoginDiagnosis(record).map { InspectedSession.Failure($0, at: position) }
                ?? InspectedSession.Failure(record, at: position)
        case Record.Code.sessionEnded:
            hasEnded = true
            if mechanism == nil { mechanism = word(record.details?["mechanism"]?.text) }
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
