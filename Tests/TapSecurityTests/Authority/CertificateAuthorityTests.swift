import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

@Suite(.enabled(if: TestProgram.openssl.isInstalled, "openssl is not installed"))
struct CertificateAuthorityTests {
    /// Returns a leaf for names outside the authority's constraints. Whoever has the authority's key could sign one.
    private func forged(_ authority: CertificateAuthority, _ names: AlternativeName...) throws -> TLSIdentity {
        try authority.leaf(
            for: names,
            from: authority.begin,
            until: min(authority.end, authority.begin + Timestamp.days(90))
        )
    }

    @Test(
        "OpenSSL, in strict mode, and Python accept a leaf",
        arguments: [
            ("example.org", "example.org"), ("example.org", "conference.example.org"),
            ("müller.example", "müller.example"), ("müller.example", "chat.xn--mller-kva.example"),
            ("192.168.1.1", "192.168.1.1"), ("[::1]", "::1"), ("localhost", "localhost"),
            // Longer than the maximum of a common name.
            (
                "abcdefghij.abcdefghij.abcdefghij.abcdefghij.abcdefghij.abcdefghij.example",
                "a.abcdefghij.abcdefghij.abcdefghij.abcdefghij.abcdefghij.abcdefghij.example"
            ),
        ]
    )
    func accepted(domain: String, asked: String) async throws {
        let now = SystemTime.now
        let authority = try CertificateAuthority(for: CertificateName(domain), at: now)
        let name = try CertificateName(asked)
        let identity = try CertificateMinter([authority]).identity(for: name, at: now)
        let judge = try Judge(authority)
        #expect(try await judge.openssl(identity, for: name) == "OK")
        #expect(try await judge.python(identity, for: "\(name)") == "OK")
    }

    @Test(
        "Clients refuse a leaf outside the name constraints of its authority",
        arguments: [
            ("example.org", AlternativeName.domain("example.net")), ("example.org", .domain("badexample.org")),
            ("example.org", .domain("org")), ("example.org", .address([10, 0, 0, 1])),
            ("example.org", .address([UInt8](repeating: 1, count: 16))), ("example.org", .domain("*.example.net")),
            ("192.168.1.1", .address([192, 168, 1, 2])), ("192.168.1.1", .domain("example.org")),
            ("192.168.1.1", .address([UInt8](repeating: 1, count: 16))), ("::1", .address([127, 0, 0, 1])),
        ]
    )
    func outside(domain: String, name: AlternativeName) async throws {
        let now = SystemTime.now
        let authority = try CertificateAuthority(for: CertificateName(domain), at: now)
        let identity = try forged(authority, name)
        let asked = try #require(name.owner)
        let judge = try Judge(authority)
        let verdicts = ["permitted subtree violation", "excluded subtree violation"]
        // A wildcard is tested with a name that it covers.
        let host: CertificateName = name == .domain("*.example.net") ? .domain("a.example.net") : asked
        #expect(try await verdicts.contains(judge.openssl(identity, for: host)))
        #expect(try await verdicts.contains(judge.python(identity, for: "\(host)")))
        // The name is also refused in a leaf that has a second name within the constraints.
        let mixed = try forged(authority, AlternativeName(CertificateName(domain)), name)
        #expect(try await verdicts.contains(judge.openssl(mixed, for: CertificateName(domain))))
    }

    @Test func `A leaf certificate cannot sign, and one signed by another authority is refused`() async throws {
        let now = SystemTime.now
        let authority = try CertificateAuthority(for: .domain("example.org"), at: now)
        let other = try CertificateAuthority(for: .domain("example.org"), at: now)
        let identity = try CertificateMinter([other]).identity(for: .domain("example.org"), at: now)
        let judge = try Judge(authority)
        #expect(try await judge.openssl(identity, for: .domain("example.org")) != "OK")
        #expect(try await judge.python(identity, for: "example.org") != "OK")
        #expect(authority.subject != other.subject, "people must be able to tell them apart")
        #expect(identity.leafText.contains("CA:FALSE"))
        #expect(identity.leafText.contains("Digital Signature\n"))
        #expect(identity.leafText.contains("TLS Web Server Authentication\n"))
    }

    @Test func `An authority is valid for a year from two days before its creation`() throws {
        let made = try Timestamp.day("2049-12-30")
        let authority = try CertificateAuthority(for: .domain("example.org"), at: made)
        #expect(try authority.begin == .day("2049-12-28"))
        #expect(try authority.end == .day("2050-12-30"))
        try authority.checkValidity(at: made)
        let late = #expect(throws: AuthorityError.self) { try authority.checkValidity(at: .day("2051-01-01")) }
        #expect(late?.code == .expired(authority.end))
        #expect(late?.description.contains("2050-12-30") == true)
        #expect(late?.remedy(in: nil) == .changeAuthority(.recreate("example.org"), folder: nil))
        let early = #expect(throws: AuthorityError.self) { try authority.checkValidity(at: .day("2049-01-01")) }
        #expect(early?.code == .notYetValid(authority.begin))
    }

    @Test func `Serial numbers are random, positive, and sixteen bytes long`() throws {
        let authority = try CertificateAuthority(for: .domain("example.org"), at: .day("2026-11-21"))
        var serials: Set<[UInt8]> = []
        for _ in 0..<20 {
            let leaf = try forged(authority, .domain("example.org")).leafDER
            // The version, and the tag and length of the serial number. The headers of the certificate and of its
            // signed part precede them.
            let head: [UInt8] = [0xA0, 0x03, 0x02, 0x01, 0x02, 0x02, 0x10]
            #expect(Array(leaf[8..<15]) == head)
            let serial = Array(leaf[15..<31])
            #expect(serial.first.map { 0x40...0x7F ~= $0 } == true)
            serials.insert(serial)
        }
        #expect(serials.count == 20)
    }
}
