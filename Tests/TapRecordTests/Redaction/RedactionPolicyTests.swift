import Foundation
import TapTestKit
import Testing
import XMPPCore

import TapCore
@testable import TapRecord

/// Tests which content the policies `bodies` and `metadata` hide, and which content they show.
@Suite struct RedactionPolicyTests {
    private static func show(_ xml: String, _ policy: RedactionPolicy, _ redactor: Redactor? = nil) -> String {
        let redactor = redactor ?? Redactor(policy: policy, registry: SecretRegistry())
        switch redactor.disclose(item: Array(xml.utf8).span) {
        case .verbatim: return xml
        case .redacted(let redaction): return String(decoding: redaction.bytes, as: UTF8.self)
        case .withheld: return "withheld"
        }
    }

    @Test(arguments: SecretCatalogue.inEveryWrapping(SecretCatalogue.texts))
    func `texts of users are hidden by the policies bodies and metadata`(item: SecretCatalogue.Item) {
        let search = SecretSearch([item])
        #expect(!search.leaks(in: Self.show(item.xml, .secrets)).isEmpty, "it is no secret")
        for policy in [RedactionPolicy.bodies, .metadata] {
            let shown = Self.show(item.xml, policy)
            #expect(search.leaks(in: shown) == [], "\(policy): \(shown)")
        }
    }

    @Test(arguments: SecretCatalogue.inEveryWrapping(SecretCatalogue.people))
    func `identities are hidden by the policy metadata`(item: SecretCatalogue.Item) {
        let shown = Self.show(item.xml, .metadata)
        #expect(SecretSearch([item]).leaks(in: shown) == [], "\(shown)")
        #expect(!shown.contains("[redacted:item"), "\(shown)")
    }

    @Test(arguments: SecretCatalogue.all) func `secrets are hidden by all policies`(item: SecretCatalogue.Item) {
        for policy in [RedactionPolicy.bodies, .metadata] {
            let shown = Self.show(item.xml, policy)
            #expect(SecretSearch([item]).leaks(in: shown) == [], "\(policy): \(shown)")
        }
    }

    @Test func `only the texts of a message are redacted, and its addresses by metadata`() {
        let message =
            "<message xmlns='jabber:client' from='juliet@capulet.example/balcony' id='m1' type='chat' xml:lang='en'>"
            + "<body>Art thou not Romeo?</body><delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>"
        #expect(
            Self.show(message, .bodies) == message.replacing("Art thou not Romeo?", with: "[redacted:text-19#0]")
        )
        #expect(
            Self.show(message, .metadata)
                == message.replacing("Art thou not Romeo?", with: "[redacted:text-19#0]")
                .replacing("juliet@capulet.example/balcony", with: "anon-1@capulet.example/anon-2")
        )
    }

    @Test func `equal texts cannot be recognized, but equal addresses have equal pseudonyms`() {
        let redactor = Redactor(policy: .metadata, registry: SecretRegistry())
        func show(_ xml: String) -> String { Self.show(xml, .metadata, redactor) }
        #expect(show("<message><body>yes</body></message>") == show("<message><body>nay</body></message>"))
        let first = show("<message to='Juliet@Capulet.example/a' from='romeo@capulet.example'/>")
        #expect(first == "<message to='anon-1@capulet.example/anon-2' from='anon-3@capulet.example'/>")
        #expect(show("<presence to='juliet@capulet.example'/>") == "<presence to='anon-1@capulet.example'/>")
        #expect(show("<presence to='juliet@capulet.example/a'/>") == "<presence to='anon-1@capulet.example/anon-2'/>")
        // The same user at another domain, and the same resource of another account, have other pseudonyms.
        #expect(show("<presence to='juliet@montague.example/a'/>") == "<presence to='anon-4@montague.example/anon-5'/>")
        #expect(show("<presence to='capulet.example'/>") == "<presence to='capulet.example'/>")
        #expect(redactor.disclose(address: "juliet@capulet.example/a") == "anon-1@capulet.example/anon-2")
        #expect(redactor.disclose(user: "juliet", at: "capulet.example") == "anon-1")
        #expect(redactor.disclose(address: "no address at all") == "[redacted:address-17#0]")
        #expect(redactor.disclose(text: "juliet is unknown") == "[redacted:text-17#0]")
    }

    @Test func `values that the protocol defines are shown`() {
        for policy in [RedactionPolicy.bodies, .metadata] {
            for xml in [
                "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>",
                "<presence xmlns='jabber:client'><show>away</show><priority>5</priority></presence>",
                "<presence xmlns='jabber:server'><show> xa\n</show><priority> -128</priority></presence>",
                "<presence xmlns='jabber:client'><show>chat</show><priority>+127</priority></presence>",
                "<iq xmlns='jabber:client' type='get' id='1'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>",
                "<iq xmlns='jabber:client' type='result' id='1'><fin xmlns='urn:xmpp:mam:2' complete='true'><set "
                    + "xmlns='http://jabber.org/protocol/rsm'><count>20</count></set></fin></iq>",
                "<a xmlns='urn:xmpp:sm:3' h='7'/>",
            ] { #expect(Self.show(xml, policy) == xml) }
        }
        let bind =
            "<iq xmlns='jabber:client' type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
            + "<jid>juliet@capulet.example/balcony</jid></bind></iq>"
        #expect(Self.show(bind, .bodies) == bind)
        #expect(
            Self.show(bind, .metadata)
                == bind.replacing("juliet@capulet.example/balcony", with: "anon-1@capulet.example/anon-2")
        )
    }

    @Test func `values that the protocol does not define are hidden`() {
        for value in [
            "<show>Away</show>", "<show>in exile</show>", "<priority>128</priority>", "<priority>-129</priority>",
            "<priority>5 five</priority>", "<priority>0x5</priority>", "<priority>00000000005</priority>",
        ] {
            let presence = "<presence xmlns='jabber:client'>\(value)</presence>"
            #expect(Self.show(presence, .secrets) == presence)
            for policy in [RedactionPolicy.bodies, .metadata] {
                #expect(Self.show(presence, policy).contains(">[redacted:text-"), "\(value)")
            }
        }
    }

    @Test(arguments: [RedactionPolicy.bodies, .metadata], [Int.max, 61])
    func `a whole session is recorded without texts and identities`(policy: RedactionPolicy, piece: Int) throws {
        var harness = SessionHarness(options: SessionOptions(level: .trace, redaction: policy))
        harness.say(Array(Conversations.plainLogin.prefix(14)), piece: piece)
        let items = SecretCatalogue.inEveryWrapping(SecretCatalogue.texts + SecretCatalogue.people)
        for item in items { harness.say([(item.direction, item.xml)], piece: piece) }
        // Incomplete, oversized and unparsable items.
        harness.recv("<message from='juliet@example.org/balcony'><body>Zk4 bring ye timeline<\u{1}</body>")
        harness.send("<message to='juliet@example.org/balcony'><body>Zk4 bring ye timeline")
        harness.end(.client, .reset)
        harness.end(.server)
        harness.close()
        let told = try harness.written()
        var secrets = SecretCatalogue.texts.flatMap(\.secrets)
        if policy == .metadata {
            secrets +=
                SecretCatalogue.people.flatMap(\.secrets) + ["juliet", "romeo@", "balcony"].map { Array($0.utf8) }
        }
        #expect(SecretSearch(secrets: secrets).leaks(in: told).prefix(5) == [])
        #expect(told.contains("ready as \(policy == .metadata ? "anon-" : "juliet@example.org/balcony")"))
    }

    @Test(arguments: [Conversations.legacyLogin, Conversations.sasl2, Conversations.component])
    func `logins of all kinds are recorded without names`(turns: [Conversations.Turn]) throws {
        var harness = SessionHarness(options: SessionOptions(level: .trace, redaction: .metadata))
        harness.say(turns)
        harness.recv(
            "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-streams'>bill and juliet</text></stream:error>"
        )
        harness.end(.server)
        harness.end(.client)
        harness.close()
        let told = try harness.written()
        for name in ["bill", "globe", "juliet", "balcony"] { #expect(!told.contains(name), "\(name) in \(told)") }
        #expect(told.contains("session-ready"))
    }

    @Test func `an oversized item is recorded without its addresses`() throws {
        var harness = SessionHarness(
            options: SessionOptions(level: .trace, redaction: .metadata, limits: StreamLimits(itemBytes: 2000))
        )
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send(
            "<message to='juliet@example.org' id='juliet@1'><body>\(String(repeating: "x", count: 4000))</body></message>"
        )
        let told = try harness.written()
        #expect(told.contains("\"truncated\":true"))
        #expect(!told.contains("juliet"))
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `XEP examples keep their structure, but no body and no name`() throws {
        var count = 0
        for policy in [RedactionPolicy.bodies, .metadata] {
            count += try RedactedExamples.forEach(of: policy) { place, element, text in
                #expect(!Self.holdsBody(element), "\(place): \(text)")
                guard policy == .metadata else { return }
                for name in text.matches(of: /[^\s'"<>=]+@/) {
                    #expect(name.output.hasPrefix("anon-"), "\(place): \(name.output)")
                }
            }
        }
        #expect(count > 1000)
    }

    private static func holdsBody(_ element: Element) -> Bool {
        let names: [StaticString] = ["body", "subject", "status", "nick", "title", "reason", "FN", "value"]
        let isHidden =
            element.text.isEmpty || element.text.allSatisfy(\.isWhitespace) || element.text.contains("[redacted:")
        return names.contains { element.isNamed($0) } && element.children.isEmpty && !isHidden
            || element.children.contains(where: holdsBody)
    }
}
