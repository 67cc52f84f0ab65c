import TapRecord
import TapRules
import Testing

@testable import xmpptap

@Suite struct RuleFilesTests {
    @Test(
        arguments: [
            // Thursday, the first of January 1970, and the days before it.
            (0, 0, 0, 4), (-1, 0, 23 * 60 + 59, 3), (-86_400, 0, 0, 3), (-86_401, 0, 23 * 60 + 59, 2),
            (-7 * 86_400, 0, 0, 4), (-1, 3600, 59, 4), (0, -3600, 23 * 60, 3),
            // Saturday, 2026-11-21 17:22 UTC.
            (1_795_281_762, 0, 17 * 60 + 22, 6), (1_795_281_762, 8 * 3600, 60 + 22, 0),
        ] as [(Int64, Int64, Int, Int)]
    )
    func `Local times have the right weekday and minute, even before 1970`(
        seconds: Int64,
        offset: Int64,
        minute: Int,
        weekday: Int
    ) {
        // A part of a second does not round towards 1970.
        for nanoseconds in [0, 999_999_999] as [Int64] {
            let time = Timestamp(nanoseconds: seconds * 1_000_000_000 + nanoseconds)
            let local = RuleFiles.localTime(time, offset: offset)
            #expect(local.minute == minute && local.weekday == weekday)
        }
    }
}
