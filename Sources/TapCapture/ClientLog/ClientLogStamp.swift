internal import TapCore
internal import TapRecord

/// The time at the beginning of a line: `17:22:42.102`, after a date if the program writes one.
struct ClientLogStamp {
    /// The time in UTC if the line names the zone; else the local time, stored as if it were UTC. Without a date, the
    /// day is 1 January 1970.
    let time: Timestamp
    /// Whether the line names the day.
    let hasDay: Bool
    /// Whether the line names the zone.
    let hasZone: Bool

    /// The range of the time in the line.
    let range: Range<Int>

    /// The number of bytes at the beginning of a line in which its time must begin.
    private static let reach = 64

    /// Creates a stamp from the first `[YYYY-MM-DD] HH:MM:SS[.fraction] [zone]` near the beginning of a line, with the
    /// separators that logs use; nil if there is none.
    init?(_ line: [UInt8]) {
        var isWithinWord = false
        for start in 0..<min(line.count, Self.reach) {
            let byte = line[start]
            guard byte != 0x3C else { return nil }
            if !isWithinWord, byte >= 0x30 && byte <= 0x39 || byte >= 0x41 && byte <= 0x53,
                let found = Self(line, at: start)
            {
                self = found
                return
            }
            isWithinWord = LogLead.isAlphanumeric(byte)
        }
        return nil
    }

    private init?(_ line: [UInt8], at offset: Int) {
        var reader = Reader(line[offset...].prefix(48))
        if Self.isMonth(line[offset...].prefix(4)) {
            // `Nov 21 17:22:42`, as Prosody writes it: the date is ignored, because it has no year.
            reader.skip(4)
            _ = reader.consume(0x20)
            guard reader.number(digits: 1...2) != nil, reader.consume(0x20) else { return nil }
        }
        var day = (year: 1970, month: 1, of: 1)
        let start = reader
        var hasDay = false
        if let year = reader.number(digits: 4...4), reader.consumeAny(of: 0x2D, 0x2F),
            let month = reader.number(digits: 2...2), reader.consumeAny(of: 0x2D, 0x2F),
            let of = reader.number(digits: 2...2), reader.consumeAny(of: 0x54, 0x20)
        {
            day = (year, month, of)
            hasDay = true
        } else {
            reader = start
            if !reader.skipDay() { reader = start }
        }
        guard let hour = reader.number(digits: 1...2), reader.consume(0x3A), let minute = reader.number(digits: 2...2),
            reader.consume(0x3A), let second = reader.number(digits: 2...2)
        else { return nil }
        let half = reader.half()
        guard half == nil || (1...12).contains(hour) else { return nil }
        var fraction: ArraySlice<UInt8> = []
        if reader.consumeAny(of: 0x2E, 0x2C, 0x3A) { fraction = reader.digits(limit: 9) }
        let end = reader.position
        range = offset..<end
        let zone = reader.zone()
        var text: [UInt8] = []
        text.reserveCapacity(30)
        func append(_ number: Int, digits: Int, _ mark: UInt8) {
            var power = 1
            for _ in 1..<digits { power *= 10 }
            while power > 0 {
                text.append(0x30 + UInt8(number / power % 10))
                power /= 10
            }
            text.append(mark)
        }
        append(day.year, digits: 4, 0x2D)
        append(day.month, digits: 2, 0x2D)
        append(day.of, digits: 2, 0x54)
        append(half.map { hour % 12 + $0 } ?? hour, digits: 2, 0x3A)
        append(minute, digits: 2, 0x3A)
        append(second, digits: 2, fraction.isEmpty ? 0x5A : 0x2E)
        if !fraction.isEmpty { text += fraction + [0x5A] }
        guard let local = Timestamp(rfc3339: text.span.bytes) else { return nil }
        time = Timestamp(nanoseconds: local.nanoseconds &- Int64(zone ?? 0) &* 60_000_000_000)
        hasZone = zone != nil
        self.hasDay = hasDay
    }

    /// Returns the line up to the end of the time, with runs of digits and of letters masked. A line with the usual
    /// shape is one of the log's own lines; any other line continues the line before it.
    func shape(in line: [UInt8]) -> [UInt8] {
        var shape: [UInt8] = []
        for byte in line.prefix(range.upperBound) {
            let mask = Self.mask(byte)
            if mask == shape.last, mask == 0x30 || mask == 0x61 { continue }
            shape.append(mask)
        }
        return shape
    }

    /// Whether the line up to the end of the time has a shape, see ``shape(in:)``.
    func has(_ shape: [UInt8], in line: [UInt8]) -> Bool {
        var (index, last) = (0, UInt8(0))
        for byte in line.prefix(range.upperBound) {
            let mask = Self.mask(byte)
            if index > 0, mask == last, mask == 0x30 || mask == 0x61 { continue }
            guard index < shape.count, shape[index] == mask else { return false }
            index += 1
            last = mask
        }
        return index == shape.count
    }

    private static func mask(_ byte: UInt8) -> UInt8 {
        byte >= 0x30 && byte <= 0x39 ? 0x30 : byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A ? 0x61 : byte
    }

    /// Whether a text is the three letters of a month and a space.
    private static func isMonth(_ start: ArraySlice<UInt8>) -> Bool {
        start.last == 0x20
            && ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"].contains {
                start.dropLast().elementsEqual($0.utf8)
            }
    }

    /// Reads the beginning of a line piece by piece.
    private struct Reader {
        private var rest: ArraySlice<UInt8>
        var position: Int { rest.startIndex }

        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

        mutating func consume(_ byte: UInt8) -> Bool {
            guard rest.first == byte else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func consumeAny(of bytes: UInt8...) -> Bool {
            guard let first = rest.first, bytes.contains(first) else { return false }
            rest = rest.dropFirst()
            return true
        }

        mutating func skip(_ count: Int) { rest = rest.dropFirst(count) }

        /// Skips a date such as `24/12/2025`. Logs also use the order `12/24/2025`, which cannot be distinguished from
        /// this one, so the date is ignored; `12-24` is ignored too.
        mutating func skipDay() -> Bool {
            guard number(digits: 1...2) != nil, consumeAny(of: 0x2F, 0x2E, 0x2D), number(digits: 1...2) != nil else {
                return false
            }
            if consumeAny(of: 0x2F, 0x2E, 0x2D), number(digits: 4...4) == nil, number(digits: 2...2) == nil {
                return false
            }
            _ = consume(0x2C)
            guard consumeAny(of: 0x20, 0x54) else { return false }
            return true
        }

        /// Returns the hours that ` AM` or ` PM`, as Java writes them, add to the time: 0 or 12; nil if neither
        /// follows.
        func half() -> Int? {
            if rest.starts(with: " AM".utf8) { return 0 }
            return rest.starts(with: " PM".utf8) ? 12 : nil
        }

        /// Reads a number whose count of digits is in a range; nil if the number has fewer or more digits.
        mutating func number(digits count: ClosedRange<Int>) -> Int? {
            let found = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
            guard count.contains(found.count) else { return nil }
            rest = rest.dropFirst(found.count)
            return found.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }

        mutating func digits(limit count: Int) -> ArraySlice<UInt8> {
            let found = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
            rest = rest.dropFirst(found.count)
            return found.prefix(count)
        }

        /// Returns the zone in minutes: `Z`, `+HH:MM` or `+HHMM`, with or without a space before it, or `UTC` or `GMT`
        /// after a space; nil if there is none.
        mutating func zone() -> Int? {
            if consume(0x20), rest.starts(with: "UTC".utf8) || rest.starts(with: "GMT".utf8) { return 0 }
            if rest.first == 0x5A { return rest.dropFirst().first.map(LogLead.isAlphanumeric) != true ? 0 : nil }
            guard let sign = rest.first, sign == 0x2B || sign == 0x2D else { return nil }
            rest = rest.dropFirst()
            let digits = rest.filter { $0 != 0x3A }.prefix { $0 >= 0x30 && $0 <= 0x39 }
            guard digits.count >= 4 else { return nil }
            let values = digits.prefix(4).map { Int($0 - 0x30) }
            let minutes = (values[0] * 10 + values[1]) * 60 + values[2] * 10 + values[3]
            return sign == 0x2B ? minutes : -minutes
        }
    }
}

/// Converts the times of a log to times of a run. They never go back, and a log without dates may pass midnight.
struct ClientLogClock {
    private static let day: Int64 = 86_400_000_000_000

    private let zone: LocalZone
    private var first: Timestamp?
    private var last = Timestamp(nanoseconds: 0)
    /// Added to times without a date, in nanoseconds: the first midnight, and a day for each midnight passed.
    private var shift: Int64 = 0

    /// Creates a clock. Times that do not name a zone are in `zone`.
    init(zone: LocalZone) { self.zone = zone }

    /// Sets the day of the lines that follow to the day of `time` in UTC.
    mutating func begin(_ time: Timestamp) {
        shift = time.nanoseconds &- ((time.nanoseconds % Self.day) &+ Self.day) % Self.day
    }

    /// Sets the day of the lines that follow to the day that begins at `midnight`.
    mutating func begin(midnight: Timestamp) { shift = midnight.nanoseconds }

    /// Whether a log whose first time is `began` names no day.
    static func lacksDay(_ began: Timestamp) -> Bool { (0..<day).contains(began.nanoseconds) }

    /// Returns the midnight before the first line of a log without dates, which is read together with a recording that
    /// began at `other`: the midnight before the recording, or the next midnight if the log would otherwise begin more
    /// than half a day before the recording.
    static func midnight(of time: Timestamp, near other: Timestamp, in zone: LocalZone) -> Timestamp {
        let clock = other.nanoseconds &+ zone.offset(at: other) &* 1_000_000_000
        let start = clock &- ((clock % day) &+ day) % day
        let isNext = start &+ time.nanoseconds < clock &- day / 2
        return zone.time(of: Timestamp(nanoseconds: isNext ? start &+ day : start))
    }

    /// The first time in the log; 1970 if there is none yet.
    var began: Timestamp { first ?? Timestamp(nanoseconds: 0) }

    /// Returns the time of a line. A line without a time has the time of the line before it.
    mutating func instant(of stamp: ClientLogStamp?) -> Run.Instant {
        if let stamp {
            var time =
                stamp.hasDay
                ? stamp.hasZone ? stamp.time : zone.time(of: stamp.time)
                : Timestamp(nanoseconds: stamp.time.nanoseconds &+ shift)
            if !stamp.hasDay, first != nil, last.nanoseconds &- time.nanoseconds > Self.day / 2 {
                shift &+= Self.day
                time = Timestamp(nanoseconds: time.nanoseconds &+ Self.day)
            }
            last = first == nil ? time : max(last, time)
            first = first ?? time
        }
        return Run.Instant(last, since: first ?? last)
    }
}

extension Run.Instant {
    /// Creates an instant from the wall-clock time of a recording, which may jump. The monotonic time is limited to 36
    /// years (2^60 ns) after the first instant, so that records can still represent it after timeouts are added.
    init(_ time: Timestamp, since first: Timestamp) {
        let elapsed = time < first ? 0 : UInt64(bitPattern: time.nanoseconds &- first.nanoseconds)
        self.init(time: time, monotonic: Int64(min(elapsed, 1 << 60)))
    }
}
