public import TapRecord
public import XMPPCore

/// How the two ends of one direction count its stanzas since stream management began (XEP-0198 §4), and what a count of the
/// receiver's means to the sender.
///
/// The sender counts what it sends, the receiver what it gets: a stanza that is dropped has a number at the sender alone, an
/// injected one at the receiver alone. The ledger records every stanza:
///
/// | what happens to a stanza | calls |
/// |---|---|
/// | it passes | ``pass()`` |
/// | it passes edited | ``pass(_:)`` |
/// | it is dropped | ``drop(_:)`` |
/// | it is answered | ``drop(_:)``, and ``inject()`` in the other direction's ledger |
/// | it is duplicated | ``pass(_:)``, and ``inject()`` for each copy |
/// | it waits, and all that follows with it | nothing, until it is let go |
/// | it is injected | ``inject()`` |
///
/// A count of the receiver reaches the sender as the last stanza up to which all are handled: relayed ones by the
/// receiver, dropped ones by xmpptap. So an honest sender repeats nothing that was handled, loses nothing that
/// was not, and never gets a count that is too high or goes back.
///
/// Memory is bounded, also where nothing is ever acknowledged: 2 KiB a direction, besides injected stanzas that are kept to
/// be injected again. Runs of stanzas that pass take none, and what is acknowledged is forgotten. Beyond that (some 400
/// decisions, or more places at which the counts part) the oldest places become one, which is acknowledged as a whole, and
/// what was decided there is forgotten: such a stanza is decided on anew where it is sent again. No count becomes wrong.
public struct StreamManagementLedger: Sendable {
    /// Injected stanzas that are kept at most.
    public static let capacity = 128
    /// Bytes of injected stanzas that are kept at most, to be injected again where they are lost.
    public static let injectedBytes = 256 << 10
    /// As many events call for an acknowledgement.
    static let crowd = 16

    /// How a stanza is known when it is sent again, and what was done about it.
    public struct Mark: Sendable, Hashable {
        /// See ``StreamManagementLedger/fingerprint(_:_:)``.
        public var fingerprint: UInt16
        /// The rule that decided, as the caller numbers it.
        public var rule: UInt32

        /// A mark for a stanza that is not passed as it came.
        public init(fingerprint: UInt16, rule: UInt32 = 0) {
            self.fingerprint = fingerprint
            self.rule = rule
        }
    }

    /// What became of a stanza that is sent again.
    public enum Outcome: Sendable, Hashable {
        /// It was passed, and the receiver has not handled it.
        case passed
        /// It was dropped or answered.
        case dropped
    }

    /// A stanza of the sender's that is sent again after a resumption (XEP-0198 §5).
    public struct Retransmission: Sendable, Hashable {
        /// Its number, the same as before.
        public let number: UInt64
        /// What was done about it; nil where it passed as it came, or where that is not known any more. Rules that keep
        /// no state decide on it anew.
        public let outcome: Outcome?
        /// The rule that decided, where there is an outcome.
        public let rule: UInt32
    }

    /// What a count of the receiver's comes to.
    public struct Acknowledgement: Sendable, Hashable {
        /// The count that the sender is to get.
        public let count: UInt32
        /// What is wrong with the receiver's own count.
        public let finding: AcknowledgementFinding?
    }

    /// Whether stream management counts in this direction.
    public private(set) var isCounting = false
    /// Whether the counts have ever parted. They may be the same again.
    public private(set) var hasDiverged = false
    /// The sender's stanzas that were decided on.
    public private(set) var sent: UInt64 = 0
    /// Stanzas that were sent to the receiver.
    public private(set) var delivered: UInt64 = 0
    /// Stanzas that the receiver has acknowledged. An injected one is acknowledged when its number is no higher.
    public private(set) var handled: UInt64 = 0
    /// Stanzas that were acknowledged to the sender.
    public private(set) var acknowledged: UInt64 = 0

    /// Stanzas that did not pass as they came, of which the sender has no acknowledgement.
    private var events = LedgerEvents(0, 0)
    /// Injected stanzas, with their numbers at the receiver, that it has not acknowledged.
    private var injected: [(number: UInt64, item: [UInt8])] = []
    /// Those that an earlier connection has lost.
    private var lost: [[UInt8]] = []
    /// What was decided on stanzas that were sent on an earlier connection and not yet again.
    private var earlier = LedgerEvents(0, 0)
    /// The last number on an earlier connection.
    private var repeatedEnd: UInt64 = 0
    private var audit = AcknowledgementAudit(startingAt: 0)

    /// A ledger of a direction without stream management.
    public init() {}

    /// A ledger that begins to count; `count` is what both ends have counted before.
    public init(startingAt count: UInt32) {
        let count = UInt64(count)
        isCounting = true
        (sent, delivered, handled, acknowledged) = (count, count, count, count)
        events = LedgerEvents(count, count)
        repeatedEnd = count
        audit = AcknowledgementAudit(startingAt: count)
    }

    // MARK: Stanzas

    /// The sender's next stanza passes as it came.
    @inline(__always)
    public mutating func pass() {
        sent &+= 1
        delivered &+= 1
    }

    /// The sender's next stanza passes, and is to be known when it is sent again.
    public mutating func pass(_ mark: Mark) {
        record(.passedAsDecided, mark)
        pass()
    }

    /// The sender's next stanza goes no further.
    public mutating func drop(_ mark: Mark? = nil) {
        record(mark == nil ? .dropped : .droppedAsDecided, mark)
        sent &+= 1
    }

    /// The receiver gets a stanza that the sender has not sent; gives its number at the receiver.
    ///
    /// - Parameter item: What to give back by ``takeLost()`` where the connection is lost before the receiver has
    ///   acknowledged it; nil for one that is not to be injected again.
    @discardableResult
    public mutating func inject(keeping item: [UInt8]? = nil) -> UInt64 {
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

    /// Keeps a stanza that could not be injected any more, to be injected when the session is resumed; false where there
    /// is no room.
    @discardableResult
    mutating func keep(lost item: [UInt8]) -> Bool {
        let size = lost.reduce(item.count) { $0 + $1.count }
        guard isCounting, lost.count < Self.capacity, size <= Self.injectedBytes else { return false }
        lost.append(item)
        return true
    }

    /// Takes the injected stanzas that were lost with an earlier connection, the oldest first.
    public mutating func takeLost() -> [[UInt8]] {
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

    /// The receiver is requested to acknowledge (`<r/>`), by the sender or by xmpptap.
    public mutating func request() { audit.request(delivered) }

    /// The receiver has acknowledged `count` stanzas; gives what to tell the sender.
    ///
    /// A count that is too high, or lower than one before, changes nothing here. The sender gets one that is wrong by as
    /// much, so that no fault of the receiver's is hidden.
    ///
    /// - Parameter isAnswer: It is an `<a/>`; otherwise it is part of a resumption.
    public mutating func acknowledge(_ count: UInt32, isAnswer: Bool = true) -> Acknowledgement {
        let news = UInt64(count &- UInt32(truncatingIfNeeded: handled))
        guard news <= delivered &- handled else { return refuse(count) }
        handled &+= news
        acknowledged = max(acknowledged, events.senderCount(handled))
        forgetAcknowledged()
        let finding = isAnswer ? audit.answer(handled) : nil
        return Acknowledgement(count: UInt32(truncatingIfNeeded: acknowledged), finding: finding)
    }

    private mutating func refuse(_ count: UInt32) -> Acknowledgement {
        let excess = count &- UInt32(truncatingIfNeeded: delivered)
        let deficit = UInt32(truncatingIfNeeded: handled) &- count
        // The nearer of the two: counts wrap.
        return excess <= deficit
            ? Acknowledgement(
                count: UInt32(truncatingIfNeeded: sent) &+ excess,
                finding: audit.report(.tooHigh, count, UInt64(excess), firstWrong: delivered)
            )
            : Acknowledgement(
                count: UInt32(truncatingIfNeeded: acknowledged) &- deficit,
                finding: audit.report(.backwards, count, UInt64(deficit), firstWrong: delivered)
            )
    }

    /// The receiver has acknowledged something that is no count.
    mutating func reportUnreadable() -> AcknowledgementFinding? {
        audit.report(.unreadable, 0, 0, firstWrong: delivered)
    }

    /// Whether an acknowledgement would free memory: xmpptap may request one.
    public var isCrowded: Bool { events.count >= Self.crowd }

    /// The receiver's count when the sender's is `count`; how much of that is above or below what there is stays. For
    /// what a server says of a client's count in an error (XEP-0198 §6), which it has got translated.
    public func receiverCount(_ count: UInt32) -> UInt32 {
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

    /// The session goes on with a new connection (XEP-0198 §5), after both ends have got the other's count:
    /// the sender sends again what it has no acknowledgement of.
    public mutating func resume() {
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

    /// The highest number that any stanza of the sender's has had.
    var lastNumber: UInt64 { max(sent, repeatedEnd) }

    /// Whether the sender's next stanza is one that it has sent on an earlier connection.
    @inline(__always)
    public var isRepeating: Bool { sent < repeatedEnd }

    /// What is known of the sender's next stanza where it is sent again; nil where it is new.
    ///
    /// Returns an earlier decision only for the same stanza: a sender that skips one sends others under its number.
    public func retransmission(_ fingerprint: @autoclosure () -> UInt16) -> Retransmission? {
        guard isRepeating else { return nil }
        let number = sent &+ 1
        guard let decision = earlier.decision(on: number), decision.mark.fingerprint == fingerprint() else {
            return Retransmission(number: number, outcome: nil, rule: 0)
        }
        let outcome = decision.kind == .droppedAsDecided ? Outcome.dropped : .passed
        return Retransmission(number: number, outcome: outcome, rule: decision.mark.rule)
    }

    /// What tells one stanza from others when it is sent again: a hash of its kind, `id`, `type`, `from` and `to` as
    /// written. Its content does not count, since servers add to it (XEP-0203).
    public static func fingerprint(_ head: StanzaHead, _ item: Span<UInt8>) -> UInt16 {
        // FNV-1a: short, and the same in each process.
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

    /// Bytes of memory that the ledger takes.
    public var byteCount: Int {
        MemoryLayout<Self>.size + events.byteCount + earlier.byteCount
            + injected.reduce(0) { $0 + $1.item.capacity } + lost.reduce(0) { $0 + $1.capacity }
    }
}

/// The ledgers of both directions of a session, by value.
public struct StreamManagementLedgers: Sendable {
    /// What the client sends and the server counts.
    public var send: StreamManagementLedger
    /// What the server sends and the client counts.
    public var recv: StreamManagementLedger

    /// Ledgers of a session without stream management.
    public init() {
        send = StreamManagementLedger()
        recv = StreamManagementLedger()
    }

    /// The ledger of one direction.
    public subscript(direction: Direction) -> StreamManagementLedger {
        @inline(__always) _read { if direction == .send { yield send } else { yield recv } }
        @inline(__always) _modify { if direction == .send { yield &send } else { yield &recv } }
    }

    /// Whether the counts of either direction have ever parted.
    public var hasDiverged: Bool { send.hasDiverged || recv.hasDiverged }

    /// Bytes of memory that they take.
    public var byteCount: Int { send.byteCount + recv.byteCount }
}
