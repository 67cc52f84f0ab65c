import Foundation
import TapTestKit
import Testing

/// Tests of a proxy that terminates TLS, with hostile clients, servers and files: the log has one clear line, the
/// client receives the right alert, the session ends, and the next login works.
@Suite(
    .timeLimit(.minutes(4)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing")
) struct InterceptHostileTests {
    private static func sized(_ bytes: [UInt8], _ width: Int) -> [UInt8] {
        (0..<width).reversed().map { UInt8(truncatingIfNeeded: bytes.count >> (8 * $0)) } + bytes
    }

    /// Returns a ClientHello in as few TLS records as possible.
    private static func hello(name: String?, version: UInt8 = 3, extra: [UInt8] = []) -> [UInt8] {
        var extensions: [UInt8] = [0, 10] + sized(sized([0, 29, 0, 23], 2), 2)
        extensions += [0, 13] + sized(sized([4, 3, 8, 4], 2), 2) + extra
        if let name { extensions += [0, 0] + sized(sized([0] + sized(Array(name.utf8), 2), 2), 2) }
        let body: [UInt8] =
            [3, version] + [UInt8](repeating: 7, count: 32) + [0] + sized([0xC0, 0x2B, 0xC0, 0x2F, 0xC0, 0x09], 2)
            + [1, 0] + sized(extensions, 2)
        let message = [1] + sized(body, 3)
        return stride(from: 0, to: message.count, by: 16_000).flatMap { start in
            [0x16, 3, 1] + sized(Array(message[start..<min(message.count, start + 16_000)]), 2)
        }
    }

    /// Reserved values that clients insert (GREASE, RFC 8701), and many unknown extensions.
    private static let grease: [UInt8] = [0x1A, 0x1A, 0, 0, 0xFA, 0xFA, 0, 1, 0]
    private static let thousand: [UInt8] = (0..<1000).flatMap { [0x70 + UInt8($0 >> 8), UInt8($0 & 0xFF), 0, 2, 1, 2] }

    private static func alert(_ code: UInt8) -> [UInt8] { [0x15, 3, 1, 0, 2, 2, code] }

    private static func loginWorks(_ scene: InterceptScene) async throws {
        let parameters = try await TLSPeer.connect(
            port: scene.directPort,
            trusting: scene.authority,
            ["--sni", "localhost"]
        )
        #expect(parameters.mechanisms == true && parameters.error == nil, "\(parameters)")
    }

    @Test func `unusual but valid ClientHellos are answered, and invalid ones get the fitting alert`() async throws {
        let scene = try await InterceptScene(arguments: ["--limit", "login=3"])
        // These clients receive a handshake record as the answer.
        for extra in [Self.grease, Self.thousand, Self.grease + Self.thousand + Self.grease] {
            let client = try RawConnection(port: scene.directPort)
            try await client.write(Self.hello(name: "localhost", extra: extra))
            #expect(try await client.read { $0.count > 5 }.bytes.first == 0x16)
            client.close()
        }
        let huge: [UInt8] = [0x16, 3, 1, 0x40, 0, 1, 2, 0, 0] + [UInt8](repeating: 0, count: 16_380)
        let longExtension: [UInt8] = [0x70, 0, 0xFF, 0xB0] + [UInt8](repeating: 0, count: 0xFFB0)
        let refused: [(bytes: [UInt8], alert: UInt8, code: String, words: String)] = [
            (huge, 50, "malformed-client-hello", "a ClientHello of 131072 bytes"),
            (
                Self.hello(name: "localhost", extra: longExtension), 50, "malformed-client-hello",
                "a ClientHello of 65"
            ),
            ([0x16, 3, 1, 0, 4, 2, 0xFF, 0xFF, 0xFF], 50, "malformed-client-hello", "in place of a ClientHello"),
            (Self.hello(name: "other.example"), 112, "tls-alert", "does not serve the requested server name"),
            (
                Self.hello(name: "localhost", version: 1), 70, "tls-version",
                "offers no allowed TLS version"
            ),
            (
                Self.hello(name: nil), 80, "certificate-wrong-name",
                "the client sent no server name (SNI), so the upstream's own name"
            ),
        ]
        for way in refused {
            let client = try RawConnection(port: scene.directPort)
            try await client.write(way.bytes)
            let got = try await client.read(within: .seconds(10)) { _ in false }
            #expect(
                got.end != .silent && got.bytes.count == 7 && got.bytes.last == way.alert,
                "\(way.words): \(got.bytes)"
            )
        }
        try await Self.loginWorks(scene)
        try await scene.stop()
        let records = try scene.tap.records()
        for (index, way) in refused.enumerated() {
            let faults = records.filter { $0.session == UInt64(index + 4) && $0.kind == "error" }
            #expect(faults.map(\.code) == [way.code], "\(faults.map(\.message))")
            #expect(faults.first?.message?.contains(way.words) == true, "\(faults.first?.message ?? "")")
        }
    }

    @Test func `no authority is created for a top-level domain, and the client gets an error`()
        async throws
    {
        let listener = try RawListener()
        let own = try await InterceptAuthority()
        let tap = try await Tap(upstream: listener.port, arguments: own.arguments + ["--server-tls", "off"])
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.hello(name: "com"))
        #expect(try await client.read(within: .seconds(10)) { _ in false }.bytes == Self.alert(112))
        try await tap.stop()
        let fault = try #require(try tap.records().first { $0.code == "no-certificate" }?.message)
        #expect(fault.contains("'xmpptap ca create --domain com --allow-public-suffix --ca-dir "), "\(fault)")
    }

    /// Answers of a hostile server to a ClientHello.
    private static let floods: [(name: String, bytes: [UInt8])] = [
        ("warnings", (0..<2000).flatMap { _ in [0x15, 3, 3, 0, 2, 1, 90] }),
        ("changes of cipher", (0..<5000).flatMap { _ in [0x14, 3, 3, 0, 1, 1] }),
        ("empty records", (0..<5000).flatMap { _ in [0x16, 3, 3, 0, 0] }),
        (
            "a certificate's length alone",
            [0x16, 3, 3, 0x40, 0, 11, 0xFF, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 16_380)
        ),
    ]

    @Test(arguments: floods.map(\.name)) func `a server that floods is disconnected`(name: String) async throws {
        let flood = try #require(Self.floods.first { $0.name == name })
        let own = try await InterceptAuthority()
        let listener = try RawListener()
        let tap = try await Tap(upstream: listener.port, arguments: own.arguments + ["--limit", "login=5"])
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.hello(name: "localhost"))
        var server = try await listener.accept()
        // The proxy's first connection only checks whether the server accepts connections.
        if try await server.read(until: { $0.count > 5 }).end != .enough {
            server = try await listener.accept()
            _ = try await server.read { $0.count > 5 }
        }
        try await server.write(flood.bytes)
        #expect(try await client.read(within: .seconds(10)) { _ in false }.end != .silent)
        try await tap.stop()
        let faults = try tap.records().filter { $0.kind == "error" && $0.session == 1 }
        #expect(faults.count == 1, "\(faults.map(\.message))")
        let words = ["the server violated the TLS protocol", "the server sent something", "the server sent a record"]
        #expect(words.contains { faults.first?.message?.hasPrefix($0) == true }, "\(faults.first?.message ?? "")")
    }

    @Test func `a server's chain of a hundred certificates is judged by its leaf certificate`() async throws {
        let leaf = try await TestCertificate()
        let other = try await TestCertificate(domain: "other.example")
        let read = { (path: String) in Tap.read(path) }
        let chain = (0..<99).map { _ in read(other.certificate) }.joined()
        let long = try TestCertificate(certificate: read(leaf.certificate) + chain, key: read(leaf.key))
        for (trusted, isServed) in [(leaf, true), (other, false)] {
            let scene = try await InterceptScene(certificate: long, arguments: ["--upstream-ca", trusted.certificate])
            let parameters = try await TLSPeer.connect(
                port: scene.directPort,
                trusting: scene.authority,
                ["--sni", "localhost"]
            )
            #expect((parameters.mechanisms == true) == isServed, "\(parameters)")
            try await scene.stop()
            let faults = try scene.tap.records().filter { $0.kind == "error" && $0.session == 1 }
            #expect(faults.count == (isServed ? 0 : 1), "\(faults.map(\.message))")
        }
    }

    @Test func `a server certificate with a weak key is refused with that reason`() async throws {
        let authority = try await TestAuthority()
        let weak = try await authority.leaf(
            names: ["DNS:localhost"],
            key: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:768"]
        )
        let port = try FreePort.next()
        let own = try await InterceptAuthority()
        let server = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", weak.certificate, "-key", weak.key, "-quiet",
                "-cipher", "DEFAULT@SECLEVEL=0",
            ]
        )
        let end = ContinuousClock.now + .seconds(10)
        while !FreePort.accepts(port), ContinuousClock.now < end { try await Task.sleep(for: .milliseconds(20)) }
        let tap = try await Tap(upstream: port, arguments: own.arguments + ["--upstream-ca", authority.root])
        let client = try RawConnection(port: tap.port)
        try await client.write(Self.hello(name: "localhost"))
        #expect(try await client.read(within: .seconds(10)) { _ in false }.end != .silent)
        try await tap.stop()
        _ = try await server.terminate()
        let faults = try tap.records().filter { $0.kind == "error" && $0.session == 1 }
        #expect(faults.map(\.code) == ["certificate-too-weak"], "\(faults.map(\.message))")
    }

    @Test(arguments: ["rights", "key"]) func `an unusable authority is reported, and is used again after its repair`(
        damage: String
    ) async throws {
        let scene = try await InterceptScene()
        let folder = URL(filePath: scene.authority).deletingLastPathComponent().path
        let key = folder + "/key.pem"
        let whole = Tap.read(key)
        if damage == "rights" {
            chmod(folder, 0o755)
        } else {
            try Data(whole.utf8.prefix(60)).write(to: URL(filePath: key))
        }
        if damage == "key" { chmod(key, 0o600) }
        let client = try RawConnection(port: scene.directPort)
        try await client.write(Self.hello(name: "localhost"))
        let got = try await client.read(within: .seconds(10)) { _ in false }
        #expect(got.bytes == Self.alert(80), "\(got.bytes)")
        if damage == "rights" { chmod(folder, 0o700) } else { try Data(whole.utf8).write(to: URL(filePath: key)) }
        chmod(key, 0o600)
        try await Self.loginWorks(scene)
        try await scene.stop()
        let faults = try scene.tap.records().filter { $0.kind == "error" }
        let words = damage == "rights" ? "(mode 0755)" : "has no readable private key"
        #expect(faults.count == 1 && faults.first?.message?.contains(words) == true, "\(faults.map(\.message))")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `TLS handshake messages are logged only at trace`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "trace.json")
        let scene = try await InterceptScene(arguments: ["--log-to", "\(path),format=json,trace"])
        try await Self.loginWorks(scene)
        try await scene.stop()
        let messages = Tap.read(path).split(separator: "\n").filter { $0.contains("\"tls-message\"") }
        for words in [
            "ClientHello to the server", "ServerHello from the server", "ClientHello from the client",
            "Finished from the client",
        ] {
            #expect(messages.contains { $0.contains(words) }, "\(words)")
        }
        #expect(!Tap.read(scene.tap.json).contains("tls-message"))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.slixmpp), "slixmpp is missing"))
    func `with --channel-binding strip, a login fails as the forecast says`() async throws {
        let scene = try await InterceptScene(version: "1_2", arguments: ["--channel-binding", "strip"])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            // A single mechanism: with several, slixmpp tries PLAIN while it is disconnecting.
            options: ["--ca", scene.authority, "--timeout", "10", "--mechanism", "SCRAM-SHA-1"]
        )
        // slixmpp supports channel binding and sends the gs2 flag y, which a server that offers channel binding refuses
        // (RFC 5802 §6).
        await #expect(throws: KitError.self) { try await client.finish() }
        #expect(!client.events.contains { $0.event == "ready" })
        try await scene.stop()
        let said = scene.tap.binary.process.text(of: .standardError)
        #expect(
            said.contains("warning: --channel-binding strip: clients that support channel binding send the gs2 flag y")
        )
        let log = Tap.read(scene.tap.json)
        let edited = try #require(log.split(separator: "\n").first { $0.contains("\"action\":\"edited\"") })
        let out = try #require(edited.firstRange(of: "\"edited\":\"")).upperBound
        #expect(edited[..<out].contains("SCRAM-SHA-1-PLUS") && !edited[out...].contains("-PLUS"), "\(edited)")
        let forecasts = try scene.tap.records().filter { $0.code == "channel-binding" }.compactMap(\.message)
        #expect(forecasts.first?.hasPrefix("this login is at risk: RFC 5802 §6 ") == true, "\(forecasts)")
        let diagnosis = try #require(try scene.tap.records().first { $0.code == "login-failed" }?.details)
        #expect(diagnosis.cause == "channel-binding-denied" && diagnosis.proxyIsCause == true, "\(log)")
    }
}
