internal import TapRecord

/// A time as typed for `--since` and `--until`: a date and time, a time of day, or a duration before now.
enum TimeBound: Hashable {
    case time(Timestamp)
    /// A date and time without a zone, as a timestamp that shows the same in UTC.
    case clock(Timestamp)
    /// Nanoseconds since midnight, and the offset of the zone in minutes east of UTC; nil is local time.
    case timeOfDay(Int64, offset: Int64?)
    /// Nanoseconds before now.
    case ago(Int64)

    private static let day: Int64 = 86_400_000_000_000

    static func parse(_ text: String) throws(Failure) -> TimeBound {
        if text.hasPrefix("-") {
            return .ago(try TimeSpan.parse(String(text.dropFirst()), atMost: 366 * day))
        }
        guard let bound = timeOfDay(text) ?? instant(text) else {
            throw .usage("write a time as in 2026-11-21T17:22:42Z, a time of day as in 17:22, or -10m")
        }
        return bound
    }

    /// Returns the range of times between two bounds, excluding the second one; nil if both are nil.
    ///
    /// - Parameters:
    ///   - beginning: The start of the recording. A time of day refers to that day; as the second bound, if necessary
    ///     to a later one.
    ///   - now: The current time.
    ///   - zone: The zone for times without one.
    static func range(
        since: TimeBound?,
        until: TimeBound?,
        beginning: Timestamp,
        now: Timestamp,
        in zone: LocalZone
    ) -> Range<Timestamp>? {
        guard since != nil || until != nil else { return nil }
        func resolve(_ bound: TimeBound, after start: Timestamp?) -> Timestamp {
            switch bound {
            case .time(let time): return time
            case .clock(let clock): return zone.time(of: clock)
            case .ago(let span): return Timestamp(nanoseconds: now.nanoseconds &- span)
            case .timeOfDay(let time, let minutes):
                let shift = minutes.map { $0 &* 60_000_000_000 }
                let origin = beginning.nanoseconds &+ (shift ?? zone.offset(at: beginning) &* 1_000_000_000)
                var clock = Timestamp(nanoseconds: origin &- ((origin % day) + day) % day &+ time)
                var found: Timestamp {
                    shift.map { Timestamp(nanoseconds: clock.nanoseconds &- $0) } ?? zone.time(of: clock)
                }
                guard let start, found <= start else { return found }
                clock.nanoseconds &+= ((start.nanoseconds &- found.nanoseconds) / day &+ 1) &* day
                return found
            }
        }
        let first = since.map { resolve($0, after: nil) } ?? Timestamp(nanoseconds: .min)
        let last = until.map { resolve($0, after: max(first, beginning)) } ?? Timestamp(nanoseconds: .max)
        return first..<max(first, last)
    }

    /// Parses `17:22`, optionally followed by `Z` or an offset such as `+01:00`.
    private static func timeOfDay(_ text: String) -> TimeBound? {
        var rest = text[...]
        let offset = takeOffset(&rest)
        return clock(rest).map { .timeOfDay($0, offset: offset) }
    }

    /// Parses `2026-11-21`, optionally followed by `T` or a space and a time of day, and then by `Z` or an offset such
    /// as `+01:00`.
    private static func instant(_ text: String) -> TimeBound? {
        let date = text.prefix(10)
        guard let midnight = Timestamp(rfc3339: "\(date)T00:00:00Z") else { return nil }
        var rest = text.dropFirst(10)
        guard !rest.isEmpty else { return .clock(midnight) }
        guard let separator = rest.popFirst(), separator == "T" || separator == " " else { return nil }
        let offset = takeOffset(&rest)
        guard let time = clock(rest) else { return nil }
        let shown = Timestamp(nanoseconds: midnight.nanoseconds &+ time)
        guard let offset else { return .clock(shown) }
        return .time(Timestamp(nanoseconds: shown.nanoseconds &- offset &* 60_000_000_000))
    }

    /// Removes `Z` or an offset such as `+01:00` from the end of a text, and returns it in minutes; nil if there is
    /// none.
    private static func takeOffset(_ text: inout Substring) -> Int64? {
        if text.last == "Z" {
            text.removeLast()
            return 0
        }
        guard let sign = text.lastIndex(where: { $0 == "+" || $0 == "-" }) else { return nil }
        let zone = text[text.index(after: sign)...]
        guard zone.count == 5, let time = clock(zone) else { return nil }
        let minutes = time / 60_000_000_000
        defer { text = text[..<sign] }
        return text[sign] == "+" ? minutes : -minutes
    }

    /// Returns the nanoseconds since midnight of `17:22`, `17:22:42` or `17:22:42.102`; nil if the text is invalid.
    private static func clock(_ text: Substring) -> Int64? {
        let full = text.count == 5 ? "\(text):00" : String(text)
        guard full.utf8.count >= 8, let time = Timestamp(rfc3339: "1970-01-01T\(full)Z") else { return nil }
        return time.nanoseconds
    }
}
