import Testing

@testable import TapNetwork

struct ReadPacingTests {
    /// Turns of a loop, each `read` nanoseconds behind the one before and decoded in `decoding`: whether a moment is due.
    private func moments(
        _ pacing: inout ReadPacing,
        turns: Int = 4,
        read: Int64 = 30_000,
        decoding: Int64 = 0,
        sessions: Int = 2,
        bytes: Int = 900
    ) -> [Bool] {
        (1...Int64(turns)).map { turn in
            let sent = turn * (read + decoding) - decoding
            return pacing.endStreaming(sessions: sessions, bytes: bytes, sent: sent, at: sent + decoding)
        }
    }

    @Test func aBusyLoopWaitsWhereSmallPiecesStreamOneWay() {
        var pacing = ReadPacing()
        #expect(moments(&pacing) == [false, true, true, true])
    }

    @Test func timeForDecodingIsNoSleep() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, decoding: 5_000_000) == [false, true, true, true])
    }

    @Test func noMomentIsTakenNearAnAnswer() {
        var pacing = ReadPacing()
        pacing.endDialogue(at: 50_000)
        #expect(moments(&pacing, turns: 40) == (1...40).map { $0 * 30_000 >= 1_050_000 })
    }

    @Test func aLoopThatSleepsBetweenReadsDoesNotWait() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, read: 1_000_000) == [false, false, false, false])
    }

    @Test func largePiecesAreReadAtOnce() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, bytes: 32768) == [false, false, false, false])
    }

    @Test func manySessionsMayTakeLonger() {
        var few = ReadPacing()
        #expect(moments(&few, read: 300_000, sessions: 2) == [false, false, false, false])
        var many = ReadPacing()
        #expect(moments(&many, read: 300_000, sessions: 16) == [false, true, true, true])
    }

    @Test func aSystemThatWaitsTooLongIsNotAskedAgainForASecond() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, turns: 2) == [false, true])
        pacing.endMoment(at: 4_000_000)
        let soon = pacing.endStreaming(sessions: 1, bytes: 1, sent: 4_010_000, at: 4_010_000)
        #expect(!soon)
        pacing.endMoment(at: 1_004_000_000)
        let later = pacing.endStreaming(sessions: 1, bytes: 1, sent: 2_005_000_000, at: 2_005_000_000)
        let atOnce = pacing.endStreaming(sessions: 1, bytes: 1, sent: 2_005_010_000, at: 2_005_010_000)
        #expect(!later && atOnce)
    }

    @Test func timesAtTheirLimitsAreTaken() {
        var pacing = ReadPacing()
        pacing.endDialogue(at: .max)
        let moments = [.max, .min + 1].map { pacing.endStreaming(sessions: 1, bytes: 1, sent: $0, at: $0) }
        #expect(moments == [false, false])
        pacing.endMoment(at: .max)
    }
}
