import Testing
import XMPPCore

/// Bodies of BOSH (XEP-0124, XEP-0206).
struct BOSHBodyTests {
    private static let bosh = "xmlns='http://jabber.org/protocol/httpbind'"

    private static func read(_ text: String, limit: Int = 1 << 20) throws(BOSHBody.Fault) -> BOSHBody {
        let bytes = Array(text.utf8)
        return try BOSHBody(bytes.span, limit: limit, StanzaParser())
    }

    private static func items(_ text: String) throws -> [String] {
        try read(text).items.map { String(decoding: $0, as: UTF8.self) }
    }

    private static func fault(_ text: String, limit: Int = 1 << 20) -> String? {
        do throws(BOSHBody.Fault) {
            _ = try read(text, limit: limit)
            return nil
        } catch {
            return error.code
        }
    }

    @Test("The attributes of a session creation are read, whatever their quotes and references")
    func readsAttributes() throws {
        let body = try Self.read(
            """
            <?xml version='1.0'?><body \(Self.bosh) rid="1573741820" to='a&amp;b.example'
             from='juliet@a.example' wait='60' hold='1' ver='1.6' xml:lang='de' xmpp:version = '1.0' xmlns:xmpp = "urn:xmpp:xbosh" key='k' sid=''/>
            """
        )
        var expected = BOSHBody()
        expected.rid = 1_573_741_820
        expected.to = "a&b.example"
        expected.from = "juliet@a.example"
        expected.language = "de"
        expected.version = "1.0"
        #expect(body == expected)
        let answer = try Self.read(
            "<body \(Self.bosh) sid='s' requests='2' inactivity='30' type='terminate' condition='host-unknown' authid='a'/>"
        )
        #expect(answer.sid == "s" && answer.requests == 2 && answer.inactivity == 30)
        #expect(answer.isTerminate && answer.condition == "host-unknown")
        let restart = try Self.read(
            "<body \(Self.bosh) rid='2' pause='120' x:restart='true' xmlns:x='urn:xmpp:xbosh'></body>"
        )
        #expect(restart.restarts && restart.pause == 120 && restart.items.isEmpty)
    }

    @Test(
        "Each element becomes a message with the namespaces that it uses; one without a namespace is in jabber:client"
    )
    func readsElements() throws {
        #expect(
            try Self.items(
                """
                <body \(Self.bosh) rid='1' xmlns:stream='http://etherx.jabber.org/streams' q=" xmlns:w='>'">
                 <presence/><message xmlns='jabber:client'><body>&lt;x/></body></message>
                 <stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features></body>
                """
            ) == [
                "<presence xmlns='jabber:client'/>", "<message xmlns='jabber:client'><body>&lt;x/></body></message>",
                "<stream:features xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
                    + "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>",
            ]
        )
        // A prefixed body, with a default namespace and the prefix that the reader uses itself.
        #expect(
            try Self.items(
                "<b:body xmlns:b='http://jabber.org/protocol/httpbind' xmlns='urn:x' xmlns:xmpptap-stream='urn:s'>"
                    + "<xmpptap-stream:a/><y/></b:body>"
            )
                == ["<xmpptap-stream:a xmlns='urn:x' xmlns:xmpptap-stream='urn:s'/>", "<y xmlns='urn:x'/>"]
        )
        #expect(try Self.items("<body \(Self.bosh)> \n </body>").isEmpty)
    }

    @Test("The address of see-other-uri is no stanza")
    func readsRedirects() throws {
        let body = try Self.read(
            "<body \(Self.bosh) type='terminate' condition='see-other-uri'><uri>https://b.example/?sid=1</uri></body>"
        )
        #expect(body.uri == "https://b.example/?sid=1" && body.items.isEmpty)
    }

    @Test("A rid beyond 2^53-1 or of other characters than digits is none")
    func checksRequestIDs() throws {
        for (text, rid) in [
            ("9007199254740991", BOSHBody.maximumRID), ("9007199254740992", nil), ("0", 0), ("", nil), ("+1", nil),
            ("-1", nil), ("99999999999999999999999", nil), ("1.5", nil), ("٣", nil),
        ] as [(String, UInt64?)] {
            #expect(try Self.read("<body \(Self.bosh) rid='\(text)'/>").rid == rid, "\(text)")
        }
        #expect(try Self.read("<body \(Self.bosh) inactivity='99999999999'/>").inactivity == 1_000_000)
    }

    @Test(
        "Hostile bodies have a fault",
        arguments: [
            ("", "bosh-empty"), (" \n", "bosh-empty"), ("x", "bosh-text"), ("<presence/>", "bosh-no-body"),
            ("<body/>", "bosh-no-body"), ("<body xmlns='urn:x'/>", "bosh-no-body"),
            ("<body \(bosh)/><body \(bosh)/>", "bosh-several-elements"), ("<body \(bosh)/>x", "bosh-text"),
            ("<body \(bosh)>x</body>", "bosh-text"), ("<body \(bosh)><presence/>x</body>", "bosh-text"),
            ("<body \(bosh)>", "bosh-unfinished-element"), ("<body \(bosh)><x></body>", "mismatched-tag"),
            ("<!DOCTYPE b [<!ENTITY e 'x'>]><body \(bosh)/>", "doctype"),
            ("<body \(bosh) to='&e;'/>", "entity-reference"), ("<body \(bosh)><x>&e;</x></body>", "entity-reference"),
            ("<body \(bosh) a='1' a='2'/>", "duplicate-attribute"),
            ("<body \(bosh)><stream:features/></body>", "unbound-prefix"),
            ("<body \(bosh)><!-- x --></body>", "comment"),
            ("<open xmlns='urn:ietf:params:xml:ns:xmpp-framing'/>", "bosh-no-body"),
        ]
    )
    func reportsFaults(text: String, code: String) { #expect(Self.fault(text) == code) }

    @Test("Limits apply to attributes, nesting, elements and the body")
    func appliesLimits() {
        let many = (0..<300).map { " a\($0)='x'" }.joined()
        #expect(Self.fault("<body \(Self.bosh)\(many)/>") == "limit-attributes")
        let deep = String(repeating: "<x>", count: 300)
        #expect(Self.fault("<body \(Self.bosh)>\(deep)") == "limit-depth")
        let long = String(repeating: "x", count: 70_000)
        #expect(Self.fault("<body \(Self.bosh) a='\(long)'/>") == "limit-tag")
        #expect(Self.fault("<body \(Self.bosh)><x>\(long)</x></body>", limit: 60_000) == "limit-body")
        let item = "<x>" + String(repeating: long, count: 20) + "</x>"
        #expect(Self.fault("<body \(Self.bosh)>\(item)</body>", limit: 4 << 20) == "limit-item")
    }

    @Test("A body that is cut at any byte has a fault, and no bytes trap")
    func cutsBodies() {
        let text = "<?xml version='1.0'?> <body \(Self.bosh) rid='1' xmlns:x='urn:x'><x:é a=\"'\"/><message/></body>"
        let bytes = Array(text.utf8)
        let parser = StanzaParser()
        for count in 0..<bytes.count {
            let part = Array(bytes[..<count])
            #expect((try? BOSHBody(part.span, limit: 4096, parser)) == nil, "\(count)")
        }
        for index in bytes.indices {
            for byte in [0x00, 0x20, 0x22, 0x26, 0x27, 0x2F, 0x3C, 0x3D, 0x3E, 0xFF] as [UInt8] {
                var changed = bytes
                changed[index] = byte
                _ = try? BOSHBody(changed.span, limit: 4096, parser)
            }
        }
    }
}
