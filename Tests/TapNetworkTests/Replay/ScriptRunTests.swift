import NIOPosix
import TapNetwork
import TapReplay
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

/// Tests scansion scripts that together use every construct, with Prosody.
@Suite(.timeLimit(.minutes(2)), .serialized, .enabled(if: TestProgram.areInstalled(.prosody), "no Prosody"))
struct ScriptRunTests {
    private static let header = """
        # Two people
        ## slow
        [Client] Romeo
        \tjid: \(Account.romeo.jid)
        \tpassword: \(Account.romeo.password)
        [Client] Juliet's phone
        \tjid: \(Account.juliet.jid)
        \tpassword: \(Account.juliet.password)
        \tresource: mobile
        -----

        """

    private func outcome(
        _ lines: String,
        at server: ProsodyServer,
        accounts: [ReplayRun.Account] = []
    ) async throws -> ScriptPlay.Outcome {
        var settings = ScriptPlay.Settings()
        settings.wait = 5_000_000_000
        let live = try LiveServer(
            .tcp(Endpoint(host: "127.0.0.1", port: Int(server.port))),
            cryptography: OpenSSLCryptography()
        )
        let script = try Script(Array((Self.header + lines).utf8), file: "a.scs")
        return try await ScriptRun(script, at: live, accounts: accounts, settings: settings)
            .run(on: MultiThreadedEventLoopGroup.singleton)
    }

    /// Scripts that pass.
    static let passing = [
        // As in recorded scripts: unused prefixes, comments in place of stanzas, an answer to an unknown request.
        """
        Romeo connects

        Romeo sends:
        \t<presence xmlns:stream="http://etherx.jabber.org/streams" id=":7" xml:lang='sv'>
        \t  <status>Can"t talk</status>
        \t</presence>

        Romeo receives:
        \t<presence xmlns:stream="http://etherx.jabber.org/streams" from="${Romeo's full JID}" id=":7" />
        \t

        # Romeo receives:
        #\t<message/>

        Romeo sends:
        \t<iq type='result' id='{scansion:any}'/>
        Romeo sends: <message to="${Romeo's full JID}"><p xmlns='urn:example:p'>To <b>be</b>, or <i/> not</p></message>
        Romeo receives:
        \t<message from="${Romeo's full JID}">
        \t\t<p xmlns='urn:example:p'>To <b>be</b>, or <i></i> not</p>
        \t</message>
        Romeo disconnects

        Romeo sends:
        \t<presence type="unavailable"/>

        # recording ended on 2026-11-22T22:10:46Z

        """,
        // Several clients, addresses, a resource, an answer matched by its id, text.
        """
        Romeo connects
        Juliet's phone connects
        Juliet's phone sends:
        \t<presence/>
        Juliet's phone receives:
        \t<presence from="${Juliet's phone's full JID}"/>
        Romeo sends:
        \t<message to="\(Account.juliet.jid)/mobile" type='chat' id='m1'>
        \t\t<body>Hello, Juliet</body>
        \t</message>
        Juliet's phone receives:
        \t<message from="${Romeo's full JID}" to="${Juliet's phone's full JID}" id='m1' type='chat'>
        \t\t<body>Hello, Juliet</body>
        \t</message>
        Romeo receives: nothing
        Romeo disconnects
        Juliet's phone disconnects

        """,
        // Strict matching because of the namespace, matching that the script makes lenient, any value.
        """
        Romeo connects
        Romeo sends:
        \t<iq type='get' id='v' to='${Romeo's JID}'>
        \t\t<query xmlns='http://jabber.org/protocol/disco#info'/>
        \t</iq>
        Romeo receives:
        \t<iq type='result' id='v' to="${Romeo's full JID}">
        \t\t<query xmlns='http://jabber.org/protocol/disco#info' scansion:strict='false'>
        \t\t\t<identity category='account' type='registered'/>
        \t\t</query>
        \t</iq>
        Romeo sends:
        \t<iq type='get' id='t' to='localhost'><time xmlns='urn:xmpp:time'/></iq>
        Romeo receives:
        \t<iq type='result' id='t' from='localhost'><time xmlns='urn:xmpp:time'><tzo></tzo><utc></utc></time></iq>
        Romeo sends:
        \t<iq type='get' id='x' to='localhost'><nothing xmlns='urn:example:x'/></iq>
        Romeo receives:
        \t<iq type='error' id='x'>
        \t\t<error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>
        \t</iq>

        """,
        // A value that occurs again, and a client that connects again.
        """
        Romeo connects
        Romeo sends:
        \t<message to="${Juliet's phone's JID}" id='kept' type='chat'><body>Keep this</body></message>
        Juliet's phone connects
        Juliet's phone sends: <presence/>
        Juliet's phone receives: <presence/>
        Juliet's phone receives:
        \t<message from="${Romeo's full JID}">
        \t\t<body>Keep this</body>
        \t\t<stanza-id xmlns='urn:xmpp:sid:0' id='{scansion:capture:archived}' by="${Juliet's phone's JID}"/>
        \t\t<delay xmlns='urn:xmpp:delay' stamp='{scansion:any}' from='localhost'/>
        \t</message>
        Juliet's phone sends:
        \t<iq type='set' id='q'><query xmlns='urn:xmpp:mam:2' queryid='1'/></iq>
        Juliet's phone receives:
        \t<message><result xmlns='urn:xmpp:mam:2' queryid='1' id='{scansion:capture:archived}' scansion:strict='no'/></message>
        Juliet's phone receives: <iq type='result' id='q'/>
        Romeo disconnects
        Romeo connects

        """,
    ]

    @Test(arguments: passing) func `a script that the server follows passes`(_ lines: String) async throws {
        let server = try await ProsodyServer()
        #expect(try await outcome(lines, at: server) == .passed)
        try await server.stop()
    }

    @Test func `the first unmet expectation is reported`() async throws {
        let server = try await ProsodyServer()
        let lines = """
            Romeo connects
            Romeo sends:
            \t<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>
            Romeo receives:
            \t<iq type='result' id='r'><query xmlns='jabber:iq:roster'><item jid='x@y'/></query></iq>

            """
        guard case .failed(let failure) = try await outcome(lines, at: server) else {
            Issue.record("the script passed")
            return
        }
        #expect(failure.line == 14 && failure.step == "Romeo receives" && failure.cause == .behaviour)
        #expect(failure.reason.hasPrefix("iq/query"))
        #expect(failure.received?.contains("id='r'") == true)
        try await server.stop()
    }

    @Test func `the accounts file takes precedence over the script`() async throws {
        let server = try await ProsodyServer()
        let romeo = try JID(parsing: Account.romeo.jid)
        let juliet = try JID(parsing: Account.juliet.jid)
        // Use Juliet's account for Romeo.
        let account = ReplayRun.Account(recorded: romeo, live: juliet, password: Account.juliet.password)
        let lines = """
            Romeo connects
            Romeo sends: <presence/>
            Romeo receives: <presence to="${Romeo's full JID}" from="${Juliet's phone's JID}/{scansion:any}"/>

            """
        guard case .failed(let failure) = try await outcome(lines, at: server, accounts: [account]) else {
            Issue.record("the script passed")
            return
        }
        #expect(failure.received?.contains("from='\(Account.juliet.jid)/") == true)
        let wrong = ReplayRun.Account(recorded: romeo, live: romeo, password: "wrong")
        guard case .failed(let login) = try await outcome("Romeo connects\n", at: server, accounts: [wrong]) else {
            Issue.record("the login passed")
            return
        }
        #expect(login.step == "Romeo connects" && login.cause == .login)
        try await server.stop()
    }
}
