import Foundation
import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// Layouts of logs, read without being told which they are.
struct LogLayoutTests {
    /// How a program prints an item: `{xml}` is the item, `{n}` a number that grows, `{s}` a second, `{escaped}`, `{entities}`
    /// and `{repr}` the item in the form of JSON, of HTML and of Python.
    struct Layout: Sendable, CustomTestStringConvertible {
        var program: String
        var sent: String
        var received: String
        var before = ""
        var testDescription: String { program }

        init(_ program: String, _ sent: String, _ received: String, before: String = "") {
            (self.program, self.sent, self.received, self.before) = (program, sent, received, before)
        }

        func log(_ items: [LogConversation.Item], session: Int = 0) -> String {
            var log = before
            for (number, item) in items.enumerated() { log += line(item, number, session) }
            return log
        }

        func line(_ item: LogConversation.Item, _ number: Int, _ session: Int) -> String {
            let escaped = item.xml.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            let quoted = item.xml.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
            let entities = item.xml.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(
                ">",
                with: "&gt;"
            )
            .replacing("\"", with: "&quot;")
            return (item.isSent ? sent : received)
                .replacing("{n}", with: "\(137 + number * 13)").replacing(
                    "{s}",
                    with: number < 10 ? "0\(number)" : "\(number)"
                )
                .replacing("{pointer}", with: ["55d0a2b7c8e0", "7f3a0c014ab0"][session])
                .replacing("{account}", with: ["juliet@example.org", "romeo@example.org"][session])
                .replacing("{connection}", with: "\(session)")
                .replacing("{escaped}", with: escaped).replacing("{repr}", with: quoted)
                .replacing("{entities}", with: entities).replacing("{xml}", with: item.xml) + "\n"
        }
    }

    static let layouts = [
        Layout(
            "XMPPFramework, CocoaLumberjack",
            "2016-04-14 11:35:{s}:100 MyApp[1731:650f] SEND: {xml}",
            "2016-04-14 11:35:{s}:100 MyApp[1731:1{n}] RECV: {xml}"
        ),
        Layout(
            "Pidgin",
            "(12:52:{s}) jabber: Sending (ssl) (juliet@example.org): {xml}",
            "(12:52:{s}) jabber: Recv (ssl)({n}): {xml}"
        ),
        Layout(
            "Adium",
            "12:52:{s}: (Libpurple: jabber) Sending (ssl) (juliet@example.org): {xml}",
            "12:52:{s}: (Libpurple: jabber) Recv (ssl)({n}): {xml}"
        ),
        Layout(
            "Gajim",
            "05/01/24 10:12:{s} (I) nbxmpp.connection        (juliet@example.org) :::: DATA SENT ::::\n\n{xml}\n",
            "05/01/24 10:12:{s} (I) nbxmpp.connection        (juliet@example.org) :::: DATA RECEIVED ::::\n\n{xml}\n"
        ),
        Layout(
            "Dino",
            "XMPP OUT [juliet@example.org stream:0x55d0a2 thread:0x55aa{n} 10:12:{s}]\n{xml}",
            "XMPP IN [juliet@example.org stream:0x55d0a2 thread:0x55aa{n} 10:12:{s}]\n{xml}"
        ),
        Layout("QXmpp", "2021-11-22T12:52:{s} SENT {xml}", "2021-11-22T12:52:{s} RECEIVED {xml}"),
        Layout("Swiften", String(repeating: ">", count: 80) + "\n{xml}", String(repeating: "<", count: 80) + "\n{xml}"),
        Layout("gloox", "log: level: 0, area: 524288, {xml}", "log: level: 0, area: 262144, {xml}"),
        Layout(
            "loudmouth",
            "SEND:\n-----------------------------------\n{xml}\n-----------------------------------",
            "RECV [{n}]:\n-----------------------------------\n'{xml}'\n-----------------------------------"
        ),
        Layout(
            "Miranda",
            "[10:12:{s} 0A3C] [JABBER] (000003A8:{n}) Data sent\n{xml}",
            "[10:12:{s} 0A3C] [JABBER] (000003A8:{n}) Data received\n{xml}"
        ),
        Layout("Smack", "10:12:{s} AM SENT (1): {xml}", "10:12:{s} AM RECV (1): {xml}"),
        Layout(
            "Smack, logcat",
            "05-01 10:12:{s}.123  1234  1{n} D SMACK   : SENT (0): {xml}",
            "05-01 10:12:{s}.123  1234  1{n} D SMACK   : RECV (0): {xml}"
        ),
        Layout(
            "Monal",
            "2024-05-01 10:12:{s}.123 [main] xmpp.m:{n} SEND: {xml}",
            "2024-05-01 10:12:{s}.123 [parser] xmpp.m:{n} RECV Stanza: {xml}"
        ),
        Layout("xmpp.js", "⮊ OUT {xml}", "⮈ IN  {xml}"),
        Layout("Strophe", "main.js:1{n} SENT: {xml}", "main.js:1{n} RECV: {xml}"),
        Layout("stanza.js", "raw:outgoing {xml}", "raw:incoming {xml}"),
        Layout("slixmpp", "DEBUG    SEND: {xml}", "DEBUG    RECV: {xml}"),
        Layout("SleekXMPP", "DEBUG    SEND (IMMED): {xml}", "DEBUG    RECV: {xml}"),
        Layout("aioxmpp", "DEBUG:aioxmpp.node.XMLStream:SENT b'{repr}'", "DEBUG:aioxmpp.node.XMLStream:RECV b'{repr}'"),
        Layout("xmpppy", "DEBUG: socket       sent  {xml}", "DEBUG: socket       got   {xml}"),
        Layout("XML::Stream", "XML::Stream: Send: ({xml})", "XML::Stream: Read: buff({xml})"),
        Layout(
            "xmpp4r",
            "D, [2015-10-20T12:03:{s}.919224 #19455] DEBUG -- : SENDING:\n    {xml}",
            "D, [2015-10-20T12:03:{s}.919224 #19455] DEBUG -- : RECEIVED:\n    {xml}"
        ),
        Layout(
            "moxxmpp",
            "[FINEST] (XmppConnection) 2024-05-01 10:12:{s}.123: ==> {xml}",
            "[FINEST] (XmppConnection) 2024-05-01 10:12:{s}.123: <== {xml}"
        ),
        Layout(
            "xmpp_stone",
            "2024-05-01 10:12:{s}.123 I/[Connection]: ---> Xmpp Sending: {xml}",
            "2024-05-01 10:12:{s}.123 I/[Connection]: <--- Xmpp Receiving: {xml}"
        ),
        Layout("Go", "2024/05/01 10:12:{s} out {xml}", "2024/05/01 10:12:{s} in {xml}"),
        Layout("a paste without markers", "{xml}", "{xml}"),
        Layout(
            "Prosody, mod_stanza_debug",
            "May 01 10:12:{s} c2s55d0a2b7c8e0\tdebug\tRECV: {xml}",
            "May 01 10:12:{s} c2s55d0a2b7c8e0\tdebug\tSEND: {xml}"
        ),
        Layout(
            "ejabberd",
            "2018-03-03 15:53:{s}.098 [debug] <0.607.0>@xmpp_socket:recv:218 (tcp|<0.607.0>) Received XML on stream = <<\"{escaped}\">>",
            "2018-03-03 15:53:{s}.098 [debug] <0.607.0>@xmpp_socket:send:218 (tcp|<0.607.0>) Send XML on stream = <<\"{escaped}\">>"
        ),
        Layout(
            "MongooseIM",
            "when=2024-05-01T10:12:{s}.123456+00:00 level=debug what=received_xml_on_stream pid=<0.1234.0> packet=\"{escaped}\" at=mongoose_c2s:handle/2:{n}",
            "when=2024-05-01T10:12:{s}.123456+00:00 level=debug what=send_text pid=<0.1234.0> packet=\"{escaped}\" at=mongoose_c2s:send/2:{n}"
        ),
        Layout(
            "JSON lines",
            "{\"level\":\"debug\",\"time\":\"2024-05-01T10:12:{s}Z\",\"xml\":\"{escaped}\",\"to\":\"server\"}",
            "{\"level\":\"debug\",\"time\":\"2024-05-01T10:12:{s}Z\",\"xml\":\"{escaped}\",\"to\":\"client\"}"
        ),
        Layout("Openfire", "C2S - RECV (1873462): {xml}", "C2S - SENT (1873462): {xml}"),
        Layout("a page", "[10:12:{s}] SENT: {entities}", "[10:12:{s}] RECEIVED: {entities}"),
    ]

    @Test(arguments: layouts)
    func `Sessions are read from each log layout`(layout: Layout) throws {
        #expect(try LogConversation.outcomes(layout.log(LogConversation.refused())) == ["not-authorized"])
        #expect(try LogConversation.outcomes(layout.log(LogConversation.ready())) == ["ready romeo@example.org/x"])
    }

    @Test func `Log formats with random markers and fields are read`() throws {
        var generator = SeededGenerator(seed: 29)
        func word(_ count: Int) -> String {
            String((0..<count).map { _ in "bcdfghjklmnpqrstvwxz".randomElement(using: &generator) ?? "x" })
        }
        for index in 0..<10 {
            let markers = [
                word(Int.random(in: 1...7, using: &generator)), word(Int.random(in: 1...7, using: &generator)) + "q",
            ]
            let fields = [
                "{n}", "[{n}]", "T=10:12:{s}", "<\(word(4))>", "0x{n}f", "\(word(3)):{n}", "(\(word(5)))", "lvl={n}",
            ]
            .shuffled(using: &generator).prefix(Int.random(in: 0...4, using: &generator))
            let open = ["", "(", "«", "|", "'", "\""].randomElement(using: &generator) ?? ""
            let layouts = markers.map {
                "\((fields + [$0]).shuffled(using: &generator).joined(separator: " ")) \(open){xml}\(open)"
            }
            let order = Bool.random(using: &generator)
            let layout = Layout("\(index)", order ? layouts[0] : layouts[1], order ? layouts[1] : layouts[0])
            #expect(
                try LogConversation.outcomes(layout.log(LogConversation.refused())) == ["not-authorized"],
                "\(layout)"
            )
            #expect(
                try LogConversation.outcomes(layout.log(LogConversation.ready())) == ["ready romeo@example.org/x"],
                "\(layout)"
            )
        }
    }

    static let concurrent = [
        Layout("account in brackets", "10:12:{s} ({account}) sent: {xml}", "10:12:{s} ({account}) got: {xml}"),
        Layout(
            "connection number",
            "10:12:{s} AM SENT ({connection}): {xml}",
            "10:12:{s} AM RECV ({connection}): {xml}"
        ),
        Layout(
            "key and value",
            "10:12:{s} conn={connection} n={n} >> {xml}",
            "10:12:{s} conn={connection} n={n} << {xml}"
        ),
        Layout(
            "pointer",
            "May 01 10:12:{s} c2s{pointer}\tdebug\tRECV: {xml}",
            "May 01 10:12:{s} c2s{pointer}\tdebug\tSEND: {xml}"
        ),
        Layout(
            "account on one side",
            "10:12:{s} [{n}] Sending ({account}): {xml}",
            "10:12:{s} [{n}] Recv from ({account}): {xml}"
        ),
        Layout(
            "process",
            "10:12:{s} <0.60{connection}.0>@a:recv:2{n} (tcp|<0.60{connection}.0>) Received = <<\"{escaped}\">>",
            "10:12:{s} <0.60{connection}.0>@a:send:3{n} (tcp|<0.60{connection}.0>) Send = <<\"{escaped}\">>"
        ),
    ]

    @Test(arguments: concurrent)
    func `The session field of a log separates overlapping sessions`(layout: Layout) throws {
        var log = ""
        let merged = LogConversation.interleaved(LogConversation.refused(), LogConversation.ready())
        for (number, (session, item)) in merged.enumerated() { log += layout.line(item, number, session) }
        #expect(try LogConversation.outcomes(log) == ["not-authorized", "ready romeo@example.org/x"])
    }

    @Test func `Sessions without a login are separated by the accounts in the server's stanzas`() throws {
        var log = ""
        for number in 0..<60 {
            let (session, thread) = (number % 4, number % 3)
            let front = "10:12:\(10 + number / 2) [t\(thread)] c\(session)a #\(number) "
            log += "\(front)SEND: <message to='nurse@example.org'><body>\(number)</body></message>\n"
            log +=
                "\(front)RECV: <message from='nurse@example.org/x' to='user\(session)@example.org/y'><body>\(number)</body></message>\n"
        }
        #expect(try LogConversation.outcomes(log) == ["open", "open", "open", "open"])
    }

    @Test func `Damage from copying and pasting does not change the outcome`() throws {
        let slixmpp = Layout("", "2024-05-01 10:12:{s} DEBUG SEND: {xml}", "2024-05-01 10:12:{s} DEBUG RECV: {xml}")
        let log = slixmpp.log(LogConversation.ready())
        let expected = ["ready romeo@example.org/x"]
        let bytes = Array(log.utf8)
        #expect(try LogConversation.outcomes(bytes: [0xEF, 0xBB, 0xBF] + bytes) == expected)
        #expect(try LogConversation.outcomes(log.replacing("\n", with: "\r\n")) == expected)
        let utf16: [UInt8] = log.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        let swapped: [UInt8] = log.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
        #expect(try LogConversation.outcomes(bytes: [0xFF, 0xFE] + utf16) == expected)
        #expect(
            try LogConversation.outcomes(bytes: [0xFE, 0xFF] + swapped) == expected
        )
        let doubled = log.split(separator: "\n").flatMap { [$0, $0] }.joined(separator: "\n")
        #expect(try LogConversation.outcomes(doubled) == expected)
        let twoLoggers = log.split(separator: "\n").flatMap { ["\($0)", "console: \($0.dropFirst(26))"] }.joined(
            separator: "\n"
        )
        #expect(try LogConversation.outcomes(twoLoggers) == expected)
        let coloured = log.split(separator: "\n").map { "\u{1b}[32m\($0)\u{1b}[0m" }.joined(separator: "\n")
        #expect(try LogConversation.outcomes(coloured) == expected)
        // Wrapped by a page at 80 columns, within names of attributes, values and texts.
        let spread = log.replacing("><", with: ">\n\n    <").replacing("' xmlns", with: "'\n xmlns")
        #expect(try LogConversation.outcomes(spread) == expected)
        let behind = log.split(separator: "\n").map { "\($0) (client.py:277)" }.joined(separator: "\n")
        #expect(try LogConversation.outcomes(behind) == expected)
        let joined = log.replacing("\n", with: " ")
        #expect(try LogConversation.outcomes(joined) == expected)
        let closed = log.replacing("xml:lang='en'>", with: "stream1:lang='en'/>")
        #expect(try LogConversation.outcomes(closed) == expected)
    }

    @Test func `Reads that split items are joined`() throws {
        var log = ""
        for (number, item) in LogConversation.ready().enumerated() {
            let half = item.xml.count / 2
            let parts =
                item.isSent || number < 3 ? [item.xml] : ["\(item.xml.prefix(half))", "\(item.xml.dropFirst(half))"]
            for part in parts { log += "10:12:01 AM \(item.isSent ? "SENT" : "RECV") (0): \(part)\n" }
        }
        #expect(try LogConversation.outcomes(log) == ["ready romeo@example.org/x"])
    }

    @Test func `Malformed XML is reported as a fault of the log, and the rest is read`() throws {
        let layout = Layout("", "10:12:{s} SEND: {xml}", "10:12:{s} RECV: {xml}")
        var items = LogConversation.ready()
        items.insert(.init(isSent: false, xml: "<message from='a@b'><body>x</message>"), at: 11)
        items.insert(.init(isSent: false, xml: "<iq type='result' id='1'><query xmlns='jabber:iq:roster'>"), at: 12)
        items.insert(.init(isSent: true, xml: "<message to='a@b'><body>\u{1}</body></message>"), at: 13)
        let outcomes = try LogConversation.outcomes(layout.log(items))
        #expect(outcomes.count == 2 && outcomes.last == "ready romeo@example.org/x")
        let words = outcomes.first ?? ""
        #expect(
            words.contains("line 12 cannot be read as XML: the end tag does not match the open element"),
            "\(words)"
        )
        #expect(words.contains("line 13 cannot be read as XML: the item has no end"), "\(words)")
        #expect(words.contains("line 14 cannot be read as XML: a character that XML 1.0 forbids"), "\(words)")
    }

    @Test func `A log that has only start tags is reported as partly understood`() throws {
        var log = ""
        for number in 0..<6 {
            log +=
                "May 01 10:12:0\(number) c2s55d0a2b7c8e0\tdebug\tReceived[c2s]: <iq id='\(number)' type='get' to='example.org'>\n"
        }
        let folder = try TemporaryFolder()
        let reader = try RecordReader([try folder.write(log, to: "x.log")])
        var words: [String] = []
        while let entry = try reader.next() {
            if case .record(let line) = entry, line.record.level == .warn {
                words.append(line.record.messageText ?? "")
            }
        }
        #expect(
            words.last
                == "this log is understood in part: 0 of 6 fragments; line 1 shows a start tag and not the rest of the item"
        )
    }

    private static let cases: [String: [String]] = [
        "xmppframework-success": ["ready user1@example.org/1"],
        "xmppframework-header-closed": ["ready user1@example.org/1"],
        "xmppframework-header-prefix": ["not-authorized"],
        "colour-reset-behind": ["not-authorized"], "xmpp4r": ["not-authorized"], "strophe-bosh": ["not-authorized"],
        "pidgin": ["not-authorized"], "xml-stream-perl": ["not-authorized"], "qxmpp": ["not-authorized"],
        "xmppjs-debug": ["not-authorized"], "gajim-two-accounts": ["not-authorized", "ready alice@example.net/g"],
        "smack-compression": ["ready u4@server.example/Android"], "openfire-debugger": ["not-authorized"],
        "prosody-syslog": ["not-authorized"], "ejabberd-debug": ["not-authorized"],
        "xmppjs-blank-lines": ["not-authorized"],
        "python-text-behind": ["channel-binding-denied"], "recording-ends-after-success": ["open"],
        "base64-with-line-break": ["malformed-request"], "user-name-with-domain": ["not-authorized"],
        "enable-before-bind": ["ready user1@example.org/x"],
    ]

    @Test(.enabled(if: Corpus.cases != nil, "there are no cases beside XMPPTAP_CORPUS"), arguments: cases.keys.sorted())
    func `Logs that older versions misread are read`(name: String) throws {
        let path = try #require(Corpus.cases).appending(path: "logs/\(name).log").path
        let outcomes = try LogConversation.outcomes(path: path)
        #expect(outcomes == Self.cases[name], "\(outcomes)")
    }

    @Test func `Files that are not XMPP logs are refused`() throws {
        let folder = try TemporaryFolder()
        for text in [
            "<!DOCTYPE html>\n<html><body><p>An &lt;iq&gt; is a query.</p></body></html>\n",
            "the <message> stanza and the <iq> stanza\n",
            "<svg xmlns='http://www.w3.org/2000/svg'><a/></svg>\n", "SEND: nothing\n",
        ] {
            let path = try folder.write(text, to: "x.log")
            #expect(throws: ReaderFault.self, "\(text)") { try RecordReader([path]) }
        }
    }
}
