import TapRecord
import TapReplay
import TapTestKit
import Testing
import XMPPCore

/// Tests of optional behaviour of servers in a replay.
@Suite struct ServerFreedomTests {
    private static let query = "<query xmlns='http://jabber.org/protocol/disco#info' node='n#v'/>"

    /// Runs a replay with a server that queries the client's capabilities `times` times after its presence.
    private func asked(times: Int, answers: [String] = []) throws -> ReplayPeer {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <presence/>
            3 1 recv <iq type='get' id='d' from='capulet.example'>\(Self.query)</iq>
            4 1 send <iq type='result' id='d' to='capulet.example'>\(Self.query.replacing("/>", with: "><feature var='f'/></query>"))</iq>
            5 1 send <message to='romeo@capulet.example' id='m'/>
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text == "<presence/>" else { return [] }
            return (0..<times).map { (0, "<iq type='get' id='live\($0)' from='live.example'>\(Self.query)</iq>") }
        }
        try peer.run()
        return peer
    }

    @Test(arguments: 0...3)
    func `an optional request from the server is answered as recorded, each time it arrives`(_ times: Int) throws {
        let peer = try asked(times: times)
        let answers = peer.log.filter { $0.contains("type='result'") }
        #expect(answers.count == times && answers.allSatisfy { $0.contains("<feature var='f'/>") }, "\(peer.log)")
        for number in 0..<times { #expect(answers.contains { $0.contains("id='live\(number)'") }, "\(answers)") }
        #expect(peer.log.contains { $0.contains("<message") })
        let expected = times == 0 ? ["optional missing 3"] : Array(repeating: "optional unexpected 0", count: times - 1)
        #expect(peer.found.sorted() == expected, "\(peer.found)")
    }

    @Test func `a roster push without a change is optional, but one with a change is not`() throws {
        func push(_ name: String) -> String {
            "<iq type='set' id='p'><query xmlns='jabber:iq:roster'><item jid='romeo@live.example' name='\(name)'/></query></iq>"
        }
        for (name, found) in [("R", "optional"), ("S", "behaviour")] {
            var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
                let answers = ReplayPeer.answer(client, text)
                guard text.contains("<presence") else {
                    return answers.map {
                        (
                            $0,
                            $1.replacing(
                                "<item jid='romeo@live.example'",
                                with: "<item name='R' jid='romeo@live.example'"
                            )
                        )
                    }
                }
                return answers + [(0, push(name))]
            }
            try peer.run()
            #expect(peer.found.contains("\(found) unexpected 0"), "\(name): \(peer.found)")
            #expect(peer.log.contains("0 <iq type='result' id='p'/>"))
        }
    }

    @Test func `a client with a lost connection is dropped before others receive its unavailable presence`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 2 ready romeo@capulet.example/orchard
            3 1 recv <presence from='romeo@capulet.example/orchard' type='unavailable'/>
            4 2 ended
            5 1 send <message id='m'/>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { _, _ in [] }
        try peer.run()
        let (left, sent) = (peer.log.firstIndex(of: "drop 1"), peer.log.firstIndex { $0.contains("<message") })
        #expect(try #require(left) < #require(sent), "\(peer.log)")
    }

    @Test(arguments: [
        ("not-authorized", []), ("account-disabled", ["behaviour session 0"]), (nil, ["behaviour session 0"]),
    ])
    func `a login refused in the recording must be refused again`(_ condition: String?, _ found: [String]) throws {
        let conversations = try RecordedText.refusedLogin()
        #expect(conversations.map(\.refusal) == ["not-authorized"] && conversations.allSatisfy(\.isComplete))
        var generator = ReplayGenerator(seed: 1)
        let account = (
            recorded: try JID(parsing: "juliet@capulet.example"), live: try JID(parsing: "juliet@live.example")
        )
        var replayer = Replayer(ReplayScript(conversations), accounts: [account], using: &generator)
        replayer.tick(at: 0)
        let first = replayer.next(at: 0)
        guard case .connect(0, nil)? = first else { throw KitError("no login: \(first as Any)") }
        if let condition {
            replayer.handle(.refused(condition), client: 0, at: 1)
        } else {
            replayer.handle(.bound(try JID(parsing: "juliet@live.example/x")), client: 0, at: 1)
        }
        for now in stride(from: Int64(0), to: 20, by: 1) { replayer.tick(at: now * 1_000_000_000) }
        while replayer.next(at: 20_000_000_000) != nil {}
        let words = replayer.divergences.map { "\($0.divergenceClass.rawValue) \($0.code.rawValue) 0" }
        #expect(words == found && replayer.progress.total == 1)
    }

    @Test func `the live server's capabilities are requested, and its URLs replace the recorded ones`() throws {
        let url = "https://up.capulet.example/0123456789/a.txt"
        let live = "https://up.live.example/abcdefghij/a.txt"
        func slot(_ url: String) -> String {
            "<slot xmlns='urn:xmpp:http:upload:0'><get url='\(url)'/></slot>"
        }
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq type='get' id='a' to='up.capulet.example'><request xmlns='urn:xmpp:http:upload:0'/></iq>
            3 1 recv <iq type='result' id='a' from='up.capulet.example'>\(slot(url))</iq>
            4 1 send <message to='romeo@capulet.example' id='m'><body>see \(url) there</body></message>
            5 1 recv <message from='romeo@capulet.example/x' id='n'><body>\(url)</body></message>
            """
        var peer = try ReplayPeer(text) { _, text in
            if text.contains("<request") {
                return [(0, "<iq type='result' id='ID' from='up.live.example'>\(slot(live))</iq>")]
            }
            return [(0, "<message from='romeo@live.example/x' id='n'><body>\(live)</body></message>")]
        }
        try peer.run()
        #expect(peer.log.contains { $0.contains("<body>see \(live) there</body>") }, "\(peer.log)")
        #expect(peer.found == [], "\(peer.replayer.divergences)")
    }

    @Test func `an event that arrives before its item is published depends on the server's earlier data`() throws {
        func event(_ id: String) -> String {
            "<message from='juliet@live.example'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='\(id)'/></items></event></message>"
        }
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <presence/>
            3 1 recv <presence from='juliet@capulet.example/balcony'/>
            4 1 send <iq type='set' id='p'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item/></publish></pubsub></iq>
            5 1 recv \(event("recorded").replacing("live", with: "capulet"))
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text.contains("<publish") else {
                return [(0, event("old")), (0, "<presence from='juliet@live.example/0'/>")]
            }
            return [(0, event("new"))]
        }
        try peer.run()
        #expect(peer.found == ["state unexpected 0"], "\(peer.replayer.divergences)")
    }

    @Test func `an event of a node that is not in the recording counts once as the server's earlier data`() throws {
        let event =
            "<message from='juliet@live.example'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='storage:bookmarks'><item id='current'/></items></event></message>"
        // An event of an equally named node of another account says nothing about this node.
        let other = "8 1 recv \(event)".replacing("live", with: "capulet").replacing("juliet", with: "romeo")
        for (count, found) in [(1, ["state unexpected 0"]), (2, ["behaviour unexpected 0", "state unexpected 0"])] {
            let text = ReplayPeer.roster.replacing("6 1 send", with: "\(other)\n9 1 send").replacing(
                "7 1",
                with: "10 1"
            )
            var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
                let events = [event.replacing("juliet", with: "romeo")] + (0..<count).map { _ in event }
                return ReplayPeer.answer(client, text) + (text == "<presence/>" ? events.map { (0, $0) } : [])
            }
            try peer.run()
            #expect(peer.found.sorted() == found, "\(peer.replayer.divergences)")
        }
    }

    @Test func `unavailable presence from a contact's server does not make the contact a puppet`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <presence/>
            3 1 recv <presence from='romeo@capulet.example' type='unavailable'/>
            4 1 recv <iq type='get' id='d' from='romeo@capulet.example'>\(Self.query)</iq>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both, puppets: ["romeo@capulet.example"]) { _, text in
            text == "<presence/>" ? [(0, "<presence from='romeo@live.example' type='unavailable'/>")] : []
        }
        try peer.run()
        #expect(peer.log.count { $0.hasPrefix("connect") } == 1, "\(peer.log)")
        #expect(peer.found == ["optional missing 4"])
    }

    /// Arguments: the texts of the events that arrive when the client publishes an item, and the divergences.
    @Test(arguments: [
        (["new", "new"], ["state unexpected 0"]), (["old", "new"], ["state unexpected 0"]),
        (["new", "new", "new"], ["state unexpected 0", "behaviour unexpected 0"]),
        (["old", "new", "other"], ["state unexpected 0", "behaviour unexpected 0"]),
    ])
    func `events of an earlier item and repeated events depend on the server's state`(
        _ events: [String],
        _ found: [String]
    ) throws {
        func event(_ text: String) -> String {
            "<message from='juliet@live.example'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='n'><item id='i'><a xmlns='urn:a'>\(text)</a></item></items></event></message>"
        }
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <iq type='set' id='p'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item/></publish></pubsub></iq>
            3 1 recv \(event("new").replacing("live", with: "capulet"))
            """
        var peer = try ReplayPeer(text) { _, _ in events.map { (0, event($0)) } }
        try peer.run()
        #expect(peer.found.sorted() == found.sorted(), "\(peer.replayer.divergences)")
    }

    /// Arguments: the recorded stanza after the client's own presence, the live stanzas after it, and the divergences.
    @Test(arguments: [
        // Presence of a contact that is not available, and of a contact that leaves.
        ("<presence from='nurse@live.example' type='unavailable'/>", [], ["optional missing 4"]),
        ("", ["<presence from='nurse@live.example' type='unavailable'/>"], ["optional unexpected 0"]),
        (
            "<presence from='nurse@live.example/a'/>",
            ["<presence from='nurse@live.example/a'/>", "<presence from='nurse@live.example/a' type='unavailable'/>"],
            ["behaviour unexpected 0"]
        ),
        // Presence again, with and without an avatar.
        (
            "<presence from='juliet@live.example/0'><x xmlns='vcard-temp:x:update'/></presence>", [],
            ["optional missing 4"]
        ),
        ("<presence from='juliet@live.example/0'><show>away</show></presence>", [], ["behaviour missing 4"]),
        // A request with the client itself as its sender.
        (
            "<iq type='get' id='q' from='juliet@live.example/0' to='juliet@live.example/0'>\(query)</iq>", [],
            ["optional missing 4"]
        ),
    ])
    func `presence that the clients do not cause is optional`(
        _ recorded: String,
        _ live: [String],
        _ found: [String]
    ) throws {
        let lines = recorded.isEmpty ? "" : "4 1 recv \(recorded.replacing("live", with: "capulet"))"
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence/>
            3 1 recv <presence from='juliet@capulet.example/0'/>
            \(lines)
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text == "<presence/>" else { return [] }
            return (["<presence from='juliet@live.example/0'/>"] + live).map { (0, $0) }
        }
        try peer.run()
        #expect(peer.found == found, "\(peer.replayer.divergences)")
    }

    @Test func `presence from a room itself is optional`() throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence to='hall@c.capulet.example/j' id='e'><x xmlns='http://jabber.org/protocol/muc'/></presence>
            3 1 recv <presence from='hall@c.capulet.example/j' id='e'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>
            """
        var peer = try ReplayPeer(text) { _, _ in
            [
                (0, "<presence from='hall@c.live.example'/>"),
                (0, "<presence from='hall@c.live.example' type='unavailable'/>"),
                (
                    0,
                    "<presence from='hall@c.live.example/j' id='ID'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>"
                ),
                (
                    0,
                    "<presence from='hall@c.live.example/k'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>"
                ),
            ]
        }
        try peer.run()
        #expect(
            peer.found.sorted() == ["behaviour unexpected 0", "optional unexpected 0", "optional unexpected 0"],
            "\(peer.found)"
        )
    }

    @Test func `stanzas that a client had not yet received when it left are optional`() throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence to='hall@c.capulet.example/j' type='unavailable'/>
            3 1 send <message to='hall@c.capulet.example' type='groupchat' id='m'><body>bye</body></message>
            4 1 send </stream:stream>
            5 1 ended
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text.contains("<message") else { return [] }
            return [
                (0, "<presence from='hall@c.live.example/j' type='unavailable'/>"),
                (0, "<message from='hall@c.live.example/j' type='groupchat' id='ID'><body>bye</body></message>"),
                (0, "<message from='hall@c.live.example/k' type='groupchat' id='k'><body>bye</body></message>"),
                (0, "<message from='hall@c.live.example' type='error' id='k'><error type='auth'/></message>"),
            ]
        }
        try peer.run()
        let found = (["behaviour", "behaviour", "optional", "optional"]).map { "\($0) unexpected 0" }
        #expect(peer.found.sorted() == found, "\(peer.replayer.divergences)")
    }

    @Test(arguments: [(true, ["optional missing 4"]), (false, ["behaviour missing 3"])])
    func `an error that arrived after the client had closed its stream is optional`(
        _ isClosed: Bool,
        _ found: [String]
    ) throws {
        let error = "recv <presence type='error' id='m' from='c.capulet.example'><error type='cancel'/></presence>"
        let end = "send </stream:stream>"
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence to='c.capulet.example' type='unavailable' id='m'/>
            3 1 \(isClosed ? end : error)
            4 1 \(isClosed ? error : end)
            5 1 ended
            """
        var peer = try ReplayPeer(text) { _, _ in [] }
        try peer.run()
        #expect(peer.found == found, "\(peer.replayer.divergences)")
    }

    /// Arguments: the stanza that the client received before it left, if any, and the class of an error for the
    /// client's stanza.
    @Test(arguments: [
        ("", "optional"), ("<message from='juliet@capulet.example' id='n'/>", "behaviour"),
    ])
    func `an error for a client's last stanza is optional, but one for an earlier stanza is not`(
        _ received: String,
        _ divergenceClass: String
    ) throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence to='hall@c.capulet.example/j' type='unavailable' id='m'/>
            3 1 recv \(received.isEmpty ? "<a xmlns='urn:xmpp:sm:3' h='1'/>" : received)
            4 1 send </stream:stream>
            5 1 ended
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text.contains("unavailable") else { return [] }
            let error = "<presence type='error' id='ID' from='hall@c.live.example/j'><error type='cancel'/></presence>"
            return [(0, error)] + (received.isEmpty ? [] : [(0, received.replacing("capulet", with: "live"))])
        }
        try peer.run()
        #expect(peer.found == ["\(divergenceClass) unexpected 0"], "\(peer.replayer.divergences)")
    }

    @Test func `a replay does not wait for a stanza that has already arrived in another form`() throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence/>
            3 1 recv <presence from='juliet@capulet.example/0'/>
            4 1 send <iq type='get' id='a'/>
            5 1 recv <presence from='nurse@capulet.example/0'><priority>1</priority></presence>
            6 1 recv <iq type='result' id='a'/>
            7 1 send <iq type='get' id='b'/>
            8 1 recv <iq type='result' id='b'/>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both + [("nurse@capulet.example", "nurse@live.example")]) {
            _,
            text in
            guard text.contains("<presence") else { return [(0, "<iq type='result' id='ID'/>")] }
            return [
                (0, "<presence from='nurse@live.example/0'/>"), (0, "<presence from='juliet@live.example/0'/>"),
            ]
        }
        try peer.run()
        #expect(peer.now < 5_000_000_000, "\(peer.log)")
        #expect(peer.found.count { $0.hasSuffix("changed 5") } == 1, "\(peer.found)")
    }

    @Test func `a replay waits once for a silent server, and again after the server has sent something`() throws {
        let request = (1...4).map { number in
            """
            \(number * 10) 1 send <iq type='get' id='q\(number)'/>
            \(number * 10 + 1) 1 recv <iq type='result' id='q\(number)'/>
            """
        }
        let text = "1 1 ready juliet@capulet.example/0\n" + request.joined(separator: "\n")
        for (answered, found, waits) in [
            ("-", ["behaviour missing 3"], 1),
            ("q3", ["behaviour missing 3", "behaviour missing 5", "behaviour missing 9"], 2),
        ] {
            var peer = try ReplayPeer(text) { _, text in
                text.contains("id='\(answered)") ? [(0, "<iq type='result' id='ID'/>")] : []
            }
            try peer.run()
            #expect(peer.found == found, "\(peer.found)")
            let second: Int64 = 1_000_000_000
            #expect(peer.now / (10 * second) == waits, "\(peer.now)")
        }
    }

    @Test func `an optional stanza is not paired with a missing one`() throws {
        func push(_ subscription: String) -> String {
            "<iq type='set' id='p'><query xmlns='jabber:iq:roster'><item jid='nurse@capulet.example' subscription='\(subscription)'/></query></iq>"
        }
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence/>
            3 1 recv \(push("to"))
            4 1 recv \(push("both"))
            """
        var peer = try ReplayPeer(text) { _, text in
            let pushes = text == "<presence/>" ? ["to", "to"] : []
            return pushes.map { (0, push($0).replacing("capulet", with: "live")) }
        }
        try peer.run()
        #expect(peer.found.sorted() == ["behaviour missing 4", "optional unexpected 0"], "\(peer.found)")
    }

    @Test func `a missing optional stanza is not paired with an unexpected one`() throws {
        let presence = "<presence from='romeo@capulet.example/1'><x xmlns='vcard-temp:x:update'/></presence>"
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence/>
            3 1 recv \(presence)
            4 1 recv \(presence)
            """
        let live = presence.replacing("capulet", with: "live")
        for (second, found) in [
            ("", ["optional missing 4"]),
            // Unavailable presence of a contact is not a changed form of its available presence.
            (
                "<presence type='unavailable' from='romeo@live.example/1'/>",
                ["behaviour unexpected 0", "optional missing 4"]
            ),
        ] {
            var peer = try ReplayPeer(text) { _, _ in ([live] + (second.isEmpty ? [] : [second])).map { (0, $0) } }
            try peer.run()
            #expect(peer.found.sorted() == found, "\(peer.replayer.divergences)")
        }
    }

    @Test(arguments: [false, true])
    func `presence of a contact that was offline is optional, even if its account was prepared`(
        _ prepares: Bool
    ) throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            1 2 ready romeo@capulet.example/1
            2 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            3 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'/></iq>
            4 1 recv <presence from='romeo@capulet.example' type='unavailable'/>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both, prepares: prepares) { client, text in
            guard text.contains("<iq") else { return [] }
            let isRoster = text.contains("type='get'") && text.contains("jabber:iq:roster")
            return [(client, "<iq type='result' id='ID'>\(isRoster ? "<query xmlns='jabber:iq:roster'/>" : "")</iq>")]
        }
        try peer.run()
        #expect(peer.replayer.failure == nil && peer.found == ["optional missing 5"], "\(peer.found) \(peer.log)")
    }

    @Test func `the reason text of a delay is ignored`() throws {
        let message = "<message from='romeo@capulet.example/1' id='m'><delay xmlns='urn:xmpp:delay'/></message>"
        let text = "1 1 ready juliet@capulet.example/0\n2 1 send <presence/>\n3 1 recv \(message)"
        var peer = try ReplayPeer(text) { _, _ in
            [(0, message.replacing("capulet", with: "live").replacing("/></m", with: ">Resent</delay></m"))]
        }
        try peer.run()
        #expect(peer.found == [], "\(peer.replayer.divergences)")
    }

    @Test func `an archive id is sent back as the live server gave it, even if its answer differs`() throws {
        func page(_ last: String, _ count: Int) -> String {
            "<iq type='result' id='ID'><fin xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'><last>\(last)</last><count>\(count)</count></set></fin></iq>"
        }
        func query(_ after: String) -> String {
            "<iq type='set' id='a\(after)'><query xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'><after>\(after)</after></set></query></iq>"
        }
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send \(query(""))
            3 1 recv \(page("recorded-id", 1).replacing("ID", with: "a"))
            4 1 send \(query("recorded-id"))
            """
        var peer = try ReplayPeer(text) { _, text in text.contains("<after></after>") ? [(0, page("live-id", 2))] : [] }
        try peer.run()
        #expect(peer.log.contains { $0.contains("<after>live-id</after>") }, "\(peer.log)")
    }

    @Test(arguments: [(["p", "p"], ["x", "y"]), (["p", "q"], ["x", "x"]), (["p", "p"], ["x", "x"])])
    func `each push is answered with its own id, even if the server reuses ids`(
        _ recorded: [String],
        _ live: [String]
    ) throws {
        func push(_ number: Int, _ id: String) -> String {
            "<iq type='set' id='\(id)' to='juliet@capulet.example/a'><block xmlns='urn:xmpp:blocking'><item jid='u\(number)@x'/></block></iq>"
        }
        let text = """
            1 1 ready juliet@capulet.example/a
            2 1 send <presence/>
            3 1 recv \(push(0, recorded[0]))
            4 1 recv \(push(1, recorded[1]))
            5 1 send <iq type='result' id='\(recorded[0])'/>
            6 1 send <iq type='result' id='\(recorded[1])'/>
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text == "<presence/>" else { return [] }
            return (0...1).map { (0, push($0, live[$0]).replacing("capulet.example/a", with: "live.example/0")) }
        }
        try peer.run()
        let answers = peer.log.filter { $0.contains("<iq") }.map {
            $0.contains("'x'") ? "x" : $0.contains("'y'") ? "y" : $0
        }
        #expect(answers == live && peer.found.isEmpty, "\(peer.log) \(peer.found)")
    }

    // MARK: The order of different clients

    @Test(arguments: [
        // In the order of the recording, after the server has handled the first.
        ("", ["0 left", "0 ping", "1 left"]),
        // In the order of the server, which a third client shows.
        ("50 3 recv R\n60 3 recv J\n", ["1 left", "1 ping", "0 left"]),
        ("50 3 recv J\n60 3 recv R\n", ["0 left", "0 ping", "1 left"]),
        // The first client received its own unavailable presence before the second client left.
        ("35 1 recv J\n", ["0 left", "1 left"]),
    ])
    func `clients leave a room in the order seen by the server`(_ lines: String, _ order: [String]) throws {
        func left(_ nick: String) -> String {
            "<presence from='hall@c.capulet.example/\(nick)' type='unavailable'><x xmlns='http://jabber.org/protocol/muc#user'/></presence>"
        }
        let text = """
            1 1 ready juliet@capulet.example/a
            1 2 ready romeo@capulet.example/b
            1 3 ready nurse@capulet.example/c
            30 1 send <presence to='hall@c.capulet.example/J' type='unavailable'/>
            40 2 send <presence to='hall@c.capulet.example/R' type='unavailable'/>
            \(lines.replacing("recv J", with: "recv \(left("J"))").replacing("recv R", with: "recv \(left("R"))"))
            90 1 send <iq type='get' id='e1'/>
            91 1 recv <iq type='result' id='e1'/>
            92 2 send <iq type='get' id='e2'/>
            93 2 recv <iq type='result' id='e2'/>
            94 3 send <iq type='get' id='e3'/>
            95 3 recv <iq type='result' id='e3'/>
            """
        let accounts = ["juliet", "romeo", "nurse"].map { ("\($0)@capulet.example", "\($0)@live.example") }
        var peer = try ReplayPeer(text, accounts) { client, text in
            guard text.contains("unavailable") else { return [(client, "<iq type='result' id='ID'/>")] }
            let nick = text.contains("/J'") ? "J" : "R"
            return (0...2).map { ($0, left(nick).replacing("capulet", with: "live")) }
        }
        try peer.run()
        let steps = peer.log.compactMap { line in
            line.contains("unavailable")
                ? "\(line.prefix(1)) left" : line.contains("<ping") ? "\(line.prefix(1)) ping" : nil
        }
        #expect(steps == order, "\(peer.log)")
    }

    /// Arguments: the stanzas that the client receives after its request, and the order in which the replay sends.
    @Test(arguments: [
        // The server delivers the message after it has unblocked the sender.
        (["answer", "message"], ["0 request", "0 ping", "1 message"]),
        (["message", "answer"], ["1 message", "1 ping", "0 request"]),
        // The server refuses the message.
        (["answer"], ["1 message", "1 ping", "0 request"]),
    ])
    func `a message is sent after a request if it was delivered after the request's answer`(
        _ received: [String],
        _ order: [String]
    ) throws {
        let items = [
            "answer": "<iq type='result' id='u'/>", "message": "<message from='romeo@capulet.example/1' id='m'/>",
        ]
        let lines = received.enumerated().map { "\(50 + $0) 1 recv \(items[$1] ?? "")" }
        let text = """
            1 1 ready juliet@capulet.example/0
            1 2 ready romeo@capulet.example/1
            30 2 send <message to='juliet@capulet.example' id='m'/>
            31 1 send <iq type='get' id='g'><blocklist xmlns='urn:xmpp:blocking'/></iq>
            32 1 recv <iq type='result' id='g'><blocklist xmlns='urn:xmpp:blocking'/></iq>
            40 1 send <iq type='set' id='u'><unblock xmlns='urn:xmpp:blocking'/></iq>
            \(lines.joined(separator: "\n"))
            90 2 send <iq type='get' id='e'/>
            91 2 recv <iq type='result' id='e'/>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
            if text.contains("<message") { return [(0, "<message from='romeo@live.example/1' id='ID'/>")] }
            let list = text.contains("<blocklist") ? "<blocklist xmlns='urn:xmpp:blocking'/>" : ""
            return [(client, "<iq type='result' id='ID'>\(list)</iq>")]
        }
        try peer.run()
        let steps = peer.log.compactMap { line in
            line.contains("<message")
                ? "\(line.prefix(1)) message"
                : line.contains("<ping") ? "\(line.prefix(1)) ping" : line.contains("<unblock") ? "0 request" : nil
        }
        #expect(steps == order, "\(peer.log)")
        #expect(peer.found.isEmpty == (received.count == 2), "\(peer.found)")
    }

    @Test func `an unanswered ping of the replay is a note`() throws {
        let text = """
            1 1 ready juliet@capulet.example/a
            1 2 ready romeo@capulet.example/b
            30 1 send <presence to='hall@c.capulet.example/J' type='unavailable'/>
            40 2 send <presence to='hall@c.capulet.example/R' type='unavailable'/>
            90 1 send <iq type='get' id='e1'/>
            91 1 recv <iq type='result' id='e1'/>
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { client, text in
            text.contains("id='e1") ? [(client, "<iq type='result' id='ID'/>")] : []
        }
        try peer.run()
        #expect(peer.log.contains { $0.contains("<ping") }, "\(peer.log)")
        #expect(peer.found == ["optional missing 0"], "\(peer.found)")
        var learner = NoiseLearner()
        for divergence in peer.replayer.divergences { learner.learn(divergence) }
        #expect(learner.rules.isEmpty && learner.unlearned.isEmpty)
    }

    @Test func `presence equal to an earlier one of the same client implies no order`() throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            1 2 ready romeo@capulet.example/1
            1 3 ready nurse@capulet.example/2
            30 2 send <presence/>
            31 1 send <presence><priority>1</priority></presence>
            32 2 send <presence><show>away</show></presence>
            33 3 recv <presence from='romeo@capulet.example/1'/>
            34 3 recv <presence from='juliet@capulet.example/0'><priority>1</priority></presence>
            35 3 recv <presence from='romeo@capulet.example/1'><show>away</show></presence>
            90 1 send <iq type='get' id='e1'/>
            91 2 send <iq type='get' id='e2'/>
            92 3 send <iq type='get' id='e3'/>
            """
        let accounts = ["juliet", "romeo", "nurse"].map { ("\($0)@capulet.example", "\($0)@live.example") }
        var peer = try ReplayPeer(text, accounts) { client, text in
            guard text.contains("<presence") else { return [(client, "<iq type='result' id='ID'/>")] }
            let from = client == 0 ? "juliet@live.example/0" : "romeo@live.example/1"
            return [(2, text.replacing("<presence", with: "<presence from='\(from)'"))]
        }
        try peer.run()
        let sent = peer.log.filter { $0.contains("<presence") }.map { $0.prefix(1) }
        #expect(sent == ["1", "0", "1"], "\(peer.log)")
    }
}
