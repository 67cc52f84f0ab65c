import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

/// Records written at one go are those written piece by piece.
struct JSONCursorTests {
    private static func json(_ sample: Sample, _ parts: JSONForm.Parts, longestHead: Int) -> [UInt8] {
        var form = JSONForm(longestHead: longestHead)
        var line = LineBuffer(capacity: 8)
        form.append(sample.record, content: sample.content.span, parts, to: &line)
        form.append(sample.record, content: sample.content.span, parts, to: &line)
        return line.bytes
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `A record is the same at one go and piece by piece`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            var sample = Sample.random(&random)
            if Bool.random(using: &random) { sample.record.remarks = [] }
            let parts = JSONForm.Parts(rawValue: UInt8.random(in: 0...3, using: &random))
            let fast = Self.json(sample, parts, longestHead: .max)
            #expect(
                String(decoding: fast, as: UTF8.self)
                    == String(decoding: Self.json(sample, parts, longestHead: 0), as: UTF8.self)
            )
        }
    }

    @Test func `Bytes that are not UTF-8 are repaired in the same way, and long texts fit`() {
        for length in [0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 1000, 9000] {
            for byte: UInt8 in [0x61, 0x22, 0x5C, 0x00, 0x1F, 0x7F, 0x80, 0xC3, 0xF0, 0xFF] {
                var sample = Sample.bound(.stanza)
                sample.item(.recv, "<x/>", name: "x")
                let start = sample.content.count
                sample.content += [UInt8](repeating: byte, count: length)
                sample.record.from = .init(start, start + length)
                sample.record.to = .init(start, start + length)
                sample.record.id = .init(start, start + length)
                sample.record.payloadName = .init(start, start + length)
                sample.record.chunks = (0..<UInt64(length)).map { $0 << 40 }
                let fast = Self.json(sample, [.chunks], longestHead: .max)
                #expect(fast == Self.json(sample, [.chunks], longestHead: 0), "\(length) times \(byte)")
            }
        }
    }

    @Test(arguments: [
        0, 1, 9, 10, 11, 99, 100, 101, 999, 1_000, 9_999, 10_000, 123_456_789, 1_000_000_000,
        10_000_000_000_000_000_000, .max,
    ])
    func `Numbers are decimal`(value: UInt64) {
        func text(_ body: (inout JSONCursor) -> Void) -> String {
            LineBuffer.text { line in
                line.append(atMost: 64) { start in
                    var cursor = JSONCursor(start)
                    body(&cursor)
                    return cursor.count(from: start)
                }
            }
        }
        #expect(text { $0.decimal(value) } == "\(value)")
        let signed = Int64(clamping: value)
        for number in [signed, -signed] {
            #expect(text { $0.decimal(Int(number)) } == "\(number)")
            #expect(text { $0.seconds(number) } == LineBuffer.text { $0.append(seconds: number) })
        }
    }
}
