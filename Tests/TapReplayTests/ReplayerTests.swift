import TapReplay
import Testing
import XMPPCore

/// The clients' side of recordings, played against a scripted server with a clock of the test's own.
@Suite struct ReplayerTests {
    /// A server that answers each item it gets with items of the script, in which `ID` is the id of what it got.
    private struct Peer {
        var replayer: Replayer
        var now: Int64 = 0
        /// What was done, in order, with the bytes that were sent.
        var log: [String] = []
        var isFinished = false
        private let parser = StanzaParser()
        private let reply: (Int, String) -> [(Int, String)]

        init(
            _ text: String,
            _ accounts: [(String, String)] = [("juliet@capulet.example", "juliet@live.example")],
            options: ReplayOptions = ReplayOptions(),
            puppets: [String] = [],
            prepares: Bool = false,
            seed: UInt64 = 1,
            reply: @escaping (Int, String) -> [(Int, String)]
        ) throws {
            self.reply = reply
            var generator = ReplayGenerator(seed: seed)
            replayer = Replayer(
                ReplayScript(
                    try RecordedText(text).conversations,
                    puppets: try puppets.map { try JID(parsing: $0) },
                    prepares: prepares
                ),
                accounts: try accounts.map { (try JID(parsing: $0), try JID(parsing: $1)) },
                options: options,
                using: &generator
            )
        }

        mutating func run() throws {
            replayer.tick(at: now)
            for _ in 0..<10_000 where !isFinished {
                while let action = replayer.next() { try perform(action) }
                guard !isFinished else { return }
                let deadline = try #require(replayer.nextDeadline, "the replay waits for ever: \(log)")
                now = max(now, deadline)
                replayer.tick(at: now)
            }
            try #require(isFinished, "the replay does not end")
        }

        private mutating func perform(_ action: Replayer.Action) throws {
            now += 1_000_000
            switch action {
            case .connect(let client, let resuming):
                log.append("connect \(client)\(resuming.map { " \($0.id) \($0.handled)" } ?? "")")
                guard resuming == nil else { return replayer.handle(.resumed, client: client, at: now) }
                let account = replayer.script.clients[client].account.local ?? ""
                replayer.handle(.bound(try JID(parsing: "\(account)@live.example/\(client)")), client: client, at: now)
            case .send(let client, let bytes):
                let text = String(decoding: bytes, as: UTF8.self)
                log.append("\(client) \(text)")
                for (receiver, answer) in reply(client, text) {
                    let bytes = Array(answer.replacing("ID", with: Self.id(of: text)).utf8)
                    let element = try parser.parse(bytes.span, root: StanzaForm.clientDeclarations)
                    replayer.handle(.received(bytes, element), client: receiver, at: now)
                }
            case .close(let client):
                log.append("close \(client)")
                replayer.handle(.ended(nil), client: client, at: now)
            case .drop(let client): log.append("drop \(client)")
            case .finish: isFinished = true
            }
        }

        private static func id(of text: String) -> String {
            guard let start = text.firstRange(of: " id='") else { return "" }
            return String(text[start.upperBound...].prefix { $0 != "'" })
        }

        var found: [String] {
            replayer.divergences.map {
                "\($0.divergenceClass.rawValue) \($0.code.rawValue) \($0.recorded?.sequence ?? 0)"
            }
        }
    }

    private static let roster = """
        1 1 ready juliet@capulet.example/balcony
        2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
        3 1 recv <iq id='r' type='result' to='juliet@capulet.example/balcony'><query xmlns='jabber:iq:roster'><item jid='romeo@capulet.example'/></query></iq>
        4 1 send <presence/>
        5 1 recv <presence from='juliet@capulet.example/balcony'/>
        6 1 send </stream:stream>
        7 1 ended
        """

    private static func answer(_ client: Int, _ text: String) -> [(Int, String)] {
        if text.contains("jabber:iq:roster") {
            let contact = "<item jid='romeo@live.example'/>"
            return [
                (
                    0,
                    "<iq to='juliet@live.example/0' type='result' id='ID'><query xmlns='jabber:iq:roster'>\(contact)</query></iq>"
                )
            ]
        }
        return text == "<presence/>" ? [(0, "<presence from='juliet@live.example/0'/>")] : []
    }

    @Test func `what a server answers alike is no divergence, under other ids, accounts and resources`() throws {
        var peer = try Peer(Self.roster, reply: Self.answer)
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log.count == 4 && peer.log[0] == "connect 0" && peer.log[3] == "close 0")
        #expect(peer.log[1].hasPrefix("0 <iq id='r-"))
        #expect(peer.replayer.progress.matched == 2 && peer.replayer.progress.sent == 2)
    }

    @Test func `the same seed and server give the same bytes and the same report`() throws {
        func play(_ seed: UInt64) throws -> ([String], [String]) {
            var peer = try Peer(Self.roster, seed: seed) { $1 == "<presence/>" ? [] : Self.answer($0, $1) }
            try peer.run()
            return (peer.log, peer.replayer.divergences.map { "\($0)" })
        }
        let (log, report) = try play(7)
        let again = try play(7)
        #expect(log == again.0 && report == again.1 && !report.isEmpty)
        #expect(try play(8).0 != log)
    }

    @Test func `an answer that does not come and one that says something else are behaviour`() throws {
        var peer = try Peer(Self.roster) { _, _ in [] }
        try peer.run()
        #expect(peer.found == ["behaviour missing 3", "behaviour missing 5"])
        peer = try Peer(Self.roster) { client, text in
            guard text.contains("roster") else { return Self.answer(client, text) }
            return [(0, "<iq type='error' id='ID'><error type='cancel'/></iq>")]
        }
        try peer.run()
        #expect(peer.found == ["behaviour changed 3"])
    }

    @Test func `other contents of the roster are other data`() throws {
        var peer = try Peer(Self.roster) { client, text in
            Self.answer(client, text).map { ($0, $1.replacing("romeo@", with: "paris@")) }
        }
        try peer.run()
        #expect(peer.found == ["state changed 3"])
    }

    @Test func `a stanza waits for what came before it in the recording, with any client`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 2 ready romeo@capulet.example/orchard
            3 2 send <message to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            4 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            5 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            6 2 recv <message from='juliet@capulet.example/balcony' to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try Peer(text, Self.both) { client, text in
            let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
            return [(1 - client, text.replacing("<message", with: "<message from='\(from)'"))]
        }
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log[2].contains("to='juliet@live.example/0'") && peer.log[3].contains("to='romeo@live.example/1'"))
    }

    @Test func `what arrived first comes first, in whatever order it was recorded`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 2 ready romeo@capulet.example/orchard
            4 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            5 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            3 2 send <message to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            6 2 recv <message from='juliet@capulet.example/balcony' to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try Peer(text, Self.both) { client, text in
            let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
            return [(1 - client, text.replacing("<message", with: "<message from='\(from)'"))]
        }
        try peer.run()
        #expect(peer.found == [] && peer.now < 5_000_000_000)
    }

    @Test func `a peer that is not played is absent, and nobody waits for it`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <presence from='romeo@capulet.example/orchard'/>
            3 1 send <presence/>
            4 1 recv <presence from='juliet@capulet.example/balcony'/>
            """
        var peer = try Peer(text, reply: Self.answer)
        try peer.run()
        #expect(peer.found == ["peer-absent missing 2"])
        #expect(peer.now < 1_000_000_000)
    }

    @Test func `a value that the recording lacks is not sent, unless it is given`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <message id='m'><body>[redacted:token#3]</body></message>
            """
        var peer = try Peer(text) { _, _ in [] }
        try peer.run()
        #expect(peer.found == ["redacted undecided 2"] && !peer.log.contains { $0.contains("<message") })
        var options = ReplayOptions()
        options.values["[redacted:token#3]"] = "a<b"
        peer = try Peer(text, options: options) { _, _ in [] }
        try peer.run()
        #expect(peer.found == [] && peer.log.contains { $0.contains("<body>a&lt;b</body>") })
    }

    @Test func `a lost connection is resumed with the counts of its own`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <enable xmlns='urn:xmpp:sm:3' resume='true'/>
            3 1 recv <enabled xmlns='urn:xmpp:sm:3' id='old' resume='true'/>
            4 1 send <presence/>
            5 1 recv <presence from='juliet@capulet.example/balcony'/>
            6 1 ended
            7 2 resumed 1 juliet@capulet.example/balcony
            8 2 send <iq id='p' type='get' to='capulet.example'><ping xmlns='urn:xmpp:ping'/></iq>
            9 2 recv <iq id='p' type='result' from='capulet.example'/>
            """
        var peer = try Peer(text) { client, text in
            if text.hasPrefix("<enable") { return [(0, "<enabled xmlns='urn:xmpp:sm:3' id='new' resume='true'/>")] }
            if text.contains("ping") {
                return [(1, "<r xmlns='urn:xmpp:sm:3'/>"), (1, "<iq id='ID' type='result' from='live.example'/>")]
            }
            return Self.answer(client, text)
        }
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log.contains("connect 1 new 1") && peer.log.contains("drop 0"))
        #expect(peer.log.contains("1 <a xmlns='urn:xmpp:sm:3' h='1'/>"))
    }

    @Test func `the server's pings are answered, and other requests refused and reported`() throws {
        var peer = try Peer(Self.roster) { client, text in
            guard text == "<presence/>" else { return Self.answer(client, text) }
            return Self.answer(client, text) + [
                (0, "<iq type='get' id='x1' from='live.example'><ping xmlns='urn:xmpp:ping'/></iq>"),
                (0, "<iq type='get' id='x2' from='live.example'><query xmlns='jabber:iq:version'/></iq>"),
            ]
        }
        try peer.run()
        #expect(peer.log.contains("0 <iq type='result' id='x1' to='live.example'/>"))
        #expect(peer.log.contains { $0.contains("id='x2'") && $0.contains("service-unavailable") })
        #expect(peer.found == ["behaviour unexpected 0"])
    }

    private static let both = [
        ("juliet@capulet.example", "juliet@live.example"), ("romeo@capulet.example", "romeo@live.example"),
    ]

    @Test func `a puppet sends what was received from it, presence once for all`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <presence from='romeo@capulet.example/orchard' to='juliet@capulet.example'><show>away</show></presence>
            3 2 ready nurse@capulet.example/hall
            4 2 recv <presence from='romeo@capulet.example/orchard' to='nurse@capulet.example'><show>away</show></presence>
            5 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example' id='m'><body>But soft</body><stanza-id xmlns='urn:xmpp:sid:0' id='s' by='juliet@capulet.example'/></message>
            6 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try Peer(text, Self.both, puppets: ["romeo@capulet.example"]) { client, text in
            let from = "from='romeo@live.example/0'"
            if text.contains("<show>") {
                let presence = "<presence \(from)><show>away</show></presence>"
                return [(1, presence.replacing("<presence", with: "<presence to='juliet@live.example'"))]
            }
            guard text.contains("But soft") else { return [] }
            let stamp = "<stanza-id xmlns='urn:xmpp:sid:0' id='t' by='juliet@live.example'/></message>"
            return [(1, text.replacing("<message", with: "<message \(from)").replacing("</message>", with: stamp))]
        }
        try peer.run()
        #expect(peer.log.count { $0 == "0 <presence><show>away</show></presence>" } == 1, "\(peer.log)")
        let message = try #require(peer.log.first { $0.contains("But soft") })
        #expect(message.hasPrefix("0 <message") && !message.contains("stanza-id") && !message.contains("from="))
        #expect(peer.log.contains { $0.contains("Ay me") && $0.contains("to='romeo@live.example/0'") })
        // The nurse is not told by this server.
        #expect(peer.found == ["behaviour missing 4"])
    }

    @Test func `rosters and subscriptions are as they were before anything is played`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            3 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'><item jid='romeo@capulet.example' name='R' subscription='both'><group>Friends</group></item><item jid='paris@capulet.example' subscription='to'/></query></iq>
            """
        var peer = try Peer(text, Self.both, puppets: ["romeo@capulet.example"], prepares: true) { client, text in
            guard text.contains("settled-") else { return [] }
            return [(client, "<iq type='result' id='ID'/>")]
        }
        try peer.run()
        let order = [
            "name='R'", "paris@live.example", "0 <presence type='subscribe' to='romeo@live.example'/>",
            "1 <presence type='subscribe' to='juliet@live.example'/>",
            "1 <presence type='subscribed' to='juliet@live.example'/>",
            "0 <presence type='subscribed' to='romeo@live.example'/>", "close 0", "connect 2",
        ]
        let places = order.map { wanted in peer.log.firstIndex { $0.contains(wanted) } ?? -1 }
        #expect(places == places.sorted() && !places.contains(-1), "\(peer.log)")
    }
}
