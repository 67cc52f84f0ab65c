public import TapRecord
public import XMPPCore

/// How the two ends of one direction count its stanzas since stream management began (XEP-0198 §4), and what a count of the
/// receiver's means to the sender.
///
/// The sender counts what it sends, the receiver what it gets: a stanza that is dropped has a number at the sender alone, an
/// injected one at the receiver alone. The ledger is told of every stanza:
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
/// A count of the receiver's is told to the sender as the last stanza up to which all are handled: those that passed by the
/// receiver, those that were dropped by xmpptap. So an honest sender repeats nothing that was handled, loses nothing that
/// was not, and never gets a count that is too high or goes back.
///
/// Memory is bounded: runs of stanzas that pass take none, what is acknowledged is forgotten, and of more than
/// ``capacity`` places at which counts part the oldest become one, which is acknowledged as a whole.
public struct StreamManagementLedger: Sendable {
    /// Places at which the counts part that are kept at most.
    public static let capacity = 128
    /// Stanzas at most of which it is known what was decided on them, until they are acknowledged.
    public static let decisionCapacity = 512
    /// Bytes of injected stanzas that are kept at most, to be injected again where they are lost.
    public static let injectedBytes = 256 << 10
    /// As many of either call for an acknowledgement.
    static let crowd = 16

    /// How a stanza is known when it is sent again, and what was done about it.
    public struct Mark: Sendable, Hashable {
        /// See ``StreamManagementLedger/fingerprint(_:_:)``.
        public var fingerprint: UInt32
        /// The rule that decided, as the caller numbers it.
        public var rule: UInt32

        /// A mark for a stanza that is not passed as it came.
        public init(fingerprint: UInt32, rule: UInt32 = 0) {
            self.fingerprint = fingerprint
            self.rule = rule
        }
    }

    /// What became of a stanza that is sent again.
    public enum Outcome: UInt8, Sendable, Hashable {
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

    /// Between two runs of stanzas that passed: dropped and injected ones, in any order.
    private struct Gap: Hashable {
        /// The last numbers before it.
        var sender: UInt64
        var receiver: UInt64
        /// The last numbers in it.
        var senderEnd: UInt64
        var receiverEnd: UInt64
    }

    /// 16 bytes, as there may be many.
    private struct Decision: Hashable {
        private let numberAndOutcome: UInt64
        let mark: Mark

        init(number: UInt64, mark: Mark, outcome: Outcome) {
            numberAndOutcome = number << 1 | UInt64(outcome.rawValue)
            self.mark = mark
        }

        var number: UInt64 { numberAndOutcome >> 1 }
        var outcome: Outcome { numberAndOutcome & 1 == 0 ? .passed : .dropped }
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

    /// Numbers of the same moment, before all gaps.
    private var base: (sender: UInt64, receiver: UInt64) = (0, 0)
    private var gaps: [Gap] = []
    /// The first gap holds stanzas that passed: it stands for several.
    private var isCoarse = false
    /// What was decided on stanzas that the sender has no acknowledgement of; by number.
    private var decisions: [Decision] = []
    /// Injected stanzas, with their numbers at the receiver, that it has not acknowledged.
    private var injected: [(number: UInt64, item: [UInt8])] = []
    /// Those that an earlier connection has lost.
    private var lost: [[UInt8]] = []
    /// The same of stanzas that were sent on an earlier connection and not yet again.
    private var earlier: [Decision] = []
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
        base = (count, count)
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
        pass()
        remember(mark, .passed)
    }

    /// The sender's next stanza goes no further.
    public mutating func drop(_ mark: Mark? = nil) {
        widen { $0.senderEnd &+= 1 }
        sent &+= 1
        if let mark { remember(mark, .dropped) }
    }

    /// The receiver gets a stanza that the sender has not sent; gives its number at the receiver.
    ///
    /// - Parameter item: What to give back by ``takeLost()`` where the connection is lost before the receiver has
    ///   acknowledged it; nil for one that is not to be injected again.
    @discardableResult
    public mutating func inject(keeping item: [UInt8]? = nil) -> UInt64 {
        widen { $0.receiverEnd &+= 1 }
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

    private mutating func widen(_ change: (inout Gap) -> Void) {
        guard isCounting else { return }
        hasDiverged = true
        if gaps.last.map({ $0.senderEnd != sent || $0.receiverEnd != delivered }) ?? true {
            if gaps.count >= Self.capacity {
                gaps[0].senderEnd = gaps[1].senderEnd
                gaps[0].receiverEnd = gaps[1].receiverEnd
                gaps.remove(at: 1)
                isCoarse = true
            }
            gaps.append(Gap(sender: sent, receiver: delivered, senderEnd: sent, receiverEnd: delivered))
        }
        change(&gaps[gaps.count - 1])
    }

    private mutating func remember(_ mark: Mark, _ outcome: Outcome) {
        guard isCounting else { return }
        // Not one by one: all others move each time.
        if decisions.count >= Self.decisionCapacity { decisions.removeFirst(Self.decisionCapacity / 4) }
        decisions.append(Decision(number: sent, mark: mark, outcome: outcome))
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
        acknowledged = max(acknowledged, senderCount(handled))
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
    public var isCrowded: Bool { gaps.count >= Self.crowd || decisions.count >= Self.crowd }

    /// The sender's count when the receiver's is `count`, which is not below ``handled``.
    private func senderCount(_ count: UInt64) -> UInt64 {
        var (sender, receiver) = base
        for (index, gap) in gaps.enumerated() {
            guard gap.receiver <= count else { break }
            if index == 0, isCoarse, count < gap.receiverEnd { return max(acknowledged, gap.sender) }
            (sender, receiver) = (gap.senderEnd, gap.receiverEnd)
        }
        if count > receiver { sender &+= count &- receiver }
        return max(acknowledged, sender)
    }

    /// The receiver's count when the sender's is `count`; how much of that is above or below what there is stays. For
    /// what a server says of a client's count in an error (XEP-0198 §6), which it has got translated.
    public func receiverCount(_ count: UInt32) -> UInt32 {
        let ahead = Int64(Int32(bitPattern: count &- UInt32(truncatingIfNeeded: acknowledged)))
        let count = acknowledged &+ UInt64(bitPattern: ahead)
        guard count <= sent else { return UInt32(truncatingIfNeeded: delivered &+ (count &- sent)) }
        var (sender, receiver) = base
        for gap in gaps where gap.sender < count {
            if count <= gap.senderEnd { return UInt32(truncatingIfNeeded: gap.receiver) }
            (sender, receiver) = (gap.senderEnd, gap.receiverEnd)
        }
        return UInt32(truncatingIfNeeded: receiver &+ (count &- sender))
    }

    private mutating func forgetAcknowledged() {
        if !gaps.isEmpty {
            let count = gaps.prefix { $0.senderEnd <= acknowledged }.count
            if count > 0 {
                base = (gaps[count - 1].senderEnd, gaps[count - 1].receiverEnd)
                gaps.removeFirst(count)
                isCoarse = false
            }
        }
        if !injected.isEmpty { injected.removeAll { $0.number <= handled } }
        if !decisions.isEmpty {
            decisions.removeFirst(decisions.prefix { $0.number <= acknowledged }.count)
        }
        // What a burst has taken is given back.
        if gaps.isEmpty, gaps.capacity > Self.crowd { gaps = [] }
        if decisions.isEmpty, decisions.capacity > Self.crowd { decisions = [] }
        if sent >= repeatedEnd { earlier = [] }
    }

    // MARK: Resumption

    /// The session goes on with a new connection (XEP-0198 §5), after both ends have been told what the other has handled:
    /// the sender sends again what it has no acknowledgement of.
    public mutating func resume() {
        let kept = decisions.filter { $0.number > acknowledged } + earlier.filter { $0.number > sent }
        earlier = Array(kept.prefix(Self.decisionCapacity))
        repeatedEnd = max(repeatedEnd, sent)
        lost += injected.lazy.filter { [handled] in $0.number > handled }.map(\.item)
        injected = []
        decisions = []
        gaps = []
        isCoarse = false
        (sent, delivered) = (acknowledged, handled)
        base = (sent, delivered)
        audit.disconnect()
    }

    /// The highest number that any stanza of the sender's has had.
    var lastNumber: UInt64 { max(sent, repeatedEnd) }

    /// Whether the sender's next stanza is one that it has sent on an earlier connection.
    @inline(__always)
    public var isRepeating: Bool { sent < repeatedEnd }

    /// What is known of the sender's next stanza where it is sent again; nil where it is new.
    ///
    /// An earlier decision is told of the same stanza only: a sender that leaves one out sends others under its number.
    public func retransmission(_ fingerprint: @autoclosure () -> UInt32) -> Retransmission? {
        guard isRepeating else { return nil }
        let number = sent &+ 1
        let decision = earlier.first { $0.number == number }
        guard let decision, decision.mark.fingerprint == fingerprint() else {
            return Retransmission(number: number, outcome: nil, rule: 0)
        }
        return Retransmission(number: number, outcome: decision.outcome, rule: decision.mark.rule)
    }

    /// What tells one stanza from others when it is sent again: a hash of its kind, `id`, `type`, `from` and `to` as
    /// written. Its content does not count, since servers add to it (XEP-0203).
    public static func fingerprint(_ head: StanzaHead, _ item: Span<UInt8>) -> UInt32 {
        // FNV-1a: short, and the same in each process.
        var hash: UInt32 = 2_166_136_261
        func add(_ range: ByteRange) {
            let bytes = item.slice(range)
            for index in bytes.indices { hash = (hash ^ UInt32(bytes[index])) &* 16_777_619 }
            hash = (hash ^ 0xFF) &* 16_777_619
        }
        add(head.name)
        for attribute in [head.id, head.type, head.from, head.to] { add(attribute?.range ?? .empty) }
        return hash
    }

    /// Bytes of memory that the ledger takes.
    public var byteCount: Int {
        MemoryLayout<Self>.size + gaps.capacity * MemoryLayout<Gap>.stride
            + (decisions.capacity + earlier.capacity) * MemoryLayout<Decision>.stride
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
