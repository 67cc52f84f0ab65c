import TapCore
import TapTestKit
import Testing
import XMPPCore

@Suite struct SecretTextTests {
    struct Case: CustomTestStringConvertible {
        var text: String
        var shown: String
        init(_ text: String, _ shown: String) {
            self.text = text
            self.shown = shown
        }
        var testDescription: String { text }
    }

    static let cases: [Case] = [
        Case("aesgcm://a/b#0011", "aesgcm://a/b#[redacted:file-key#1]"),
        Case("x AESGCM://a/b?token=q#0011 y", "x AESGCM://a/b?token=[redacted:url-query#1]#[redacted:file-key#2] y"),
        Case("aesgcm://a/b# y", "aesgcm://a/b# y"),
        Case("https://a/b#top", "https://a/b#top"),
        Case("xmpp:a@b?roster;preauth=T0K;x=1", "xmpp:a@b?roster;preauth=[redacted:preauth-token#1];x=1"),
        Case("preauth=T0K", "preauth=[redacted:preauth-token#1]"),
        Case("PreAuth=T=0=K", "PreAuth=[redacted:preauth-token#1]"),
        Case(
            "https://a/b?x=1&amp;Sig=abc&amp;y=2",
            "https://a/b?x=1&amp;Sig=[redacted:url-query#1]&amp;y=2"
        ),
        Case("https://a/cb#access_token=abc&#38;x=1", "https://a/cb#access_token=[redacted:url-query#1]&#38;x=1"),
        Case("https://a/invite/?t=abc#x", "https://a/invite/?[redacted:url-query#1]#x"),
        Case("token=abc", "token=abc"),
        Case("if key==value then x=1", "if key==value then x=1"),
        Case("a&#35;b=c", "a&#35;b=c"),
        Case("\u{e9}\u{1F600}aesgcm://\u{e9}#\u{1F600}k", "\u{e9}\u{1F600}aesgcm://\u{e9}#[redacted:file-key#1]"),
        Case("aesgcm://a#&#x1F600;k z", "aesgcm://a#[redacted:file-key#1] z"),
        Case("<![CDATA[aesgcm://a#k z]]> y", "<![CDATA[aesgcm://a#[redacted:file-key#1] z]]> y"),
        Case("aesgcm://a<![CDATA[#k]]> y", "aesgcm://a<![CDATA[#[redacted:file-key#1]]]> y"),
        Case("u aesgcm://a#k<![CDATA[l]]>m y", "[redacted:file-key#1]"),
        Case("aesgcm://a#<![CDATA[]]>k", "aesgcm://a#<![CDATA[]]>[redacted:file-key#1]"),
        Case("aesgcm://a#[redacted:file-key#7]", "aesgcm://a#[redacted:file-key#7]"),
        Case("aesgcm://a#[redacted:file-key#7]k", "aesgcm://a#[redacted:file-key#1]"),
        Case(
            "https://a/b?token=[redacted:url-query#7]&amp;sig=k",
            "https://a/b?token=[redacted:url-query#7]&amp;sig=[redacted:url-query#1]"
        ),
        Case("https://a/b?token=[redacted:url-query#7]k", "https://a/b?token=[redacted:url-query#1]"),
    ]

    @Test(arguments: cases) func keysInURLsAreHiddenAndNothingElse(_ example: Case) throws {
        let shown = try #require(Shown("<message><body>\(example.text)</body></message>"))
        #expect(shown.text == "<message><body>\(example.shown)</body></message>")
        guard !example.text.contains("<"), !example.text.contains("'") else { return }
        let attribute = try #require(Shown("<message><x href='\(example.text)'/></message>"))
        // Short values are not looked at: they hold no URL with a key in it.
        if example.text.utf8.count >= 12 {
            #expect(attribute.text == "<message><x href='\(example.shown)'/></message>")
        }
    }

    @Test func manyPiecesTakeNoLongerThanTheirNumber() throws {
        let piece = "<![CDATA[?token=a]]> &#32;"
        let text = String(repeating: piece, count: 30_000)
        let shown = try #require(Shown("<message><body>\(text)</body></message>"))
        #expect(shown.text.contains("<![CDATA[?token=[redacted:url-query#1]]]> &#32;<![CDATA["))
    }

    @Test func numbersAreGivenOnceAndForgottenInOrder() {
        let registry = SecretRegistry(capacity: 8)
        func number(_ value: Int) -> UInt32 { registry.number(of: Array("value \(value)".utf8).span) }
        func knows(_ value: Int) -> Bool { registry.knows(Array("value \(value)".utf8).span) }
        #expect((1...4).map(number) == [1, 2, 3, 4])
        #expect((1...4).map(number) == [1, 2, 3, 4])
        #expect((5...8).map(number) == [5, 6, 7, 8])
        #expect(number(1) == 1, "met again before it was forgotten")
        #expect((9...40).map(number) == Array(9...40))
        #expect(registry.count <= registry.capacity)
        #expect(number(2) == 41, "forgotten, and no number is given twice")
        #expect(knows(40))
        #expect(!knows(3))
    }

    @Test func sessionsShareNumbersFromWhateverThread() async {
        let registry = SecretRegistry()
        let numbers = await withTaskGroup(of: [UInt32].self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<500).map { registry.number(of: Array("\($0 % 100)".utf8).span) } }
            }
            return await group.reduce(into: Set<UInt32>()) { $0.formUnion($1) }
        }
        #expect(numbers == Set(1...100))
    }
}
