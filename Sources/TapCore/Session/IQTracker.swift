import XMPPCore

/// Pairs iq requests with their answers, by id, direction and address (RFC 6120 §8.2.3, §10.3.3).
///
/// An answer goes the other way, carries the request's id, and comes from where the request went: a request without
/// `to` is answered by the account itself, which may write no address, its bare or full JID, or its domain.
struct IQTracker {
    /// Requests kept in each direction; beyond it the oldest is given up, so that a peer that never answers costs
    /// little.
    static let capacity = 1024
    /// Bytes of ids, addresses and summaries kept in each direction: 256 for each of as many requests as there may be.
    static let byteCapacity = 256 << 10

    /// A request that has no answer yet.
    struct Request {
        var sequence: UInt64
        var monotonic: Int64
        var hash: UInt64
        /// The id, then the address it went to, then the one it came from where that matters.
        var bytes: [UInt8]
        var idCount: Int
        var toCount: Int
        var purpose: Purpose
        /// What it asks for, in words.
        var summary: String?

        /// Bytes it keeps.
        var size: Int { bytes.count + (summary?.utf8.count ?? 0) }
    }

    /// What the session wants to be told of an answer.
    enum Purpose: Sendable {
        case ordinary
        /// It asks for nothing but a sign of life (XEP-0199).
        case ping
        case bind
        /// It begins a session (RFC 3921 §3).
        case session
        /// It asks what legacy authentication takes.
        case legacyFields
        case legacyAuthentication(jid: String?)
        case registration
    }

    /// Requests in the order in which they came.
    private struct Waiting {
        var requests: [Request] = []
        /// Of all of them together.
        var bytes = 0

        /// Adds a request; gives how many were given up for it.
        mutating func add(_ request: Request) -> Int {
            guard request.size <= byteCapacity else { return 1 }
            var spare = 0
            while spare < requests.count,
                requests.count - spare >= capacity || bytes + request.size > byteCapacity
            {
                bytes -= requests[spare].size
                spare += 1
            }
            requests.removeFirst(spare)
            requests.append(request)
            bytes += request.size
            return spare
        }

        mutating func remove(at index: Int) -> Request {
            bytes -= requests[index].size
            return requests.remove(at: index)
        }
    }

    private var requests: (send: Waiting, recv: Waiting) = (Waiting(), Waiting())
    /// Requests given up because there were too many.
    private(set) var forgotten = 0

    /// Requests waiting for an answer.
    var count: Int { requests.send.requests.count + requests.recv.requests.count }
    /// Bytes of their ids, addresses and summaries.
    var byteCount: Int { requests.send.bytes + requests.recv.bytes }

    /// - Parameter from: Who asks, on a stream of many users; on a client's it is always the same and left empty.
    mutating func note(
        _ direction: Direction,
        id: Span<UInt8>,
        to: Span<UInt8>,
        from: Span<UInt8> = Span(),
        sequence: UInt64,
        at monotonic: Int64,
        purpose: Purpose,
        summary: String? = nil
    ) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(id.count + to.count + from.count)
        bytes.append(id)
        bytes.append(to)
        bytes.append(from)
        let request = Request(
            sequence: sequence,
            monotonic: monotonic,
            hash: Self.hash(id),
            bytes: bytes,
            idCount: id.count,
            toCount: to.count,
            purpose: purpose,
            summary: summary
        )
        switch direction {
        case .send: forgotten += requests.send.add(request)
        case .recv: forgotten += requests.recv.add(request)
        }
    }

    /// When the ping was sent, in this direction, that has waited longest for its answer; in nanoseconds of the run.
    func oldestPing(_ direction: Direction) -> Int64? {
        let waiting = direction == .send ? requests.send : requests.recv
        return waiting.requests.first {
            if case .ping = $0.purpose { true } else { false }
        }?.monotonic
    }

    /// Takes the request that an answer going in `direction` belongs to; nil where there is none.
    mutating func answer(
        _ direction: Direction,
        id: Span<UInt8>,
        from: Span<UInt8>,
        to: Span<UInt8> = Span(),
        jid: String?,
        domain: String?
    ) -> Request? {
        switch direction.opposite {
        case .send: Self.take(from: &requests.send, id: id, address: from, asker: to, jid: jid, domain: domain)
        case .recv: Self.take(from: &requests.recv, id: id, address: from, asker: to, jid: nil, domain: nil)
        }
    }

    private static func take(
        from waiting: inout Waiting,
        id: Span<UInt8>,
        address: Span<UInt8>,
        asker: Span<UInt8>,
        jid: String?,
        domain: String?
    ) -> Request? {
        let hash = hash(id)
        for (index, request) in waiting.requests.enumerated() where request.hash == hash {
            guard request.idCount == id.count else { continue }
            let bytes = request.bytes
            guard bytes.span.extracting(0..<id.count).equals(id),
                isAnswerer(
                    address,
                    of: bytes.span.extracting(id.count..<id.count + request.toCount),
                    jid: jid,
                    domain: domain
                ), isAsker(asker, bytes.span.extracting(id.count + request.toCount..<bytes.count))
            else { continue }
            return waiting.remove(at: index)
        }
        return nil
    }

    /// Whether an answer from `address` can be one to a request sent to `target`.
    private static func isAnswerer(
        _ address: Span<UInt8>,
        of target: Span<UInt8>,
        jid: String?,
        domain: String?
    ) -> Bool {
        if address.equals(target) { return true }
        // A server that lets pass what is no JID by the letter answers to it as well.
        let own = jid.map { Address($0) }
        guard !address.isEmpty else {
            // No `from`: the account itself, whichever way the request named it (§8.1.2.1).
            guard let own, !target.isEmpty else { return true }
            let to = Address(utf8: target)
            return to.matches(own, in: .bare) || to.local == nil && to.matches(own, in: .domain)
                || to.raw == domain
        }
        let from = Address(utf8: address)
        guard target.isEmpty else { return Address(utf8: target) == from }
        guard let own else { return true }
        return from.local == nil ? from.matches(own, in: .domain) : from == own || from == own.bare
    }

    /// Whether an answer to `address` can be one to who asked, where it is known who did.
    private static func isAsker(_ address: Span<UInt8>, _ asker: Span<UInt8>) -> Bool {
        asker.isEmpty || address.isEmpty || address.equals(asker) || Address(utf8: address) == Address(utf8: asker)
    }

    private static func hash(_ bytes: Span<UInt8>) -> UInt64 {
        // FNV-1a: ids are short, and nobody gains by making two of his own collide.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for index in bytes.indices {
            hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01B3
        }
        return hash
    }
}
