import TapRecord
import TapTestKit
import Testing

@Suite struct TimestampTests {
    private func text(_ nanoseconds: Int64) -> String {
        var writer = TimestampWriter()
        return line { writer.append(Timestamp(nanoseconds: nanoseconds), to: &$0) }
    }

    // Expected dates from GNU date.
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000000000Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (951_782_399_000_000_000, "2000-02-28T23:59:59.000000000Z"),
        (951_782_400_000_000_000, "2000-02-29T00:00:00.000000000Z"),
        (1_795_281_762_102_345_678, "2026-11-21T17:22:42.102345678Z"),
        (4_107_542_400_000_000_000, "2100-03-01T00:00:00.000000000Z"),
        (-2_203_891_200_000_000_000, "1900-03-01T00:00:00.000000000Z"),
        (Int64.max, "2262-04-11T23:47:16.854775807Z"),
        (Int64.min, "1677-09-21T00:12:43.145224192Z"),
    ])
    func `known times are written and read`(nanoseconds: Int64, text: String) {
        #expect(self.text(nanoseconds) == text)
        #expect(Timestamp(rfc3339: text)?.nanoseconds == nanoseconds)
    }

    @Test func `random times are read back`() {
        var random = SeededGenerator(seed: 2)
        var writer = TimestampWriter()
        for _ in 0..<5000 {
            let time = Timestamp(nanoseconds: .random(in: .min ... .max, using: &random))
            let text = line { writer.append(time, to: &$0) }
            #expect(Timestamp(rfc3339: text) == time, "\(text)")
        }
    }

    @Test func `the days of five centuries are in sequence`() {
        var days = 0
        for year in 1700..<2200 {
            for month in 1...12 {
                for day in 1...31 {
                    let text = "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)T00:00:00Z"
                    guard let time = Timestamp(rfc3339: text) else { continue }
                    #expect(time.nanoseconds == Int64(days - 98_615) * 86_400_000_000_000, "\(text)")
                    days += 1
                }
            }
        }
        #expect(days == 182_621)
    }

    @Test(arguments: [
        ("2026-11-21T17:22:42Z", 0), ("2026-11-21T17:22:42.1Z", 100_000_000), ("2026-11-21T17:22:42.000000001Z", 1),
    ])
    func `fractions of one to nine digits are read`(text: String, fraction: Int64) {
        #expect(Timestamp(rfc3339: text)?.nanoseconds == 1_795_281_762_000_000_000 + fraction)
    }

    @Test(arguments: [
        "", "Z", "2026-11-21", "2026-11-21T17:22:42", "2026-11-21t17:22:42Z", "2026-11-21T17:22:42z",
        "2026-11-21 17:22:42Z", "2026-11-21T17:22:42+00:00", "2026-11-21T17:22:42.Z", "2026-11-21T17:22:42.1234567890Z",
        "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z",
        "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z", "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z", "2016-12-31T23:59:60Z", "2026-1-01T00:00:00Z0", "2026-01-01T00:00:00,5Z",
        "+026-01-01T00:00:00Z", "2026-01-01T00:00:0 Z", "2026-01-01T00:00:00.-1Z", "２026-01-01T00:00:00Z",
        "2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224191Z", "9999-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
    ])
    func `other notations of a time are refused`(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test func `the time of day is truncated to milliseconds`() {
        var writer = TimestampWriter()
        func text(_ nanoseconds: Int64) -> String {
            line { writer.appendTimeOfDay(Timestamp(nanoseconds: nanoseconds), to: &$0) }
        }
        #expect(text(1_795_281_762_102_999_999) == "17:22:42.102")
        #expect(text(1_795_281_762_999_999_999) == "17:22:42.999")
        #expect(text(1_795_281_763_000_000_000) == "17:22:43.000")
        #expect(text(-1) == "23:59:59.999")
        // If the clock is set back, the cache must not return the later second.
        #expect(text(1_795_281_762_102_000_000) == "17:22:42.102")
    }

    @Test(arguments: [
        ("2026-11-21T17:22:42.102999Z", "2026-11-21T18:22:42.102+01:00", "2026-11-21 +01:00"),
        ("2026-10-24T22:00:00Z", "2026-10-25T00:00:00.000+02:00", "2026-10-25 +02:00"),
        ("2026-10-25T00:59:59.999Z", "2026-10-25T02:59:59.999+02:00", "2026-10-25 +02:00"),
        ("2026-10-25T01:00:00Z", "2026-10-25T02:00:00.000+01:00", "2026-10-25 +01:00"),
        ("1970-01-01T17:22:42.5Z", "17:22:42.500", ""),
    ])
    func `Local times have the date and offset, unless the date is unknown`(time: String, stamp: String, day: String)
        throws
    {
        let time = try #require(Timestamp(rfc3339: time))
        var writer = TimestampWriter(zone: .berlin)
        // Another time is in the writer's cache.
        _ = line { writer.appendStamp(Timestamp(nanoseconds: time.nanoseconds - 1), to: &$0) }
        #expect(line { writer.appendStamp(time, to: &$0) } == stamp)
        #expect(line { writer.appendDay(of: time, to: &$0) } == day)
        #expect(day.isEmpty || line { writer.appendTimeOfDay(time, to: &$0) } == stamp.dropFirst(11).prefix(12))
        #expect(line { TimestampWriter.utc(time, to: &$0) } == (time.hasDay ? "\(time.text.prefix(23))Z" : stamp))
    }

    @Test(arguments: [
        ("2026-11-21T18:22:42Z", "2026-11-21T17:22:42Z"), ("2026-07-21T18:22:42Z", "2026-07-21T16:22:42Z"),
        // If the clock shows a time twice, the first one is found; if the clock skips a time, the result is after the
        // change.
        ("2026-10-25T02:30:00Z", "2026-10-25T00:30:00Z"), ("2026-10-25T03:00:00Z", "2026-10-25T02:00:00Z"),
        ("2026-03-29T01:59:00Z", "2026-03-29T00:59:00Z"), ("2026-03-29T03:00:00Z", "2026-03-29T01:00:00Z"),
        ("1970-01-01T17:22:42Z", "1970-01-01T17:22:42Z"),
    ])
    func `A local time is converted to UTC`(clock: String, time: String) throws {
        let shown = try #require(Timestamp(rfc3339: clock))
        #expect(LocalZone.berlin.time(of: shown) == Timestamp(rfc3339: time))
    }

    @Test func `timestamps are ordered`() {
        #expect(Timestamp(nanoseconds: -1) < Timestamp(nanoseconds: 0))
    }
}

extension TimestampWriter {
    /// Appends the stamp of a time in UTC.
    fileprivate static func utc(_ time: Timestamp, to line: inout LineBuffer) {
        var writer = TimestampWriter()
        writer.appendStamp(time, to: &line)
    }
}
