import Testing
import XMPPCore

@testable import TapCore
import TapRecord

@Suite struct NegotiationTests {
    private static func options(_ client: LegTLS = .auto, _ server: LegTLS = .auto) -> SessionOptions {
        var options = SessionOptions()
        options.holdsProceed = true
        options.clientTLS = client
        options.serverTLS = server
        return options
    }

    /// Returns the name of the current case.
    private static func name(_ negotiation: Negotiation) -> String {
        switch negotiation {
        case .awaitingServer: "awaitingServer"
        case .opening: "opening"
        case .startingTLS: "startingTLS"
        case .authenticating: "authenticating"
        case .restarting: "restarting"
        case .binding: "binding"
        case .open: "open"
        case .closing: "closing"
        case .opaque: "opaque"
        case .refusing: "refusing"
        case .finished: "finished"
        case .closed: "closed"
        }
    }

    private static func opened() -> Negotiation {
        var negotiation = Negotiation(options(), isConnected: true)
        negotiation.beginAuthentication()
        negotiation.authenticate(isSASL2: true)
        _ = negotiation.open()
        return negotiation
    }

    @Test func `A login passes through the states of the negotiation in order`() {
        var negotiation = Negotiation(Self.options(), isConnected: false)
        #expect(negotiation.isAwaitingServer && !negotiation.isConnected && negotiation.isClear)
        negotiation.connected()
        let isRequested = negotiation.requestTLS()
        #expect(isRequested && negotiation.isConsentAwaited)
        negotiation.beginHandshake()
        #expect(!negotiation.isConsentAwaited && !negotiation.isClear)
        negotiation.enterTLS()
        #expect(negotiation.isOpening && !negotiation.isClear)
        negotiation.beginAuthentication()
        #expect(negotiation.mayRestart(.send, sendEpoch: 2, recvEpoch: 1))
        negotiation.failAuthentication()
        #expect(negotiation.isOpening && !negotiation.isClear)
        negotiation.beginAuthentication()
        negotiation.authenticate(isSASL2: false)
        #expect(Self.name(negotiation) == "restarting")
        negotiation.featuresReceived()
        #expect(negotiation.isBinding)
        let opened = [negotiation.open(), negotiation.open()]
        #expect(opened == [true, false])
        negotiation.closeStream()
        #expect(Self.name(negotiation) == "closing")
        let finished = [negotiation.finish(), negotiation.finish()]
        #expect(finished == [true, false])
        negotiation.close()
        #expect(negotiation.isClosed && negotiation.isFinished)
    }

    @Test func `Declined TLS returns the stream to its previous state`() {
        var negotiation = Negotiation(Self.options(), isConnected: true)
        let declined = [negotiation.declineTLS(), negotiation.requestTLS(), negotiation.declineTLS()]
        #expect(declined == [false, true, true])
        #expect(negotiation.isOpening && negotiation.isClear)
    }

    @Test func `A second handshake does not undo established TLS`() {
        var negotiation = Negotiation(Self.options(), isConnected: true)
        negotiation.enterTLS()
        negotiation.beginHandshake()
        negotiation.asymmetric = AsymmetricTLS(Self.options(.off))
        #expect(!negotiation.isClear && negotiation.asymmetric == nil)
    }

    @Test func `Asymmetric TLS lasts until TLS is established`() {
        var negotiation = Negotiation(Self.options(.off), isConnected: false)
        negotiation.connected()
        negotiation.asymmetric?.serverBeginsWithTLS()
        negotiation.beginHandshake()
        #expect(negotiation.asymmetric?.precedesClient == true)
        negotiation.enterTLS()
        #expect(negotiation.asymmetric == nil)
    }

    @Test func `Events in a wrong state change nothing`() {
        let events: [(inout Negotiation) -> Void] = [
            { $0.connected() }, { _ = $0.requestTLS() }, { _ = $0.declineTLS() }, { $0.beginHandshake() },
            { $0.enterTLS() }, { $0.beginAuthentication() }, { $0.failAuthentication() },
            { $0.authenticate(isSASL2: false) }, { $0.authenticate(isSASL2: true) }, { $0.featuresReceived() },
            { _ = $0.open() },
        ]
        for event in events {
            var open = Self.opened()
            event(&open)
            #expect(Self.name(open) == "open")
            var finished = Self.opened()
            _ = finished.finish()
            event(&finished)
            finished.closeStream()
            #expect(Self.name(finished) == "finished")
        }
    }

    @Test func `The end of the negotiation releases the data of its state`() {
        var negotiation = Negotiation(Self.options(.off), isConnected: true)
        #expect(negotiation.asymmetric != nil)
        _ = negotiation.finish()
        #expect(negotiation.asymmetric == nil)
        var opaque = Negotiation(Self.options(), isConnected: false)
        opaque.stopDecoding(PassedTLS())
        #expect(opaque.passedTLS != nil && !opaque.isConnected)
        opaque.connected()
        #expect(opaque.passedTLS != nil && opaque.isConnected)
        _ = opaque.finish()
        #expect(opaque.passedTLS == nil)
    }

    @Test func `Passed-through TLS counts as answered only after a complete ClientHello and a ServerHello`() {
        let tls = PassedTLS()
        let hello = RecordedHello.modern
        #expect(tls.read(.send, hello.span.extracting(0..<100)) == nil)
        #expect(tls.read(.recv, [0x16, 3, 3, 0, 4, 2, 0, 0, 0].span) == nil)
        #expect(!tls.isAnswered)
        guard case .hello = tls.read(.send, hello.span.extracting(100...)) else {
            Issue.record("a ClientHello that is not read")
            return
        }
        #expect(tls.isAnswered)
        #expect(tls.read(.send, hello.span) == nil, "told once")
        #expect(!tls.endsWithAlert(.recv))
        _ = tls.read(.recv, [0x15, 3, 3, 0, 2, 1, 0].span)
        #expect(tls.endsWithAlert(.recv) && !tls.endsWithAlert(.send))
    }
}
