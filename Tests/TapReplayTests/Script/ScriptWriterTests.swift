import TapRecord
import TapTestKit
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

    @Test func `a recording becomes a script`() throws {
        let text = try #require(ScriptWriter(try RecordedText(Self.recording).conversations).script(title: "a.xtap"))
        #expect(
            text == """
                # a.xtap
                # Passwords are read from the accounts file; for scansion add "password:" to each client.
                ## stored-data: optional

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

    @Test func `a message from before the recording is omitted`() throws {
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

    @Test func `a client that resumed its session remains connected`() throws {
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
        let writer = ScriptWriter(try RecordedText(recording).conversations)
        let text = try #require(writer.script(title: "a"))
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Romeo"] && script.steps.count == 5, "\(text)")
        let reason = "a lost connection whose session was resumed: the client stays connected"
        #expect(writer.omissions.map(\.reason) == [reason] && writer.omissions.map(\.count) == [1])
    }

    @Test func `clients of one account have different names`() throws {
        let recording = "0 1 ready a-b@c/1\n0 2 ready a-b@c/2\n0 3 ready 王@c/1\n0 1 ended\n0 2 ended\n0 3 ended"
        let text = try #require(ScriptWriter(try RecordedText(recording).conversations).script(title: "a\nb"))
        let script = try Script(Array(text.utf8), file: "a.scs")
        #expect(script.characters.map(\.name) == ["Ab", "Ab 2", "Client"])
        #expect(script.title == "a\\nb")
    }

    @Test func `text that looks like a variable is escaped`() throws {
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

    @Test(arguments: ["send", "recv"]) func `text beside elements keeps its place`(direction: String) throws {
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

    @Test func `a stanza with text beside elements is sent unchanged`() throws {
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

    @Test func `prefixes of the stream header are resolved`() throws {
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

    @Test func `identifiers of the server's requests may vary`() throws {
        let push = "<iq type='set' id='p7'><query xmlns='jabber:iq:roster'><item jid='a@b'/></query></iq>"
        let body = try Self.body("2 1 recv \(push)\n3 1 send <iq type='result' id='p7'/>")
        #expect(body.contains("<iq type=\"set\" id=\"{scansion:any}\">") && !body.contains("sends:"), "\(body)")
    }

    @Test func `a client disconnects before others see its unavailable presence`() throws {
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

    @Test func `pings of the server are omitted`() throws {
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

    @Test func `optional stanzas are omitted and reported, and optional requests are received and answered`() throws {
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

    @Test func `a client disconnects before others receive its unavailable presence`() throws {
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

    /// Returns the omissions of the script of a recording, and the script.
    private static func script(_ recording: String) throws -> (omissions: [String], text: String) {
        let writer = ScriptWriter(try RecordedText(recording).conversations)
        let text = try #require(writer.script(title: "a"))
        _ = try Script(Array(text.utf8), file: "a.scs")
        return (writer.omissions.map { "\($0.count) \($0.reason)" }, text)
    }

    @Test func `requests with values made by the server are omitted with their answers, and reported once`() throws {
        func query(_ id: String, _ after: String) -> String {
            "<iq type='set' id='\(id)'><query xmlns='urn:xmpp:mam:2' queryid='\(id)'><set xmlns='http://jabber.org/protocol/rsm'>\(after)</set></query></iq>"
        }
        func page(_ id: String, _ item: String) -> String {
            "<iq type='result' id='\(id)'><fin xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'><last>\(item)</last></set></fin></iq>"
        }
        func result(_ id: String, _ item: String) -> String {
            "<message to='romeo@localhost/r1'><result xmlns='urn:xmpp:mam:2' queryid='\(id)' id='\(item)'/></message>"
        }
        let (omissions, text) = try Self.script(
            """
            1 1 ready romeo@localhost/r1
            2 1 send \(query("q1", "<max>1</max>"))
            3 1 recv \(result("q1", "17"))
            4 1 recv \(page("q1", "17"))
            5 1 send \(query("q2", "<after>17</after>"))
            6 1 recv \(result("q2", "18"))
            7 1 recv \(page("q2", "18"))
            8 1 send \(query("q3", "<after>18</after>"))
            9 1 recv <iq type='error' id='q3'/>
            10 1 send \(query("q2", "<before/>"))
            11 1 recv \(result("q2", "18"))
            12 1 recv \(page("q2", "18"))
            13 1 ended
            """
        )
        #expect(omissions == ["2 a request with a value that the server made, and the answers to it"])
        let verbs = text.split(separator: "\n").filter { $0.hasPrefix("Romeo ") }
        let exchange = ["Romeo sends:", "Romeo receives:", "Romeo receives:"]
        #expect(verbs.map(String.init) == ["Romeo connects"] + exchange + exchange + ["Romeo disconnects"], "\(text)")
        #expect(!text.contains("<after>") && text.contains("<before/>") && !text.contains("q3"))
    }

    @Test func `the effects of an omitted request are omitted, too`() throws {
        let id = "server-made-archive-id"
        let (omissions, text) = try Self.script(
            """
            1 1 ready romeo@localhost/r1
            2 1 recv <message id='m1' type='groupchat' from='v@c/j'><body>x</body><stanza-id xmlns='urn:xmpp:sid:0' id='\(id)' by='v@c'/></message>
            3 1 send <iq type='set' id='q1' to='v@c'><moderate xmlns='urn:xmpp:message-moderate:1' id='\(id)'/></iq>
            4 1 recv <message type='groupchat' from='v@c'><retract xmlns='urn:xmpp:message-retract:1' id='\(id)'/></message>
            5 1 recv <iq type='result' id='q1' from='v@c'/>
            6 1 ended
            """
        )
        let effect = "1 a stanza that follows from a request which is not in the script"
        #expect(omissions.count == 2 && omissions.contains(effect), "\(omissions)")
        #expect(text.contains("<body>x</body>") && !text.contains("moderate") && !text.contains("retract"), "\(text)")
    }

    @Test func `requests with values made by a client, and with hashes, are kept`() throws {
        let (thread, hash) = ("made-by-the-client", "4a5eb7171b58e08a6881721e3b43d5a44419a2be")
        let (omissions, text) = try Self.script(
            """
            1 1 ready romeo@localhost/r1
            2 1 send <iq type='set' id='q1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item id='\(thread)'/></publish></pubsub></iq>
            3 1 recv <iq type='result' id='q1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item id='\(thread)'/></publish></pubsub></iq>
            4 1 send <iq type='set' id='q2'><pubsub xmlns='http://jabber.org/protocol/pubsub'><retract node='n'><item id='\(thread)'/></retract></pubsub></iq>
            5 1 recv <presence from='juliet@localhost/j'><x xmlns='vcard-temp:x:update'><photo>\(hash)</photo></x></presence>
            6 1 send <iq type='get' id='q3'><pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='a'><item id='\(hash)'/></items></pubsub></iq>
            7 1 ended
            """
        )
        #expect(omissions.isEmpty && text.contains("q2") && text.contains("q3"), "\(omissions)")
    }

    @Test func `an omitted room history is reported as such`() throws {
        let delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-11-22T10:00:00Z'/>"
        let (omissions, _) = try Self.script(
            """
            1 1 ready romeo@localhost/r1
            2 1 recv <message id='a' type='groupchat' from='v@c/j'>\(delay)</message>
            3 1 recv <message id='b' from='juliet@localhost'>\(delay)</message>
            4 1 recv <message id='c' type='groupchat' from='v@c/j'>\(delay)</message>
            5 1 ended
            """
        )
        #expect(omissions == ["2 history of a room", "1 a message that the server had stored before"])
    }

    @Test func `a login that the server refused is omitted and reported`() throws {
        let refused = try RecordedText.refusedLogin()
        let writer = ScriptWriter(refused + (try RecordedText(Self.recording).conversations))
        #expect(writer.omissions.map(\.reason) == ["a login that the server refused"])
        #expect(try #require(writer.script(title: "a")).ranges(of: "[Client]").count == 2)
        #expect(ScriptWriter(refused).script(title: "a") == nil)
    }

    @Test func `stanzas sent at the same time are ordered by their effects`() throws {
        func leaves(_ name: String) -> String { "<presence type='unavailable' id='\(name)'/>" }
        let (_, text) = try Self.script(
            """
            1 1 ready romeo@localhost/r1
            1 2 ready juliet@localhost/j1
            2 1 send \(leaves("romeo"))
            3 2 send \(leaves("juliet"))
            4 2 recv \(leaves("juliet").replacing(" type", with: " from='juliet@localhost/j1' type"))
            5 2 recv \(leaves("romeo").replacing(" type", with: " from='romeo@localhost/r1' type"))
            6 1 ended
            7 2 ended
            """
        )
        let (first, second) = (text.firstRange(of: "Juliet sends"), text.firstRange(of: "Romeo sends"))
        #expect(try #require(first).lowerBound < #require(second).lowerBound, "\(text)")
    }
}
