import Testing

@testable import TapReplay

@Suite struct ScriptWriterTests {
    private static let recording = """
        1 1 ready romeo@localhost/r1
        2 2 ready juliet@localhost/j1
        3 1 send <iq type='get' id='a1'><query xmlns='jabber:iq:roster'/></iq>
        4 1 recv <iq type='result' id='a1' to='romeo@localhost/r1'><query xmlns='jabber:iq:roster' ver='7'><item jid='juliet@localhost' subscription='both'/><item jid='nurse@localhost' subscription='to'/></query></iq>
        5 1 send <enable xmlns='urn:xmpp:sm:3'/>
        6 1 send <message to='juliet@localhost/j1' id='m1' type='chat'><body>1 &lt; 2&#10;"x"</body></message>
        7 2 recv <message to='juliet@localhost/j1' from='romeo@localhost/r1' id='m1' type='chat'><body>1 &lt; 2&#10;"x"</body><delay xmlns='urn:xmpp:delay' stamp='2026-11-22T10:00:00Z'/><stanza-id xmlns='urn:xmpp:sid:0' id='q9' by='juliet@localhost'/></message>
        8 1 ended
        9 2 ended
        """

    @Test func aRecordingBecomesAScript() throws {
        let text = try #require(ScriptWriter(try RecordedText(Self.recording).conversations).script(title: "a.xtap"))
        #expect(
            text == """
                # a.xtap
                # Passwords are read from the accounts file; for scansion add "password:" to each client.

                [Client] Romeo
                \tjid: romeo@localhost

                [Client] Juliet
                \tjid: juliet@localhost

                -----

                Romeo connects

                Juliet connects

                Romeo sends:
                \t<iq type="get" id="a1">
                \t\t<query xmlns="jabber:iq:roster"/>
                \t</iq>

                Romeo receives:
                \t<iq type="result" id="a1" to="${Romeo's full JID}">
                \t\t<query xmlns="jabber:iq:roster" ver="{scansion:any}" scansion:strict="false">
                \t\t\t<item jid="${Juliet's JID}" subscription="both"/>
                \t\t\t<item jid="nurse@localhost" subscription="to"/>
                \t\t</query>
                \t</iq>

                Romeo sends:
                \t<message to="${Juliet's full JID}" id="m1" type="chat">
                \t\t<body>1 &lt; 2&#10;&quot;x&quot;</body>
                \t</message>

                Juliet receives:
                \t<message to="${Juliet's full JID}" from="${Romeo's full JID}" id="m1" type="chat">
                \t\t<body>1 &lt; 2&#10;&quot;x&quot;</body>
                \t</message>

                Romeo disconnects

                Juliet disconnects

                """
        )
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Romeo", "Juliet"] && script.steps.count == 8)
    }

    @Test func aMessageFromBeforeTheRecordingIsLeftOut() throws {
        let delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-11-22T10:00:00Z'/>"
        let recording = """
            1 1 ready romeo@localhost/r1
            2 1 recv <message id='old' from='juliet@localhost'>\(delay)</message>
            3 1 send <message id='own' to='romeo@localhost'/>
            4 1 recv <message id='own' from='romeo@localhost/r1'>\(delay)</message>
            5 1 ended
            """
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a"))
        #expect(!text.contains("old") && text.ranges(of: "id=\"own\"").count == 2, "\(text)")
    }

    @Test func aClientThatResumedItsSessionStaysConnected() throws {
        let recording = """
            1 1 ready romeo@localhost/r1
            2 1 recv <message id='m1' from='juliet@localhost'/>
            3 1 recv <message id='m2' from='juliet@localhost'/>
            4 1 ended
            5 2 resumed 1 romeo@localhost/r1
            6 2 recv <message id='m2' from='juliet@localhost'/>
            7 2 recv <message id='m3' from='juliet@localhost'/>
            8 2 send </stream:stream>
            9 2 ended
            """
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a"))
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Romeo"] && script.steps.count == 5, "\(text)")
    }

    @Test func clientsOfOneAccountHaveNamesOfTheirOwn() throws {
        let recording = "0 1 ready a-b@c/1\n0 2 ready a-b@c/2\n0 3 ready 王@c/1\n0 1 ended\n0 2 ended\n0 3 ended"
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a\nb"))
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Ab", "Ab 2", "Client"])
        #expect(script.title == "a\\nb")
    }

    @Test func whatLooksLikeAVariableIsNoVariable() throws {
        let body = "<body>${Romeo&apos;s JID} {scansion:any}</body>"
        let recording = """
            1 1 ready romeo@c/1
            2 1 send <message id='1'>\(body)</message>
            3 1 recv <message id='1'>\(body)</message>
            4 1 ended
            """
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: ""))
        let script = try Script(Array(text.utf8), file: "a.scs")
        guard case .sends(let sent) = script.steps[1].action else {
            Issue.record("no stanza")
            return
        }
        let bytes = sent.bytes(ScriptValues(accounts: ["romeo@c"]), isXML: true)
        #expect(String(decoding: bytes, as: UTF8.self).contains(">$&#123;Romeo's JID} &#123;scansion:any}<"))
    }

    /// Returns the script of Romeo's session with these items, without header.
    private static func body(_ items: String) throws -> String {
        let recording = "1 1 ready romeo@localhost/1\n\(items)\n9 1 ended"
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a"))
        _ = try Script(Array(text.utf8), file: "a.scs")
        let start = try #require(text.firstRange(of: "Romeo connects\n\n")).upperBound
        let end = try #require(text.firstRange(of: "\nRomeo disconnects")).lowerBound
        return String(text[start..<end])
    }

    @Test(arguments: ["send", "recv"]) func textBesideElementsKeepsItsPlace(direction: String) throws {
        let html = "<html xmlns='h'><p>To <b>be</b>, or <i>not<br/></i> <u/>to be</p><p>?</p></html>"
        let verb = direction == "send" ? "sends" : "receives"
        let strict = direction == "send" ? "" : " scansion:strict=\"false\""
        #expect(
            try Self.body("2 1 \(direction) <message>\(html)</message>")
                == """
                Romeo \(verb):
                \t<message>
                \t\t<html xmlns="h"\(strict)>
                \t\t\t<p>To <b>be</b>, or <i>not<br/></i> <u/>to be</p>
                \t\t\t<p>?</p>
                \t\t</html>
                \t</message>

                """
        )
    }

    @Test func whatIsSentBesideTextIsSentAsItWas() throws {
        let stanza = "<message><p>To <b>be</b>,&#10;<u/>&#10; or</p></message>"
        let recording = "1 1 ready romeo@localhost/1\n2 1 send \(stanza)\n9 1 ended"
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a"))
        let script = try Script(Array(text.utf8), file: "a.scs")
        guard case .sends(let sent) = script.steps[1].action else {
            Issue.record("no stanza")
            return
        }
        #expect(sent.bytes(ScriptValues(accounts: ["romeo@localhost"]), isXML: true) == Array(stanza.utf8))
    }

    @Test func prefixesOfTheStreamHeaderAreResolved() throws {
        let header =
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:x='urn:x' to='localhost'>"
        #expect(
            try Self.body("0 1 send \(header)\n2 1 send <message x:a='1'><x:y/></message>")
                == """
                Romeo sends:
                \t<message xmlns:a0="urn:x" a0:a="1">
                \t\t<y xmlns="urn:x"/>
                \t</message>

                """
        )
    }

    @Test func idsOfTheServersRequestsVary() throws {
        let push = "<iq type='set' id='p7'><query xmlns='jabber:iq:roster'><item jid='a@b'/></query></iq>"
        let body = try Self.body("2 1 recv \(push)\n3 1 send <iq type='result' id='p7'/>")
        #expect(body.contains("<iq type=\"set\" id=\"{scansion:any}\">") && !body.contains("sends:"), "\(body)")
    }

    @Test func othersSeeThatAClientLeavesWhenItCloses() throws {
        let recording = """
            0 1 ready romeo@localhost/r
            0 2 ready juliet@localhost/j
            1 1 send </stream:stream>
            2 1 recv <message from='juliet@localhost/j'><body>late</body></message>
            3 2 recv <presence from='romeo@localhost/r' type='unavailable'/>
            4 1 ended
            """
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a"))
        let left = try #require(text.firstRange(of: "Romeo disconnects"))
        #expect(text[left.upperBound...].contains("type=\"unavailable\"") && !text.contains("late"), "\(text)")
    }

    @Test func pingsOfTheServerAreLeftOut() throws {
        func ping(_ from: String) -> String {
            "<iq type='get' id='\(from)' from='\(from)'><ping xmlns='urn:xmpp:ping'/></iq>"
        }
        let body = try Self.body(
            """
            2 1 recv \(ping("localhost"))
            3 1 send <iq type='result' id='localhost' to='localhost'/>
            4 1 recv \(ping("juliet@localhost/x"))
            5 1 send <iq type='result' id='juliet@localhost/x' to='juliet@localhost/x'/>
            """
        )
        #expect(!body.contains("\"localhost\"") && body.contains("<ping") && body.contains("Romeo sends:"))
    }

    @Test func `optional stanzas are left out and named, optional requests are awaited and answered`() throws {
        let text = """
            1 1 ready romeo@localhost/r1
            2 1 recv <presence from='romeo@localhost/other' to='romeo@localhost/r1'/>
            3 1 recv <iq type='get' id='disco' from='romeo@localhost' to='romeo@localhost/r1'><query xmlns='http://jabber.org/protocol/disco#info' node='n#v'/></iq>
            4 1 send <iq type='result' id='disco' to='romeo@localhost'><query xmlns='http://jabber.org/protocol/disco#info' node='n#v'/></iq>
            5 1 recv <iq type='get' id='p' from='localhost'><ping xmlns='urn:xmpp:ping'/></iq>
            6 1 send <iq type='result' id='p' to='localhost'/>
            7 1 ended
            """
        let writer = ScriptWriter(try RecordedText(text).conversations)
        let script = try #require(writer.script(title: "a.xtap"))
        #expect(script.contains("## server-requests: optional\n"))
        #expect(script.contains("Romeo receives:\n\t<iq type=\"get\" id=\"disco\""))
        #expect(script.contains("Romeo sends:\n\t<iq type=\"result\" id=\"disco\""))
        #expect(!script.contains("ping") && !script.contains("/other"))
        #expect(writer.omissions.map(\.reason) == ["RFC 6121 §4.2.2: presence of another resource of the account"])
        #expect(try Script(Array(script.utf8), file: "a.scs").steps.count == 4)
    }

    @Test func `a client leaves before others see it leave`() throws {
        let text = """
            1 1 ready romeo@localhost/r1
            2 2 ready juliet@localhost/j1
            3 1 recv <presence type='unavailable' from='juliet@localhost/j1' to='romeo@localhost/r1'/>
            4 2 ended
            5 1 ended
            """
        let script = try #require(ScriptWriter(try RecordedText(text).conversations).script(title: "a"))
        let leaves = try #require(script.firstRange(of: "Juliet disconnects"))
        let seen = try #require(script.firstRange(of: "Romeo receives"))
        #expect(leaves.lowerBound < seen.lowerBound)
    }
}
