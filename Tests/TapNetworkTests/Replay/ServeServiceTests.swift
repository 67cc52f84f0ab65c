import NIOCore
import NIOPosix
import Synchronization
import TapRecord
import TapReplay
import TapSecurity
import TapTestKit
import Testing
import XMPPCore

@testable import TapNetwork

/// Tests recorded conversations served over sockets, without TLS.
@Suite(.timeLimit(.minutes(2))) struct ServeServiceTests {
    private static let cryptography = OpenSSLCryptography()
    private static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"

    /// Returns a recorded session in which Romeo requested his roster.
    ///
    /// - Parameter features: The last stream features before the login was complete.
    private static func conversation(features: String = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>") throws
        -> RecordedConversation
    {
        var reader = ConversationReader()
        reader.add(.test())
        let fields = [
            #""kind":"element","direction":"recv","name":"features","#
                + #""xml":"<stream:features>\#(features)</stream:features>""#,
            #""kind":"session","code":"session-ready","jid":"romeo@localhost/old""#,
            #""kind":"stanza","direction":"send","name":"iq","id":"1","type":"get","payload":"{jabber:iq:roster}query","#
                + #""xml":"<iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>""#,
            #""kind":"stanza","direction":"recv","name":"iq","id":"1","type":"result","payload":"{jabber:iq:roster}query","#
                + #""xml":"<iq type='result' id='1'><query xmlns='jabber:iq:roster'/></iq>""#,
        ]
        let common = #""time":"2026-11-22T10:00:00Z","monotonic":0.1,"level":"info","session":1"#
        for (index, fields) in fields.enumerated() {
            let line = #"{"sequence":\#(index + 1),\#(common),\#(fields)}"#
            reader.add(try RecordLine(json: Array(line.utf8).span.bytes))
        }
        return try #require(reader.conversations().first)
    }

    /// Collects the events of clients, in short form.
    private final class Told: Sendable {
        private let words = Mutex<[String]>([])

        var all: [String] { words.withLock { $0 } }

        func tell(_ event: ServeEvent) {
            let word =
                switch event {
                case .began(let jid, _): "began \(jid)"
                case .refused(let refusal): "\(refusal)"
                case .lost(let jid): "lost \(jid)"
                case .resumed(let jid): "resumed \(jid)"
                case .ended(let jid): "ended \(jid)"
                case .diverged(_, let divergence): divergence.code.rawValue
                case .notForwarded(_, let reason): "not forwarded: \(reason)"
                }
            words.withLock { $0.append(word) }
        }
    }

    /// Runs `body` with a service, and stops it afterwards.
    private func serve(
        forwarding server: LiveServer? = nil,
        features: String = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>",
        _ body: (_ port: UInt16, _ told: Told) async throws -> Void
    ) async throws {
        var plan = try ServePlan([Self.conversation(features: features)])
        if let server {
            let romeo = try JID(parsing: "romeo@localhost")
            plan.forwarding = ServeForwarding(server: server, passwords: [romeo: "wherefore"])
        }
        let told = Told()
        let service = try await ServeService.start(
            plan,
            at: Endpoint(host: "127.0.0.1", port: 0),
            identity: nil,
            cryptography: Self.cryptography,
            group: MultiThreadedEventLoopGroup.singleton
        ) { told.tell($0) }
        let port = UInt16(try #require(service.address?.port))
        do {
            try await body(port, told)
        } catch {
            try await service.stop()
            throw error
        }
        try await service.stop()
    }

    /// Logs in a client, without binding a resource.
    private func login(_ port: UInt16) async throws -> RawConnection {
        let connection = try RawConnection(port: port)
        _ = try await connection.write(Self.header)
        _ = try await connection.read(through: "</stream:features>")
        let message = Base64.encode(Array("\0romeo\0any".utf8))
        _ = try await connection.write(
            "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(message)</auth>"
        )
        _ = try await connection.read(through: "<success")
        _ = try await connection.write(Self.header)
        _ = try await connection.read(through: "</stream:features>")
        return connection
    }

    private func bind(_ connection: RawConnection, _ resource: String = "r") async throws -> String {
        _ = try await connection.write(
            "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>\(resource)</resource></bind></iq>"
        )
        return try await connection.read(through: "</iq>")
    }

    private func session(_ port: UInt16, _ resource: String = "r") async throws -> RawConnection {
        let connection = try await login(port)
        #expect(try await bind(connection, resource).contains("<jid>romeo@localhost/\(resource)</jid>"))
        return connection
    }

    private static let sasl2 = "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism></authentication>"

    /// Opens a stream and starts a login with SASL2.
    private func authenticate(_ port: UInt16, _ request: String, mechanism: String = "PLAIN") async throws
        -> RawConnection
    {
        let connection = try RawConnection(port: port)
        _ = try await connection.write(Self.header)
        let offer = try await connection.read(through: "</stream:features>")
        #expect(offer.contains("<authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline>"))
        let message = Base64.encode(Array("\0romeo\0any".utf8))
        _ = try await connection.write(
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='\(mechanism)'>"
                + "<initial-response>\(message)</initial-response>\(request)</authenticate>"
        )
        return connection
    }

    @Test func `if the recorded client used SASL2, clients can bind and resume inline`() async throws {
        try await serve(features: Self.sasl2) { port, told in
            let enable = "<enable xmlns='urn:xmpp:sm:3' resume='true'/>"
            let first = try await authenticate(
                port,
                "<bind xmlns='urn:xmpp:bind:0'><tag>test</tag>\(enable)</bind>"
            )
            let success = try await first.read(through: "</stream:features>")
            #expect(success.hasPrefix("<success xmlns='urn:xmpp:sasl:2'>"))
            #expect(success.contains("<authorization-identifier>romeo@localhost/old</authorization-identifier>"))
            let id = try #require(success.firstMatch(of: /<bound xmlns='urn:xmpp:bind:0'><enabled [^>]*id='(\w+)'/)?.1)
            _ = try await first.write(Self.roster)
            #expect(try await first.read(through: "</iq>").contains("type='result' id='r'"))

            let second = try await authenticate(port, "<resume xmlns='urn:xmpp:sm:3' h='0' previd='\(id)'/>")
            let resumed = try await second.read(through: "</iq>")
            #expect(resumed.contains("<resumed xmlns='urn:xmpp:sm:3' previd='\(id)' h='1'/></success>"))
            // Unacknowledged stanzas are sent again, without stream features before them.
            #expect(resumed.contains("</success><iq ") && !resumed.contains("<stream:features>"))
            let events = ["began", "lost", "resumed"].map { "\($0) romeo@localhost/old" }
            #expect(told.all == events)
        }
    }

    @Test func `with SASL2 alone, a resource is bound after the features, and refusals are of SASL2`() async throws {
        try await serve(features: Self.sasl2) { port, _ in
            let client = try await authenticate(port, "<resume xmlns='urn:xmpp:sm:3' h='0' previd='none'/>")
            let success = try await client.read(through: "</stream:features>")
            #expect(success.contains("<authorization-identifier>romeo@localhost</authorization-identifier><failed "))
            #expect(try await bind(client).contains("<jid>romeo@localhost/r</jid>"))
            let other = try await authenticate(port, "", mechanism: "OTHER")
            let refused =
                "<failure xmlns='urn:xmpp:sasl:2'><invalid-mechanism xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
            #expect(try await other.read(through: "</failure>").hasPrefix(refused))
            _ = try await other.write("<response xmlns='urn:xmpp:sasl:2'>AA==</response>")
            #expect(try await other.read(through: "</failure>").contains("<malformed-request "))
        }
        try await serve { port, _ in
            let client = try RawConnection(port: port)
            _ = try await client.write(Self.header)
            #expect(try await !client.read(through: "</stream:features>").contains("urn:xmpp:sasl:2"))
        }
    }

    @Test func `features after login are not copied from those before login`() throws {
        let recorded = try Self.conversation(features: Self.sasl2)
        func offered(_ features: [UInt8]?) -> String {
            String(decoding: ServedFeatures.bytes(recorded: features, parser: StanzaParser()), as: UTF8.self)
        }
        #expect(offered(recorded.features) == offered(nil))
        #expect(offered(nil).contains("<sm xmlns='urn:xmpp:sm:3'/>") && !offered(recorded.features).contains("sasl"))
    }

    @Test func `a failed resumption is followed by binding a resource`() async throws {
        try await serve { port, _ in
            let client = try await login(port)
            _ = try await client.write("<resume xmlns='urn:xmpp:sm:3' h='7' previd='old'/>")
            let failed = try await client.read(through: "</failed>")
            #expect(failed.contains("<failed xmlns='urn:xmpp:sm:3'><item-not-found"))
            #expect(try await bind(client).contains("<jid>romeo@localhost/r</jid>"))
        }
    }

    @Test func `a client that binds a resource in use replaces the old one with a conflict`() async throws {
        try await serve { port, told in
            let old = try await session(port)
            let new = try await session(port)
            #expect(try await old.read(through: "</stream:stream>").contains("<stream:error><conflict"))
            _ = try await new.write("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>")
            _ = try await new.read(through: "id='p'")
            #expect(told.all.filter { $0 == "ended romeo@localhost/r" }.count == 1)
        }
    }

    @Test func `an account has at most sixteen resources`() async throws {
        try await serve { port, _ in
            var clients: [RawConnection] = []
            for index in 0..<16 { clients.append(try await session(port, "r\(index)")) }
            let late = try await login(port)
            #expect(try await bind(late, "late").contains("<resource-constraint"))
        }
    }

    @Test(arguments: [
        ("<message", "><body/>\u{1}", "not-well-formed"),
        ("<message ", "xmlns='jabber:server'/>", "invalid-namespace"),
        ("", ServeServiceTests.header, "bad-format"),
        ("<message a='", String(repeating: "x", count: 1 << 20) + "'/>", "policy-violation"),
        ("<message from='juliet@localhost'", "/>", "invalid-from"),
        ("text", "", "bad-format"),
    ])
    func `malformed input ends only its own stream`(head: String, rest: String, condition: String) async throws {
        try await serve { port, _ in
            let other = try await session(port, "other")
            let client = try await session(port)
            _ = try await client.write(head + rest)
            let answer = try await client.read(through: "</stream:stream>")
            #expect(answer.contains("<stream:error><\(condition) "))
            _ = try await other.write("<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>")
            #expect(try await other.read(through: "</iq>").contains("type='result' id='r'"))
        }
    }

    @Test func `a stanza before resource binding ends the stream`() async throws {
        try await serve { port, _ in
            let client = try await login(port)
            _ = try await client.write("<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>")
            #expect(try await client.read(through: "</stream:stream>").contains("<stream:error><not-authorized "))
        }
    }

    // MARK: Forwarding

    private static let version = "<iq type='get' id='v' to='localhost'><query xmlns='jabber:iq:version'/></iq>"
    private static let roster = "<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>"

    @Test func `a lost connection to the real server is reported, and the next request gets an error`() async throws {
        func start(_ port: Int) async throws -> BuiltInServer {
            try await BuiltInServer.start(
                port: port,
                settings: ServerSettings(accounts: [.init(name: "romeo", password: "wherefore")], softwareVersion: "7"),
                cryptography: Self.cryptography,
                group: MultiThreadedEventLoopGroup.singleton
            )
        }
        let real = try await start(0)
        let place = Endpoint(host: "127.0.0.1", port: try #require(real.address?.port))
        let live = try LiveServer(.tcp(place), timeout: .seconds(5), cryptography: Self.cryptography)
        try await serve(forwarding: live) { port, told in
            let client = try await session(port)
            _ = try await client.write(Self.version + Self.roster)
            let answers = try await client.read(through: "id='r'")
            // The answers are in the order of the requests, although the second one was recorded.
            #expect(answers.contains("<version>7</version>") && answers.contains("to='romeo@localhost/r'"))
            try await real.stop()
            while !told.all.contains(where: { $0.hasPrefix("not forwarded: the connection to \(place) ended") }) {
                try await Task.sleep(for: .milliseconds(5))
            }
            _ = try await client.write(Self.version)
            let refused = try await client.read(through: "</iq>")
            #expect(refused.contains("<remote-server-timeout") && refused.contains("did not answer</text>"))
        }
    }

    @Test func `a real server that does not answer delays answers only up to the timeout`() async throws {
        let silent = try RawListener()
        let live = try LiveServer(
            .tcp(Endpoint(host: "127.0.0.1", port: Int(silent.port))),
            timeout: .seconds(3),
            cryptography: Self.cryptography
        )
        try await serve(forwarding: live) { port, _ in
            let client = try await session(port)
            let many = (0..<1100).map { Self.version.replacing("'v'", with: "'v\($0)'") }.joined()
            _ = try await client.write(many + Self.roster)
            let answers = try await client.read(through: "id='r'")
            #expect(answers.ranges(of: "<remote-server-timeout").count == 1024)
            #expect(answers.ranges(of: "<resource-constraint").count == 76)
        }
    }
}
