internal import TapRecord
package import XMPPCore

/// A response to a BOSH request.
package enum BOSHAnswer: Sendable, Hashable {
    /// A body that was read.
    case body(BOSHBody)
    /// HTTP with another status than 200.
    case status(Int)
    /// A body that cannot be read: the code of the fault, and a human-readable clause.
    case unread(code: String, explanation: String)
    /// A body that is compressed (`Content-Encoding`).
    case compressed

    /// Whether the server refuses the request or the session.
    var isRefusal: Bool {
        switch self {
        case .body(let body): body.isTerminate
        case .status: true
        case .unread, .compressed: false
        }
    }
}

/// Puts the requests of a BOSH session in the order of their `rid`, and the responses in that of their requests
/// (XEP-0124 §14).
///
/// A request waits until all earlier ones have arrived. If the server answers it before that, without an error, the earlier
/// ones have reached the server by another way and are missing. A response waits for those to earlier requests, for a
/// short time. The number of waiting requests and responses is bounded.
struct BOSHOrder {
    enum Event: Equatable {
        case request(UInt64, BOSHBody, at: Run.Instant)
        case response(UInt64, BOSHAnswer, at: Run.Instant)
        /// The client sent a request again (XEP-0124 §14.3).
        case repeated(UInt64, at: Run.Instant)
        /// Bodies that were not seen: requests, or the responses to them.
        case missing(Direction, ClosedRange<UInt64>, at: Run.Instant)
        /// The server refused a request that was too far ahead, or the request is not stored.
        case outside(UInt64, BOSHAnswer?, at: Run.Instant)
    }

    private struct Waiting<Content> {
        var content: Content
        var at: Run.Instant
    }

    /// The time in nanoseconds for which a response waits for earlier ones.
    static let patience: Int64 = 2_000_000_000
    /// The largest number of bytes in waiting requests, and in waiting responses: that of one body.
    static let waitingBytes = 4 << 20
    /// The largest value of ``window``.
    static let maximumWindow = 32

    /// The largest number of requests, or responses, that wait: `requests` of the server, and one (XEP-0124 §11).
    var window = 3 { didSet { window = min(max(window, 2), Self.maximumWindow) } }
    /// The rid of the next request.
    private var next: UInt64
    private var requests: [UInt64: Waiting<BOSHBody>] = [:]
    /// The rid of the next response.
    private var nextResponse: UInt64
    private var responses: [UInt64: Waiting<BOSHAnswer>] = [:]
    /// The requests from ``nextResponse`` on whose responses were returned out of order.
    private var answered: Set<UInt64> = []
    /// The ranges of missing requests from ``nextResponse`` on: the first, and the one after the last.
    private var skipped: [UInt64: UInt64] = [:]

    /// - Parameter rid: That of the first request.
    init(from rid: UInt64) {
        next = rid
        nextResponse = rid
    }

    /// The time at which ``release(at:)`` must be called; nil if no response waits.
    var deadline: Int64? { responses.values.map { $0.at.monotonic &+ Self.patience }.min() }

    /// The number of requests and responses that wait.
    var waitingCount: Int { requests.count + responses.count }

    private var requestBytes: Int { requests.values.reduce(0) { $0 + $1.content.itemBytes } }

    private var responseBytes: Int {
        responses.values.reduce(0) { sum, waiting in
            if case .body(let body) = waiting.content { sum + body.itemBytes } else { sum }
        }
    }

    // MARK: Requests

    mutating func request(_ rid: UInt64, _ body: BOSHBody, at now: Run.Instant) -> [Event] {
        guard rid >= next, requests[rid] == nil else { return [.repeated(rid, at: now)] }
        var events: [Event] = []
        if rid == next {
            accept(rid, body, at: now, &events)
        } else if requests.count < window, requestBytes + body.itemBytes <= Self.waitingBytes {
            requests[rid] = Waiting(content: body, at: now)
        } else {
            events.append(.outside(rid, nil, at: now))
        }
        return events
    }

    private mutating func accept(_ rid: UInt64, _ body: BOSHBody, at now: Run.Instant, _ events: inout [Event]) {
        events.append(.request(rid, body, at: now))
        next = rid &+ 1
        while let waiting = requests.removeValue(forKey: next) {
            events.append(.request(next, waiting.content, at: now))
            next &+= 1
        }
    }

    /// Accepts the waiting requests up to this one, although earlier ones are missing.
    private mutating func closeGaps(to rid: UInt64, at now: Run.Instant, _ events: inout [Event]) {
        while let first = requests.keys.min(), first <= rid, let waiting = requests.removeValue(forKey: first) {
            if first > next {
                events.append(.missing(.send, next...(first &- 1), at: now))
                // Requests that were not seen have no responses here.
                if nextResponse == next { nextResponse = first } else { skipped[next] = first }
            }
            accept(first, waiting.content, at: now, &events)
        }
    }

    // MARK: Responses

    mutating func response(to rid: UInt64, _ answer: BOSHAnswer, at now: Run.Instant) -> [Event] {
        var events: [Event] = []
        if requests[rid] != nil {
            guard !answer.isRefusal else {
                requests[rid] = nil
                return [.outside(rid, answer, at: now)]
            }
            closeGaps(to: rid, at: now, &events)
        }
        guard rid < next else { return answer.isRefusal ? [.outside(rid, answer, at: now)] : events }
        // The response to a request that was sent again is a copy of the first (XEP-0124 §14.3).
        let isKnown = rid < nextResponse || answered.contains(rid) || responses[rid] != nil
        guard !isKnown, !isSkipped(rid) else { return events }
        responses[rid] = Waiting(content: answer, at: now)
        advance(at: now, &events)
        if responses.count > window || responseBytes > Self.waitingBytes { releaseAll(at: now, &events) }
        return events
    }

    private func isSkipped(_ rid: UInt64) -> Bool { skipped.contains { $0.key <= rid && rid < $0.value } }

    /// Returns the responses from ``nextResponse`` on, without a gap.
    private mutating func advance(at now: Run.Instant, _ events: inout [Event]) {
        while nextResponse < next {
            if let end = skipped.removeValue(forKey: nextResponse) {
                nextResponse = end
                continue
            }
            if let waiting = responses.removeValue(forKey: nextResponse) {
                events.append(.response(nextResponse, waiting.content, at: now))
            } else if answered.remove(nextResponse) == nil {
                return
            }
            nextResponse &+= 1
        }
    }

    private mutating func releaseAll(at now: Run.Instant, _ events: inout [Event]) {
        for rid in responses.keys.sorted() {
            guard let waiting = responses.removeValue(forKey: rid) else { continue }
            events.append(.response(rid, waiting.content, at: now))
            answered.insert(rid)
        }
        while answered.count > 2 * window, nextResponse < next {
            events.append(.missing(.recv, nextResponse...nextResponse, at: now))
            nextResponse &+= 1
            advance(at: now, &events)
        }
    }

    /// Returns the responses that have waited long enough: the server holds an earlier request, or its response is lost.
    mutating func release(at now: Run.Instant) -> [Event] {
        var events: [Event] = []
        if let deadline, now.monotonic >= deadline { releaseAll(at: now, &events) }
        return events
    }

    /// Returns all that waits, because the session ends.
    mutating func finish(at now: Run.Instant) -> [Event] {
        var events: [Event] = []
        closeGaps(to: .max, at: now, &events)
        releaseAll(at: now, &events)
        return events
    }
}
