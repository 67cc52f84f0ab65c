internal import NIOCore
internal import TapCore
internal import TapRecord

/// Decides when sessions whose peers send many small pieces one way pause a moment before they are read again.
///
/// A loop that reads as soon as it can finds one stanza in each read, and wakes the receiver up for each: system calls and
/// context switches cost more than all else, and leave the sender no time to send more. With a moment between the reads each
/// brings several, as network cards moderate their interrupts.
///
/// The loop itself does not wait: other sessions are served during a moment. No moment is taken while a session of the turn hears
/// answers, or the loop has slept for want of bytes. A stanza that ends a stream may wait for one. Belongs to one event loop.
struct ReadPacing {
    /// Turns in which a session read from one of its peers, with none of the other between them, that make it stream.
    static let streamingTurns = 8
    /// Bytes for each session of a turn above which no moment is taken: reads are worth their cost.
    private static let smallRead = 4096
    /// How long a turn takes at most on average, without moments and decoding, in nanoseconds for each session and one more:
    /// about what it takes without sleep.
    private static let busyTurn: Int64 = 20_000
    /// More of one turn does not count: a loop that slept once in between is busy soon again.
    private static let longestTurn: Int64 = 200_000
    /// How long a moment takes.
    static let moment = TimeAmount.microseconds(70)
    /// Nanoseconds without moments behind a turn in which a session heard an answer.
    private static let dialogue: Int64 = 1_000_000
    /// Nanoseconds of a moment that shows that the system cannot wait for so short a time, or is busy with others, and those
    /// without moments behind it.
    private static let long: Int64 = 1_000_000
    private static let rest: Int64 = 100_000_000

    /// When the turn before had ended, or the moment behind it, in nanoseconds of the run.
    private var last = Int64.min
    /// The average of a turn, in nanoseconds for each session and one more.
    private var average = longestTurn
    /// No moment is taken before that.
    private var notBefore = Int64.min

    /// Ends a turn in which a session heard an answer.
    mutating func endDialogue(at now: Int64) { notBefore = max(notBefore, now &+ Self.dialogue) }

    /// Ends a turn of sessions that all stream, and says whether they pause before they are read again.
    /// - Parameters:
    ///   - sessions: How many were read.
    ///   - bytes: How many they had together.
    ///   - sent: When what was read had been sent on, in nanoseconds of the run.
    ///   - now: When it had been decoded.
    mutating func endStreaming(sessions: Int, bytes: Int, sent: Int64, at now: Int64) -> Bool {
        let (took, isLong) = sent.subtractingReportingOverflow(last)
        let share = isLong ? Self.longestTurn : max(0, min(took / Int64(sessions + 1), Self.longestTurn))
        average += (share - average) / 8
        last = now
        return average <= Self.busyTurn && bytes <= Self.smallRead * sessions && now >= notBefore
    }

    /// Notes when a moment had ended.
    mutating func endMoment(at now: Int64) {
        if now &- last > Self.long { notBefore = now &+ Self.rest }
        last = now
    }
}
