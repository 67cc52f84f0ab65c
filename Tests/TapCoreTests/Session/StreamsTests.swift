import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = LoginScene

/// Tests of headers, features and elements of the streams, and of dialback, without a session.
@Suite struct StreamsTests {
    private static func header(_ scene: inout Scene, _ direction: Direction) {
        let event = scene.base.item(direction, TLSScene.header)
        scene.streams.handleHeader(event, direction, &scene.base.context)
    }

    @Test func `A second stream header in a direction is reported as an unexpected restart`() {
        var scene = Scene()
        Self.header(&scene, .send)
        #expect(!scene.codes().contains("unexpected-restart"))
        Self.header(&scene, .send)
        #expect(scene.base.context.directions.send.hasRestartedUncalled == true)
        #expect(scene.codes().contains("unexpected-restart"))
    }

    @Test func `The stream headers of a session that was joined midway are not login steps`() {
        var scene = Scene()
        scene.streams.join(inTLS: false, &scene.base.context)
        Self.header(&scene, .send)
        #expect(!scene.base.context.timeline.isUnderWay(.streamOpen))
        // A login begins when TLS is decrypted.
        scene.streams.beginLogin(&scene.base.context)
        #expect(scene.base.context.negotiation.isOpening && scene.base.context.login != nil)
        Self.header(&scene, .send)
        #expect(scene.base.context.timeline.isUnderWay(.streamOpen))
    }

    @Test func `Streams are not decoded after compression is accepted`() {
        var scene = Scene()
        let event = scene.base.item(
            .recv,
            TLSScene.header + "<compressed xmlns='http://jabber.org/protocol/compress'/>"
        )
        scene.base.context.handleCompression(event, .recv)
        #expect(scene.base.context.directions.send.isOpaque && scene.base.context.directions.recv.isOpaque)
    }

    @Test func `An enable request before binding is reported`() {
        var scene = Scene()
        scene.base.context.negotiation.authenticate(isSASL2: true)
        let event = scene.base.item(.send, TLSScene.header + "<enable xmlns='urn:xmpp:sm:3'/>")
        #expect(Scene.names(scene.base.context.handleStreamManagement(event, .send)) == [])
        #expect(scene.codes() == [LoginCause.earlyEnable.rawValue])
        #expect(scene.base.context.info.enableFault != nil)
    }

    @Test func `A resumption has an effect only until the session is open`() {
        var scene = Scene()
        let event = scene.base.item(.recv, TLSScene.header + "<resumed xmlns='urn:xmpp:sm:3' previd='7' h='1'/>")
        #expect(Scene.names(scene.base.context.handleStreamManagement(event, .recv)) == ["resumed 7 -"])
        scene.base.context.info.opened = scene.base.context.now
        #expect(Scene.names(scene.base.context.handleStreamManagement(event, .recv)) == [])
    }

    @Test func `Features after authentication open a session between servers`() throws {
        var scene = Scene()
        scene.base.context.info.kind = .server
        scene.base.context.info.from = "a.example"
        let event = scene.base.item(.recv, TLSScene.header + "<stream:features/>")
        let offer = try #require(scene.base.context.parse(.recv).flatMap { StreamFeatures($0) })
        #expect(Scene.names(scene.base.context.handleFeatures(event, offer)) == [])
        scene.base.context.negotiation.authenticate(isSASL2: true)
        #expect(Scene.names(scene.base.context.handleFeatures(event, offer)) == ["open: server authenticated"])
        #expect(scene.base.context.info.jid == "a.example")
    }

    @Test func `STARTTLS is removed from the features if the client leg has no TLS`() {
        var scene = Scene(TLSScene.options(.off, .auto))
        let event = scene.base.item(.recv, TLSScene.header + TLSScene.offer)
        var reading = ItemReading.none
        guard case .replace(let edited) = scene.base.context.interceptFeatures(event, .recv, &reading) else {
            Issue.record("the features are not edited")
            return
        }
        #expect(!String(decoding: edited.bytes, as: UTF8.self).contains("starttls"))
    }

    @Test func `A stream header for a domain other than the chosen one is refused`() {
        var scene = Scene()
        let event = scene.base.item(.send, TLSScene.header)
        #expect(scene.base.context.interceptOtherDomain(event, .send) == nil)
        scene.base.context.chosenDomain = "EXAMPLE.org"
        #expect(scene.base.context.interceptOtherDomain(event, .send) == nil)
        scene.base.context.chosenDomain = "other.example"
        guard case .refuse(let refusal) = scene.base.context.interceptOtherDomain(event, .send) else {
            Issue.record("the header is not refused")
            return
        }
        #expect(refusal.code == "host-unknown")
    }

    // MARK: Dialback

    private static func dialback(_ scene: inout Scene, _ direction: Direction, _ text: String) -> [String] {
        let event = scene.base.item(direction, Scene.serverHeader + text)
        return Scene.names(scene.base.context.handleDialback(event, direction))
    }

    @Test func `The first domain verified by dialback opens the session, later ones are noted`() {
        var scene = Scene()
        #expect(Self.dialback(&scene, .send, "<db:result from='a.example' to='b.example'>k</db:result>") == [])
        #expect(scene.base.context.info.mechanism == "dialback")
        let valid = "<db:result from='b.example' to='a.example' type='valid'/>"
        #expect(Self.dialback(&scene, .recv, valid) == ["open: dialback succeeded"])
        #expect(scene.base.context.info.jid == "a.example" && !scene.base.context.hasFurtherDomains)
        scene.base.context.info.opened = scene.base.context.now
        #expect(Self.dialback(&scene, .recv, valid) == [])
        #expect(scene.base.context.hasFurtherDomains == true)
    }

    @Test func `A dialback verify result does not open the session`() {
        var scene = Scene()
        #expect(Self.dialback(&scene, .recv, "<db:verify from='b.example' to='a.example' type='valid'/>") == [])
        #expect(scene.base.context.login?.hasVerified == true)
    }

    @Test func `A domain refused by dialback is a failed login`() {
        var scene = Scene()
        #expect(Self.dialback(&scene, .recv, "<db:result from='b.example' to='a.example' type='invalid'/>") == [])
        #expect(scene.base.context.info.authentication == .failed(condition: "invalid"))
        #expect(scene.codes().contains("dialback-failed"))
    }
}
