import Testing

@testable import TapSecurity

struct CertificateNameTests {
    @Test(
        "A name is normalised to its form in certificates",
        arguments: [
            ("example.org", "example.org"), ("Example.ORG.", "example.org"),
            ("müller.example", "xn--mller-kva.example"),
            ("xn--mller-kva.example", "xn--mller-kva.example"), ("localhost", "localhost"), ("a_b.lan", "a_b.lan"),
            ("192.168.1.1", "192.168.1.1"), ("[::1]", "::1"), ("2001:DB8:0::1", "2001:db8::1"),
        ]
    )
    func reading(text: String, expected: String) throws {
        let name = try CertificateName(text)
        #expect(name.description == expected)
        #expect(try CertificateName(expected) == name)
    }

    @Test(
        "A name that no certificate can have is refused",
        arguments: [
            "", ".", "..", "a@example.org", "example.org/x", "a..b", "[fe80::1%eth0]", "-a.example", "exa mple.org",
            "../example.org", "a\u{0}.example", "*.example.org", "example.org,DNS:evil.example", "example.org\nDNS:x",
            String(repeating: "a", count: 64) + ".example", String(repeating: "abcdefg.", count: 32) + "example",
        ]
    )
    func refusal(text: String) {
        let error = #expect(throws: AuthorityError.self) { try CertificateName(text) }
        #expect(error?.isUsage == true)
        #expect(error?.description.contains("\n") == false)
    }

    @Test func `An authority for a domain covers its subdomains, and one for an address only the address`() throws {
        let domain = try CertificateName("example.org")
        for inside in ["example.org", "conference.example.org", "a.b.EXAMPLE.org"] {
            #expect(try domain.covers(CertificateName(inside)))
        }
        for outside in ["badexample.org", "org", "example.org.evil.example", "10.0.0.1", "::1"] {
            #expect(try !domain.covers(CertificateName(outside)))
        }
        let address = try CertificateName("10.0.0.1")
        #expect(try address.covers(CertificateName("10.0.0.1")))
        #expect(try !address.covers(CertificateName("10.0.0.2")))
        #expect(try !address.covers(CertificateName("a.10.0.0.1")))
    }

    @Test func `A name's parents are listed label by label`() throws {
        #expect(
            try CertificateName("a.b.example").andAbove.map(\.description) == ["a.b.example", "b.example", "example"]
        )
        #expect(try CertificateName("10.0.0.1").andAbove.map(\.description) == ["10.0.0.1"])
    }
}
