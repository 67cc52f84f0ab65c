import Testing

@testable import TapStore

/// The words of texts, and queries for them.
struct WordsTests {
    @Test(
        "Words are compared without case and diacritics; scripts without spaces are divided into pairs",
        arguments: [
            ("The CONTRACT, re: 42!", ["the", "contract", "re", "42"]),
            ("Élève naïve Čapek", ["eleve", "naive", "capek"]),
            ("don't e-mail", ["don", "t", "e", "mail"]),
            ("Привет, мир", ["привет", "мир"]),
            ("اَلْعَقْد", ["العقد"]),
            ("合同在这里 ok", ["合同", "同在", "在这", "这里", "里", "ok"]),
            ("合", ["合"]),
            ("", []), (" \n\t—", []),
        ]
    )
    func divides(text: String, words: [String]) {
        #expect(Words.of(text) == words)
    }

    @Test("The table of folded characters agrees with Unicode, and texts for the index have the same words")
    func usesTable() {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            // Beyond the tables, only a sample: the rest is slow and looks up Unicode anyway.
            let isInTable = value < 0x3200 || (0x1EF00..<0x1FC00).contains(value)
            guard isInTable || value.isMultiple(of: 31) else { continue }
            let folded = FoldedScalars.foldSlowly(scalar)
            let expected = String(String.UnicodeScalarView(folded))
            #expect(Words.fold(String(scalar)) == expected, "\(value)")
            var bytes: [UInt8] = []
            let text = "a\(scalar)b"
            Words.append(of: text, to: &bytes)
            #expect(String(decoding: bytes, as: UTF8.self) == Words.of(text).map { "\($0) " }.joined(), "\(value)")
        }
    }

    @Test("A query needs all of its words, in any order, and an asterisk stands for the rest of a word")
    func matches() {
        let row = TestRow.message("The contracts are signed; 合同在这里.")
        for (query, isFound) in [
            ("contracts", true), ("signed CONTRACTS", true), ("contract", false), ("contr*", true), ("合同", true),
            ("合", true), ("里", true), ("同这", false), ("合同在这里", true), ("", true), ("contracts unsigned", false),
        ] {
            #expect(SearchQuery(words: query).matches(row) == isFound, "\(query)")
        }
        #expect(!SearchQuery(words: "合同在").matches(TestRow.message("合同 同在")))
    }
}
