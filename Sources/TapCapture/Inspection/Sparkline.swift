/// Counts over time in a fixed number of intervals, which become longer when the time does.
struct Sparkline {
    private let maximumCount: Int
    /// Nanoseconds of an interval.
    private(set) var width: Int64
    /// The time at which the first interval begins, in nanoseconds since 1970; nil before the first count.
    private(set) var start: Int64?
    /// The counts.
    private(set) var counts: [UInt32] = []

    /// Creates an empty line.
    ///
    /// - Parameters:
    ///   - intervals: Maximum number of intervals, an even number.
    ///   - width: Initial length of an interval in nanoseconds.
    init(intervals: Int, width: Int64) {
        maximumCount = max(2, intervals)
        self.width = width
    }

    /// Counts an event.
    mutating func add(at time: Int64) {
        let start = self.start ?? time
        self.start = start
        // A clock that was set back counts at the beginning.
        var index = max(0, time &- start) / width
        while index >= Int64(maximumCount) {
            counts = stride(from: 0, to: counts.count, by: 2).map { first in
                counts[first] &+ (first + 1 < counts.count ? counts[first + 1] : 0)
            }
            width *= 2
            index = max(0, time &- start) / width
        }
        let place = Int(index)
        if place >= counts.count { counts += repeatElement(0, count: place + 1 - counts.count) }
        counts[place] &+= 1
    }
}
