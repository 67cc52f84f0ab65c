import TapTestKit
import Testing

@testable import XMPPCore

@Suite struct PunycodeTests {
    /// Labels from RFC 3492 §7.1, without those that are too long or contain capitals, and labels from registries.
    @Test(arguments: [
        ("egbpdaj6bu4bxfgehfvwxn", "ليهمابتكلموشعربي؟"), ("ihqwcrb4cv8a8dqg056pqjye", "他们为什么不说中文"),
        ("ihqwctvzc91f659drss3x8bo0yb", "他們爲什麽不說中文"), ("n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa", "なぜみんな日本語を話してくれないのか"),
        ("4dbcagdahymbxekheh6e0a7fei0b", "למההםפשוטלאמדבריםעברית"), ("mnchen-3ya", "münchen"), ("bcher-kva", "bücher"),
        ("3b-ww4c5e180e575a65lsy2b", "3年b組金八先生"), ("de-jg4avhby1noc0d", "パフィーdeルンバ"), ("d9juau41awczczp", "そのスピードで"),
        ("fa-hia", "faß"), ("c1yn36f", "點看"), ("i-7iq", "i❤"),
    ])
    func `labels are encoded to Punycode and decoded to the original text`(encoded: String, text: String) {
        #expect(Punycode.encode(Array(text.unicodeScalars)) == encoded)
        #expect(Punycode.decode(Array(encoded.unicodeScalars)) == Array(text.unicodeScalars))
    }

    @Test(arguments: ["-a", "a!", "99999999", "zzzzzzzz", "ab-9999999999", "ä", String(repeating: "a", count: 60)])
    func `invalid Punycode is refused`(encoded: String) {
        #expect(Punycode.decode(Array(encoded.unicodeScalars)) == nil)
    }

    @Test func `random text is unchanged after encoding and decoding`() {
        var generator = SeededGenerator(seed: 3492)
        var returned = 0
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...70, using: &generator)
            let text = Array(generator.hostileText(count: count).unicodeScalars)
            guard let encoded = Punycode.encode(text) else { continue }
            #expect(Punycode.decode(Array(encoded.unicodeScalars)) == text)
            returned += 1
        }
        #expect(returned > 4_000)
    }

    @Test func `random Punycode does not cause a trap, and decoded text has only one encoding`() {
        var generator = SeededGenerator(seed: 5891)
        let digits = Array("abcdefghijklmnopqrstuvwxyz0123456789-".unicodeScalars)
        var decodedOnes = 0
        for _ in 0..<50_000 {
            let count = Int.random(in: 1...60, using: &generator)
            let encoded = (0..<count).map { _ in digits[Int.random(in: digits.indices, using: &generator)] }
            guard let decoded = Punycode.decode(encoded), !decoded.allSatisfy(\.isASCII) else { continue }
            #expect(Punycode.encode(decoded) == String(String.UnicodeScalarView(encoded)))
            decodedOnes += 1
        }
        #expect(decodedOnes > 1_000)
    }
}
