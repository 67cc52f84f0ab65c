import TapTestKit
import Testing

@testable import TapSecurity

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct KnownCertificatesTests {
    @Test func `a verified certificate is cached for its domain for a minute, and not after it expires`()
        async throws
    {
        let leaf = try await EngineFixture.common.identity.leaf
        let end = Int(CertificateInfo(leaf).notAfter.seconds)
        let (domain, other) = (try ServerReference(domain: "example.org"), try ServerReference(domain: "example.com"))
        let known = KnownCertificates()
        #expect(!known.isGood(leaf, for: domain, at: end - 100))
        known.recordVerified(leaf, for: domain, at: end - 100)
        #expect(known.isGood(leaf, for: domain, at: end - 100))
        #expect(known.isGood(leaf, for: domain, at: end - 41))
        #expect(!known.isGood(leaf, for: domain, at: end - 40))
        #expect(!known.isGood(leaf, for: other, at: end - 100))
        // The clock was set back.
        #expect(!known.isGood(leaf, for: domain, at: end - 101))
        known.recordVerified(leaf, for: domain, at: end - 10)
        #expect(known.isGood(leaf, for: domain, at: end - 1))
        #expect(!known.isGood(leaf, for: domain, at: end))
        #expect(known.info(of: leaf) == CertificateInfo(leaf))
    }

    @Test func `the number of cached domains per certificate is limited`() async throws {
        let leaf = try await EngineFixture.common.identity.leaf
        let now = Int(CertificateInfo(leaf).notAfter.seconds) - 100
        let known = KnownCertificates()
        let domains = try (0..<100).map { try ServerReference(domain: "d\($0).example.org") }
        for domain in domains { known.recordVerified(leaf, for: domain, at: now) }
        let remembered = domains.filter { known.isGood(leaf, for: $0, at: now) }
        #expect(remembered.count <= 64 && remembered.last == domains.last)
    }

    @Test func `a certificate verified for one domain is verified again for another`() async throws {
        let fixture = try await EngineFixture.common
        for (domain, isOpen) in [("example.org", true), ("example.org", true), ("example.com", false)] {
            var pair = try fixture.pair(domain: domain)
            pair.pump()
            #expect((pair.client.state == .open) == isOpen)
            if !isOpen { #expect(pair.client.state.fault?.name == "certificate-wrong-name") }
        }
    }
}
