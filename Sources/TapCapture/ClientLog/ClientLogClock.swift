internal import TapCore
internal import TapRecord

/// A day of the calendar, as a line of a log names it.
struct CalendarDay: Hashable {
    let year: Int
    /// The month and the day of the month, from 1.
    let month: Int
    let day: Int

    /// The day of times without a date.
    static let first = CalendarDay(year: 1970, month: 1, day: 1)
    /// A year that has all days, for days without a year.
    static let leapYear = 1972

    private static let daysBefore = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]

    /// The number of days by which lines may be out of order; a log may have longer gaps.
    private static let maximumDisorder = 31

    /// The day itself; nil if no year has it.
    var valid: CalendarDay? {
        guard (1...12).contains(month), day >= 1, day <= 31 else { return nil }
        let length = month == 2 ? 29 : [4, 6, 9, 11].contains(month) ? 30 : 31
        return day <= length ? self : nil
    }

    /// Returns the number of days from this day to another one, both without a year: negative for up to
    /// ``maximumDisorder`` earlier days, positive for all others.
    func days(to other: CalendarDay) -> Int {
        let hasLeapDay = [self, other].contains { $0.month == 2 && $0.day == 29 }
        let days = other.ordinal(hasLeapDay) - ordinal(hasLeapDay)
        let year = hasLeapDay ? 366 : 365
        if days < -Self.maximumDisorder { return days + year }
        return days >= year - Self.maximumDisorder ? days - year : days
    }

    /// The number of days since the beginning of the year.
    private func ordinal(_ hasLeapDay: Bool) -> Int {
        guard (1...Self.daysBefore.count).contains(month) else { return 0 }
        return Self.daysBefore[month - 1] + day - 1 + (hasLeapDay && month > 2 ? 1 : 0)
    }

    init(year: Int, month: Int, day: Int) { (self.year, self.month, self.day) = (year, month, day) }

    /// The midnight before the day, in UTC; nil if the year lacks the day.
    private var midnight: Timestamp? {
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return Timestamp(rfc3339: "\(digits(year, 4))-\(digits(month, 2))-\(digits(day, 2))T00:00:00Z")
    }

    /// Returns the midnight before the day, in UTC, in the year in which the day is nearest to `other`; nil if it is
    /// more than ``maximumDisorder`` days away, because nothing then says which year it is.
    func midnight(near other: Timestamp) -> Timestamp? {
        let year = CalendarDay(other).year
        let found = (year - 1...year + 1).lazy.compactMap { CalendarDay(year: $0, month: month, day: day).midnight }
        return found.first {
            ($0.nanoseconds &- other.nanoseconds).magnitude / 86_400_000_000_000 <= UInt64(Self.maximumDisorder)
        }
    }

    /// Creates the day of a time in UTC.
    init(_ time: Timestamp) {
        let numbers = time.text.prefix(10).split(separator: "-").compactMap { Int($0) }
        self.init(year: numbers.first ?? 1970, month: numbers.dropFirst().first ?? 1, day: numbers.last ?? 1)
    }
}

/// Converts the times of a log to times of a run. They never go back, and a log without dates may pass midnight.
///
/// A date without a year counts from the date of the line before it. The first one is the first day of the log, see
/// ``began``, unless a line before it names a day.
///
/// Days are counted in local time, because a day with a change of daylight saving time does not have 24 hours.
struct ClientLogClock {
    private static let day: Int64 = 86_400_000_000_000
    /// The time in nanoseconds by which lines of a day may be out of order. If the clock goes back further during an hour
    /// that it shows twice, the hour has begun again.
    private static let maximumDisorder: Int64 = 300_000_000_000

    private let zone: LocalZone
    private var first: Timestamp?
    private var last = Timestamp(nanoseconds: 0)
    /// The zone of ``midnight``: UTC as long as the day is unknown, and for logs of xmpptap without dates.
    private var dayZone = LocalZone.utc
    /// The midnight of the current day in ``dayZone``, as if it were UTC; added to times without a year.
    private var midnight: Int64 = 0
    /// The last day that a line has named, and its midnight like ``midnight``; nil if no line has named one.
    private var date: (day: CalendarDay, midnight: Int64)?
    /// The first day that a line has named without a year, and its distance in nanoseconds from the first day of the
    /// log; nil if no line has named one.
    private var firstDate: (day: CalendarDay, distance: Int64)?
    /// The midnight, like ``midnight``, of the last day that a line has named with its year.
    private var named: Int64?

    /// Creates a clock. Times that do not name a zone are in `zone`.
    init(zone: LocalZone) { self.zone = zone }

    /// Sets the day of the lines that follow to the day of `time` in UTC.
    mutating func begin(_ time: Timestamp) {
        (midnight, dayZone, named) = (Self.midnight(before: time.nanoseconds), .utc, nil)
    }

    /// Sets the day of the lines that follow to the day that begins at `midnight`.
    mutating func begin(midnight: Timestamp) { (self.midnight, dayZone) = (clock(at: midnight, in: zone), zone) }

    private static func midnight(before time: Int64) -> Int64 { time &- ((time % day) &+ day) % day }

    /// Whether a log whose first time is `began` names no day, or no year.
    static func lacksDay(_ began: Timestamp) -> Bool { (0..<day).contains(began.nanoseconds) }

    /// Returns the midnight before the first line of a log without years, which is read together with a recording that
    /// began at `other`; nil if the log names a day of which the year is not evident.
    ///
    /// A log without dates begins at the midnight before the recording, or at the next midnight if the log would
    /// otherwise begin more than half a day before the recording.
    func midnight(near other: Timestamp) -> Timestamp? {
        let clock = clock(at: other, in: zone)
        if let (day, distance) = firstDate {
            return day.midnight(near: Timestamp(nanoseconds: clock)).map {
                zone.time(of: Timestamp(nanoseconds: $0.nanoseconds &- distance))
            }
        }
        let start = Self.midnight(before: clock)
        let isNext = start &+ began.nanoseconds < clock &- Self.day / 2
        return zone.time(of: Timestamp(nanoseconds: isNext ? start &+ Self.day : start))
    }

    /// The first time in the log; 1970 if there is none yet.
    var began: Timestamp { first ?? Timestamp(nanoseconds: 0) }

    /// Returns the time of a line. A line without a time has the time of the line before it.
    mutating func instant(of stamp: ClientLogStamp?) -> Run.Instant {
        if let stamp {
            let time = time(of: stamp)
            last = first == nil ? time : max(last, time)
            first = first ?? time
        }
        return Run.Instant(last, since: first ?? last)
    }

    private mutating func time(of stamp: ClientLogStamp) -> Timestamp {
        if stamp.hasDay {
            let time = stamp.hasZone ? stamp.time : time(of: stamp.time.nanoseconds, in: zone)
            // Later lines may name less of the date.
            let clock = clock(at: time, in: zone)
            let start = Self.midnight(before: clock)
            if start != named {
                (named, midnight, dayZone) = (start, start, zone)
                date = (CalendarDay(Timestamp(nanoseconds: clock)), start)
            }
            return time
        }
        if let day = stamp.date {
            let days = date?.day.days(to: day) ?? 0
            let start = (date?.midnight ?? midnight) &+ Int64(days) &* Self.day
            if date == nil { firstDate = (day, midnight) }
            // A line that is out of order does not move the day of the lines after it.
            guard days >= 0 else { return time(of: stamp, on: start) }
            if start != midnight { named = nil }
            midnight = start
            date = (day, start)
        } else if first != nil, clock(at: last, in: dayZone) &- midnight &- stamp.time.nanoseconds > Self.day / 2 {
            midnight &+= Self.day
            named = nil
        }
        return time(of: stamp, on: midnight)
    }

    private func time(of stamp: ClientLogStamp, on midnight: Int64) -> Timestamp {
        let clock = midnight &+ stamp.time.nanoseconds
        return stamp.hasZone ? Timestamp(nanoseconds: clock) : time(of: clock, in: dayZone)
    }

    /// Returns what a clock in `zone` shows at a time, as if it were UTC.
    private func clock(at time: Timestamp, in zone: LocalZone) -> Int64 {
        time.nanoseconds &+ zone.offset(at: time) &* 1_000_000_000
    }

    /// Returns the time at which a clock in `zone` shows `clock`. If it shows it twice, the later time is returned if the
    /// lines before this one show that the earlier time has passed.
    private func time(of clock: Int64, in zone: LocalZone) -> Timestamp {
        let early = zone.time(of: Timestamp(nanoseconds: clock))
        guard first != nil, early.hasDay, last.nanoseconds &- early.nanoseconds > Self.maximumDisorder else {
            return early
        }
        let offset = zone.offset(at: Timestamp(nanoseconds: early.nanoseconds &+ Self.day / 8))
        let late = Timestamp(nanoseconds: clock &- offset &* 1_000_000_000)
        return late > early && zone.offset(at: late) == offset ? late : early
    }
}
