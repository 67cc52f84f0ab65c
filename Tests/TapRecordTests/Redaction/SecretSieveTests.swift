import Foundation
import TapTestKit
import Testing
import XMPPCore

@testable import TapRecord

/// Returns the head of the first element of a stream.
private func head(_ xml: String) -> StanzaHead? {
    var decoder = StreamDecoder(limits: .authenticated)
    let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
    decoder.append(Array((header + xml).utf8).span)
    while let event = decoder.next() {
        if case .item(.element) = event.kind { return event.head }
    }
    return nil
}

@Suite struct SecretSieveTests {
    @Test(arguments: SecretRules.triggers) func `each trigger of a rule is detected in an item`(
        _ trigger: SecretTrigger
    ) throws {
        for namespace in trigger.namespace.map({ [$0] }) ?? [.client, .none, .vCard, .other] {
            let name = trigger.element ?? "surprise"
            let uri = namespace == .other ? "urn:example:unknown" : namespace.uri.description
            let attribute = trigger.attribute.map { " \($0)='x'" } ?? ""
            let element = "<\(name) xmlns='\(uri)'\(attribute)/>"
            #expect(try #require(head(element)).mayContainSecret, "\(element)")
            let inside = "<message><a><b>\(element)</b></a></message>"
            #expect(try #require(head(inside)).mayContainSecret, "\(inside)")
        }
    }

    @Test(arguments: [
        "<message to='a@b' from='c@d/e' id='1' type='chat'><body>Hello, how are you?</body>"
            + "<active xmlns='http://jabber.org/protocol/chatstates'/><request xmlns='urn:xmpp:receipts'/>"
            + "<origin-id xmlns='urn:xmpp:sid:0' id='de305d54-75b4-431b-adb2-eb6b9e546013'/>"
            + "<stanza-id xmlns='urn:xmpp:sid:0' by='a@b' id='28482-98726-73623'/></message>",
        "<message to='a@b'><received xmlns='urn:xmpp:receipts' id='1'/><store xmlns='urn:xmpp:hints'/></message>",
        "<message to='a@b'><result xmlns='urn:xmpp:mam:2' queryid='f27' id='28482-98726-73623'><forwarded "
            + "xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2010-07-10T23:08:25Z'/><message "
            + "xmlns='jabber:client'><body>Hail to thee</body></message></forwarded></result></message>",
        "<iq type='get' id='roster_1'><query xmlns='jabber:iq:roster' ver='ver7'/></iq>",
        "<iq type='result' id='roster_1'><query xmlns='jabber:iq:roster'><item jid='a@b' name='A' subscription='both'>"
            + "<group>Friends</group></item></query></iq>",
        "<iq type='result' id='2'><data xmlns='urn:xmpp:avatar:data'>qANQR1DBwU4DX7jm//YZnncm7v/8w+LZ3rN7"
            + "//</data></iq>",
        "<presence/>",
        "<presence><show>away</show><priority>5</priority><c xmlns='http://jabber.org/protocol/caps' hash='sha-1' "
            + "node='https://psi-im.org#1.2.3' ver='q07IKJEyjvHSyhy//CH0CxmKi8w='/>"
            + "<x xmlns='vcard-temp:x:update'><photo>01b87fcd030b72895ff8e88db57ec525450f000d</photo></x></presence>",
        "<iq type='result' id='1'><query xmlns='http://jabber.org/protocol/disco#info'><identity category='client' "
            + "type='pc' name='Gajim'/><feature var='http://jabber.org/protocol/disco#info'/><feature "
            + "var='http://jabber.org/protocol/muc#user'/></query></iq>",
        "<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>",
        "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>home</resource></bind></iq>",
        "<r xmlns='urn:xmpp:sm:3'/>", "<a xmlns='urn:xmpp:sm:3' h='12'/>", "<enable xmlns='urn:xmpp:sm:3' resume='1'/>",
        "<iq type='set' id='c1'><enable xmlns='urn:xmpp:carbons:2'/></iq>",
        "<active xmlns='urn:xmpp:csi:0'/>",
        "<message><body>Where? At a@b.example, 12:30, and/or c/d at / or /e/; is it?</body></message>",
        "<message><x url='https://a.example/b/c.jpg' by='a@b.example/c?'/></message>",
        "<iq type='error' id='1'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
        "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>",
    ]) func `ordinary stanzas are not searched for secrets`(_ stanza: String) throws {
        #expect(try #require(head(stanza)).mayContainSecret == false)
    }

    @Test(arguments: [
        "apikey", "api-key", "X_Api_Key", "credentials", "Password", "PASSWD", "accessToken", "refresh_token", "pin",
        "OTP",
        "private-key", "client.secret", "userPass", "jwt", "Cookie", "authorization",
    ]) func `A credential's name is found in unknown namespaces, as element and as attribute`(name: String) throws {
        #expect(CredentialName.kind(ofElement: Array(name.utf8).span) != nil)
        for item in [
            "<\(name) xmlns='urn:example:x'/>", "<a xmlns='urn:example:x' \(name)='1'/>",
            "<message><x xmlns='urn:example:x' \(name)='1'/></message>", "<message><\(name)>1</\(name)></message>",
            "<message xmlns:p='urn:example:x' p:\(name)='1'/>",
            "<message><y xmlns='jabber:x:oob' xmlns:p='urn:example:x' p:\(name)='1'/></message>",
        ] { #expect(try #require(head(item)).mayContainSecret, "\(item)") }
    }

    @Test func `Names that only resemble a credential's name are not redacted`() throws {
        let item =
            "<message><entry xmlns='urn:example:x' key='color' author='juliet' pinned='1' keyboard='de'><pinned>1</pinned>"
            + "<author>juliet</author><mapping>m</mapping><compass>north</compass><monkey>m</monkey><option>o</option>"
            + "<keyboard>de</keyboard><passage>p</passage><password-protected>1</password-protected></entry></message>"
        #expect(Shown(item)?.text == item)
    }

    @Test func `A line that names a credential is redacted, and one that resembles it is not`() {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        func shown(_ line: String) -> String { redactor.disclose(line: Array(line.utf8).span) }
        for line in [
            "ApiKey: Hk3fQz", "using credentials juliet Hk3fQz", "Authorization: Bearer Hk3fQz", "PIN is 4711",
        ] {
            #expect(shown(line).hasPrefix("[redacted:text-"), "\(line)")
        }
        for line in ["the author is typing", "authenticated as juliet", "ping sent", "mapping ports"] {
            #expect(shown(line) == line)
        }
    }

    @Test(arguments: [
        "<message><body>a=b</body></message>", "<message><body>#</body></message>",
        "<message><body><![CDATA[x#y]]></body></message>",
        "<message><x><y href='xmpp:a@b?;preauth=1'/></x></message>",
        "<message><x><y href='aEsGcM://a/b#cd'/></x></message>",
        "<message><x><y href='see https://a/b?token=c=='/></x></message>",
        "<message to='a&amp;b'/>",
        "<message><x><y z='&#112;assword'/></x></message>",
        "<message><body>https://a/invite?T</body></message>", "<message><body>https://u:pw@a</body></message>",
        "<message><body>1234567https://a/invite/T</body></message>",
        "<message><body>123456 https://a/invite/T</body></message>",
        "<message><body>https:/<![CDATA[/u:pw@a]]></body></message>",
        "<message><body>https:&#47;/u:pw@a</body></message>",
        "<message><x url='ftp://u:p@h'/></message>", "<message><x url='http://u:pw@h'/></message>",
        "<message><x url='12345678://h/invite?T'/></message>", "<message><x url='1234567://h/invite?T'/></message>",
        "<message><x url='123456://h/invite?T'/></message>",
        "<message><x url='https://h.example/invites/T0KEN'/></message>",
        "<message><x url='https://h.example/p/Invitation/T'/></message>",
        "<message><x url='https://h.example/%69nvite/T'/></message>",
    ]) func `stanzas that may contain a key in a URL are searched`(_ stanza: String) throws {
        #expect(try #require(head(stanza)).mayContainSecret)
    }

    @Test func `an invitation URL is detected in any spelling`() {
        func mayOccur(_ text: String) -> Bool { SecretNames.mayOccur(in: Array(text.utf8).span) }
        for text in ["see https://h/invites/T", "see https://h/Invites/T", "see https://h/%69nvite/T"] {
            #expect(mayOccur(text), "\(text)")
        }
        for text in ["see https://h/other/T", "50% /invite/T"] { #expect(!mayOccur(text), "\(text)") }
    }

    @Test func `the detection of secrets does not depend on the split of the input`() {
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        let link = "<message><body>1 https://a.example/b </body><x>/a</x><x>/</x></message>"
        #expect(DecoderVerifier.checkEachBoundary(Array((header + link).utf8)) == nil)
        for item in SecretCatalogue.items.filter({ $0.xml.utf8.count < 300 }) {
            #expect(DecoderVerifier.checkEachBoundary(Array((header + item.xml).utf8)) == nil, "\(item.name)")
        }
    }

    @Test(.enabled(if: Corpus.isAvailable)) func `redaction of XEP examples removes only values`() throws {
        let redacted = try RedactedExamples.forEach(of: .secrets) { place, _, text in
            #expect(Shown(text)?.text == text, "\(place)")
        }
        #expect(redacted > 150)
    }
}

/// The names for which a redaction rule applies.
struct SecretTrigger: Sendable, CustomStringConvertible {
    /// Local name of the element; nil is any.
    var element: String?
    /// Namespace of the element; nil is any.
    var namespace: Namespace?
    /// The attribute for which the rule applies; nil if the rule applies to the element.
    var attribute: String?

    /// As `{namespace}element@attribute`.
    var description: String {
        "{\(namespace.map { "\($0)" } ?? "*")}\(element ?? "*")\(attribute.map { "@\($0)" } ?? "")"
    }
}

extension SecretRules {
    /// All names for which a rule hides content. The scanner's filter must report each of them; otherwise the redactor
    /// skips the item.
    static var triggers: [SecretTrigger] {
        all.filter(\.hides).map { rule in
            SecretTrigger(element: rule.name.map(\.description), namespace: rule.namespace, attribute: nil)
        }
            + attributes.map { attribute in
                SecretTrigger(element: nil, namespace: nil, attribute: attribute.name.description)
            }
    }
}

extension SecretRule {
    /// Whether the rule itself hides content.
    fileprivate var hides: Bool {
        switch content {
        case .inherited, .shown: !attributes.isEmpty
        // A field's value is hidden only if the field is secret, and the scanner's filter reports the field.
        case .value: false
        case .secret, .sized, .guarded, .sasl, .url, .header, .field, .notification, .pair, .registration: true
        }
    }
}
