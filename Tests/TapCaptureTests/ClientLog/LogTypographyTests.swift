import TapTestKit
import Testing

@testable import TapCapture

/// XML that a forum or a word processor has changed.
struct LogTypographyTests {
    private static let layout = LogLayoutTests.Layout("", "10:12:{s} SEND: {xml}", "10:12:{s} RECV: {xml}")

    /// The value of an attribute between other quotes.
    private static func quoted(_ xml: String, _ open: String, _ close: String) -> String {
        xml.replacing(#/=['"]([^'"]*)['"]/#) { "=\(open)\($0.output.1)\(close)" }
    }

    private static func outcomes(_ items: [LogConversation.Item], _ change: (String) -> String) throws -> [String] {
        try LogConversation.outcomes(layout.log(items.map { .init(isSent: $0.isSent, xml: change($0.xml)) }))
    }

    @Test(arguments: ["“ ”", "” ”", "„ “", "‘ ’", "’ ’", "″ ″", "&quot; &quot;", "′ ′"])
    func `Attribute values in typographic quotes are read`(quotes: String) throws {
        let marks = quotes.split(separator: " ").map(String.init)
        func change(_ xml: String) -> String { Self.quoted(xml, marks[0], marks[1]) }
        #expect(try Self.outcomes(LogConversation.refused(), change) == ["not-authorized"])
        #expect(try Self.outcomes(LogConversation.ready(), change) == ["ready romeo@example.org/x"])
    }

    @Test(arguments: ["\u{A0}", "&nbsp;"])
    func `No-break spaces in and before a tag are read as spaces`(space: String) throws {
        func change(_ xml: String) -> String {
            let tags = xml.replacing(#/<[^>]*>/#) { $0.output.replacing(" ", with: space) }
            return tags.replacing("><", with: ">\n\(space)\(space)<").replacing("<iq", with: "\(space)<iq")
        }
        #expect(try Self.outcomes(LogConversation.refused(), change) == ["not-authorized"])
        #expect(try Self.outcomes(LogConversation.ready(), change) == ["ready romeo@example.org/x"])
    }

    @Test(arguments: ["–", "—", "‑", "−"])
    func `Dashes in names are read as hyphens`(dash: String) throws {
        func change(_ xml: String) -> String {
            xml.replacing("xmpp-", with: "xmpp\(dash)").replacing("not-auth", with: "not\(dash)auth")
                .replacing("SCRAM-SHA-1", with: "SCRAM\(dash)SHA\(dash)1")
        }
        #expect(try Self.outcomes(LogConversation.refused(), change) == ["not-authorized"])
        #expect(try Self.outcomes(LogConversation.ready(), change) == ["ready romeo@example.org/x"])
    }

    @Test func `Texts keep their quotes, dashes and spaces`() {
        for text in [
            "<message><body>“It’s” – \u{A0}a=“b” &quot;c&quot;</body></message>", "<presence status='“–\u{A0}”'/>",
            "no tag: a=“b”",
        ] {
            #expect(String(decoding: LogTypography.plain(Array(text.utf8)), as: UTF8.self) == text)
        }
    }

    @Test(arguments: [
        "type=“set\" id='b1'", "type=“set id=b1", "type='set” id='b1'", "type=set id='b1'", "type=“a\"b'c”",
    ])
    func `Quotes that do not match are reported as a fault of the log`(attributes: String) throws {
        var items = LogConversation.ready()
        items[8].xml = items[8].xml.replacing("type='set' id='b1'", with: attributes)
        let outcomes = try LogConversation.outcomes(Self.layout.log(items))
        #expect(outcomes.first?.hasPrefix("line 9 cannot be read as XML") == true, "\(outcomes)")
        #expect(outcomes.dropFirst().allSatisfy { $0 == "open" || $0.hasPrefix("ready") }, "\(outcomes)")
    }
}
