import Testing

@testable import TapNetwork

/// Tests rosters, presence and subscriptions, without sockets.
@Suite struct ServerRosterTests {
    private let get = "<iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>"

    private func set(_ item: String) -> String {
        "<iq type='set' id='2'><query xmlns='jabber:iq:roster'>\(item)</query></iq>"
    }

    @Test func `each account's roster has the other account and one more contact`() throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        #expect(
            romeo.send(get)
                == """
                <iq type='result' id='1' to='romeo@localhost/r'><query xmlns='jabber:iq:roster'>\
                <item jid='juliet@localhost' name='juliet' subscription='both'/>\
                <item jid='nurse@localhost' name='Nurse' subscription='both'><group>Household</group></item></query></iq>
                """
        )
    }

    @Test func `a roster change is answered, and pushed to each resource that requested the roster`() throws {
        let harness = try ServerHarness()
        let one = harness.login("romeo", resource: "1")
        let other = harness.login("romeo", resource: "2")
        let third = harness.login("romeo", resource: "3")
        one.send(get)
        other.send(get)
        _ = third.heard
        let answer = one.send(set("<item jid='Paris@localhost/x' name='&lt;P&gt;'><group>a</group></item>"))
        let item = """
            <item jid='Paris@localhost' name='&lt;P>' subscription='none'><group>a</group></item>
            """
        #expect(answer.hasPrefix("<iq type='result' id='2' to='romeo@localhost/1'/>"))
        for (heard, resource) in [(answer, "1"), (other.heard, "2")] {
            #expect(
                heard.hasSuffix(
                    """
                    <iq type='set' id='push' to='romeo@localhost/\(resource)'><query xmlns='jabber:iq:roster'>\
                    \(item)</query></iq>
                    """
                )
            )
        }
        #expect(third.heard.isEmpty)
        #expect(one.send(get).contains(item))
        #expect(one.send(set("<item jid='paris@localhost' subscription='remove'/>")).contains("subscription='remove'"))
        #expect(!one.send(get).contains("aris@localhost"))
    }

    @Test(arguments: [
        ("", "bad-request"), ("<item/>", "bad-request"), ("<item jid='a@b'/><item jid='c@d'/>", "bad-request"),
        ("<item jid='@'/>", "jid-malformed"), ("<item jid='romeo@localhost'/>", "not-allowed"),
        ("<item jid='a@b' subscription='remove'/>", "item-not-found"),
        ("<item jid='a@b'><group/></item>", "not-acceptable"),
        ("<item jid='a@b'><group>g</group><group>g</group></item>", "bad-request"),
    ])
    func `an invalid roster change is refused`(item: String, condition: String) throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        #expect(romeo.send(set(item)).contains("<\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"))
    }

    @Test func `the size of a roster is limited`() throws {
        let romeo = try ServerHarness { $0.rosterLimit = 3 }.login("romeo", resource: "r")
        #expect(romeo.send(set("<item jid='a@b'/>")).contains("type='result'"))
        #expect(romeo.send(set("<item jid='c@d'/>")).contains("<resource-constraint "))
        #expect(romeo.send("<presence type='subscribe' to='e@localhost'/>").contains("<resource-constraint "))
        #expect(romeo.send(set("<item jid='a@b' name='x'/>")).contains("type='result'"))
    }

    // MARK: Presence

    @Test func `presence is exchanged with contacts when a client comes and when it goes`() throws {
        let harness = try ServerHarness()
        let romeo = harness.login("romeo", resource: "r", online: false)
        romeo.send("<presence><show>away</show></presence>")
        let juliet = harness.login("juliet", resource: "j", online: false)
        _ = romeo.heard
        #expect(
            juliet.send("<presence/>")
                == """
                <presence from='juliet@localhost/j' to='juliet@localhost'/>\
                <presence from='romeo@localhost/r' to='juliet@localhost/j'><show>away</show></presence>
                """
        )
        #expect(romeo.heard == "<presence from='juliet@localhost/j' to='romeo@localhost'/>")
        #expect(
            juliet.send("<presence type='unavailable'><status>bye</status></presence>")
                == """
                <presence type='unavailable' from='juliet@localhost/j' to='juliet@localhost'>\
                <status>bye</status></presence>
                """
        )
        #expect(romeo.heard.contains("<presence type='unavailable' from='juliet@localhost/j'"))
        juliet.send("<presence/>")
        _ = romeo.heard
        juliet.drop()
        #expect(romeo.heard == "<presence type='unavailable' from='juliet@localhost/j' to='romeo@localhost'/>")
    }

    @Test func `directed presence ends with the connection`() throws {
        let harness = try ServerHarness()
        let stranger = harness.connect()
        stranger.send(ServerHarness.header)
        stranger.send(
            """
            <iq type='set' id='2'><query xmlns='jabber:iq:register'><username>paris</username>\
            <password>x</password></query></iq>
            """
        )
        let paris = harness.login("paris", "x", resource: "p")
        let juliet = harness.login("juliet", resource: "j")
        _ = juliet.heard
        paris.send("<presence to='juliet@localhost/j'/>")
        #expect(juliet.heard == "<presence from='paris@localhost/p' to='juliet@localhost/j'/>")
        paris.drop()
        #expect(juliet.heard == "<presence type='unavailable' from='paris@localhost/p' to='juliet@localhost/j'/>")
    }

    @Test func `directed presence is remembered only for JIDs that received it, up to a limit`() throws {
        let harness = try ServerHarness()
        let juliet = harness.login("juliet", resource: "j")
        let romeo = harness.login("romeo", resource: "r", online: false)
        romeo.send("<presence to='juliet@localhost/j'/><presence to='juliet@localhost'/>")
        for number in 0..<10 { romeo.send("<presence to='juliet@localhost/x\(number)'/>") }
        // A resource that did not exist then has received nothing.
        let later = harness.login("juliet", resource: "x1")
        _ = (juliet.heard, later.heard)
        romeo.drop()
        #expect(juliet.heard.ranges(of: "<presence type='unavailable' from='romeo@localhost/r'").count == 2)
        #expect(!later.heard.contains("to='juliet@localhost/x1'"))
    }

    @Test func `a subscription is requested, approved and cancelled`() throws {
        let harness = try ServerHarness()
        let stranger = harness.connect()
        stranger.send(ServerHarness.header)
        stranger.send(
            """
            <iq type='set' id='2'><query xmlns='jabber:iq:register'><username>paris</username>\
            <password>x</password></query></iq>
            """
        )
        let paris = harness.login("paris", "x", resource: "p")
        paris.send(get)
        #expect(
            paris.send("<presence type='subscribe' to='juliet@localhost'><status>please</status></presence>").contains(
                "<item jid='juliet@localhost' subscription='none' ask='subscribe'/>"
            )
        )
        // Juliet was offline when the subscription was requested; she gets the request when she comes online.
        let juliet = harness.login("juliet", resource: "j", online: false)
        juliet.send(get)
        #expect(juliet.send("<presence/>").contains("<presence type='subscribe' from='paris@localhost'"))
        _ = paris.heard
        #expect(
            juliet.send("<presence type='subscribed' to='paris@localhost'/>").contains(
                "<item jid='paris@localhost' subscription='from'/>"
            )
        )
        let heard = paris.heard
        #expect(heard.contains("<item jid='juliet@localhost' subscription='to'/>"))
        #expect(heard.contains("<presence type='subscribed' from='juliet@localhost' to='paris@localhost'/>"))
        #expect(heard.contains("<presence from='juliet@localhost/j' to='paris@localhost'/>"))
        #expect(
            juliet.send("<presence type='unsubscribed' to='paris@localhost'/>").contains(
                "<item jid='paris@localhost' subscription='none'/>"
            )
        )
        let end = paris.heard
        #expect(end.contains("<presence type='unavailable' from='juliet@localhost/j' to='paris@localhost'/>"))
        #expect(end.contains("<item jid='juliet@localhost' subscription='none'/>"))
        #expect(end.contains("<presence type='unsubscribed' from='juliet@localhost' to='paris@localhost'/>"))
    }

    @Test func `removing a contact ends both subscriptions`() throws {
        let harness = try ServerHarness()
        let (romeo, juliet) = (harness.login("romeo", resource: "r"), harness.login("juliet", resource: "j"))
        juliet.send(get)
        #expect(romeo.send(set("<item jid='juliet@localhost' subscription='remove'/>")).contains("type='result'"))
        let heard = juliet.heard
        #expect(heard.contains("<presence type='unsubscribe' from='romeo@localhost' to='juliet@localhost'/>"))
        #expect(heard.contains("<presence type='unsubscribed' from='romeo@localhost' to='juliet@localhost'/>"))
        #expect(heard.contains("<item jid='romeo@localhost' name='romeo' subscription='none'/>"))
        #expect(heard.contains("<presence type='unavailable' from='romeo@localhost/r' to='juliet@localhost'/>"))
        juliet.send("<presence><show>dnd</show></presence>")
        #expect(!romeo.heard.contains("dnd"))
    }

    @Test(arguments: ["<presence to='elsewhere'/>", "<presence type='nonsense'/>", "<presence type='probe'/>"])
    func `invalid or undeliverable presence is answered with an error`(presence: String) throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        #expect(romeo.send(presence).hasPrefix("<presence type='error'"))
    }

    @Test func `a presence probe is answered only for subscribed contacts`() throws {
        let harness = try ServerHarness()
        let (romeo, juliet) = (harness.login("romeo", resource: "r"), harness.login("juliet", resource: "j"))
        _ = (romeo.heard, juliet.heard)
        #expect(
            romeo.send("<presence type='probe' to='juliet@localhost'/>")
                == "<presence from='juliet@localhost/j' to='romeo@localhost/r'/>"
        )
        romeo.send(set("<item jid='juliet@localhost' subscription='remove'/>"))
        #expect(romeo.send("<presence type='probe' to='juliet@localhost'/>") == "")
    }
}
