internal import Synchronization

/// What all sessions of one run of the program share: when it began, the numbers of its records and sessions.
public final class Run: Sendable {
    /// A reading of both clocks, taken by whoever has clocks.
    public struct Instant: Sendable, Hashable {
        /// Wall clock.
        public var time: Timestamp
        /// Nanoseconds since the run began; never goes back.
        public var monotonic: Int64

        /// A reading of both clocks.
        public init(time: Timestamp, monotonic: Int64) {
            self.time = time
            self.monotonic = monotonic
        }

        /// The moment `nanoseconds` later.
        public func advanced(by nanoseconds: Int64) -> Instant {
            Instant(
                time: Timestamp(nanoseconds: time.nanoseconds &+ nanoseconds),
                monotonic: monotonic &+ nanoseconds
            )
        }
    }

    /// The numbers of this run's secrets.
    public let secrets = SecretRegistry()

    private let sequence = Atomic<UInt64>(0)
    private let session = Atomic<UInt64>(0)

    /// A run that has not recorded anything.
    public init() {}

    /// The number of the next record.
    public func nextSequence() -> UInt64 { sequence.add(1, ordering: .relaxed).newValue }

    /// The number of the next session.
    public func nextSession() -> UInt64 { session.add(1, ordering: .relaxed).newValue }
}
