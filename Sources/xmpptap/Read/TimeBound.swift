internal import TapRecord

/// A moment as typed for `--since` and `--until`: a time, a time of day, or so long before now.
enum TimeBound: Hashable {
    case time(Timestamp)
    /// Nanoseconds since midnight in UTC, as in the text log.
    case timeOfDay(Int64)
    /// Nanoseconds before now.
    case ago(Int64)

    private static let day: Int64 = 86_400_000_000_000

    static func parse(_ text: String) throws(Failure) -> TimeBound {
        if text.hasPrefix("-") {
            return .ago(try TimeSpan.parse(String(text.dropFirst()), atMost: 366 * day))
        }
        if let time = clock(text[...]) { return .timeOfDay(time) }
        guard let time = instant(text) else {
            throw .usage("write a time as in 2026-11-21T17:22:42Z, a time of day in UTC as in 17:22, or -10m")
        }
        return .time(time)
    }

    /// The range of times between two bounds, of which the second is excluded.
    ///
    /// - Parameters:
    ///   - beginning: When the recording began: a time of day is one of that day, and as an end the next one.
    ///   - now: The wall clock.
    static func range(since: TimeBound?, until: TimeBound?, beginning: Timestamp, now: Timestamp) -> Range<Timestamp>? {
        guard since != nil || until != nil else { return nil }
        func resolve(_ bound: TimeBound, after start: Timestamp?) -> Timestamp {
            switch bound {
            case .time(let time): return time
            case .ago(let span): return Timestamp(nanoseconds: now.nanoseconds &- span)
            case .timeOfDay(let time):
                let origin = beginning.nanoseconds
                let midnight = origin &- ((origin % day) + day) % day
                let found = Timestamp(nanoseconds: midnight &+ time)
                guard let start, found <= start else { return found }
                let days = (start.nanoseconds &- found.nanoseconds) / day + 1
                return Timestamp(nanoseconds: found.nanoseconds &+ days &* day)
            }
        }
        let first = since.map { resolve($0, after: nil) } ?? Timestamp(nanoseconds: .min)
        let last = until.map { resolve($0, after: max(first, beginning)) } ?? Timestamp(nanoseconds: .max)
        return first..<max(first, last)
    }

    /// `2026-11-21`, with a time of day behind `T` or a space, and `Z` or an offset such as `+01:00` behind that.
    private static func instant(_ text: String) -> Timestamp? {
        let date = text.prefix(10)
        guard let midnight = Timestamp(rfc3339: "\(date)T00:00:00Z") else { return nil }
        var rest = text.dropFirst(10)
        guard !rest.isEmpty else { return midnight }
        guard let separator = rest.popFirst(), separator == "T" || separator == " " else { return nil }
        var offset: Int64 = 0
        if rest.last == "Z" {
            rest.removeLast()
        } else if let sign = rest.lastIndex(where: { $0 == "+" || $0 == "-" }) {
            let zone = rest[rest.index(after: sign)...]
            guard zone.count == 5, let minutes = clock(zone) else { return nil }
            offset = rest[sign] == "+" ? minutes : -minutes
            rest = rest[..<sign]
        }
        guard let time = clock(rest) else { return nil }
        return Timestamp(nanoseconds: midnight.nanoseconds &+ time &- offset)
    }

    /// Nanoseconds since midnight of `17:22`, `17:22:42` or `17:22:42.102`.
    private static func clock(_ text: Substring) -> Int64? {
        let full = text.count == 5 ? "\(text):00" : String(text)
        guard full.utf8.count >= 8, let time = Timestamp(rfc3339: "1970-01-01T\(full)Z") else { return nil }
        return time.nanoseconds
    }
}
