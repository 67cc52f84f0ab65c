import Foundation
import Testing

@testable import TapStore

/// The expressions by which a server finds words in texts that are not folded.
struct WordPatternTests {
    @Test("No character that is not examined has another form")
    func examinesAllForms() {
        for value in UInt32(0)...0x10_FFFF where !WordPattern.examined.contains(where: { $0.contains(value) }) {
            // The syllables of Hangul are left out of expressions.
            guard let scalar = Unicode.Scalar(value), !(0xAC00...0xD7A3).contains(value) else { continue }
            let category = scalar.properties.generalCategory
            guard category != .unassigned, category != .privateUse else { continue }
            let folded = FoldedScalars.foldSlowly(scalar)
            guard folded != [scalar], !folded.isEmpty else { continue }
            Issue.record("U+\(String(value, radix: 16)) folds into \(folded)")
        }
    }

    @Test("An expression matches each text that has its word, in whatever form the letters are written")
    func matchesForms() throws {
        // The texts that each expression must match.
        var texts: [String: [String]] = [:]
        for value in UInt32(0x80)...0x2_FFFF {
            // Servers do not know newer characters.
            guard let scalar = Unicode.Scalar(value), scalar.properties.age.map({ $0.major <= 10 }) ?? false else {
                continue
            }
            let folded = FoldedScalars.foldSlowly(scalar)
            // Characters that are their own form need only a sample.
            guard folded != [scalar] || value.isMultiple(of: 997) else { continue }
            let decomposed = String(scalar).decomposedStringWithCanonicalMapping
            for text in [
                "x\(scalar)y", "x\(decomposed)y", "X\(scalar)\u{301}Y", String(String.UnicodeScalarView(folded)),
            ] {
                for term in SearchQuery(words: "x\(scalar)y").terms {
                    guard Words.of(text).contains(term.word), let pattern = WordPattern.containing(term.word) else {
                        continue
                    }
                    texts[pattern, default: []].append(text)
                }
            }
        }
        #expect(texts.count > 1000)
        for (pattern, texts) in texts {
            let expression = try NSRegularExpression(pattern: pattern)
            for text in texts {
                let range = NSRange(text.startIndex..., in: text)
                #expect(
                    expression.firstMatch(in: text, range: range) != nil,
                    "\(text.unicodeScalars.map { String($0.value, radix: 16) }): \(pattern)"
                )
            }
        }
    }
}
