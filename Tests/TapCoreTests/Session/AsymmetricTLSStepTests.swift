import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = TLSScene

/// Tests of TLS that begins on one leg only, without a session.
@Suite struct AsymmetricTLSStepTests {
    @Test func `xmpptap answers a client's STARTTLS request before it sends anything to the server`() {
        var scene = Scene(Scene.options(.required, .direct))
        let opened = scene.step(.send, Scene.header)
        #expect(opened.decision == "answer")
        #expect(opened.effects.first == "handle send" && opened.effects.last == "begin starttls, awaits client")
        #expect(opened.effects.contains { $0.hasPrefix("say header and <stream:features>") })
        #expect(scene.context.negotiation.asymmetric?.clientHasStream == true)
        #expect(scene.context.negotiation.asymmetric?.reachesServer == false)
        let asked = scene.step(.send, Scene.request)
        #expect(
            asked.effects == [
                "requestTLS", "finish starttls, ok", "buffer recv \(Scene.consent.utf8.count)", "hold send",
                "awaitConsent",
            ]
        )
    }

    @Test func `A client that continues without TLS is refused`() {
        var scene = Scene(Scene.options(.required, .off))
        _ = scene.step(.send, Scene.header)
        #expect(scene.step(.send, Scene.auth).decision == "refuse tls-required")
    }

    @Test func `A server that sends data before its stream is opened is refused`() {
        var scene = Scene(Scene.options(.auto, .direct))
        #expect(scene.step(.recv, Scene.header).decision == "refuse starttls-injection")
        #expect(
            Scene.names(scene.context.negotiation.asymmetric?.refuseEarlyBytes(scene.context)) == [
                "refuse remote-connection-failed"
            ]
        )
        scene.context.directions.send.end = .reset
        #expect(Scene.names(scene.context.negotiation.asymmetric?.refuseEarlyBytes(scene.context)) == ["stop"])
    }

    @Test func `xmpptap requests TLS from the server and repeats the client's stream header inside`() {
        var scene = Scene(Scene.options(.off, .required))
        let opened = scene.step(.send, Scene.header)
        #expect(opened.decision == "pass" && opened.effects == ["handle send", "hold send"])
        #expect(scene.step(.recv, Scene.header).effects == ["handle recv"])
        let asked = scene.step(.recv, Scene.offer)
        #expect(
            asked.effects == [
                "handle recv features", "requestTLS", "say \(Scene.request) to server",
                "cancel mechanism", "begin starttls, awaits server",
            ]
        )
        #expect(
            scene.step(.recv, Scene.consent).effects == [
                "finish starttls, ok", "buffer recv 0", "hold recv", "awaitConsent",
            ]
        )
        #expect(
            Scene.names(scene.context.negotiation.asymmetric?.openInside()) == [
                "enterTLS", "forgetClear", "enter recv", "say \(Scene.header) to server",
                "begin \(LoginStep.Name.streamOpen.rawValue), awaits server", "releaseClient",
            ]
        )
    }

    @Test func `A server that declines TLS ends the session`() {
        var scene = Scene(Scene.options(.off, .auto))
        for (direction, text) in [(Direction.send, Scene.header), (.recv, Scene.header), (.recv, Scene.offer)] {
            _ = scene.step(direction, text)
        }
        #expect(
            scene.step(.recv, Scene.refusal).effects == ["finish starttls, failed", "refuse remote-connection-failed"]
        )
    }

    @Test(arguments: [(LegTLS.required, "refuse tls-required"), (.auto, "relay in clear")])
    func `A server without TLS is refused only if its leg requires it`(server: LegTLS, decision: String) {
        var scene = Scene(Scene.options(.off, server))
        _ = scene.step(.send, Scene.header)
        _ = scene.step(.recv, Scene.header)
        #expect(scene.step(.recv, "<stream:features/>").decision == decision)
    }

    @Test func `With direct TLS to the server, TLS is negotiated before the client's stream is forwarded`() {
        var scene = Scene(Scene.options(.off, .auto))
        scene.context.negotiation.asymmetric?.serverBeginsWithTLS()
        let opened = scene.step(.send, Scene.header)
        #expect(opened.effects == ["handle send", "hold send", "buffer recv 0", "awaitConsent"])
        #expect(
            Scene.names(scene.context.negotiation.asymmetric?.openInside()) == [
                "enterTLS", "forgetClear", "enter recv", "pass send \(Scene.header)", "releaseClient",
            ]
        )
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        scene.context.directions.recv.setBuffered([])
        #expect(
            Scene.names(termination.begin(&scene.context)).last
                == "start server example.org directly"
        )
    }

    @Test func `A client that closes its stream before TLS with the server ends the session`() {
        var scene = Scene(Scene.options(.off, .auto))
        _ = scene.step(.send, Scene.header)
        let closed = scene.step(.send, "</stream:stream>")
        #expect(closed.decision == "drop" && closed.effects == ["stop"])
    }
}
