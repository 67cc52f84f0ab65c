internal import TapRecord
import XMPPCore

/// Matches iq requests with their answers, by id, direction and address (RFC 6120 §8.2.3, §10.3.3).
///
/// An answer has the opposite direction, the request's id, and the request's `to` as its `from`. The account itself
/// answers a request without `to`: its `from` may be absent, its bare JID, its full JID or its domain.
///
/// Each direction is bounded by ``capacity``, ``byteCapacity`` and ``capacityPerID``. Beyond a bound, the oldest
/// request is evicted, and its answer is recorded without a request and a round-trip time. Handling a request or an
/// answer is O(1), however many requests are pending (``PendingRequests``).
struct IQTracker {
    /// The largest number of requests in each direction.
    static let capacity = 1024
    /// The largest number of bytes of ids, addresses and summaries in each direction: 256 for each of ``capacity``
    /// requests.
    static let byteCapacity = 256 << 10
    /// The largest number of requests with the same id in each direction, because each answer is compared with all of
    /// them. An id is unique for one sender (RFC 6120 §8.1.3), but several users on the stream of a component or server
    /// may choose the same id.
    static let capacityPerID = 32

    /// A request that has not been answered yet.
    struct Request {
        var sequence: UInt64
        var monotonic: Int64
        var purpose: Purpose
        /// A description of the request, for the record.
        var summary: Prose?

        var isPing: Bool {
            if case .ping = purpose { true } else { false }
        }
    }

    /// The purpose of a request, which determines how its answer is handled.
    enum Purpose: Sendable {
        case ordinary
        /// A ping, whose only effect is its answer (XEP-0199).
        case ping
        case bind
        /// A request to start a session (RFC 3921 §3).
        case session
        /// A request for the fields of legacy authentication (XEP-0078).
        case legacyFields
        case legacyAuthentication(jid: String?)
        case registration
    }

    private var send: PendingRequests
    private var recv: PendingRequests
    /// The number of requests that were evicted.
    private(set) var forgotten = 0
    private var isBidirectional = false

    /// Creates an empty tracker.
    ///
    /// - Parameter hashMask: See ``PendingRequests/init(hashMask:)``.
    init(hashMask: Int = -1) {
        send = PendingRequests(hashMask: hashMask)
        recv = PendingRequests(hashMask: hashMask)
    }

    /// Stores that the stream carries stanzas of both servers (XEP-0288).
    mutating func observeBidirectional() { isBidirectional = true }

    /// Returns whether answers arrive on the same stream as their requests. Between servers, each direction has a
    /// stream, unless one stream is bidirectional (XEP-0288).
    func expectsAnswers(on kind: SessionInfo.StreamKind) -> Bool { kind != .server || isBidirectional }

    /// The number of pending requests.
    var count: Int { send.count + recv.count }
    /// The number of bytes of the pending requests' ids, addresses and summaries.
    var byteCount: Int { send.byteCount + recv.byteCount }
    /// The number of requests that were compared with an answer or evicted so far, as a measure of work.
    var visits: Int { send.visits + recv.visits }
    /// The number of addresses that were parsed so far, as a measure of work.
    var parses: Int { send.parses + recv.parses }

    /// Stores a request.
    ///
    /// - Parameter from: The sender, on a stream of many users; empty on a client's stream, because it never changes
    ///   there.
    mutating func store(
        _ direction: Direction,
        id: Span<UInt8>,
        to: Span<UInt8>,
        from: Span<UInt8> = Span(),
        sequence: UInt64,
        at monotonic: Int64,
        purpose: Purpose,
        summary: Prose? = nil
    ) {
        let request = Request(sequence: sequence, monotonic: monotonic, purpose: purpose, summary: summary)
        switch direction {
        case .send: forgotten += send.add(request, id: id, to: to, from: from)
        case .recv: forgotten += recv.add(request, id: id, to: to, from: from)
        }
    }

    /// Returns the unanswered requests, the oldest first: at most `limit` of each direction.
    func pending(limit: Int, _ now: Int64, _ redactor: Redactor) -> [PendingRequest] {
        Direction.allCases.flatMap { pending($0, limit: limit, now, redactor) }
    }

    private func pending(_ direction: Direction, limit: Int, _ now: Int64, _ redactor: Redactor) -> [PendingRequest] {
        var pending: [PendingRequest] = []
        (direction == .send ? send : recv).forEach(limit: limit) { request, id, to in
            pending.append(
                PendingRequest(
                    direction: direction,
                    sequence: request.sequence,
                    id: id.string(),
                    to: to.isEmpty ? nil : redactor.disclose(address: to.string()),
                    summary: request.summary.map { "\($0)" },
                    age: now - request.monotonic
                )
            )
        }
        return pending
    }

    /// Whether a direction has an unanswered request.
    func isPending(_ direction: Direction) -> Bool { (direction == .send ? send.count : recv.count) > 0 }

    /// Returns the time at which the oldest unanswered ping of this direction was forwarded, in nanoseconds of the run.
    func oldestPing(_ direction: Direction) -> Int64? { direction == .send ? send.oldestPing : recv.oldestPing }

    /// Removes and returns the request that an answer in `direction` belongs to; nil if there is none.
    ///
    /// - Parameter isAlone: Whether the id alone identifies the request, so that the addresses are not compared.
    mutating func answer(
        _ direction: Direction,
        id: Span<UInt8>,
        from: Span<UInt8>,
        to: Span<UInt8> = Span(),
        jid: String?,
        domain: String?,
        byIDAlone isAlone: Bool = false
    ) -> Request? {
        switch direction.opposite {
        case .send: send.take(id: id, address: from, asker: to, jid: jid, domain: domain, byIDAlone: isAlone)
        case .recv: recv.take(id: id, address: from, asker: to, jid: nil, domain: nil, byIDAlone: isAlone)
        }
    }

    /// Adds the requests of another tracker.
    mutating func append(_ other: IQTracker) {
        forgotten += send.append(other.send) + recv.append(other.recv)
    }

    /// Approximate memory of the pending requests in bytes.
    var memory: Int { byteCount + 256 * count }

    // MARK: Items of a session

    /// Stores the request in an item. Ids and addresses with character references are compared without decoding them,
    /// because each peer writes an id or address the same way each time.
    mutating func store(
        _ head: StanzaHead,
        _ item: Span<UInt8>,
        _ direction: Direction,
        _ record: borrowing Record,
        _ purpose: Purpose,
        _ info: borrowing SessionInfo
    ) {
        store(
            direction,
            id: item.slice(head.id?.range ?? .empty),
            to: item.slice(head.to?.range ?? .empty),
            from: info.hasManyUsers ? item.slice(head.from?.range ?? .empty) : Span(),
            sequence: record.sequence,
            at: record.monotonic,
            purpose: purpose,
            summary: record.summary
        )
    }

    /// Removes and returns the request that an item answers; nil if there is none.
    mutating func answer(
        _ head: StanzaHead,
        _ item: Span<UInt8>,
        _ direction: Direction,
        _ info: borrowing SessionInfo,
        byIDAlone isAlone: Bool = false
    ) -> Request? {
        answer(
            direction,
            id: item.slice(head.id?.range ?? .empty),
            from: item.slice(head.from?.range ?? .empty),
            to: info.hasManyUsers ? item.slice(head.to?.range ?? .empty) : Span(),
            jid: info.jid,
            domain: info.domain,
            byIDAlone: isAlone
        )
    }
}
