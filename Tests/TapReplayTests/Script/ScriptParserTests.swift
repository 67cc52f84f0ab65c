import TapTestKit
import Testing

@testable import TapReplay

/// Parses a script with Romeo and Juliet's phone as characters, followed by these lines.
func script(_ lines: String) throws(ScriptFault) -> Script {
    try Script(Array((scriptHeader + lines).utf8), file: "a.scs")
}

/// The header of scripts: seven lines, so that the steps start at line 8.
private let scriptHeader = """
    # Title
    ## status: stable
    [Client] Romeo
    \tjid: romeo@localhost
    [Client] Juliet's phone
    \tjid: juliet@localhost/mobile
    -----

    """

@Suite struct ScriptParserTests {
    @Test func `a script has a title, clients and steps`() throws {
        let text = """
            # A title
            # What it shows,
            # in two lines
            ## slow
            ## status: stable

            [Client] Romeo
            \tjid: romeo@localhost
            \tpassword: s3cr3t!
            \tconnect_host: 127.0.0.1
            \tconnect_port: 5223

            [Client] Juliet's phone
                jid: juliet@localhost
                resource: mobile
            ---------

            # Act 1
            Romeo connects
            Juliet's phone connects
            Romeo sends:
            \t<message to="${Juliet's phone's full JID}">
            \t\t<body>Hi</body>
            \t</message>

            Juliet's phone receives: <message from='${Romeo's full JID}' id='{scansion:any}'/>
            Juliet's phone receives: nothing
            Romeo disconnects

            """
        for ending in ["\n", "\r\n"] {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: ending)
            let script = try Script(Array(lines.utf8), file: "a.scs")
            #expect(script.title == "A title")
            #expect(script.description == "What it shows,\nin two lines")
            #expect(script.tags.map(\.name) == ["slow", "status"])
            let found = ["slow", "status", "status: stable", "status: new", "fast"].map { script.has(.init($0)) }
            #expect(found == [true, true, true, false, false])
            let romeo = try #require(script.characters.first)
            #expect(romeo.jid == "romeo@localhost" && romeo.password == "s3cr3t!")
            #expect(romeo.host == "127.0.0.1" && romeo.port == 5223 && romeo.resource == nil)
            #expect(script.characters.last?.name == "Juliet's phone" && script.characters.last?.resource == "mobile")
            #expect(script.steps.map(\.character) == [0, 1, 0, 1, 1, 0])
            #expect(script.steps.map(\.line) == [19, 20, 21, 26, 27, 28])
        }
    }

    @Test func `colons are optional, and spaces may follow`() throws {
        let lines = "Romeo connects\nRomeo sends\n\t<presence/>\nRomeo receives nothing\nRomeo sends: <presence/>  "
        let actions = try script(lines).steps.map(\.action)
        try #require(actions.count == 4)
        guard case .sends = actions[1], case .receivesNothing = actions[2], case .sends = actions[3] else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test func `a wildcard in a stanza to send is sent literally`() throws {
        let script = try script("Romeo connects\nRomeo sends:\n\t<iq type='result' id='{scansion:any}'/>\n")
        guard case .sends(let text) = script.steps[1].action else { throw KitError("no stanza") }
        #expect(
            text.bytes(ScriptValues(accounts: ["romeo@localhost"]), isXML: true)
                == Array("<iq type='result' id='{scansion:any}'/>".utf8)
        )
    }

    @Test func `stanzas to send lose only their indentation`() throws {
        let script = try script(
            "Romeo connects\nRomeo sends:\n\t<iq to='${Romeo's JID}'>\n\t\t<q> a\n b </q>\n\t</iq>\n"
        )
        guard case .sends(let text) = script.steps[1].action else { throw ScriptFault(file: "", "no stanza") }
        let bytes = text.bytes(ScriptValues(accounts: ["o'brien&co@localhost", ""]), isXML: true)
        #expect(String(decoding: bytes, as: UTF8.self) == "<iq to='o&apos;brien&amp;co@localhost'><q> a\n b </q></iq>")
    }

    /// Erroneous steps with their faults.
    static let mistakes: [(lines: String, fault: String)] = [
        (
            "Romeo connects\nRomeo snds:\n\t<presence/>",
            "9:7: unknown action \"snds\"; expected NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing; did you mean \"sends:\"?"
        ),
        ("Romo connects", "8:1: unknown character \"Romo\"; expected Romeo, Juliet's phone; did you mean \"Romeo\"?"),
        (
            "Juliet's fone sends:",
            "8:1: unknown character \"Juliet's fone\"; expected Romeo, Juliet's phone; did you mean \"Juliet's phone\"?"
        ),
        (
            "whatever",
            "8:1: \"whatever\" is not an action; expected NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing"
        ),
        ("Romeo connects now", "8:15: \"now\" behind \"connects\"; expected nothing there"),
        ("Romeo sends:\n\t<presence/>", "8:1: \"Romeo\" is not connected; expected \"Romeo connects\" above"),
        (
            "Romeo connects\nRomeo sends <presence/>",
            "9:7: \"sends\" without a colon; expected \"sends:\"; did you mean \"sends:\"?"
        ),
        (
            "Romeo connects\nRomeo sends:\n\nRomeo disconnects",
            "9:13: no stanza after \"sends:\"; expected an indented stanza such as <presence/>"
        ),
        (
            "Romeo connects\nRomeo sends:\n\t<presence>\n",
            "10:12: the stanza has no end; expected an end tag, in indented lines"
        ),
        (
            "Romeo connects\nRomeo receives:\n\t<a/>\n\t<b/>",
            "11:2: a second stanza; expected one stanza after \"receives:\""
        ),
        ("Romeo connects\nRomeo sends:\n\t<a/>\n\t<b>", "11:2: a second stanza without an end"),
        (
            "Romeo connects\nRomeo sends:\n\t<a>é</b>",
            "10:6: the end tag does not match the open element; expected a stanza"
        ),
        ("Romeo connects\nRomeo sends:\n\tHello", "10:2: text between stanzas; expected a stanza"),
        ("Romeo connects\nRomeo sends:\n\t<x:a/>", "10:3: a prefix without a namespace; expected a stanza"),
        (
            "Romeo connects\nRomeo sends:\n\t<a id='{scansion:capture:x}'/>",
            "10:9: a capture in a stanza that is sent; expected a value"
        ),
        (
            "Romeo connects\nRomeo sends:\n\t<a to='${Tybalt's JID}'/>",
            "10:9: unknown variable ${Tybalt's JID}; expected a character's address such as ${Romeo's full JID}"
        ),
        (
            "Romeo connects\nRomeo sends:\n\t<a to=\"${Juliet's phone's full JID}\"/>",
            "10:9: the full JID of Juliet's phone is not known yet; expected \"Juliet's phone connects\" above"
        ),
        (
            "Romeo connects\nRomeo receives:\n\t<a id='{scansion:an}'/>",
            "10:9: unknown wildcard {scansion:an}; expected {scansion:any} or {scansion:capture:NAME}; did you mean \"any\"?"
        ),
        (
            "Romeo connects\nRomeo receives:\n\t<a id='{scansion:capture}'/>",
            "10:9: a capture without a name; expected {scansion:any} or {scansion:capture:NAME}"
        ),
        (
            "Romeo connects\nRomeo receives:\n\t<a scansion:strict='maybe'/>",
            "10:22: scansion:strict is \"maybe\"; expected true or false"
        ),
        (
            "Romeo connects\nRomeo receives:\n\t<a scansion:loose='1'/>",
            "10:5: unknown attribute scansion:loose; expected scansion:strict"
        ),
        (
            "\t<presence/>",
            "8:1: an indented line without an action above it; expected NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing"
        ),
        (
            "[Client] Nurse",
            "8:1: a character below the line of dashes; expected NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing"
        ),
        (
            "# nothing",
            "9:1: the script has no actions; expected NAME connects, disconnects, sends: STANZA, receives: STANZA or receives: nothing"
        ),
    ]

    @Test(arguments: mistakes) func `mistakes in steps are reported with their position`(
        _ mistake: (lines: String, fault: String)
    ) {
        let fault = #expect(throws: ScriptFault.self) { try script(mistake.lines + "\n") }
        #expect(fault.map { "\($0)" } == "a.scs:\(mistake.fault)")
    }

    static let headers: [(text: String, fault: String)] = [
        ("", "1:1: the script ends in its header; expected -----, then actions"),
        ("-----\n", "1:1: a script without characters; expected [Client] NAME above"),
        ("##\n", "1:1: a tag without a name; expected ## NAME or ## NAME: VALUE"),
        ("[Client Romeo\n", "1:1: \"[\" without \"]\"; expected [Client] NAME"),
        (
            "[Clint] Romeo\n",
            "1:2: unknown kind of character \"Clint\"; expected [Client] NAME; did you mean \"Client\"?"
        ),
        ("[Component] Room\n", "1:2: components are not supported; expected [Client] NAME"),
        ("[Client]\n", "1:9: a character without a name; expected [Client] NAME"),
        ("[Client] A{B\n", "1:9: { in the name of a character; expected letters, digits, ' and blanks"),
        ("[Client] A\n\tjid: a@b\n[Client] A\n", "3:9: \"A\" is already defined in line 1"),
        ("[Client] A\n[Client] B\n", "1:1: \"A\" has no jid; expected an indented line jid: USER@DOMAIN"),
        ("[Client] A\n-----\n", "1:1: \"A\" has no jid; expected an indented line jid: USER@DOMAIN"),
        ("\tjid: a@b\n", "1:2: a property above the first character; expected [Client] NAME"),
        ("[Client] A\n\tjid a@b\n", "2:2: \"jid a@b\" is not a property; expected NAME: VALUE"),
        (
            "[Client] A\n\tpasword: x\n",
            "2:2: unknown property \"pasword\"; expected jid, password, resource, connect_host, connect_port; did you mean \"password\"?"
        ),
        ("[Client] A\n\tjid: a@b\n\tjid: c@d\n", "3:2: \"jid\" is already in line 2"),
        ("[Client] A\n\tjid:\n", "2:6: \"jid\" without a value"),
        (
            "[Client] A\n\tjid: localhost\n",
            "2:7: \"localhost\" is not an account; expected a JID such as romeo@localhost"
        ),
        ("[Client] A\n\tconnect_port: 99999\n", "2:16: \"99999\" is not a port; expected a number from 1 to 65535"),
        ("[Client] A\n\tjid: a@b\n-\n", "3:1: \"-\"; expected at least three dashes: -----"),
        (
            "[Client] A\n\tjid: a@b\nA connects\n",
            "3:1: \"A connects\" above the line of dashes; expected a character such as [Client] Romeo, its indented properties, or -----"
        ),
    ]

    @Test(arguments: headers) func `mistakes in headers are reported with their position`(
        _ mistake: (text: String, fault: String)
    ) {
        let fault = #expect(throws: ScriptFault.self) { try Script(Array(mistake.text.utf8), file: "a.scs") }
        #expect(fault.map { "\($0)" } == "a.scs:\(mistake.fault)")
    }

    @Test func `a line that is not UTF-8 is reported with its number`() {
        let fault = #expect(throws: ScriptFault.self) {
            try Script(Array("# a\n# b\n".utf8) + [0xFF, 0x0A], file: "a.scs")
        }
        #expect(fault.map { "\($0)" } == "a.scs:3:1: a line that is not UTF-8")
    }

    /// A truncated script is parsed or refused without a trap.
    @Test func `each prefix of a script is parsed or refused`() {
        let text = Array(
            "# T\n## t\n[Client] A\n\tjid: a@b\n---\nA connects\nA receives:\n\t<a b=\"${A's JID}\"/>\n".utf8
        )
        var read = 0
        for count in 0...text.count where (try? Script(Array(text.prefix(count)), file: "a.scs")) != nil { read += 1 }
        #expect(read > 0 && read < 20)
    }
}
