import TapTestKit
import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// A session that evaluates a rule set for stanzas.
final class Judge {
    private let rules: RuleSet
    private var state = RuleState(seed: 1)
    private var send = Judge.decoder()
    private var recv = Judge.decoder()
    private let parser = StanzaParser()
    /// The context of the session.
    var context = RuleContext()
    /// The number of element trees that the rules have requested.
    private(set) var treesRead = 0

    init(_ text: String, chain: String = "both") throws {
        rules = try RuleSet.test(text, defaultChain: chain)
        context.jid = "juliet@example.net/balcony"
        context.domain = "example.net"
        context.session = 3
        context.clientAddress = "192.0.2.7"
    }

    init(_ rules: RuleSet) {
        self.rules = rules
        context.jid = "juliet@example.net/balcony"
        context.domain = "example.net"
    }

    private static func decoder() -> StreamDecoder {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(
            Array("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8).span
        )
        _ = decoder.next()
        return decoder
    }

    /// Returns the decision of the rules on a stanza.
    func judge(_ direction: Direction, _ xml: String) throws -> Verdict {
        let bytes = Array(xml.utf8)
        return direction == .send ? try judge(&send, .send, bytes) : try judge(&recv, .recv, bytes)
    }

    private func judge(_ decoder: inout StreamDecoder, _ direction: Direction, _ bytes: [UInt8]) throws -> Verdict {
        decoder.append(bytes.span)
        guard let event = decoder.next() else { throw Unreadable() }
        guard case .item(.element) = event.kind else { throw Unreadable() }
        let element = try parser.parse(decoder)
        return rules.judge(
            RuleItem(direction, event.head, decoder.bytes),
            tree: {
                treesRead += 1
                return element
            },
            state: &state,
            context: context
        )
    }

    struct Unreadable: Error {}

    /// Returns whether the conditions of any rule are true for a stanza.
    func holds(_ direction: Direction, _ xml: String) throws -> Bool { try !judge(direction, xml).hits.isEmpty }
}

extension Verdict {
    /// The replacement of the item, as text.
    var editedText: String? { edited.map { String(decoding: $0, as: UTF8.self) } }

    /// The injected stanzas: `send bounce <message …/>`.
    var injected: [String] {
        actions.compactMap { action in
            guard case .inject(let direction, let bytes, let why) = action.action else { return nil }
            return "\(direction) \(why) \(String(decoding: bytes, as: UTF8.self))"
        }
    }
}

extension Roster {
    /// Returns a roster with a contact in a group, who sees the account's presence, and a stranger who requests a
    /// subscription.
    static func ofTwo() throws -> Roster {
        let stream = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        let result = """
            <iq type='result'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' subscription='from'>\
            <group>Friends</group></item></query></iq>
            """
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Array((stream + result + "<presence from='paris@example.com' type='subscribe'/>").utf8).span)
        _ = decoder.next()
        var roster = Roster()
        while decoder.next() != nil {
            roster.observe(try StanzaParser().parse(decoder), .recv, jid: "juliet@example.net/balcony")
        }
        return roster
    }
}
