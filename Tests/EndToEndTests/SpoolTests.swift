import Foundation
import TapTestKit
import Testing

/// Rows on their way to ClickHouse: the programs that send and store them end at bad moments.
@Suite(
    .timeLimit(.minutes(3)),
    .enabled(
        if: TestProgram.areInstalled(.clickHouse, .prosody, .slixmpp) && XMPPTapBinary.path != nil,
        "clickhouse-server, Prosody, slixmpp or xmpptap is missing"
    )
)
struct SpoolTests {
    /// Juliet sends some messages to Romeo.
    private static func talk(_ bodies: [String], to port: UInt16) async throws {
        let juliet = try ScriptedClient(
            .slixmpp,
            as: .juliet,
            port: port,
            .init(ping: true, send: bodies.map { (.romeo, $0) })
        )
        try await juliet.finish()
    }

    /// Waits until a search of the store finds each body once, and nothing else.
    private static func find(_ bodies: [String], in store: String) async throws {
        var found: [String] = []
        for _ in 0..<600 {
            let search = try await XMPPTapBinary.run(["search", "", store, "--json"])
            found = search.output.split(separator: "\n").compactMap { line in
                let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
                return object?["body"] as? String
            }
            if found.count >= bodies.count { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(found.sorted() == bodies.sorted())
    }

    private static func files(_ folder: String) -> [String] {
        (FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? []).filter { $0.hasSuffix(".rows") }
    }

    @Test(
        "Neither a killed server nor a killed proxy loses stanzas, and a server that is away at the start gets them later"
    )
    func survivesKills() async throws {
        let clickHouse = try await ClickHouse()
        let prosody = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let spool = folder.path(of: "spool")
        let store = "clickhouse://127.0.0.1:\(clickHouse.port)/audit"
        let flags = ["--store", "\(store),filter=message", "--store-spool", spool]
        let created = try await XMPPTapBinary.run(["store", "init", store])
        #expect(created.ending == .exited(0), "\(created)")

        let metricsPort = try FreePort.next()
        let first = try await Tap(upstream: prosody.port, arguments: flags + ["--metrics", "127.0.0.1:\(metricsPort)"])
        try await Self.talk(["one", "two"], to: first.port)
        try await Self.find(["one", "two"], in: store)
        try await clickHouse.kill()
        try await Self.talk(["three", "four"], to: first.port)
        let waiting = try await first.binary.process.line(of: .standardError) { $0.contains("its rows wait in") }
        #expect(waiting.contains(store) && waiting.contains("connection refused") && waiting.contains(spool))
        // The rows reach the spool when the messages reach the log.
        try await first.wait(for: "four", in: first.json)
        while Self.files(spool).isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        try await Task.sleep(for: .milliseconds(500))
        let connection = try RawConnection(port: metricsPort)
        try await connection.write(
            "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:\(metricsPort)\r\nConnection: close\r\n\r\n"
        )
        let figures = String(decoding: try await connection.read { _ in false }.bytes, as: UTF8.self)
        func figure(_ name: String) -> Double? {
            let line = figures.split(separator: "\n").first { $0.hasPrefix("xmpptap_store_\(name){") }
            return line?.split(separator: " ").last.flatMap { Double($0.filter { $0 != "\r" }) }
        }
        #expect(figure("sent_total") == 2 && figure("batches_total") ?? 0 > 0, "\(figures)")
        #expect(figure("spool_bytes") ?? 0 > 0 && figure("lag_seconds") ?? 0 > 0 && figure("retries_total") ?? 0 > 0)
        #expect(figure("dropped_total") == 0 && figure("rejected_total") == 0)
        first.binary.process.signal(SIGKILL)
        _ = try await first.binary.process.ending()
        #expect(!Self.files(spool).isEmpty)

        let second = try await Tap(upstream: prosody.port, arguments: flags)
        _ = try await second.binary.process.line(of: .standardError) { $0.contains("its rows wait in") }
        try await Self.talk(["five"], to: second.port)
        try await clickHouse.start()
        try await Self.find(["one", "two", "three", "four", "five"], in: store)
        try await clickHouse.kill()
        try await Self.talk(["six"], to: second.port)
        try await second.wait(for: "six", in: second.json)
        try await second.stop()
        #expect(second.binary.process.text(of: .standardError).contains(" for \(store) left in \(spool)"))
        let away = try await XMPPTapBinary.run(["store", "info", store])
        #expect(away.ending == .exited(3) && away.error.contains("connection refused"))

        try await clickHouse.start()
        let sent = try await XMPPTapBinary.run(["store", "send", spool, store])
        #expect(sent.ending == .exited(0) && sent.output.hasSuffix(" sent\n"), "\(sent)")
        try await Self.find(["one", "two", "three", "four", "five", "six"], in: store)
        #expect(Self.files(spool).isEmpty)
        try await prosody.stop()
    }

    @Test("A row that the server refuses is put aside alone, with the reason")
    func putsRowAside() async throws {
        let clickHouse = try await ClickHouse()
        let folder = try TemporaryFolder()
        let spool = folder.path(of: "spool")
        let store = "clickhouse://127.0.0.1:\(clickHouse.port)/audit"
        let created = try await XMPPTapBinary.run(["store", "init", store])
        #expect(created.ending == .exited(0), "\(created)")
        // A column that an operator has added makes the server refuse a row.
        let altered = try await clickHouse.run(
            "ALTER TABLE audit.stanza ADD COLUMN strict UInt8 MATERIALIZED throwIf(assumeNotNull(body) = 'poison')"
        )
        #expect(altered.isEmpty)
        let lines = (1...500).map { number in
            let body = number == 250 ? "poison" : "text \(number)"
            let xml = "<message id='m\(number)'><body>\(body)</body></message>"
            return #"{"sequence":\#(number),"time":"2026-11-01T00:00:00Z","monotonic":\#(number),"level":"info","#
                + #""kind":"stanza","session":1,"jid":"juliet@example.org/x","direction":"send","name":"message","#
                + #""to":"romeo@example.org","id":"m\#(number)","type":"chat","length":\#(xml.utf8.count),"xml":"\#(xml)"}"#
        }
        let header =
            #"{"xtap":1,"tool":"xmpptap 1","time":"2026-11-01T00:00:00Z","level":"verbose","complete":true,"#
            + #""redaction":"secrets","run":"0123456789abcdef"}"#
        let capture = try folder.write(([header] + lines).map { "\($0)\n" }.joined(), to: "talk.xtap")
        let converted = try await XMPPTapBinary.run(["convert", capture, store, "--store-spool", spool])
        #expect(converted.ending == .exited(0), "\(converted)")
        #expect(converted.error.contains("does not accept 1 row, now in \(spool)/"), "\(converted)")
        let info = try await XMPPTapBinary.run(["store", "info", store])
        #expect(info.output.hasPrefix("499 stanzas, 499 messages with a body\n"), "\(info)")
        let names = FileManager.default.enumerator(atPath: spool)?.allObjects as? [String] ?? []
        let rejected = try #require(names.first { $0.hasSuffix(".jsonl") })
        #expect(folder.read("spool/\(rejected)").contains(#""body":"poison""#))
    }
}
