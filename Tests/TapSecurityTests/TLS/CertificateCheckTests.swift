import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct CertificateCheckTests {
    /// Runs a handshake with a server that uses a certificate with these names.
    private func client(
        names: [String],
        domain: String = "example.org",
        start: String? = nil,
        end: String? = nil,
        change: (inout ServerLegTLS) -> Void = { _ in }
    ) async throws -> EnginePair {
        var pair = try await EngineFixture(names: names, start: start, end: end, change: change).pair(domain: domain)
        pair.pump()
        return pair
    }

    /// Runs a handshake with certificate files, and a client for `example.org` with this trust.
    private func contact(_ certificate: String, _ key: String, trusting trust: ServerLegTLS.Trust) throws -> EnginePair
    {
        var options = ServerLegTLS()
        options.trust = trust
        var pair = try EnginePair(
            TLSEngine(TLSContext(options), to: ServerLegTarget(reference: ServerReference(domain: "example.org"))),
            TLSEngine(
                TLSContext(ClientLegTLS()),
                for: ClientLegOffer(identity: TLSIdentity(certificateFile: certificate, keyFile: key))
            )
        )
        pair.pump()
        return pair
    }

    private func faults(_ pair: EnginePair) -> [CertificateFault] {
        if case .untrusted(let faults) = pair.client.state.fault?.code { faults } else { [] }
    }

    @Test(arguments: [
        (["DNS:example.org"], "example.org"),
        (["DNS:EXAMPLE.org"], "Example.ORG"),
        (["DNS:other.org", "DNS:*.example.org"], "chat.example.org"),
        (["otherName:1.3.6.1.5.5.7.8.5;UTF8:example.org"], "example.org"),
        (["otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpp-client.example.org"], "example.org"),
        (["otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpps-client.example.org"], "example.org"),
        (["DNS:xn--bcher-kva.example"], "bücher.example"),
        (["IP:192.168.1.1"], "192.168.1.1"),
        (["IP:::1"], "[::1]"),
        (["DNS:localhost"], "localhost"),
    ])
    func `a certificate with a matching name is accepted`(names: [String], domain: String) async throws {
        #expect(try await client(names: names, domain: domain).client.state == .open)
    }

    @Test(arguments: [
        (["DNS:example.com"], "example.org"),
        (["DNS:*.example.org"], "example.org"),
        (["DNS:*.example.org"], "a.b.example.org"),
        (["DNS:ch*.example.org"], "chat.example.org"),
        (["DNS:*.org"], "example.org"),
        (["DNS:192.168.1.1"], "192.168.1.1"),
        (["IP:192.168.1.2"], "192.168.1.1"),
        (["otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_xmpp-server.example.org"], "example.org"),
        (["otherName:1.3.6.1.5.5.7.8.7;IA5STRING:_imap.example.org"], "example.org"),
        (["otherName:1.3.6.1.5.5.7.8.5;UTF8:juliet@example.org"], "example.org"),
        (["otherName:1.3.6.1.5.5.7.8.5;UTF8:*.example.org"], "chat.example.org"),
        (["email:juliet@example.org", "URI:xmpp:example.org"], "example.org"),
    ])
    func `a certificate without a matching name is refused with its names`(names: [String], domain: String) async throws
    {
        let pair = try await client(names: names, domain: domain)
        #expect(faults(pair).map(\.name) == ["certificate-wrong-name"])
        #expect(pair.client.state.fault?.alertSent == .badCertificate)
        #expect(pair.server.state.fault?.isRefusedCertificate == true)
    }

    @Test func `an XmppAddr is compared as a JID, in any form of the domain`() throws {
        var names = CertificateNames()
        names.jids = ["BÜCHER.example"]
        #expect(try ServerReference(domain: "bücher.example").matches(names))
        #expect(try ServerReference(domain: "xn--bcher-kva.example.").matches(names))
        #expect(try !ServerReference(domain: "bucher.example").matches(names))
        names = CertificateNames()
        names.hosts = ["example.org\0.evil.example", "", "*", "*.", "."]
        #expect(try !ServerReference(domain: "example.org").matches(names))
    }

    @Test func `the common name is ignored`() async throws {
        let authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: [], subject: "example.org")
        let pair = try contact(leaf.certificate, leaf.key, trusting: .file(authority.root))
        #expect(
            pair.client.state.fault?.explanation(peer: "the server")
                == "the certificate of the server is not trusted: it is for no name (no subject alternative name), "
                + "not for example.org"
        )
    }

    @Test func `an expired certificate is refused with its date`() async throws {
        let pair = try await client(names: ["DNS:example.org"], start: "20250101000000Z", end: "20250201000000Z")
        #expect(faults(pair).map(\.name) == ["certificate-expired"])
        let words = try #require(pair.client.state.fault).explanation(peer: "the server")
        #expect(words.contains("it expired on 2025-02-01T00:00:00Z, "), "\(words)")
        #expect(words.hasSuffix(" days ago"), "\(words)")
        #expect(pair.client.state.fault?.alertSent == TLSAlert(code: 45))
    }

    @Test func `a certificate that is not valid yet is refused with its date`() async throws {
        let pair = try await client(names: ["DNS:example.org"], start: "20990101000000Z", end: "20990201000000Z")
        #expect(faults(pair).map(\.name) == ["certificate-not-yet-valid"])
        let words = try #require(pair.client.state.fault).explanation(peer: "the server")
        #expect(
            words.contains("it is not valid before 2099-01-01T00:00:00Z, "),
            "\(words)"
        )
    }

    @Test func `an unknown issuer is named, and all faults are reported together`() async throws {
        let other = try await TestAuthority(name: "Another Authority")
        let pair = try await client(names: ["DNS:example.com"], end: "20250201000000Z") { $0.trust = .file(other.root) }
        #expect(
            Set(faults(pair).map(\.name))
                == ["certificate-unknown-issuer", "certificate-expired", "certificate-wrong-name"]
        )
        let words = try #require(pair.client.state.fault).explanation(peer: "the server")
        #expect(words.contains("its issuer is not trusted, or missing from the server's chain: CN=Test Authority"))
        #expect(pair.client.state.fault?.alertSent == .unknownCA)
    }

    @Test func `the system's trust anchors do not include the test authority`() async throws {
        let pair = try await client(names: ["DNS:example.org"]) { $0.trust = .system }
        #expect(faults(pair).map(\.name) == ["certificate-unknown-issuer"])
    }

    @Test func `a self-signed certificate is refused unless it is a trust anchor`() async throws {
        let own = try await TestCertificate(domain: "example.org")
        for isTrusted in [false, true] {
            let pair = try contact(own.certificate, own.key, trusting: isTrusted ? .file(own.certificate) : .system)
            #expect(faults(pair).map(\.name) == (isTrusted ? [] : ["certificate-self-signed"]))
            #expect((pair.client.state == .open) == isTrusted)
        }
    }

    @Test func `a leaf certificate can be a trust anchor without its issuer`() async throws {
        let authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: ["DNS:example.org"])
        let pair = try contact(leaf.certificate, leaf.key, trusting: .file(leaf.certificate))
        #expect(pair.client.state == .open)
    }

    @Test func `a certificate outside its authority's name constraints is refused`() async throws {
        let authority = try await TestAuthority(extensions: ["nameConstraints=critical,permitted;DNS:example.com"])
        let leaf = try await authority.leaf(names: ["DNS:example.org"])
        let pair = try contact(leaf.certificate, leaf.key, trusting: .file(authority.root))
        #expect(faults(pair).map(\.name) == ["certificate-bad-issuer"])
    }

    @Test func `a certificate for client authentication alone is refused`() async throws {
        let authority = try await TestAuthority()
        let leaf = try await authority.leaf(names: ["DNS:example.org"], extensions: ["extendedKeyUsage=clientAuth"])
        let pair = try contact(leaf.certificate, leaf.key, trusting: .file(authority.root))
        #expect(faults(pair).map(\.name) == ["certificate-wrong-purpose"])
    }

    @Test func `the insecure mode continues and records the faults`() async throws {
        let pair = try await client(names: ["DNS:example.com"], end: "20250201000000Z") {
            $0.isInsecure = true
            $0.trust = .system
        }
        #expect(pair.client.state == .open)
        #expect(
            Set(pair.client.parameters()?.overlooked.map(\.name) ?? [])
                == ["certificate-unknown-issuer", "certificate-expired", "certificate-wrong-name"]
        )
    }

    @Test func `a pin accepts its certificate whatever its faults, and refuses others`() async throws {
        let own = try await TestCertificate(domain: "other.example")
        let shown = try TLSIdentity(certificateFile: own.certificate, keyFile: own.key).certificate
        func connect(_ pins: [CertificatePin], isInsecure: Bool = false) throws -> EnginePair {
            var options = ServerLegTLS()
            options.pins = pins
            options.isInsecure = isInsecure
            var pair = try EnginePair(
                TLSEngine(TLSContext(options), to: ServerLegTarget(reference: ServerReference(domain: "example.org"))),
                TLSEngine(
                    TLSContext(ClientLegTLS()),
                    for: ClientLegOffer(identity: TLSIdentity(certificateFile: own.certificate, keyFile: own.key))
                )
            )
            pair.pump()
            return pair
        }
        let wrong = try #require(CertificatePin(String(repeating: "0", count: 64)))
        let right = try #require(CertificatePin(shown.fingerprintText))
        #expect(CertificatePin(shown.fingerprint.hexadecimal) == right && "\(right)" == shown.fingerprintText)
        let accepted = try connect([wrong, right])
        #expect(accepted.client.state == .open && accepted.client.parameters()?.overlooked == [])
        let refused = try connect([wrong])
        #expect(faults(refused).map(\.name) == ["certificate-not-pinned"])
        #expect(refused.client.state.fault?.explanation(peer: "the server").hasSuffix(shown.fingerprintText) == true)
        #expect(
            try connect([wrong], isInsecure: true).client.parameters()?.overlooked.map(\.name)
                == faults(refused).map(\.name)
        )
        // A pin for one domain does not apply to other domains.
        let same = CertificatePin(shown, for: try ServerReference(domain: "EXAMPLE.org"))
        #expect(try connect([same]).client.state == .open)
        let other = CertificatePin(shown, for: try ServerReference(domain: "example.net"))
        #expect(
            Set(faults(try connect([other])).map(\.name)) == ["certificate-self-signed", "certificate-wrong-name"]
        )
    }

    @Test func `a missing, empty or damaged file of trust anchors is reported by name`() throws {
        let folder = try TemporaryFolder()
        func error(_ file: String) -> String {
            var options = ServerLegTLS()
            options.trust = .file(file)
            do {
                _ = try TLSContext(options)
                return "none"
            } catch {
                return "\(error)"
            }
        }
        let missing = folder.path(of: "none.pem")
        #expect(error(missing) == "cannot read \(missing): No such file or directory")
        let empty = try folder.write("nothing", to: "empty.pem")
        #expect(
            error(empty) == "\(empty) has no PEM certificate (a block labelled CERTIFICATE)"
        )
        let torn = try folder.write("-----BEGIN CERTIFICATE-----\nMIIB\n", to: "torn.pem")
        #expect(error(torn) == "\(torn) has an unreadable certificate: it is truncated or damaged")
    }
}
