import TapRecord
import TapStore

/// Checks of words in many scripts.
extension StoreCheck {
    static let words = [
        StoreCheck("words are found in any script, composed or decomposed, without case and diacritics", findsScripts),
        StoreCheck("each letter of the scripts in use is found by itself, and in a word", findsLetters),
        StoreCheck("queries of many words and of long words are answered", answersLongQueries),
    ]

    /// Bodies, and queries of which each finds exactly the bodies that are named.
    private static let scripts: [(query: String, bodies: [String])] = [
        ("elan", ["Élan vital", "e\u{301}lan", "ELAN"]), ("ÉLAN", ["Élan vital", "e\u{301}lan", "ELAN"]),
        ("elan vital", ["Élan vital"]), ("vit*", ["Élan vital"]), ("istanbul", ["İSTANBUL"]),
        ("viet", ["tiếng Việt"]), ("tieng", ["tiếng Việt"]), ("елка", ["Ёлка"]), ("ЕЛКА", ["Ёлка"]),
        ("αθηνα", ["Αθήνα"]), ("العقد", ["اَلْعَقْد الجديد"]), ("الجديد", ["اَلْعَقْد الجديد"]), ("ال*", ["اَلْعَقْد الجديد"]),
        ("שלום", ["שָׁלוֹם"]), ("हिन्दी", ["हिन्दी में"]), ("বাংলা", ["বাংলা কোন"]), ("কোন", ["বাংলা কোন"]),
        ("ক\u{9C7}\u{9BE}ন", ["বাংলা কোন"]), ("பொருள்", ["பொருள்"]), ("பொ*", ["பொருள்"]), ("കൊച്ചി", ["കൊച്ചി"]),
        ("ಕೊ*", ["ಕೊಡಗು"]), ("සිංහල", ["සිංහල කෝ"]), ("කෝ", ["සිංහල කෝ"]), ("สัญญา", ["เซ็นสัญญาแล้ว"]),
        ("ສັນຍາ", ["ສັນຍາ"]), ("កិច្ច", ["កិច្ចសន្យា"]), ("စာချုပ်", ["စာချုပ်ဦး"]), ("ဦး", ["စာချုပ်ဦး"]),
        ("合同", ["合同在这里", "签合同"]), ("合", ["合同在这里", "签合同"]), ("在这里", ["合同在这里"]), ("合在", []),
        ("契約書", ["この契約書です"]), ("がき", ["はがき"]), ("はか\u{3099}き", ["はがき"]), ("계약", ["계약"]),
        ("계약서", ["한국어 계약서"]), ("\u{1100}\u{1168}\u{110B}\u{1163}\u{11A8}", ["계약"]),
        ("𠀋", ["𠀋𠮷"]), ("豈", ["\u{F900}"]), ("丽", ["\u{2F800}"]), ("𐐨𐐩", ["𐐀𐐁"]), ("٤٢", ["٤٢ كتاب"]), ("x1", ["a🎉x1"]),
        ("q0", ["q\u{334}\u{301}0"]), ("ａｂｃ", ["ＡＢＣ"]), ("ǰ", ["J\u{30C}"]),
    ]

    @Sendable private static func findsScripts(_ store: CheckedStore) throws {
        let bodies = Set(scripts.flatMap(\.bodies)).sorted()
        let rows = bodies.enumerated().map { CheckedRow.message(UInt64($0 + 1), $1) }
        try store.store(rows)
        for (text, bodies) in scripts {
            let found = try store.rows(SearchQuery(words: text)).compactMap(\.body)
            // A query with a beginning may find more.
            if text.hasSuffix("*") {
                store.expect(Set(found).isSuperset(of: bodies), true, text)
            } else {
                store.expect(found.map(scalars), rows.compactMap(\.body).filter(bodies.contains).map(scalars), text)
            }
        }
    }

    /// Texts with the same characters in another form are equal in Swift.
    private static func scalars(_ text: String) -> String {
        text.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
    }

    @Sendable private static func findsLetters(_ store: CheckedStore) throws {
        let ranges: [ClosedRange<UInt32>] = [
            0x21...0x24FF, 0x2C00...0x312F, 0x3400...0x3402, 0x4E00...0x4E05, 0xA000...0xA010, 0xA4D0...0xAC02,
            0xF900...0xFAFF, 0xFB00...0xFFFF, 0x10000...0x10FFF, 0x11000...0x11FFF, 0x16800...0x16FFF,
            0x1D100...0x1D7FF,
            0x1E000...0x1EEFF, 0x1F100...0x1F1FF, 0x20000...0x20002, 0x2F800...0x2FA1D, 0x30000...0x30002,
        ]
        // Servers do not know newer characters.
        let letters = ranges.joined().compactMap(Unicode.Scalar.init).filter {
            $0.properties.age.map { $0.major <= 10 } ?? false && $0.properties.generalCategory != .privateUse
        }
        // A query for each would take minutes. Preferred are letters with another form in words than in bodies.
        var random = SeededGenerator(seed: 13)
        let composed = letters.filter { letter in
            let words = SearchQuery(words: String(letter)).terms.map(\.word)
            return !words.isEmpty && !words.joined().unicodeScalars.elementsEqual([letter])
        }
        let sample = composed.shuffled(using: &random).prefix(200) + letters.shuffled(using: &random).prefix(100)
        let rows = sample.enumerated().map { CheckedRow.message(UInt64($0 + 1), "\($1) x\($1)y") }
        try store.store(rows)
        for letter in sample.prefix(40) + sample.suffix(15) {
            for text in ["\(letter)", "x\(letter)y"] {
                let query = SearchQuery(words: text)
                guard !query.terms.isEmpty else { continue }
                let expected = rows.filter { query.matches($0) }
                let name = "\(text) (\(String(letter.value, radix: 16)))"
                store.expect(expected.isEmpty, false, "the body with \(name) matches")
                store.expect(rows: try store.rows(query), expected, name)
            }
        }
    }

    @Sendable private static func answersLongQueries(_ store: CheckedStore) throws {
        let long = String(repeating: "abcé합ो", count: 6000)
        let many = (0..<5_000).map { "w\($0)" }.joined(separator: " ")
        let rows = ["short", long, many, "\(many) \(long)"].enumerated().map {
            CheckedRow.message(UInt64($0 + 1), $1)
        }
        try store.store(rows)
        let first = (0..<2000).map { "w\($0)" }.joined(separator: " ")
        for (text, found) in [
            (long, [1, 3]), (many, [2, 3]), (first, [2, 3]), ("\(first) none", []), ("\(long)x", []),
            ("\(long.prefix(20_000))*", [1, 3]), ("\(long) w4999", [3]),
        ] {
            store.expect(
                rows: try store.rows(SearchQuery(words: text)),
                found.map { rows[$0] },
                String(text.prefix(20))
            )
        }
    }
}
