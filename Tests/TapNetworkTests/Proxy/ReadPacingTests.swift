import Testing

@testable import TapNetwork

struct ReadPacingTests {
    /// Turns of a loop, each `read` nanoseconds behind the one before and decoded in `decoding`: how many a moment follows.
    private func moments(
        _ pacing: inout ReadPacing,
        turns: Int = 100,
        read: Int64 = 30_000,
        decoding: Int64 = 0,
        sessions: Int = 2,
        bytes: Int = 900
    ) -> Int {
        (1...Int64(turns)).count { turn in
            let sent = turn * (read + decoding) - decoding
            return pacing.endStreaming(sessions: sessions, bytes: bytes, sent: sent, at: sent + decoding)
        }
    }

    @Test func aBusyLoopWaitsWhereSmallPiecesStreamOneWay() {
        var pacing = ReadPacing()
        let count = moments(&pacing)
        #expect((50..<100).contains(count))
        #expect(moments(&pacing, read: 20_000) == 100)
    }

    @Test func timeForDecodingIsNoSleep() {
        var (quick, slow) = (ReadPacing(), ReadPacing())
        #expect(moments(&quick) == moments(&slow, decoding: 5_000_000))
    }

    @Test func noMomentIsTakenNearAnAnswer() {
        var pacing = ReadPacing()
        _ = moments(&pacing)
        pacing.endDialogue(at: 0)
        #expect(moments(&pacing, turns: 40) == 40 - 1_000_000 / 30_000)
    }

    @Test func aLoopThatSleepsBetweenReadsDoesNotWait() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, read: 1_000_000) == 0)
        // Seldom, it does no harm.
        _ = moments(&pacing)
        #expect(moments(&pacing, turns: 2, read: 100_000) == 2)
    }

    @Test func largePiecesAreReadAtOnce() {
        var pacing = ReadPacing()
        #expect(moments(&pacing, bytes: 32768) == 0)
    }

    @Test func manySessionsMayTakeLonger() {
        var (few, many) = (ReadPacing(), ReadPacing())
        #expect(moments(&few, read: 300_000, sessions: 2) == 0)
        #expect(moments(&many, read: 300_000, sessions: 16) > 0)
    }

    @Test func aSystemThatWaitsTooLongIsNotAskedAgainSoon() {
        var pacing = ReadPacing()
        let count = moments(&pacing)
        #expect(count > 0)
        pacing.endMoment(at: 4_100_000)
        let soon = pacing.endStreaming(sessions: 1, bytes: 1, sent: 4_110_000, at: 4_110_000)
        let later = pacing.endStreaming(sessions: 1, bytes: 1, sent: 4_120_000, at: 104_200_000)
        #expect(!soon && later)
    }

    @Test func timesAtTheirLimitsAreTaken() {
        var pacing = ReadPacing()
        pacing.endDialogue(at: .max - 1_000_000)
        let count = [.max, .min + 1, 0, .min + 2, .max, .min].count {
            pacing.endStreaming(sessions: 1, bytes: 1, sent: $0, at: $0)
        }
        #expect(count == 0)
        pacing.endMoment(at: .max)
    }
}
