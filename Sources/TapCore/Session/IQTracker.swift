import XMPPCore

/// Pairs iq requests with their answers, by id, direction and address (RFC 6120 §8.2.3, §10.3.3).
///
/// An answer goes the other way, carries the request's id, and comes from where the request went: a request without
/// `to` is answered by the account itself, which may write no address, its bare or full JID, or its domain.
struct IQTracker {
    /// Requests kept in each direction; beyond it the oldest is given up, so that a peer that never answers costs
    /// little.
    static let capacity = 1024

    /// A request that has no answer yet.
    struct Request {
        var sequence: UInt64
        var monotonic: Int64
        var hash: UInt64
        /// The id, then the address it went to.
        var bytes: [UInt8]
        var idCount: Int
        var purpose: Purpose
    }

    /// What the session wants to be told of an answer.
    enum Purpose: Sendable {
        case ordinary
        case bind
        case legacyAuthentication(jid: String?)
        case registration
    }

    private var requests: (send: [Request], recv: [Request]) = ([], [])
    /// Requests given up because there were too many.
    private(set) var forgotten = 0

    /// Requests waiting for an answer.
    var count: Int { requests.send.count + requests.recv.count }

    mutating func note(
        _ direction: Direction,
        id: Span<UInt8>,
        to: Span<UInt8>,
        sequence: UInt64,
        at monotonic: Int64,
        purpose: Purpose
    ) {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(id.count + to.count)
        bytes.append(id)
        bytes.append(to)
        let request = Request(
            sequence: sequence,
            monotonic: monotonic,
            hash: Self.hash(id),
            bytes: bytes,
            idCount: id.count,
            purpose: purpose
        )
        switch direction {
        case .send: Self.add(request, to: &requests.send, &forgotten)
        case .recv: Self.add(request, to: &requests.recv, &forgotten)
        }
    }

    private static func add(_ request: Request, to list: inout [Request], _ forgotten: inout Int) {
        if list.count >= capacity {
            list.removeFirst()
            forgotten += 1
        }
        list.append(request)
    }

    /// Takes the request that an answer going in `direction` belongs to; nil where there is none.
    mutating func answer(
        _ direction: Direction,
        id: Span<UInt8>,
        from: Span<UInt8>,
        jid: String?,
        domain: String?
    ) -> Request? {
        switch direction.opposite {
        case .send: Self.take(from: &requests.send, id: id, address: from, jid: jid, domain: domain)
        case .recv: Self.take(from: &requests.recv, id: id, address: from, jid: nil, domain: nil)
        }
    }

    private static func take(
        from list: inout [Request],
        id: Span<UInt8>,
        address: Span<UInt8>,
        jid: String?,
        domain: String?
    ) -> Request? {
        let hash = hash(id)
        for index in list.indices {
            guard list[index].hash == hash, list[index].idCount == id.count else { continue }
            let bytes = list[index].bytes
            guard bytes.span.extracting(0..<id.count).equals(id),
                isAnswerer(address, of: bytes.span.extracting(id.count..<bytes.count), jid: jid, domain: domain)
            else { continue }
            return list.remove(at: index)
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
        guard let from = address.isEmpty ? nil : JID(address.string()) else {
            // No `from`: the account itself, whichever way the request named it (§8.1.2.1).
            guard let own = jid.flatMap({ JID($0) }), let to = JID(target.string()) else {
                return address.isEmpty && (target.isEmpty || jid == nil || target.string() == domain)
            }
            return to.matches(own, in: .bare) || to.isServer && to.domain == own.domain
        }
        guard target.isEmpty else {
            guard let to = JID(target.string()) else { return false }
            return to == from
        }
        guard let own = jid.flatMap({ JID($0) }) else { return true }
        return from.isServer ? from.matches(own, in: .domain) : from == own || from == own.bare
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
