import Foundation
import TapTestKit
import Testing

/// Many clients behind two proxies, each with a store: every message is found once, with all its copies.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(
        if: TestProgram.areInstalled(.prosody, .slixmpp) && XMPPTapBinary.path != nil,
        "Prosody, slixmpp or xmpptap is missing"
    )
)
struct CrowdTests {
    /// A message that a client has sent, and the number of stanzas with it that passed the proxies.
    private struct Sent: Decodable {
        var id: String
        var body: String
        var type: String
        var copies: Int
    }

    private struct Line: Decodable {
        var event: String
        var messages: [Sent]?
    }

    /// A message that a search has found.
    private struct Found: Decodable {
        struct Copy: Decodable, Hashable {
            var account: String
            var run: String
            var session: Int
            var sequence: Int
        }

        var id: String?
        var body: String
        var type: String
        var copies: [Copy]
    }

    private static func search(_ store: String, _ arguments: [String] = []) async throws -> [Found] {
        let found = try await XMPPTapBinary.run(["search", "", store, "--json"] + arguments)
        guard found.ending == .exited(0) else { throw KitError("search of \(store): \(found)") }
        return try found.output.split(separator: "\n").map { try JSONDecoder().decode(Found.self, from: Data($0.utf8)) }
    }

    @Test(
        "Of 20 clients with carbons, archives and a room behind two proxies, each message is found once with its copies"
    )
    func findsEachMessageOnce() async throws {
        let folder = try TemporaryFolder()
        let accounts = (0..<10).map { Account("member\($0)", password: "R0m30myr0m30") }
        let room = "hall@rooms.localhost"
        let server = try await ProsodyServer(
            accounts: accounts,
            host: """
                Component "rooms.localhost" "muc"
                    modules_enabled = { "muc_mam" }
                    muc_log_by_default = true
                    muc_room_locking = false
                    max_history_messages = 0
                """
        )
        let stores = (1...2).map { folder.path(of: "tap\($0).sqlite") }
        var taps: [Tap] = []
        for (number, store) in stores.enumerated() {
            let arguments = ["--store", store, "--store-tap", "tap \(number)"]
            taps.append(try await Tap(upstream: server.port, arguments: arguments))
        }
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "TapTestKit/Clients/slixmpp_crowd.py").path
        let crowd = try ToolProcess(
            "/usr/bin/python3",
            [
                script, "--domain", "localhost", "--accounts", "\(accounts.count)", "--password", accounts[0].password,
                "--room", room, "--messages", "12", "--seed", "7", "--ports",
            ] + taps.map { "\($0.port)" },
            environment: ["TMPDIR": folder.path, "PYTHONUTF8": "1"]
        )
        guard try await crowd.ending(within: .seconds(150)) == .exited(0) else {
            throw crowd.failure("failed; the server's log ends with\n\(server.log.suffix(2000))")
        }
        for tap in taps { try await tap.stop() }
        try await server.stop()
        let lines = crowd.lines(of: .standardOutput).compactMap {
            try? JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
        let sent = try #require(lines.last { $0.event == "counted" }?.messages)
        #expect(sent.count == 240)

        // Each store has the stanzas of its proxy, one made of both recordings those of both.
        let merged = folder.path(of: "merged.sqlite")
        let converted = try await XMPPTapBinary.run(["convert"] + taps.map(\.capture) + [merged])
        #expect(converted.ending == .exited(0), "\(converted)")
        var parts: [String: Set<Found.Copy>] = [:]
        for (number, store) in stores.enumerated() {
            let export = folder.path(of: "\(number).jsonl")
            let exported = try await XMPPTapBinary.run(["store", "export", store, export])
            #expect(exported.ending == .exited(0), "\(exported)")
            let rows = Tap.read(export).split(separator: "\n")
            #expect(rows.count > 240 && rows.allSatisfy { $0.contains("\"tap\":\"tap \(number)\"") })
            let found = try await Self.search(store)
            #expect(Set(found.map(\.id)).count == found.count, "a message is found twice")
            for message in found { parts[message.id ?? "", default: []].formUnion(message.copies) }
        }
        let found = try await Self.search(merged)
        let byID = Dictionary(grouping: found) { $0.id ?? "" }
        #expect(found.count == sent.count && Set(byID.keys) == Set(sent.map(\.id)))
        for message in sent {
            let found = byID[message.id] ?? []
            #expect(found.count == 1, "\(message.id) is found \(found.count) times")
            guard let first = found.first else { continue }
            #expect(first.body == message.body && first.type == message.type)
            #expect(
                first.copies.count == message.copies && Set(first.copies).count == message.copies,
                "\(message.id): \(first.copies.count) copies instead of \(message.copies)"
            )
            #expect(parts[message.id] == Set(first.copies), "\(message.id): other copies in the proxies' stores")
        }
        // All members were in the room, and two of them requested its archive.
        let inRoom = try await Self.search(merged, ["--room", room])
        #expect(inRoom.count == sent.count { $0.type == "groupchat" })
        #expect(inRoom.allSatisfy { $0.copies.count == 1 + 20 + 2 })
        try await comparesServer(taps.map(\.capture), found, folder)
    }

    /// Compares what a store on a server finds, if the server is installed.
    private func comparesServer(_ captures: [String], _ expected: [Found], _ folder: TemporaryFolder) async throws {
        guard TestProgram.clickHouse.isInstalled else { return }
        let server = try await ClickHouse()
        let store = "clickhouse://127.0.0.1:\(server.port)/audit"
        let created = try await XMPPTapBinary.run(["store", "init", store])
        #expect(created.ending == .exited(0), "\(created)")
        for capture in captures {
            let converted = try await XMPPTapBinary.run(["convert", capture, store])
            #expect(converted.ending == .exited(0), "\(converted)")
        }
        let found = try await Self.search(store)
        #expect(found.map(\.id) == expected.map(\.id))
        #expect(found.map { Set($0.copies) } == expected.map { Set($0.copies) })
    }
}
