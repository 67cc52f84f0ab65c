import TapDiagnosis
import TapRecord
import XMPPCore

@testable import TapCore

/// A ``TLSScene`` with the components of a login.
struct LoginScene: ~Copyable {
    static let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"
    static let serverHeader =
        "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams' "
        + "xmlns:db='jabber:server:dialback' from='a.example' to='b.example' version='1.0'>"

    var base: TLSScene
    var authentication: Authentication
    var streams = Streams()

    init(_ options: SessionOptions = SessionOptions(level: .trace)) {
        base = TLSScene(options)
        authentication = Authentication(options)
    }

    /// Handles a login element that was relayed.
    mutating func handle(_ direction: Direction, _ text: String) -> [String] {
        let event = base.item(direction, text)
        return Self.names(authentication.handle(event, direction, &base.context))
    }

    /// Removes the pending records, and returns their codes.
    mutating func codes() -> [String] {
        var codes: [String] = []
        while !base.context.outlet.isEmpty {
            switch base.context.outlet.advance() {
            case .record: if let code = base.context.outlet.takeRecord()?.record.code { codes.append(code) }
            case .send, .recv, nil: break
            case .other: _ = base.context.outlet.takeCommand()
            }
        }
        return codes
    }

    /// Returns the names of effects, with the values that the tests compare.
    static func names(_ effects: [SessionEffect]) -> [String] {
        effects.map { effect in
            switch effect {
            case .open(let words, let earlier): "open: \(words)\(earlier.map { " \($0)" } ?? "")"
            case .enabled(let element): "enabled \(element.attribute("id") ?? "-")"
            case .resumed(let element, let identifier):
                "resumed \(element?.attribute("previd") ?? "-") \(identifier ?? "-")"
            case .software(let name): "software \(name ?? "-")"
            case .answerLogin(let bytes): "answer \(String(decoding: bytes, as: UTF8.self))"
            case .relayLogin(let bytes): "relay \(String(decoding: bytes, as: UTF8.self))"
            case .authenticated: "authenticated"
            case .refusedLogin: "refused"
            }
        }
    }
}
