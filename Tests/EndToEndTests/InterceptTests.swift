import Foundation
import TapTestKit
import Testing

/// Tests of a proxy that terminates TLS on both legs, between real servers and real clients that trust only the proxy's
/// authority.
@Suite(.timeLimit(.minutes(3)), .serialized) struct InterceptTests {
    private static let words = "But, soft! what light 🌹 <&> breaks?"

    @Test(
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .profanity, .goSendxmpp, .openssl),
            "Prosody or clients are missing"
        )
    )
    func `slixmpp, profanity and go-sendxmpp talk by STARTTLS, and the log has the decrypted stanzas`() async throws {
        let scene = try await InterceptScene()
        let trust = ["--ca", scene.authority]
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            .init(ping: true, receive: 2),
            options: trust
        )
        try await juliet.event("ready")
        let romeo = try ScriptedClient(
            .profanity,
            as: .romeo,
            port: scene.tap.port,
            startTLS: true,
            .init(send: [(.juliet, Self.words)]),
            options: trust
        )
        try await romeo.finish()
        try await GoSendxmpp(
            as: .romeo,
            port: scene.tap.port,
            trusting: scene.authority,
            send: "It is the east",
            to: .juliet
        ).finish()
        let heard = try await juliet.finish()
        #expect(heard.contains { $0.event == "tls" })
        #expect(heard.compactMap(\.body) == [Self.words, "It is the east"])
        try await scene.stop()

        let records = try scene.tap.records()
        for session: UInt64 in 1...3 {
            let mine = records.filter { $0.session == session }
            mine.checkNoByteIsMissing()
            let opened = mine.filter { $0.code == "tls-opened" }.compactMap(\.message)
            try #require(opened.count == 2, "\(opened)")
            #expect(opened[0].contains(" with the server: ") && opened[0].contains("certificate for localhost"))
            #expect(opened[1].contains(" with the client: ") && opened[1].contains("issued by CN=xmpptap CA"))
            #expect(mine.contains { $0.code == "session-ready" })
            #expect(mine.contains { $0.name == "success" && ($0.epoch ?? 0) == 2 })
            #expect(!mine.contains { $0.code == "unexpected-restart" })
        }
        let capture = Tap.read(scene.tap.capture)
        #expect(capture.contains("soft! what light 🌹"))
        #expect(!capture.contains(Account.romeo.password))
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `a client never gets a trusted certificate for a server that is not trusted`() async throws {
        let other = try await TestCertificate()
        let scene = try await InterceptScene(arguments: ["--upstream-ca", other.certificate])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", scene.authority, "--timeout", "10"]
        )
        await #expect(throws: KitError.self) { try await client.finish() }
        #expect(!client.events.contains { $0.event == "tls" })
        try await scene.tap.wait(for: "certificate-self-signed", in: scene.tap.json)
        // The server has accepted STARTTLS, but its certificate is refused; the client therefore receives a failure
        // instead of the `<proceed/>`.
        let raw = try RawConnection(port: scene.tap.port)
        try await raw.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' "
                + "version='1.0'>"
        )
        try await raw.read(through: "</stream:features>")
        try await raw.write("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        let answer = String(decoding: try await raw.read { _ in false }.bytes, as: UTF8.self)
        #expect(answer == "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>")
        try await scene.stop()
        #expect(try scene.tap.records().contains { $0.session == 2 && $0.name == "proceed" && $0.direction == "recv" })
        let mine = try scene.tap.records().filter { $0.session == 1 }
        let fault = try #require(mine.first { $0.code == "certificate-self-signed" })
        #expect(fault.message?.hasPrefix("the certificate of the server is not trusted: it is self-signed") == true)
        #expect(fault.message?.contains("--upstream-ca") == true)
        #expect(mine.contains { $0.name == "failure" && $0.origin == "tap" })
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .openssl), "Prosody or openssl is missing"))
    func `a certificate that does not match --pin is refused`() async throws {
        let scene = try await InterceptScene(arguments: ["--pin", String(repeating: "0a", count: 32)])
        let client = try RawConnection(port: scene.tap.port)
        try await client.write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' "
                + "version='1.0'>"
        )
        try await client.read(through: "</stream:features>")
        try await client.write("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>")
        try await client.read(through: "<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:stream>")
        try await scene.stop()
        let shown = try await scene.real.fingerprint()
        let fault = try #require(try scene.tap.records().first { $0.code == "certificate-not-pinned" })
        #expect(fault.message?.contains("its SHA-256 fingerprint is \(shown)") == true)
        #expect(fault.message?.contains("--pin") == true)
        let failed = try #require(try scene.tap.records().first { $0.code == "login-failed" })
        #expect(failed.details?.cause == "certificate-refused")
        #expect(failed.message?.contains("--upstream-insecure") == false)
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `with --upstream-insecure, the login works with warnings, and sessions are marked unverified`() async throws {
        let scene = try await InterceptScene(
            certificate: TestCertificate(domain: "other.example"),
            arguments: ["--upstream-insecure"]
        )
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", scene.authority]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        #expect(scene.tap.binary.process.text(of: .standardError).contains("warning: --upstream-insecure"))
        let log = Tap.read(scene.tap.json)
        #expect(log.contains("NOT VERIFIED: it is self-signed"))
        #expect(log.contains("it is for other.example, not for localhost"))
        let ended = log.split(separator: "\n").first { $0.contains("session-ended") } ?? ""
        #expect(ended.contains(#""unverified":true"#), "\(ended)")
    }

    @Test(
        .enabled(
            if: TestProgram.areInstalled(.prosody, .slixmpp, .goSendxmpp, .openssl),
            "Prosody, slixmpp or go-sendxmpp is missing"
        )
    )
    func `clients that do not trust the authority are diagnosed, with or without a TLS alert`() async throws {
        let scene = try await InterceptScene()
        let other = try await TestCertificate()
        // Python's asyncio closes the connection without an alert.
        let silent = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", other.certificate, "--timeout", "8"]
        )
        await #expect(throws: KitError.self) { try await silent.finish() }
        let clear = try GoSendxmpp(
            as: .romeo,
            port: scene.tap.port,
            trusting: other.certificate,
            send: "never",
            to: .juliet
        )
        await #expect(throws: KitError.self) { try await clear.finish() }
        try await scene.tap.wait(for: "tls-alert", in: scene.tap.json)
        try await scene.stop()
        let faults = try scene.tap.records().filter { $0.kind == "error" }
        let first = try #require(faults.first { $0.code == "tls-ended-in-handshake" }?.message)
        let second = try #require(faults.first { $0.code == "tls-alert" }?.message)
        #expect(first.hasPrefix("the client closed the connection during the handshake"))
        #expect(second.hasPrefix("the client rejected the certificate as invalid (alert bad_certificate); "))
        for words in [first, second] { #expect(words.contains("xmpptap ca export")) }
        let causes = try scene.tap.records().filter { $0.code == "login-failed" }.compactMap(\.details?.cause)
        #expect(causes == ["certificate-not-accepted", "authority-not-trusted"])
        let diagnoses = try scene.tap.records().filter { $0.code == "login-failed" }
        #expect(diagnoses.allSatisfy { $0.details?.proxyIsCause == true })
        let folder = URL(filePath: scene.authority).deletingLastPathComponent().deletingLastPathComponent().path
        for diagnosis in diagnoses {
            for words in [
                "certificate for localhost", "issued by CN=xmpptap CA for localhost ",
                "xmpptap ca export --domain localhost --ca-dir \(folder)",
            ] {
                #expect(diagnosis.message?.contains(words) == true, "\(words): \(diagnosis.message ?? "")")
            }
        }
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `the key log has the secrets of both legs and is not readable by other users`() async throws {
        let folder = try TemporaryFolder()
        let scene = try await InterceptScene(arguments: ["--keylog", folder.path(of: "keys")])
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", scene.authority]
        )
        try await client.finish()
        try await scene.stop()
        let lines = folder.read("keys").split(separator: "\n")
        #expect(Set(lines.compactMap { $0.split(separator: " ").dropFirst().first }).count == 2)
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path(of: "keys"))[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }
}
