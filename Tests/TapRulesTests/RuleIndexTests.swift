import TapTestKit
import Testing
import XMPPCore

import TapRecord
@testable import TapRules

/// Tests which rules the index selects for an item.
@Suite struct RuleIndexTests {
    private static let rules = """
        PAYLOAD: urn:xmpp:ping
        LOG=1

        PAYLOAD: urn:example:a
        LOG=2

        TYPE: chat, normal
        LOG=3

        NOT TYPE: chat
        LOG=4

        INSPECT: body#=hello
        LOG=5

        INSPECT: body#~=^$
        LOG=6

        INSPECT: {urn:xmpp:receipts}request
        LOG=7

        ELEMENT: {urn:xmpp:sm:3}r
        LOG=8

        ELEMENT: message
        LOG=9

        EVERY: 2
        TYPE: error
        LOG=10

        NOT PAYLOAD: urn:example:b
        TYPE: get
        LOG=11

        KIND: presence
        LOG=12

        TYPE: extraordinary
        LOG=13

        SET=body#=hello

        INSPECT: body#=hello
        LOG=14

        """

    private static let items = [
        "<message/>", "<message type='chat'/>", "<message type='error'/>", "<message type='ch&#97;t'/>",
        "<message><body>hello</body></message>", "<message><body/></message>", "<message><body>bye</body></message>",
        "<message><x xmlns='urn:example:a'/></message>", "<message><y xmlns='urn:example:b'/></message>",
        "<message><y xmlns='urn:example:&#97;'/></message>",
        "<p:message xmlns:p='jabber:client'><p:body>hello</p:body></p:message>",
        "<message><i/><x xmlns='urn:example:a'/><![CDATA[x]]></message>",
        "<message><request xmlns='urn:xmpp:receipts'/><body>hello</body></message>",
        "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>", "<iq type='result' id='1'/>",
        "<iq type='set' id='1'><e:q/></iq>", "<presence/>", "<presence type='unavailable'/>",
        "<presence type='extraordinary'/>", "<r xmlns='urn:xmpp:sm:3'/>", "<a xmlns='urn:xmpp:sm:3'/>",
        "<message xmlns='urn:other'/>", "<message a:b='c' xmlns:a='d'><body>hello</body></message>",
    ]

    private struct Unreadable: Error {}

    /// If a rule has edited the item, the last rules must be evaluated even if they did not apply to the original item.
    @Test func `rules selected by the index match the same items as all rules`() throws {
        let rules = try RuleSet.test(Self.rules)
        var (selected, asked) = (0, 0)
        for isOutlined in [true, false] {
            var decoder = StreamDecoder(limits: .authenticated, outline: isOutlined ? ItemOutline() : nil)
            decoder.append(
                Array(
                    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' xmlns:e='urn:example:a'>"
                        .utf8
                ).span
            )
            _ = decoder.next()
            var plain = RuleState(seed: 1)
            var indexed = RuleState(seed: 1)
            for item in Self.items {
                decoder.append(Array(item.utf8).span)
                guard let event = decoder.next() else { throw Unreadable() }
                let element = try? StanzaParser().parse(decoder)
                let isAsked = rules.index.select(
                    event.head,
                    decoder,
                    .send,
                    isOpen: true,
                    jid: nil,
                    into: &indexed.selection
                )
                let all = rules.judge(
                    RuleItem(.send, event.head, decoder.bytes),
                    tree: { element },
                    state: &plain,
                    context: RuleContext()
                )
                let some = rules.judge(
                    RuleItem(.send, event.head, decoder.bytes),
                    tree: { element },
                    state: &indexed,
                    context: RuleContext()
                )
                #expect(all.hits == some.hits, "\(item)")
                #expect(isAsked || all.hits.isEmpty, "\(item)")
                for place in 0..<rules.count where indexed.selection.next(from: place, stage: 0) == place {
                    selected += 1
                }
                asked += rules.count
            }
        }
        // The index skips more than a quarter of the rules.
        #expect(selected < asked / 2 + asked / 4)
    }

    @Test func `the index does not select rules for other payload namespaces`() throws {
        let text = (0..<100).map { "PAYLOAD: urn:example:\($0)\nDROP.\n\n" }.joined()
        let rules = try RuleSet.test(text)
        var decoder = StreamDecoder(limits: .authenticated, outline: ItemOutline())
        decoder.append(
            Array(
                "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'><message><body>a</body><x xmlns='urn:example:7'/></message>"
                    .utf8
            ).span
        )
        _ = decoder.next()
        guard let event = decoder.next() else { throw Unreadable() }
        var selection = RuleSelection()
        let isAsked = rules.index.select(event.head, decoder, .send, isOpen: true, jid: nil, into: &selection)
        #expect(isAsked)
        #expect((0..<100).filter { selection.next(from: $0, stage: 0) == $0 } == [7])
    }

    private static let addressRules = [
        "TO: romeo@example.net", "TO: Romeo@EXAMPLE.net", "TO: <*>@example.net", "TO: <Romeo>@example.net",
        "TO: <rom*>@<*.net>", "TO: <<^rom>>@<<net>>", "TO: <*o>@<*>", "TO: <<r%w+o>>@example.net",
        "TO: romeo@münchen.example", "TO: romeo@<xn--*.example>", "TO: romeo@[::1]", "TO: ROMEO@ÉXAMPLE.net",
        "TO: <*>@<*.>", "FROM: juliet@example.org", "FROM: <jul*>@<*.org>", "FROM: <*>@example.org/<b*>",
        "FROM: example.org", "WITH: romeo@example.net", "WITH: <*>@example.org", "WITH: juliet@<*>",
        "NOT TO: romeo@example.net", "TO: romeo@example.net/orchard", "FROM: mercutio@<*>", "WITH: mercutio@<*>",
    ]

    private static let addresses = [
        "romeo@example.net", "ROMEO@Example.Net", "romeo@example.net./x", "romeo@example.net/orchard", "example.net",
        "juliet@example.org/balcony", "juliet@sub.example.org", "example.org", "mercutio@example.org",
        "rom&#101;o@example.net", "rom\u{FF45}o@example.net", "romeo@exampl\u{FF25}.net",
        "romeo@xn--mnchen-3ya.example",
        "romeo@XN--MNCHEN-3YA.example", "romeo@münchen.example", "Romeo@xn--.example", "romeo@[::1]",
        "romeo@[0:0:0:0:0:0:0:1]", "@example.net", "romeo@", "", "a b@example.net", "Romeo@ex ample.net",
        "/romeo@example.net", "romeo@éxample.net", "\u{212A}romeo@example.net",
    ]

    /// No rule that the index skips would have matched, however the address is written.
    @Test(arguments: [Direction.send, .recv])
    func `the index skips only rules for other addresses`(_ direction: Direction) throws {
        let rules = try RuleSet.test(Self.addressRules.map { "\($0)\nLOG=x\n\n" }.joined())
        var decoder = StreamDecoder(limits: .authenticated, outline: ItemOutline())
        decoder.append(
            Array("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8).span
        )
        _ = decoder.next()
        var plain = RuleState(seed: 1)
        var indexed = RuleState(seed: 1)
        var context = RuleContext()
        var (selected, asked) = (0, 0)
        let written = [nil] + Self.addresses.map(Optional.some)
        for jid in [nil, "juliet@Example.ORG/balcony"] {
            context.jid = jid
            for (from, to) in written.flatMap({ from in written.map { (from, $0) } }) {
                let attributes = "\(from.map { " from='\($0)'" } ?? "")\(to.map { " to='\($0)'" } ?? "")"
                decoder.append(Array("<message\(attributes)/>".utf8).span)
                guard let event = decoder.next() else { throw Unreadable() }
                let item = RuleItem(direction, event.head, decoder.bytes)
                let isAsked = rules.index.select(
                    event.head,
                    decoder,
                    direction,
                    isOpen: true,
                    jid: jid,
                    into: &indexed.selection
                )
                let all = rules.judge(item, tree: { nil }, state: &plain, context: context)
                let some = rules.judge(item, tree: { nil }, state: &indexed, context: context)
                #expect(all.hits == some.hits, "\(attributes)")
                #expect(isAsked || all.hits.isEmpty, "\(attributes)")
                for place in 0..<rules.count where indexed.selection.next(from: place, stage: 0) == place {
                    selected += 1
                }
                asked += rules.count
            }
        }
        // Many of the addresses are not plain, so the index skips only some of the rules.
        #expect(selected < asked * 9 / 10)
    }
}
