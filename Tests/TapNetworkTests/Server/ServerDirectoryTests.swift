import Testing

@testable import TapNetwork

/// Tests stanzas between logged-in clients, without sockets.
@Suite struct ServerDirectoryTests {
    // MARK: Messages

    @Test func `a message is delivered with the sender's full JID`() throws {
        let harness = try ServerHarness()
        let (romeo, juliet) = (harness.login("romeo", resource: "r"), harness.login("juliet", resource: "j"))
        _ = (romeo.heard, juliet.heard)
        #expect(romeo.send("<message to='juliet@localhost' type='chat' id='1'><body>Hi 🙂</body></message>") == "")
        #expect(
            juliet.heard
                == """
                <message to='juliet@localhost' type='chat' id='1' from='romeo@localhost/r'><body>Hi 🙂</body></message>
                """
        )
    }

    @Test func `messages to a bare JID go to the resource of highest priority, and never to a negative one`() throws {
        let harness = try ServerHarness()
        let sender = harness.login("romeo", resource: "r")
        let phone = harness.login("juliet", resource: "phone", online: false)
        let authenticator = harness.login("juliet", resource: "desk", online: false)
        let robot = harness.login("juliet", resource: "robot", online: false)
        phone.send("<presence><priority>5</priority></presence>")
        authenticator.send("<presence><priority>1</priority></presence>")
        robot.send("<presence><priority>-1</priority></presence>")
        _ = (phone.heard, authenticator.heard, robot.heard)
        sender.send("<message to='juliet@localhost'><body>1</body></message>")
        #expect(phone.heard.contains("<body>1</body>") && authenticator.heard.isEmpty && robot.heard.isEmpty)
        sender.send("<message to='juliet@localhost' type='headline'><body>2</body></message>")
        #expect(phone.heard.contains("2") && authenticator.heard.contains("2") && robot.heard.isEmpty)
        sender.send("<message to='juliet@localhost/robot'><body>3</body></message>")
        #expect(robot.heard.contains("<body>3</body>"))
        sender.send("<message to='juliet@localhost/gone' type='chat'><body>4</body></message>")
        #expect(phone.heard.contains("<body>4</body>"))
    }

    @Test(arguments: [
        ("nobody@localhost", "", "service-unavailable"), ("juliet@localhost", "", "service-unavailable"),
        ("juliet@localhost", "type='groupchat'", "service-unavailable"),
        ("romeo@elsewhere", "", "remote-server-not-found"),
        ("localhost", "", "service-unavailable"), ("a@b@c", "", "jid-malformed"),
        ("nobody@localhost", "type='headline'", nil), ("nobody@localhost", "type='error'", nil),
        ("romeo@elsewhere", "type='error'", nil),
    ])
    func `an undeliverable message is answered according to its type`(to: String, type: String, condition: String?)
        throws
    {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        let answer = romeo.send("<message id='1' to='\(to)' \(type)/>")
        if let condition {
            #expect(answer.hasPrefix("<message type='error' id='1' from='\(to)' to='romeo@localhost/r'><error "))
            #expect(answer.contains("<\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"))
        } else {
            #expect(answer.isEmpty)
        }
    }

    @Test func `a message without to is delivered to the sender's account`() throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        #expect(
            romeo.send("<message><body>me</body></message>")
                == "<message from='romeo@localhost/r'><body>me</body></message>"
        )
    }

    // MARK: Requests

    @Test(arguments: [
        ("<ping xmlns='urn:xmpp:ping'/>", "localhost", ""), ("<ping xmlns='urn:xmpp:ping'/>", "romeo@localhost", ""),
        (
            "<query xmlns='jabber:iq:version'/>", "localhost",
            "<query xmlns='jabber:iq:version'><name>xmpptap</name><version>1</version></query>"
        ),
        (
            "<query xmlns='http://jabber.org/protocol/disco#items'/>", "localhost",
            "<query xmlns='http://jabber.org/protocol/disco#items'/>"
        ),
        (
            "<query xmlns='http://jabber.org/protocol/disco#info'/>", "localhost",
            """
            <query xmlns='http://jabber.org/protocol/disco#info'>\
            <identity category='server' type='im' name='xmpptap'/>\
            <feature var='http://jabber.org/protocol/disco#info'/>\
            <feature var='http://jabber.org/protocol/disco#items'/><feature var='urn:xmpp:ping'/>\
            <feature var='jabber:iq:roster'/><feature var='jabber:iq:version'/>\
            <feature var='jabber:iq:register'/></query>
            """
        ),
    ])
    func `the server answers the requests it supports`(request: String, to: String, payload: String) throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        let start = "<iq type='result' id='1' from='\(to)' to='romeo@localhost/r'"
        #expect(
            romeo.send("<iq type='get' id='1' to='\(to)'>\(request)</iq>")
                == (payload.isEmpty ? "\(start)/>" : "\(start)>\(payload)</iq>")
        )
    }

    @Test(arguments: [
        ("<iq type='get' id='1'><x xmlns='y'/></iq>", "service-unavailable"),
        ("<iq type='set' id='1'><ping xmlns='urn:xmpp:ping'/></iq>", "service-unavailable"),
        ("<iq type='get' id='1' to='juliet@localhost'><query xmlns='jabber:iq:roster'/></iq>", "service-unavailable"),
        ("<iq type='get' id='1' to='juliet@localhost/x'><x xmlns='y'/></iq>", "service-unavailable"),
        ("<iq type='get' id='1' to='localhost/x'><x xmlns='y'/></iq>", "service-unavailable"),
        ("<iq type='get' id='1' to='elsewhere'><x xmlns='y'/></iq>", "remote-server-not-found"),
        ("<iq type='get' id='1' to='@'><x xmlns='y'/></iq>", "jid-malformed"),
        ("<iq type='get' id='1'/>", "bad-request"),
        ("<iq type='get' id='1'><a xmlns='b'/><c xmlns='d'/></iq>", "bad-request"),
        ("<iq type='query' id='1'><x xmlns='y'/></iq>", "bad-request"),
        ("<iq id='1'><x xmlns='y'/></iq>", "bad-request"),
        ("<iq type='get'><x xmlns='y'/></iq>", "bad-request"),
        (
            "<iq type='get' id='1' to='localhost'><query xmlns='http://jabber.org/protocol/disco#info' node='n'/></iq>",
            "item-not-found"
        ),
    ])
    func `each unsupported request gets exactly one error`(request: String, condition: String) throws {
        let romeo = try ServerHarness().login("romeo", resource: "r")
        let answer = romeo.send(request)
        #expect(answer.hasPrefix("<iq type='error'"))
        #expect(answer.ranges(of: "<iq").count == 1)
        #expect(answer.contains("<\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"))
    }

    @Test(arguments: ["<iq type='result' id='1'/>", "<iq type='error' id='1' to='localhost'/>"])
    func `an IQ result or error is never answered`(answer: String) throws {
        #expect(try ServerHarness().login("romeo", resource: "r").send(answer) == "")
    }

    @Test func `a request to another client and its answer are relayed`() throws {
        let harness = try ServerHarness()
        let (romeo, juliet) = (harness.login("romeo", resource: "r"), harness.login("juliet", resource: "j"))
        _ = (romeo.heard, juliet.heard)
        #expect(romeo.send("<iq type='get' id='q' to='juliet@localhost/j'><ping xmlns='urn:xmpp:ping'/></iq>") == "")
        #expect(
            juliet.heard
                == """
                <iq type='get' id='q' to='juliet@localhost/j' from='romeo@localhost/r'><ping xmlns='urn:xmpp:ping'/></iq>
                """
        )
        juliet.send("<iq type='result' id='q' to='romeo@localhost/r'/>")
        #expect(romeo.heard == "<iq type='result' id='q' to='romeo@localhost/r' from='juliet@localhost/j'/>")
    }

    // MARK: Registration

    @Test func `a new user registers an account, logs in and removes the account`() throws {
        let harness = try ServerHarness()
        let stranger = harness.connect()
        stranger.send(ServerHarness.header)
        #expect(
            stranger.send("<iq type='get' id='1'><query xmlns='jabber:iq:register'/></iq>").contains(
                "<username/><password/></query></iq>"
            )
        )
        func register(_ fields: String) -> String {
            stranger.send("<iq type='set' id='2'><query xmlns='jabber:iq:register'>\(fields)</query></iq>")
        }
        #expect(register("<username>Romeo</username><password>x</password>").contains("<conflict "))
        #expect(register("<username>a b</username><password>x</password>").contains("<not-acceptable "))
        #expect(register("<username>tybalt</username>").contains("<not-acceptable "))
        #expect(register("<username>tybalt</username><password>x</password>") == "<iq type='result' id='2'/>")
        let tybalt = harness.login("tybalt", "x", resource: "t")
        let change = "<username>tybalt</username><password>y</password>"
        #expect(
            tybalt.send("<iq type='set' id='3'><query xmlns='jabber:iq:register'>\(change)</query></iq>").contains(
                "type='result'"
            )
        )
        let again = harness.login("tybalt", "y", resource: "u")
        let removal = tybalt.send(
            "<iq type='set' id='4'><query xmlns='jabber:iq:register'><remove/></query></iq>"
        )
        #expect(removal.contains("<iq type='result' id='4'"))
        #expect(removal.contains("<stream:error><not-authorized"))
        #expect(tybalt.isClosed && again.isClosed)
    }

    @Test func `registration can be disabled, and is limited`() throws {
        for change in [{ $0.allowsRegistration = false }, { $0.accountLimit = 2 }] as [(inout ServerSettings) -> Void] {
            let stranger = try ServerHarness(change).connect()
            stranger.send(ServerHarness.header)
            let answer = stranger.send(
                """
                <iq type='set' id='2'><query xmlns='jabber:iq:register'><username>tybalt</username>\
                <password>x</password></query></iq>
                """
            )
            #expect(answer.contains("<not-allowed ") || answer.contains("<resource-constraint "))
        }
    }
}
