import Testing

@testable import xmpptap

@Suite struct PingStatisticsTests {
    @Test func `the summary has the form of ping(8)`() {
        var statistics = PingStatistics()
        for time: Int64? in [1_000_000, nil, 3_000_000] { statistics.add(time) }
        #expect(
            statistics.lines("juliet@example.org/balcony", time: 2_003_900_000) == [
                "", "--- juliet@example.org/balcony ping statistics ---",
                "3 sent, 2 answered, 33.3% loss, time 2003 ms",
                "rtt min/avg/max/mdev = 1.000/2.000/3.000/1.000 ms",
            ]
        )
        #expect(
            statistics.json(time: 5)
                == #"{"sent":3,"answered":2,"time_ns":5,"min_ns":1000000,"avg_ns":2000000,"max_ns":3000000,"mdev_ns":1000000}"#
        )
    }

    @Test func `the summary has no times if nothing was answered`() {
        var statistics = PingStatistics()
        #expect(statistics.lines("x", time: 0)[2] == "0 sent, 0 answered, 0% loss, time 0 ms")
        statistics.add(nil)
        #expect(statistics.lines("x", time: 0).count == 3 && statistics.lines("x", time: 0)[2].contains("100% loss"))
        #expect(statistics.json(time: 0) == #"{"sent":1,"answered":0,"time_ns":0}"#)
    }

    @Test(arguments: [
        (0, "0.000"), (999, "0.000"), (41_000, "0.041"), (1_234_567, "1.234"), (10_000_000_000, "10000.000"),
    ])
    func `milliseconds have three decimals`(nanoseconds: Int64, text: String) {
        #expect(PingStatistics.milliseconds(nanoseconds) == text)
    }
}
