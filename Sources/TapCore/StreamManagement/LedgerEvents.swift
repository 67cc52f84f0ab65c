/// What a ledger keeps of a direction's stanzas besides their counts, in the order in which they came: where stanzas were
/// dropped or injected, and what was decided on the others that did not pass as they came.
///
/// An event takes 1 to 4 bytes as a rule: a varint of its kind and of the stanzas that have passed since the event before,
/// then a decision's fingerprint (2 bytes) and rule (varint).
///
/// Memory is bounded: where there are more than ``byteCapacity`` bytes the oldest events become one.
struct LedgerEvents: Sendable {
    /// Bytes of events at most.
    static let byteCapacity = 1664
    /// No event takes more: three varints of 64 bits.
    private static let longest = 30
    /// Bytes that are kept allocated where no event is left.
    private static let reserve = 64

    enum Kind: UInt8 {
        case injected
        case dropped
        /// Dropped, with a mark.
        case droppedAsDecided
        /// Passed, with a mark.
        case passedAsDecided
        /// Many, of which it is not known any more what each was.
        case merged
    }

    struct Event {
        var kind: Kind
        /// Stanzas that passed between the event before and this one.
        var passed: UInt64 = 0
        /// Stanzas of the sender's in the event.
        var sender: UInt64 = 0
        /// Stanzas in the event that the receiver gets.
        var receiver: UInt64 = 0
        var mark = StreamManagementLedger.Mark(fingerprint: 0)

        /// Of one stanza.
        init(_ kind: Kind, _ mark: StreamManagementLedger.Mark? = nil) {
            self.kind = kind
            sender = kind == .injected ? 0 : 1
            receiver = kind == .injected || kind == .passedAsDecided ? 1 : 0
            if let mark { self.mark = mark }
        }

        /// 1 for one that stanzas have passed before, or that is a decision.
        var weight: Int { passed > 0 || kind == .droppedAsDecided || kind == .passedAsDecided ? 1 : 0 }
    }

    /// Numbers of the same moment, before all events.
    private(set) var base: (sender: UInt64, receiver: UInt64)
    /// How many events there are; of those that follow each other without a stanza that passes, only the decisions.
    private(set) var count = 0
    /// The sender's number behind the last event.
    private var end: UInt64
    private var bytes: [UInt8] = []

    /// No events; `sender` and `receiver` are numbers of the same moment.
    init(_ sender: UInt64, _ receiver: UInt64) {
        base = (sender, receiver)
        end = sender
    }

    /// Bytes of memory that the events take.
    var byteCount: Int { bytes.capacity }

    // MARK: Adding and forgetting

    /// Adds an event behind the stanza of the sender's with this number.
    mutating func append(_ event: Event, after number: UInt64) {
        if bytes.count + Self.longest > bytes.capacity { grow() }
        var event = event
        event.passed = number &- end
        Self.encode(event, &bytes)
        end = number &+ event.sender
        count += event.weight
    }

    private mutating func grow() {
        if bytes.count + Self.longest > Self.byteCapacity { return mergeOldest() }
        // Little by little: what was decided on an earlier connection gives way as it is sent again.
        bytes.reserveCapacity(min(bytes.capacity + Self.reserve, Self.byteCapacity))
    }

    /// Makes one event of the oldest quarter. Marks are forgotten; stanzas that passed before and behind stay what they are.
    private mutating func mergeOldest() {
        var merged = Event(.merged)
        (merged.sender, merged.receiver) = (0, 0)
        var isEmpty = true
        var passed: UInt64 = 0
        var offset = 0
        while offset < Self.byteCapacity / 4, let event = event(at: &offset) {
            count -= event.weight
            passed &+= event.passed
            if event.kind == .passedAsDecided {
                passed &+= 1
                continue
            }
            if isEmpty {
                merged.passed = passed
            } else {
                merged.sender &+= passed
                merged.receiver &+= passed
            }
            merged.sender &+= event.sender
            merged.receiver &+= event.receiver
            (isEmpty, passed) = (false, 0)
        }
        var front: [UInt8] = []
        if !isEmpty {
            Self.encode(merged, &front)
            count += merged.weight
        }
        if var next = event(at: &offset) {
            count -= next.weight
            next.passed &+= passed
            count += next.weight
            Self.encode(next, &front)
        }
        bytes.replaceSubrange(0..<offset, with: front)
    }

    /// Forgets the events up to the stanza of the sender's with this number.
    mutating func forget(upTo number: UInt64) {
        guard !bytes.isEmpty else { return }
        var offset = 0
        var next = 0
        while let event = event(at: &next), base.sender &+ event.passed &+ event.sender <= number {
            base.sender &+= event.passed &+ event.sender
            base.receiver &+= event.passed &+ event.receiver
            offset = next
            count -= event.weight
        }
        if offset < bytes.count {
            bytes.removeSubrange(0..<offset)
        } else if bytes.capacity > 2 * Self.reserve {
            // What a burst has taken is given back.
            bytes = []
        } else {
            bytes.removeAll(keepingCapacity: true)
        }
    }

    /// Takes no more memory than so many bytes; forgets the last events where they are more.
    mutating func shrink(to limit: Int) {
        guard bytes.capacity > limit else { return }
        var offset = 0
        var next = 0
        count = 0
        end = base.sender
        while let event = event(at: &next), next <= limit - 16 {
            (offset, count, end) = (next, count + event.weight, end &+ event.passed &+ event.sender)
        }
        var kept: [UInt8] = []
        kept.reserveCapacity(offset)
        kept += bytes[..<offset]
        bytes = kept
    }

    // MARK: Reading

    /// The sender's count when the receiver's is `count`.
    func senderCount(_ count: UInt64) -> UInt64 {
        var (sender, receiver) = base
        var offset = 0
        while let event = event(at: &offset) {
            let passed = event.passed &+ (event.kind == .passedAsDecided ? 1 : 0)
            if passed > 0, receiver &+ passed > count { break }
            sender &+= event.passed
            receiver &+= event.passed
            // One by one it is not known: late at worst.
            if event.kind == .merged, receiver &+ event.receiver > count { return sender }
            sender &+= event.sender
            receiver &+= event.receiver
        }
        return count > receiver ? sender &+ (count &- receiver) : sender
    }

    /// The receiver's count when the sender's is `count`.
    func receiverCount(_ count: UInt64) -> UInt64 {
        var (sender, receiver) = base
        // The receiver's before stanzas that were dropped and injected with none that passed between them.
        var before = receiver
        var offset = 0
        while let event = event(at: &offset) {
            let passed = event.passed &+ (event.kind == .passedAsDecided ? 1 : 0)
            if sender &+ passed >= count { break }
            sender &+= event.passed
            receiver &+= event.passed
            if passed > 0 { before = receiver }
            sender &+= event.sender
            receiver &+= event.receiver
            if event.kind == .passedAsDecided { before = receiver } else if sender >= count { return before }
        }
        return receiver &+ (count &- sender)
    }

    /// What was decided on the sender's stanza with this number.
    func decision(on number: UInt64) -> Event? {
        var found: Event?
        forEachDecision { if $0 == number { found = $1 } }
        return found
    }

    /// The decisions with their stanzas' numbers, the oldest first.
    func forEachDecision(_ body: (UInt64, Event) -> Void) {
        var sender = base.sender
        var offset = 0
        while let event = event(at: &offset) {
            sender &+= event.passed &+ event.sender
            if event.kind == .droppedAsDecided || event.kind == .passedAsDecided { body(sender, event) }
        }
    }

    // MARK: Bytes

    private static func encode(_ event: Event, _ bytes: inout [UInt8]) {
        // Three bits of the first byte are the kind.
        let first = UInt8(truncatingIfNeeded: event.passed & 0xF) << 3 | event.kind.rawValue
        let more = event.passed >> 4
        bytes.append(more == 0 ? first : first | 0x80)
        if more != 0 { encode(more, &bytes) }
        switch event.kind {
        case .injected, .dropped: break
        case .droppedAsDecided, .passedAsDecided:
            bytes.append(UInt8(truncatingIfNeeded: event.mark.fingerprint))
            bytes.append(UInt8(truncatingIfNeeded: event.mark.fingerprint >> 8))
            encode(UInt64(event.mark.rule), &bytes)
        case .merged:
            encode(event.sender, &bytes)
            encode(event.receiver, &bytes)
        }
    }

    private static func encode(_ number: UInt64, _ bytes: inout [UInt8]) {
        var number = number
        while number >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: number) | 0x80)
            number >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: number))
    }

    /// The event at `offset`, which goes behind it; nil at the end.
    private func event(at offset: inout Int) -> Event? {
        guard offset < bytes.count, let kind = Kind(rawValue: bytes[offset] & 7) else { return nil }
        var event = Event(kind)
        let first = bytes[offset]
        offset += 1
        event.passed = UInt64(first >> 3 & 0xF)
        if first & 0x80 != 0 { event.passed |= number(at: &offset) << 4 }
        switch kind {
        case .injected, .dropped: break
        case .droppedAsDecided, .passedAsDecided:
            event.mark.fingerprint = UInt16(byte(at: &offset)) | UInt16(byte(at: &offset)) << 8
            event.mark.rule = UInt32(truncatingIfNeeded: number(at: &offset))
        case .merged:
            event.sender = number(at: &offset)
            event.receiver = number(at: &offset)
        }
        return event
    }

    private func number(at offset: inout Int) -> UInt64 {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = byte(at: &offset)
            number |= UInt64(byte & 0x7F) &<< shift
            shift += 7
            if byte & 0x80 == 0 { return number }
        }
    }

    private func byte(at offset: inout Int) -> UInt8 {
        defer { offset += 1 }
        return offset < bytes.count ? bytes[offset] : 0
    }
}
