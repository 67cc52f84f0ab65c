import TapTestKit
import Testing

/// Tests that stream management (XEP-0198) works with real servers and a real client, although xmpptap injects and
/// drops stanzas.
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
    func `no message is lost or duplicated while xmpptap pings and connections are lost`(kind: ClientsScene.Kind)
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

    /// Drops every seventh message in each direction.
    private static let rules = """
        ::both
        KIND: message
        EVERY: 7
        DROP.

        """

    @Test(arguments: ClientsScene.Kind.allCases)
    func `if rules drop messages and others are injected, the rest arrives exactly once`(kind: ClientsScene.Kind)
        async throws
    {
        let folder = try TemporaryFolder()
        let control = folder.path(of: "control.sock")
        let scene = try await TalkScene(
            kind,
            arguments: ["--ping", "300ms", "--control", control, "--rules", try folder.write(Self.rules, to: "7.pfw")]
        )
        let talk = try scene.talk(["--messages", "\(Self.messages)", "--pause", "0.03", "--rest", "3"])
        let injected = try await scene.inject(during: talk, control: control)
        let (events, ending) = try await scene.finish(talk)
        try #require(ending == .exited(0), "\(events.last?.reason ?? "")")
        let counted = try #require(events.last { $0.event == "counted" })
        let (juliet, romeo, sent) = (counted.juliet ?? [], counted.romeo ?? [], counted.sent ?? 0)

        let records = try scene.tap.records()
        let dropped = Set(records.filter { $0.action == "dropped" && $0.name == "message" }.compactMap(\.id))
        let droppedOfJuliet = dropped.filter { $0.hasPrefix("juliet-") }.count
        #expect(droppedOfJuliet > 20 && dropped.count - droppedOfJuliet > 20)
        #expect(romeo.filter { $0.hasPrefix("juliet-") } == Self.ids("juliet").filter { !dropped.contains($0) })
        #expect(juliet.filter { $0.hasPrefix("romeo-") } == Self.ids("romeo").filter { !dropped.contains($0) })
        #expect(injected.juliet.count > 5 && injected.romeo.count > 5 && injected.answered > 5)
        for (ids, heard) in [(injected.juliet, juliet), (injected.romeo, romeo)] {
            for id in ids { #expect(heard.count { $0 == id } == 1, "\(id)") }
        }
        for code in ["wrong-acknowledgement", "stream-error"] {
            #expect(!records.contains { $0.code == code }, "\(code)")
        }
        // The server acknowledged all of juliet's stanzas to her. Its own count contains the injected stanzas and
        // leaves out the dropped ones, such as her answers to pings. That count is in Prosody's log, or in ejabberd's
        // last acknowledgement.
        let last = records.last { $0.name == "a" && $0.direction == "recv" }
        let handled = try #require(
            kind == .prosody ? Self.last("acking for ", in: scene.clients.log) : Self.last("h='", in: last?.xml ?? "")
        )
        let kept = Set(records.filter { $0.action == "dropped" && $0.direction == "send" }.compactMap(\.id))
        let least = sent - kept.count + injected.romeo.count + injected.answered
        #expect((least...least + injected.unanswered).contains(handled), "\(handled), not \(least)")
        if kind == .prosody { #expect(Self.last("#queue = ", in: scene.clients.log) == 0) }
        try Self.checkClientsCount(try #require(counted.handled), records)
    }

    /// Checks that juliet's own count covers the stanzas that the proxy sent to her, and that the acknowledgement
    /// forwarded to the server covers the stanzas that the server sent. The two counts differ, but each is right for
    /// its peer.
    private static func checkClientsCount(_ handled: Int, _ records: [LogRecord]) throws {
        let start = try #require(records.firstIndex { $0.name == "enabled" })
        let stream = records[start...].filter { $0.kind == "stanza" || $0.kind == "element" }
        func stanzas(_ records: some Sequence<LogRecord>) -> [LogRecord] {
            // A stanza that the server sends again has the same id.
            var ids: Set<String> = []
            return records.filter { $0.kind == "stanza" && ($0.id.map { ids.insert($0).inserted } ?? true) }
        }
        let toClient = stanzas(stream.filter { $0.direction == "recv" })
        let injected = toClient.filter { $0.origin == "tap" }
        let pings = Set(injected.filter { $0.name == "iq" }.compactMap(\.id))
        let answered = Set(stream.filter { $0.direction == "send" && $0.action == "dropped" }.compactMap(\.id))
        let relayed = toClient.count { $0.origin != "tap" && $0.action != "dropped" }
        // A ping that was lost with a connection is not sent again, so juliet does not count it.
        let least = relayed + injected.count - pings.subtracting(answered).count
        #expect((least...relayed + injected.count).contains(handled), "\(handled), \(least)")
        #expect(injected.count > 20 && pings.intersection(answered).count > 5)

        let last = try #require(stream.lastIndex { $0.name == "a" && $0.direction == "send" })
        let request = try #require(stream[..<last].lastIndex { $0.name == "r" && $0.direction == "recv" })
        func sent(_ end: Int) -> Int {
            stanzas(stream[..<end].filter { $0.direction == "recv" && $0.origin != "tap" }).count
        }
        func count(_ xml: String?) -> Int? { xml?.firstMatch(of: #/ h=["'](\d+)/#).flatMap { Int($0.1) } }
        let told = try #require(count(stream[last].xml))
        // The acknowledgement is unchanged if the number of romeo's dropped stanzas equals the number of stanzas
        // injected for juliet.
        let passedOn = try #require(count(stream[last].edited ?? stream[last].xml))
        #expect((sent(request)...sent(last)).contains(passedOn), "\(passedOn), not \(sent(request)) to \(sent(last))")
        #expect(told <= handled)
        #expect(stream.contains { $0.name == "a" && $0.direction == "send" && $0.edited != nil })
    }

    /// Returns the number after the last occurrence of a text.
    private static func last(_ words: String, in log: String) -> Int? {
        log.split(separator: words).last.flatMap { Int($0.prefix { $0.isNumber }) }
    }

    @Test(
        .enabled(if: !BuildMode.isReleaseProgram, "a release build always translates"),
        arguments: ClientsScene.Kind.allCases
    )
    func `a session fails without translation of stream management counts`(kind: ClientsScene.Kind) async throws {
        let scene = try await TalkScene(kind, arguments: ["--ping", "200ms"], translatesCounts: false)
        let (events, ending) = try await scene.finish(try scene.talk(["--messages", "\(Self.messages)"]))
        #expect(ending == .exited(1))
        #expect(events.last?.reason?.contains("stream error") == true, "\(events.last?.reason ?? "")")
    }

    @Test(arguments: ClientsScene.Kind.allCases)
    func `a client that omits a stanza from its count is reported, with the stanza`(kind: ClientsScene.Kind)
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
        // The stanza's number in the server's count, which begins when stream management is enabled.
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
    func `after a restart of xmpptap, a session is resumed only if nothing was injected`(isPinged: Bool)
        async throws
    {
        let scene = try await TalkScene(.prosody, arguments: isPinged ? ["--ping", "200ms"] : [])
        let clients = try scene.talk(["--wait"])
        _ = try await clients.line(of: .standardOutput) { $0.contains(#""lost""#) }
        let second = try await scene.restart()
        let (events, ending) = try await scene.finish(clients)
        #expect(ending == .exited(0), "\(events.last?.reason ?? "")")
        #expect(events.last?.event == (isPinged ? "refused" : "resumed"))
        try await second.stop()
        let resumed = try second.records().filter { $0.details?.step == "resume" }
        #expect(resumed.map { $0.details?.outcome } == [isPinged ? "failed" : "ok"])
    }

    private static func ids(_ user: String) -> [String] { (1...messages).map { "\(user)-\($0)" } }
}
