import Testing

@testable import TapNetwork

struct ReadPacingTests {
    /// Turns of a loop that end every `interval` nanoseconds: whether each is followed by a moment.
    private func moments(
        _ turns: Int = 4,
        interval: Int64 = 30_000,
        sessions: Int = 2,
        bytes: Int = 900,
        isOneWay: Bool = true
    ) -> [Bool] {
        var pacing = ReadPacing()
        return (1...Int64(turns)).map {
            pacing.isMomentDue(sessions: sessions, bytes: bytes, isOneWay: isOneWay, at: $0 * interval)
        }
    }

    @Test func aBusyLoopWaitsWhereSmallPiecesStreamOneWay() { #expect(moments() == [false, true, true, true]) }

    @Test func whoWaitsForAnAnswerIsNotMadeToWait() {
        #expect(moments(isOneWay: false) == [false, false, false, false])
    }

    @Test func aLoopThatSleepsBetweenReadsDoesNotWait() {
        #expect(moments(interval: 1_000_000) == [false, false, false, false])
    }

    @Test func largePiecesAreReadAtOnce() { #expect(moments(bytes: 32768) == [false, false, false, false]) }

    @Test func manySessionsMayTakeLonger() {
        #expect(moments(interval: 300_000, sessions: 2) == [false, false, false, false])
        #expect(moments(interval: 300_000, sessions: 16) == [false, true, true, true])
    }

    @Test func timesAtTheirLimitsAreTaken() {
        var pacing = ReadPacing()
        let moments = [.max, .min + 1].map { pacing.isMomentDue(sessions: 1, bytes: 1, isOneWay: true, at: $0) }
        #expect(moments == [false, false])
    }
}
