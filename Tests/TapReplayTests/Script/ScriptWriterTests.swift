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
                \t\t<delay xmlns="urn:xmpp:delay" stamp="{scansion:any}"/>
                \t\t<stanza-id xmlns="urn:xmpp:sid:0" id="{scansion:any}" by="${Juliet's JID}"/>
                \t</message>

                Romeo disconnects

                Juliet disconnects

                """
        )
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Romeo", "Juliet"] && script.steps.count == 8)
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
}
