import TapCore
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

    /// A server's certificate with these names, in DER; nobody checks who signed it.
    private func real(_ names: AlternativeName...) throws -> [UInt8] {
        try authority.leaf(for: names, from: authority.begin, until: authority.end).leafDER
    }

    private func names(_ identity: TLSIdentity) -> [AlternativeName] {
        AlternativeName.names(ofCertificate: identity.leafDER, limit: 1000)
    }

    @Test func `A leaf has the names of the real one, but none that its authority may not vouch for`() throws {
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

    @Test func `A domain of another script is mirrored in the form in which it stood`() throws {
        let authority = try CertificateAuthority(for: CertificateName("müller.example"), at: now)
        let real = try real(.xmpp("müller.example"), .domain("xn--mller-kva.example"), .domain("müller.example"))
        let name = try CertificateName("MÜLLER.example")
        let identity = try CertificateMinter([authority]).identity(for: name, mirroring: real, at: now)
        #expect(names(identity) == [.domain("xn--mller-kva.example"), .xmpp("müller.example")])
    }

    @Test func `A certificate with a thousand names does not make the client read a thousand`() throws {
        let many = (0..<1000).map { AlternativeName.domain("\($0).example.org") }
        let real = try authority.leaf(for: many, from: authority.begin, until: authority.end).leafDER
        let identity = try CertificateMinter([authority])
            .identity(for: .domain("example.org"), mirroring: real, at: now)
        #expect(names(identity).count == CertificateMinter.mostNames + 1)
    }

    @Test func `What no authority covers is refused, and the words name the way out`() throws {
        let minter = CertificateMinter([authority])
        for name in ["example.net", "org", "10.0.0.1"] {
            let error = #expect(throws: AuthorityError.self) {
                try minter.identity(for: CertificateName(name), at: now)
            }
            #expect(error?.code == .outside([.domain("example.org")]))
            #expect(error?.description.contains("xmpptap ca create --domain \(name)") == true)
        }
        #expect(minter.count == 0)
    }

    @Test func `A leaf ends after ninety days, never after its authority, and a client's clock may be behind`() throws {
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

    @Test func `A leaf is remembered by name and real leaf, and renewed in good time`() throws {
        let minter = CertificateMinter([authority])
        let name = CertificateName.domain("example.org")
        #expect(minter.remembered(for: name, at: now) == nil)
        let first = try minter.identity(for: name, at: now)
        #expect(try minter.identity(for: name, at: now + Timestamp.days(40)) === first)
        #expect(minter.remembered(for: name, at: now) === first)
        let real = try real(.domain("a.example.org"))
        #expect(try minter.identity(for: name, mirroring: real, at: now) !== first)
        let renewed = try minter.identity(for: name, at: now + Timestamp.days(50))
        #expect(renewed !== first)
        #expect(minter.count == 2)
    }

    @Test func `No more leaves are remembered than was said, and those in use stay`() throws {
        let minter = CertificateMinter([authority], capacity: 8)
        let kept = try minter.identity(for: .domain("example.org"), at: now)
        for number in 0..<50 {
            _ = try minter.identity(for: .domain("\(number).example.org"), at: now)
            #expect(minter.count <= 8)
            #expect(try minter.identity(for: .domain("example.org"), at: now) === kept)
        }
        #expect(minter.remembered(for: .domain("0.example.org"), at: now) == nil)
        #expect(minter.remembered(for: .domain("49.example.org"), at: now) != nil)
    }

    @Test func `The nearest authority signs, and a further one is opened once it is asked for`() async throws {
        let near = try CertificateAuthority(for: .domain("chat.example.org"), at: now)
        let opened = try CertificateAuthority(for: .domain("example.net"), at: now)
        let minter = CertificateMinter([authority, near]) { name in name.description == "example.net" ? opened : nil }
        #expect(try minter.identity(for: .domain("a.chat.example.org"), at: now).leafText.contains("for chat.example"))
        #expect(try minter.identity(for: .domain("example.org"), at: now).leafText.contains("for example.org"))
        #expect(try minter.identity(for: .domain("example.net"), at: now).leafText.contains("for example.net"))
        #expect(try minter.identity(for: .domain("a.example.net"), at: now).leafText.contains("for example.net"))
        #expect(throws: AuthorityError.self) { try minter.identity(for: .domain("example.com"), at: now) }
    }

    @Test func `Many threads may ask at once`() async throws {
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

    @Test func `What a leaf costs, and one that is remembered`() throws {
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
