import TapTestKit
import Testing

@testable import TapRules

/// Tests regular expressions: matches, refused syntax, and the time limit for any text.
@Suite struct RegularExpressionTests {
    /// Returns the match and its groups; `-` is a group that did not take part in the match.
    private func found(_ expression: String, _ text: String) throws -> [String]? {
        let bytes = Array(text.utf8)
        let regular = try RegularExpression(Array(expression.utf8))
        guard let match = try regular.firstMatch(in: bytes) else { return nil }
        return (0...match.captures.count).map { number in
            if number > 0, match.captures[number - 1] == .unset { return "-" }
            return String(decoding: match.bytes(number, of: bytes) ?? [], as: UTF8.self)
        }
    }

    @Test(arguments: [
        ("abc", "xabcx", ["abc"]), ("a|ab", "ab", ["a"]), ("(?:ab|a)(c|bcd)", "abcd", ["abc", "c"]),
        ("a*", "aaa", ["aaa"]), ("a*?b", "aab", ["aab"]), ("a+?", "aaa", ["a"]), ("x?y", "y", ["y"]),
        ("a{2}", "aaa", ["aa"]), ("a{2,}", "aaaa", ["aaaa"]), ("a{1,2}?", "aa", ["a"]), ("(a){0,2}b", "b", ["b", "-"]),
        ("^a", "ab", ["a"]), ("b$", "ab", ["b"]), ("\\bfoo\\b", "a foo b", ["foo"]), ("\\Boo", "foo", ["oo"]),
        ("[^a-c]+", "abcdef", ["def"]), ("[\\d.]+", "v1.2", ["1.2"]), ("[]a]+", "]a", ["]a"]), ("[a-]+", "-a", ["-a"]),
        ("\\w+@\\w+", "to romeo@home", ["romeo@home"]), ("\\S+", " x ", ["x"]), ("(?i)HeL+o", "hello", ["hello"]),
        ("(?i)[A-C]+", "aBc", ["aBc"]), (".", "é", ["é"]), ("^.{2}$", "éü", ["éü"]), ("[à-é]", "é", ["é"]),
        ("\\x41\\x{e9}", "Aé", ["Aé"]), ("(a|b)*c", "abac", ["abac", "a"]), ("((a)|b)+", "ab", ["ab", "b", "a"]),
        ("(a*)*", "b", ["", "-"]), ("\\.\\*\\\\", ".*\\", [".*\\"]),
        ("(https?)://(\\S+)", "see http://x.y z", ["http://x.y", "http", "x.y"]),
        ("a||b", "b", [""]), ("()", "x", ["", ""]),
    ])
    func `An expression finds the leftmost match that Perl would find`(
        _ expression: String,
        _ text: String,
        _ groups: [String]
    )
        throws
    {
        #expect(try found(expression, text) == groups)
    }

    @Test(arguments: [("^b", "ab"), ("a.c", "a\nc"), ("[^x]", "x"), ("\\bo", "foo"), ("a{3}", "aa"), ("\\d", "x")])
    func `An expression finds nothing in a text that does not match`(_ expression: String, _ text: String) throws {
        #expect(try found(expression, text) == nil)
    }

    @Test(arguments: [
        ("(a", "\"(\" without \")\"", 0), ("a)", "\")\" without \"(\"", 1), ("[a", "\"[\" without \"]\"", 0),
        ("*a", "nothing to repeat", 0), ("a**", "nothing to repeat", 2), ("^*", "nothing to repeat", 0),
        ("a{1", "\"{\" without \"}\"", 1), ("a{x}", "a number must follow \"{\"; write \\{ for the character", 1),
        ("a{2,1}", "the bounds are in the wrong order", 1), ("a{1001}", "more than 1000 repetitions", 1),
        ("(a)\\1", "back references are not supported", 3), ("a\\", "\"\\\" at the end", 1),
        ("\\q", "an unknown escape", 0), ("[b-a]", "the range has no end after its beginning", 2),
        ("(?=a)", "\"(?\" is supported only as (?:…) and, at the beginning, as (?i)", 0),
        ("\\x{110000}", "not a Unicode character", 0),
        ("(?:(?:a{1000}){1000}){1000}", "the expression is too large: more than 4096 steps", 0),
        ("(?:(?:(?:(?:){1000}){1000}){1000}){1000}", "the expression is too large: more than 4096 steps", 0),
        ("(?:(?:(?:a{0}){1000}){1000}){1000}", "the expression is too large: more than 4096 steps", 0),
        (String(repeating: "()", count: 33), "too many captures", 64),
        ("[[:alpha:]]", "classes such as [:alpha:] are not supported; write their characters", 1),
        ("[\\D]", "a complement such as \\D is not supported inside [ ]", 1),
    ])
    func `A malformed or unsupported expression is refused with its position`(
        _ expression: String,
        _ message: String,
        _ offset: Int
    ) {
        #expect(throws: PatternFault(message: message, offset: offset)) {
            try RegularExpression(Array(expression.utf8))
        }
    }

    @Test func `Groups nested deeper than the limit are refused`() {
        let expression = String(repeating: "(?:", count: 5000) + String(repeating: ")", count: 5000)
        #expect(throws: PatternFault(message: "groups nested deeper than 64", offset: 192)) {
            try RegularExpression(Array(expression.utf8))
        }
    }

    @Test func `Only a dot or a complement matches a byte that is not UTF-8`() throws {
        let text: [UInt8] = [0x61, 0xFF, 0x62]
        #expect(try RegularExpression(Array("a.b".utf8)).firstMatch(in: text)?.range == 0..<3)
        #expect(try RegularExpression(Array("a[^x]b".utf8)).firstMatch(in: text)?.range == 0..<3)
        #expect(try RegularExpression(Array("a\\x{ff}b".utf8)).firstMatch(in: text) == nil)
    }

    /// A backtracking matcher takes 2^40 steps here.
    @Test func `Nested repetitions do not backtrack exponentially`() throws {
        let text = Array(repeating: UInt8(ascii: "a"), count: 40) + [UInt8(ascii: "!")]
        #expect(try RegularExpression(Array("^(a+)+$".utf8)).firstMatch(in: text) == nil)
        #expect(try RegularExpression(Array("^(a|a)*$".utf8)).firstMatch(in: text) == nil)
    }

    /// Without a common limit, each of a thousand searches would read to the end of the text.
    @Test func `All searches in one text share one limit of steps`() throws {
        let pattern = TextPattern.regular(try RegularExpression(Array(".*b|a".utf8)))
        var count = 0
        func search(_ length: Int) throws {
            try pattern.forEachMatch(in: Array(repeating: UInt8(ascii: "a"), count: length)) { _ in
                count += 1
                return true
            }
        }
        try search(100)
        #expect(count == 100)
        #expect(throws: PatternTooComplex.self) { try search(10_000) }
    }

    @Test func `Successive matches do not overlap, including empty ones`() throws {
        func all(_ expression: String, _ text: String) throws -> [Range<Int>] {
            var ranges: [Range<Int>] = []
            let pattern = TextPattern.regular(try RegularExpression(Array(expression.utf8)))
            try pattern.forEachMatch(in: Array(text.utf8)) {
                ranges.append($0.range)
                return true
            }
            return ranges
        }
        #expect(try all("a+", "aa b a") == [0..<2, 5..<6])
        #expect(try all("x*", "éx") == [0..<0, 2..<3, 3..<3])
    }
}
