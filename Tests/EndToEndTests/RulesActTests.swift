import Foundation
import TapTestKit
import Testing

/// Tests of rule files, some from `filters/`, that change the traffic, observed by real clients and a real server with
/// TLS on both legs.
@Suite(
    .serialized,
    .timeLimit(.minutes(3)),
    .enabled(if: XMPPTapBinary.path != nil, "xmpptap not built"),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody, slixmpp or openssl is missing")
)
struct RulesActTests {
    private static let filters = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../filters").standardized.path

    private static func filter(_ name: String) -> String { "\(filters)/\(name).pfw" }

    private struct Step: Decodable {
        var event: String
        var bodies: [String]?
        var states: [String]?
        var presences: [String]?
        var senders: [String]?
        var condition: String?
        var text: String?
        var type: String?
        var seconds: Double?
    }

    /// Lets both clients play an act, and returns what they observed.
    private static func act(_ act: String, _ scene: InterceptScene) async throws -> [String: Step] {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../TapTestKit/Clients/slixmpp_rules.py").standardized.path
        let process = try ToolProcess(
            "/usr/bin/python3",
            [
                script, "--juliet", Account.juliet.jid, Account.juliet.password, "--romeo", Account.romeo.jid,
                Account.romeo.password, "--port", "\(scene.tap.port)", "--direct", "\(scene.server.port)", "--act", act,
            ],
            environment: ["PYTHONUTF8": "1"]
        )
        guard try await process.ending(within: .seconds(150)) == .exited(0) else {
            throw process.failure("\(process.text(of: .standardOutput))\n\(Tap.read(scene.tap.story).suffix(3000))")
        }
        let lines = process.lines(of: .standardOutput)
        let steps = lines.compactMap { try? JSONDecoder().decode(Step.self, from: Data($0.utf8)) }
        return Dictionary(steps.map { ($0.event, $0) }, uniquingKeysWith: { $1 })
    }

    @Test func `Rules drop, bounce, edit, hide and answer stanzas, and refuse a login`() async throws {
        let folder = try TemporaryFolder()
        let hidden = Tap.read(Self.filter("appear-offline")).replacing("paris@example.com", with: Account.romeo.jid)
        let rewrite = """
            %PATTERN number (regex): \\d{3}-\\d{4}
            ::send

            KIND: message
            TRANSPORT: tls
            INSPECT: body#~~=\\d{3}-\\d{4}
            SET=body# ~number=[number]

            """
        let files = [
            Self.filter("refuse-first-login"), Self.filter("no-typing"), Self.filter("block-roster-changes"),
            try folder.write(hidden, to: "hidden.pfw"), try folder.write(rewrite, to: "rewrite.pfw"),
            Self.filter("echo-bot"), Self.filter("stream-error"),
        ]
        let scene = try await InterceptScene(
            arguments: files.flatMap { ["--rules", $0] } + ["--limit", "item=4KiB"]
        )
        #expect(scene.tap.binary.process.lines(of: .standardError).contains { $0.hasSuffix("rules: 11 from 7 files") })

        let refused = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: scene.tap.port,
            startTLS: true,
            options: ["--timeout", "20"]
        )
        await #expect(throws: KitError.self) { try await refused.finish() }
        #expect(refused.events.contains { $0.reason == "authentication: temporary-auth-failure" }, "\(refused.events)")

        let seen = try await Self.act("rules", scene)
        #expect(seen["typed"]?.bodies == ["the first"] && seen["typed"]?.states == [])
        let bounce = seen["bounced"]
        #expect(bounce?.condition == "not-allowed" && bounce?.text == "The roster cannot be changed here")
        #expect(bounce?.type == "cancel" && seen["changed"] == nil)
        #expect(seen["rewritten"]?.bodies == ["call [number] now"])
        #expect(seen["large"] != nil)
        #expect(seen["hidden"]?.presences == [])
        #expect(seen["echoed"]?.senders == ["echo@example.net"])
        #expect(seen["broken"]?.condition == "system-shutdown")
        try await scene.stop()

        let records = try scene.tap.records()
        func acted(_ action: String) -> Int { records.count { $0.action == action } }
        #expect(acted("dropped") >= 2 && acted("edited") >= 2)
        #expect(records.contains { $0.code == "rules-not-evaluated" && $0.level == "warn" })
        records.checkEveryNumberIsThere()
        // The log reports that the rule dropped the stanza.
        #expect(Tap.read(scene.tap.text).contains("dropped \(Self.filter("no-typing")):5:"))
    }

    @Test func `Rules slow a link down and reset a connection at the tenth message`() async throws {
        let scene = try await InterceptScene(
            arguments: ["--rules", Self.filter("slow-link"), "--rules", Self.filter("reset-after-messages")]
        )
        let seen = try await Self.act("faults", scene)
        // 8 kB at 2 kB/s; the first piece is sent without a delay.
        #expect(seen["slow"]?.seconds ?? 0 > 3.5)
        #expect(seen["reset"]?.bodies == (2...9).map { "number \($0)" })
        try await scene.stop()
    }

    private static let faults = """
        ::send

        KIND: message
        TRANSPORT: tcp
        SESSION: 1
        FROM IP: 127.0.0.1
        FROM SUBNET: 127.0.0.0/8
        SET=body#=of the first

        INSPECT: body#=cut
        CUT AFTER=20

        INSPECT: body#=close
        HALF CLOSE.

        INSPECT: body#=stall
        STALL=1500ms

        ::recv

        ELEMENT: {urn:xmpp:sm:3}a
        NTH: 1
        LOSE ACK.

        INSPECT: body#=delay
        DELAY=500ms

        KIND: message
        PHASE: closing
        SET=body#=in closing

        ::handshake

        ELEMENT: {urn:xmpp:sasl:2}authenticate
        SASL FAILURE=temporary-auth-failure

        """

    @Test func `Rules simulate faults: a cut, a half-close, a stall, a lost acknowledgement, a refused login`()
        async throws
    {
        let folder = try TemporaryFolder()
        let server = try await ProsodyServer()
        let rules = try folder.write(Self.faults, to: "faults.pfw")
        let tap = try await Tap(upstream: server.port, arguments: ["--rules", rules])
        let romeo = try await PlainClient(.romeo, tap, resource: "orchard")
        func enter(_ resource: String) async throws -> PlainClient {
            try await PlainClient(.juliet, tap, resource: resource)
        }
        func say(_ body: String, _ client: PlainClient, to resource: String = "orchard", of account: Account = .romeo)
            async throws
        {
            try await client.socket.write(
                "<message to='\(account.jid)/\(resource)' type='chat'><body>\(body)</body></message>"
            )
        }

        let cut = try await enter("cut")
        try await say("before", cut)
        try await say("cut", cut)
        await #expect(throws: KitError.self, "no reset") { try await cut.socket.read() }

        let closed = try await enter("closed")
        try await say("close", closed)
        // Prosody closes its direction after the proxy has closed the other one.
        try await closed.socket.read()

        let stalled = try await enter("stalled")
        let began = ContinuousClock.now
        try await say("stall", stalled)
        try await say("behind it", stalled)
        // The other direction is not delayed.
        try await say("whatever", romeo, to: "stalled", of: .juliet)
        try await stalled.socket.read(until: "<body>of the first</body>")
        try await romeo.socket.read(until: "<body>behind it</body>")
        #expect(ContinuousClock.now - began >= .milliseconds(1500))

        let lost = try await enter("lost")
        try await lost.socket.write("<enable xmlns='urn:xmpp:sm:3'/>")
        try await lost.socket.read(until: "<enabled")
        try await lost.socket.write("<r xmlns='urn:xmpp:sm:3'/><presence/><r xmlns='urn:xmpp:sm:3'/>")
        try await lost.socket.read(until: "h='1'")
        #expect(!lost.socket.received.contains("h='0'"))

        let refused = try PlainSocket(port: tap.port)
        try await refused.openStream()
        try await refused.write(
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>AGEAYg==</initial-response>"
                + "</authenticate>"
        )
        try await refused.read(until: "</failure>")
        #expect(refused.received.contains("<failure xmlns='urn:xmpp:sasl:2'><temporary-auth-failure"))

        // A stanza that waits behind a delayed one is evaluated only after the client has closed its stream.
        let leaving = try await enter("leaving")
        let other = try await enter("other")
        try await say("delay", other, to: "leaving", of: .juliet)
        try await say("late", other, to: "leaving", of: .juliet)
        try await other.socket.write("<iq type='get' id='behind'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await other.socket.read(until: "'behind'")
        try await leaving.leave()
        #expect(leaving.socket.received.contains("<body>in closing</body>"))

        for client in [romeo, stalled, lost, other] { try await client.leave() }
        try await tap.stop()
        let heard = romeo.socket.received.matches(of: #/<body>([^<]*)</#).map { String($0.1) }
        #expect(heard == ["before", "stall", "behind it"])
        let actions = Set(try tap.records().compactMap(\.action))
        #expect(actions.isSuperset(of: ["cut", "dropped", "edited", "answered"]), "\(actions)")
        try await server.stop()
    }
}
