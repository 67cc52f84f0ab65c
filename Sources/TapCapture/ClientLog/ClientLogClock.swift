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
struct ClientLogClock {
    private static let day: Int64 = 86_400_000_000_000

    private let zone: LocalZone
    private var first: Timestamp?
    private var last = Timestamp(nanoseconds: 0)
    /// The midnight of the current day, in UTC; added to times without a year.
    private var midnight: Int64 = 0
    /// The last day that a line has named, and its midnight in UTC; nil if no line has named one.
    private var date: (day: CalendarDay, midnight: Int64)?
    /// The local midnight, as if it were UTC, of the last day that a line has named with its year.
    private var named: Int64?

    /// Creates a clock. Times that do not name a zone are in `zone`.
    init(zone: LocalZone) { self.zone = zone }

    /// Sets the day of the lines that follow to the day of `time` in UTC.
    mutating func begin(_ time: Timestamp) { midnight = Self.midnight(before: time.nanoseconds) }

    /// Sets the day of the lines that follow to the day that begins at `midnight`.
    mutating func begin(midnight: Timestamp) { self.midnight = midnight.nanoseconds }

    private static func midnight(before time: Int64) -> Int64 { time &- ((time % day) &+ day) % day }

    /// Whether a log whose first time is `began` names no day, or no year.
    static func lacksDay(_ began: Timestamp) -> Bool { (0..<day).contains(began.nanoseconds) }

    /// Returns the midnight before the first line of a log without dates, which is read together with a recording that
    /// began at `other`: the midnight before the recording, or the next midnight if the log would otherwise begin more
    /// than half a day before the recording.
    static func midnight(of time: Timestamp, near other: Timestamp, in zone: LocalZone) -> Timestamp {
        let clock = other.nanoseconds &+ zone.offset(at: other) &* 1_000_000_000
        let start = midnight(before: clock)
        let isNext = start &+ time.nanoseconds < clock &- day / 2
        return zone.time(of: Timestamp(nanoseconds: isNext ? start &+ day : start))
    }

    /// The first time in the log; 1970 if there is none yet.
    var began: Timestamp { first ?? Timestamp(nanoseconds: 0) }

    /// Returns the time of a line. A line without a time has the time of the line before it.
    mutating func instant(of stamp: ClientLogStamp?) -> Run.Instant {
        if let stamp {
            let time = Timestamp(nanoseconds: nanoseconds(of: stamp))
            last = first == nil ? time : max(last, time)
            first = first ?? time
        }
        return Run.Instant(last, since: first ?? last)
    }

    private mutating func nanoseconds(of stamp: ClientLogStamp) -> Int64 {
        if stamp.hasDay {
            let time = stamp.hasZone ? stamp.time : zone.time(of: stamp.time)
            // Later lines may name less of the date.
            let clock = time.nanoseconds &+ zone.offset(at: time) &* 1_000_000_000
            let start = Self.midnight(before: clock)
            if start != named {
                named = start
                midnight = zone.time(of: Timestamp(nanoseconds: start)).nanoseconds
                date = (CalendarDay(Timestamp(nanoseconds: clock)), midnight)
            }
            return time.nanoseconds
        }
        if let day = stamp.date {
            let days = date?.day.days(to: day) ?? 0
            let start = (date?.midnight ?? midnight) &+ Int64(days) &* Self.day
            // A line that is out of order does not move the day of the lines after it.
            guard days >= 0 else { return start &+ stamp.time.nanoseconds }
            if start != midnight { named = nil }
            midnight = start
            date = (day, start)
        } else if first != nil, last.nanoseconds &- midnight &- stamp.time.nanoseconds > Self.day / 2 {
            midnight &+= Self.day
            named = nil
        }
        return midnight &+ stamp.time.nanoseconds
    }
}
