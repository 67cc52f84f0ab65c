internal import TapRecord

/// Counts messages by pair of addresses, by hour and by day. All copies of a message count once.
struct MessageCounter {
    /// A copy of a message, with the numbers of its addresses.
    private struct Row {
        let copy: MessageCopy
        let from: Int32
        let to: Int32
        let run: Int32
        let seen: Int64
        let sequence: UInt64
    }

    /// A message that can get more copies.
    private struct Message {
        var from: Int32
        let to: Int32
        let time: Int64
    }

    private struct Pair: Hashable {
        let first: Int32
        let second: Int32
    }

    private struct PairCount {
        var forth = 0
        var back = 0
        var first: Int64
        var last: Int64
    }

    private let isOrdered: Bool
    private var calendar: Calendar
    /// The messages until the end, if they are not in order.
    private var rows: [Row] = []
    private var texts: [String] = []
    private var numbers: [String: Int32] = [:]
    private var folder = MessageFolder()
    private var open: [Int: Message] = [:]
    /// The number of the first message that was not counted.
    private var next = 0
    private var added = 0
    private var counted = 0
    private var pairs: [Pair: PairCount] = [:]

    init(zone: LocalZone, isOrdered: Bool) {
        calendar = Calendar(zone: zone)
        self.isOrdered = isOrdered
    }

    mutating func add(_ row: AuditRow) {
        let compact = Row(
            copy: MessageCopy(row),
            from: number(row.sender),
            to: number(row.receiver),
            run: number(row.run),
            seen: row.seen.nanoseconds,
            sequence: row.sequence
        )
        if isOrdered { fold(compact) } else { rows.append(compact) }
    }

    private mutating func number(_ text: String) -> Int32 {
        if let known = numbers[text] { return known }
        let number = Int32(truncatingIfNeeded: texts.count)
        texts.append(text)
        numbers[text] = number
        return number
    }

    private mutating func fold(_ row: Row) {
        added += 1
        let number = folder.add(row.copy).number
        if open[number] == nil {
            open[number] = Message(from: row.from, to: row.to, time: row.copy.time)
        } else if row.copy.direction == .send {
            // Other copies from a room name the writer by the nickname.
            open[number]?.from = row.from
        }
        while next < folder.firstOpen { countNext() }
    }

    private mutating func countNext() {
        defer { next += 1 }
        guard let message = open.removeValue(forKey: next) else { return }
        counted += 1
        calendar.count(Timestamp(nanoseconds: message.time))
        let isForth = texts[Int(message.from)] <= texts[Int(message.to)]
        let pair =
            isForth
            ? Pair(first: message.from, second: message.to) : Pair(first: message.to, second: message.from)
        var count = pairs[pair] ?? PairCount(first: message.time, last: message.time)
        if isForth { count.forth += 1 } else { count.back += 1 }
        count.first = min(count.first, message.time)
        count.last = max(count.last, message.time)
        pairs[pair] = count
    }

    consuming func finish(_ statistics: inout AuditStatistics) {
        rows.sort { one, other in
            let places = ((one.copy.time, one.seen), (other.copy.time, other.seen))
            guard places.0 == places.1 else { return places.0 < places.1 }
            return (texts[Int(one.run)], one.sequence) < (texts[Int(other.run)], other.sequence)
        }
        for row in rows { fold(row) }
        while !open.isEmpty { countNext() }
        statistics.messages = counted
        statistics.copies = added - counted
        statistics.pairs = pairs.map { pair, count in
            AuditStatistics.Pair(
                first: texts[Int(pair.first)],
                second: texts[Int(pair.second)],
                forth: count.forth,
                back: count.back,
                times: Timestamp(nanoseconds: count.first)...Timestamp(nanoseconds: count.last)
            )
        }
        .sorted { ($1.count, $0.first, $0.second) < ($0.count, $1.first, $1.second) }
        statistics.hours = calendar.hours
        statistics.days = calendar.days
        statistics.offsets = calendar.offsets.sorted()
    }
}

/// Counts times by hour and by day, in a zone.
private struct Calendar {
    private static let day: Int64 = 86_400

    private let zone: LocalZone
    private(set) var hours = [Int](repeating: 0, count: 24)
    private(set) var offsets: Set<Int64> = []
    private var byDay: [Int64: Int] = [:]
    /// The last quarter of an hour, and the offset in it: offsets change at full quarters.
    private var quarter: (number: Int64, offset: Int64)?

    init(zone: LocalZone) { self.zone = zone }

    mutating func count(_ time: Timestamp) {
        // In a client log without times, they are zero.
        guard time.nanoseconds != 0 else { return }
        let seconds = Self.quotient(time.nanoseconds, 1_000_000_000)
        let clock = seconds + offset(Self.quotient(seconds, 900), time)
        let day = Self.quotient(clock, Self.day)
        hours[Int((clock - day * Self.day) / 3600)] += 1
        if time.hasDay { byDay[day, default: 0] += 1 }
    }

    private mutating func offset(_ number: Int64, _ time: Timestamp) -> Int64 {
        if let quarter, quarter.number == number { return quarter.offset }
        let offset = zone.offset(at: time)
        quarter = (number, offset)
        offsets.insert(offset)
        return offset
    }

    var days: [AuditStatistics.Day] {
        byDay.sorted { $0.key < $1.key }.map { day, count in
            AuditStatistics.Day(name: Timestamp(nanoseconds: day &* Self.day &* 1_000_000_000).day, count: count)
        }
    }

    /// Divides, rounding down.
    private static func quotient(_ number: Int64, _ divisor: Int64) -> Int64 {
        number / divisor - (number % divisor < 0 ? 1 : 0)
    }
}
