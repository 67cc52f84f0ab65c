/// How far local time is from UTC. The core has no time zone; whoever has one hands it in.
public struct LocalZone: Sendable {
    private let name: String
    /// Seconds east of UTC at a time.
    private let seconds: @Sendable (Timestamp) -> Int64

    /// UTC.
    public static let utc = LocalZone(name: "UTC") { _ in 0 }

    /// A zone.
    ///
    /// - Parameters:
    ///   - name: What tells it from other zones.
    ///   - seconds: Gives the seconds east of UTC at a time; they change at full quarters of an hour.
    public init(name: String, seconds: @escaping @Sendable (Timestamp) -> Int64) {
        self.name = name
        self.seconds = seconds
    }

    /// Seconds east of UTC at a time. Times without a day are as a clock showed them, in whatever zone.
    public func offset(at time: Timestamp) -> Int64 { time.hasDay ? seconds(time) : 0 }

    /// The time at which a clock in this zone shows what one in UTC shows at `clock`. Of a time that is shown twice, the first.
    public func time(of clock: Timestamp) -> Timestamp {
        guard clock.hasDay else { return clock }
        func time(_ offset: Int64) -> Timestamp {
            Timestamp(nanoseconds: clock.nanoseconds &- offset &* 1_000_000_000)
        }
        // Around a change of the offset, the one that holds a day before tells which of two times is the first.
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
    /// Whether the day is known: clients' logs that name none are read as written at the beginning of 1970.
    public var hasDay: Bool { !(0..<366 * 86_400_000_000_000).contains(nanoseconds) }
}
