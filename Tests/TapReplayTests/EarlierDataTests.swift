import TapRecord
import TapReplay
import Testing
import XMPPCore

/// Tests of data that the recorded server or the live server had stored before.
@Suite struct EarlierDataTests {
    private static func event(_ node: String, _ value: String, of user: String = "juliet") -> String {
        "<message from='\(user)@live.example'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='\(node)'><item id='i'><a xmlns='urn:a'>\(value)</a></item></items></event></message>"
    }

    private static func publish(_ node: String) -> String {
        "<iq type='set' id='p'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='\(node)'><item/></publish></pubsub></iq>"
    }

    private func recorded(_ text: String) -> String { text.replacing("live", with: "capulet") }

    /// Arguments: the published node, the node of the events, the owner of that node, and the divergences if no event
    /// arrives.
    @Test(arguments: [
        ("n", "n", "juliet", ["state missing 3", "behaviour missing 5"]),
        ("other", "n", "juliet", ["state missing 3", "state missing 5"]),
        ("n", "n", "romeo", ["state missing 3", "state missing 5"]),
        ("urn:xmpp:bookmarks:1", "storage:bookmarks", "juliet", ["state missing 3", "behaviour missing 5"]),
    ])
    func `an event recorded before a client published depends on the server's data, later ones do not`(
        _ published: String,
        _ node: String,
        _ user: String,
        _ found: [String]
    ) throws {
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence/>
            3 1 recv \(recorded(Self.event(node, "old", of: user)))
            4 1 send \(Self.publish(published))
            5 1 recv \(recorded(Self.event(node, "new", of: user)))
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { _, _ in [] }
        try peer.run()
        // Romeo is not played, so his events are not expected.
        let expected = user == "juliet" ? found : found.map { $0.replacing("state", with: "peer-absent") }
        #expect(peer.found == expected, "\(peer.replayer.divergences)")
    }

    /// Arguments: the client's first stanza, the recorded hash, the live hash, and the class of the divergence.
    @Test(arguments: [
        ("<message id='m'/>", "", "0123", "state"), ("<message id='m'/>", "4567", "", "state"),
        // The hash belongs to a vCard that the client stores.
        ("<iq type='set' id='v'><vCard xmlns='vcard-temp'><FN>J</FN></vCard></iq>", "4567", "", "behaviour"),
        (publish("urn:xmpp:avatar:metadata"), "4567", "", "behaviour"),
    ])
    func `an avatar hash that no client has sent depends on the server's data`(
        _ first: String,
        _ old: String,
        _ new: String,
        _ divergenceClass: String
    ) throws {
        func presence(_ hash: String) -> String {
            "<presence from='juliet@live.example/0'><x xmlns='vcard-temp:x:update'><photo>\(hash)</photo></x></presence>"
        }
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send \(first)
            3 1 send <presence/>
            4 1 recv \(recorded(presence(old)))
            """
        var peer = try ReplayPeer(text) { _, text in text == "<presence/>" ? [(0, presence(new))] : [] }
        try peer.run()
        #expect(peer.found == ["\(divergenceClass) changed 4"], "\(peer.replayer.divergences)")
    }

    @Test func `an avatar hash other than the one a client sent is a difference of behaviour`() throws {
        let update = "<x xmlns='vcard-temp:x:update'><photo>4567</photo></x>"
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send <presence>\(update)</presence>
            3 1 recv <presence from='juliet@capulet.example/0'>\(update)</presence>
            """
        var peer = try ReplayPeer(text) { _, _ in
            [(0, "<presence from='juliet@live.example/0'>\(update.replacing("4567", with: ""))</presence>")]
        }
        try peer.run()
        #expect(peer.found == ["behaviour changed 3"], "\(peer.replayer.divergences)")
    }

    /// Arguments: whether the live server has named the item, and the class of the divergence.
    @Test(arguments: [(false, "state"), (true, "behaviour")])
    func `an archive that lacks a page's item is a difference of state, unless the server named the item`(
        _ isNamed: Bool,
        _ divergenceClass: String
    ) throws {
        func page(_ last: String) -> String {
            "<iq type='result' id='ID'><fin xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'>\(last)</set></fin></iq>"
        }
        func query(_ id: String, _ set: String) -> String {
            "<iq type='set' id='\(id)'><query xmlns='urn:xmpp:mam:2'><set xmlns='http://jabber.org/protocol/rsm'>\(set)</set></query></iq>"
        }
        let text = """
            1 1 ready juliet@capulet.example/0
            2 1 send \(query("a", "<max>1</max>"))
            3 1 recv \(page("<last>recorded</last>").replacing("ID", with: "a"))
            4 1 send \(query("b", "<after>recorded</after>"))
            5 1 recv \(page("<last>other</last>").replacing("ID", with: "b"))
            """
        var peer = try ReplayPeer(text) { _, text in
            guard text.contains("<after>") else { return [(0, page(isNamed ? "<last>live</last>" : ""))] }
            return [
                (
                    0,
                    "<iq type='error' id='ID'><error type='modify'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
                )
            ]
        }
        try peer.run()
        #expect(peer.found.last == "\(divergenceClass) changed 5", "\(peer.replayer.divergences)")
    }

    /// Arguments: the feature in the client's recorded answer, if any; whether the server sends the event; and the
    /// divergences.
    @Test(arguments: [
        // Only the received events show in which nodes the client is interested.
        ("", true, []), ("", false, ["state missing 6"]),
        // The client's own answer was recorded.
        ("f", true, []), ("f", false, ["behaviour missing 6"]),
    ])
    func `a client with cached capabilities is answered with the nodes of its received events`(
        _ feature: String,
        _ sendsEvents: Bool,
        _ found: [String]
    ) throws {
        func query(_ node: String) -> String {
            "<query xmlns='http://jabber.org/protocol/disco#info' node='\(node)'/>"
        }
        func answer(_ node: String) -> String {
            query(node).replacing("/>", with: "><feature var='f'/></query>")
        }
        // The recording contains the first client's answer, or only the answer of another client with other
        // capabilities.
        let (client, node) = feature.isEmpty ? (2, "other#v") : (1, "n#v")
        let text = """
            1 1 ready juliet@capulet.example/0
            1 2 ready romeo@capulet.example/1
            2 \(client) recv <iq type='get' id='d' from='capulet.example'>\(query(node))</iq>
            3 \(client) send <iq type='result' id='d' to='capulet.example'>\(answer(node))</iq>
            4 1 send \(Self.publish("urn:n"))
            5 1 recv \(recorded(Self.event("urn:n", "new")))
            """
        var peer = try ReplayPeer(text, ReplayPeer.both) { _, text in
            if text.contains("<publish") {
                return [(0, "<iq type='get' id='q' from='live.example'>\(query("n#v"))</iq>")]
            }
            return text.contains("id='q'") && sendsEvents ? [(0, Self.event("urn:n", "new"))] : []
        }
        try peer.run()
        let sent = try #require(peer.log.first { $0.contains("id='q'") })
        #expect(sent.contains("<feature var='urn:n+notify'/>") == feature.isEmpty, "\(peer.log)")
        #expect(sent.contains("var='f'") == !feature.isEmpty, "\(peer.log)")
        #expect(peer.found.filter { !$0.hasPrefix("optional") } == found, "\(peer.replayer.divergences)")
    }
}
