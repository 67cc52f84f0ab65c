internal import TapRecord
internal import XMPPCore

/// The sessions, conversations and errors in the records of a table, found step by step.
///
/// It keeps a limited number of entries, the newest ones, with texts of limited length.
struct RecordSurvey {
    /// Maximum number of bytes of a text that is kept.
    static let maximumText = 256
    /// Number of records after which the time is read again.
    private static let part = 256
    /// Maximum number of requests without an answer that are remembered.
    private static let maximumPending = 200_000
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

    private struct Request: Hashable {
        let run: Int
        let number: UInt64
    }

    /// Requests without an answer.
    private var pending = RecentValues<Request, (position: Int, payload: String)>(limit: maximumPending)
    private var requests = RecentValues<Int, Int>(limit: maximumPairs)
    private var answers = RecentValues<Int, Int>(limit: maximumPairs)

    /// Adds more records of the table.
    ///
    /// - Parameter deadline: When to stop.
    mutating func extend(in table: RecordTable, until deadline: ContinuousClock.Instant) {
        let range = table.range
        let runs = table.runs
        if end < range.lowerBound {
            missed += range.lowerBound - end
            end = range.lowerBound
        }
        pending.forget(before: range.lowerBound, end: end)
        requests.forget(before: range.lowerBound, end: end)
        answers.forget(before: range.lowerBound, end: end)
        conversations.forget(before: range.lowerBound, end: end)
        while end < range.upperBound {
            let part = end..<min(end + Self.part, range.upperBound)
            table.read(part) { position, line in
                guard let line else { return missed += 1 }
                guard case .record(let record) = StoredLine(line, runs, at: position) else { return }
                add(record, at: position, runs.run(at: position), isComplete: runs.isComplete(at: position))
            }
            end = part.upperBound
            if ContinuousClock.now >= deadline { break }
        }
    }

    private mutating func add(_ line: RecordLine, at position: Int, _ run: Int, isComplete: Bool) {
        let content = line.content.span
        let record = line.record
        sessions.add(line, at: position, run: run, isComplete: isComplete)
        findings.add(record, content, at: position)
        conversations.add(record, content, at: position)
        var request: String?
        if let number = record.answers {
            if let found = pending.removeValue(for: Request(run: run, number: number)) {
                request = found.payload
                requests.store(found.position, for: position, at: position)
                answers.store(position, for: found.position, at: position)
            }
        } else if record.kind == .stanza, let name = record.name, content.slice(name).equals("iq"),
            let type = record.type, content.slice(type).equals("get") || content.slice(type).equals("set")
        {
            let payload = record.payloadText(content).cut(to: Self.maximumText)
            pending.store((position, payload), for: Request(run: run, number: record.sequence), at: position)
            measures.addRequest(payload)
        }
        measures.add(record, content, at: position, request: request)
    }

    /// Returns the position of the request that a record answers.
    func request(of position: Int) -> Int? { requests[position] }

    /// Returns the position of the answer to a request.
    func answer(to position: Int) -> Int? { answers[position] }
}
