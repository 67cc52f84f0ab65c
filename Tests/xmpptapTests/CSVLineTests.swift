import Testing

@testable import xmpptap

/// Lines of comma-separated values (RFC 4180).
struct CSVLineTests {
    @Test(
        "Values with separators, quotes and line ends are quoted, also before combining marks",
        arguments: [
            ("plain", "plain"), ("", ""), ("a\nb", "\"a\nb\""), ("a\rb", "\"a\rb\""), ("a\r\nb", "\"a\r\nb\""),
            ("a,b", "\"a,b\""), ("say \"hi\"", "\"say \"\"hi\"\"\""), ("a,\u{301}b", "\"a,\u{301}b\""),
            ("\"\u{301}", "\"\"\"\u{301}\""), ("a\n\u{301}", "\"a\n\u{301}\""), ("=\u{301}1", "\"'=\u{301}1\""),
            ("=1+1", "\"'=1+1\""), ("-1", "\"'-1\""), ("é", "é"),
        ]
    )
    func quotes(value: String, text: String) {
        #expect(CSVLine.text([value]).utf8.elementsEqual(text.utf8))
        #expect(CSVLine.text(["x", value]).utf8.elementsEqual("x,\(text)".utf8))
    }
}
