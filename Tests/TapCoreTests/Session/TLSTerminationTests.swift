import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private typealias Scene = TLSScene

private let tls13 = TLSAgreement(version: 0x0304, details: [:], summary: "TLS 1.3")
private let tls12 = TLSAgreement(version: 0x0303, details: [:], summary: "TLS 1.2")
private let fault = TLSFailure(code: "tls-fault", "it failed")

/// Tests of TLS that xmpptap terminates, without a session.
@Suite struct TLSTerminationTests {
    /// Returns a scene after the client's request for TLS, with the server's consent held.
    private static func consented(_ options: SessionOptions) -> Scene {
        var scene = Scene(options)
        _ = scene.context.negotiation.requestTLS()
        let event = scene.item(.recv, Scene.header + Scene.consent)
        scene.context.directions.recv.buffer(event)
        return scene
    }

    /// Establishes TLS on the server leg.
    private static func secured(_ scene: inout Scene, _ termination: inout TLSTermination) {
        termination.awaitConsent(scene.context.options)
        _ = termination.begin(&scene.context)
        scene.context.negotiation.beginHandshake()
        _ = termination.handle(.opened(tls13), .server, &scene.context)
    }

    @Test func `Proceed is held until the server's leg has TLS and a certificate for the client is found`() {
        var scene = Self.consented(Scene.options())
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        #expect(termination.awaitsConsent && termination.isNegotiating)
        #expect(
            Scene.names(termination.begin(&scene.context)) == [
                "choose example.org", "start server example.org",
            ]
        )
        #expect(
            Scene.names(termination.handle(.started(directly: false), .server, &scene.context)) == [
                "beginHandshake", "begin tls server, awaits server",
            ]
        )
        scene.context.negotiation.beginHandshake()
        #expect(
            Scene.names(termination.handle(.opened(tls13), .server, &scene.context)) == [
                "finish tls server, ok", "record tls-opened server", "secured server", "observe",
                "find identity example.org",
            ]
        )
        #expect(
            Scene.names(termination.handle(.found(isServersOwn: false), &scene.context)) == [
                "start client \(Scene.consent)"
            ]
        )
        #expect(
            Scene.names(termination.handle(.started(directly: false), .client, &scene.context)) == [
                "buffer recv nothing", "beginHandshake", "begin tls client, awaits client",
            ]
        )
    }

    @Test func `Streams restart when the client's leg has TLS, with the data received meanwhile`() {
        var scene = Self.consented(Scene.options())
        var termination = TLSTermination()
        Self.secured(&scene, &termination)
        _ = termination.handle(.found(isServersOwn: false), &scene.context)
        let early = Array("early".utf8)
        let effects = termination.receive(.recv, early.span, &scene.context)
        #expect(effects?.isEmpty == true)
        scene.context.info.version = "1.0"
        #expect(
            Scene.names(termination.handle(.opened(tls12), .client, &scene.context)) == [
                "finish tls client, ok", "record tls-opened client", "secured client", "observe", "enterTLS",
                "forgetClear",
                "enter send", "enter recv", "record tls-version-skew client", "observe binding minted",
                "receive send ", "receive recv early",
            ]
        )
        #expect(!termination.isNegotiating)
        let info = scene.context.info
        #expect(info.hasClientTLS && info.serverTLS == 0x0304 && info.clientTLS == 0x0303 && info.version == nil)
    }

    @Test(arguments: [Direction.send, .recv])
    func `Data in clear after the STARTTLS request or after proceed ends the session`(direction: Direction) {
        var scene = Self.consented(Scene.options())
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        scene.receive(direction, "<iq/>")
        #expect(
            Scene.names(termination.begin(&scene.context)) == [
                "finish tls \(direction.source.name), failed", "record starttls-injection \(direction.source.name)",
                "buffer recv nothing", "end with failure",
            ]
        )
        #expect(!termination.isNegotiating)
    }

    @Test func `A client that sends data before proceed is refused, except for white space`() {
        var scene = Scene(Scene.options())
        let termination = TLSTermination()
        _ = scene.item(.send, Scene.header + Scene.request)
        _ = scene.context.negotiation.requestTLS()
        scene.context.directions.send.hold()
        scene.receive(.send, "\r\n")
        #expect(termination.refuseEarlyBytes(&scene.context) == nil)
        scene.receive(.send, "<iq/>")
        #expect(
            Scene.names(termination.refuseEarlyBytes(&scene.context)) == [
                "finish tls client, failed", "record starttls-injection client", "buffer recv nothing",
                "end with failure",
            ]
        )
    }

    @Test func `Without a held proceed the negotiation ends without a failure`() {
        var scene = Scene(Scene.options())
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        #expect(termination.begin(&scene.context).isEmpty)
        #expect(!termination.isNegotiating && scene.context.info.ending == nil)
    }

    @Test func `A failed handshake with the server is answered to the client with a STARTTLS failure`() {
        var scene = Self.consented(Scene.options())
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        _ = termination.begin(&scene.context)
        scene.context.negotiation.beginHandshake()
        var failure = fault
        failure.cause = .certificateExpired
        #expect(
            Scene.names(termination.handle(.failed(failure), .server, &scene.context)) == [
                "blame \(LoginCause.certificateExpired.rawValue)", "finish tls server, failed",
                "record tls-fault server", "buffer recv nothing", "end with failure",
            ]
        )
        #expect(scene.context.info.ending == .tls(leg: .server, "it failed"))
    }

    @Test func `A failed handshake with the client ends the session without data in clear`() {
        var scene = Self.consented(Scene.options())
        var termination = TLSTermination()
        Self.secured(&scene, &termination)
        _ = termination.handle(.found(isServersOwn: false), &scene.context)
        scene.context.directions.recv.setBuffered(nil)
        #expect(
            Scene.names(termination.handle(.failed(fault), .client, &scene.context)) == [
                "finish tls client, failed", "record tls-fault client", "end",
            ]
        )
    }

    @Test func `A client with direct TLS receives an alert if the handshake with the server fails`() {
        var scene = Scene(Scene.options())
        var termination = TLSTermination()
        let hello = RecordedHello.modern
        let begun = termination.receive(.send, hello.span, &scene.context)
        #expect(Scene.names(begun).first?.hasPrefix("start server") == true)
        scene.context.negotiation.beginHandshake()
        #expect(
            Scene.names(termination.handle(.failed(fault), .server, &scene.context)) == [
                "finish tls server, failed", "record tls-fault server",
                "end with alert \(HandshakeAlert.internalError.rawValue)",
            ]
        )
    }

    @Test func `A client without TLS receives a stream error if the handshake with the server fails`() {
        var scene = Self.consented(Scene.options(.off, .required))
        var termination = TLSTermination()
        termination.awaitConsent(scene.context.options)
        _ = termination.begin(&scene.context)
        #expect(
            Scene.names(termination.handle(.failed(fault), .server, &scene.context)).last
                == "end with remote-connection-failed"
        )
    }

    @Test func `First bytes other than TLS are handled as a stream`() {
        var scene = Scene(Scene.options())
        var termination = TLSTermination()
        let header = Array(Scene.header.utf8)
        let effects = termination.receive(.send, header.span, &scene.context)
        #expect(effects == nil && !termination.isNegotiating)
    }

    @Test func `A TLS failure outside a negotiation ends its leg`() {
        var scene = Scene(Scene.options())
        var termination = TLSTermination()
        #expect(
            Scene.names(termination.handle(.failed(fault), .client, &scene.context)) == [
                "ended client"
            ]
        )
    }
}
