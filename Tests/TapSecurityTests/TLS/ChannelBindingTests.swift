import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct ChannelBindingTests {
    @Test func `tls-exporter data is equal at both ends and differs between connections`() async throws {
        let fixture = try await EngineFixture.common
        var seen: Set<[UInt8]> = []
        for version in [TLSVersion.tls12, .tls13, .tls13] {
            var pair = try fixture.pair { $0.maximumVersion = version }
            #expect(pair.client.channelBinding(.exporter) == nil)
            pair.pump()
            let data = try #require(pair.client.channelBinding(.exporter))
            #expect(data.count == 32)
            #expect(pair.server.channelBinding(.exporter) == data)
            #expect(seen.insert(data).inserted)
        }
    }

    @Test func `tls-unique data is equal at both ends with TLS 1.2, and undefined with TLS 1.3`() async throws {
        let fixture = try await EngineFixture.common
        var pair = try fixture.pair { $0.maximumVersion = .tls12 }
        pair.pump()
        let data = try #require(pair.client.channelBinding(.unique))
        #expect(data.count == 12)
        #expect(pair.server.channelBinding(.unique) == data)
        var newer = try fixture.pair()
        newer.pump()
        #expect(newer.client.channelBinding(.unique) == nil)
        #expect(newer.server.channelBinding(.unique) == nil)
    }

    /// The digests required by RFC 5929 §4.1, by the hash of the signature.
    @Test(arguments: [
        (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "sha256", 32),
        (["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], "sha384", 48),
        (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "sha512", 64),
        (["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], "sha1", 32),
        (["-algorithm", "ED25519"], "", nil),
    ])
    func `tls-server-end-point uses the hash that the certificate's signature defines`(
        key: [String],
        digest: String,
        count: Int?
    ) async throws {
        let folder = try TemporaryFolder()
        let paths = (key: folder.path(of: "key"), certificate: folder.path(of: "certificate"))
        let arguments =
            [
                ["genpkey"] + key + ["-out", paths.key],
                [
                    "req", "-x509", "-key", paths.key, "-days", "2", "-subj", "/CN=x", "-addext",
                    "subjectAltName=DNS:example.org",
                ]
                    + (digest.isEmpty ? [] : ["-\(digest)"]) + ["-out", paths.certificate],
            ]
        for arguments in arguments {
            let openssl = try ToolProcess(TestProgram.openssl.rawValue, arguments)
            guard try await openssl.ending() == .exited(0) else { throw openssl.failure("failed") }
        }
        var options = ServerLegTLS()
        options.isInsecure = true
        // OpenSSL's default security level refuses SHA-1 signatures.
        options.minimumVersion = .tls10
        var ours = ClientLegTLS()
        ours.minimumVersion = .tls10
        let identity = try TLSIdentity(certificateFile: paths.certificate, keyFile: paths.key)
        var pair = try EnginePair(
            TLSEngine(TLSContext(options), to: ServerLegTarget(reference: ServerReference(domain: "example.org"))),
            TLSEngine(TLSContext(ours), for: ClientLegOffer(identity: identity))
        )
        pair.pump()
        let data = pair.client.channelBinding(.serverEndPoint)
        #expect(data?.count == count)
        #expect(pair.server.channelBinding(.serverEndPoint) == data)
        if count == 32 { #expect(data == pair.client.parameters()?.certificate?.fingerprint) }
    }
}
