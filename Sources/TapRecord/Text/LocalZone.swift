/// The offset of local time from UTC. The core has no time zone; the caller passes one.
public struct LocalZone: Sendable {
    private let name: String
    /// Seconds east of UTC at a time.
    private let seconds: @Sendable (Timestamp) -> Int64

    /// UTC.
    @usableFromInline package static let utc = LocalZone(name: "UTC") { _ in 0 }

    /// Creates a zone.
    ///
    /// - Parameters:
    ///   - name: The name that distinguishes it from other zones.
    ///   - seconds: Returns the seconds east of UTC at a time; they change at full quarters of an hour.
    package init(name: String, seconds: @escaping @Sendable (Timestamp) -> Int64) {
        self.name = name
        self.seconds = seconds
    }

    /// Returns the seconds east of UTC at a time; 0 for a time without a day, because its zone is unknown.
    package func offset(at time: Timestamp) -> Int64 { time.hasDay ? seconds(time) : 0 }

    /// Returns the time at which a clock in this zone shows the same as a UTC clock at `clock`; the earlier time if the
    /// clock in this zone shows it twice.
    package func time(of clock: Timestamp) -> Timestamp {
        guard clock.hasDay else { return clock }
        func time(_ offset: Int64) -> Timestamp {
            Timestamp(nanoseconds: clock.nanoseconds &- offset &* 1_000_000_000)
        }
        // Near a change of the offset, the offset of the day before selects the earlier of two possible times.
        let day: Int64 = 86_400
        let before = time(seconds(time(seconds(clock) &+ day)))
        if seconds(before) == seconds(time(seconds(clock) &+ day)) { return before }
        return time(seconds(time(seconds(clock))))
    }
}

extension LocalZone: Hashable {
    /// Compares the names of the zones.
    public static func == (left: LocalZone, right: LocalZone) -> Bool { left.name == right.name }

    /// Hashes the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Timestamp {
    /// Whether the day is known: times of client logs without a day are read as times at the beginning of 1970.
    package var hasDay: Bool { !(0..<366 * 86_400_000_000_000).contains(nanoseconds) }
}
