internal import TapRecord
internal import XMPPCore

/// The sessions, conversations and errors in the records of a table, found step by step.
struct RecordSurvey {
    /// Maximum number of requests without an answer that are remembered.
    private static let maximumPending = 100_000
    /// Maximum number of pairs of requests and answers.
    private static let maximumPairs = 2_000_000

    private(set) var sessions = SessionList()
    private(set) var findings = Findings()
    private(set) var measures = Measures()
    private(set) var conversations = Conversations()
    /// The position up to which records were added.
    private(set) var end = 0
    /// Number of records that the table removed before they were added.
    private(set) var missed = 0

    /// Requests without an answer, by their number in the current run.
    private var pending: [UInt64: (position: UInt32, payload: String)] = [:]
    private var requests: [UInt32: UInt32] = [:]
    private var answers: [UInt32: UInt32] = [:]
    private var run = ""

    /// Adds more records of the table.
    ///
    /// - Parameter deadline: When to stop.
    mutating func extend(in table: RecordTable, until deadline: ContinuousClock.Instant) {
        let range = table.range
        if end < range.lowerBound {
            missed += range.lowerBound - end
            end = range.lowerBound
        }
        while end < range.upperBound {
            let part = end..<min(end + 1024, range.upperBound)
            table.read(part) { position, line in add(StoredLine(line), at: position) }
            end = part.upperBound
            if ContinuousClock.now >= deadline { break }
        }
    }

    private mutating func add(_ line: StoredLine, at position: Int) {
        switch line {
        case .damage: break
        case .header(let header):
            sessions.add(header)
            // Each run numbers its records from 1.
            if header.run != run { pending.removeAll() }
            run = header.run
        case .record(let line): add(line, at: position)
        }
    }

    private mutating func add(_ line: RecordLine, at position: Int) {
        let content = line.content.span
        sessions.add(line, at: position)
        findings.add(line.record, content, at: position)
        conversations.add(line.record, content, at: position)
        var request: String?
        if let number = line.record.answers {
            if let found = pending.removeValue(forKey: number) {
                request = found.payload
                if requests.count < Self.maximumPairs {
                    requests[UInt32(clamping: position)] = found.position
                    answers[found.position] = UInt32(clamping: position)
                }
            }
        } else if line.record.kind == .stanza, let name = line.record.name, content.slice(name).equals("iq"),
            let type = line.record.type,
            content.slice(type).equals("get") || content.slice(type).equals("set"),
            pending.count < Self.maximumPending
        {
            let payload = line.record.payloadText(content)
            pending[line.record.sequence] = (UInt32(clamping: position), payload)
            measures.addRequest(payload)
        }
        measures.add(line.record, content, at: position, request: request)
    }

    /// Returns the position of the request that a record answers.
    func request(of position: Int) -> Int? { requests[UInt32(clamping: position)].map { Int($0) } }

    /// Returns the position of the answer to a request.
    func answer(to position: Int) -> Int? { answers[UInt32(clamping: position)].map { Int($0) } }
}
