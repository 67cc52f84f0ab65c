import Testing
import XMPPCore

/// Bytes among bytes.
@Suite struct BytesTests {
    @Test(arguments: [
        ("a conflict ended it", "conflict", true), ("conflict", "conflict", true),
        ("it was a conflict", "conflict", true),
        ("conflic", "conflict", false), ("conconflict", "conflict", true), ("CONFLICT", "conflict", false),
        ("", "x", false), ("", "", true), ("x", "", true), ("süß", "ü", true), ("aab", "ab", true), ("aab", "aa", true),
    ])
    func `A text occurs in another byte for byte`(text: String, part: String, isFound: Bool) {
        #expect(Array(text.utf8).span.contains(Array(part.utf8).span) == isFound)
    }
}
