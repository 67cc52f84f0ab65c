import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapDiagnosis
import TapRecord

/// Tests of the streams of components, of servers, of clients with authentication before SASL, and of clients with
/// SASL2.
@Suite struct OtherStreamsTests {
    private static func steps(_ harness: borrowing SessionHarness) -> [String] {
        harness.told(code: LoginStep.code).compactMap(\.record.messageText)
    }

    /// Returns the messages of the records about items, at level info and above.
    private static func words(_ harness: borrowing SessionHarness) -> [String] {
        harness.told.filter { $0.record.level <= .info && $0.record.direction != nil }.compactMap(\.record.messageText)
    }

    // MARK: Components

    @Test func `a component logs in by its handshake`() {
        var harness = SessionHarness()
        harness.say(Conversations.component)
        #expect(Self.steps(harness) == ["connect: ok", "stream-open: ok", "handshake: ok", "ready: ok"])
        #expect(
            Self.words(harness) == [
                "of a component", "component sent its handshake (hash of stream ID and secret)",
                "server accepted the handshake",
            ]
        )
        #expect(harness.info.jid == "plays.example.org")
        #expect(harness.info.authentication == .succeeded)
    }

    @Test func `a component with a wrong secret has a failed login`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.component.prefix(3)))
        harness.recv(
            "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
        )
        #expect(Self.steps(harness).last == "handshake: failed, not-authorized")
        #expect(harness.info.authentication == .failed(condition: "not-authorized"))
        let record = try #require(harness.told(code: "stream-error").first?.record)
        #expect(record.sasl?["mechanism"] == "handshake")
        #expect(record.sasl?["step"] == "failure")
    }

    @Test func `users of a component may use the same identifiers`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.component.prefix(4)))
        let ping = "<ping xmlns='urn:xmpp:ping'/>"
        harness.send("<iq type='get' id='1' from='a@plays.example.org' to='x@example.org/r'>\(ping)</iq>")
        harness.send("<iq type='get' id='1' from='b@plays.example.org' to='x@example.org/r'>\(ping)</iq>")
        let asked = harness.told.filter { $0.text($0.record.type) == "get" }.map(\.record.sequence)
        harness.recv("<iq type='result' id='1' to='b@plays.example.org' from='x@example.org/r'/>")
        harness.recv("<iq type='result' id='1' to='a@plays.example.org' from='x@example.org/r'/>")
        let answers = harness.told.filter { $0.text($0.record.type) == "result" }.compactMap(\.record.answers)
        #expect(answers == asked.reversed())
    }

    // MARK: Servers

    private static let header =
        "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' "
        + "xmlns:db='jabber:server:dialback' "

    private static func servers() -> SessionHarness {
        var harness = SessionHarness()
        harness.send(header + "from='montague.example' to='capulet.example' version='1.0'>")
        harness.recv(header + "from='capulet.example' to='montague.example' id='D60000229F' version='1.0'>")
        harness.recv(
            "<stream:features><dialback xmlns='urn:xmpp:features:dialback'><errors/></dialback></stream:features>"
        )
        return harness
    }

    private static let key =
        "<db:result from='montague.example' to='capulet.example'>b4835385f37fe2895af6c196b59097b1"
        + "</db:result>"

    @Test func `a server is authenticated by dialback`() throws {
        var harness = Self.servers()
        harness.send(Self.key)
        harness.recv("<db:result from='capulet.example' to='montague.example' type='valid'/>")
        #expect(
            Self.steps(harness) == ["connect: ok", "stream-open: ok", "features: ok", "dialback: ok", "ready: ok"]
        )
        let loginStep = try #require(
            harness.told(code: LoginStep.code).first { $0.record.details?["step"] == "dialback" }
        )
        #expect(loginStep.record.details?["from"] == "montague.example")
        #expect(loginStep.record.details?["to"] == "capulet.example")
        #expect(harness.info.jid == "montague.example")
        #expect(harness.info.kind == .server)
        #expect(
            Self.words(harness) == [
                "of a server", "offers dialback (errors)", "dialback key for its domain",
                "dialback succeeded: the domain is verified",
            ]
        )
        #expect(!harness.told.contains { $0.xml?.contains("b4835385") == true })
    }

    @Test func `a server without a version is authenticated by dialback`() {
        var harness = SessionHarness()
        harness.send(Self.header + ">")
        harness.recv(Self.header + "id='D60000229F'>")
        harness.send(Self.key)
        harness.recv("<db:result from='capulet.example' to='montague.example' type='valid'/>")
        #expect(Self.steps(harness) == ["connect: ok", "stream-open: ok", "dialback: ok", "ready: ok"])
        #expect(Self.words(harness).prefix(2) == ["of a server, before version 1.0", "before version 1.0"])
    }

    @Test(
        arguments: [
            ("type='invalid'/>", "dialback: failed, dialback failed: the domain is not verified", "invalid"),
            (
                "type='error'><error type='cancel'><remote-server-not-found "
                    + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></db:result>",
                "dialback: failed, remote-server-not-found, dialback could not be performed", "remote-server-not-found"
            ),
            (
                "type='error'/>", "dialback: failed, undefined-condition, dialback could not be performed",
                "undefined-condition"
            ),
        ]
    ) func `failed dialback is an error with its reason`(answer: String, loginStep: String, condition: String) throws {
        var harness = Self.servers()
        harness.send(Self.key)
        harness.recv("<db:result from='capulet.example' to='montague.example' " + answer)
        #expect(Self.steps(harness).last == loginStep)
        #expect(harness.info.authentication == .failed(condition: condition))
        let record = try #require(harness.told(code: "dialback-failed").first?.record)
        #expect(record.level == .error)
        #expect(harness.info.opened == nil)
    }

    @Test func `a stream that only verifies keys counts as logged in after the answer`() {
        var harness = Self.servers()
        harness.send(
            "<db:verify from='montague.example' to='capulet.example' id='417GAF25'>b4835385f37fe289</db:verify>"
        )
        let isPastLogin = harness.session.isPastLogin
        #expect(!isPastLogin)
        harness.recv("<db:verify from='capulet.example' to='montague.example' type='valid' id='417GAF25'/>")
        let isPastLoginNow = harness.session.isPastLogin
        #expect(isPastLoginNow)
        #expect(harness.info.opened == nil)
        #expect(Self.steps(harness).last == "dialback-verify: ok")
        harness.send("<db:verify from='montague.example' to='capulet.example' id='2'>b4835385f37fe289</db:verify>")
        harness.recv("<db:verify from='capulet.example' to='montague.example' type='invalid' id='2'/>")
        #expect(Self.steps(harness).last == "dialback-verify: failed, the dialback key is invalid")
        #expect(!harness.told.contains { $0.xml?.contains("b4835385") == true })
    }

    @Test func `several pairs of domains in one stream are distinguished`() {
        var harness = Self.servers()
        for name in ["a", "b"] {
            harness.send("<db:result from='\(name).montague.example' to='capulet.example'>k</db:result>")
        }
        harness.recv("<db:result from='capulet.example' to='b.montague.example' type='valid'/>")
        harness.recv("<db:result from='capulet.example' to='a.montague.example' type='invalid'/>")
        let steps = harness.told(code: LoginStep.code).filter { $0.record.details?["step"] == "dialback" }
        #expect(steps.map { $0.record.details?["from"] } == ["b.montague.example", "a.montague.example"])
        #expect(steps.map { $0.record.details?["outcome"] } == ["ok", "failed"])
        #expect(harness.info.authentication == .succeeded)
    }

    @Test func `requests between servers are matched only on bidirectional streams`() {
        for isBidirectional in [false, true] {
            var harness = Self.servers()
            if isBidirectional { harness.send("<bidi xmlns='urn:xmpp:bidi'/>") }
            harness.send(Self.key)
            harness.recv("<db:result from='capulet.example' to='montague.example' type='valid'/>")
            harness.send(
                "<iq type='get' id='1' from='r@montague.example' to='capulet.example'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
            harness.recv("<iq type='result' id='1' to='r@montague.example' from='capulet.example'/>")
            harness.send(
                "<iq type='get' id='2' from='r@montague.example' to='capulet.example'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
            harness.end(.client)
            harness.close()
            #expect(harness.told.contains { $0.record.answers != nil } == isBidirectional)
            #expect(harness.info.unanswered == (isBidirectional ? 1 : 0))
        }
    }

    @Test func `a server with a trusted certificate needs no dialback`() {
        var harness = Self.servers()
        harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>")
        harness.recv("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        harness.send(Self.header + "from='montague.example' to='capulet.example' version='1.0'>")
        harness.recv(Self.header + "from='capulet.example' id='2' version='1.0'><stream:features/>")
        #expect(Self.steps(harness).suffix(4) == ["sasl: ok", "stream-open: ok", "features: ok", "ready: ok"])
        #expect(harness.info.jid == "montague.example")
    }

    @Test func `subscriptions between servers are not recorded for one account`() {
        var harness = Self.servers()
        harness.send(Self.key)
        harness.recv("<db:result from='capulet.example' to='montague.example' type='valid'/>")
        harness.send("<presence type='subscribe' from='r@montague.example' to='j@capulet.example'/>")
        #expect(harness.told(code: Record.Code.subscription).isEmpty)
    }

    // MARK: Authentication before SASL

    @Test func `legacy authentication has its steps`() {
        var harness = SessionHarness()
        harness.say(Conversations.legacyLogin)
        #expect(
            Self.steps(harness) == [
                "connect: ok", "stream-open: ok", "legacy-auth: ok", "legacy-auth: ok", "ready: ok",
            ]
        )
        let steps = harness.told(code: LoginStep.code).compactMap { $0.record.details?["phase"] }
        #expect(steps == ["fields", "login"])
        let methods = harness.told(code: LoginStep.code).compactMap { $0.record.details?["method"] }
        #expect(methods == ["digest"])
        #expect(Self.words(harness).prefix(2) == ["before version 1.0", "before version 1.0"])
    }

    @Test func `a wrong password in legacy authentication is an error`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.legacyLogin.prefix(5)))
        harness.recv(
            "<iq type='error' id='a2'><error code='401' type='auth'><not-authorized "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
        )
        #expect(Self.steps(harness).last == "legacy-auth: failed, not-authorized")
        let record = try #require(harness.told(code: "stanza-error").first?.record)
        #expect(record.level == .error)
        #expect(harness.info.authentication == .failed(condition: "not-authorized"))
    }

    @Test func `registration is a step of the login, but not of an open session`() {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        let submit =
            "<query xmlns='jabber:iq:register'><username>bill</username><password>Calliope</password></query></iq>"
        harness.send("<iq type='get' id='1'><query xmlns='jabber:iq:register'/></iq>")
        harness.recv("<iq type='result' id='1'><query xmlns='jabber:iq:register'><username/></query></iq>")
        harness.send("<iq type='set' id='2'>" + submit)
        harness.recv(
            "<iq type='error' id='2'>" + submit.dropLast(5)
                + "<error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
        )
        harness.send("<iq type='set' id='3'>" + submit)
        harness.recv("<iq type='result' id='3'/>")
        #expect(
            Self.steps(harness).suffix(3) == ["register: ok", "register: failed, conflict", "register: ok"]
        )
        #expect(!harness.told.contains { $0.xml?.contains("Calliope") == true })
        harness.say(Array(Conversations.plainLogin[3..<10]))
        harness.send("<iq type='set' id='4'>" + submit)
        harness.recv("<iq type='result' id='4'/>")
        #expect(Self.steps(harness).last == "ready: ok")
    }

    // MARK: SASL2

    private static let inlineHeader =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='x' "
        + "version='1.0'><stream:features><authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-1</mechanism>"
        + "<inline><bind xmlns='urn:xmpp:bind:0'/></inline></authentication></stream:features>"

    private static func authenticate(_ inline: String) -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(1)))
        harness.recv(inlineHeader)
        harness.send(
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='SCRAM-SHA-1'><initial-response>biwsbj1qdWxpZXQscj1hYmM="
                + "</initial-response><user-agent id='d4565fa7-4d72-4749-b3d3-740edbf87770'/>\(inline)</authenticate>"
        )
        return harness
    }

    @Test func `a login with SASL2 and Bind 2 has its steps`() {
        var harness = Self.authenticate("<bind xmlns='urn:xmpp:bind:0'><tag>balcony</tag></bind>")
        harness.recv("<challenge xmlns='urn:xmpp:sasl:2'>cj1hYmNkZWYscz1jMkZzZEE9PSxpPTQwOTY=</challenge>")
        harness.send("<response xmlns='urn:xmpp:sasl:2'>Yz1iaXdzLHI9YWJjZGVmLHA9Y0hKdmIyWT0=</response>")
        harness.recv(
            "<success xmlns='urn:xmpp:sasl:2'><additional-data>dj1jMmxu</additional-data><authorization-identifier>"
                + "juliet@example.org/balcony.1</authorization-identifier><bound xmlns='urn:xmpp:bind:0'/></success>"
        )
        #expect(
            Self.steps(harness) == [
                "connect: ok", "stream-open: ok", "features: ok", "mechanism: ok", "sasl2: ok", "sasl2: ok",
                "sasl2: ok", "bind2: ok", "ready: ok",
            ]
        )
        #expect(harness.info.jid == "juliet@example.org/balcony.1")
        #expect(!harness.told.contains { $0.xml?.contains("d4565fa7") == true || $0.xml?.contains("biws") == true })
    }

    @Test func `without Bind 2, a resource is bound after SASL2`() {
        var harness = Self.authenticate("")
        harness.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org</authorization-identifier>"
                + "</success><stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
        )
        harness.say(Array(Conversations.plainLogin[8...9]))
        #expect(Self.steps(harness).suffix(4) == ["sasl2: ok", "features: ok", "bind: ok", "ready: ok"])
    }

    @Test func `resumption in SASL2 and its refusal are steps`() {
        let resume = "<resume xmlns='urn:xmpp:sm:3' previd='p' h='7'/><bind xmlns='urn:xmpp:bind:0'/>"
        var resumed = Self.authenticate(resume)
        resumed.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/b</authorization-identifier>"
                + "<resumed xmlns='urn:xmpp:sm:3' previd='p' h='9'/></success>"
        )
        #expect(Self.steps(resumed).suffix(3) == ["sasl2: ok", "resume: ok", "ready: ok"])
        var refused = Self.authenticate(resume)
        refused.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/b</authorization-identifier>"
                + "<failed xmlns='urn:xmpp:sm:3'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>"
                + "<bound xmlns='urn:xmpp:bind:0'/></success>"
        )
        #expect(
            Self.steps(refused).suffix(4) == [
                "sasl2: ok", "resume: failed, item-not-found", "bind2: ok", "ready: ok",
            ]
        )
    }

    @Test func `a SASL2 failure also ends the requests within it`() {
        var harness = Self.authenticate("<bind xmlns='urn:xmpp:bind:0'/>")
        harness.recv(
            "<failure xmlns='urn:xmpp:sasl:2'><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"
                + "<text>This is a terrible example.</text></failure>"
        )
        harness.end(.client)
        harness.close()
        #expect(Self.steps(harness).last == "sasl2: failed, not-authorized, This is a terrible example.")
    }
}

extension SessionHarness {
    /// The state of the session.
    fileprivate var info: SessionInfo { session.info }
}
