/// Wall-clock time of records: nanoseconds since 1970-01-01T00:00:00Z, without leap seconds.
///
/// The range is 1677 to 2262. The core has no clock; the caller passes the time.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    package var nanoseconds: Int64

    /// Creates the time this many nanoseconds after 1970-01-01T00:00:00Z.
    public init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Parses RFC 3339 in UTC: `2026-11-21T17:22:42.102Z`, with no fraction or one to nine digits after the second.
    ///
    /// `nil` for other text: an offset other than `Z`, lower case, a day or second that does not exist (including leap
    /// seconds), or a time outside the range of the type.
    package init?(rfc3339 text: RawSpan) {
        guard let value = text.withUnsafeBytes(Self.parse) else { return nil }
        nanoseconds = value
    }

    /// Parses RFC 3339 in UTC; see ``init(rfc3339:)-(RawSpan)``.
    package init?(rfc3339 text: String) {
        self.init(rfc3339: text.utf8Span.span.bytes)
    }

    /// Returns whether `lhs` is earlier than `rhs`.
    public static func < (lhs: Timestamp, rhs: Timestamp) -> Bool { lhs.nanoseconds < rhs.nanoseconds }

    /// RFC 3339 in UTC, with nine digits after the second.
    package var text: String {
        LineBuffer.text { line in
            var writer = TimestampWriter()
            writer.append(self, to: &line)
        }
    }

    /// The day in UTC: `2026-11-21`.
    package var day: String { String(text.prefix(10)) }

    /// RFC 3339 to the millisecond, in a zone; see ``TimestampWriter/appendStamp(_:to:)``.
    package func stamp(in zone: LocalZone) -> String {
        LineBuffer.text { line in
            var writer = TimestampWriter(zone: zone)
            writer.appendStamp(self, to: &line)
        }
    }

    /// Whole seconds since 1970, rounded down, and the remaining nanoseconds.
    var parts: (seconds: Int64, fraction: UInt64) {
        let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? (seconds - 1, UInt64(rest + 1_000_000_000)) : (seconds, UInt64(rest))
    }

    private static func parse(_ text: UnsafeRawBufferPointer) -> Int64? {
        guard text.count >= 20, text.count <= 30, text[text.count - 1] == 0x5A else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for index in range {
                guard text[index] >= 0x30, text[index] <= 0x39 else { return nil }
                value = value * 10 + Int64(text[index] - 0x30)
            }
            return value
        }
        guard text[4] == 0x2D, text[7] == 0x2D, text[10] == 0x54, text[13] == 0x3A, text[16] == 0x3A,
            let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), day >= 1, day <= CivilDate.days(inMonth: month, of: year),
            hour < 24, minute < 60, second < 60
        else { return nil }
        var fraction: Int64 = 0
        if text.count > 20 {
            let digits = 20..<(text.count - 1)
            guard text[19] == 0x2E, !digits.isEmpty, let value = number(digits) else { return nil }
            fraction = value
            for _ in digits.count..<9 { fraction *= 10 }
        }
        let seconds =
            CivilDate(year: year, month: month, day: day).daysSince1970 * 86_400
            + hour * 3600 + minute * 60 + second
        // Rounded towards zero before the fraction is added, so that the first second of the range is valid too.
        if seconds < 0, fraction > 0 {
            let (scaled, overflow) = (seconds + 1).multipliedReportingOverflow(by: 1_000_000_000)
            let (sum, underflow) = scaled.addingReportingOverflow(fraction - 1_000_000_000)
            return overflow || underflow ? nil : sum
        }
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = scaled.addingReportingOverflow(fraction)
        return overflow || carry ? nil : sum
    }
}

/// A day of the Gregorian calendar, also before 1970.
private struct CivilDate {
    var year: Int64
    var month: Int64
    var day: Int64

    init(year: Int64, month: Int64, day: Int64) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Creates the date of a day number. Years begin in March here, so that the leap day is the last of a year, in
    /// cycles of 400 years (146,097 days); 719,468 days lie between 0000-03-01 and 1970-01-01.
    init(daysSince1970: Int64) {
        let shifted = daysSince1970 + 719_468
        let cycle = shifted >= 0 ? shifted / 146_097 : (shifted - 146_096) / 146_097
        let dayOfCycle = shifted - cycle * 146_097
        let yearOfCycle = (dayOfCycle - dayOfCycle / 1460 + dayOfCycle / 36_524 - dayOfCycle / 146_096) / 365
        let dayOfYear = dayOfCycle - (365 * yearOfCycle + yearOfCycle / 4 - yearOfCycle / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfCycle + cycle * 400 + (month <= 2 ? 1 : 0)
    }

    var daysSince1970: Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let cycle = shiftedYear >= 0 ? shiftedYear / 400 : (shiftedYear - 399) / 400
        let yearOfCycle = shiftedYear - cycle * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfCycle = yearOfCycle * 365 + yearOfCycle / 4 - yearOfCycle / 100 + dayOfYear
        return cycle * 146_097 + dayOfCycle - 719_468
    }

    static func days(inMonth month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// Writes times into lines; caches the last second and millisecond, which most lines share with the previous one.
package struct TimestampWriter: ~Copyable, Sendable {
    /// A day in a zone, and the zone's offset from UTC on it.
    package struct Day: Sendable, Hashable {
        /// Days since 1970-01-01.
        fileprivate let number: Int64
        /// Seconds east of UTC.
        fileprivate let offset: Int64

        /// Appends `Z` or `+01:00`; the seconds of an offset, which occur in the nineteenth century, are cut.
        fileprivate func appendOffset(to line: inout LineBuffer) {
            let minutes = offset / 60
            guard minutes != 0 else { return line.append(0x5A) }
            line.append(minutes < 0 ? 0x2D : 0x2B)
            line.append(decimal: minutes.magnitude / 60, width: 2)
            line.append(0x3A)
            line.append(decimal: minutes.magnitude % 60, width: 2)
        }
    }

    private let zone: LocalZone
    private var second: Int64 = .min
    /// The millisecond within that second.
    private var millisecond: UInt64 = .max
    /// The text `2026-11-21T17:22:42` of that second, followed by `.102+01:00` if one of its milliseconds was written.
    private var text = LineBuffer(capacity: 29)
    /// The quarter of an hour for which the offset was determined.
    private var quarter: Int64 = .min
    private var day = Day(number: .min, offset: 0)

    /// Creates a writer for times in a zone.
    package init(zone: LocalZone = .utc) { self.zone = zone }

    /// Appends RFC 3339, always with nine digits: `2026-11-21T17:22:42.102000000Z`.
    package mutating func append(_ time: Timestamp, to line: inout LineBuffer) {
        let fraction = begin(time)
        line.append(bytes: beginning)
        line.append(0x2E)
        line.append(decimal: fraction, width: 9)
        day.appendOffset(to: &line)
    }

    /// Appends RFC 3339 to the millisecond, cut and not rounded: `2026-11-21T17:22:42.102+01:00`. A time without a day
    /// is written as `17:22:42.102`.
    package mutating func appendStamp(_ time: Timestamp, to line: inout LineBuffer) {
        guard time.hasDay else { return appendTimeOfDay(time, to: &line) }
        rememberMillisecond(of: time)
        line.append(bytes: text.span)
    }

    /// Appends the time of day to the millisecond, cut and not rounded: `17:22:42.102`.
    package mutating func appendTimeOfDay(_ time: Timestamp, to line: inout LineBuffer) {
        rememberMillisecond(of: time)
        line.append(bytes: text.span.extracting(11..<23))
    }

    /// Returns the day of a time, and its offset; nil for a time without a day.
    package mutating func day(of time: Timestamp) -> Day? {
        guard time.hasDay else { return nil }
        _ = begin(time)
        return day
    }

    /// Appends the day of a time and the zone: `2026-11-21 +01:00`, `2026-11-21 UTC`; nothing for a time without a day.
    package mutating func appendDay(of time: Timestamp, to line: inout LineBuffer) {
        guard let day = day(of: time) else { return }
        line.append(bytes: text.span.extracting(0..<10))
        line.append(0x20)
        if day.offset / 60 == 0 { line.append("UTC") } else { day.appendOffset(to: &line) }
    }

    /// Sets ``beginning`` to this time; returns the remaining nanoseconds.
    mutating func begin(_ time: Timestamp) -> UInt64 {
        let (seconds, fraction) = time.parts
        remember(seconds)
        return fraction
    }

    /// The last time passed to ``begin(_:)``, up to the second: `2026-11-21T17:22:42`.
    var beginning: RawSpan {
        @_lifetime(borrow self)
        get { text.span.extracting(0..<19) }
    }

    private mutating func rememberMillisecond(of time: Timestamp) {
        let millisecond = begin(time) / 1_000_000
        guard millisecond != self.millisecond else { return }
        self.millisecond = millisecond
        text.truncate(to: 19)
        text.append(0x2E)
        text.append(decimal: millisecond, width: 3)
        day.appendOffset(to: &text)
    }

    private mutating func remember(_ seconds: Int64) {
        guard seconds != second else { return }
        second = seconds
        millisecond = .max
        let quarter = seconds / 900
        if quarter != self.quarter {
            self.quarter = quarter
            let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
            day = Day(number: day.number, offset: overflow ? 0 : zone.offset(at: Timestamp(nanoseconds: nanoseconds)))
        }
        let local = seconds + day.offset
        let days = local >= 0 ? local / 86_400 : (local - 86_399) / 86_400
        day = Day(number: days, offset: day.offset)
        let ofDay = UInt64(local - days * 86_400)
        let date = CivilDate(daysSince1970: days)
        text.removeAll()
        text.append(decimal: UInt64(date.year), width: 4)
        text.append(0x2D)
        text.append(decimal: UInt64(date.month), width: 2)
        text.append(0x2D)
        text.append(decimal: UInt64(date.day), width: 2)
        text.append(0x54)
        text.append(decimal: ofDay / 3600, width: 2)
        text.append(0x3A)
        text.append(decimal: ofDay / 60 % 60, width: 2)
        text.append(0x3A)
        text.append(decimal: ofDay % 60, width: 2)
    }
}
