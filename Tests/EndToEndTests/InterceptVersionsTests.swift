import TapTestKit
import Testing

/// Tests of TLS terminated on both legs: the parameters negotiated on one leg are used on the other (XEP-0368).
@Suite(.timeLimit(.minutes(3)), .serialized) struct InterceptVersionsTests {
    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `slixmpp publishes an avatar of 100 KiB by direct TLS and reads it back`() async throws {
        let scene = try await InterceptScene(host: "modules_enabled = { \"pep\" }")
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.directPort,
            startTLS: true,
            .init(ping: true),
            options: ["--ca", scene.authority, "--direct", "--avatar", "102400"]
        )
        let events = try await client.finish()
        #expect(events.contains { $0.event == "avatar" } && events.contains { $0.event == "pong" })
        try await scene.stop()
        let records = try scene.tap.records().filter { $0.session == 1 }
        records.checkNoByteIsMissing()
        #expect(records.contains { $0.code == "session-ready" })
        #expect(records.filter { $0.code == "tls-opened" }.count == 2)
        #expect(!records.contains { $0.name == "starttls" && $0.kind == "element" })
        let avatars = records.filter { ($0.length ?? 0) > 130_000 }
        #expect(Set(avatars.compactMap(\.direction)) == ["send", "recv"], "\(avatars.map(\.summary))")
    }

    @Test(
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"),
        arguments: [false, true]
    )
    func `slixmpp resumes its stream inside TLS after the connection is lost`(direct: Bool) async throws {
        let scene = try await InterceptScene()
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: direct ? scene.directPort : scene.tap.port,
            startTLS: true,
            options: ["--ca", scene.authority, "--resume"] + (direct ? ["--direct"] : [])
        )
        #expect(try await client.finish().contains { $0.event == "resumed" })
        try await scene.stop()
        let records = try scene.tap.records()
        for session: UInt64 in 1...2 {
            let mine = records.filter { $0.session == session }
            mine.checkNoByteIsMissing()
            #expect(mine.filter { $0.code == "tls-opened" }.count == 2)
        }
        let ready = records.filter { $0.code == "session-ready" }.compactMap(\.message)
        #expect(ready.count == 2 && ready.last?.hasSuffix(": resumed session 1") == true, "\(ready)")
    }

    @Test(
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"),
        arguments: [false, true]
    )
    func `slixmpp logs in on TLS 1.2 if the server supports no other version`(direct: Bool) async throws {
        let scene = try await InterceptScene(version: "1_2")
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: direct ? scene.directPort : scene.tap.port,
            startTLS: true,
            // By default slixmpp would use channel binding, which fails because the server has a different TLS
            // connection.
            options: ["--ca", scene.authority, "--mechanism", "PLAIN"] + (direct ? ["--direct"] : [])
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let opened = try scene.tap.records().filter { $0.code == "tls-opened" }.compactMap(\.message)
        #expect(opened.count == 2 && opened.allSatisfy { $0.hasPrefix("TLS 1.2 with ") }, "\(opened)")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `a client that supports only TLS 1.2 is served, and the difference is logged`() async throws {
        let scene = try await InterceptScene()
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", scene.authority, "--tls-max", "1.2", "--mechanism", "PLAIN"]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()
        let records = try scene.tap.records()
        let opened = records.filter { $0.code == "tls-opened" }.compactMap(\.message)
        try #require(opened.count == 2)
        #expect(opened[0].hasPrefix("TLS 1.3 with the server") && opened[1].hasPrefix("TLS 1.2 with the client"))
        #expect(records.contains { $0.code == "tls-version-skew" }, "\(records.compactMap(\.code))")
    }

    @Test(.enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing"))
    func `the client's SNI and ALPN are sent to the server, and its choice is returned`() async throws {
        let own = try await InterceptAuthority()
        let real = try await TestCertificate()
        let port = try FreePort.next()
        let server = try await TLSPeer.serve(
            port: port,
            certificate: real.certificate,
            key: real.key,
            ["--alpn", "xmpp-client"]
        )
        let tap = try await Tap(upstream: port, arguments: own.arguments + ["--upstream-ca", real.certificate])
        for (offer, agreed) in [("xmpp-client", "xmpp-client"), ("h2,xmpp-client", "xmpp-client"), (nil, nil)] {
            let parameters = try await TLSPeer.connect(
                port: tap.port,
                trusting: own.certificate,
                ["--sni", "localhost"] + (offer.map { ["--alpn", $0] } ?? [])
            )
            #expect(parameters.error == nil && parameters.mechanisms == true)
            #expect(parameters.alpn == agreed)
            #expect(parameters.names == ["localhost"])
            #expect(server.parameters.last?.alpn == agreed && server.parameters.last?.sni == "localhost")
        }
        // The client sends every byte separately, as a hostile network could deliver them.
        let drip = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--sni", "localhost", "--drip", "1"]
        )
        #expect(drip.version == "TLSv1.3" && drip.mechanisms == true, "\(drip)")
        try await tap.stop()
        try await server.stop()
    }

    @Test(.enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing"), arguments: [false, true])
    func `--tls-min applies to both legs, and can be lowered`(isLowered: Bool) async throws {
        let own = try await InterceptAuthority()
        let real = try await TestCertificate()
        let port = try FreePort.next()
        let server = try await TLSPeer.serve(
            port: port,
            certificate: real.certificate,
            key: real.key,
            ["--starttls", "--max", "1.0"]
        )
        let tap = try await Tap(
            upstream: port,
            arguments: own.arguments + ["--upstream-ca", real.certificate] + (isLowered ? ["--tls-min", "1.0"] : [])
        )
        let parameters = try await TLSPeer.connect(
            port: tap.port,
            trusting: own.certificate,
            ["--starttls", "--sni", "localhost", "--max", "1.0"]
        )
        try await tap.stop()
        try await server.stop()
        if isLowered {
            #expect(parameters.version == "TLSv1" && parameters.mechanisms == true, "\(parameters)")
            #expect(server.parameters.last?.version == "TLSv1")
        } else {
            #expect(parameters.error?.contains("failure") == true, "\(parameters)")
            let fault = try tap.records().first { $0.kind == "error" }
            #expect(fault?.message?.contains("--tls-min 1.0") == true, "\(fault?.message ?? "")")
        }
    }

    @Test(.enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody or slixmpp is missing"))
    func `--certificate presents the server's own certificate, and a different one is refused`() async throws {
        let real = try await TestCertificate()
        let scene = try await InterceptScene(
            certificate: real,
            arguments: ["--certificate", real.certificate, "--key", real.key]
        )
        let client = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--ca", real.certificate]
        )
        #expect(try await client.finish().contains { $0.event == "ready" })
        try await scene.stop()

        let other = try await TestCertificate()
        let wrong = try await InterceptScene(arguments: ["--certificate", other.certificate, "--key", other.key])
        let refused = try await TLSPeer.connect(
            port: wrong.tap.port,
            trusting: other.certificate,
            ["--starttls", "--sni", "localhost"]
        )
        #expect(refused.error?.contains("failure") == true, "\(refused)")
        try await wrong.stop()
        let fault = try wrong.tap.records().first { $0.code == "certificate-differs" }
        #expect(fault?.message?.contains("the server's certificate differs from the one given to xmpptap") == true)
    }
}
