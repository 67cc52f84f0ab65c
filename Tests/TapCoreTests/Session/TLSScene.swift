import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// The parts of a session that TLS components receive as arguments.
struct TLSScene: ~Copyable {
    static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"
    static let request = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    static let consent = "<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    static let refusal = "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
    static let offer = "<stream:features>\(request)</stream:features>"
    static let auth = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>"

    var context: SessionContext

    init(_ options: SessionOptions) {
        let run = Run()
        let start = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
        context = SessionContext(
            run: run,
            options: options,
            tools: SessionTools(run: run, redaction: options.redaction),
            remote: nil,
            number: 1,
            at: start
        )
        context.info.domain = "example.org"
        context.negotiation = Negotiation(options, isConnected: true)
    }

    /// Receives bytes without decoding them.
    mutating func receive(_ direction: Direction, _ text: String) {
        let bytes = Array(text.utf8)
        _ = context.directions[direction].count(bytes.count)
        _ = context.directions[direction].receive(bytes.span)
    }

    /// Receives items and returns the last one.
    mutating func item(_ direction: Direction, _ text: String) -> StreamEvent {
        receive(direction, text)
        var (event, last) = (StreamEvent(), StreamEvent())
        while context.directions[direction].next(into: &event) { last = event }
        return last
    }

    /// Handles an item as a session does while TLS begins on one leg only.
    mutating func step(_ direction: Direction, _ text: String) -> (decision: String, effects: [String]) {
        let event = item(direction, text)
        guard let kind = event.item, let decision = context.negotiation.asymmetric?.decide(event, direction, &context)
        else {
            return ("", [])
        }
        switch decision {
        case .other: return ("other", [])
        case .relayInClear: return ("relay in clear", [])
        case .item(.refuse(let refusal), _): return ("refuse \(refusal.code)", [])
        case .item(let decision, let offer):
            let effects = context.negotiation.asymmetric?.advance(event, kind, direction, offer, &context) ?? []
            return ("\(decision)", Self.names(effects))
        }
    }

    /// Removes the pending commands; returns the bytes that they send to a peer.
    mutating func sent(to peer: Leg) -> [[UInt8]] {
        var sent: [[UInt8]] = []
        while !context.outlet.isEmpty {
            switch context.outlet.advance() {
            case .record: _ = context.outlet.takeRecord()
            case .send, .recv, nil: break
            case .other: if case .send(peer, let bytes) = context.outlet.takeCommand() { sent.append(bytes) }
            }
        }
        return sent
    }

    /// Returns the options of a proxy that terminates TLS.
    static func options(_ client: LegTLS = .auto, _ server: LegTLS = .auto) -> SessionOptions {
        var options = SessionOptions(level: .trace)
        options.holdsProceed = true
        (options.clientTLS, options.serverTLS) = (client, server)
        return options
    }

    /// Returns the names of effects; "none" for nil.
    static func names(_ effects: [TLSEffect]?) -> [String] { effects.map { $0.map(name) } ?? ["none"] }

    /// Returns the name of an effect, with the values that the tests compare.
    private static func name(_ effect: TLSEffect) -> String {
        switch effect {
        case .begin(let step, let leg, let side, _):
            "begin \(step.rawValue)\(leg.map { " \($0.name)" } ?? ""), awaits \(side.name)"
        case .finish(let step, let leg, let outcome, _):
            "finish \(step.rawValue)\(leg.map { " \($0.name)" } ?? ""), \(outcome.result.rawValue)"
        case .cancel(let step): "cancel \(step.rawValue)"
        case .hold(let direction): "hold \(direction)"
        case .release(let direction): "release \(direction)"
        case .buffer(let bytes, let direction): "buffer \(direction) \(bytes.map { "\($0.count)" } ?? "nothing")"
        case .enterStream(let direction): "enter \(direction)"
        case .handle(_, let direction, let offer): "handle \(direction)\(offer == nil ? "" : " features")"
        case .receive(let bytes, let direction): "receive \(direction) \(String(decoding: bytes, as: UTF8.self))"
        case .pass(let bytes, let direction): "pass \(direction) \(String(decoding: bytes, as: UTF8.self))"
        case .say(let items, let leg, let opensStream):
            "say\(opensStream ? " header and" : "") \(String(decoding: items.flatMap(\.bytes), as: UTF8.self)) to \(leg.name)"
        case .request(.startServer(let name, _, _, let isDirect)):
            "start server \(name ?? "-")\(isDirect ? " directly" : "")"
        case .request(.findIdentity(let name)): "find identity \(name ?? "-")"
        case .request(.startClient(_, _, _, let first)): "start client \(String(decoding: first, as: UTF8.self))"
        case .request(.presentIdentity): "present identity"
        case .record(let report): "record \(report.code) \(report.leg.name)"
        case .warn(let code, _, let direction): "warn \(code) \(direction)"
        case .refuse(let refusal): "refuse \(refusal.code)"
        case .close(let condition, _): "refuse \(condition.rawValue)"
        case .ended(let leg, _): "ended \(leg.name)"
        case .end(.error(let condition, _, _)): "end with \(condition.rawValue)"
        case .end(.failure): "end with failure"
        case .end(.alert(let alert)): "end with alert \(alert.rawValue)"
        case .end(.nothing): "end"
        case .choose(let domain): "choose \(domain)"
        case .secured(let leg, _): "secured \(leg.name)"
        case .observe(.enteredTLS): "observe TLS"
        case .observe(.secured(let legs)): "observe binding \(legs.strategy)"
        case .observe(.demandedTLS): "observe demand"
        case .observe(.refused): "observe refusal"
        case .observe: "observe"
        case .blame(let cause, _): "blame \(cause.rawValue)"
        case .requestTLS, .declineTLS, .beginHandshake, .enterTLS, .forgetClear, .awaitConsent, .openInside,
            .relayInClear, .releaseClient, .expectRestart, .passThrough, .stop:
            "\(effect)"
        }
    }
}
