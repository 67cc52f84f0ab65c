internal import TapCore
internal import TapRecord

/// Makes the times of a client's log into those of a run: they never go back, and pass midnight.
struct ClientLogClock {
    private static let day: Int64 = 86_400_000_000_000

    private var first: Timestamp?
    private var last = Timestamp(nanoseconds: 0)
    /// Midnights passed, in a log without days.
    private var shift: Int64 = 0

    /// The first time seen; 1970 before.
    var began: Timestamp { first ?? Timestamp(nanoseconds: 0) }

    /// The moment of a line; one without a time happened when the one before it did.
    mutating func instant(of stamp: ClientLogStamp?) -> Run.Instant {
        if let stamp {
            var time = Timestamp(nanoseconds: stamp.time.nanoseconds &+ shift)
            if !stamp.hasDay, first != nil, last.nanoseconds &- time.nanoseconds > Self.day / 2 {
                shift &+= Self.day
                time = Timestamp(nanoseconds: time.nanoseconds &+ Self.day)
            }
            last = first == nil ? time : max(last, time)
            first = first ?? time
        }
        return Run.Instant(time: last, monotonic: last.nanoseconds &- (first ?? last).nanoseconds)
    }
}
