import Testing

@testable import xmpptap

@Suite struct ProgressLineTests {
    @Test(
        arguments: [
            (380_000_000, 1_000_000_000, Duration.seconds(2), "38% of 1.0 GB, 190 MB/s"),
            (0, 10, .zero, "100% of 10 B, 0 B/s"), (20, 10, .seconds(1), "100% of 10 B, 20 B/s"),
            (UInt64.max, UInt64.max, .seconds(1), "100% of 18 EB, 1.0 EB/s"),
        ] as [(UInt64, UInt64, Duration, String)]
    )
    func `progress shows the share, the size and the rate`(read: UInt64, size: UInt64, time: Duration, words: String) {
        #expect(ProgressLine.text(read: read, size: size, time: time) == words)
    }
}
