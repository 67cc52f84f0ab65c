import TapTestKit
import Testing
import XMPPCore

@Suite struct WebSocketMaskTests {
    @Test func `each byte is masked with its byte of the key`() {
        var generator = SeededGenerator(seed: 53)
        for count in Array(0...70) + [255, 256, 1000] {
            for offset in [0, 1, 2, 3, 4, 5, 1_000_003] {
                let key = UInt32.random(in: 0...UInt32.max, using: &generator)
                let plain = count % 3 == 0 ? generator.bytes(count: count) : [UInt8](repeating: 65, count: count)
                let expected = plain.enumerated().map { index, byte in
                    byte ^ UInt8(truncatingIfNeeded: key >> UInt32(24 - 8 * ((index + offset) % 4)))
                }
                var bytes: [UInt8] = [1, 2, 3] + plain
                let isASCII = WebSocketMask.apply(key, at: offset, to: &bytes, from: 3)
                #expect(bytes == [1, 2, 3] + expected)
                #expect(isASCII == expected.allSatisfy { $0 < 0x80 })
                bytes.removeFirst(3)
                bytes.append(9)
                var span = bytes.mutableSpan
                WebSocketMask.apply(key, at: offset, to: &span, count: count)
                #expect(bytes == plain + [9])
            }
        }
        var bytes: [UInt8] = [1]
        #expect(WebSocketMask.apply(7, at: 0, to: &bytes, from: 9))
        #expect(bytes == [1])
    }
}

@Suite struct UTF8CheckTests {
    /// Returns whether the pieces are valid so far, and whether they end inside a code point.
    private func check(_ pieces: [[UInt8]]) -> (invalid: Int?, isIncomplete: Bool) {
        var check = UTF8Check()
        var before = 0
        for piece in pieces {
            if let place = check.firstInvalid(in: piece.span) { return (before + place, check.isIncomplete) }
            before += piece.count
        }
        return (nil, check.isIncomplete)
    }

    @Test func `each code point is valid in any split`() {
        for value in Array(stride(from: 0, through: UInt32(0x10FFFF), by: 37)) + [
            0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000,
        ] + [0x10FFFF] {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let bytes = Array(String(Character(scalar)).utf8)
            guard check([bytes]) == (nil, false) else {
                Issue.record("U+\(String(value, radix: 16))")
                continue
            }
            guard value % 251 == 0 || bytes.count == 4 || value > 0x10FFF0 else { continue }
            for end in 1..<max(2, bytes.count) {
                #expect(check([Array(bytes[..<min(end, bytes.count)])]).isIncomplete == (end < bytes.count))
                #expect(check([Array(bytes[..<end]), Array(bytes[end...])]) == (nil, false))
            }
        }
    }

    @Test func `invalid bytes are found at the earliest byte`() {
        let cases: [(bytes: [UInt8], place: Int)] = [
            ([0x80], 0), ([0xBF], 0), ([0xC0, 0xAF], 0), ([0xC1], 0), ([0xF5], 0), ([0xFF], 0), ([0xFE], 0),
            ([0xE0, 0x80, 0xAF], 1), ([0xE0, 0x9F, 0xBF], 1), ([0xED, 0xA0, 0x80], 1), ([0xED, 0xBF, 0xBF], 1),
            ([0xF0, 0x80, 0x80, 0xAF], 1), ([0xF0, 0x8F, 0xBF, 0xBF], 1), ([0xF4, 0x90, 0x80, 0x80], 1),
            ([0xC3, 0x28], 1), ([0xE2, 0x82, 0x28], 2), ([0xF0, 0x9F, 0x98, 0x41], 3), ([0xCE, 0xCE], 1),
        ]
        for (bytes, place) in cases {
            for before in [0, 1, 15, 16, 17, 40] {
                let input = [UInt8](repeating: 0x61, count: before) + bytes
                #expect(check([input]).invalid == before + place)
                #expect(check(input.map { [$0] }).invalid == before + place)
            }
        }
    }

    /// Compares with the standard library's decoder on random bytes.
    @Test func `UTF-8 validation agrees with the standard library`() {
        var generator = SeededGenerator(seed: 3629)
        for _ in 0..<4000 {
            var bytes = Array(generator.hostileText(count: 6).utf8)
            if Bool.random(using: &generator), !bytes.isEmpty {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let found = check([bytes])
            #expect((found.invalid == nil && !found.isIncomplete) == (String(validating: bytes, as: UTF8.self) != nil))
        }
    }
}
