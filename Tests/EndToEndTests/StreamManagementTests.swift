import TapTestKit
import Testing

/// What stream management (XEP-0198) promises holds with real servers and a real client, whatever xmpptap does in between.
@Suite(
    .timeLimit(.minutes(5)),
    .serialized,
    .enabled(
        if: TestProgram.areInstalled(.prosody, .ejabberd, .slixmpp, .openssl),
        "Prosody, ejabberd or slixmpp is missing"
    )
) struct StreamManagementTests {
    private static let messages = 200

    @Test(arguments: ClientsScene.Kind.allCases)
    func `no message is lost or doubled while xmpptap pings and the connection is lost`(kind: ClientsScene.Kind)
        async throws
    {
        let scene = try await TalkScene(kind, arguments: ["--ping", "200ms"])
        let (events, ending) = try await scene.finish(try scene.talk(["--messages", "\(Self.messages)"]))
        try #require(ending == .exited(0), "\(events.last?.reason ?? "")")
        let counted = try #require(events.last { $0.event == "counted" })
        #expect(counted.romeo == Self.ids("juliet"))
        #expect(counted.juliet == Self.ids("romeo"))
        let records = try scene.tap.records()
        #expect(records.contains { $0.action == "edited" && $0.name == "resume" })
        #expect(records.contains { $0.code == "session-ended" && $0.message?.contains("resumed as session") == true })
        for code in ["wrong-acknowledgement", "stream-error", "store-failed"] {
            #expect(!records.contains { $0.code == code }, "\(code)")
        }
    }

    @Test(.enabled(if: !BuildMode.isRelease, "a release build always translates"))
    func `without translation the server closes the stream`() async throws {
        let scene = try await TalkScene(.prosody, arguments: ["--ping", "200ms"], translatesCounts: false)
        let (events, ending) = try await scene.finish(try scene.talk(["--messages", "\(Self.messages)"]))
        #expect(ending == .exited(1))
        #expect(events.last?.reason?.contains("stream error") == true, "\(events.last?.reason ?? "")")
    }

    @Test(arguments: ClientsScene.Kind.allCases)
    func `a client that leaves a stanza out of its count is found, with the stanza`(kind: ClientsScene.Kind)
        async throws
    {
        let scene = try await TalkScene(kind)
        let (events, ending) = try await scene.finish(
            try scene.talk(["--messages", "40", "--cuts", "0", "--pause", "0.05", "--miscount", "romeo-20"])
        )
        try #require(ending == .exited(0), "\(events.last?.reason ?? "")")
        let records = try scene.tap.records()
        let findings = records.filter { $0.code == "wrong-acknowledgement" }
        let finding = try #require(findings.first)
        #expect(finding.message?.hasPrefix("the client acknowledged ") == true)
        #expect(finding.details?.fault == "too-low" && finding.details?.difference == 1)
        // Which stanza that is: those that the server has sent since it enabled stream management.
        let enabled = try #require(records.firstIndex { $0.name == "enabled" })
        let stanzas = records[enabled...].filter { $0.kind == "stanza" && $0.direction == "recv" }
        let number = Int64(
            try #require(
                stanzas.firstIndex { $0.id == "romeo-20" }.map { stanzas.distance(from: stanzas.startIndex, to: $0) }
            ) + 1
        )
        let (last, first) = (finding.details?.lastCorrect ?? -1, finding.details?.firstWrong ?? -1)
        #expect(last < number && number <= first, "\(number) is not between \(last) and \(first)")
        #expect(findings.count == 1)
    }

    @Test(arguments: [true, false])
    func `after a restart of xmpptap a session is resumed where nothing was injected, and only then`(isPinged: Bool)
        async throws
    {
        let scene = try await TalkScene(.prosody, arguments: isPinged ? ["--ping", "200ms"] : [])
        let clients = try scene.talk(["--wait"])
        _ = try await clients.line(of: .standardOutput) { $0.contains(#""lost""#) }
        let second = try await scene.restart()
        let (events, ending) = try await scene.finish(clients)
        #expect(ending == .exited(0), "\(events.last?.reason ?? "")")
        #expect(events.last?.event == (isPinged ? "refused" : "resumed"))
        let resumed = try second.records().filter { $0.details?.step == "resume" }
        #expect(resumed.map { $0.details?.outcome } == [isPinged ? "failed" : "ok"])
        try await second.stop()
    }

    private static func ids(_ user: String) -> [String] { (1...messages).map { "\(user)-\($0)" } }
}
