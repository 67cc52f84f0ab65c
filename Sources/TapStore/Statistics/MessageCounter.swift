internal import TapRecord

/// Counts messages by pair of addresses, by hour and by day. All copies of a message count once.
struct MessageCounter {
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
    private var rows: [FoundRow] = []
    private var texts: [String] = []
    private var numbers: [String: Int32] = [:]
    private var folder = MessageFolder()
    private var added = 0
    private var counted = 0
    private var pairs: [Pair: PairCount] = [:]

    init(zone: LocalZone, isOrdered: Bool) {
        calendar = Calendar(zone: zone)
        self.isOrdered = isOrdered
    }

    mutating func add(_ row: AuditRow) {
        var row = row
        // What joins copies is the key, in rooms the text.
        if !row.isOfRoom { row.body = "" }
        (row.subject, row.thread, row.payload) = (nil, nil, nil)
        let found = FoundRow(row)
        if isOrdered { fold(found) } else { rows.append(found) }
    }

    private mutating func number(_ text: String) -> Int32 {
        if let known = numbers[text] { return known }
        let number = Int32(truncatingIfNeeded: texts.count)
        texts.append(text)
        numbers[text] = number
        return number
    }

    private mutating func fold(_ row: FoundRow) {
        added += 1
        folder.add(row)
        while let message = folder.next() { count(message) }
    }

    private mutating func count(_ message: FoundMessage) {
        counted += 1
        let time = message.order.time
        calendar.count(time)
        // Other copies from a room name the writer by the nickname.
        let writer = message.copies.first { $0.isSent }?.account
        let (from, to) = (number(writer ?? message.row.sender), number(message.row.receiver))
        let isForth = texts[Int(from)] <= texts[Int(to)]
        let pair = isForth ? Pair(first: from, second: to) : Pair(first: to, second: from)
        var count = pairs[pair] ?? PairCount(first: time.nanoseconds, last: time.nanoseconds)
        if isForth { count.forth += 1 } else { count.back += 1 }
        count.first = min(count.first, time.nanoseconds)
        count.last = max(count.last, time.nanoseconds)
        pairs[pair] = count
    }

    consuming func finish(_ statistics: inout AuditStatistics) {
        for row in rows.sorted(by: { $0.row.order < $1.row.order }) { fold(row) }
        folder.end()
        while let message = folder.next() { count(message) }
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
