import Foundation
import TapTestKit
import Testing

/// Tests of the authority that signs the certificate shown to a client: a wildcard certificate needs only one, an
/// existing authority is preferred, and the number of authorities created on demand is limited. Also tests the
/// diagnosis after a client refuses the certificate.
@Suite(
    .timeLimit(.minutes(3)),
    .serialized,
    .enabled(if: TestProgram.openssl.isInstalled, "openssl is missing")
)
struct AuthorityChoiceTests {
    /// A server with direct TLS and a certificate for the given names, and a proxy (`tap`) in front of it.
    private struct Scene {
        let authority: TestAuthority
        let peer: TLSPeer
        let tap: Tap
        let folder: TemporaryFolder

        /// The path of the `--ca-dir` folder.
        var authorities: String { folder.path(of: "ca") }

        /// - Parameters:
        ///   - names: The names in the server's certificate, in OpenSSL's syntax.
        ///   - existing: The domains for which authorities are created before the proxy starts.
        init(_ names: [String], existing: [String] = [], arguments: [String] = []) async throws {
            folder = try TemporaryFolder()
            authority = try await TestAuthority()
            let leaf = try await authority.leaf(names: names)
            let port = try FreePort.next()
            peer = try await TLSPeer.serve(port: port, certificate: leaf.certificate, key: leaf.key)
            let path = folder.path(of: "ca")
            for domain in existing {
                let made = try await XMPPTapBinary.run(["ca", "create", "--domain", domain, "--ca-dir", path])
                guard made.ending == .exited(0) else { throw KitError("no authority: \(made.error)") }
            }
            tap = try await Tap(
                upstream: port,
                arguments: ["--tls", "intercept", "--ca-dir", path, "--upstream-ca", authority.root] + arguments
            )
        }

        /// Connects a client that trusts the authority of `domain`, or the server's authority if the proxy has not
        /// created that one yet.
        func connect(_ name: String?, trusting domain: String) async throws -> TLSPeer.Parameters {
            let own = "\(authorities)/\(domain)/certificate.pem"
            return try await TLSPeer.connect(
                port: tap.port,
                trusting: FileManager.default.fileExists(atPath: own) ? own : authority.root,
                (name.map { ["--sni", $0] } ?? []) + ["--to", name ?? domain]
            )
        }

        var made: [String] {
            get throws { try FileManager.default.contentsOfDirectory(atPath: authorities).sorted() }
        }

        func stop() async throws {
            try await tap.stop()
            try await peer.stop()
        }
    }

    @Test func `a wildcard certificate needs one authority, whatever names clients request`() async throws {
        let scene = try await Scene(["DNS:*.example.org"])
        _ = try await scene.connect("first.example.org", trusting: "example.org")
        for name in ["first.example.org", "second.example.org", "third.example.org"] {
            let info = try await scene.connect(name, trusting: "example.org")
            #expect(info.mechanisms == true && info.error == nil, "\(info)")
            #expect(info.names == [name, "*.example.org"])
        }
        #expect(try scene.made == ["example.org"])
        try await scene.stop()
        let told = try scene.tap.records().filter { $0.code == "authority-created" }
        #expect(told.map(\.level) == ["info"], "\(told)")
        let export = "xmpptap ca export --domain example.org --ca-dir \(scene.authorities)"
        #expect(told.first?.message?.contains(export) == true, "\(told.first?.message ?? "")")
        let lines = scene.tap.binary.process.lines(of: .standardError).filter { $0.contains(export) }
        #expect(lines.count == 1, "\(lines)")
    }

    @Test func `no authority is created for a wildcard of a public suffix`() async throws {
        let scene = try await Scene(["DNS:*.co.uk"])
        _ = try await scene.connect("capulet.co.uk", trusting: "capulet.co.uk")
        let info = try await scene.connect("capulet.co.uk", trusting: "capulet.co.uk")
        #expect(info.mechanisms == true, "\(info)")
        #expect(try scene.made == ["capulet.co.uk"])
        try await scene.stop()
    }

    @Test func `the number of authorities created on demand is limited, and each refusal is logged`() async throws {
        let scene = try await Scene(
            ["DNS:one.example", "DNS:two.example", "DNS:three.example"],
            arguments: ["--limit", "authorities=2", "--metrics", "0"]
        )
        for name in ["one.example", "two.example", "three.example", "three.example"] {
            _ = try await scene.connect(name, trusting: name)
        }
        #expect(try await scene.connect("one.example", trusting: "one.example").mechanisms == true)
        #expect(try scene.made == ["one.example", "two.example"])
        let metrics = try await scene.tap.binary.metrics()
        #expect(metrics.contains("xmpptap_limit_hits_total{limit=\"authorities\"} 2\n"), "\(metrics)")
        try await scene.stop()
        let records = try scene.tap.records()
        let refused = records.filter { $0.code == "no-certificate" }.compactMap(\.message)
        #expect(refused.count == 2)
        for message in refused {
            #expect(message.contains("--limit authorities=2"), "\(message)")
            #expect(message.contains("xmpptap ca create --domain three.example --ca-dir \(scene.authorities)"))
        }
        let warned = records.filter { $0.code == "authority-limit" }
        #expect(warned.map(\.level) == ["warn"], "\(warned)")
    }

    @Test func `a client without SNI gets a certificate from an existing authority for one of the server's names`()
        async throws
    {
        let scene = try await Scene(["IP:127.0.0.1", "DNS:chat.example", "DNS:localhost"], existing: ["localhost"])
        let info = try await scene.connect(nil, trusting: "localhost")
        #expect(info.mechanisms == true && info.names == ["localhost"], "\(info)")
        #expect(try scene.made == ["localhost"])
        try await scene.stop()
    }

    @Test
    func `if a client without SNI refuses the certificate, the diagnosis names xmpptap as the cause`()
        async throws
    {
        let scene = try await Scene(["IP:127.0.0.1", "DNS:localhost"], existing: ["localhost"])
        // A client that connects to an IP address sends no server name, and compares the address with the certificate.
        let info = try await scene.connect("127.0.0.1", trusting: "localhost")
        #expect(info.mechanisms == nil && info.error != nil, "\(info)")
        // Some clients, for example with Python's asyncio, close the connection without a TLS alert.
        let silent = try RawConnection(port: scene.tap.port)
        try await silent.write(Self.hello)
        #expect(try await silent.read { $0.count > 5 }.bytes.first == 0x16)
        silent.close()
        try await scene.tap.wait(for: "tls-ended-in-handshake", in: scene.tap.json)
        try await scene.stop()
        let records = try scene.tap.records()
        for (session, code) in [(UInt64(1), "tls-alert"), (2, "tls-ended-in-handshake")] {
            let mine = records.filter { $0.session == session }
            let fault = try #require(mine.first { $0.kind == "error" })
            let diagnosis = try #require(mine.first { $0.code == "login-failed" })
            #expect(fault.code == code, "\(fault.message ?? "")")
            #expect(diagnosis.details?.cause == "certificate-not-accepted")
            #expect(diagnosis.details?.side == "xmpptap" && diagnosis.details?.proxyIsCause == true)
            for words in [
                "certificate for localhost", "CN=xmpptap CA for localhost ", "no server name (SNI)",
                "xmpptap ca export --domain localhost --ca-dir \(scene.authorities)",
            ] {
                #expect(fault.message?.contains(words) == true, "\(words): \(fault.message ?? "")")
                #expect(diagnosis.message?.contains(words) == true, "\(words): \(diagnosis.message ?? "")")
            }
        }
        #expect(try scene.made == ["localhost"])
    }

    @Test func `without SNI, a failed check of the server's name is diagnosed as caused by xmpptap`() async throws {
        let scene = try await Scene(["DNS:localhost"], existing: ["localhost"])
        #expect(try await scene.connect(nil, trusting: "localhost").mechanisms == nil)
        try await scene.stop()
        let diagnosis = try #require(try scene.tap.records().first { $0.code == "login-failed" })
        #expect(diagnosis.details?.cause == "certificate-wrong-name" && diagnosis.details?.proxyIsCause == true)
        #expect(diagnosis.message?.contains("no server name (SNI)") == true, "\(diagnosis.message ?? "")")
        #expect(diagnosis.message?.contains("--upstream localhost:") == true, "\(diagnosis.message ?? "")")
    }

    /// A TLS 1.2 ClientHello without a server name.
    private static let hello: [UInt8] = {
        func sized(_ bytes: [UInt8], _ width: Int) -> [UInt8] {
            (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
        }
        let extensions: [UInt8] =
            [0, 10] + sized(sized([0, 29, 0, 23], 2), 2) + [0, 13] + sized(sized([4, 3, 8, 4], 2), 2)
        let body: [UInt8] =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + sized([0xC0, 0x2B], 2) + [1, 0] + sized(extensions, 2)
        return [0x16, 3, 1] + sized([1] + sized(body, 3), 2)
    }()
}
