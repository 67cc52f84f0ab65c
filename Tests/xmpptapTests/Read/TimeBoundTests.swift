import TapRecord
import TapTestKit
import Testing

@testable import xmpptap

@Suite struct TimeBoundTests {
    private static let beginning = Timestamp(rfc3339: "2026-11-21T23:50:00Z") ?? Timestamp(nanoseconds: 0)
    private static let now = Timestamp(rfc3339: "2026-11-22T08:00:00Z") ?? Timestamp(nanoseconds: 0)

    private func range(_ since: String?, _ until: String?, in zone: LocalZone = .utc) throws -> [String] {
        let range = try #require(
            TimeBound.range(
                since: try since.map(TimeBound.parse),
                until: try until.map(TimeBound.parse),
                beginning: Self.beginning,
                now: Self.now,
                in: zone
            )
        )
        return [range.lowerBound, range.upperBound].map { String($0.text.prefix(23)) }
    }

    @Test(arguments: [
        ("2026-11-21", "2026-11-21T00:00:00.000"), ("2026-11-21T17:22", "2026-11-21T17:22:00.000"),
        ("2026-11-21 17:22:42.102", "2026-11-21T17:22:42.102"), ("2026-11-21T17:22:42Z", "2026-11-21T17:22:42.000"),
        ("2026-11-21T17:22:42+01:00", "2026-11-21T16:22:42.000"), ("23:55", "2026-11-21T23:55:00.000"),
        ("23:55:01.5", "2026-11-21T23:55:01.500"), ("-10m", "2026-11-22T07:50:00.000"),
        ("-2h", "2026-11-22T06:00:00.000"),
    ])
    func `a time is absolute, on the recording's first day, or relative to now`(text: String, time: String)
        throws
    {
        #expect(try range(text, nil)[0] == time)
    }

    @Test func `a time of day as the end is the next one after the start`() throws {
        #expect(try range("23:55", "00:10") == ["2026-11-21T23:55:00.000", "2026-11-22T00:10:00.000"])
        #expect(try range(nil, "00:10")[1] == "2026-11-22T00:10:00.000")
        #expect(try range("22:00", "23:59")[1] == "2026-11-21T23:59:00.000")
        let empty = try range("2026-11-23", "2026-11-22")
        #expect(empty[0] == empty[1], "the end is before the start: nothing is chosen")
        #expect(TimeBound.range(since: nil, until: nil, beginning: Self.beginning, now: Self.now, in: .utc) == nil)
    }

    @Test(arguments: [
        ("2026-11-21", "2026-11-20T23:00:00.000"), ("2026-07-21 17:22", "2026-07-21T15:22:00.000"),
        ("2026-11-21T17:22:42Z", "2026-11-21T17:22:42.000"), ("00:10", "2026-11-21T23:10:00.000"),
        ("23:55Z", "2026-11-21T23:55:00.000"), ("23:55-02:00", "2026-11-22T01:55:00.000"),
    ])
    func `a time without a zone is local, on the recording's first local day`(text: String, time: String)
        throws
    {
        #expect(try range(text, nil, in: .berlin)[0] == time)
    }

    @Test(arguments: ["", "-", "yesterday", "25:00", "17:22+1", "2026-13-01", "2026-11-21X17:22", "-10x", "17:22:4"])
    func `an invalid time is refused`(text: String) {
        #expect(throws: Failure.self) { try TimeBound.parse(text) }
    }
}
