import Testing
import XMPPCore

@Suite struct JIDTests {
    @Test func `the resource is split off first, then the local part`() throws {
        let jid = try JID(parsing: "example.com/a@b/c")
        #expect(jid.local == nil)
        #expect(jid.domain == "example.com")
        #expect(jid.resource == "a@b/c")
        #expect(jid.isServer && jid.isFull)
    }

    @Test func `the parts of a JID are returned as written`() throws {
        let jid = try JID(parsing: "Juliet@Example.COM./Balcony")
        #expect(jid.local == "Juliet")
        #expect(jid.domain == "Example.COM.")
        #expect(jid.resource == "Balcony")
        #expect(jid.description == "Juliet@Example.COM./Balcony")
        #expect(jid.normalized.description == "juliet@example.com/Balcony")
    }

    @Test func `a bare address is derived from a full one`() throws {
        let jid = try JID(parsing: "Juliet@example.com/balcony")
        #expect(jid.bare.description == "Juliet@example.com")
        #expect(jid.bare.isBare && !jid.bare.isServer)
        #expect(jid.bare.bare == jid.bare)
        #expect(try jid.bare.with(resource: "balcony") == jid)
        #expect(try jid.with(resource: "a/b").resource == "a/b")
        #expect(try JID(parsing: "example.com/r").bare.description == "example.com")
    }

    @Test func `comparison ignores case except in the resource, and the trailing dot of a domain`() throws {
        let written = try JID(parsing: "JULIET@Example.com./Balcony")
        let other = try JID(parsing: "juliet@example.COM/Balcony")
        #expect(written == other)
        #expect(written.hashValue == other.hashValue)
        #expect(try written != JID(parsing: "juliet@example.com/balcony"))
        #expect(try JID(parsing: "ΣΑΣ@example.com") == JID(parsing: "σας@example.com"))
    }

    @Test(arguments: [
        ("a@b/c", "a@b/d", JID.Parts.bare, true), ("a@b/c", "a@b/d", .full, false),
        ("a@b/c", "x@b/c", .domain, true), ("a@b/c", "x@b/c", .resource, true),
        ("a@b/c", "x@b/c", .local, false), ("b/c", "a@b/c", .bare, false),
        ("b", "B.", .full, true), ("b", "B", .local, true), ("a@b", "A@b/c", .bare, true),
        ("a@b", "x@y/z", JID.Parts(), true), ("a@b", "a@c", .domain, false),
    ])
    func `a mask selects the parts to compare`(left: String, right: String, parts: JID.Parts, agree: Bool) throws {
        #expect(try JID(parsing: left).matches(JID(parsing: right), in: parts) == agree)
    }

    @Test func `addresses are sorted independently of case`() throws {
        let sorted = try ["c@x", "B@x", "a@x"].map(JID.init(parsing:)).sorted()
        #expect(sorted.map(\.description) == ["a@x", "B@x", "c@x"])
    }

    @Test(arguments: [
        ("", JIDError.Code.empty, JIDError.Part.domain), ("@", .empty, .local), ("/", .empty, .domain),
        ("a@", .empty, .domain), ("a@/b", .empty, .domain), ("a@b/", .empty, .resource), ("b/", .empty, .resource),
        (".", .empty, .domain), ("a..b", .empty, .domain), (".b", .empty, .domain),
        ("a b@c", .forbiddenCharacter, .local), ("a\"b@c", .forbiddenCharacter, .local),
        ("a@b@c", .forbiddenCharacter, .domain), ("a@b c", .forbiddenCharacter, .domain),
        ("a@b/\u{1}", .forbiddenCharacter, .resource), ("a@b/\u{85}", .forbiddenCharacter, .resource),
        ("a\u{7f}@b", .forbiddenCharacter, .local), ("a@b\u{9b}", .forbiddenCharacter, .domain),
        ("[::1", .badAddressLiteral, .domain), ("[]", .badAddressLiteral, .domain),
        ("[1::2::3]", .badAddressLiteral, .domain), ("[12345::]", .badAddressLiteral, .domain),
        ("[1:2:3:4:5:6:7]", .badAddressLiteral, .domain), ("[::1%]", .badAddressLiteral, .domain),
        ("[1:2:3:4:5:6:7:8:9]", .badAddressLiteral, .domain), ("[::1.2.3]", .badAddressLiteral, .domain),
        ("[::1.2.3.256]", .badAddressLiteral, .domain), ("[:1::2]", .badAddressLiteral, .domain),
        ("[1::2:]", .badAddressLiteral, .domain), ("[:]", .badAddressLiteral, .domain),
        ("[:::]", .badAddressLiteral, .domain), ("[::01.2.3.4]", .badAddressLiteral, .domain),
        ("[\u{301}::1]", .badAddressLiteral, .domain), ("[::1]\u{301}", .badAddressLiteral, .domain),
        ("[::1\0]", .badAddressLiteral, .domain), ("[::1%a%b]", .badAddressLiteral, .domain),
        ("[::1%é]", .badAddressLiteral, .domain), ("[::%\r\n]", .badAddressLiteral, .domain),
    ])
    func `an error names the violated rule and the part`(text: String, code: JIDError.Code, part: JIDError.Part) {
        let error = #expect(throws: JIDError.self) { try JID(parsing: text) }
        #expect(error?.code == code)
        #expect(error?.part == part)
    }

    @Test(arguments: [
        "[::]", "[::1]", "[1::]", "[2001:db8::ffff:40%eth0]", "[1:2:3:4:5:6:7:8]", "[::ffff:192.0.2.1]",
        "[1:2:3:4:5:6:192.0.2.1]", "192.0.2.1", "my_host", "example.com.",
    ])
    func `IP literals and local names are valid domains`(domain: String) throws {
        #expect(try JID(parsing: "a@\(domain)/r").domain == domain)
    }

    @Test func `a part may have at most 1023 bytes`() throws {
        let longest = String(repeating: "a", count: 1023)
        _ = try JID(parsing: "\(longest)@\(longest)/\(longest)")
        for (text, part) in [("a\(longest)@b", "local"), ("a\(longest)", "domain"), ("b/a\(longest)", "resource")] {
            let error = #expect(throws: JIDError.self) { try JID(parsing: text) }
            #expect(error?.description == "\(part) part: 1024 bytes, 1023 are allowed")
        }
    }

    @Test func `an error shows control characters as code points`() {
        let error = #expect(throws: JIDError.self) { try JID(parsing: "a\u{1b}[2J@b") }
        #expect(error?.description == "local part: U+001B at byte 1 is not allowed there")
    }

    @Test func `invalid parts are refused by the initialiser`() throws {
        let attempts: [(() throws(JIDError) -> JID, JIDError.Code, JIDError.Part)] = [
            ({ () throws(JIDError) in try JID(local: "a", domain: "b/c") }, .forbiddenCharacter, .domain),
            ({ () throws(JIDError) in try JID(local: "a@x", domain: "b") }, .forbiddenCharacter, .local),
            ({ () throws(JIDError) in try JID(local: "", domain: "b") }, .empty, .local),
            ({ () throws(JIDError) in try JID(domain: "b", resource: "") }, .empty, .resource),
        ]
        for (attempt, code, part) in attempts {
            let error = #expect(throws: JIDError.self) { try attempt() }
            #expect(error?.code == code)
            #expect(error?.part == part)
        }
        #expect(try JID(local: "a", domain: "b", resource: "c@d/e").description == "a@b/c@d/e")
    }

    @Test func `bytes are parsed like text, and invalid UTF-8 is reported with its part`() throws {
        let bytes = Array("Ω@example.com/♚".utf8)
        #expect(try JID(utf8: bytes.span) == JID(parsing: "ω@example.com/♚"))
        for (bytes, part) in [
            ([0x61, 0xff, 0x40, 0x62], JIDError.Part.local), ([0x61, 0x40, 0xc3], .domain),
            ([0x62, 0x2f, 0xed, 0xa0, 0x80], .resource),
        ] as [([UInt8], JIDError.Part)] {
            let error = #expect(throws: JIDError.self) { try JID(utf8: bytes.span) }
            #expect(error?.code == .notUTF8)
            #expect(error?.part == part)
        }
    }
}
