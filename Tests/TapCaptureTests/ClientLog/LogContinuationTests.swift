import Foundation
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// Items over several lines, and lines that may belong to one.
struct LogContinuationTests {
    /// The items of a log, without the white space between their tags.
    private static func items(_ lines: String) -> [String] {
        var fragmenter = LogFragmenter()
        for (index, line) in lines.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            fragmenter.process(Array(line.utf8), number: index + 1)
        }
        fragmenter.finish()
        return fragmenter.takeEntries().flatMap { entry -> [String] in
            guard case .fragment(let fragment) = entry else { return [] }
            return fragment.items.map { item in
                (item.state == .whole ? "" : "cut ") + String(decoding: item.bytes, as: UTF8.self)
            }
        }
    }

    // MARK: Lines of a log in a text

    @Test func `A line in a message's text that looks like a log line is part of the text`() {
        let message = """
            <message><body>my log says
            10:12:02 SEND: <iq type='get' id='1'/>
            10:12:03 connected
            and then nothing</body></message>
            """
        #expect(
            Self.items("10:12:01 RECV: \(message)\n10:12:04 SEND: <presence/>\n") == [message, "<presence/>"]
        )
    }

    @Test func `An incomplete item does not include the items after it`() {
        let log = """
            10:12:01 RECV: <message><body>my log says
            10:12:02 SEND: <iq type='get' id='1'/>
            10:12:03 connected
            10:12:04 RECV: <iq type='result' id='1'/>
            10:12:05 SEND: </stream:stream>
            10:12:05 RECV: </stream:stream>
            """
        #expect(
            Self.items(log) == [
                "<iq type='get' id='1'/>", "cut <message><body>my log says", "<iq type='result' id='1'/>",
                "</stream:stream>", "</stream:stream>",
            ]
        )
    }

    @Test func `Two incomplete items in a row are reported separately`() {
        let log = """
            10:12:01 RECV: <message><body>one
            10:12:02 SEND: <message><body>two
            10:12:03 RECV: <presence id='3'/>
            """
        #expect(
            Self.items(log).sorted() == [
                "<presence id='3'/>", "cut <message><body>one", "cut <message><body>two",
            ]
        )
    }

    @Test func `An item that continues after log lines needs matching end tags`() {
        let log = """
            10:12:01 RECV: <message><body>one
            10:12:02 SEND: <presence/>
            </stream:stream></stream:stream>
            """
        #expect(Self.items(log).first == "<presence/>")
    }

    // MARK: The logger's text in front of each line

    @Test(arguments: [
        "D/SMACK   ( 1234): ", "I/flutter (12345): ", "Nov 27 04:00:00 host prosody[12]: ", "prosody_1  | ",
        "2024-05-01T10:12:01.123456789Z stdout F ",
    ])
    func `The logger's prefix is removed from each line of an item`(prefix: String) {
        let log = """
            \(prefix)RECV (0): <iq type='result'>
            \(prefix)  <bind>
            \(prefix)    <jid>
            \(prefix)      juliet@example.org/balcony
            \(prefix)    </jid>
            \(prefix)  </bind>
            \(prefix)</iq>
            \(prefix)a line of the program
            \(prefix)SENT (0): <presence/>
            """
        let items = Self.items(log)
        #expect(
            items.map { $0.filter { !$0.isWhitespace } } == [
                "<iqtype='result'><bind><jid>juliet@example.org/balcony</jid></bind></iq>", "<presence/>",
            ]
        )
    }

    @Test func `Another program's line within an item is removed`() {
        let log = """
            D/SMACK   ( 1234): RECV (0): <iq type='result'>
            D/SMACK   ( 1234):   <ping/>
            E/EGL     ( 99): no context
            D/SMACK   ( 1234): </iq>
            """
        #expect(Self.items(log) == ["<iq type='result'>\n  <ping/>\n</iq>"])
    }

    @Test func `Attributes on separate lines with a logger's prefix are joined with white space`() {
        let log = """
            I/flutter (1): ---Xmpp Sending:---
            I/flutter (1): <stream:stream xmlns='jabber:client'
            I/flutter (1): to='example.org'
            I/flutter (1): version='1.0'
            I/flutter (1): >
            """
        #expect(Self.items(log) == ["<stream:stream xmlns='jabber:client'\nto='example.org'\nversion='1.0'\n>"])
    }

    @Test func `Attributes on separate lines with the complete log prefix are joined with white space`() {
        let log = """
            10:12:01 RECV: <presence/>
            10:12:02 SEND: <iq type='set'
            10:12:02 SEND: id='b1'
            10:12:02 SEND: ><ping
            10:12:02 SEND: xmlns='urn:xmpp:ping'/></iq>
            """
        #expect(
            Self.items(log).map { $0.replacing("\n", with: " ") } == [
                "<presence/>", "<iq type='set' id='b1'><ping xmlns='urn:xmpp:ping'/></iq>",
            ]
        )
    }

    @Test func `An incomplete start tag does not include the log lines after it`() {
        let log = """
            I/flutter (1): SEND: <presence/>
            I/flutter (1): RECV: <stream:stream xmlns='jabber:client'
            I/flutter (1): the connection is lost
            I/flutter (1): 2 > 1
            I/flutter (1): SEND: <presence/>
            """
        #expect(
            Self.items(log) == ["<presence/>", "<presence/>", "cut <stream:stream xmlns='jabber:client'"]
        )
    }

    // MARK: Reads

    @Test func `A continued read belongs to the session named on its line`() {
        let log = """
            10:12:01 RECV (0): <presence/>
            10:12:01 RECV (0): <presence/>
            10:12:01 RECV (1): <presence/>
            10:12:01 RECV (1): <presence/>
            10:12:02 RECV (0): <message><body>one
            10:12:03 RECV (1): two</body></message>
            10:12:04 RECV (0):  and a half</body></message>
            """
        #expect(
            Self.items(log).suffix(2) == [
                "cut two</body></message>", "<message><body>one and a half</body></message>",
            ]
        )
    }

    @Test func `Interleaved lines of two sessions' items cause no diagnosis`() throws {
        let log = [0, 1].flatMap { number in
            LogConversation.ready().map { "10:12:01 conn=\(number) \($0.isSent ? "SEND" : "RECV"): \($0.xml)" }
        }
        let failure = "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\n<not-authorized/>\n</failure>"
        let login = LogConversation.refused().prefix(4).map(\.xml)
        let ends = failure.split(separator: "\n").flatMap { part in
            [2, 3].map { "10:12:03 conn=\($0) RECV: \(part)" }
        }
        let logins = login.enumerated().flatMap { index, xml in
            [2, 3].map { "10:12:02 conn=\($0) \([1, 2].contains(index) ? "RECV" : "SEND"): \(xml)" }
        }
        let outcomes = try LogConversation.outcomes((log + logins + ends).joined(separator: "\n"))
        #expect(outcomes.dropFirst() == ["ready romeo@example.org/x", "ready romeo@example.org/x", "open", "open"])
        #expect(outcomes.first?.contains("shows the end of an item and not its beginning") == true, "\(outcomes)")
    }

    @Test func `The end of an item without its beginning is reported`() throws {
        let layout = LogLayoutTests.Layout("", "10:12:{s} SEND: {xml}", "10:12:{s} RECV: {xml}")
        var items = LogConversation.ready()
        items[4].xml = "ss xmlns='urn:ietf:params:xml:ns:xmpp-sasl'></success>"
        let outcomes = try LogConversation.outcomes(layout.log(items))
        #expect(outcomes.first == "line 5 shows the end of an item and not its beginning\n", "\(outcomes)")
    }

    @Test func `A byte count in the prefix does not separate the parts of an item`() {
        let log = """
            (11:06:41) jabber: Recv (ssl)(21): <message><body>one an
            (11:06:41) jabber: Sending (ssl) (juliet@example.org): <presence/>
            (11:06:42) jabber: Recv (ssl)(21): d two</body></message>
            """
        #expect(Self.items(log) == ["<presence/>", "<message><body>one and two</body></message>"])
    }

    @Test func `Thousands of items on one line are read`() {
        let text = String(repeating: "x", count: 400)
        let line = (0..<8_000).map { "<message id='\($0)'><body>\(text)</body></message>" }
        #expect(Self.items("10:12:01 RECV: " + line.joined(separator: " 10:12:02 SEND: ")).count == 8_000)
    }

    // MARK: Names

    @Test func `Names in Clark notation are converted to XML`() {
        #expect(
            Self.items(
                """
                XMPP IN [juliet@example.org]
                <{jabber:client}:iq {jabber:client}:id='1' {urn:x}:a='&lt;' {http://www.w3.org/XML/1998/namespace}:lang='en'>
                  <{urn:xmpp:ping}:ping {http://www.w3.org/2000/xmlns/}:xmlns='urn:xmpp:ping' />
                  <{urn:y}:text>
                    1 < 2 & 3
                  </{urn:y}:text>
                </{jabber:client}:iq>
                """
            ).map { $0.filter { !$0.isNewline } } == [
                "<iq id='1' n0:a='&lt;' xml:lang='en' xmlns='jabber:client' xmlns:n0='urn:x'>"
                    + "  <ping xmlns='urn:xmpp:ping' />  <text xmlns='urn:y'>    1 &lt; 2 &amp; 3  </text></iq>"
            ]
        )
    }

    @Test func `An element around the items is removed`() {
        #expect(
            Self.items("response: <xmpp_stone><presence id='1'/><presence id='2'/></xmpp_stone> end\n")
                == ["<presence id='1'/>", "<presence id='2'/>"]
        )
        #expect(Self.items("send<< a\n<deb>\n  <presence/>\n</deb>\n") == ["<presence/>"])
    }

    // MARK: Anything

    @Test func `A text without XML causes no diagnosis`() throws {
        var generator = SeededGenerator(seed: 31)
        let folder = try TemporaryFolder()
        let pieces = [
            "SEND: ", "RECV: ", "10:12:01 ", "iq", "message", "stream:stream", "&gt;", "&", "\\", ">", "</",
            "{}:",
            "\"", "'", "[1]", "(0)", " ", "\n", "\r\n", "\u{1b}[31m", "failure",
            "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'",
        ]
        for _ in 0..<200 {
            let text = (0..<40).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            let path = try folder.write(text, to: "x.log")
            guard let reader = try? RecordReader([path]) else { continue }
            while let entry = try reader.next() {
                guard case .record(let line) = entry else { continue }
                #expect(line.record.code != Record.Code.loginFailed, "\(text)")
            }
        }
    }
}
