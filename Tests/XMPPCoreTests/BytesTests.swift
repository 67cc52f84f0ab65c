import TapTestKit
import Testing

@testable import XMPPCore

/// Tests searches in byte sequences.
@Suite struct BytesTests {
    @Test(arguments: [
        ("a conflict ended it", "conflict", true), ("conflict", "conflict", true),
        ("it was a conflict", "conflict", true),
        ("conflic", "conflict", false), ("conconflict", "conflict", true), ("CONFLICT", "conflict", false),
        ("", "x", false), ("", "", true), ("x", "", true), ("süß", "ü", true), ("aab", "ab", true), ("aab", "aa", true),
    ])
    func `Searching for a text compares bytes and is case-sensitive`(text: String, part: String, isFound: Bool) {
        #expect(Array(text.utf8).span.contains(Array(part.utf8).span) == isFound)
    }

    @Test func `Counting and searching in blocks gives the same result as byte by byte`() {
        var random = SeededGenerator(seed: 11)
        // Includes lengths of more than 255 blocks, which is the number of blocks that are counted before the sums are
        // added.
        for length in Array(0...70) + [4_064, 4_080, 4_096, 9_000] {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            let expected = bytes.count { $0 <= 0x20 || $0 == 0x3D }
            let counted = bytes.span.countSpaces(and: 0x3D)
            #expect(counted == expected, "\(length)")
            let spaces = [UInt8](repeating: 0x20, count: length)
            let countedSpaces = spaces.span.countSpaces(and: 0x3D)
            #expect(countedSpaces == length)
            for place in Set([0, length / 2, length - 1]) where place >= 0 && place < length {
                var letters = [UInt8](repeating: 0x61, count: length)
                let foundInNone = letters.span.firstIndex(of: 0x5D)
                #expect(foundInNone == nil)
                letters[place] = 0x5D
                let found = [letters.span.firstIndex(of: 0x5D), letters.span.firstIndex(of: 0x5D, from: place + 1)]
                #expect(found == [place, nil], "\(place) of \(length)")
            }
        }
    }

    @Test func `Block marks are in byte order, with the CPU instruction and with the portable code`() {
        var random = SeededGenerator(seed: 12)
        for _ in 0..<1_000 {
            var block = SIMD16<UInt8>()
            for index in 0..<16 where Bool.random(using: &random) { block[index] = 0x3D }
            let marks = block.marks(0x3D)
            let expected: UInt32 = (0..<16).reduce(0) { $0 | (block[$1] == 0x3D ? 1 << UInt32($1) : 0) }
            #expect(marks.bits == expected && marks.portableBits == expected)
            #expect(marks.isAny == (expected != 0) && marks.first == min(16, expected.trailingZeroBitCount))
        }
    }

    @Test func `Lower-case letters are counted up to the first other byte`() {
        for byte in UInt8.min...UInt8.max {
            for place in 0..<16 {
                var bytes = [UInt8](repeating: 0x7A, count: 16)
                bytes[place] = byte
                let isLetter = byte >= 0x61 && byte <= 0x7A
                let count = TextScan.countSmallLetters(bytes.span, from: 0)
                #expect(count == (isLetter ? 16 : place), "\(byte) at \(place)")
            }
        }
    }

    @Test(arguments: [8, 9, 15, 16, 17, 31, 32, 33, 50])
    func `A possible key in a URL is detected at any position of a value`(length: Int) {
        // The bytes before the value: near the start of the item, and after other attributes.
        let before = [[0x27], Array("<x to='a//b?' id='".utf8)]
        func mayHoldKey(_ value: [UInt8]) -> Bool {
            let found = before.map { before in
                TextScan.attributeMayHoldKey(
                    (before + value + [0x27]).span,
                    ByteRange(before.count, before.count + length)
                )
            }
            #expect(found[0] == found[1])
            return found[1]
        }
        let letters = [UInt8](repeating: 0x62, count: length)
        #expect(!mayHoldKey(letters))
        for place in 0..<length {
            var value = letters
            value[place] = 0x3D
            // At the end of the value, `=` is base64 padding.
            #expect(mayHoldKey(value) == (place < length - 1), "= at \(place)")
            value[place] = 0x2F
            #expect(!mayHoldKey(value), "/ at \(place)")
            guard place + 1 < length else { continue }
            value[place + 1] = 0x2F
            #expect(!mayHoldKey(value), "// at \(place)")
            for mark in 0..<length where mark != place && mark != place + 1 {
                var marked = value
                marked[mark] = 0x3F
                #expect(mayHoldKey(marked), "// at \(place), ? at \(mark)")
            }
        }
    }
}
