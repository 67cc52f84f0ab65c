import TapRecord
import Testing

struct RunIdentifierTests {
    @Test("The identifier of a run is that of RFC 9562's example for its time and random bits")
    func example() {
        // RFC 9562 appendix A.6.
        let time = Timestamp(nanoseconds: 1_645_557_742_000 * 1_000_000)
        let random: [UInt8] = [0x0C, 0xC3, 0x18, 0xC4, 0xDC, 0x0C, 0x0C, 0x07, 0x39, 0x8F]
        #expect(RunIdentifier.text(at: time, random: random) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
    }

    @Test("Identifiers sort by time")
    func order() {
        let random = [UInt8](repeating: 0xFF, count: RunIdentifier.randomCount)
        let texts = [0, 1, 255, 256, 1_795_000_000_000].map { (milliseconds: Int64) in
            RunIdentifier.text(at: Timestamp(nanoseconds: milliseconds * 1_000_000), random: random)
        }
        #expect(texts == texts.sorted() && texts.allSatisfy { $0.utf8.count == 36 })
    }
}
