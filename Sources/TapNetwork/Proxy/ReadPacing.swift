internal import Glibc
internal import TapCore
internal import TapRecord

/// Has an event loop wait a moment before it reads again, where peers send many small pieces and hear nothing back.
///
/// A loop that reads as soon as it can finds one stanza in each read then, and wakes the receiver up for each: calls of the
/// system and changes between processes cost more than all else, and leave the sender no time to send more. With a moment
/// between the reads each brings several, as where network cards moderate their interrupts.
///
/// Who waits for an answer is never made to wait: the moment is taken only while all that was read goes one way in each
/// session, in pieces that came faster than the loop could take them. Belongs to one event loop.
struct ReadPacing {
    /// Reads of one direction, with none of the other between them, from which on a session streams.
    static let streamingReads = 8
    /// Bytes a session and turn above which reads are worth their cost.
    private static let smallRead = 4096
    /// Nanoseconds a session, and one more, that a turn of a loop takes at most that has not waited for something to read.
    private static let busyTurn: Int64 = 40_000
    /// Microseconds of the moment; the system adds about 50.
    private static let moment: useconds_t = 20

    /// When the turn before ended, or the moment behind it, in nanoseconds of the run.
    private var last = Int64.min

    /// Whether to wait before the next turn.
    /// - Parameters:
    ///   - sessions: How many were read in this turn.
    ///   - bytes: How many they had together.
    ///   - isOneWay: All of them stream.
    ///   - now: When what was read had been sent on.
    mutating func isMomentDue(sessions: Int, bytes: Int, isOneWay: Bool, at now: Int64) -> Bool {
        let (took, isLong) = now.subtractingReportingOverflow(last)
        last = now
        return isOneWay && !isLong && took <= Self.busyTurn * Int64(sessions + 1) && bytes <= Self.smallRead * sessions
    }

    /// Waits; `clock` gives the time of the run.
    mutating func wait(_ clock: RunClock) {
        usleep(Self.moment)
        last = clock.now().monotonic
    }
}
