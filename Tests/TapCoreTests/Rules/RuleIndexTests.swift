import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// Which rules are asked about an item.
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

    /// The last rules must be asked once one before them has edited the item, whatever it was like before.
    @Test func `the rules that it selects hold for the same items as all together`() throws {
        let rules = try RuleFileTests.load(Self.rules)
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
                for place in 0..<rules.count where indexed.selection.contains(place, stage: 0) { selected += 1 }
                asked += rules.count
            }
        }
        // What it leaves out is most.
        #expect(selected < asked / 2 + asked / 4)
    }

    @Test func `rules for other names are not asked at all`() throws {
        let text = (0..<100).map { "PAYLOAD: urn:example:\($0)\nDROP.\n\n" }.joined()
        let rules = try RuleFileTests.load(text)
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
        let isAsked = rules.index.select(event.head, decoder, .send, isOpen: true, into: &selection)
        #expect(isAsked)
        #expect((0..<100).filter { selection.contains($0, stage: 0) } == [7])
    }
}
