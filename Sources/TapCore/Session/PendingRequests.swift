internal import TapRecord
import XMPPCore

/// The unanswered iq requests of one direction, oldest first.
///
/// Adding a request and finding the request of an answer are O(1), however many requests are pending. Requests are
/// indexed by a hash of their id, and at most ``IQTracker/capacityPerID`` requests of one hash are stored. The hash is
/// seeded at random for each process, so peers cannot construct collisions. Addresses are parsed only if the answer
/// does not repeat the bytes of the request's address: the answer's address once, the request's address once for all
/// answers.
struct PendingRequests {
    /// The index that means "no request".
    private static let none: Int32 = -1

    /// The neighbours of a request in a list.
    private struct Links: BitwiseCopyable {
        var older = none
        var newer = none
    }

    /// A doubly linked list of indices of `slots`.
    private struct List: BitwiseCopyable {
        var oldest = none
        var newest = none
        var count = 0
    }

    /// The kinds of list that contain a request.
    private enum Order: Int {
        case age
        /// Requests with the same hash of the id.
        case id
        case ping
    }

    private struct Slot {
        var request: IQTracker.Request
        var hash: Int
        /// The bytes of the id, of `to` and, on a stream of many users, of `from`.
        var bytes: [UInt8]
        var idCount: Int
        var toCount: Int
        /// The parsed addresses; nil until an answer needs them.
        var target: AddressKey?
        var asker: AddressKey?
        var links: InlineArray<3, Links>

        /// The number of bytes that count towards ``IQTracker/byteCapacity``.
        var size: Int { bytes.count + (request.summary?.byteCount ?? 0) }

        var id: Span<UInt8> {
            @_lifetime(borrow self)
            get { bytes.span.extracting(0..<idCount) }
        }

        var to: Span<UInt8> {
            @_lifetime(borrow self)
            get { bytes.span.extracting(idCount..<idCount + toCount) }
        }

        var from: Span<UInt8> {
            @_lifetime(borrow self)
            get { bytes.span.extracting(idCount + toCount..<bytes.count) }
        }
    }

    /// The number of slots that stay allocated when no request is pending.
    private static let idleSlots = 64

    private let hashMask: Int
    private var slots: [Slot] = []
    /// The first unused slot. Unused slots are linked by ``Links/newer`` of ``Order/age``.
    private var free = none
    private var ages = List()
    private var pings = List()
    private var byID: [Int: List] = [:]
    /// The session's own JID, parsed once.
    private var own: (jid: String, key: OwnKey)?

    /// The number of bytes of all ids, addresses and summaries.
    private(set) var byteCount = 0
    /// The number of requests that were compared with an answer or evicted so far, as a measure of work.
    private(set) var visits = 0
    /// The number of addresses that were parsed so far, as a measure of work.
    private(set) var parses = 0

    /// Creates an empty list.
    ///
    /// - Parameter hashMask: The bits of the id's hash that are used. Tests clear bits to make ids collide.
    init(hashMask: Int = -1) { self.hashMask = hashMask }

    var count: Int { ages.count }

    /// The time at which the oldest unanswered ping was forwarded, in nanoseconds of the run; nil if there is none.
    var oldestPing: Int64? { pings.count > 0 ? slots[Int(pings.oldest)].request.monotonic : nil }

    /// Calls `body` with the oldest requests, at most `limit`, each with its id and its `to`.
    func forEach(limit: Int, _ body: (IQTracker.Request, _ id: Span<UInt8>, _ to: Span<UInt8>) -> Void) {
        var place = ages.oldest
        for _ in 0..<limit where place != Self.none {
            let slot = slots[Int(place)]
            body(slot.request, slot.id, slot.to)
            place = slot.links[Order.age.rawValue].newer
        }
    }

    // MARK: Requests

    /// Adds a request; returns the number of requests that were evicted to make space, or 1 if the request itself is
    /// too large.
    mutating func add(
        _ request: consuming IQTracker.Request,
        id: Span<UInt8>,
        to: Span<UInt8>,
        from: Span<UInt8>
    ) -> Int {
        let isPing = request.isPing
        let size = id.count + to.count + from.count + (request.summary?.byteCount ?? 0)
        guard size <= IQTracker.byteCapacity else { return 1 }
        var evicted = 0
        while count > 0, count >= IQTracker.capacity || byteCount + size > IQTracker.byteCapacity {
            evict(ages.oldest)
            evicted += 1
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(id.count + to.count + from.count)
        bytes.append(id)
        bytes.append(to)
        bytes.append(from)
        let hash = hash(id)
        let place = insert(
            Slot(
                request: request,
                hash: hash,
                bytes: bytes,
                idCount: id.count,
                toCount: to.count,
                links: InlineArray(repeating: Links())
            )
        )
        byteCount += size
        Self.append(place, to: &ages, .age, &slots)
        if isPing { Self.append(place, to: &pings, .ping, &slots) }
        let sameID = Self.append(place, to: &byID[hash, default: List()], .id, &slots)
        if sameID.count > IQTracker.capacityPerID {
            evict(sameID.oldest)
            evicted += 1
        }
        return evicted
    }

    /// Adds the requests of another list; returns the number of requests that were evicted to make space.
    mutating func append(_ other: PendingRequests) -> Int {
        var evicted = 0
        var place = other.ages.oldest
        while place != Self.none {
            let slot = other.slots[Int(place)]
            evicted += add(slot.request, id: slot.id, to: slot.to, from: slot.from)
            place = slot.links[Order.age.rawValue].newer
        }
        return evicted
    }

    private mutating func insert(_ slot: consuming Slot) -> Int32 {
        guard free != Self.none else {
            slots.append(slot)
            return Int32(truncatingIfNeeded: slots.count - 1)
        }
        let place = free
        free = slots[Int(place)].links[Order.age.rawValue].newer
        slots[Int(place)] = slot
        return place
    }

    private mutating func evict(_ place: Int32) {
        visits += 1
        _ = remove(place)
    }

    private mutating func remove(_ place: Int32) -> IQTracker.Request {
        let request = slots[Int(place)].request
        byteCount -= slots[Int(place)].size
        Self.remove(place, from: &ages, .age, &slots)
        if request.isPing { Self.remove(place, from: &pings, .ping, &slots) }
        if let sameID = byID.index(forKey: slots[Int(place)].hash) {
            Self.remove(place, from: &byID.values[sameID], .id, &slots)
            if byID.values[sameID].count == 0 { byID.remove(at: sameID) }
        }
        if count == 0, slots.count > Self.idleSlots {
            slots = []
            byID = [:]
            free = Self.none
        } else {
            slots[Int(place)].bytes = []
            slots[Int(place)].request = IQTracker.Request(sequence: 0, monotonic: 0, purpose: .ordinary)
            slots[Int(place)].links[Order.age.rawValue].newer = free
            free = place
        }
        return request
    }

    // MARK: Answers

    /// The parsed addresses of an answer; nil until a comparison needs them.
    private struct AnswerKeys {
        var answerer: AddressKey?
        var asker: AddressKey?
    }

    /// Removes and returns the oldest request that matches an answer from `address` to `asker`; nil if there is none.
    ///
    /// - Parameter isAlone: Whether to compare the id only.
    mutating func take(
        id: Span<UInt8>,
        address: Span<UInt8>,
        asker: Span<UInt8>,
        jid: String?,
        domain: String?,
        byIDAlone isAlone: Bool = false
    ) -> IQTracker.Request? {
        guard let sameID = byID[hash(id)] else { return nil }
        var keys = AnswerKeys()
        var place = sameID.oldest
        while place != Self.none {
            visits += 1
            let index = Int(place)
            if slots[index].id.equals(id),
                isAlone
                    || isAsker(asker, index, &keys)
                        && isAnswerer(address, index, &keys, jid: jid, domain: domain)
            {
                return remove(place)
            }
            place = slots[index].links[Order.id.rawValue].newer
        }
        return nil
    }

    /// Returns whether an answer from `address` may belong to the request.
    private mutating func isAnswerer(
        _ address: Span<UInt8>,
        _ index: Int,
        _ keys: inout AnswerKeys,
        jid: String?,
        domain: String?
    ) -> Bool {
        if slots[index].to.equals(address) { return true }
        let hasTarget = slots[index].toCount > 0
        guard !address.isEmpty else {
            // An answer without `from` is from the account itself, which the request's `to` may name in any form (RFC
            // 6120 §8.1.2.1).
            guard let own = ownKey(jid), hasTarget else { return true }
            let target = targetKey(index)
            return target.bare == own.bare || !target.hasLocal && target.domain == own.domain
                || domain.map { slots[index].to.equals($0.utf8.span) } ?? false
        }
        if !hasTarget, jid == nil { return true }
        let answerer = key(of: address, &keys.answerer)
        guard !hasTarget else { return targetKey(index).full == answerer.full }
        guard let own = ownKey(jid) else { return true }
        return answerer.hasLocal
            ? answerer.full == own.full || answerer.full == own.fullOfBare : answerer.domain == own.domain
    }

    /// Returns whether `address` may be the request's sender: it must match if both are known.
    private mutating func isAsker(_ address: Span<UInt8>, _ index: Int, _ keys: inout AnswerKeys) -> Bool {
        let isKnown = slots[index].idCount + slots[index].toCount < slots[index].bytes.count
        guard isKnown, !address.isEmpty, !slots[index].from.equals(address) else { return true }
        return askerKey(index).full == key(of: address, &keys.asker).full
    }

    private mutating func key(of address: Span<UInt8>, _ known: inout AddressKey?) -> AddressKey {
        if let known { return known }
        parses += 1
        let key = AddressKey(Address(utf8: address))
        known = key
        return key
    }

    private mutating func targetKey(_ index: Int) -> AddressKey {
        if let known = slots[index].target { return known }
        parses += 1
        let key = AddressKey(Address(utf8: slots[index].to))
        slots[index].target = key
        return key
    }

    private mutating func askerKey(_ index: Int) -> AddressKey {
        if let known = slots[index].asker { return known }
        parses += 1
        let key = AddressKey(Address(utf8: slots[index].from))
        slots[index].asker = key
        return key
    }

    private mutating func ownKey(_ jid: String?) -> OwnKey? {
        guard let jid else { return nil }
        if let own, own.jid == jid { return own.key }
        parses += 1
        let key = OwnKey(Address(jid))
        own = (jid, key)
        return key
    }

    private func hash(_ id: Span<UInt8>) -> Int {
        var hasher = Hasher()
        id.withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize() & hashMask
    }

    // MARK: Lists

    /// Appends a slot to a list; returns the list.
    @discardableResult
    private static func append(_ place: Int32, to list: inout List, _ order: Order, _ slots: inout [Slot]) -> List {
        slots[Int(place)].links[order.rawValue] = Links(older: list.newest, newer: none)
        if list.newest == none {
            list.oldest = place
        } else {
            slots[Int(list.newest)].links[order.rawValue].newer = place
        }
        list.newest = place
        list.count += 1
        return list
    }

    private static func remove(_ place: Int32, from list: inout List, _ order: Order, _ slots: inout [Slot]) {
        let links = slots[Int(place)].links[order.rawValue]
        if links.older == none {
            list.oldest = links.newer
        } else {
            slots[Int(links.older)].links[order.rawValue].newer = links.newer
        }
        if links.newer == none {
            list.newest = links.older
        } else {
            slots[Int(links.newer)].links[order.rawValue].older = links.older
        }
        list.count -= 1
    }
}

/// Hashes of the forms of an address, to compare addresses without parsing them again. The hashes are seeded at random
/// for each process: two different addresses have the same hash with a probability of 2⁻⁶⁴, which peers cannot
/// increase.
private struct AddressKey: BitwiseCopyable {
    let full: Int
    let bare: Int
    let domain: Int
    let hasLocal: Bool

    init(_ address: Address) {
        full = address.hashValue
        (bare, domain) = address.bareHashes()
        hasLocal = address.local != nil
    }
}

/// Hashes of the forms of the session's own JID: see ``AddressKey``.
private struct OwnKey: BitwiseCopyable {
    let full: Int
    /// The hash of the bare JID, as a full address.
    let fullOfBare: Int
    let bare: Int
    let domain: Int

    init(_ address: Address) {
        let key = AddressKey(address)
        (full, bare, domain) = (key.full, key.bare, key.domain)
        fullOfBare = address.bare.hashValue
    }
}
