import TapRecord
import TapReplay
import TapTestKit
import Testing
import XMPPCore

/// Replays against a scripted server, with a simulated clock.
@Suite struct ReplayerTests {
    @Test func `an equivalent answer with other ids, accounts and resources is not a divergence`() throws {
        var peer = try ReplayPeer(ReplayPeer.roster, reply: ReplayPeer.answer)
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log.count == 4 && peer.log[0] == "connect 0" && peer.log[3] == "close 0")
        #expect(peer.log[1].hasPrefix("0 <iq id='r-"))
        #expect(peer.replayer.progress.matched == 2 && peer.replayer.progress.sent == 2)
    }

    @Test func `a replay with the same seed and server sends the same bytes and reports the same`() throws {
        func play(_ seed: UInt64) throws -> ([String], [String]) {
            var peer = try ReplayPeer(ReplayPeer.roster, seed: seed) {
                $1 == "<presence/>" ? [] : ReplayPeer.answer($0, $1)
            }
            try peer.run()
            return (peer.log, peer.replayer.divergences.map { "\($0)" })
        }
        let (log, report) = try play(7)
        let again = try play(7)
        #expect(log == again.0 && report == again.1 && !report.isEmpty)
        #expect(try play(8).0 != log)
    }

    @Test func `sessions with and without shared templates send the same bytes`() throws {
        let text = """
            \(ReplayPeer.roster.split(separator: "\n").dropLast(2).joined(separator: "\n"))
            6 1 send <message to='romeo@capulet.example' id='m'><body>for juliet@capulet.example &amp; romeo</body></message>
            7 1 send <message to='romeo@capulet.example/x' id='r'><thread>r</thread></message>
            """
        let logs = try [false, true].map { shares in
            var peer = try ReplayPeer(text, ReplayPeer.both, sharesTemplates: shares, reply: ReplayPeer.answer)
            try peer.run()
            return peer.log
        }
        #expect(
            logs[0] == logs[1] && logs[0].contains { $0.contains("for juliet@live.example &amp; romeo") },
            "\(logs)"
        )
    }

    @Test func `a missing answer and a different answer are divergences of behaviour`() throws {
        var peer = try ReplayPeer(ReplayPeer.roster) { _, _ in [] }
        try peer.run()
        // The server sends nothing more, so all missing items have one cause.
        #expect(peer.found == ["behaviour missing 3"] && peer.followed(0) == ["behaviour missing 5"])
        peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            guard text.contains("roster") else { return ReplayPeer.answer(client, text) }
            return [(0, "<iq type='error' id='ID'><error type='cancel'/></iq>")]
        }
        try peer.run()
        #expect(peer.found == ["behaviour changed 3"])
    }

    @Test func `a different roster content is a divergence of state`() throws {
        var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            ReplayPeer.answer(client, text).map { ($0, $1.replacing("romeo@", with: "paris@")) }
        }
        try peer.run()
        #expect(peer.found == ["state changed 3"])
    }

    @Test(arguments: [
        (
            "<vCard xmlns='vcard-temp'><FN>Juliet</FN></vCard>", "<vCard xmlns='vcard-temp'/>",
            "<vCard xmlns='vcard-temp'><FN>Juliet</FN></vCard>", "<vCard xmlns='vcard-temp'><FN>Nurse</FN></vCard>"
        ),
        (
            "<block xmlns='urn:xmpp:blocking'><item jid='paris@capulet.example'/></block>",
            "<blocklist xmlns='urn:xmpp:blocking'/>",
            "<blocklist xmlns='urn:xmpp:blocking'><item jid='paris@capulet.example'/></blocklist>",
            "<blocklist xmlns='urn:xmpp:blocking'/>"
        ),
    ])
    func `data that a client stored and gets back changed is a divergence of behaviour`(
        stored: String,
        request: String,
        recorded: String,
        live: String
    ) throws {
        func found(_ steps: [String]) throws -> [String] {
            let lines = steps.enumerated().map { "\($0 + 2) 1 \($1)" }
            let text = (["1 1 ready juliet@capulet.example/balcony"] + lines).joined(separator: "\n")
            var peer = try ReplayPeer(text) { client, text in
                text.contains("type='set'")
                    ? [(client, "<iq type='result' id='ID'/>")]
                    : text.contains("type='get'") ? [(client, "<iq type='result' id='ID'>\(live)</iq>")] : []
            }
            try peer.run()
            return peer.found
        }
        let writing = ["send <iq type='set' id='s'>\(stored)</iq>", "recv <iq type='result' id='s'/>"]
        let reading = ["send <iq type='get' id='g'>\(request)</iq>", "recv <iq type='result' id='g'>\(recorded)</iq>"]
        #expect(try found(writing + reading) == ["behaviour changed 5"])
        // Before the client stores it, it is older data.
        #expect(try found(reading + writing) == ["state changed 3"])
    }

    @Test func `the server's errors for an address without a user are compared`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq type='get' id='q' to='nobody@capulet.example'><query xmlns='jabber:iq:version'/></iq>
            3 1 recv <iq type='error' id='q' from='nobody@capulet.example'><error type='cancel'><service-unavailable xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>
            """
        func found(_ answer: String) throws -> [String] {
            var peer = try ReplayPeer(text) { client, text in
                text.contains("<iq") && !answer.isEmpty ? [(client, answer)] : []
            }
            try peer.run()
            return peer.found
        }
        let from = "id='ID' from='nobody@live.example'"
        #expect(try found("") == ["behaviour missing 3"])
        #expect(try found("<iq type='result' \(from)/>") == ["behaviour changed 3"])
        let other = "<error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
        #expect(try found("<iq type='error' \(from)>\(other)</iq>") == ["behaviour changed 3"])
        #expect(
            try found("<iq type='error' \(from)>\(other.replacing("item-not-found", with: "service-unavailable"))</iq>")
                == []
        )
    }

    @Test(arguments: [
        ("SCRAM-SHA-1", "<sm xmlns='urn:xmpp:sm:3'/>", []),
        ("PLAIN", "<sm xmlns='urn:xmpp:sm:3'/>", ["behaviour session 0"]),
        ("SCRAM-SHA-1", "", ["behaviour session 0"]),
    ])
    func `mechanisms and features that are no longer offered are reported once, binding is not`(
        mechanism: String,
        feature: String,
        expected: [String]
    ) throws {
        func features(_ content: String) -> String {
            "<features xmlns='http://etherx.jabber.org/streams'>\(content)</features>"
        }
        func mechanisms(_ name: String) -> String {
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>\(name)</mechanism></mechanisms>"
        }
        let bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        let text = """
            1 1 recv \(features(mechanisms("SCRAM-SHA-1")))
            2 1 recv \(features("\(bind)<sm xmlns='urn:xmpp:sm:3'/>"))
            3 1 ready juliet@capulet.example/balcony
            """
        var live = ServerOffer()
        for stream in [mechanisms(mechanism), feature] {
            let bytes = Array(features(stream).utf8)
            let element = try StanzaParser().parse(bytes.span, root: StanzaForm.clientDeclarations)
            live.add(try #require(StreamFeatures(element)))
        }
        var peer = try ReplayPeer(text) { _, _ in [] }
        for _ in 1...2 { peer.replayer.handle(.offered(live), client: 0, at: 0) }
        #expect(
            peer.replayer.divergences.map {
                "\($0.divergenceClass.rawValue) \($0.code.rawValue) \($0.recorded?.sequence ?? 0)"
            } == expected
        )
    }

    @Test func `runs that number their placeholders anew are replayed together`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <enable xmlns='urn:xmpp:sm:3' resume='true'/>
            3 1 recv <enabled xmlns='urn:xmpp:sm:3' resume='true' id='[redacted:sm-id#1]'/>
            4 2 ready romeo@capulet.example/orchard
            5 2 send <enable xmlns='urn:xmpp:sm:3' resume='true'/>
            6 2 recv <enabled xmlns='urn:xmpp:sm:3' resume='true' id='[redacted:sm-id#1]'/>
            """
        var number = 0
        var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
            guard text.contains("<enable ") else { return [] }
            number += 1
            return [(client, "<enabled xmlns='urn:xmpp:sm:3' resume='true' id='live\(number)'/>")]
        }
        try peer.run()
        #expect(peer.found == [])
    }

    @Test func `a stanza is sent after the items that preceded it in the recording, of all clients`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 2 ready romeo@capulet.example/orchard
            3 2 send <message to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            4 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            5 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            6 2 recv <message from='juliet@capulet.example/balcony' to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
            let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
            return [(1 - client, text.replacing("<message", with: "<message from='\(from)'"))]
        }
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log[2].contains("to='juliet@live.example/0'") && peer.log[3].contains("to='romeo@live.example/1'"))
    }

    @Test func `steps are ordered by arrival, not by record number`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 2 ready romeo@capulet.example/orchard
            4 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            5 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            3 2 send <message to='juliet@capulet.example/balcony' id='m'><body>But soft</body></message>
            6 2 recv <message from='juliet@capulet.example/balcony' to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
            let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
            return [(1 - client, text.replacing("<message", with: "<message from='\(from)'"))]
        }
        try peer.run()
        #expect(peer.found == [] && peer.now < 5_000_000_000)
    }

    @Test func `a missing item from a peer that is not replayed is reported as absent without a wait`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <presence from='romeo@capulet.example/orchard'/>
            3 1 send <presence/>
            4 1 recv <presence from='juliet@capulet.example/balcony'/>
            """
        var peer = try ReplayPeer(text, reply: ReplayPeer.answer)
        try peer.run()
        #expect(peer.found == ["peer-absent missing 2"])
        #expect(peer.now < 1_000_000_000)
    }

    @Test func `a stanza with a redacted value is sent only if the value is given`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <message id='m'><body>[redacted:token#3]</body></message>
            """
        var peer = try ReplayPeer(text) { _, _ in [] }
        try peer.run()
        #expect(peer.found == ["redacted undecided 2"] && !peer.log.contains { $0.contains("<message") })
        var options = ReplayOptions()
        options.values["[redacted:token#3]"] = "a<b"
        peer = try ReplayPeer(text, options: options) { _, _ in [] }
        try peer.run()
        #expect(peer.found == [] && peer.log.contains { $0.contains("<body>a&lt;b</body>") })
    }

    @Test func `a lost connection is resumed with the counts of the live session`() throws {
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
        var peer = try ReplayPeer(text) { client, text in
            if text.hasPrefix("<enable") { return [(0, "<enabled xmlns='urn:xmpp:sm:3' id='new' resume='true'/>")] }
            if text.contains("ping") {
                return [(1, "<r xmlns='urn:xmpp:sm:3'/>"), (1, "<iq id='ID' type='result' from='live.example'/>")]
            }
            return ReplayPeer.answer(client, text)
        }
        try peer.run()
        #expect(peer.found == [])
        #expect(peer.log.contains("connect 1 new 1") && peer.log.contains("drop 0"))
        #expect(peer.log.contains("1 <a xmlns='urn:xmpp:sm:3' h='1'/>"))
    }

    @Test func `features that were enabled inline during login are enabled after it`() throws {
        let text = """
            0 1 send <authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><bind xmlns='urn:xmpp:bind:0'><enable xmlns='urn:xmpp:sm:3' resume='true'/><enable xmlns='urn:xmpp:carbons:2'/></bind></authenticate>
            1 1 ready juliet@capulet.example/balcony
            4 1 send <presence/>
            5 1 recv <presence from='juliet@capulet.example/balcony'/>
            6 1 ended
            7 2 resumed 1 juliet@capulet.example/balcony
            """
        var peer = try ReplayPeer(text) { client, text in
            if text.hasPrefix("<enable") { return [(0, "<enabled xmlns='urn:xmpp:sm:3' id='new' resume='true'/>")] }
            if text.contains("carbons") { return [(0, "<iq id='ID' type='result' from='juliet@live.example'/>")] }
            return ReplayPeer.answer(client, text)
        }
        try peer.run()
        #expect(peer.found == [])
        #expect(
            peer.log.prefix(4) == [
                "connect 0",
                "0 <iq type='set' id='xmpptap-inline'><enable xmlns='urn:xmpp:carbons:2'/></iq>",
                "0 <enable xmlns='urn:xmpp:sm:3' resume='true'/>",
                "0 <presence/>",
            ]
        )
        #expect(peer.log.contains("connect 1 new 1"))
    }

    @Test func `a server's ping is answered, and its other requests are refused and reported`() throws {
        var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            guard text == "<presence/>" else { return ReplayPeer.answer(client, text) }
            return ReplayPeer.answer(client, text) + [
                (0, "<iq type='get' id='x1' from='live.example'><ping xmlns='urn:xmpp:ping'/></iq>"),
                (0, "<iq type='get' id='x2' from='live.example'><query xmlns='jabber:iq:version'/></iq>"),
            ]
        }
        try peer.run()
        #expect(peer.log.contains("0 <iq type='result' id='x1' to='live.example'/>"))
        #expect(peer.log.contains { $0.contains("id='x2'") && $0.contains("service-unavailable") })
        #expect(peer.found == ["optional unexpected 0"])
    }

    @Test func `a puppet sends what the recorded clients received from it, and presence only once`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <presence from='romeo@capulet.example/orchard' to='juliet@capulet.example'><show>away</show></presence>
            3 2 ready nurse@capulet.example/hall
            4 2 recv <presence from='romeo@capulet.example/orchard' to='nurse@capulet.example'><show>away</show></presence>
            5 1 recv <message from='romeo@capulet.example/orchard' to='juliet@capulet.example' id='m'><body>But soft</body><stanza-id xmlns='urn:xmpp:sid:0' id='s' by='juliet@capulet.example'/></message>
            6 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both, puppets: ["romeo@capulet.example"]) { client, text in
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
        // This server does not send presence to the nurse.
        #expect(peer.found == ["behaviour missing 4"])
    }

    @Test func `rosters and subscriptions are set up before the replay`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            3 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'><item jid='romeo@capulet.example' name='R' subscription='both'><group>Friends</group></item><item jid='paris@capulet.example' subscription='to'/></query></iq>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both, puppets: ["romeo@capulet.example"], prepares: true) {
            client,
            text in
            // Romeo is not a contact yet.
            if text.contains("subscription='remove'") {
                let condition = "<item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                return [(client, "<iq type='error' id='ID'><error type='cancel'>\(condition)</error></iq>")]
            }
            guard text.contains("settled-") else { return [] }
            return [(client, "<iq type='result' id='ID'/>")]
        }
        try peer.run()
        #expect(peer.replayer.failure == nil)
        // Paris is not played, so he is not removed.
        #expect(peer.log.count { $0.contains("subscription='remove'") } == 1)
        let order = [
            "<item jid='romeo@live.example' subscription='remove'/>", "name='R'", "paris@live.example",
            "0 <presence type='subscribe' to='romeo@live.example'/>",
            "1 <presence type='subscribe' to='juliet@live.example'/>",
            "1 <presence type='subscribed' to='juliet@live.example'/>",
            "0 <presence type='subscribed' to='romeo@live.example'/>", "close 0", "connect 2",
        ]
        let places = order.map { wanted in peer.log.firstIndex { $0.contains(wanted) } ?? -1 }
        #expect(places == places.sorted() && !places.contains(-1), "\(peer.log)")
    }

    @Test func `each copy uses its own rooms instead of those created in the recording`() throws {
        func entered(_ room: String, _ status: String) -> String {
            "<presence from='\(room)/j'><x xmlns='http://jabber.org/protocol/muc#user'>\(status)</x></presence>"
        }
        let created = "<status code='110'/><status code='201'/>"
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <presence to='new@muc.capulet.example/j'/>
            3 1 recv \(entered("new@muc.capulet.example", created))
            4 1 send <presence to='old@muc.capulet.example/j'/>
            5 1 recv \(entered("old@muc.capulet.example", "<status code='110'/>"))
            """
        for (copy, room) in [(nil, "new"), (3, "new-3")] {
            var peer = try ReplayPeer(text, copy: copy) { client, text in
                let room = text.contains("old@") ? "old" : room
                guard text.contains("\(room)@muc.live.example") else { return [] }
                return [(client, entered("\(room)@muc.live.example", room == "old" ? "<status code='110'/>" : created))]
            }
            try peer.run()
            #expect(peer.found == [], "\(peer.log)")
        }
    }

    @Test func `latencies are measured for answers, and for messages between clients`() throws {
        var peer = try ReplayPeer(Self.talk, ReplayPeer.both, reply: Self.version)
        try peer.run()
        #expect(peer.found == [])
        let counts = peer.replayer.progress.latencies.mapValues(\.count)
        #expect(counts == ["iq query jabber:iq:version": 2, "message": 1])
    }

    @Test func `a subscription request is not paired with presence as a change`() throws {
        var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            guard text == "<presence/>" else { return ReplayPeer.answer(client, text) }
            return [(0, "<presence from='juliet@live.example' type='subscribe'/>")]
        }
        try peer.run()
        #expect(peer.found == ["behaviour unexpected 0", "behaviour missing 5"])
    }

    @Test func `a missing message is a divergence of state if it is older than the recording`() throws {
        let delay = "<delay xmlns='urn:xmpp:delay' stamp='2026-11-22T10:00:00Z'/>"
        var peer = try ReplayPeer(
            """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <message from='juliet@capulet.example/x' to='juliet@capulet.example' id='old'>\(delay)</message>
            3 1 send <message to='juliet@capulet.example' id='own'/>
            4 1 recv <message from='juliet@capulet.example/x' to='juliet@capulet.example' id='own'>\(delay)</message>
            """
        ) { _, _ in [] }
        try peer.run()
        #expect(peer.found == ["state missing 2", "behaviour missing 4"])
    }

    // MARK: Errors

    private static let talk = """
        1 1 ready juliet@capulet.example/balcony
        2 2 ready romeo@capulet.example/orchard
        3 1 send <iq id='a' type='get'><query xmlns='jabber:iq:version'/></iq>
        4 1 recv <iq id='a' type='result'><query xmlns='jabber:iq:version'/></iq>
        5 1 send <message to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
        6 2 recv <message from='juliet@capulet.example/balcony' to='romeo@capulet.example/orchard' id='n'><body>Ay me</body></message>
        7 2 send <iq id='b' type='get'><query xmlns='jabber:iq:version'/></iq>
        8 2 recv <iq id='b' type='result'><query xmlns='jabber:iq:version'/></iq>
        """

    private static func version(_ client: Int, _ text: String) -> [(Int, String)] {
        if text.contains("version") {
            return [(client, "<iq id='ID' type='result'><query xmlns='jabber:iq:version'/></iq>")]
        }
        let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
        return [(1 - client, text.replacing("<message", with: "<message from='\(from)'"))]
    }

    @Test func `a connection that stays stalled is closed, and other clients continue`() throws {
        var peer = try ReplayPeer(Self.talk, ReplayPeer.both, reply: Self.version)
        peer.stalling[0] = "Ay me"
        try peer.run()
        #expect(peer.found == ["behaviour session 0"] && peer.followed(0) == ["behaviour missing 6"], "\(peer.found)")
        #expect(peer.replayer.divergences.first?.message.contains("read no data for 10") == true)
        #expect(peer.log.contains("drop 0") && peer.log.contains { $0.hasPrefix("1 <iq") }, "\(peer.log)")
    }

    @Test func `a replay ends only after its last stanzas are written`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <message id='m1'><body>Ay me</body></message>
            3 1 send <message id='m2'><body>O Romeo</body></message>
            4 1 send </stream:stream>
            5 1 ended
            """
        var peer = try ReplayPeer(text) { _, _ in [] }
        peer.stalling[0] = "Ay me"
        try peer.run()
        #expect(peer.found == ["behaviour session 0"] && peer.replayer.progress.sent == 1, "\(peer.found)")
        #expect(peer.replayer.divergences.first?.message.hasSuffix("; 1 stanza not sent") == true)
    }

    /// Returns a replay of a client that sends `count` messages.
    private static func sender(of count: Int, as live: JID, _ options: ReplayOptions = ReplayOptions()) throws
        -> Replayer
    {
        let sends = (0..<count).map { "\($0 + 2) 1 send <message id='m\($0)'><body>\($0)</body></message>" }
        let text = "1 1 ready juliet@capulet.example/balcony\n" + sends.joined(separator: "\n")
        var generator = ReplayGenerator(seed: 1)
        return Replayer(
            ReplayScript(try RecordedText(text).conversations),
            accounts: [(try JID(parsing: "juliet@capulet.example"), live)],
            options: options,
            using: &generator
        )
    }

    @Test func `actions held for a stalled connection are performed in order when it is writable again`() throws {
        let live = try JID(parsing: "juliet@live.example")
        var replayer = try Self.sender(of: 600, as: live)
        replayer.tick(at: 0)
        var sent: [String] = []
        var isStalled = false
        var stalls = 0
        for round in 0..<20 {
            while let action = replayer.next(at: Int64(round)) {
                switch action {
                case .connect: replayer.handle(.bound(live), client: 0, at: 0)
                case .send(_, let bytes):
                    #expect(!isStalled)
                    sent.append(String(decoding: bytes, as: UTF8.self))
                    if sent.count % 100 == 0 {
                        isStalled = true
                        stalls += 1
                        replayer.handle(.stalled, client: 0, at: Int64(round))
                    }
                case .close, .drop, .finish: break
                }
            }
            isStalled = false
            replayer.handle(.writable, client: 0, at: Int64(round))
        }
        #expect(stalls == 6 && sent.count == 600 && replayer.divergences.isEmpty)
        #expect(sent.enumerated().allSatisfy { $1.contains("<body>\($0)</body>") })
    }

    /// Returns the writes of a client that sends messages without waiting, with a given write size.
    private static func sent(_ text: String, _ writeSize: Int) throws -> [[UInt8]] {
        var options = ReplayOptions()
        options.writeSize = writeSize
        var generator = ReplayGenerator(seed: 7)
        let account = (try JID(parsing: "juliet@capulet.example"), try JID(parsing: "juliet@live.example"))
        var replayer = Replayer(
            ReplayScript(try RecordedText(text).conversations),
            accounts: [account],
            options: options,
            using: &generator
        )
        var sent: [[UInt8]] = []
        replayer.tick(at: 0)
        while let action = replayer.next(at: 0) {
            if case .connect = action { replayer.handle(.bound(account.1), client: 0, at: 0) }
            if case .send(_, let bytes) = action { sent.append(bytes) }
        }
        #expect(replayer.progress.sent == replayer.progress.total)
        return sent
    }

    @Test func `consecutive items written together have the same bytes as items written separately`() throws {
        let sends = (0..<900).map { number in
            "\(number + 2) 1 send <message id='m\(number)' to='juliet@capulet.example/x'><body>\(number) &amp;</body></message>"
        }
        let text = "1 1 ready juliet@capulet.example/balcony\n" + sends.joined(separator: "\n")
        let single = try Self.sent(text, 0)
        let joined = try Self.sent(text, 4096)
        #expect(single.count == 900 && single.joined().elementsEqual(joined.joined()))
        #expect(String(decoding: single.joined(), as: UTF8.self).contains("to='juliet@live.example/x'"))
        let longest = single.map(\.count).max() ?? 0
        #expect(joined.dropLast().allSatisfy { (4096..<(4096 + longest)).contains($0.count) }, "\(joined.map(\.count))")
    }

    @Test func `if a session ends before a write, all items of the write count as not sent`() throws {
        var options = ReplayOptions()
        options.writeSize = 4096
        let live = try JID(parsing: "juliet@live.example")
        var replayer = try Self.sender(of: 900, as: live, options)
        replayer.tick(at: 0)
        var taken = 0
        while let action = replayer.next(at: 0) {
            if case .connect = action { replayer.handle(.bound(live), client: 0, at: 0) }
            guard case .send(_, let bytes) = action else { continue }
            #expect(taken == 0)
            taken = String(decoding: bytes, as: UTF8.self).ranges(of: "</message>").count
            replayer.handle(.stalled, client: 0, at: 0)
        }
        // The replay prepares only about as many items as the connection accepts next.
        #expect(taken > 0 && replayer.progress.sent < 3 * taken, "\(replayer.progress.sent)")
        replayer.handle(.ended("gone"), client: 0, at: 0)
        #expect(replayer.progress.sent == taken)
        let message = "the session ended: gone; \(900 - taken) stanzas not sent"
        #expect(replayer.divergences.first?.message == message)
    }

    @Test func `the quiet time begins after the last item, however long sending takes`() throws {
        let live = try JID(parsing: "juliet@live.example")
        var replayer = try Self.sender(of: 600, as: live)
        replayer.tick(at: 0)
        var now: Int64 = 0
        var hasFinished = false
        func perform() {
            while let action = replayer.next(at: now) {
                now += 1_000_000
                if case .connect = action { replayer.handle(.bound(live), client: 0, at: now) }
                if case .finish = action { hasFinished = true }
            }
        }
        perform()
        #expect(replayer.progress.sent == 600)
        replayer.tick(at: now)
        perform()
        #expect(!hasFinished)
        replayer.tick(at: now + 500_000_000)
        perform()
        #expect(hasFinished)
    }

    @Test func `the replay does not wait for an ended session, and attributes missing items to its end`() throws {
        var peer = try ReplayPeer(Self.talk, ReplayPeer.both) { client, text in
            client == 0 ? [(0, "ended the server closed the connection")] : Self.version(client, text)
        }
        try peer.run()
        #expect(peer.found == ["behaviour session 0"] && peer.now < 3_000_000_000, "\(peer.found) \(peer.now)")
        #expect(peer.followed(0) == ["behaviour missing 4", "behaviour missing 6"], "\(peer.followed(0))")
        let message = "the session ended: the server closed the connection; 1 stanza not sent"
        #expect(peer.replayer.divergences.first?.message == message)
        #expect(peer.log.contains { $0.hasPrefix("1 <iq") }, "\(peer.log)")
    }

    @Test func `a missing answer is attributed to its request if that was not sent`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='r' type='set'><query xmlns='jabber:iq:private'>[redacted:token#3]</query></iq>
            3 1 recv <iq id='r' type='result'/>
            4 1 send <presence/>
            5 1 recv <presence from='juliet@capulet.example/balcony'/>
            """
        var peer = try ReplayPeer(text, reply: ReplayPeer.answer)
        try peer.run()
        #expect(peer.found == ["redacted undecided 2"] && peer.followed(0) == ["redacted missing 3"], "\(peer.found)")
        #expect(peer.now < 2_000_000_000)
    }

    @Test func `a second answer is attributed to a different first answer, or else reported on its own`() throws {
        let error = "<iq type='error' id='ID'><error type='cancel'/></iq>"
        var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            text.contains("roster") ? [(0, error), (0, error)] : ReplayPeer.answer(client, text)
        }
        try peer.run()
        #expect(peer.found == ["behaviour changed 3"] && peer.followed(0) == ["behaviour unexpected 0"])
        peer = try ReplayPeer(ReplayPeer.roster) { client, text in
            ReplayPeer.answer(client, text) + (text.contains("roster") ? [(0, error)] : [])
        }
        try peer.run()
        #expect(peer.found == ["behaviour unexpected 0"])
        #expect(peer.replayer.divergences.first?.message == "a second answer to the request")
    }

    @Test func `reordered answers are not a divergence`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='a' type='get'><query xmlns='jabber:iq:version'/></iq>
            3 1 send <iq id='b' type='get'><query xmlns='jabber:iq:last'/></iq>
            4 1 recv <iq id='a' type='result'><query xmlns='jabber:iq:version'/></iq>
            5 1 recv <iq id='b' type='result'><query xmlns='jabber:iq:last'/></iq>
            """
        var first = ""
        var peer = try ReplayPeer(text) { _, text in
            let id = String(text.split(separator: "'")[1])
            guard text.contains("last") else {
                first = id
                return []
            }
            return [
                (0, "<iq id='ID' type='result'><query xmlns='jabber:iq:last'/></iq>"),
                (0, "<iq id='\(first)' type='result'><query xmlns='jabber:iq:version'/></iq>"),
            ]
        }
        try peer.run()
        #expect(peer.found == [])
    }

    private static let resumption = """
        1 1 ready juliet@capulet.example/balcony
        2 1 send <enable xmlns='urn:xmpp:sm:3' resume='true'/>
        3 1 recv <enabled xmlns='urn:xmpp:sm:3' id='old' resume='true'/>
        6 1 ended
        7 2 resumed 1 juliet@capulet.example/balcony
        8 2 send <presence/>
        9 2 recv <presence from='juliet@capulet.example/balcony'/>
        """

    private static func enabled(_ client: Int, _ text: String) -> [(Int, String)] {
        text.hasPrefix("<enable") ? [(0, "<enabled xmlns='urn:xmpp:sm:3' id='new' resume='true'/>")] : []
    }

    @Test func `a session that is not resumed as recorded is reported with its consequences`() throws {
        var peer = try ReplayPeer(Self.resumption, reply: Self.enabled)
        peer.resumes = { _ in false }
        try peer.run()
        #expect(peer.found == ["behaviour session 0"] && peer.followed(0) == ["behaviour missing 7"], "\(peer.found)")
        #expect(peer.replayer.divergences.first?.message.hasPrefix("the session was not resumed") == true)
        #expect(peer.replayer.divergences.first?.client == 1)
    }

    @Test func `a session resumed before its old connection ends is not a divergence`() throws {
        let lines = Self.resumption.split(separator: "\n").map(String.init)
        let text = (lines.filter { !$0.contains("ended") || $0.contains("enabled") } + ["10 1 ended"])
            .joined(separator: "\n")
        var peer = try ReplayPeer(text) { client, text in
            client == 1
                ? [(0, "ended the server closed the connection"), (1, "<presence from='juliet@live.example/0'/>")]
                : Self.enabled(client, text)
        }
        try peer.run()
        #expect(peer.found == [], "\(peer.replayer.divergences)")
        #expect(peer.log.contains("connect 1 new 0"))
    }

    private static let ending = """
        1 1 ready juliet@capulet.example/balcony
        2 1 send <iq id='a' type='get'><query xmlns='jabber:iq:version'/></iq>
        3 1 recv <iq id='a' type='result'><query xmlns='jabber:iq:version'/></iq>
        4 1 send <presence/>
        5 1 recv </stream:stream>
        6 1 send </stream:stream>
        7 1 ended
        """

    @Test func `a session that the server ends as recorded is not a divergence`() throws {
        var peer = try ReplayPeer(Self.ending) { $1 == "<presence/>" ? [(0, "ended")] : Self.version($0, $1) }
        try peer.run()
        #expect(peer.found == [] && !peer.log.contains("close 0") && peer.now < 3_000_000_000, "\(peer.found)")
    }

    @Test func `a session that the server ends early or not at all is reported`() throws {
        var peer = try ReplayPeer(Self.ending) { $1.contains("version") ? Self.version($0, $1) : [] }
        try peer.run()
        #expect(peer.found == ["behaviour session 0"] && peer.log.contains("close 0"), "\(peer.found)")
        let message = "the server did not end the session, as it did in the recording"
        #expect(peer.replayer.divergences.first?.message == message)
        peer = try ReplayPeer(Self.ending) { $1.contains("version") ? [(0, "ended")] : [] }
        try peer.run()
        #expect(peer.found == ["behaviour session 0"], "\(peer.found)")
        #expect(peer.replayer.divergences.first?.message.contains("earlier than recorded") == true)
        #expect(peer.replayer.divergences.first?.message.contains("1 stanza not sent") == true)
    }

    @Test(arguments: [
        (
            "name='R'",
            "<iq type='error' id='ID'><error type='cancel'><not-allowed xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
            "juliet@live.example: preparation failed: the server refused a roster item (not-allowed)"
        ),
        (
            "1 <presence type='subscribe'",
            "<presence type='error' from='juliet@live.example'><error type='auth'><forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></presence>",
            "romeo@live.example: preparation failed: the server refused a subscription to juliet@live.example (forbidden)"
        ),
        (
            "1 <presence type='subscribed'", "ended the server closed the connection",
            "romeo@live.example: preparation failed: the session ended: the server closed the connection"
        ),
        (
            "0 <presence type='subscribed'", "silence",
            "juliet@live.example: preparation failed: the server did not answer for 10"
        ),
    ]) func `a failed preparation is reported, and nothing is replayed`(
        _ what: String,
        _ answer: String,
        _ failure: String
    ) throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            3 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'><item jid='romeo@capulet.example' name='R' subscription='both'/></query></iq>
            """
        var isSilent = false
        var peer = try ReplayPeer(text, ReplayPeer.both, puppets: ["romeo@capulet.example"], prepares: true) {
            client,
            text in
            if "\(client) \(text)".contains(what) {
                isSilent = answer == "silence"
                return isSilent ? [] : [(client, answer)]
            }
            guard text.contains("settled-"), !isSilent else { return [] }
            return [(client, "<iq type='result' id='ID'/>")]
        }
        try peer.run()
        #expect(peer.replayer.failure?.hasPrefix(failure) == true, "\(peer.replayer.failure ?? "no failure")")
        #expect(peer.found == [] && !peer.log.contains("connect 2"))
    }

    @Test func `a much slower answer is a divergence of timing only at the recorded pace`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq id='a' type='get'><query xmlns='jabber:iq:version'/></iq>
            3 1 recv <iq id='a' type='result'><query xmlns='jabber:iq:version'/></iq>
            4 1 send <presence/>
            5 1 recv <presence from='juliet@capulet.example/balcony'/>
            """
        func play(_ pace: ReplayOptions.Pace, after delay: Int64) throws -> Replayer {
            var options = ReplayOptions()
            options.pace = pace
            var peer = try ReplayPeer(text, options: options) { client, text in
                text.contains("version") ? [] : ReplayPeer.answer(client, text)
            }
            peer.delayed = (delay, "<iq id='ID' type='result'><query xmlns='jabber:iq:version'/></iq>")
            try peer.run()
            return peer.replayer
        }
        let slow = try play(.recorded(speed: 1), after: 600_000_000)
        #expect(slow.divergences.map(\.divergenceClass) == [.timing] && slow.divergences.map(\.code) == [.slower])
        #expect(slow.divergences.first?.message == "0.001 s → 0.601 s")
        #expect(slow.divergences.first?.recorded?.sequence == 3 && slow.divergences.first?.live != nil)
        #expect(try play(.recorded(speed: 1), after: 400_000_000).divergences.isEmpty)
        #expect(try play(.causal, after: 600_000_000).divergences.isEmpty)
    }
}
