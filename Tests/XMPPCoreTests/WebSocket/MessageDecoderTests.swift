import Testing
import XMPPCore

private let framing = "xmlns='urn:ietf:params:xml:ns:xmpp-framing'"
private let open = "<open \(framing) to='localhost' version='1.0'/>"
private let streams = "xmlns:stream='http://etherx.jabber.org/streams'"

private func bytes(_ messages: [String]) -> [[UInt8]] { messages.map { Array($0.utf8) } }

@Suite struct MessageDecoderTests {
    /// A login as Prosody 0.12.3 and ejabberd 23.01 answer it.
    static let logins: [String: [String]] = [
        "client": [
            open, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>",
            "<open xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\" to=\"localhost\" version=\"1.0\"/>",
            "<iq type='set' id='b' xmlns='jabber:client'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
            "<enable xmlns='urn:xmpp:sm:3' resume='true'/>", "<r xmlns='urn:xmpp:sm:3'/>",
            "<presence xmlns=\"jabber:client\"/>",
            "<close xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\" />",
        ],
        "Prosody": [
            "<open xml:lang='en' version='1.0' from='localhost' id='d2' \(framing)/>",
            "<stream:features \(streams) xmlns='jabber:client'><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>",
            "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
            "<open xml:lang='en' version='1.0' from='localhost' id='d3' \(framing)/>",
            "<message xmlns='jabber:client' from='a@localhost/x' to='b@localhost'><body>Grüße \u{1F600}</body></message>",
            "<stream:error \(streams) xmlns='jabber:client'><not-well-formed "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>", "<close \(framing)/>",
        ],
        "ejabberd": [
            "<open \(framing) version='1.0' xml:lang='en' id='137' from='localhost'/>",
            "<stream:features \(streams)><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>",
            "<close \(framing)></close>",
        ],
    ]

    @Test(arguments: logins.keys.sorted()) func `each message of a login is one item`(_ name: String) throws {
        let messages = bytes(try #require(Self.logins[name]))
        let transcript = MessageTranscript(messages)
        #expect(transcript.lines.count == messages.count && transcript.faults.isEmpty)
        #expect(transcript.lines.first?.contains(" header nonza {urn:ietf:params:xml:ns:xmpp-framing}open") == true)
        #expect(transcript.lines.last?.contains(" end nonza {urn:ietf:params:xml:ns:xmpp-framing}close") == true)
        if let difference = MessageTranscript.difference(messages) { Issue.record("\(difference)") }
    }

    @Test func `<open/> is a header and begins an epoch`() {
        let lines = MessageTranscript(bytes(Self.logins["client"] ?? [])).lines
        #expect(
            lines[0] == "1/0+\(open.utf8.count) header nonza {urn:ietf:params:xml:ns:xmpp-framing}open to=localhost "
                + "version=1.0 empty \(open)"
        )
        #expect(
            lines[1].hasPrefix("1/\(open.utf8.count)+80 element nonza {urn:ietf:params:xml:ns:xmpp-sasl}auth secret?")
        )
        #expect(lines[2].hasPrefix("2/0+") && lines[2].contains(" header "))
        #expect(
            lines[3].contains(
                " element iq {jabber:client}iq id=b type=set payload {urn:ietf:params:xml:ns:xmpp-bind}bind"
            )
        )
    }

    @Test func `a message inherits no declarations from other messages`() {
        let transcript = MessageTranscript(
            bytes([
                "<open \(framing) \(streams) xmlns:a='u'/>", "<stream:features/>", "<a:b/>", "<iq id='1'/>",
                "<x xmlns='jabber:client' xmlns:p='u'><p:y/></x>", "<presence xmlns='jabber:client'/>", "<p:y/>",
            ])
        )
        #expect(transcript.faults == [.unboundPrefix, .unboundPrefix, .unboundPrefix])
        #expect(transcript.lines[3].contains(" element nonza {}iq id=1"))
        #expect(transcript.lines[5].contains(" presence {jabber:client}presence empty"))
    }

    struct Case: CustomTestStringConvertible {
        var message: String
        var line: String
        var testDescription: String { "\(line): \(message.prefix(70))" }

        init(_ message: String, _ line: String) {
            self.message = message
            self.line = line
        }
    }

    static let cases: [Case] = [
        Case("", "fault framing-empty at 0"),
        Case(" ", "fault framing-empty at 1"),
        Case("\r\n\t", "fault framing-empty at 3"),
        Case("<a xmlns='u'/><b xmlns='u'/>", "fault framing-several-elements at 14"),
        Case("<a xmlns='u'></a> <b xmlns='u'/>", "fault framing-several-elements at 18"),
        Case("<a xmlns='u'/><", "fault framing-several-elements at 14"),
        Case("<open \(framing)/><close \(framing)/>", "fault framing-several-elements at 51"),
        Case("<a/>text", "fault framing-text at 4"),
        Case("<a/> &amp;", "fault framing-text at 5"),
        Case("text<a/>", "fault framing-text at 0"),
        Case("\u{FEFF}<a/>", "fault framing-text at 0"),
        Case("<a/>\u{FEFF}", "fault framing-text at 4"),
        Case("<a>", "fault framing-unfinished-element at 3"),
        Case("<a><b></b>", "fault framing-unfinished-element at 10"),
        Case("<a", "fault framing-unfinished-element at 2"),
        Case("<", "fault framing-unfinished-element at 1"),
        Case("<a b='", "fault framing-unfinished-element at 6"),
        Case("<a>text &am", "fault framing-unfinished-element at 11"),
        Case("<a><![CDATA[x", "fault framing-unfinished-element at 13"),
        Case("<?xml version='1.0'?>", "fault framing-empty at 21"),
        Case("<?xml version='1.0'", "fault framing-unfinished-element at 19"),
        Case("<stream:stream \(streams) xmlns='jabber:client' to='a'>", "fault framing-stream-header at 0"),
        Case("<stream \(streams) xmlns='http://etherx.jabber.org/streams'/>", "fault framing-stream-header at 0"),
        Case("<?xml version='1.0'?><stream:stream \(streams)>", "fault framing-stream-header at 21"),
        Case("</stream:stream>", "fault mismatched-tag at 0"),
        Case("<a/></stream:stream>", "fault mismatched-tag at 4"),
        Case("<a/><!-- -->", "fault comment at 4"),
        Case("<!-- --><a/>", "fault comment at 0"),
        Case("<a/><?b c?>", "fault processing-instruction at 4"),
        Case("<?b c?><a/>", "fault processing-instruction at 0"),
        Case(" <?xml version='1.0'?><a/>", "fault processing-instruction at 1"),
        Case("<?xml version='1.1'?><a/>", "fault unsupported-xml-version at 15"),
        Case("<!DOCTYPE a><a/>", "fault doctype at 0"),
        Case("<![CDATA[x]]>", "fault text-outside-stanza at 0"),
        Case("<a></b>", "fault mismatched-tag at 3"),
        Case("<a b='1' b='2'/>", "fault duplicate-attribute at 9"),
        Case("<p:a/>", "fault unbound-prefix at 1"),
        Case("<a>&x;</a>", "fault entity-reference at 3"),
        Case(
            "<a><stream xmlns='http://etherx.jabber.org/streams'/></a>",
            "element nonza {}a payload "
                + "{http://etherx.jabber.org/streams}stream"
        ),
        Case("<?xml version='1.0'?><a/>", "element nonza {}a unusual empty <?xml version='1.0'?><a/> +declaration"),
        Case(
            "<?xml version='1.0' encoding='utf-8'?>\n<a/>\n",
            "element nonza {}a unusual empty <?xml version='1.0' encoding='utf-8'?>\n<a/>\n +declaration +leading +trailing"
        ),
        Case(" <a/>", "element nonza {}a unusual empty  <a/> +leading"),
        Case("<a></a>\r\n", "element nonza {}a unusual <a></a>\r\n +trailing"),
        Case("<open \(framing)></open>", "header nonza {urn:ietf:params:xml:ns:xmpp-framing}open <open"),
        Case(
            "<f:open xmlns:f='urn:ietf:params:xml:ns:xmpp-framing' id='1'/>",
            "header nonza {urn:ietf:params:xml:ns:xmpp-framing}open id=1 empty"
        ),
        Case("<open \(framing)>x</open>", "header nonza {urn:ietf:params:xml:ns:xmpp-framing}open unusual"),
        Case("<close \(framing)><a/></close>", "end nonza {urn:ietf:params:xml:ns:xmpp-framing}close payload"),
        Case("<open xmlns='urn:other'/>", "element nonza {urn:other}open empty"),
        Case("<open/>", "element nonza {}open empty"),
        Case("<other \(framing)/>", "element nonza {urn:ietf:params:xml:ns:xmpp-framing}other empty"),
    ]

    @Test(arguments: cases) func `a message is exactly one element`(_ one: Case) {
        let messages = bytes([one.message, "<presence xmlns='jabber:client'/>"])
        let transcript = MessageTranscript(messages, framing: .messagesInside)
        let isHeader = one.line.hasPrefix("header")
        let expected = "\(isHeader ? 2 : 1)/0+\(one.message.utf8.count) \(one.line)"
        #expect(transcript.lines[0].hasPrefix(expected), "\(transcript.lines[0])")
        #expect(transcript.lines.count == 2)
        let isEnd = one.line.hasPrefix("end")
        #expect(
            transcript.lines[1].contains(isEnd ? "fault after-stream-end" : " presence {jabber:client}presence empty")
        )
        if let difference = MessageTranscript.difference(messages, framing: .messagesInside) {
            Issue.record("\(difference)")
        }
    }

    @Test func `a stream begins with <open/>`() {
        let messages = bytes(["<presence xmlns='jabber:client'/>", " ", open, "<presence xmlns='jabber:client'/>"])
        let transcript = MessageTranscript(messages)
        #expect(transcript.faults == [.missingOpen, .emptyMessage])
        #expect(transcript.lines[2].hasPrefix("1/0+"))
        #expect(MessageTranscript.difference(messages) == nil)
    }

    @Test func `no item follows <close/>`() {
        let messages = bytes([open, "<close \(framing)/>", "<presence xmlns='jabber:client'/>", open, ""])
        let transcript = MessageTranscript(messages)
        #expect(transcript.faults == [.afterStreamEnd, .afterStreamEnd, .afterStreamEnd])
        #expect(MessageTranscript.difference(messages) == nil)
    }

    @Test func `a message beyond the limit is followed to its end`() {
        let stanza =
            "<message xmlns='jabber:client' id='7'><body>\(String(repeating: "x", count: 300))</body></message>"
        for (message, end) in [
            (stanza, "element message {jabber:client}message id=7 payload {jabber:client}body truncated"),
            (stanza + "<a/>", "fault framing-several-elements at \(stanza.utf8.count) 0 truncated"),
            (stanza + " x", "fault framing-text at \(stanza.utf8.count + 1) 0 truncated"),
            (String(stanza.dropLast(4)), "fault framing-unfinished-element at \(stanza.utf8.count - 4) 0 truncated"),
            (
                stanza.replacing("</body>", with: "</b>"),
                "fault mismatched-tag at \(stanza.utf8.count - 17) 0 truncated"
            ),
            (String(repeating: " ", count: 300) + "<a/>", "fault limit-item at 200 200 truncated"),
            ("<a/>" + String(repeating: "\n", count: 300), "fault limit-item at 200 200 truncated"),
            ("<a><b/>&x;" + String(repeating: "\n", count: 300), "fault entity-reference at 7 0 truncated"),
        ] {
            let messages = bytes([message, "<presence xmlns='jabber:client'/>"])
            let limits = StreamLimits(itemBytes: 200)
            let transcript = MessageTranscript(messages, framing: .messagesInside, limits: limits)
            #expect(transcript.lines.count == 2)
            #expect(transcript.lines.first == "1/0+\(message.utf8.count) " + end)
            #expect(transcript.lines.last?.contains(" presence ") == true)
            if let difference = MessageTranscript.difference(messages, framing: .messagesInside, limits: limits) {
                Issue.record("\(difference)")
            }
        }
    }

    @Test(arguments: [1, 20, 60, 100]) func `limits do not depend on how messages are split`(_ itemBytes: Int) {
        let limits = StreamLimits(
            itemBytes: itemBytes,
            tagBytes: 130,
            depth: 3,
            attributes: 4,
            nameBytes: 9,
            namespaces: 3
        )
        let all = Self.logins.keys.sorted().flatMap { Self.logins[$0] ?? [] } + Self.cases.map(\.message)
        for message in all {
            let messages = bytes([message, "<b/>"])
            if let difference = MessageTranscript.difference(messages, framing: .messagesInside, limits: limits) {
                Issue.record("\(message), \(difference)")
            }
        }
    }

    @Test func `an element is parsed without the declaration and whitespace around it`() throws {
        let parser = StanzaParser()
        var reader = ElementReader()
        for (before, after) in [
            ("", ""), ("<?xml version='1.0'?>", ""), ("<?xml version='1.0'?>\n", "\n"), (" ", " \r\n"),
        ] {
            let outline = ItemOutline()
            var decoder = StreamDecoder(framing: .messagesInside, outline: outline)
            let message = before + "<iq xmlns='jabber:client' id='1'><a xmlns='u'>&lt;b</a></iq>" + after
            decoder.append(message: Array(message.utf8).span, endsMessage: true)
            _ = decoder.next()
            #expect(decoder.bytes.string() == message)
            let parsed = try parser.parse(decoder)
            let read = reader.read(decoder)
            let plain = reader.read(decoder.bytes, in: decoder)
            #expect(read != nil && plain != nil)
            for element in [parsed, read, plain].compactMap({ $0 }) {
                #expect(element.name == "iq" && element.attribute("id") == "1" && element.namespace == .client)
                #expect(element.firstChild?.namespaceURI == "u" && element.firstChild?.text == "<b")
            }
        }
    }

    @Test func `a decoder is between items only between messages`() {
        let nothing: [UInt8] = []
        var decoder = StreamDecoder(framing: .messages)
        #expect(decoder.isBetweenItems && decoder.contentNamespace == .none)
        decoder.append(message: nothing.span, endsMessage: false)
        #expect(!decoder.isBetweenItems && decoder.next() == nil)
        decoder.append(message: Array(open.utf8).span, endsMessage: false)
        #expect(decoder.next() == nil && !decoder.isBetweenItems)
        decoder.append(message: nothing.span, endsMessage: true)
        #expect(decoder.next() != nil && decoder.next() == nil)
        #expect(decoder.isBetweenItems && decoder.contentNamespace == .client && decoder.isOfMessages)
        decoder.append(message: Array("<a".utf8).span, endsMessage: false)
        #expect(decoder.next() == nil)
        guard case .incomplete? = decoder.finish()?.kind else {
            Issue.record("an unfinished message is not torn")
            return
        }
        #expect(decoder.finish() == nil && decoder.next() == nil)
    }

    @Test func `the fault of an unfinished message is reported at the end`() {
        for message in ["<a></b>", "text", "<a b=c", "<a/><b/>"] {
            var decoder = StreamDecoder(framing: .messagesInside)
            decoder.append(message: Array(message.utf8).span, endsMessage: false)
            #expect(decoder.next() == nil)
            guard case .fault? = decoder.finish()?.kind else {
                Issue.record("no fault in \(message)")
                continue
            }
        }
    }

    @Test func `an item is kept while messages arrive`() {
        var decoder = StreamDecoder(framing: .messagesInside)
        decoder.append(message: Array("<a/>".utf8).span, endsMessage: true)
        #expect(decoder.next() != nil)
        for piece in ["<b", "", "/>"] {
            decoder.append(message: Array(piece.utf8).span, endsMessage: piece == "/>", keepsItem: true)
            #expect(decoder.bytes.string() == "<a/>")
        }
        #expect(decoder.next()?.chunks == [2])
        #expect(decoder.bytes.string() == "<b/>")
    }
}
