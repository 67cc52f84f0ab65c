import TapSecurity
import Testing

@Suite struct SASLprepTests {
    /// The examples of RFC 4013 §3, and similar texts.
    @Test(arguments: [
        ("I\u{ad}X", "IX"), ("user", "user"), ("USER", "USER"), ("\u{aa}", "a"), ("\u{2168}", "IX"),
        ("pass\u{a0}word", "pass word"), ("a\u{200b}b", "ab"), ("e\u{301}", "\u{e9}"), ("", ""), ("a~b c", "a~b c"),
        ("\u{627}\u{644}\u{627}", "\u{627}\u{644}\u{627}"), ("\u{5d0}1\u{5d1}", "\u{5d0}1\u{5d1}"), ("🙂", "🙂"),
    ])
    func `SASLprep maps and normalises text`(text: String, prepared: String) throws {
        let result = try #require(SASLprep.prepare(text))
        #expect(Array(result.utf8) == Array(prepared.utf8))
    }

    @Test(arguments: [
        "\u{7}", "\u{7f}", "\u{627}1", "\u{5d0}a\u{5d0}", "a\u{5d0}", "\u{85}", "\u{e000}", "\u{1fffe}",
        "\u{fffd}", "\u{2028}", "\u{e0041}", "\u{200e}", "é\u{0}",
    ])
    func `SASLprep refuses prohibited text`(text: String) {
        #expect(SASLprep.prepare(text) == nil)
    }
}
