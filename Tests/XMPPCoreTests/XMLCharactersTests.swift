import TapTestKit
import Testing
import XMPPCore

/// Compares the characters that the scanner accepts with those that libxml2 accepts.
@Suite(.enabled(if: BuildMode.isRelease, "release builds only")) struct XMLCharactersLongTests {
    private static let header = Array("<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>".utf8)

    /// Returns whether the scanner accepts an item, and whether libxml2 does.
    private func verdicts(_ item: [UInt8], _ parser: StanzaParser) -> (scanner: Bool, libxml2: Bool) {
        var decoder = StreamDecoder()
        decoder.append((Self.header + item).span)
        var isAccepted = false
        while let event = decoder.next() {
            if case .item(.element) = event.kind { isAccepted = true }
        }
        return (isAccepted, (try? parser.parse(item.span, root: [])) != nil)
    }

    @Test(arguments: 0..<8) func `the scanner and libxml2 allow the same characters in names and text`(_ part: UInt32) {
        let parser = StanzaParser()
        var counts = (begins: 0, continues: 0, text: 0)
        for value in stride(from: part, to: 0x110000, by: 8) {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let bytes = Array(String(Character(scalar)).utf8)
            // Skips ASCII characters other than letters: `/`, `<` or `&`, for example, would end the name or text.
            guard value > 0x7F || scalar.properties.isAlphabetic else { continue }
            for (place, item) in [
                ("name", Array("<".utf8) + bytes + Array("/>".utf8)),
                ("name", Array("<a".utf8) + bytes + Array("/>".utf8)),
                ("text", Array("<a b='".utf8) + bytes + Array("'>".utf8) + bytes + Array("</a>".utf8)),
            ] {
                let (scanner, libxml2) = verdicts(item, parser)
                if scanner != libxml2 { Issue.record("U+\(String(value, radix: 16)) in a \(place): \(scanner)") }
                if scanner {
                    if place == "text" { counts.text += 1 } else { counts.continues += 1 }
                }
            }
        }
        // Checks that the scanner accepts characters in names and text at all.
        #expect(counts.continues > 200_000 && counts.text > 130_000, "\(counts)")
    }

    @Test func `the scanner and Swift agree on the first bytes of UTF-8 characters`() {
        let parser = StanzaParser()
        for first in UInt8(0x80)...0xFF {
            for second in UInt8(0x20)...0xFF where second != 0x26 && second != 0x3C && second != 0x5D {
                for tail: [UInt8] in [[], [0x80], [0xBF, 0xBF], [0x80, 0x80]] {
                    let sequence = [first, second] + tail
                    let isValid = String(validating: sequence, as: UTF8.self) != nil
                    let isCharacter =
                        !sequence.starts(with: [0xEF, 0xBF, 0xBE]) && !sequence.starts(with: [0xEF, 0xBF, 0xBF])
                    let item = Array("<a>".utf8) + sequence + Array("</a>".utf8)
                    let accepted = verdicts(item, parser).scanner
                    if accepted != (isValid && isCharacter) { Issue.record("\(sequence): \(accepted)") }
                }
            }
        }
    }
}
