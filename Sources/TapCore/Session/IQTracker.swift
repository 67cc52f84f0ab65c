internal import TapRecord
import XMPPCore

/// Pairs iq requests with their answers, by id, direction and address (RFC 6120 §8.2.3, §10.3.3).
///
/// An answer has the opposite direction, the request's id, and the request's `to` as its `from`: a request without `to`
/// is answered by the account itself, which may write no address, its bare or full JID, or its domain.
///
/// Each direction is bounded by ``capacity``, ``byteCapacity`` and ``capacityPerID``. Beyond a bound the oldest request is
/// evicted, and its answer is recorded without request and round trip. A request and an answer cost O(1), however many
/// requests are pending (``PendingRequests``).
struct IQTracker {
    /// Maximum number of requests in each direction.
    static let capacity = 1024
    /// Maximum bytes of ids, addresses and summaries in each direction: 256 for each of ``capacity`` requests.
    static let byteCapacity = 256 << 10
    /// Maximum number of requests with the same id in each direction: each answer is compared with all of them. Ids are
    /// unique for each sender (RFC 6120 §8.1.3), but on a component's or server's stream several users may choose the same.
    static let capacityPerID = 32

    /// A request without an answer so far.
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

    /// The session's action on an answer.
    enum Purpose: Sendable {
        case ordinary
        /// A ping: it only requests an answer (XEP-0199).
        case ping
        case bind
        /// It starts a session (RFC 3921 §3).
        case session
        /// It requests the fields of legacy authentication.
        case legacyFields
        case legacyAuthentication(jid: String?)
        case registration
    }

    private var send: PendingRequests
    private var recv: PendingRequests
    /// Number of requests that were evicted.
    private(set) var forgotten = 0
    private var isBidirectional = false

    /// - Parameter hashMask: See ``PendingRequests/init(hashMask:)``.
    init(hashMask: Int = -1) {
        send = PendingRequests(hashMask: hashMask)
        recv = PendingRequests(hashMask: hashMask)
    }

    /// The stream carries stanzas of both servers (XEP-0288).
    mutating func observeBidirectional() { isBidirectional = true }

    /// Whether answers arrive on the stream of their request. Servers use one stream for each way, unless one carries
    /// both.
    func expectsAnswers(on kind: SessionInfo.StreamKind) -> Bool { kind != .server || isBidirectional }

    /// Number of pending requests.
    var count: Int { send.count + recv.count }
    /// Bytes of their ids, addresses and summaries.
    var byteCount: Int { send.byteCount + recv.byteCount }
    /// Work so far: requests compared with an answer or evicted.
    var visits: Int { send.visits + recv.visits }
    /// Work so far: addresses parsed.
    var parses: Int { send.parses + recv.parses }

    /// - Parameter from: The sender, on a stream of many users; empty on a client's stream, since it never changes.
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

    /// The unanswered requests of each direction, the oldest first: at most `limit` of each.
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

    /// When the oldest unanswered ping of this direction was forwarded, in nanoseconds of the run.
    func oldestPing(_ direction: Direction) -> Int64? { direction == .send ? send.oldestPing : recv.oldestPing }

    /// Removes and returns the request that an answer in `direction` belongs to; nil if there is none.
    mutating func answer(
        _ direction: Direction,
        id: Span<UInt8>,
        from: Span<UInt8>,
        to: Span<UInt8> = Span(),
        jid: String?,
        domain: String?
    ) -> Request? {
        switch direction.opposite {
        case .send: send.take(id: id, address: from, asker: to, jid: jid, domain: domain)
        case .recv: recv.take(id: id, address: from, asker: to, jid: nil, domain: nil)
        }
    }

    // MARK: Items of a session

    /// Stores a request with the texts of its item. Ids and addresses with character references are compared as
    /// written: each peer writes its own the same way.
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
        _ info: borrowing SessionInfo
    ) -> Request? {
        answer(
            direction,
            id: item.slice(head.id?.range ?? .empty),
            from: item.slice(head.from?.range ?? .empty),
            to: info.hasManyUsers ? item.slice(head.to?.range ?? .empty) : Span(),
            jid: info.jid,
            domain: info.domain
        )
    }
}
