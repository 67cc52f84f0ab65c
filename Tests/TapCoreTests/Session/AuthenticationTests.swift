import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = LoginScene

/// Tests of a login and its requests, without a session.
@Suite struct AuthenticationTests {
    private static let auth = "<auth xmlns='\(Scene.sasl)' mechanism='PLAIN'>AGp1bGlldAByMG0zMA==</auth>"

    @Test func `The user and mechanism of a login are stored, and a stream restart is expected after success`() {
        var scene = Scene()
        #expect(scene.handle(.send, TLSScene.header + Self.auth) == [])
        #expect(scene.base.context.info.user == "juliet" && scene.base.context.info.mechanism == "PLAIN")
        #expect(scene.handle(.recv, TLSScene.header + "<success xmlns='\(Scene.sasl)'/>") == [])
        #expect(scene.base.context.info.authentication == .succeeded)
        guard case .restarting(endedEpoch: nil) = scene.base.context.negotiation else {
            Issue.record("no restart is expected")
            return
        }
    }

    @Test func `A success that no client has requested is a warning`() throws {
        let success = "<success xmlns='\(Scene.sasl)'/>"
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(2)))
        harness.recv(success)
        let warning = try #require(harness.told(code: "unsolicited-success").first)
        #expect(warning.record.level == .warn && harness.closed == nil)
        // A failed login has ended: the client must request another one.
        var failed = SessionHarness()
        failed.say(Array(Conversations.plainLogin.prefix(2)))
        failed.send(Self.auth)
        failed.recv("<failure xmlns='\(Scene.sasl)'><not-authorized/></failure>" + success)
        #expect(failed.told(code: "unsolicited-success").count == 1)
        // Packets may lack the request.
        var options = SessionOptions(level: .verbose)
        options.isObserved = true
        var observed = SessionHarness(options: options)
        observed.say(Array(Conversations.plainLogin.prefix(2)))
        observed.recv(success)
        #expect(observed.told(code: "unsolicited-success").isEmpty)
        var usual = SessionHarness()
        usual.say(Array(Conversations.plainLogin.prefix(10)))
        #expect(usual.told(code: "unsolicited-success").isEmpty)
    }

    @Test func `The condition of a failure is stored, and the client can authenticate again`() {
        var scene = Scene()
        _ = scene.handle(.send, TLSScene.header + Self.auth)
        _ = scene.handle(
            .recv,
            TLSScene.header + "<failure xmlns='\(Scene.sasl)'><not-authorized/></failure>"
        )
        #expect(scene.base.context.info.authentication == .failed(condition: "not-authorized"))
        #expect(scene.base.context.negotiation.isOpening)
    }

    @Test func `SASL2 opens the session before it enables stream management`() {
        var scene = Scene()
        let request =
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>AGEAYg==</initial-response>"
            + "<user-agent><software>Gajim</software></user-agent><bind xmlns='urn:xmpp:bind:0'/></authenticate>"
        #expect(scene.handle(.send, TLSScene.header + request) == ["software Gajim"])
        let success =
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>a@example.org/x</authorization-identifier>"
            + "<bound xmlns='urn:xmpp:bind:0'><enabled xmlns='urn:xmpp:sm:3' id='1'/></bound></success>"
        #expect(scene.handle(.recv, TLSScene.header + success) == ["open: bound", "enabled 1"])
        #expect(scene.base.context.info.jid == "a@example.org/x")
    }

    @Test func `A session resumed with SASL2 does not bind a resource`() {
        var scene = Scene()
        let success =
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>a@example.org</authorization-identifier>"
            + "<resumed xmlns='urn:xmpp:sm:3' previd='7' h='0'/></success>"
        #expect(scene.handle(.recv, TLSScene.header + success) == ["resumed 7 a@example.org"])
    }

    @Test func `The recorded details of a SASL message replace those of its redacted content`() throws {
        var scene = Scene()
        scene.authentication.apply(["mechanism": "PLAIN", "user": "romeo"])
        let redacted = "<auth xmlns='\(Scene.sasl)' mechanism='PLAIN'>[redacted:password#1]</auth>"
        let event = scene.base.item(.send, TLSScene.header + redacted)
        let parsed = scene.base.context.parse(.send)
        let element = try #require(parsed)
        let step = scene.authentication.decode(element, .send, &scene.base.context)
        #expect(event.item == .element && step?.kind == .begin)
        #expect(scene.base.context.info.user == "romeo")
    }

    @Test func `An accepted handshake opens a component's session`() {
        var scene = Scene()
        let header = "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"
        var event = scene.base.item(.send, header + "<handshake>aa</handshake>")
        #expect(Scene.names(scene.authentication.handleHandshake(event, .send, &scene.base.context)) == [])
        event = scene.base.item(.recv, header + "<handshake/>")
        #expect(
            Scene.names(scene.authentication.handleHandshake(event, .recv, &scene.base.context)) == [
                "open: component accepted"
            ]
        )
        #expect(scene.base.context.info.jid == "example.org")
    }

    @Test func `A refused component handshake is a failed login`() {
        var scene = Scene()
        let header = "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'>"
        var event = scene.base.item(.send, header + "<handshake>aa</handshake>")
        _ = scene.authentication.handleHandshake(event, .send, &scene.base.context)
        let error = "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        event = scene.base.item(.recv, header + error)
        scene.authentication.handleStreamError(event, .recv, nil, &scene.base.context)
        #expect(scene.base.context.info.authentication == .failed(condition: "not-authorized"))
    }

    // MARK: Requests

    private static func purpose(_ scene: inout Scene, _ text: String) -> String {
        let event = scene.base.item(.send, TLSScene.header + text)
        var record = scene.base.context.makeRecord(.stanza, .info, part: .session)
        return "\(scene.authentication.purpose(of: event, .send, &record, &scene.base.context))"
    }

    @Test func `A bind request belongs to the login only until the session is open`() {
        let bind = "<iq type='set' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
        var scene = Scene()
        #expect(Self.purpose(&scene, bind) == "bind")
        #expect(scene.base.context.timeline.isUnderWay(.bind, awaits: .server))
        scene.base.context.info.opened = scene.base.context.now
        #expect(Self.purpose(&scene, bind) == "ordinary")
        #expect(Self.purpose(&scene, "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>") == "ping")
    }

    @Test func `Legacy authentication requests the fields, then logs in with a resource`() {
        var scene = Scene()
        let query = "<query xmlns='jabber:iq:auth'>"
        #expect(Self.purpose(&scene, "<iq type='get' id='1'>\(query)</query></iq>") == "legacyFields")
        let login =
            "<iq type='set' id='2'>\(query)<username>a</username><password>b</password><resource>x</resource></query></iq>"
        #expect(Self.purpose(&scene, login) == "legacyAuthentication(jid: Optional(\"a@example.org/x\"))")
    }

    @Test func `A bind result opens the session with its address, a bind error does not`() {
        var scene = Scene()
        _ = scene.base.item(
            .recv,
            TLSScene.header + "<iq type='result' id='1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>a@example.org/x</jid></bind></iq>"
        )
        #expect(Scene.names(scene.base.context.handleResult(.bind, .recv)) == ["open: bound"])
        #expect(scene.base.context.info.jid == "a@example.org/x")
        #expect(Scene.names(scene.base.context.handleResult(.ordinary, .recv)) == [])
        _ = scene.codes()
        scene.base.context.handle(.init(condition: "conflict", code: "conflict"), .bind, .recv)
        #expect(scene.codes() == [LoginStep.code, "bind-failed"])
    }

    @Test func `The first answer to a request is matched with it, a second one is not`() {
        var scene = Scene()
        var requests = IQTracker()
        var event = scene.base.item(.send, TLSScene.header + "<iq type='get' id='1'/>")
        let record = scene.base.context.makeRecord(event, .send, .stanza, level: .info)
        #expect(requests.observeRequest(event, .send, .session, record, &scene.base.context))
        event = scene.base.item(
            .recv,
            TLSScene.header + "<iq type='error' id='1'><error type='cancel' code='503'/></iq>"
        )
        let answered = requests.observeError(event, .recv, &scene.base.context)
        #expect(answered?.failure.condition == nil && answered?.failure.code == "503")
        #expect(requests.observeError(event, .recv, &scene.base.context) == nil)
    }
}
