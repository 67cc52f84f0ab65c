import TapTestKit
import Testing

@testable import xmpptap

/// The bytes of a terminal as keys.
struct KeyDecoderTests {
    private static let sequences: [(String, [Key])] = [
        ("jk", [.character("j"), .character("k")]),
        ("é漢🙂", [.character("é"), .character("漢"), .character("🙂")]),
        ("\r\n\t", [.enter, .enter, .tab]),
        ("\u{7F}\u{8}", [.backspace, .backspace]),
        ("\u{3}\u{1A}", [.control("c"), .control("z")]),
        ("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D", [.up, .down, .right, .left]),
        ("\u{1B}OA\u{1B}OB", [.up, .down]),
        ("\u{1B}[H\u{1B}[F\u{1B}[1~\u{1B}[4~\u{1B}[7~\u{1B}[8~", [.home, .end, .home, .end, .home, .end]),
        ("\u{1B}[5~\u{1B}[6~\u{1B}[2~\u{1B}[3~", [.pageUp, .pageDown, .insert, .delete]),
        ("\u{1B}[1;5A\u{1B}[5;2~", [.up, .pageUp]),
        (
            "\u{1B}OP\u{1B}[11~\u{1B}[[A\u{1B}[15~\u{1B}[24~",
            [.function(1), .function(1), .function(1), .function(5), .function(12)]
        ),
        ("\u{1B}[Z", [.backTab]),
        ("\u{1B}j", [.escape, .character("j")]),
        ("\u{1B}\u{1B}[A", [.escape, .up]),
        ("\u{1B}[?1;2c\u{1B}[99~x", [.unknown, .unknown, .character("x")]),
        ("\u{1B}[200~a\u{1B}[A\nb\u{1B}[201~j", [.paste("a\u{1B}[A\nb"), .character("j")]),
        ("\u{1B}[200~\u{1B}[201~", [.paste("")]),
    ]

    @Test(arguments: sequences)
    func `a sequence is one key, however its bytes arrive`(text: String, keys: [Key]) {
        var whole = KeyDecoder()
        #expect(whole.decode(Array(text.utf8)) == keys)
        #expect(!whole.isWaiting)
        for size in 1...3 {
            var decoder = KeyDecoder()
            var found: [Key] = []
            var rest = Array(text.utf8)[...]
            while !rest.isEmpty {
                found += decoder.decode(rest.prefix(size))
                rest = rest.dropFirst(size)
            }
            #expect(found == keys, "in reads of \(size)")
        }
    }

    @Test func `Esc is a key if nothing follows it in time`() {
        var decoder = KeyDecoder()
        #expect(decoder.decode([0x1B]).isEmpty)
        #expect(decoder.isWaiting)
        #expect(decoder.endOfTime() == [.escape])
        #expect(!decoder.isWaiting)
        #expect(decoder.decode([0x5B]) == [.character("[")])
        #expect(decoder.decode([0x1B, 0x5B]).isEmpty)
        #expect(decoder.endOfTime() == [.escape, .character("[")])
        #expect(decoder.decode([0x1B, 0x4F]).isEmpty)
        #expect(decoder.endOfTime() == [.escape, .character("O")])
    }

    @Test func `invalid bytes are skipped`() {
        var decoder = KeyDecoder()
        #expect(decoder.decode([0xFF, 0x6A]) == [.unknown, .character("j")])
        #expect(decoder.decode([0xC3]).isEmpty)
        #expect(decoder.decode([0x6A]) == [.unknown, .character("j")])
        #expect(decoder.decode([0xE2, 0x82]).isEmpty)
        #expect(decoder.endOfTime() == [.unknown])
        // A surrogate, an overlong form, a control character of C1.
        #expect(decoder.decode([0xED, 0xA0, 0x80]) == [.unknown])
        #expect(decoder.decode([0xC0, 0x80]) == [.unknown, .unknown])
        #expect(decoder.decode([0xC2, 0x9B]) == [.unknown])
        #expect(decoder.decode(Array("\u{1B}[".utf8) + [0x07, 0x6A]) == [.unknown, .control("g"), .character("j")])
    }

    @Test func `a sequence and a pasted text have limits`() {
        var decoder = KeyDecoder()
        let keys = decoder.decode(Array("\u{1B}[".utf8) + [UInt8](repeating: 0x31, count: 10_000) + Array("j".utf8))
        #expect(keys.first == .unknown && keys.last == .character("j"))
        let pasted = decoder.decode(Array("\u{1B}[200~".utf8) + [UInt8](repeating: 0x61, count: 1_000_000))
        #expect(pasted.isEmpty && decoder.endOfTime().isEmpty)
        guard case .paste(let text)? = decoder.decode(Array("\u{1B}[201~".utf8)).first else {
            Issue.record("the pasted text has no end")
            return
        }
        #expect(text.utf8.count == 65_536)
    }

    @Test func `any bytes are decoded, and nothing is left waiting for ever`() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            var decoder = KeyDecoder()
            let bytes = (0..<40).map { _ in
                [0x1B, 0x5B, 0x4F, 0x32, 0x30, 0x7E, UInt8.random(in: 0...255, using: &generator)]
                    .randomElement(using: &generator) ?? 0
            }
            _ = decoder.decode(bytes)
            _ = decoder.endOfTime()
            #expect(!decoder.isWaiting, "\(bytes)")
        }
    }
}
