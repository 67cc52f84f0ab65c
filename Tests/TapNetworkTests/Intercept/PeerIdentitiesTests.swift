import NIOCore
import NIOPosix
import TapRecord
import TapTestKit
import Testing

@testable import TapNetwork
@testable import TapSecurity

/// Tests which certificate a receiving server gets on behalf of the initiating server.
@Suite struct PeerIdentitiesTests {
    private let eventLoop = MultiThreadedEventLoopGroup.singleton.next()
    private let now: Timestamp
    private let authority: TestAuthority
    private let minted: PeerIdentities

    init() async throws {
        now = Timestamp(nanoseconds: 1_795_000_000_000_000_000)
        authority = try await TestAuthority()
        let own = try CertificateAuthority(for: .domain("example"), at: now)
        minted = PeerIdentities(.minted(CertificateMinter([own])))
    }

    private func identity(_ names: String...) async throws -> TLSIdentity {
        let leaf = try await authority.leaf(names: names)
        return try TLSIdentity(certificateFile: leaf.certificate, keyFile: leaf.key)
    }

    /// Returns the names that are shown, or the reason why none are.
    private func shown(
        _ identities: PeerIdentities,
        for name: String?,
        _ certificate: ClientCertificate
    ) async throws -> String {
        switch identities.decide(for: name, certificate, at: now, on: eventLoop) {
        case .none(let reason): return reason
        case .show(let future): return try await future.get().identity.certificate.names.all.joined(separator: ", ")
        }
    }

    @Test func `a certificate has only the names that the initiating server has proved`() async throws {
        let proved = try await identity("DNS:*.a.example", "DNS:b.other", "otherName:1.3.6.1.5.5.7.8.5;UTF8:a.example")
        let certificate = ClientCertificate.shown(proved.certificate, .both, [])
        #expect(try await shown(minted, for: "chat.a.example", certificate) == "*.a.example, xmpp:a.example")
        let service = try await identity("otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpp-server.a.example")
        #expect(
            try await shown(minted, for: "a.example", .shown(service.certificate, .both, []))
                == "_xmpp-server.a.example"
        )
        // With direct TLS, the server has not named itself.
        #expect(try await shown(minted, for: nil, certificate) == "*.a.example, xmpp:a.example")
    }

    @Test func `without a valid certificate of the initiating server, none is shown, except by launder`() async throws {
        let fault = CertificateFault(code: .selfSigned, issuer: nil, openSSLCode: 18)
        let faulty = ClientCertificate.shown(try await identity("DNS:a.example").certificate, .both, [fault])
        let own = try CertificateAuthority(for: .domain("example"), at: now)
        let launder = PeerIdentities(.minted(CertificateMinter([own])), ignoresFaults: true)
        for certificate in [faulty, .none, .notRequested] {
            #expect(try await !shown(minted, for: "a.example", certificate).contains("a.example"))
            #expect(try await shown(launder, for: "a.example", certificate) == "a.example")
        }
    }

    @Test(arguments: ["[192.0.2.1]", "2001:db8::1", "a@b.example", "", "a..example"])
    func `an invalid from gets no certificate, although any names are accepted for it`(name: String)
        async throws
    {
        let proved = try await identity("DNS:c.example")
        let reason = try await shown(minted, for: name, .shown(proved.certificate, .both, []))
        #expect(reason == "the initiating server has not named a domain")
    }

    @Test func `the own certificate is shown only to a server that has proved all of its names`() async throws {
        let own = try await identity("DNS:a.example", "DNS:*.a.example")
        let identities = PeerIdentities(.own(own))
        let same = ClientCertificate.shown(own.certificate, .both, [])
        #expect(try await shown(identities, for: "a.example", same) == "a.example, *.a.example")
        let guest = ClientCertificate.shown(try await identity("DNS:guest.a.example").certificate, .both, [])
        #expect(try await shown(identities, for: "guest.a.example", guest).contains("for more names"))
        #expect(try await shown(identities, for: "b.example", same).contains("is not for b.example"))
        #expect(try await shown(identities, for: "a.example", .notRequested).contains("uses no TLS"))
    }
}
