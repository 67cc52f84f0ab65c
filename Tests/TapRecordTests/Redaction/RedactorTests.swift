import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// An item after decoding and redaction.
struct Shown {
    var text: String
    var head: StanzaHead
    var bytes: [UInt8]
    var disclosure: Disclosure

    /// Redacts the first element of a stream.
    init?(
        _ xml: String,
        _ redactor: Redactor = Redactor(policy: .secrets, registry: SecretRegistry()),
        content: String = "jabber:client"
    ) {
        let header = "<stream:stream xmlns='\(content)' xmlns:stream='http://etherx.jabber.org/streams'>"
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Array((header + xml).utf8).span)
        while let event = decoder.next() {
            guard case .item(.element) = event.kind else { continue }
            disclosure = redactor.disclose(event, of: decoder)
            bytes = []
            head = event.head
            switch disclosure {
            case .verbatim: bytes.append(decoder.bytes)
            case .redacted(let redaction):
                bytes = redaction.bytes
                head = redaction.carry(event.head)
            case .withheld: break
            }
            text = String(decoding: bytes, as: UTF8.self)
            return
        }
        return nil
    }

    func part(_ range: ByteRange?) -> String? { range.map { bytes.span.slice($0).string() } }

    var isVerbatim: Bool {
        if case .verbatim = disclosure { return true }
        return false
    }
}

@Suite struct RedactorTests {
    @Test(arguments: SecretCatalogue.all) func `no secret of the catalogue is shown`(_ item: SecretCatalogue.Item)
        throws
    {
        let shown = try #require(Shown(item.xml), "\(item.xml)")
        #expect(!shown.isVerbatim)
        #expect(shown.text.contains("[redacted:"))
        #expect(SecretSearch([item]).leaks(in: shown.text) == [], "\(shown.text)")
        #expect(!shown.text.contains("[redacted:item#"), "nothing of it had to be hidden whole")

        // The redacted item is valid: the scanner reads it, and a second redaction changes nothing.
        let again = try #require(Shown(shown.text), "\(shown.text)")
        #expect(again.text == shown.text)
        #expect(again.part(again.head.name) == shown.part(shown.head.name))
        #expect(again.part(again.head.id?.range) == shown.part(shown.head.id?.range))
        #expect(again.part(again.head.to?.range) == shown.part(shown.head.to?.range))
        #expect(again.part(again.head.payloadName) == shown.part(shown.head.payloadName))
    }

    @Test func `all bytes other than the secret are unchanged`() throws {
        let form =
            "<iq  type=\"set\" id='1'><query xmlns='jabber:iq:register'><username>bill &amp; co</username>"
            + "<password a='1'>%</password ><email><![CDATA[x]]></email></query></iq>"
        let shown = try #require(Shown(form.replacing("%", with: "Calliope")))
        #expect(shown.text == form.replacing("%", with: "[redacted:password#1]"))
    }

    @Test func `equal values have equal numbers, whatever their notation`() throws {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        let values = ["secret", "other", "se&#99;ret", "sec<![CDATA[ret]]>", "<![CDATA[secret]]>", "other", "third"]
        let numbers = try values.map { value in
            let shown = try #require(Shown("<x><password>\(value)</password></x>", redactor))
            return shown.text.split(separator: "#").last?.prefix { $0 != "]" }
        }
        #expect(numbers == ["1", "2", "1", "1", "1", "2", "3"])
    }

    @Test func `placeholders name the kind of a SASL message`() throws {
        let kinds: [(String, String)] = [
            ("PLAIN", "sasl-plain"), ("SCRAM first", "sasl-scram-first"), ("SCRAM challenge", "sasl-scram-challenge"),
            ("SCRAM proof", "sasl-scram-proof"), ("SCRAM verifier", "sasl-scram-verifier"),
            ("OAUTHBEARER", "sasl-oauth"), ("X-OAUTH2", "sasl-oauth"), ("HT", "sasl-hashed-token"),
            ("DIGEST-MD5 challenge", "sasl-digest-challenge"), ("DIGEST-MD5 response", "sasl-digest-response"),
            ("EXTERNAL", "sasl-external"), ("ANONYMOUS", "sasl-anonymous"), ("GSSAPI", "sasl-initial"),
            ("CRAM-MD5", "sasl-response"),
        ]
        for (name, kind) in kinds {
            let item = try #require(SecretCatalogue.items.first { $0.name == name })
            #expect(Shown(item.xml)?.text.contains(">[redacted:\(kind)#1]<") == true, "\(name)")
        }
    }

    @Test func `public parts of an authentication remain readable`() throws {
        let item = try #require(SecretCatalogue.items.first { $0.name == "SASL2 authenticate" })
        let text = try #require(Shown(item.xml)).text
        for part in [
            "mechanism='HT-SHA-256-ENDP'", "<software>AwesomeXMPP</software>", "<tag>AwesomeXMPP</tag>", "count='3'",
            "h='5'", "\n  <fast ",
        ] {
            #expect(text.contains(part), "\(part)")
        }
        let success = try #require(SecretCatalogue.items.first { $0.name == "SASL2 success with a token" })
        let shown = try #require(Shown(success.xml)).text
        for part in [">romeo@example.org/balcony<", "expiry='2020-03-12T14:36:15Z'", "max='600'"] {
            #expect(shown.contains(part), "\(part)")
        }
    }

    @Test(arguments: [
        "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>",
        "<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/><text>No such user</text></failure>",
        "<failure xmlns='urn:xmpp:sasl:2'><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></failure>",
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
            + "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>PLAIN</mechanism><inline><fast xmlns='urn:xmpp:fast:0'>"
            + "<mechanism>HT-SHA-256-NONE</mechanism></fast><sm xmlns='urn:xmpp:sm:3'/></inline>"
            + "<upgrade xmlns='urn:xmpp:sasl:upgrade:0'>UPGR-SCRAM-SHA-256</upgrade></authentication></stream:features>",
        "<iq type='get' id='1'><query xmlns='jabber:iq:auth'><username>bill</username></query></iq>",
        "<iq type='result' id='1'><query xmlns='jabber:iq:auth'><username/><password/><digest/></query></iq>",
        "<iq type='result' id='1'><query xmlns='http://jabber.org/protocol/disco#info'><x xmlns='jabber:x:data'><field "
            + "var='FORM_TYPE' type='hidden'><value>urn:xmpp:dataforms:softwareinfo</value></field></x></query></iq>",
        "<iq type='set' id='1'><x xmlns='jabber:x:data'><field var='muc#roomconfig_passwordprotectedroom'><value>1</value>"
            + "</field><field type='boolean' var='secretroom'><value>0</value></field></x></iq>",
        "<message><body>1+1=2 #yes https://example.org/watch?v=abcdef&amp;t=1#top; a=b</body></message>",
        "<db:result xmlns:db='jabber:server:dialback' from='a' to='b' type='valid'/>",
        "<presence><c xmlns='http://jabber.org/protocol/caps' hash='sha-1' node='https://x.im' ver='QgayPKawpkPSDYmwT/WM='/></presence>",
        "<failed xmlns='urn:xmpp:sm:3' h='3'/>",
        "<iq type='result' id='1'><query xmlns='jabber:iq:register'><instructions>Choose</instructions><registered/>"
            + "<username>bill</username><email>bill@globe.example</email><password/>"
            + "<x xmlns='jabber:x:data' type='form'><title>Join</title><field type='text-single' label='Name' var='username'>"
            + "<required/><value>bill</value></field></x>"
            + "<x xmlns='jabber:x:oob'><url>https://globe.example/register</url></x></query></iq>",
        "<iq type='result' id='1'><x xmlns='jabber:x:data' type='result'><item><field var='a'><value>1</value></field></item>"
            + "<reported><field var='a' type='text-single'/></reported></x></iq>",
        "<message><properties xmlns='urn:p'><property name='colour' value='red'>x</property><property><name>size</name>"
            + "<value>3</value></property></properties></message>",
        "<iq type='set' id='1'><jingle xmlns='urn:xmpp:jingle:1'><parameter name='useinbandfec' value='1'/></jingle></iq>",
        "<message><body>https://example.org/watch?v=abcdef https://example.org/?abcdef xmpp:a@b.example?join "
            + "https://a.example/@user?page=2</body></message>",
        "<iq type='result' id='1'><vCard xmlns='vcard-temp'><TEL><NUMBER>1</NUMBER></TEL><URL>https://a.example/?x=1</URL>"
            + "</vCard></iq>",
        "<iq type='set' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='a'><item/></publish></pubsub></iq>",
    ]) func `an item without a secret is shown unchanged`(_ xml: String) throws {
        #expect(try #require(Shown(xml)).text == xml)
    }

    @Test func `text beside a secret remains readable`() throws {
        func show(_ xml: String) throws -> String { try #require(Shown(xml)).text }
        let properties =
            "<message><p xmlns='urn:p'><property name='password' type='string' value='%1'/><property><value>%2</value>"
            + "<name>db.password</name></property><property><name>size</name><value>3</value></property></p></message>"
        #expect(
            try show(properties)
                == properties.replacing("%1", with: "[redacted:password#1]")
                .replacing("%2", with: "[redacted:form-secret#2]")
        )
        let card = "<iq><vCard xmlns='vcard-temp'><FN>J</FN><KEY><TYPE>PGP</TYPE><CRED>%</CRED></KEY></vCard></iq>"
        #expect(try show(card) == card.replacing("%", with: "[redacted:key#1]"))
        let table =
            "<iq><x xmlns='jabber:x:data'><item><field var='a'><value>1</value></field><field var='b'><value>%</value></field>"
            + "</item><reported><field var='a'/><field var='b' type='text-private'/></reported></x></iq>"
        #expect(try show(table) == table.replacing("%", with: "[redacted:form-secret#1]"))
        let registration =
            "<iq><query xmlns='jabber:iq:register'><username>bill</username><pin a='%1'>%2</pin><x xmlns='jabber:x:data'>"
            + "<field var='email'><value>b</value></field></x></query></iq>"
        #expect(
            try show(registration)
                == registration.replacing("%1", with: "[redacted:form-secret#1]")
                .replacing("%2", with: "[redacted:form-secret#2]")
        )
    }

    @Test func `a second pass finds the secrets in nested and reordered forms`() throws {
        // The form's `reported` element follows its rows, and namespaces are declared on inner elements.
        let item =
            "<iq><p:x xmlns:p='jabber:x:data'><p:item><p:field xmlns:q='urn:q' var='a'><p:value>%</p:value></p:field></p:item>"
            + "<x xmlns='jabber:x:data'><reported><field var='a' type='text-private'/></reported></x></p:x>"
            + "<query xmlns='jabber:iq:auth'><digest>%</digest></query></iq>"
        let shown = try #require(Shown(item.replacing("%", with: "Hy7kTm2wQz"))).text
        #expect(!shown.contains("Hy7kTm2wQz") && !shown.contains("[redacted:item"), "\(shown)")
        #expect(shown.contains("[redacted:form-secret#1]") && shown.contains("[redacted:password-digest#1]"))
    }

    @Test(arguments: [
        "password", "Pass_Word", "new-pass", "newpass", "passcode", "PASSPHRASE", "db.pwd", "userPass2", "pin",
        "credential",
        "x-credentials", "api_key", "apiKey", "private key", "otp", "muc#roomconfig_roomsecret", "key", "auth_data",
        "oauth_token",
    ]) func `a field with the name of a credential is hidden, whatever its spelling`(name: String) throws {
        let shown = try #require(
            Shown("<iq><x xmlns='jabber:x:data'><field var='\(name)'><value>v</value></field></x></iq>")
        )
        #expect(shown.text.contains("<value>[redacted:"), "\(shown.text)")
    }

    @Test(arguments: [
        "passing-grade", "compass", "bypass", "passport", "spinner", "username", "keyboard", "monkey", "public-key",
        "FORM_TYPE",
        "muc#roomconfig_passwordprotectedroom", "author", "pixel",
    ]) func `a field with a similar name is shown`(name: String) throws {
        let form = "<iq><x xmlns='jabber:x:data'><field var='\(name)'><value>v</value></field></x></iq>"
        #expect(try #require(Shown(form)).text == form)
    }

    @Test func `the head of a redacted item refers to the shown text`() throws {
        let shown = try #require(
            Shown(
                "<p:enabled  xmlns:p='urn:xmpp:sm:3' id='a-long-and-secret-handle' to='x&amp;y' type='t'><p:z/></p:enabled>"
            )
        )
        #expect(shown.part(shown.head.name) == "enabled")
        #expect(shown.part(shown.head.id?.range) == "[redacted:sm-id#1]")
        #expect(shown.part(shown.head.to?.range) == "x&amp;y")
        #expect(shown.part(shown.head.type?.range) == "t")
        #expect(shown.part(shown.head.payloadName) == "z")

        let other = try #require(
            Shown("<iq id='aesgcm://h#k' to='t'><q xmlns='urn:q'><password>abc</password></q></iq>")
        )
        #expect(other.part(other.head.id?.range) == "aesgcm://h#[redacted:file-key#1]")
        guard case .item(let range) = other.head.payloadNamespace.source else {
            Issue.record("the namespace of the payload is known")
            return
        }
        #expect(other.part(range) == "urn:q")
    }

    @Test func `the query of an upload slot is hidden in later messages`() throws {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        let message = "<message><body>https://a/b?v=4cD0mNeS7gHb</body></message>"
        #expect(try #require(Shown(message, redactor)).isVerbatim)
        let slot = "<iq><slot xmlns='urn:xmpp:http:upload:0'><put url='https://a/b?v=4cD0mNeS7gHb#x'/></slot></iq>"
        #expect(try #require(Shown(slot, redactor)).text.contains("'https://a/b?[redacted:url-query#1]'"))
        #expect(try #require(Shown(message, redactor)).text.contains("https://a/b?[redacted:url-query#1]<"))
    }

    @Test func `items that were not searched for secrets are withheld`() {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        let open = Redactor(policy: .none, registry: SecretRegistry())
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
        let long = "<enabled xmlns='urn:xmpp:sm:3' id='handle'>" + String(repeating: "<a/>", count: 200) + "</enabled>"
        for (input, kinds) in [(header + long + "<a", 4), (header + "<a><!", 2), (header + "<a>&x;", 2)] {
            var decoder = StreamDecoder(limits: StreamLimits(itemBytes: 300))
            decoder.append(Array(input.utf8).span)
            var events = 0
            func check(_ event: StreamEvent) {
                events += 1
                if case .item(.header) = event.kind { return }
                if case .withheld = redactor.disclose(event, of: decoder) {} else { Issue.record("\(event.kind)") }
                if case .verbatim = open.disclose(event, of: decoder) {} else { Issue.record("\(event.kind)") }
                #expect(redactor.disclose(event.head).id == nil)
            }
            while let event = decoder.next() { check(event) }
            if let event = decoder.finish() { check(event) }
            #expect(events >= kinds)
        }
        #expect(redactor.policy.showsRawBytes == false)
        #expect(open.policy.showsRawBytes)
    }

    @Test func `an item that cannot be parsed is hidden completely`() {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for item in ["<a><password>x</a>", "<a", "<a/>text", "text", "<a></a></a>", "<p:a xmlns:p=''/>", "<a b='1"] {
            guard case .redacted(let redaction) = redactor.disclose(item: Array(item.utf8).span) else {
                Issue.record("\(item) is shown")
                continue
            }
            let text = String(decoding: redaction.bytes, as: UTF8.self)
            #expect(text.hasPrefix("[redacted:item#"), "\(text)")
            #expect(redaction.carry(ByteRange(1, 2)) == nil)
        }
    }

    @Test func `the policy none hides nothing`() throws {
        let redactor = Redactor(policy: .none, registry: SecretRegistry())
        for item in SecretCatalogue.items { #expect(try #require(Shown(item.xml, redactor)).isVerbatim) }
    }

    @Test func `an excerpt contains no secret`() {
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for item in SecretCatalogue.all {
            let bytes = Array(item.xml.utf8)
            #expect(redactor.excerpt(of: bytes.span, around: 20) == nil, "\(item.name)")
        }
        let harmless = Array("<message to='a@b' type='chat'><body>Hello <b></body></message>".utf8)
        #expect(redactor.excerpt(of: harmless.span, around: 50) == ByteRange(0, harmless.count))
        #expect(redactor.excerpt(of: harmless.span, around: 50, limit: 10) == ByteRange(45, 55))
        #expect(redactor.excerpt(of: harmless.span, around: 5000) == nil)
        for (text, isShown) in [
            ("see https://a.example/b, a@b.example?", true), ("https://u:pw@a.example", false),
            ("https://a.example/x?TOKEN", false), ("https://a.example/invites/TOKEN", false),
        ] {
            let bytes = Array("<message><body>\(text)<b></body>".utf8)
            #expect((redactor.excerpt(of: bytes.span, around: 20) != nil) == isShown, "\(text)")
        }
    }

    @Test func `mutated items do not crash the redactor, and ranges still fit`() {
        var random = SeededGenerator(seed: 11)
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for _ in 0..<6000 {
            guard let item = SecretCatalogue.all.randomElement(using: &random) else { return }
            var bytes = Array(item.xml.utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: bytes.indices, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(Array("<>&;#='\"]".utf8).randomElement(using: &random) ?? 0, at: index)
                }
            }
            guard case .redacted(let redaction) = redactor.disclose(item: bytes.span) else { continue }
            #expect(redaction.carry(ByteRange(0, bytes.count)) == ByteRange(0, redaction.bytes.count))
        }
    }
}
