import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

/// Tests the first part of a record's line, which is written to memory that was reserved before.
struct JSONCursorTests {
    /// Writes a record, reads it, and returns its fields.
    private static func fields(_ sample: Sample, _ parts: JSONForm.Parts) throws -> JSONValue {
        var form = JSONForm()
        var line = LineBuffer(capacity: 8)
        form.append(sample.record, content: sample.content.span, parts, to: &line)
        let value = try JSONValue(line.span)
        var again = LineBuffer()
        form.append(try RecordLine(json: line.span), parts, to: &again)
        #expect(again.text == line.text)
        return value
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `A record's line is parsed to the values that were written`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            var sample = Sample.random(&random)
            if Bool.random(using: &random) { sample.record.remarks = [] }
            let parts = JSONForm.Parts(rawValue: UInt8.random(in: 0...3, using: &random))
            #expect(try Self.fields(sample, parts)["sequence"]?.json == "\(sample.record.sequence)")
        }
    }

    @Test func `Invalid UTF-8 is replaced, and long texts are written completely`() throws {
        for length in [0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 1000, 9000, 90_000] {
            for byte: UInt8 in [0x61, 0x22, 0x5C, 0x00, 0x1F, 0x7F, 0x80, 0xC3, 0xF0, 0xFF] {
                var sample = Sample.bound(.stanza)
                sample.item(.recv, "<x/>", name: "x")
                let start = sample.content.count
                sample.content += [UInt8](repeating: byte, count: length)
                sample.record.from = .init(start, start + length)
                sample.record.to = .init(start, start + length)
                sample.record.id = .init(start, start + length)
                sample.record.payloadName = .init(start, start + length)
                sample.record.chunks = (0..<UInt64(min(length, 9000))).map { $0 << 40 }
                let fields = try Self.fields(sample, [.chunks])
                let text = String(decoding: [UInt8](repeating: byte, count: length), as: UTF8.self)
                #expect(fields["from"]?.text == text && fields["id"]?.text == text, "\(length) times \(byte)")
                #expect(fields["peer"]?.text == text && fields["type"] == nil)
                #expect((fields["payload"] == nil) == (byte >= 0x80 && length > 0))
            }
        }
    }

    @Test(arguments: [
        0, 1, 9, 10, 11, 99, 100, 101, 999, 1_000, 9_999, 10_000, 123_456_789, 1_000_000_000,
        10_000_000_000_000_000_000, .max,
    ])
    func `Numbers are written in decimal`(value: UInt64) {
        func text(_ body: (inout LineBuffer) -> Void) -> String { LineBuffer.text(body) }
        #expect(text { $0.append(decimal: value) } == "\(value)")
        let signed = Int64(clamping: value)
        for number in [signed, -signed] {
            #expect(text { $0.append(decimal: Int(number)) } == "\(number)")
            let (seconds, rest) = number.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
            var expected = "\(number < 0 ? "-" : "")\(seconds).\(String(rest + 1_000_000_000).dropFirst())"
            while expected.last == "0" { expected.removeLast() }
            if expected.last == "." { expected.removeLast() }
            #expect(text { $0.append(seconds: number) } == expected)
        }
    }
}
