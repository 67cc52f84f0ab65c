@testable import TapRecord
import Testing

/// Returns the text that `body` appends to an empty line.
func line(_ body: (inout LineBuffer) -> Void) -> String {
    var line = LineBuffer()
    body(&line)
    return String(decoding: line.bytes, as: UTF8.self)
}

@Suite struct LineBufferTests {
    @Test func `Copying a part beyond the end of the line traps`() async {
        var copy: [UInt8] = []
        var line = LineBuffer(capacity: 8)
        line.append(string: "abc")
        line.copy(1..<3, to: &copy)
        line.copy(3..<3, to: &copy)
        #expect(copy == Array("bc".utf8))
        await #expect(processExitsWith: .failure) {
            var copy: [UInt8] = []
            LineBuffer(capacity: 8).copy(0..<4096, to: &copy)
        }
        await #expect(processExitsWith: .failure) {
            var copy: [UInt8] = []
            LineBuffer(capacity: 8).copy(-8..<0, to: &copy)
        }
    }

    @Test func `a line buffer appends and truncates`() {
        var line = LineBuffer(capacity: 0)
        line.append("a")
        line.append(string: "bc")
        line.append(bytes: [0x64, 0xFF])
        let more: [UInt8] = [0x65, 0x66]
        line.append(bytes: more.span.bytes)
        #expect(line.bytes == [0x61, 0x62, 0x63, 0x64, 0xFF, 0x65, 0x66])
        line.truncate(to: 2)
        line.truncate(to: 7)
        #expect(line.bytes == [0x61, 0x62])
        line.endLine()
        #expect(line.count == 3)
        line.truncate(to: -1)
        #expect(line.count == 0)
    }

    @Test func `a line buffer keeps its memory unless it has grown too large`() {
        var line = LineBuffer(capacity: 4096)
        line.append(bytes: [UInt8](repeating: 0x61, count: 3000))
        line.removeAll()
        #expect(line.count == 0)
        #expect(line.capacity >= 4096)
        line.append(bytes: [UInt8](repeating: 0x61, count: 1 << 20))
        line.removeAll()
        #expect(line.capacity < 1 << 18)
    }

    @Test(arguments: [
        (0, "0"), (7, "7"), (10, "10"), (-1, "-1"), (1_234_567_890, "1234567890"),
        (Int64.max, "9223372036854775807"), (Int64.min, "-9223372036854775808"),
    ])
    func `integers are written in decimal`(value: Int64, text: String) {
        #expect(line { $0.append(decimal: value) } == text)
        #expect(line { $0.append(decimal: Int(value)) } == text)
    }

    @Test func `the largest unsigned integer is written`() {
        #expect(line { $0.append(decimal: UInt64.max) } == "18446744073709551615")
    }

    @Test(arguments: [(0, 3, "000"), (7, 3, "007"), (123, 3, "123"), (1234, 3, "1234"), (10, 2, "10"), (5, 0, "5")])
    func `integers are padded with zeros`(value: UInt64, width: Int, text: String) {
        #expect(line { $0.append(decimal: value, width: width) } == text)
    }

    @Test(arguments: [
        (0, "0"), (1, "0.000000001"), (1_000_000_000, "1"), (12_000_250_000, "12.00025"), (-500_000_000, "-0.5"),
        (38_412_000, "0.038412"), (Int64.max, "9223372036.854775807"), (Int64.min, "-9223372036.854775808"),
    ])
    func `seconds are written exactly`(nanoseconds: Int64, text: String) {
        #expect(line { $0.append(seconds: nanoseconds) } == text)
    }
}

@Suite struct HumanUnitsTests {
    @Test(arguments: [
        (0, "0 B"), (345, "345 B"), (999, "999 B"), (1000, "1.0 kB"), (1234, "1.2 kB"), (1250, "1.3 kB"),
        (9949, "9.9 kB"), (9950, "10 kB"), (38_000, "38 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"),
        (50 << 20, "52 MB"), (1_000_000_000, "1.0 GB"), (UInt64.max, "18 EB"),
    ])
    func `sizes are written with a unit`(bytes: UInt64, text: String) {
        #expect(line { $0.append(size: bytes) } == text)
    }

    @Test(arguments: [
        (0, "0 s"), (1, "0.0 µs"), (50, "0.1 µs"), (1500, "1.5 µs"), (420_000, "420 µs"), (999_499, "999 µs"),
        (999_500, "1.0 ms"), (38_400_000, "38 ms"), (1_234_000_000, "1.2 s"), (12_500_000_000, "13 s"),
        (119_499_000_000, "119 s"), (120_000_000_000, "2 min"), (125_000_000_000, "2 min 5 s"),
        (7_199_000_000_000, "119 min 59 s"), (11_520_000_000_000, "3 h 12 min"), (-38_400_000, "-38 ms"),
    ])
    func `durations are written with a unit`(nanoseconds: Int64, text: String) {
        #expect(line { $0.append(duration: nanoseconds) } == text)
    }

    @Test func `the most negative duration is written`() {
        #expect(line { $0.append(duration: .min) } == "-2562047 h 47 min")
    }
}
