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
