internal import TapCore
internal import TapRecord

/// The time at the beginning of a line: `17:22:42.102`, after a date if the program writes one.
struct ClientLogStamp {
    /// The time in UTC if the line names the zone; else the local time, stored as if it were UTC. Without a date, or if
    /// the date has no year, the day is 1 January 1970.
    private(set) var time: Timestamp
    /// Whether the line names the day and its year.
    private(set) var hasDay: Bool
    /// The month and the day, from 1, if the line names them without a year, as Prosody and syslog do; nil otherwise.
    private(set) var date: CalendarDay?
    /// Whether the line names the zone.
    private(set) var hasZone: Bool

    /// The range of the time in the line; empty if the line does not show it.
    private(set) var range: Range<Int>
    /// The range of the time of the system's log, which has no year, if the program's own and complete time follows it;
    /// nil otherwise.
    private(set) var outer: Range<Int>?
    /// The ranges of all times, in order.
    var ranges: [Range<Int>] { outer.map { [$0, range] } ?? [range] }
    /// Whether the line shows the time; false if only an element around the line does.
    var isInLine: Bool { !range.isEmpty }

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
                guard date != nil, let text = Self.endOfTag(line, from: range.upperBound),
                    let inner = Self(line, at: text), inner.hasDay
                else { return }
                self = inner
                outer = found.range
                return
            }
            isWithinWord = LogLead.isAlphanumeric(byte)
        }
        return nil
    }

    /// Returns this time, which the log around a line has recorded, as the time of the line: its own time stays if it
    /// names the day and its year.
    func recorded(for own: ClientLogStamp?) -> ClientLogStamp {
        if let own, own.hasDay { return own }
        var stamp = self
        stamp.range = own?.range ?? 0..<0
        stamp.outer = own?.outer
        return stamp
    }

    /// Returns the index after ` host tag: `, which syslog and journald print between their time and the program's text;
    /// nil if other text follows the time.
    static func endOfTag(_ line: [UInt8], from start: Int) -> Int? {
        guard line[start...].first == 0x20 else { return nil }
        let host = line[(start + 1)...].prefix { $0 != 0x20 && $0 != 0x3C }
        let tag = line[host.endIndex...].dropFirst().prefix { $0 != 0x20 && $0 != 0x3C }
        guard !host.isEmpty, host.last != 0x3A, tag.count > 1, tag.last == 0x3A, tag.endIndex < line.count,
            line[tag.endIndex] == 0x20
        else { return nil }
        return tag.endIndex + 1
    }

    private init?(_ line: [UInt8], at offset: Int) {
        var reader = Reader(line[offset...].prefix(48))
        let start = reader
        var day = CalendarDay.first
        hasDay = false
        if let found = reader.day() {
            day = found
            hasDay = true
        } else if let found = reader.dayWithoutYear(from: start) {
            date = found
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
        append(day.day, digits: 2, 0x54)
        append(half.map { hour % 12 + $0 } ?? hour, digits: 2, 0x3A)
        append(minute, digits: 2, 0x3A)
        append(second, digits: 2, fraction.isEmpty ? 0x5A : 0x2E)
        if !fraction.isEmpty { text += fraction + [0x5A] }
        guard let local = Timestamp(rfc3339: text.span.bytes) else { return nil }
        time = Timestamp(nanoseconds: local.nanoseconds &- Int64(zone ?? 0) &* 60_000_000_000)
        hasZone = zone != nil
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

        /// Reads a date with a year: `2026-11-30`, `30.11.2026`, `30 Nov 2026` or `Nov 30, 2026`; nil, at an undefined
        /// position, if there is none.
        mutating func day() -> CalendarDay? {
            let start = self
            if let year = number(digits: 4...4), consumeAny(of: 0x2D, 0x2F), let month = number(digits: 2...2),
                consumeAny(of: 0x2D, 0x2F), let day = number(digits: 2...2), consumeAny(of: 0x54, 0x20)
            {
                return CalendarDay(year: year, month: month, day: day)
            }
            self = start
            if let day = number(digits: 1...2), consume(0x2E), let month = number(digits: 1...2), consume(0x2E),
                let year = number(digits: 4...4), endsDay()
            {
                return CalendarDay(year: year, month: month, day: day).valid
            }
            self = start
            if let day = number(digits: 1...2), let mark = consumeFirst(of: 0x20, 0x2D, 0x2F), let month = month(),
                consume(mark), let year = number(digits: 4...4), endsDay()
            {
                return CalendarDay(year: year, month: month, day: day).valid
            }
            self = start
            guard let month = month(), consume(0x20), let day = number(digits: 1...2), consume(0x2C), consume(0x20),
                let year = number(digits: 4...4), endsDay()
            else { return nil }
            return CalendarDay(year: year, month: month, day: day).valid
        }

        /// Reads the end of a date: a comma or nothing, and a blank, or the colon of web servers' logs.
        private mutating func endsDay() -> Bool {
            if consume(0x3A) { return true }
            _ = consume(0x2C)
            return consumeAny(of: 0x20, 0x54)
        }

        /// Reads a date such as `Nov 21`, as Prosody writes it, or `Nov  3`, from a position; nil, at an undefined
        /// position, if there is none.
        mutating func dayWithoutYear(from start: Self) -> CalendarDay? {
            self = start
            guard let month = month(), consume(0x20) else { return nil }
            _ = consume(0x20)
            guard let day = number(digits: 1...2), consume(0x20) else { return nil }
            return CalendarDay(year: CalendarDay.leapYear, month: month, day: day).valid
        }

        /// Reads the first three letters of the English name of a month; returns its number from 1.
        private mutating func month() -> Int? {
            let name = rest.prefix(3)
            let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            guard let place = months.firstIndex(where: { name.elementsEqual($0.utf8) }) else { return nil }
            rest = rest.dropFirst(3)
            return place + 1
        }

        private mutating func consumeFirst(of bytes: UInt8...) -> UInt8? {
            guard let first = rest.first, bytes.contains(first) else { return nil }
            rest = rest.dropFirst()
            return first
        }

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

extension Run.Instant {
    /// Creates an instant from the wall-clock time of a recording, which may jump. The monotonic time is limited to 36
    /// years (2^60 ns) after the first instant, so that records can still represent it after timeouts are added.
    init(_ time: Timestamp, since first: Timestamp) {
        let elapsed = time < first ? 0 : UInt64(bitPattern: time.nanoseconds &- first.nanoseconds)
        self.init(time: time, monotonic: Int64(min(elapsed, 1 << 60)))
    }
}
