import TapTestKit
import Testing

/// Tests of slixmpp, profanity and go-sendxmpp through the proxy to Prosody and ejabberd, over STARTTLS and direct TLS,
/// with TLS 1.2 and 1.3. The clients trust only the exported authority.
@Suite(
    .timeLimit(.minutes(5)),
    .serialized,
    .enabled(
        if: TestProgram.areInstalled(.prosody, .ejabberd, .slixmpp, .profanity, .goSendxmpp, .openssl),
        "servers or clients are missing"
    )
) struct InterceptClientsTests {
    private typealias Scene = ClientsScene

    /// The messages. None contains a character that XML escapes.
    private static let toNurse = "Go ask his name 🌹"
    private static let toJuliet = "But, soft! what light"
    private static let reply = "Wherefore art thou"
    private static let more = "It is the east"

    /// A server, its TLS version, the treatment of channel binding with which all three clients can log in without
    /// options, and the expected mechanisms.
    struct Setting: Sendable, CustomTestStringConvertible {
        let kind: ClientsScene.Kind
        let version: String
        let binding: ClientsScene.Binding
        /// The mechanisms that slixmpp, profanity and go-sendxmpp use, in this order.
        let mechanisms: [String]

        var testDescription: String { "\(kind), TLS \(version)" }
    }

    /// profanity does not use a -PLUS mechanism with tls-unique, and go-sendxmpp sends the password or its digest
    /// inside TLS.
    private static let settings = [
        Setting(
            kind: .prosody,
            version: "1.2",
            binding: .accounts,
            mechanisms: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN"]
        ),
        Setting(
            kind: .prosody,
            version: "1.3",
            binding: .keep,
            mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-256", "PLAIN"]
        ),
        Setting(
            kind: .ejabberd,
            version: "1.2",
            binding: .accounts,
            mechanisms: ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-512", "PLAIN"]
        ),
        // If it were offered a -PLUS mechanism, slixmpp would use tls-unique even with TLS 1.3, which does not define
        // it.
        Setting(
            kind: .ejabberd,
            version: "1.3",
            binding: .strip,
            mechanisms: ["SCRAM-SHA-512", "SCRAM-SHA-512", "DIGEST-MD5"]
        ),
    ]

    // MARK: Complete sessions

    @Test(arguments: settings)
    func `three clients talk through the proxy, and the log has the decrypted stanzas`(setting: Setting) async throws {
        let scene = try await Scene(setting.kind, version: setting.version)
        for way in Scene.Way.allCases {
            let tap = try await scene.tap(way, setting.binding)
            do {
                try await talk(scene, tap, way)
            } catch {
                Issue.record("\(setting.testDescription), \(way): \(error)\n\(Tap.read(tap.text).suffix(8000))")
            }
            try await tap.stop()
            try check(tap, way, setting)
        }
        try await scene.stop()
    }

    /// Lets the clients log in and exchange messages. Sessions 1 and 5 are go-sendxmpp's, 2 and 3 slixmpp's, and 4
    /// profanity's.
    private func talk(_ scene: ClientsScene, _ tap: Tap, _ way: ClientsScene.Way) async throws {
        let nurse = try scene.goSendxmpp(listeningAs: Scene.nurse, tap, way)
        try await tap.wait(for: "\"session-ready\"", in: tap.json)
        let juliet = try scene.client(
            .slixmpp,
            .juliet,
            tap,
            way,
            .init(ping: true, send: [(Scene.nurse, Self.toNurse)], reply: Self.reply, receive: 2),
            ["--resume", "--avatar", "102400"]
        )
        try await juliet.event("ready")
        try await nurse.line(holding: Self.toNurse)
        let romeo = try scene.client(.profanity, .romeo, tap, way, .init(send: [(.juliet, Self.toJuliet)], receive: 1))
        #expect(try await romeo.finish().contains { $0.event == "received" && $0.body == Self.reply })
        try await scene.goSendxmpp(Scene.nurse, tap, way, send: Self.more, to: .juliet).finish()
        let heard = try await juliet.finish()
        #expect(heard.filter { $0.event == "received" }.compactMap(\.body) == [Self.toJuliet, Self.more])
        for event in ["pong", "avatar", "resumed"] { #expect(heard.contains { $0.event == event }, "no \(event)") }
        try await nurse.stop()
    }

    private func check(_ tap: Tap, _ way: ClientsScene.Way, _ setting: Setting) throws {
        let records = try tap.records()
        records.checkEveryNumberIsThere()
        let isDirect = way == .direct
        for session: UInt64 in 1...5 {
            let mine = records.filter { $0.session == session }
            let name = "\(setting.testDescription), \(way), session \(session)"
            mine.checkNoByteIsMissing()
            let opened = mine.filter { $0.code == "tls-opened" }.compactMap(\.message)
            try #require(opened.count == 2, "\(name): \(opened)")
            #expect(opened.allSatisfy { $0.hasPrefix("TLS \(setting.version) with the ") }, "\(name): \(opened)")
            #expect(opened[0].contains(" with the server: ") && opened[0].contains("SNI localhost"), "\(name)")
            #expect(opened[1].contains("issued by CN=xmpptap CA for localhost"), "\(name): \(opened[1])")
            #expect(mine.contains { $0.code == "session-ready" }, "\(name)")
            #expect(!mine.contains { $0.code == "unexpected-restart" }, "\(name)")
            #expect(mine.contains { $0.name == "starttls" && $0.kind == "element" } == !isDirect, "\(name)")
            // The login is part of the stream inside TLS.
            let auth = try #require(mine.first { $0.name == "auth" && $0.origin == nil }, "\(name)")
            #expect(auth.epoch == (isDirect ? 1 : 2), "\(name)")
            let wanted = setting.mechanisms[session == 4 ? 1 : session == 1 || session == 5 ? 2 : 0]
            let quotes = "'\""
            let got = auth.xml?.split { quotes.contains($0) }.map(String.init) ?? []
            #expect(got.contains(wanted), "\(name): \(auth.xml ?? "")")
            #expect(mine.contains { $0.name == "success" }, "\(name)")
        }
        let ready = records.filter { $0.session == 3 && $0.code == "session-ready" }.compactMap(\.message)
        #expect(ready.first?.hasSuffix(": resumed session 2") == true, "\(ready)")
        // The resumed session has the JID of the session that it continues.
        let jids = (2...3).map { session in
            Set(records.filter { $0.session == session && $0.kind == "stanza" }.compactMap(\.jid))
        }
        #expect(jids[0].count == 1 && jids[0] == jids[1], "\(jids)")
        #expect(records.allSatisfy { $0.session != 3 || $0.kind != "stanza" || $0.jid != nil })
        // All these logins succeed, so the log says nothing about channel binding, except that the gs2 flag y is a risk
        // until the first such login has succeeded.
        let forecasts = records.filter { $0.code == "channel-binding" }
        #expect(forecasts.count <= (setting.binding == .strip ? 1 : 0), "\(forecasts.map(\.message))")
        #expect(forecasts.allSatisfy { $0.level == "info" && $0.message?.contains("risk") == true })
        let avatars = records.filter { $0.session == 3 && ($0.length ?? 0) > 130_000 }
        #expect(Set(avatars.compactMap(\.direction)) == ["send", "recv"], "\(avatars.map(\.summary))")
        let said: [(body: String, from: UInt64, to: UInt64)] = [
            (Self.toNurse, 3, 1), (Self.toJuliet, 4, 3), (Self.reply, 3, 4), (Self.more, 5, 3),
        ]
        for (body, from, to) in said {
            for (session, direction) in [(from, "send"), (to, "recv")] {
                let holds = records.contains {
                    $0.session == session && $0.direction == direction && $0.name == "message"
                        && $0.xml?.contains(body) == true
                }
                #expect(holds, "\(setting.testDescription), \(way): \(body) \(direction) in \(session)")
            }
        }
        for path in [tap.json, tap.text, tap.capture, tap.story] {
            let log = Tap.read(path)
            for account in Scene.accounts { #expect(!log.contains(account.password)) }
        }
    }

    // MARK: Logins that fail without options

    /// slixmpp uses a -PLUS mechanism that the server offers; the other clients do not.
    @Test(arguments: settings.filter { $0.binding != .keep })
    func `slixmpp's bound login fails as predicted if channel binding is kept`(
        setting: Setting
    ) async throws {
        let scene = try await Scene(setting.kind, version: setting.version)
        for way in Scene.Way.allCases {
            let tap = try await scene.tap(way, .keep)
            let juliet = try scene.client(.slixmpp, .juliet, tap, way)
            await #expect(throws: KitError.self) { try await juliet.finish() }
            try await scene.client(.profanity, .romeo, tap, way).finish()
            try await scene.goSendxmpp(Scene.nurse, tap, way, send: Self.more, to: .romeo).finish()
            try await tap.stop()
            let records = try tap.records()
            let mine = records.filter { $0.session == 1 }
            let forecast = try #require(mine.last { $0.code == "channel-binding" })
            #expect(forecast.level == "warn")
            #expect(
                forecast.message?.contains(
                    "the server must refuse this login: tls-unique differs between the two TLS connections"
                ) == true
            )
            let failure = try #require(mine.first { $0.code == "sasl-failure" })
            #expect(forecast.sequence < failure.sequence)
            let diagnosis = try #require(mine.first { $0.code == "login-failed" })
            let details = try #require(diagnosis.details)
            #expect(details.cause == "channel-binding-mismatch" && details.step == "sasl", "\(details)")
            #expect(details.side == "xmpptap" && details.proxyIsCause == true, "\(details)")
            #expect(details.rule == "RFC 5802 §6, RFC 5056 §2")
            #expect(diagnosis.message?.contains("give xmpptap the account's password (--accounts)") == true)
            #expect(records.filter { $0.code == "session-ready" }.compactMap(\.session) == [2, 3])
        }
        try await scene.stop()
    }

    @Test func `xmpptap logs in without channel binding if a TLS 1.3 server names no binding type`() async throws {
        let scene = try await Scene(.ejabberd, version: "1.3")
        let tap = try await scene.tap(.direct, .accounts)
        try await scene.client(.profanity, .romeo, tap, .direct).finish()
        try await scene.goSendxmpp(Scene.nurse, tap, .direct, send: Self.more, to: .romeo).finish()
        try await tap.stop()
        try await scene.stop()
        let own = try tap.records().filter { $0.code == "own-login" }.compactMap(\.message)
        #expect(own.count == 2 && own.allSatisfy { $0.contains("by SCRAM-SHA-512") && !$0.contains("-PLUS") }, "\(own)")
    }
}
