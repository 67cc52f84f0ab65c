import TapTestKit
import Testing

/// Tests of slixmpp through SOCKS5 and HTTP CONNECT to Prosody, with TLS intercepted.
@Suite(
    .timeLimit(.minutes(3)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody, slixmpp or openssl is missing")
) struct ForwardProxyTests {
    private typealias Scene = ClientsScene

    @Test(
        "slixmpp talks through SOCKS5 and HTTP CONNECT, and the certificate is for its domain, not for the target",
        arguments: ClientsScene.Way.allCases
    )
    func talk(_ way: ClientsScene.Way) async throws {
        let scene = try await Scene(.prosody, version: "1.3")
        let tap = try await scene.tap(way, .keep, flag: "--socks")
        let target = "127.0.0.1:\(scene.port(way))"
        for flag in ["--socks", "--connect"] {
            let client = try scene.client(
                .slixmpp,
                .juliet,
                tap,
                way,
                .init(ping: true, send: [(.juliet, "But, soft!")], receive: 1),
                [flag, "\(tap.port)", "--port", "\(scene.port(way))"]
            )
            let events = try await client.finish()
            #expect(events.filter { $0.event == "received" }.compactMap(\.body) == ["But, soft!"])
        }
        try await tap.stop()
        try await scene.stop()
        let records = try tap.records()
        records.checkEveryNumberIsThere()
        for (session, request) in [(UInt64(1), "socks5"), (2, "connect")] {
            let mine = records.filter { $0.session == session }
            mine.checkNoByteIsMissing()
            let began = try #require(mine.first)
            #expect(began.code == "session-began" && began.details?.request == request)
            #expect(began.details?.target == target)
            let name = request == "socks5" ? "SOCKS5" : "HTTP CONNECT"
            #expect(began.message?.hasSuffix(" connected by \(name), to be relayed to \(target)") == true)
            let opened = mine.filter { $0.code == "tls-opened" }.compactMap(\.message)
            #expect(opened.count == 2 && opened[0].contains("SNI localhost"), "\(opened)")
            #expect(opened.last?.contains("issued by CN=xmpptap CA for localhost") == true, "\(opened)")
            #expect(mine.contains { $0.code == "session-ready" })
            #expect(mine.contains { $0.name == "message" && $0.xml?.contains("But, soft!") == true })
        }
    }

    @Test func `An unlisted target is refused with the way out, and relayed without decoding with --relay-others`()
        async throws
    {
        let (server, other) = (try RawListener(), try RawListener())
        for relays in [false, true] {
            let tap = try await Tap(
                listen: ["127.0.0.1:0=127.0.0.1:\(server.port)"],
                flag: "--socks",
                arguments: relays ? ["--relay-others"] : []
            )
            let client = try RawConnection(port: tap.port)
            try await client.write("CONNECT 127.0.0.1:\(other.port) HTTP/1.1\r\n\r\n")
            if relays {
                try await client.read(through: "\r\n\r\n")
                let leg = try await other.accept()
                try await client.write("<stream:stream>")
                try await leg.read(through: "<stream:stream>")
                client.close()
                leg.close()
            } else {
                try await client.read(through: "it does not belong to the listed servers\n")
                client.close()
            }
            try await tap.stop()
            let records = try tap.records()
            if relays {
                let codes = Set(records.compactMap(\.code))
                #expect(codes.isSuperset(of: ["session-began", "not-decoded", "session-ended"]), "\(codes)")
                #expect(!records.contains { $0.isItem || $0.code == "login-failed" })
            } else {
                let record = try #require(records.first { $0.code == "target-not-listed" })
                #expect(record.level == "warn")
                let target =
                    "HTTP CONNECT to 127.0.0.1:\(other.port): it does not belong to the listed servers; list its "
                #expect(record.message?.contains(target) == true, "\(record.message ?? "")")
            }
        }
    }
}
