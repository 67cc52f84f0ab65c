internal import TapDiagnosis
internal import TapRecord

/// Counts round trips of requests, and requests without an answer.
///
/// Requests and answers are matched in any order, because a clock that is set back puts answers before their requests.
struct RequestCounter {
    /// Identifies a request in its session.
    private struct Request: Hashable {
        let run: String
        let session: UInt64
        /// The direction of the request.
        let direction: Direction
        let id: String?
        /// The sender of a request to the account: contacts can choose the same ids. A server can ask as itself or as the
        /// account, so it has no address here.
        let peer: String?
    }

    /// The requests and answers with the same id that have no counterpart. There are requests or answers, never both.
    private struct Unmatched {
        var requests: [(payload: String?, time: Timestamp)] = []
        var answers: [(payload: String?, roundTrip: Int64?)] = []
    }

    private var unmatched: [Request: Unmatched] = [:]
    private var roundTrips: [String?: RoundTrips] = [:]

    mutating func add(_ row: AuditRow) {
        switch row.type {
        case "get", "set": addRequest(row)
        case "result", "error": addAnswer(row)
        default: break
        }
    }

    private mutating func addRequest(_ row: AuditRow) {
        let request = Self.request(row, row.direction)
        guard var waiting = unmatched[request], !waiting.answers.isEmpty else {
            return unmatched[request, default: Unmatched()].requests.append((row.payload, row.time))
        }
        count(waiting.answers.removeFirst().roundTrip, row.payload)
        unmatched[request] = waiting.answers.isEmpty ? nil : waiting
    }

    private mutating func addAnswer(_ row: AuditRow) {
        let request = Self.request(row, row.direction.opposite)
        // The first child of an error can be the error itself.
        let payload = row.type == "error" ? nil : row.payload
        guard var waiting = unmatched[request], !waiting.requests.isEmpty else {
            return unmatched[request, default: Unmatched()].answers.append((payload, row.roundTrip))
        }
        count(row.roundTrip, waiting.requests.removeFirst().payload ?? payload)
        unmatched[request] = waiting.requests.isEmpty ? nil : waiting
    }

    private static func request(_ row: AuditRow, _ direction: Direction) -> Request {
        var peer = direction == .recv ? row.peer : nil
        if let address = peer, address == row.account || !address.contains("@") { peer = nil }
        return Request(run: row.run, session: row.session, direction: direction, id: row.id, peer: peer)
    }

    private mutating func count(_ roundTrip: Int64?, _ payload: String?) {
        if let roundTrip { roundTrips[payload, default: RoundTrips()].add(roundTrip) }
    }

    consuming func finish(_ statistics: inout AuditStatistics) {
        var unanswered: [String?: AuditStatistics.Unanswered] = [:]
        for waiting in unmatched.values {
            for answer in waiting.answers { count(answer.roundTrip, answer.payload) }
            for request in waiting.requests {
                var found =
                    unanswered[request.payload]
                    ?? AuditStatistics.Unanswered(payload: request.payload, count: 0, last: request.time)
                found.count += 1
                found.last = max(found.last, request.time)
                unanswered[request.payload] = found
            }
        }
        statistics.unanswered = unanswered.values.sorted {
            ($1.count, $0.payload ?? "") < ($0.count, $1.payload ?? "")
        }
        statistics.requests = roundTrips.map { payload, times in
            AuditStatistics.Requests(
                payload: payload,
                count: Int(clamping: times.count),
                median: times.percentile(50),
                percentile99: times.percentile(99),
                longest: times.longest
            )
        }
        .sorted {
            ($1.percentile99, $1.count, $0.payload ?? "") < ($0.percentile99, $0.count, $1.payload ?? "")
        }
    }
}
