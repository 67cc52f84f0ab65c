import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = TLSScene

/// Tests of STARTTLS between the peers, and of required TLS, without a session.
@Suite struct StartTLSTests {
    /// Returns the effects of an element after the header.
    private static func effects(
        _ scene: inout Scene,
        _ direction: Direction,
        _ text: String,
        _ startTLS: StartTLS = StartTLS()
    ) -> [String] {
        let event = scene.item(direction, Scene.header + text)
        return Scene.names(startTLS.handle(event, direction, &scene.context))
    }

    @Test func `The client's later data is held until the server answers the STARTTLS request`() {
        var scene = Scene(SessionOptions(level: .trace))
        #expect(
            Self.effects(&scene, .send, Scene.request) == [
                "requestTLS", "begin starttls, awaits server", "cancel mechanism", "hold send",
            ]
        )
    }

    @Test func `The data of a half-closed client is not held after its STARTTLS request`() {
        var scene = Scene(SessionOptions(level: .trace))
        scene.context.directions.send.end = .finished
        #expect(Self.effects(&scene, .send, Scene.request).last == "cancel mechanism")
    }

    @Test func `A STARTTLS request after the login has no effect`() {
        var scene = Scene(SessionOptions(level: .trace))
        scene.context.negotiation.authenticate(isSASL2: true)
        #expect(Self.effects(&scene, .send, Scene.request) == [])
    }

    @Test func `Without TLS termination, TLS is passed through and data in clear before proceed is reported`() {
        var scene = Scene(SessionOptions(level: .trace))
        _ = scene.item(.send, Scene.header + Scene.request)
        _ = scene.context.negotiation.requestTLS()
        scene.receive(.send, "<iq/>")
        #expect(
            Self.effects(&scene, .recv, Scene.consent) == [
                "finish starttls, ok", "warn starttls-injection send", "passThrough",
            ]
        )
    }

    @Test func `Proceed without a request is reported, and the stream is still decoded`() {
        var scene = Scene(SessionOptions(level: .trace))
        #expect(Self.effects(&scene, .recv, Scene.consent) == ["warn starttls-unexpected recv"])
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.recv(Scene.consent)
        harness.send("<message id='a'/>")
        #expect(harness.told(code: "starttls-unexpected").count == 1 && harness.told.last?.xml == "<message id='a'/>")
        #expect(harness.told(code: "tls-began").isEmpty)
    }

    @Test func `Streams that were decrypted outside xmpptap restart after proceed`() {
        var scene = Scene(SessionOptions(level: .trace))
        var startTLS = StartTLS()
        startTLS.decrypt(["version": "TLS 1.3"], &scene.context)
        scene.context.directions.send.hold()
        #expect(
            Self.effects(&scene, .recv, Scene.consent, startTLS) == [
                "finish starttls, ok", "finish tls, ok", "enterTLS", "expectRestart", "release send",
            ]
        )
    }

    @Test func `A held proceed has no effect before TLS on the server's leg`() {
        var scene = Scene(Scene.options())
        scene.context.directions.recv.setBuffered(Array(Scene.consent.utf8))
        #expect(Self.effects(&scene, .recv, Scene.consent) == ["finish starttls, ok"])
    }

    @Test func `The client's data is released in clear after the server declines TLS`() {
        var scene = Scene(SessionOptions(level: .trace))
        _ = scene.context.negotiation.requestTLS()
        scene.context.directions.send.hold()
        #expect(
            Self.effects(&scene, .recv, Scene.refusal) == ["declineTLS", "finish starttls, failed", "release send"]
        )
    }

    // MARK: Required TLS

    @Test func `Proceed is held if TLS was requested, and refused otherwise`() throws {
        var scene = Scene(Scene.options())
        let event = scene.item(.recv, Scene.header + Scene.consent)
        var decision = TLSPolicy.interceptConsent(event, .recv, scene.context)
        guard case .refuse(let refusal) = decision else {
            Issue.record("an unexpected consent is not refused")
            return
        }
        #expect(refusal.code == "starttls-unexpected")
        _ = scene.context.negotiation.requestTLS()
        decision = TLSPolicy.interceptConsent(event, .recv, scene.context)
        guard case .buffer(until: .serverTLS) = decision else {
            Issue.record("the consent is not held")
            return
        }
    }

    @Test(arguments: [
        (LegTLS.required, LegTLS.auto, Leg.client), (.auto, .required, .server), (.required, .required, .server),
    ])
    func `A server without TLS is refused if a leg requires it`(client: LegTLS, server: LegTLS, leg: Leg) throws {
        var scene = Scene(Scene.options(client, server))
        _ = scene.item(.recv, Scene.header + "<stream:features/>")
        let features = try #require(scene.context.parse(.recv).flatMap { StreamFeatures($0) })
        let refusal = TLSPolicy.refusal(of: features, scene.context)
        #expect(refusal?.code == "tls-required" && refusal?.direction == leg.inbound)
    }

    @Test func `A server without TLS is accepted if no leg requires TLS`() throws {
        var scene = Scene(Scene.options())
        _ = scene.item(.recv, Scene.header + "<stream:features/>")
        let features = try #require(scene.context.parse(.recv).flatMap { StreamFeatures($0) })
        #expect(TLSPolicy.refusal(of: features, scene.context) == nil)
    }

    @Test(arguments: [
        (LegTLS.required, LegTLS.auto, Scene.auth, "tls-required"), (.auto, .required, Scene.auth, "tls-required"),
        (.off, .off, Scene.request, "tls-off"), (.auto, .auto, Scene.auth, ""),
    ])
    func `An element in clear that contradicts the TLS options is refused`(
        client: LegTLS,
        server: LegTLS,
        text: String,
        code: String
    ) {
        var scene = Scene(Scene.options(client, server))
        let event = scene.item(.send, Scene.header + text)
        let decision = TLSPolicy.interceptClear(event, .send, scene.context)
        if case .refuse(let refusal) = decision {
            #expect(refusal.code == code)
        } else {
            #expect(code.isEmpty)
        }
    }

    @Test func `A client that uses direct TLS receives an alert if TLS is off on its leg`() {
        var scene = Scene(Scene.options(.off, .required))
        let isRefused = TLSPolicy.refusesDirectTLS(&scene.context)
        #expect(isRefused)
        let sent = scene.sent(to: .client)
        #expect(sent == [[0x15, 3, 1, 0, 2, 2, HandshakeAlert.protocolVersion.rawValue]])
        #expect(scene.context.negotiation.isFinished)
        var other = Scene(Scene.options(.auto, .required))
        let isOtherRefused = TLSPolicy.refusesDirectTLS(&other.context)
        #expect(!isOtherRefused && !other.context.negotiation.isFinished)
    }
}
