import NIOCore
import TapTestKit
import Testing

@testable import TapSecurity

/// Tests of TLS between servers, which authenticate to each other by certificates (XEP-0178).
@Suite struct ServerCertificatesTests {
    /// Both contexts of a proxy between servers, and the identities of the peers.
    private struct Scene {
        let authority: TestAuthority
        let receiving: TLSIdentity
        let toReceiving: TLSContext
        let fromInitiating: TLSContext

        init() async throws {
            authority = try await TestAuthority()
            receiving = try await Self.identity(authority, ["DNS:b.example"])
            var server = ServerLegTLS()
            server.trust = .file(authority.root)
            server.choosesIdentity = true
            toReceiving = try TLSContext(server)
            var client = ClientLegTLS()
            client.clientTrust = .file(authority.root)
            fromInitiating = try TLSContext(client)
        }

        static func identity(
            _ authority: TestAuthority,
            _ names: [String],
            end: String? = nil,
            extensions: [String] = []
        ) async throws -> TLSIdentity {
            let start = end == nil ? nil : "20200101000000Z"
            let leaf = try await authority.leaf(names: names, start: start, end: end, extensions: extensions)
            return try TLSIdentity(certificateFile: leaf.certificate, keyFile: leaf.key)
        }

        /// Returns xmpptap's end of the connection of an initiating server, after the handshake; nil if it failed.
        func accept(_ identity: TLSIdentity?, named domain: String? = "a.example") throws -> EnginePair {
            var options = ServerLegTLS()
            options.trust = .file(authority.root)
            options.identity = identity
            let target = ServerLegTarget(reference: try ServerReference(domain: "b.example", service: .servers))
            var offer = ClientLegOffer(identity: receiving)
            offer.reference = try domain.map { try ServerReference(domain: $0, service: .servers) }
            var pair = try EnginePair(
                TLSEngine(TLSContext(options), to: target),
                TLSEngine(fromInitiating, for: offer)
            )
            pair.pump()
            return pair
        }
    }

    private func shown(_ engine: TLSEngine) throws -> (uses: CertificateUses, faults: [String])? {
        guard case .shown(_, let uses, let faults) = try #require(engine.parameters()).client else { return nil }
        return (uses, faults.map(\.name))
    }

    @Test func `a valid certificate of an initiating server is verified for the domain that it names`() async throws {
        let scene = try await Scene()
        let identity = try await Scene.identity(scene.authority, ["DNS:a.example", "DNS:*.sub.example"])
        for domain in ["a.example", "x.sub.example", nil] {
            let pair = try scene.accept(identity, named: domain)
            #expect(pair.server.state == .open)
            let found = try #require(try shown(pair.server))
            #expect(found.faults == [])
            #expect(found.uses == .both)
        }
        let service = "otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpp-server.a.example"
        let named = try await Scene.identity(scene.authority, [service])
        #expect(try shown(scene.accept(named).server)?.faults == [])
        let ofClients = "otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpp-client.a.example"
        let other = try await Scene.identity(scene.authority, [ofClients])
        #expect(try shown(scene.accept(other).server)?.faults == ["certificate-wrong-name"])
    }

    @Test func `the handshake continues with a faulty certificate and without one, and both are reported`() async throws
    {
        let scene = try await Scene()
        let foreign = try await Scene.identity(scene.authority, ["DNS:c.example"])
        let expired = try await Scene.identity(scene.authority, ["DNS:a.example"], end: "20210101000000Z")
        let stranger = try await Scene.identity(TestAuthority(), ["DNS:a.example"])
        let mail = try await Scene.identity(
            scene.authority,
            ["DNS:a.example"],
            extensions: ["extendedKeyUsage=emailProtection"]
        )
        for (identity, fault) in [
            (foreign, "certificate-wrong-name"), (expired, "certificate-expired"),
            (stranger, "certificate-unknown-issuer"), (mail, "certificate-wrong-purpose"),
        ] {
            let pair = try scene.accept(identity)
            #expect(pair.server.state == .open && pair.client.state == .open)
            #expect(try shown(pair.server)?.faults == [fault])
            #expect(pair.server.parameters()?.overlooked == [])
        }
        let pair = try scene.accept(nil)
        #expect(pair.server.state == .open)
        #expect(pair.server.parameters()?.client == ClientCertificate.none)
    }

    @Test func `a certificate for TLS servers only is valid, and its use is reported`() async throws {
        let scene = try await Scene()
        let identity = try await Scene.identity(
            scene.authority,
            ["DNS:a.example"],
            extensions: ["extendedKeyUsage=serverAuth"]
        )
        let found = try #require(try shown(scene.accept(identity).server))
        #expect(found.faults == [])
        #expect(found.uses == .server)
    }

    @Test func `the sessions of initiating servers get no ticket`() async throws {
        let scene = try await Scene()
        let identity = try await Scene.identity(scene.authority, ["DNS:a.example"])
        var pair = try scene.accept(identity)
        pair.client.keepMessages()
        pair.server.write(ByteBuffer(string: "x"))
        pair.pump()
        #expect(pair.atClient.readableBytes == 1)
        #expect(!pair.client.takeMessages().contains { $0.name == "NewSessionTicket" })
    }

    @Test(arguments: [nil, TLSVersion.tls12])
    func `a server that requests a certificate waits for the choice`(maximum: TLSVersion?) async throws {
        let scene = try await Scene()
        let identity = try await Scene.identity(scene.authority, ["DNS:a.example"])
        for chosen in [identity, nil] {
            var target = ServerLegTarget(reference: try ServerReference(domain: "b.example", service: .servers))
            target.maximumVersion = maximum
            var offer = ClientLegOffer(identity: scene.receiving)
            offer.reference = try ServerReference(domain: "a.example", service: .servers)
            var pair = try EnginePair(
                TLSEngine(scene.toReceiving, to: target),
                TLSEngine(scene.fromInitiating, for: offer)
            )
            pair.pump()
            #expect(pair.client.awaitsIdentity)
            #expect(pair.client.state == .handshaking)
            // The receiving server has been verified.
            #expect(pair.client.parameters()?.certificate?.names.hosts == ["b.example"])
            #expect(pair.client.parameters()?.versionNumber == maximum ?? .tls13)
            pair.client.present(chosen)
            pair.pump()
            #expect(pair.client.state == .open && pair.server.state == .open)
            #expect(try shown(pair.server)?.faults == (chosen == nil ? nil : []))
        }
    }

    @Test func `a server that sends much data while it waits for a certificate is refused`() async throws {
        let scene = try await Scene()
        let target = ServerLegTarget(reference: try ServerReference(domain: "b.example", service: .servers))
        var pair = try EnginePair(
            TLSEngine(scene.toReceiving, to: target),
            TLSEngine(scene.fromInitiating, for: ClientLegOffer(identity: scene.receiving))
        )
        pair.pump()
        pair.client.receive(ByteBuffer(repeating: 0, count: 60_000))
        #expect(pair.client.state == .handshaking)
        pair.client.receive(ByteBuffer(repeating: 0, count: 60_000))
        #expect(pair.client.state.fault?.name == "tls-protocol-error")
    }

    @Test func `a server without a request does not wait`() async throws {
        let scene = try await Scene()
        let target = ServerLegTarget(reference: try ServerReference(domain: "b.example", service: .servers))
        var pair = try EnginePair(
            TLSEngine(scene.toReceiving, to: target),
            TLSEngine(TLSContext(ClientLegTLS()), for: ClientLegOffer(identity: scene.receiving))
        )
        pair.pump()
        #expect(pair.client.state == .open)
        #expect(!pair.client.awaitsIdentity)
        #expect(pair.server.parameters()?.client == .notRequested)
    }

    @Test func `a server that is not verified is not asked for its wishes`() async throws {
        let scene = try await Scene()
        let target = ServerLegTarget(reference: try ServerReference(domain: "c.example", service: .servers))
        var pair = try EnginePair(
            TLSEngine(scene.toReceiving, to: target),
            TLSEngine(scene.fromInitiating, for: ClientLegOffer(identity: scene.receiving))
        )
        pair.pump()
        #expect(pair.client.state.fault?.name == "certificate-wrong-name")
        #expect(!pair.client.awaitsIdentity)
    }

    @Test func `the replacement of an unverified certificate has its names and dates, and is self-signed`() async throws
    {
        let authority = try await TestAuthority()
        let names = ["DNS:b.example", "DNS:*.b.example"]
        let original = try await Scene.identity(authority, names, end: "20210101000000Z").certificate
        let copies = SelfSignedCertificates()
        #expect(copies.remembered(like: original) == nil)
        let copy = try copies.certificate(like: original)
        #expect(copy.certificate.names == original.names)
        #expect(copy.certificate.notBefore == original.notBefore)
        #expect(copy.certificate.notAfter == original.notAfter)
        #expect(copy.certificate.issuer == copy.certificate.subject)
        #expect(copies.remembered(like: original) === copy)
        #expect(try copies.certificate(like: original) === copy)
    }
}
