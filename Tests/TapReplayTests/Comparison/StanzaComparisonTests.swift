import Testing

@testable import TapReplay

@Suite struct StanzaComparisonTests {
    private func differences(
        _ recorded: String,
        _ live: String,
        _ noise: String = "",
        bindings: ValueBindings = ValueBindings()
    ) throws -> [String] {
        var bindings = bindings
        return StanzaComparison.compare(
            recorded: try form(recorded),
            live: try form(live),
            bindings: &bindings,
            rules: NoiseRules(try NoiseFile.rules(noise, file: "test"))
        ).map { "\($0.path) \($0.reason.rawValue) \($0.recorded ?? "-") \($0.live ?? "-")" }
    }

    @Test(arguments: [
        (
            "<message id='1' to='a@x/r'><body>hi</body></message>",
            "<message to=\"a@x/s\" id='2'><body>hi</body></message>"
        ),
        (
            "<iq type='result' id='1'><query xmlns='jabber:iq:roster' ver='1'><item jid='a'/><item jid='b'/></query></iq>",
            "<iq type='result' id='2'><query xmlns='jabber:iq:roster' ver='9'><item jid='b'/><item jid='a'/></query></iq>"
        ),
        (
            "<message><delay xmlns='urn:xmpp:delay' stamp='2026-01-01T00:00:00Z'/></message>",
            "<message><delay xmlns='urn:xmpp:delay' stamp='2027-01-01T00:00:00.5Z'/></message>"
        ),
        (
            "<iq><query xmlns='http://jabber.org/protocol/disco#info' node='http://c#AAA='/></iq>",
            "<iq><query xmlns='http://jabber.org/protocol/disco#info' node='http://c#BBB='/></iq>"
        ),
        (
            "<message type='groupchat' from='room@x/nick' to='me@x/r1'/>",
            "<message type='groupchat' from='room@x/nick' to='me@x/r2'/>"
        ),
        (
            "<presence from='me@x/r1' to='room@x/nick'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
            "<presence from='me@x/r2' to='room@x/nick'><x xmlns='http://jabber.org/protocol/muc'/></presence>"
        ),
        (
            "<message><body>2026-01-01T00:00:00.25+01:00</body></message>",
            "<message><body>2027-01-01T00:00:00Z</body></message>"
        ),
        // Implied addresses.
        ("<iq type='result' to='me@x/r1'/>", "<iq type='result' from='me@x' to='me@x/r1' xml:lang='en'/>"),
        ("<presence from='me@x/r1' to='me@x/r1'/>", "<presence from='me@x/r1'/>"),
        // Elements and attributes that a server may leave out.
        ("<message><body>a</body></message>", "<message xml:lang='en'><body>a</body></message>"),
        (
            "<message type='groupchat' from='room@x'><subject/></message>",
            "<message type='groupchat' from='room@x' id='1'><subject/></message>"
        ),
        (
            "<message type='error'><error type='auth'/></message>",
            "<message type='error'><body>a</body><x xmlns='urn:x'/><error type='auth'/></message>"
        ),
        (
            "<presence from='a@x/r'><x xmlns='vcard-temp:x:update'><photo/></x></presence>",
            "<presence from='a@x/r'><x xmlns='vcard-temp:x:update'/></presence>"
        ),
        (
            "<message><delay xmlns='urn:xmpp:delay' from='x' stamp='2026-01-01T00:00:00Z'/></message>",
            "<message><delay xmlns='urn:xmpp:delay' from='a@x' stamp='2026-01-01T00:00:00Z'/></message>"
        ),
        (
            "<message><archived xmlns='urn:xmpp:mam:tmp' by='me@x' id='1'/></message>",
            "<message><archived xmlns='urn:xmpp:mam:tmp' by='me@x' id='2'/></message>"
        ),
    ])
    func `stanzas with the same meaning have no difference`(recorded: String, live: String) throws {
        #expect(try differences(recorded, live) == [])
        #expect(try shape(recorded) == shape(live))
    }

    @Test func `a roster push may be addressed to the account or its client, and may reuse an earlier id`() throws {
        func push(_ attributes: String) -> String {
            "<iq type='set' \(attributes)><query xmlns='jabber:iq:roster'><item jid='a@x'/></query></iq>"
        }
        var bindings = ValueBindings()
        try bindings.bind("push", to: "1", .stanzaID)
        let (recorded, live) = (push("id='push' to='me@x/r'"), push("id='2' from='me@x' to='me@x'"))
        #expect(try differences(recorded, live, bindings: bindings) == [])
        let bare = push("id='7'").replacing(" >", with: ">")
        #expect(try differences(bare, live) == [] && differences(live, bare) == [])
        #expect(try shape(bare) == shape(live) && shape(recorded) == shape(live))
        // Without `to`, the iq is a client's request and not a push, so its id must agree.
        let request = try differences(push("id='push'"), push("id='2'"), bindings: bindings)
        #expect(request == ["iq/@id collision push 2"])
    }

    /// Returns the shape of a stanza's digest.
    private func shape(_ text: String) throws -> UInt64 {
        var digester = StanzaDigester(rules: NoiseRules(), names: AddressNames())
        return digester.digest(try form(text).element).shape
    }

    @Test(arguments: [
        ("<message><body>hi</body></message>", "<message><body>ho</body></message>", "message/body/text() value hi ho"),
        ("<message type='chat'/>", "<message/>", "message/@type missing chat -"),
        ("<message/>", "<message type='chat'/>", "message/@type unexpected - chat"),
        ("<presence from='a@x/r'/>", "<presence from='b@x/r'/>", "presence/@from value a@x/r b@x/r"),
        ("<presence from='a@x/r'/>", "<presence from='a@x'/>", "presence/@from value a@x/r a@x"),
        ("<iq to='a@x/r'/>", "<iq to='a@x/r' from='x'/>", "iq/@from unexpected - x"),
        ("<iq to='a@x/r' from='a@x'/>", "<iq to='a@x/r' from='x'/>", "iq/@from value a@x x"),
        ("<presence from='a@x/r' to='a@x/s'/>", "<presence from='a@x/r'/>", "presence/@to missing a@x/s -"),
        (
            "<message type='groupchat' from='room@x/nick'/>", "<message type='groupchat' from='room@x/other'/>",
            "message/@from value room@x/nick room@x/other"
        ),
        (
            "<iq><query xmlns='jabber:iq:roster'><item jid='a' ask='subscribe'/><item jid='b'/></query></iq>",
            "<iq><query xmlns='jabber:iq:roster'><item jid='b'/><item jid='a'/></query></iq>",
            "iq/{jabber:iq:roster}query/item[1]/@ask missing subscribe -"
        ),
        (
            "<iq><query xmlns='jabber:iq:roster'/></iq>",
            "<iq><query xmlns='jabber:iq:roster'><item jid='a'/></query></iq>",
            "iq/{jabber:iq:roster}query/item unexpected - <item xmlns=\"jabber:iq:roster\" jid=\"a\"/>"
        ),
        (
            "<iq><ping xmlns='urn:xmpp:ping'/></iq>", "<iq><query xmlns='jabber:iq:roster'/></iq>",
            "iq/{urn:xmpp:ping}ping missing <ping xmlns=\"urn:xmpp:ping\"/> -"
        ),
        ("<message/>", "<presence/>", "message name message presence"),
        (
            "<presence to='room@x/nick'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
            "<presence to='room@x/other'><x xmlns='http://jabber.org/protocol/muc'/></presence>",
            "presence/@to value room@x/nick room@x/other"
        ),
        (
            "<message><body>2026-01-01T00:00:00Z hello</body></message>",
            "<message><body>2026-01-01T00:00:00Z goodbye</body></message>",
            "message/body/text() value 2026-01-01T00:00:00Z hello 2026-01-01T00:00:00Z goodbye"
        ),
        (
            "<iq><x xmlns='jabber:x:data'><field var='a'><value>1</value><value>2</value></field></x></iq>",
            "<iq><x xmlns='jabber:x:data'><field var='a'><value>2</value><value>1</value></field></x></iq>",
            "iq/{jabber:x:data}x/field/value[1]/text() value 1 2"
        ),
        (
            "<message><body/></message>", "<message><body xmlns='jabber:server'/></message>",
            "message/body missing <body xmlns=\"jabber:client\"/> -"
        ),
        ("<message xml:lang='de'/>", "<message xml:lang='en'/>", "message/@xml:lang value de en"),
        (
            "<message id='1'><subject/></message>", "<message><subject/></message>",
            "message/@id missing 1 -"
        ),
        (
            "<message type='error'><error type='auth'/></message>",
            "<message type='error'><error type='cancel'/></message>", "message/error/@type value auth cancel"
        ),
        // Members of a set are paired by their identifying values.
        (
            info("<identity category='pubsub' type='pep'/><feature var='a'/><feature var='b'/>"),
            info("<identity category='server' type='im'/><identity category='pubsub' type='pep'/><feature var='a'/>"),
            "iq/{http://jabber.org/protocol/disco#info}query/feature[2] missing "
                + "<feature xmlns=\"http://jabber.org/protocol/disco#info\" var=\"b\"/> -"
        ),
        (
            info(dataForm("urn:a", "1") + dataForm("urn:b", "2")),
            info(dataForm("urn:b", "3") + dataForm("urn:a", "1")),
            "iq/{http://jabber.org/protocol/disco#info}query/{jabber:x:data}x[2]/field[2]/value/text() value 2 3"
        ),
        (
            "<message><html xmlns='urn:h'>a<b/>c</html></message>",
            "<message><html xmlns='urn:h'>a<b/>d</html></message>",
            "message/{urn:h}html/text() value c d"
        ),
        (
            "<message><body>a</body></message>", "<message><body><x/></body></message>",
            "message/body/text() value a "
        ),
    ])
    func `a change is reported with its path`(recorded: String, live: String, expected: String) throws {
        #expect(try differences(recorded, live).first == expected)
    }

    @Test func `a bound value must match`() throws {
        var bindings = ValueBindings()
        try bindings.bind("1", to: "a", .stanzaID)
        #expect(try differences("<iq id='1'/>", "<iq id='a'/>", bindings: bindings) == [])
        #expect(try differences("<iq id='1'/>", "<iq id='b'/>", bindings: bindings) == ["iq/@id collision 1 b"])
        #expect(try differences("<iq id='2'/>", "<iq id='a'/>", bindings: bindings) == ["iq/@id collision 2 a"])
    }

    @Test func `the version of a roster is sent as last seen and matches any version`() throws {
        func push(_ version: String) -> String {
            "<iq type='set' id='a'><query xmlns='jabber:iq:roster' ver='\(version)'><item jid='b@c'/></query></iq>"
        }
        var bindings = ValueBindings()
        let pairs = [("1", "4"), ("2", "4"), ("1", "5")]
        for (recorded, live) in pairs {
            #expect(
                StanzaComparison.compare(
                    recorded: try form(push(recorded)),
                    live: try form(push(live)),
                    bindings: &bindings,
                    rules: NoiseRules()
                ) == []
            )
        }
        let request = "<iq type='get' id='r'><query xmlns='jabber:iq:roster' ver='1'/></iq>"
        let sent = bindings.substituted(Array(request.utf8), .toLive)
        #expect(String(decoding: sent, as: UTF8.self).contains("ver='4'"))
        let unversioned = push("1").replacing(" ver='1'", with: "")
        #expect(try differences(push("1"), unversioned) == ["iq/{jabber:iq:roster}query/@ver missing 1 -"])
    }

    @Test func `recorded accounts and domains are replaced by the live ones`() throws {
        var bindings = ValueBindings()
        try bindings.bind("romeo@old.example", to: "u1@new.example", .account)
        let recorded =
            "<message from='romeo@old.example/x' to='r@muc.old.example'><body>I am romeo@old.example.</body></message>"
        #expect(
            try differences(
                recorded,
                "<message from='u1@new.example/y' to='r@muc.new.example'><body>I am u1@new.example.</body></message>",
                bindings: bindings
            ) == []
        )
        // On the live side, the recorded addresses belong to other accounts.
        #expect(
            try differences(recorded, recorded, bindings: bindings).contains(
                "message/@to value r@muc.old.example r@muc.old.example"
            )
        )
    }

    @Test(arguments: [
        ("iq/@load number ± 0.5", "<iq load='1'/>", "<iq load='1.5'/>", ""),
        ("iq/@load number ± 0.5", "<iq load='1'/>", "<iq load='1.6'/>", "iq/@load number 1 1.6"),
        ("iq/@load number ± 0.5", "<iq load='NaN'/>", "<iq load='1'/>", "iq/@load value NaN 1"),
        ("iq/@load present", "<iq load='1'/>", "<iq load='x'/>", ""),
        ("iq/t/text() present", "<iq><t>1</t></iq>", "<iq><t>2</t></iq>", ""),
        ("iq/t/text() present", "<iq><t>1</t></iq>", "<iq><t/></iq>", "iq/t/text() missing 1 -"),
        ("iq/@load present", "<iq load='1'/>", "<iq/>", "iq/@load missing 1 -"),
        ("iq/@load ignore", "<iq load='1'/>", "<iq/>", ""),
        ("iq/{urn:x}y ignore", "<iq><y xmlns='urn:x'/></iq>", "<iq/>", ""),
        ("iq/{urn:x}y present", "<iq><y xmlns='urn:x'/></iq>", "<iq><y xmlns='urn:x' z='1'>t</y></iq>", ""),
        ("iq/{urn:x}y present", "<iq><y xmlns='urn:x'/></iq>", "<iq/>", "iq/{urn:x}y missing <y xmlns=\"urn:x\"/> -"),
        (
            "message/body/text() regex ^code [0-9]+$", "<message><body>code 1</body></message>",
            "<message><body>code 22</body></message>", ""
        ),
        (
            "message/body/text() regex ^code [0-9]+$", "<message><body>code 1</body></message>",
            "<message><body>code x</body></message>",
            "message/body/text() pattern code 1 code x"
        ),
        ("iq/@load bind token", "<iq load='1'/>", "<iq load='2'/>", ""),
        ("iq/@j jid", "<iq j='a@x/1'/>", "<iq j='a@x/2'/>", ""),
    ])
    func `a noise rule decides which differences are allowed`(
        noise: String,
        recorded: String,
        live: String,
        expected: String
    ) throws {
        #expect(try differences(recorded, live, noise) == (expected.isEmpty ? [] : [expected]))
    }

    @Test func `a redacted value is undecided`() throws {
        var bindings = ValueBindings()
        let comparison = StanzaComparison(
            recorded: try form("<iq><password xmlns='jabber:iq:register'>[redacted:password#1]</password></iq>"),
            live: try form("<iq><password xmlns='jabber:iq:register'>secret</password></iq>"),
            bindings: &bindings,
            rules: NoiseRules()
        )
        #expect(comparison.differences == [])
        #expect(comparison.undecided == ["iq/{jabber:iq:register}password/text()"])
    }

    @Test func `deeply nested stanzas are compared without a crash`() throws {
        let deep = "<iq>" + String(repeating: "<a>", count: 200) + String(repeating: "</a>", count: 200) + "</iq>"
        #expect(try differences(deep, deep) == [])
    }

    @Test(arguments: [
        ("<message/>", "<message type='normal'/>"),
        (
            "<iq><fin xmlns='urn:xmpp:mam:2'/></iq>",
            "<iq><fin xmlns='urn:xmpp:mam:2' complete='false' stable='true'/></iq>"
        ),
        (
            "<iq><x xmlns='jabber:x:data'><field var='a'/></x></iq>",
            "<iq><x xmlns='jabber:x:data'><field type='text-single' var='a'/></x></iq>"
        ),
        ("<enabled xmlns='urn:xmpp:sm:3'/>", "<enabled xmlns='urn:xmpp:sm:3' resume='false'/>"),
        (
            "<message><conference xmlns='urn:xmpp:bookmarks:1'/></message>",
            "<message><conference xmlns='urn:xmpp:bookmarks:1' autojoin='false'/></message>"
        ),
    ]) func `an absent attribute means the same as its default`(_ absent: String, _ present: String) throws {
        #expect(try differences(absent, present).isEmpty && differences(present, absent).isEmpty)
        let rules = NoiseRules(), names = AddressNames()
        var digester = StanzaDigester(rules: rules, names: names)
        let shapes = try [absent, present].map { digester.digest(try form($0).element).shape }
        #expect(shapes.first == shapes.last)
        let heads = try [absent, present].map { StanzaHeads(try form($0).element, names, SenderNumbers(), rules).whole }
        #expect(heads.first == heads.last)
    }

    @Test func `an attribute with a value other than its default differs from an absent one`() throws {
        let found = try differences(
            "<iq><fin xmlns='urn:xmpp:mam:2'/></iq>",
            "<iq><fin xmlns='urn:xmpp:mam:2' complete='true'/></iq>"
        )
        #expect(found == ["iq/{urn:xmpp:mam:2}fin/@complete unexpected - true"])
        #expect(try differences("<message/>", "<message type='chat'/>").count == 1)
        #expect(try differences("<presence/>", "<presence type='normal'/>").count == 1)
    }
}

private func info(_ children: String) -> String {
    "<iq type='result'><query xmlns='http://jabber.org/protocol/disco#info'>\(children)</query></iq>"
}

/// Returns a form of a type (XEP-0068) with one field.
private func dataForm(_ type: String, _ value: String) -> String {
    """
    <x xmlns='jabber:x:data'><field var='FORM_TYPE'><value>\(type)</value></field>\
    <field var='f'><value>\(value)</value></field></x>
    """
}
