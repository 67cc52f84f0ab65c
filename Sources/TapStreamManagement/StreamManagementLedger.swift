package import TapRecord
package import XMPPCore

/// Maps the stanza counts of both ends of one direction since stream management was enabled (XEP-0198 §4), and
/// translates the receiver's acknowledgements for the sender.
///
/// The sender counts the stanzas that it sends, the receiver those that it gets: only the sender counts a dropped
/// stanza, only the receiver an injected one. The ledger records every stanza:
///
/// | stanza | calls |
/// |---|---|
/// | passed | ``pass()`` |
/// | passed with edits | ``pass(_:)`` |
/// | dropped | ``drop(_:)`` |
/// | answered | ``drop(_:)``, and ``inject()`` in the ledger of the other direction |
/// | duplicated | ``pass(_:)``, and ``inject()`` for each copy |
/// | held, with the stanzas after it | nothing until it is released |
/// | injected | ``inject()`` |
///
/// An acknowledgement of the receiver is translated to the last stanza up to which all stanzas are handled: relayed
/// ones by the receiver, dropped ones by xmpptap. So a correct sender repeats only unhandled stanzas and loses none,
/// and the counts that it gets are never too high and never decrease.
///
/// Memory is bounded to 2 KiB per direction even without acknowledgements, in addition to injected stanzas that are
/// kept for another injection. Runs of passed stanzas take no memory, and acknowledged events are removed. Beyond the
/// limit (some 400 decisions or events), the oldest events are merged and acknowledged as a whole, and their decisions
/// are forgotten: such a stanza is judged again if it is sent again. Counts are never wrong.
package struct StreamManagementLedger: Sendable {
    /// Maximum number of injected stanzas that are kept.
    package static let capacity = 128
    /// Maximum number of bytes of injected stanzas that are kept, to be injected again if they are lost.
    package static let injectedBytes = 256 << 10
    /// Number of events at which an acknowledgement should be requested.
    static let crowd = 16

    /// Identifies a stanza that is sent again, with the rule that decided about it.
    package struct Mark: Sendable, Hashable {
        /// The fingerprint, see ``StreamManagementLedger/fingerprint(_:_:)``.
        package var fingerprint: UInt16
        /// The number of the rule that decided, as assigned by the caller.
        package var rule: UInt32

        /// Creates a mark for a stanza that was not passed unchanged.
        package init(fingerprint: UInt16, rule: UInt32 = 0) {
            self.fingerprint = fingerprint
            self.rule = rule
        }
    }

    /// The earlier decision about a stanza that is sent again.
    package enum Outcome: Sendable, Hashable {
        /// The stanza was passed, but the receiver has not handled it.
        case passed
        /// The stanza was dropped or answered.
        case dropped
    }

    /// A stanza that the sender sends again after a resumption (XEP-0198 §5).
    package struct Retransmission: Sendable, Hashable {
        /// The number of the stanza, the same as on the earlier connection.
        package let number: UInt64
        /// The earlier decision; nil if the stanza passed unchanged or the decision was forgotten. Stateless rules
        /// judge it again.
        package let outcome: Outcome?
        /// The rule that decided, if there is an outcome.
        package let rule: UInt32
    }

    /// The translation of a receiver's acknowledgement.
    package struct Acknowledgement: Sendable, Hashable {
        /// The count for the sender.
        package let count: UInt32
        /// The error in the receiver's own count; nil if there is none.
        package let finding: AcknowledgementFinding?
    }

    /// Whether stream management is enabled in this direction.
    package private(set) var isCounting = false
    /// Whether the counts have ever differed, even if they are equal again.
    package private(set) var hasDiverged = false
    /// Number of stanzas that the sender has sent so far.
    package private(set) var sent: UInt64 = 0
    /// Number of stanzas sent to the receiver.
    package private(set) var delivered: UInt64 = 0
    /// Number of stanzas that the receiver has acknowledged, including injected ones.
    package private(set) var handled: UInt64 = 0
    /// Number of stanzas acknowledged to the sender.
    package private(set) var acknowledged: UInt64 = 0

    /// Events of stanzas that did not pass unchanged and are not acknowledged to the sender.
    private var events = LedgerEvents(0, 0)
    /// Injected stanzas that the receiver has not acknowledged, with their numbers at the receiver.
    private var injected: [(number: UInt64, item: [UInt8])] = []
    /// Injected stanzas that were lost with an earlier connection.
    private var lost: [[UInt8]] = []
    /// Decisions about stanzas of an earlier connection that were not sent again yet.
    private var earlier = LedgerEvents(0, 0)
    /// The last stanza number of an earlier connection.
    private var repeatedEnd: UInt64 = 0
    private var audit = AcknowledgementAudit(startingAt: 0)

    /// Creates the ledger of a direction without stream management.
    package init() {}

    /// Creates a ledger that counts from `count`, the current count of both ends.
    package init(startingAt count: UInt32) {
        let count = UInt64(count)
        isCounting = true
        (sent, delivered, handled, acknowledged) = (count, count, count, count)
        events = LedgerEvents(count, count)
        repeatedEnd = count
        audit = AcknowledgementAudit(startingAt: count)
    }

    // MARK: Stanzas

    /// Records that the sender's next stanza passes unchanged.
    @inline(__always)
    package mutating func pass() {
        sent &+= 1
        delivered &+= 1
    }

    /// Records that the sender's next stanza passes, with a mark to recognise it when it is sent again.
    package mutating func pass(_ mark: Mark) {
        record(.passedAsDecided, mark)
        pass()
    }

    /// Records that the sender's next stanza is dropped.
    package mutating func drop(_ mark: Mark? = nil) {
        record(mark == nil ? .dropped : .droppedAsDecided, mark)
        sent &+= 1
    }

    /// Records an injected stanza; returns its number at the receiver.
    ///
    /// - Parameter item: The stanza to return from ``takeLost()`` if the connection is lost before it is acknowledged;
    ///   nil if it must not be injected again.
    @discardableResult
    package mutating func inject(keeping item: [UInt8]? = nil) -> UInt64 {
        record(.injected)
        delivered &+= 1
        if let item, isCounting, item.count <= Self.injectedBytes {
            injected.append((delivered, item))
            var size = injected.reduce(0) { $0 + $1.item.count }
            while injected.count > Self.capacity || size > Self.injectedBytes {
                size -= injected.removeFirst().item.count
            }
        }
        return delivered
    }

    /// Keeps a stanza that could not be injected, to inject it after a resumption; returns false if the limits are
    /// reached.
    @discardableResult
    package mutating func keep(lost item: [UInt8]) -> Bool {
        let size = lost.reduce(item.count) { $0 + $1.count }
        guard isCounting, lost.count < Self.capacity, size <= Self.injectedBytes else { return false }
        lost.append(item)
        return true
    }

    /// Returns and removes the injected stanzas that were lost with an earlier connection, oldest first.
    package mutating func takeLost() -> [[UInt8]] {
        defer { lost = [] }
        return lost
    }

    private mutating func record(_ kind: LedgerEvents.Kind, _ mark: Mark? = nil) {
        guard isCounting else { return }
        if kind != .passedAsDecided { hasDiverged = true }
        events.append(LedgerEvents.Event(kind, mark), after: sent)
        guard earlier.byteCount > 0 else { return }
        earlier.forget(upTo: sent)
        earlier.shrink(to: LedgerEvents.byteCapacity - events.byteCount)
    }

    // MARK: Acknowledgements

    /// Records a request (`<r/>`) to the receiver, from the sender or from xmpptap.
    package mutating func request() { audit.request(delivered) }

    /// Handles an acknowledgement of the receiver; returns its translation for the sender.
    ///
    /// A count that is too high, or lower than an earlier one, does not change the ledger. The sender gets a count that
    /// is wrong by the same number, so that faults of the receiver stay visible.
    ///
    /// - Parameter isAnswer: Whether the count is from an `<a/>`; otherwise it is part of a resumption.
    package mutating func acknowledge(_ count: UInt32, isAnswer: Bool = true) -> Acknowledgement {
        let news = UInt64(count &- UInt32(truncatingIfNeeded: handled))
        guard news <= delivered &- handled else { return refuse(count) }
        handled &+= news
        acknowledged = max(acknowledged, events.senderCount(handled))
        forgetAcknowledged()
        let finding = isAnswer ? audit.answer(handled) : nil
        return Acknowledgement(count: UInt32(truncatingIfNeeded: acknowledged), finding: finding)
    }

    /// Whether a receiver's count is that of more stanzas than the ledger knows, although both ends have counted alike.
    package func isBehind(_ count: UInt32) -> Bool {
        guard isCounting else { return true }
        let news = UInt64(count &- UInt32(truncatingIfNeeded: handled))
        return !hasDiverged && news > delivered &- handled && difference(of: count).isTooHigh
    }

    /// Returns by how much a wrong count is too high or too low. Counts wrap around, so that it can be both: the smaller
    /// difference is chosen.
    private func difference(of count: UInt32) -> (value: UInt32, isTooHigh: Bool) {
        let excess = count &- UInt32(truncatingIfNeeded: delivered)
        let deficit = UInt32(truncatingIfNeeded: handled) &- count
        return excess <= deficit ? (excess, true) : (deficit, false)
    }

    private mutating func refuse(_ count: UInt32) -> Acknowledgement {
        let (difference, isTooHigh) = difference(of: count)
        return isTooHigh
            ? Acknowledgement(
                count: UInt32(truncatingIfNeeded: sent) &+ difference,
                finding: audit.report(.tooHigh, count, UInt64(difference), firstWrong: delivered)
            )
            : Acknowledgement(
                count: UInt32(truncatingIfNeeded: acknowledged) &- difference,
                finding: audit.report(.backwards, count, UInt64(difference), firstWrong: delivered)
            )
    }

    /// Handles an acknowledgement without a valid count.
    mutating func reportUnreadable() -> AcknowledgementFinding? {
        audit.report(.unreadable, 0, 0, firstWrong: delivered)
    }

    /// Whether xmpptap should request an acknowledgement to free memory.
    package var isCrowded: Bool { events.count >= Self.crowd }

    /// Translates a sender's count for the receiver; a difference beyond the known stanzas is kept. Used for the
    /// client's count in a server's error (XEP-0198 §6), which the server received translated.
    package func receiverCount(_ count: UInt32) -> UInt32 {
        let ahead = Int64(Int32(bitPattern: count &- UInt32(truncatingIfNeeded: acknowledged)))
        let count = acknowledged &+ UInt64(bitPattern: ahead)
        guard count <= sent else { return UInt32(truncatingIfNeeded: delivered &+ (count &- sent)) }
        return UInt32(truncatingIfNeeded: events.receiverCount(count))
    }

    private mutating func forgetAcknowledged() {
        events.forget(upTo: acknowledged)
        if !injected.isEmpty { injected.removeAll { $0.number <= handled } }
        earlier.forget(upTo: sent)
    }

    // MARK: Resumption

    /// Handles a resumption on a new connection (XEP-0198 §5), after both ends have received the other's count: the
    /// sender sends unacknowledged stanzas again.
    package mutating func resume() {
        var kept = LedgerEvents(acknowledged, 0)
        for (events, last) in [(events, acknowledged), (earlier, sent)] {
            events.forEachDecision { if $0 > last { kept.append($1, after: $0 &- 1) } }
        }
        earlier = kept
        repeatedEnd = max(repeatedEnd, sent)
        lost += injected.lazy.filter { [handled] in $0.number > handled }.map(\.item)
        injected = []
        (sent, delivered) = (acknowledged, handled)
        events = LedgerEvents(sent, delivered)
        audit.disconnect()
    }

    /// The highest stanza number that the sender has used.
    package var lastNumber: UInt64 { max(sent, repeatedEnd) }

    /// Whether the sender's next stanza was already sent on an earlier connection.
    @inline(__always)
    package var isRepeating: Bool { sent < repeatedEnd }

    /// Returns the earlier decision about the sender's next stanza if it is sent again; nil if it is new.
    ///
    /// The decision is only returned for the same stanza, because a sender that skips a stanza uses its number for
    /// another.
    package func retransmission(_ fingerprint: @autoclosure () -> UInt16) -> Retransmission? {
        guard isRepeating else { return nil }
        let number = sent &+ 1
        guard let decision = earlier.decision(on: number), decision.mark.fingerprint == fingerprint() else {
            return Retransmission(number: number, outcome: nil, rule: 0)
        }
        let outcome = decision.kind == .droppedAsDecided ? Outcome.dropped : .passed
        return Retransmission(number: number, outcome: outcome, rule: decision.mark.rule)
    }

    /// Returns a hash that identifies a stanza when it is sent again: of its kind, `id`, `type`, `from` and `to` as
    /// written. The content is excluded, because servers add to it (XEP-0203).
    package static func fingerprint(_ head: StanzaHead, _ item: Span<UInt8>) -> UInt16 {
        // FNV-1a is short, and the same in each process.
        var hash: UInt32 = 2_166_136_261
        func add(_ range: ByteRange) {
            let bytes = item.slice(range)
            for index in bytes.indices { hash = (hash ^ UInt32(bytes[index])) &* 16_777_619 }
            hash = (hash ^ 0xFF) &* 16_777_619
        }
        add(head.name)
        for attribute in [head.id, head.type, head.from, head.to] { add(attribute?.range ?? .empty) }
        return UInt16(truncatingIfNeeded: hash ^ hash >> 16)
    }

    /// Approximate memory of the ledger in bytes.
    package var byteCount: Int {
        MemoryLayout<Self>.size + events.byteCount + earlier.byteCount
            + injected.reduce(0) { $0 + $1.item.capacity } + lost.reduce(0) { $0 + $1.capacity }
    }
}

/// The ledgers of both directions of a session.
package struct StreamManagementLedgers: Sendable {
    /// The ledger of stanzas from the client to the server.
    package var send: StreamManagementLedger
    /// The ledger of stanzas from the server to the client.
    package var recv: StreamManagementLedger

    /// Creates ledgers of a session without stream management.
    package init() {
        send = StreamManagementLedger()
        recv = StreamManagementLedger()
    }

    /// The ledger of a direction.
    package subscript(direction: Direction) -> StreamManagementLedger {
        @inline(__always) _read { if direction == .send { yield send } else { yield recv } }
        @inline(__always) _modify { if direction == .send { yield &send } else { yield &recv } }
    }

    /// Whether the counts of either direction have ever differed.
    package var hasDiverged: Bool { send.hasDiverged || recv.hasDiverged }

    /// Approximate memory in bytes.
    package var byteCount: Int { send.byteCount + recv.byteCount }
}
