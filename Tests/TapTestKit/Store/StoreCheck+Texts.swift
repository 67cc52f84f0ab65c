import TapRecord
import TapStore

/// Checks of texts that SQL, regular expressions or the format of a store could take for something else.
extension StoreCheck {
    static let texts = [
        StoreCheck(
            "texts with all bytes of UTF-8, SQL and any character are read as written, in each field",
            keepsTexts
        ),
        StoreCheck("queries with such texts find the rows with them, and nothing else", findsTexts),
        StoreCheck("texts of a megabyte are read as written", keepsLongTexts),
    ]

    /// A text with every byte that UTF-8 can have: all characters below U+0800, and some for each first byte of longer ones.
    private static let everyByte: String = {
        var text = String.UnicodeScalarView((0..<0x800).compactMap(Unicode.Scalar.init))
        text.append(
            contentsOf: (0...0x10F).flatMap { [UInt32($0 << 12 | 0xFFF), UInt32($0 << 12)] }.compactMap(
                Unicode.Scalar.init
            )
        )
        return String(text)
    }()

    private static let hostile: [String] =
        [
            everyByte, "'", "''", "\"", "`", "\\", "\\'", "'\\", "\\\\", "'; DROP TABLE stanza; --", "\" OR \"\"=\"",
            "%_*?[a-z]",
            "\0", "a\0b", "\\0", "\\x00", "\\N", "NULL", "\t", "\n", "\r\n", "\u{1A}", "\u{7F}", "\u{85}", "\u{2028}",
            "\u{2029}",
            "\u{FEFF}", "\u{FFFD}", "\u{FFFE}\u{FFFF}", "\u{10FFFF}", "\u{202E}olleh\u{202C}", "\u{2066}a\u{2069}",
            "\u{E000}1",
            "\u{E001}2", "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪", "e\u{301}", "\u{E9}", "\u{1100}\u{1161}", "{p:String}", "${x}", ":x", "?1", "@x", "$1",
            "/* x */", "-- x",
            "FORMAT RowBinary", "(?i)x", "[", "(", ".*", "\\p{L}", "\\Q", "^$", "<&>\"']]>", "AND OR NOT NEAR(a b)",
            "a:b", "body:x",
            "x^2", "\"x", "x*", "*", " leading", "trailing ", " ", "\u{200B}", "0", "-1", "1e5",
        ]
        + (0..<40).map { number in
            var random = SeededGenerator(seed: UInt64(number))
            return random.hostileText(count: 1 + number * 8)
        }

    private static let rows = hostile.enumerated().map { CheckedRow.full(UInt64($0 + 1), $1, name: $1) }

    private static func session(_ number: UInt64, _ text: String) -> AuditSession {
        var session = AuditSession(run: text, number: number)
        (session.account, session.client, session.cause) = (text, text, text)
        (session.finding, session.closeReason) = (text, text)
        (session.began, session.ended) = (CheckedRow.time(after: 1), CheckedRow.time(after: 2))
        return session
    }

    @Sendable private static func keepsTexts(_ store: CheckedStore) throws {
        let bytes = Set(everyByte.utf8)
        // Eleven bytes never occur in UTF-8, and Swift's texts are always valid.
        let expected = Set(UInt8.min...UInt8.max).subtracting([0xC0, 0xC1]).subtracting(0xF5...0xFF)
        store.expect(bytes, expected, "bytes of the text with all bytes")
        try store.store(rows)
        let found = try store.allRows().sorted { $0.sequence < $1.sequence }
        store.expect(rows: found, rows, "all rows")
        for (found, row) in zip(found, rows) where !isIdentical(found, row) {
            store.expect("another form", "the same bytes", "row \(row.sequence)")
        }
        let sessions = hostile.enumerated().map { session(UInt64($0 + 1), $1) }
        try store.add(sessions)
        try store.commit()
        let stored = try store.sessions().sorted { $0.number < $1.number }
        store.expect(stored.count, sessions.count, "number of sessions")
        for (found, expected) in zip(stored, sessions) { store.expect(found, expected, "session") }
    }

    /// Returns whether the texts of rows have the same bytes: Swift's comparison ignores the form of characters.
    private static func isIdentical(_ one: AuditRow, _ other: AuditRow) -> Bool {
        func texts(_ row: AuditRow) -> [String?] {
            [
                row.run, row.account, row.resource, row.peer, row.peerResource, row.type, row.id, row.payload, row.body,
                row.subject,
                row.thread, row.stanzaID, row.stanzaBy, row.originID, row.action, row.rule, row.condition, row.xml,
            ]
        }
        return zip(texts(one), texts(other)).allSatisfy { Array(($0 ?? "").utf8) == Array(($1 ?? "").utf8) }
    }

    @Sendable private static func findsTexts(_ store: CheckedStore) throws {
        try store.store(rows)
        // These two are equal in Swift.
        for text in hostile where text != "\u{E9}" {
            var queries: [SearchQuery] = [SearchQuery(words: text)]
            func add(_ change: (inout SearchQuery) -> Void) {
                var query = SearchQuery(words: "")
                change(&query)
                queries.append(query)
            }
            add { $0.account = text }
            add { $0.peer = text }
            add { $0.pair = (text, text) }
            add { $0.pair = (text, CheckedRow.juliet) }
            add { $0.room = text }
            add { ($0.account, $0.peer, $0.kinds) = (text, text, [.message, .iq]) }
            for (index, query) in queries.enumerated() {
                let expected = rows.filter { query.matches($0) }.sorted { $0.order < $1.order }
                if index == 0, try store.rows(query) != expected {
                    for term in query.terms where try !store.rows(SearchQuery(words: term.word)).contains(expected) {
                        store.expect(
                            "not found",
                            "found",
                            term.word.unicodeScalars.map { String($0.value, radix: 16) }.joined(separator: " ")
                        )
                    }
                }
                store.expect(
                    rows: try store.rows(query),
                    expected,
                    "query \(index) of \(text.prefix(40).debugDescription)"
                )
            }
        }
        store.expect(try store.overview().stanzas, rows.count, "number of stanzas")
    }

    @Sendable private static func keepsLongTexts(_ store: CheckedStore) throws {
        let units = ["x", "合", "🎉", "'", "\\", "\0", "contract ", "e\u{301}", "\u{10FFFF}"]
        let rows = units.enumerated().map { number, unit in
            // The greatest length of an address is 3071 bytes (RFC 7622 §3.1).
            let name = String(repeating: unit, count: 3071 / unit.utf8.count)
            return CheckedRow.full(
                UInt64(number + 1),
                String(repeating: unit, count: (1 << 20) / unit.utf8.count),
                name: name
            )
        }
        try store.store(rows)
        store.expect(rows: try store.allRows(), rows, "all rows")
        for (word, number) in [("contract", 6), ("合合", 1)] {
            store.expect(rows: try store.rows(SearchQuery(words: word)), [rows[number]], word)
        }
    }
}
