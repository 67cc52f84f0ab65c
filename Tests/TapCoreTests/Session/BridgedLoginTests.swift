import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = LoginScene

/// Tests of the actions of a login that xmpptap performs, without a session.
@Suite struct BridgedLoginTests {
    private struct Accounts: Authenticator {
        let mechanisms = ["SCRAM-SHA-256"]
        let hasCertificate = false

        func mechanisms(of account: JID) -> [String]? { nil }
        func means(of account: JID, knowing learned: LearnedSecret?) -> [String] { [] }
        func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)? { nil }
        func clientExchange(
            _ mechanism: String,
            _ identity: SASLIdentity,
            domain: String,
            binding: BindingClaim,
            _ offer: LoginOffer,
            knowing learned: LearnedSecret?
        ) -> (any SASLExchange)? { nil }
    }

    private static func scene() -> Scene {
        var options = SessionOptions(level: .trace)
        options.authenticator = Accounts()
        var scene = Scene(options)
        scene.base.context.info.kind = .client
        return scene
    }

    private static func features(_ mechanism: String) -> String {
        "<stream:features><mechanisms xmlns='\(Scene.sasl)'><mechanism>\(mechanism)</mechanism></mechanisms></stream:features>"
    }

    /// Handles the server's features.
    private static func offer(_ scene: inout Scene, _ mechanism: String) throws {
        _ = scene.base.item(.recv, TLSScene.header + features(mechanism))
        let offer = try #require(scene.base.context.parse(.recv).flatMap { StreamFeatures($0) })
        scene.base.context.negotiation.bridged?.store(offer, &scene.base.context)
    }

    @Test func `The client's data is held after its stream header until the features arrive`() throws {
        var scene = Self.scene()
        let event = scene.base.item(.send, TLSScene.header)
        scene.base.context.negotiation.bridged?.handleHeader(event, .send, &scene.base.context)
        #expect(scene.base.context.directions.send.isHeld == true)
        try Self.offer(&scene, "SCRAM-SHA-256")
        #expect(scene.base.context.directions.send.isHeld == false)
        #expect(scene.base.context.negotiation.bridged?.performsLogin == true)
    }

    @Test func `An offer without a supported mechanism is reported, and the login is relayed`() throws {
        var scene = Self.scene()
        try Self.offer(&scene, "GSSAPI")
        #expect(scene.codes() == ["login-not-ended"])
        #expect(scene.base.context.negotiation.bridged?.performsLogin == false)
    }

    @Test func `An answer to the client is returned as an effect, a message to the server is sent at once`() throws {
        var scene = Self.scene()
        let bridged = try #require(scene.base.context.negotiation.bridged)
        let challenge = bridged.perform(.challenge([1]), Scene.sasl, nil, &scene.base.context)
        #expect(Scene.names(challenge) == ["answer <challenge xmlns='\(Scene.sasl)'>AQ==</challenge>"])
        #expect(scene.base.sent(to: .client).isEmpty)
        #expect(bridged.perform(.begin("PLAIN", []), Scene.sasl, nil, &scene.base.context).isEmpty)
        let sent = scene.base.sent(to: .server).map { String(decoding: $0, as: UTF8.self) }
        #expect(sent == ["<auth xmlns='\(Scene.sasl)' mechanism='PLAIN'>=</auth>"])
        #expect(scene.base.context.timeline.isUnderWay(.sasl, key: "server"))
    }

    @Test func `Success is sent to the client before the session counts as authenticated`() throws {
        var scene = Self.scene()
        let bridged = try #require(scene.base.context.negotiation.bridged)
        _ = scene.base.item(.recv, TLSScene.header + "<success xmlns='\(Scene.sasl)'/>")
        let parsed = scene.base.context.parse(.recv)
        let element = try #require(parsed)
        let effects = bridged.perform(.succeed([1]), Scene.sasl, element, &scene.base.context)
        #expect(Scene.names(effects) == ["answer <success xmlns='\(Scene.sasl)'>AQ==</success>", "authenticated"])
    }

    @Test func `A failure that is sent to the client ends its authentication attempt`() {
        var scene = Self.scene()
        scene.base.context.negotiation.beginAuthentication()
        let failure = BridgedLoginElements.failure(Scene.sasl, .notAuthorized, nil)
        #expect(scene.authentication.answer(failure, &scene.base.context).isEmpty)
        #expect(scene.base.context.info.authentication == .failed(condition: "not-authorized"))
        #expect(scene.base.context.negotiation.isOpening)
        #expect(scene.base.sent(to: .client) == [failure])
    }
}
