/// The events of a direction in order: dropped and injected stanzas, and decisions about stanzas that were edited or
/// dropped by rules.
///
/// An event usually takes 1 to 4 bytes: a varint of its kind and of the number of stanzas that passed before it, then
/// for decisions a fingerprint (2 bytes) and the rule (varint).
///
/// Memory is bounded: beyond ``byteCapacity`` the oldest events are merged into one.
struct LedgerEvents: Sendable {
    /// Maximum number of bytes.
    static let byteCapacity = 1664
    /// The maximum size of an event: three varints of 64 bits.
    private static let maximumLength = 30
    /// Number of bytes that stay allocated without events.
    private static let reserve = 64

    enum Kind: UInt8 {
        case injected
        case dropped
        /// A dropped stanza with a mark.
        case droppedAsDecided
        /// A passed stanza with a mark.
        case passedAsDecided
        /// Several events, without their details.
        case merged
    }

    struct Event {
        var kind: Kind
        /// Number of stanzas that passed between the previous event and this one.
        var passed: UInt64 = 0
        /// Number of the sender's stanzas in the event.
        var sender: UInt64 = 0
        /// Number of stanzas in the event that reach the receiver.
        var receiver: UInt64 = 0
        var mark = StreamManagementLedger.Mark(fingerprint: 0)

        /// Creates an event of one stanza.
        init(_ kind: Kind, _ mark: StreamManagementLedger.Mark? = nil) {
            self.kind = kind
            sender = kind == .injected ? 0 : 1
            receiver = kind == .injected || kind == .passedAsDecided ? 1 : 0
            if let mark { self.mark = mark }
        }

        /// 1 if the event is a decision or follows passed stanzas, otherwise 0; ``count`` is the sum over all events.
        var weight: Int { passed > 0 || kind == .droppedAsDecided || kind == .passedAsDecided ? 1 : 0 }
    }

    /// Stanza numbers of sender and receiver before all events.
    private(set) var base: (sender: UInt64, receiver: UInt64)
    /// Number of events that are decisions or follow passed stanzas.
    private(set) var count = 0
    /// The sender's stanza number after the last event.
    private var end: UInt64
    private var bytes: [UInt8] = []

    /// Creates an empty list; `sender` and `receiver` are the stanza numbers at the same moment.
    init(_ sender: UInt64, _ receiver: UInt64) {
        base = (sender, receiver)
        end = sender
    }

    /// Number of allocated bytes.
    var byteCount: Int { bytes.capacity }

    // MARK: Adding and removing

    /// Appends an event after the sender's stanza with this number.
    mutating func append(_ event: Event, after number: UInt64) {
        if bytes.count + Self.maximumLength > bytes.capacity { grow() }
        var event = event
        event.passed = number &- end
        Self.encode(event, &bytes)
        end = number &+ event.sender
        count += event.weight
    }

    private mutating func grow() {
        if bytes.count + Self.maximumLength > Self.byteCapacity { return mergeOldest() }
        // Grows in small steps, because decisions from an earlier connection are freed while stanzas are sent again.
        bytes.reserveCapacity(min(bytes.capacity + Self.reserve, Self.byteCapacity))
    }

    /// Merges the oldest quarter into one event. Marks are lost; stanzas that passed before and after it are not
    /// affected.
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

    /// Removes the events up to the sender's stanza with this number.
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
            // Releases the memory of a burst.
            bytes = []
        } else {
            bytes.removeAll(keepingCapacity: true)
        }
    }

    /// Reduces the memory to `limit` bytes, by removing the last events if necessary.
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

    /// Returns the sender's count for a receiver's count.
    func senderCount(_ count: UInt64) -> UInt64 {
        var (sender, receiver) = base
        var offset = 0
        while let event = event(at: &offset) {
            let passed = event.passed &+ (event.kind == .passedAsDecided ? 1 : 0)
            if passed > 0, receiver &+ passed > count { break }
            sender &+= event.passed
            receiver &+= event.passed
            // The order within merged events is unknown, so they are acknowledged as a whole.
            if event.kind == .merged, receiver &+ event.receiver > count { return sender }
            sender &+= event.sender
            receiver &+= event.receiver
        }
        return count > receiver ? sender &+ (count &- receiver) : sender
    }

    /// Returns the receiver's count for a sender's count.
    func receiverCount(_ count: UInt64) -> UInt64 {
        var (sender, receiver) = base
        // The receiver's count before consecutive dropped and injected stanzas.
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

    /// Returns the decision about the sender's stanza with this number.
    func decision(on number: UInt64) -> Event? {
        var found: Event?
        forEachDecision { if $0 == number { found = $1 } }
        return found
    }

    /// Calls `body` with each decision and the number of its stanza, oldest first.
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

    /// Returns the event at `offset` and moves the offset past it; nil at the end.
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
