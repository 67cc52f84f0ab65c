import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapSecurity

struct CertificateMinterTests {
    private let now: Timestamp
    private let authority: CertificateAuthority

    init() throws {
        now = try .day("2026-11-21")
        authority = try CertificateAuthority(for: .domain("example.org"), at: now)
    }

    /// Returns a server certificate with these names in DER; its issuer does not matter.
    private func real(_ names: AlternativeName...) throws -> [UInt8] {
        try authority.leaf(for: names, from: authority.begin, until: authority.end).leafDER
    }

    private func names(_ identity: TLSIdentity) -> [AlternativeName] {
        AlternativeName.names(ofCertificate: identity.leafDER, limit: 1000)
    }

    @Test func `A leaf has the names of the real certificate that its authority may sign`() throws {
        let real = try real(
            .domain("example.org"),
            .domain("*.example.org"),
            .domain("conference.example.org"),
            .domain("example.net"),
            .domain("*.org"),
            .domain("badexample.org"),
            .address([10, 0, 0, 1]),
            .service("_xmpp-client.example.org"),
            .service("_xmpp-client.example.net"),
            .xmpp("example.org"),
            .xmpp("example.net"),
            .service("example.org"),
            .domain("a.*.example.org")
        )
        let minter = CertificateMinter([authority])
        let identity = try minter.identity(for: .domain("chat.example.org"), mirroring: real, at: now)
        #expect(
            names(identity) == [
                .domain("chat.example.org"), .domain("example.org"), .domain("*.example.org"),
                .domain("conference.example.org"), .service("_xmpp-client.example.org"), .xmpp("example.org"),
            ]
        )
        #expect(try names(minter.identity(for: .domain("example.org"), at: now)) == [.domain("example.org")])
        let garbage = try minter.identity(for: .domain("example.org"), mirroring: [1, 2, 3], at: now)
        #expect(names(garbage) == [.domain("example.org")])
    }

    @Test func `An internationalised domain is copied in the form of the real certificate`() throws {
        let authority = try CertificateAuthority(for: CertificateName("müller.example"), at: now)
        let real = try real(.xmpp("müller.example"), .domain("xn--mller-kva.example"), .domain("müller.example"))
        let name = try CertificateName("MÜLLER.example")
        let identity = try CertificateMinter([authority]).identity(for: name, mirroring: real, at: now)
        #expect(names(identity) == [.domain("xn--mller-kva.example"), .xmpp("müller.example")])
    }

    @Test func `The number of copied names is limited`() throws {
        let many = (0..<1000).map { AlternativeName.domain("\($0).example.org") }
        let real = try authority.leaf(for: many, from: authority.begin, until: authority.end).leafDER
        let identity = try CertificateMinter([authority])
            .identity(for: .domain("example.org"), mirroring: real, at: now)
        #expect(names(identity).count == CertificateMinter.maximumNames + 1)
    }

    @Test func `A name that no authority covers is refused with advice`() throws {
        let minter = CertificateMinter([authority])
        for name in ["example.net", "org", "10.0.0.1"] {
            let error = #expect(throws: AuthorityError.self) {
                try minter.identity(for: CertificateName(name), at: now)
            }
            #expect(error?.code == .outside([.domain("example.org")]))
            #expect(error?.remedy(in: nil) == .changeAuthority(.createAnother(name), folder: nil))
        }
        #expect(minter.count == 0)
    }

    @Test func `A leaf begins two days early, and ends after ninety days or with its authority`() throws {
        let minter = CertificateMinter([authority])
        let early = try minter.identity(for: .domain("example.org"), at: now).leafText
        #expect(early.contains("Not Before: Nov 19 12:00:00 2026"))
        #expect(early.contains("Not After : Feb 17 12:00:00 2027"))
        let late = try minter.identity(for: .domain("example.org"), at: .day("2027-11-20")).leafText
        #expect(late.contains("Not Before: Nov 18 12:00:00 2027"))
        #expect(late.contains("Not After : Nov 21 12:00:00 2027"))
        let expired = #expect(throws: AuthorityError.self) {
            try minter.identity(for: .domain("example.org"), at: .day("2027-11-22"))
        }
        #expect(expired?.code == .expired(authority.end))
    }

    @Test func `A leaf is cached by its name and the real certificate, and renewed in time`() throws {
        let minter = CertificateMinter([authority])
        let name = CertificateName.domain("example.org")
        #expect(minter.remembered(for: .named(name), at: now) == nil)
        let first = try minter.identity(for: name, at: now)
        #expect(try minter.identity(for: name, at: now + Timestamp.days(40)) === first)
        #expect(minter.remembered(for: .named(name), at: now)?.identity === first)
        let real = try real(.domain("a.example.org"))
        #expect(try minter.identity(for: name, mirroring: real, at: now) !== first)
        let renewed = try minter.identity(for: name, at: now + Timestamp.days(50))
        #expect(renewed !== first)
        #expect(minter.count == 2)
    }

    @Test func `The number of cached leaves is limited, and leaves in use are kept`() throws {
        let minter = CertificateMinter([authority], capacity: 8)
        let kept = try minter.identity(for: .domain("example.org"), at: now)
        for number in 0..<50 {
            _ = try minter.identity(for: .domain("\(number).example.org"), at: now)
            #expect(minter.count <= 8)
            #expect(try minter.identity(for: .domain("example.org"), at: now) === kept)
        }
        #expect(minter.remembered(for: .named(.domain("0.example.org")), at: now) == nil)
        #expect(minter.remembered(for: .named(.domain("49.example.org")), at: now) != nil)
    }

    @Test func `The authority with the longest matching name signs`() throws {
        let near = try CertificateAuthority(for: .domain("chat.example.org"), at: now)
        let minter = CertificateMinter([authority, near])
        #expect(try minter.identity(for: .domain("a.chat.example.org"), at: now).leafText.contains("for chat.example"))
        #expect(try minter.identity(for: .domain("example.org"), at: now).leafText.contains("for example.org"))
        #expect(throws: AuthorityError.self) { try minter.identity(for: .domain("example.com"), at: now) }
    }

    // MARK: Creation on demand

    /// Returns a provider that creates authorities for any name.
    private func provider(_ temporary: TemporaryFolder, limit: Int = 64) -> AuthorityProvider {
        var policy = AuthorityProvider.Policy()
        policy.mayMakeAny = true
        policy.limit = limit
        policy.suffixes = PublicSuffixes(path: "/dev/null")
        return AuthorityProvider(AuthorityFolder(temporary.path(of: "ca")), policy)
    }

    @Test(.enabled(if: TestProgram.openssl.isInstalled, "openssl is missing"))
    func `Three thousand names of a wildcard use one authority and a limited number of leaves`() async throws {
        // The real clock, because OpenSSL verifies the result.
        let now = SystemTime.now
        let temporary = try TemporaryFolder()
        let provider = provider(temporary)
        let minter = CertificateMinter(provider, capacity: 64)
        let real = try real(.domain("*.example.org"))
        for number in 0..<3000 {
            let minted = try minter.certificate(
                for: .named(.domain("n\(number).example.org")),
                mirroring: real,
                at: now
            )
            #expect(minted.authority == .domain("example.org"))
            #expect(minted.isAuthorityNew == (number == 0))
        }
        #expect((32...64).contains(minter.count))
        #expect(provider.countAtHand == 1)
        #expect(try provider.folder?.names() == [.domain("example.org")])
        // The authority's constraint covers the name and the wildcard.
        let last = try minter.identity(for: .domain("n2999.example.org"), mirroring: real, at: now)
        #expect(names(last) == [.domain("n2999.example.org"), .domain("*.example.org")])
        let found = try #require(try provider.authority(covering: .domain("example.org"), at: now))
        #expect(try await Judge(found).openssl(last, for: .domain("n2999.example.org")) == "OK")
    }

    @Test func `A wildcard determines the authority for the names that it covers`() throws {
        let temporary = try TemporaryFolder()
        let minter = CertificateMinter(provider(temporary))
        func made(_ name: String, _ real: [UInt8]) throws -> String {
            try minter.certificate(for: .named(CertificateName(name)), mirroring: real, at: now).authority.description
        }
        // If two labels replace the asterisk, the wildcard is not used, because clients would not accept it for the
        // name either.
        #expect(try made("a.b.example.net", real(.domain("*.example.net"))) == "a.b.example.net")
        #expect(try made("chat.example.net", real(.domain("chat.example.net"))) == "chat.example.net")
        #expect(try made("c.example.net", real(.domain("*.example.net"))) == "example.net")
        // Existing authorities take precedence over new ones, the longest name first, independent of earlier use.
        #expect(try made("a.b.example.net", real(.domain("*.b.example.net"))) == "a.b.example.net")
        #expect(try made("shop.co.uk", real(.domain("*.co.uk"))) == "shop.co.uk")
        #expect(try made("shop.example", real(.domain("*.example"))) == "shop.example")
    }

    @Test
    func `A client without SNI gets the server's names, from an existing authority if possible`()
        throws
    {
        let temporary = try TemporaryFolder()
        let provider = provider(temporary)
        let folder = try #require(provider.folder)
        let minter = CertificateMinter(provider)
        let loopback = CertificateName.address([127, 0, 0, 1])
        func minted(_ verified: CertificateName, _ real: [UInt8]) throws -> CertificateMinter.Minted {
            try minter.certificate(for: .unnamed(verified: verified), mirroring: real, at: now)
        }
        // Without an existing authority, domains take precedence over addresses, and a domain over those that it
        // covers.
        let first = try minted(
            loopback,
            real(
                .address([127, 0, 0, 1]),
                .domain("chat.example.net"),
                .domain("example.net"),
                .domain("*.example.net")
            )
        )
        #expect(first.authority == .domain("example.net") && first.isAuthorityNew)
        #expect(
            names(first.identity) == [.domain("chat.example.net"), .domain("example.net"), .domain("*.example.net")]
        )
        // An authority exists for the last of the names.
        _ = try folder.create(for: .domain("localhost"), at: now)
        let second = try minted(
            loopback,
            real(.address([127, 0, 0, 1]), .domain("a.example.org"), .domain("localhost"))
        )
        #expect(second.authority == .domain("localhost") && !second.isAuthorityNew)
        #expect(names(second.identity) == [.domain("localhost")])
        // The verified name precedes the other names.
        let third = try minted(.domain("example.net"), real(.domain("localhost"), .domain("example.net")))
        #expect(third.authority == .domain("example.net"))
        // A wildcard for a public suffix is ignored.
        let fourth = try minted(loopback, real(.domain("*.co.uk"), .address([127, 0, 0, 1])))
        #expect(fourth.authority == loopback && names(fourth.identity) == [.address([127, 0, 0, 1])])
        // Without a certificate only the address remains.
        #expect(try minted(loopback, []).authority == loopback)
        #expect(try folder.names().map(\.description).sorted() == ["127.0.0.1", "example.net", "localhost"])
    }

    @Test func `Several threads can use the minter`() async throws {
        let minter = CertificateMinter([authority], capacity: 16)
        let now = now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<40 {
                        let name = CertificateName.domain("\((number + task) % 20).example.org")
                        _ = try minter.identity(for: name, at: now)
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(minter.count <= 16)
    }

    @Test func `Five hundred leaves are issued and cached`() throws {
        let minter = CertificateMinter([authority], capacity: 4096)
        let real = try real(.domain("example.org"), .domain("*.example.org"), .service("_xmpp-client.example.org"))
        let clock = ContinuousClock()
        let count = 500
        let minting = try clock.measure {
            for number in 0..<count {
                _ = try minter.identity(for: .domain("\(number).example.org"), mirroring: real, at: now)
            }
        }
        let finding = try clock.measure {
            for number in 0..<count {
                _ = try minter.identity(for: .domain("\(number).example.org"), mirroring: real, at: now)
            }
        }
        #expect(minter.count == count)
        print("a leaf: \(minting / count) minted, \(finding / count) remembered")
    }
}
