import Foundation
import TapTestKit
import Testing

/// An audit store made of a recorded conversation, and search in it and in the recording.
@Suite(
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
)
struct StoreTests {
    private static func search(_ arguments: String...) async throws -> (ending: ToolProcess.Ending, lines: [String]) {
        let found = try await XMPPTapBinary.run(["search"] + arguments)
        return (
            found.ending,
            found.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        )
    }

    @Test("Each message of a conversation is found once, in the store as in the recording, and can be exported")
    func findsMessages() async throws {
        let folder = try TemporaryFolder()
        let live = folder.path(of: "live.sqlite")
        let capture = try await RecordedTalk.record(
            "Where is the contract?",
            "The contract is in the drawer, \"under\" the élan.",
            arguments: ["--store", "\(live),filter=message", "--store-xml"],
            into: folder
        )
        let store = folder.path(of: "audit.sqlite")
        for _ in 0..<2 {
            let converted = try await XMPPTapBinary.run(["convert", capture, store, "--store-xml"])
            #expect(converted.ending == .exited(0), "\(converted.error)")
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: store)
        #expect(attributes[.posixPermissions] as? Int == 0o600)

        let found = try await Self.search("contract", "--store", store)
        #expect(found.ending == .exited(0))
        try Documentation.check(.search, found.lines)
        #expect(try await Self.search("contract", capture).lines == found.lines)
        #expect(try await Self.search("contract", store).lines == found.lines)
        #expect(try await Self.search("contract", "--store", live).lines == found.lines)
        #expect(!FileManager.default.fileExists(atPath: "\(live)-wal"))
        for (arguments, count) in [
            (["ELAN drawer"], 1), (["contr*", "--with", Account.romeo.jid], 2), (["contract", "--account", "x@y"], 0),
            (["", "--between", Account.romeo.jid, Account.juliet.jid], 2), (["contract", "--since", "-1h"], 2),
            (["contract", "--until", "2020-01-01T00:00:00Z"], 0), (["contract", "--room", Account.romeo.jid], 0),
        ] {
            let stored = try await XMPPTapBinary.run(["search"] + arguments + ["--store", store, "--json"])
            let read = try await XMPPTapBinary.run(
                ["search", arguments[0], capture] + arguments.dropFirst() + ["--json"]
            )
            #expect(stored.output.split(separator: "\n").count == count, "\(arguments): \(stored)")
            #expect(stored.output == read.output && stored.ending == read.ending, "\(arguments): \(read)")
            #expect(stored.ending == .exited(count == 0 ? 1 : 0))
        }
        let table = try await Self.search("elan", "--store", store, "--csv").lines
        #expect(table.first == "time,from,to,type,id,body,copies")
        #expect(table.last?.hasSuffix(#","The contract is in the drawer, ""under"" the élan.",2"#) == true, "\(table)")

        let figures = try await XMPPTapBinary.run(["stats", store])
        let lines = figures.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        try Documentation.check(.stats, lines)
        for form in [
            [], ["--json"], ["--csv", "--top", "1"], ["--format", "html"], ["--account", Account.romeo.jid],
        ] {
            let results = [
                try await XMPPTapBinary.run(["stats", store] + form),
                try await XMPPTapBinary.run(["stats", capture] + form),
            ]
            #expect(results[0].ending == .exited(0) && !results[0].output.isEmpty, "\(results[0])")
            #expect(results[0].output == results[1].output && results[1].ending == .exited(0), "\(form): \(results[1])")
        }
        let none = try await XMPPTapBinary.run(["stats", store, "--account", "x@y"])
        #expect(none.ending == .exited(1) && none.error.contains("no stanza found"))

        let checked = try await XMPPTapBinary.run(["store", "check", store])
        #expect(checked.output == "no damage found\n")
        let info = try await XMPPTapBinary.run(["store", "info", store])
        #expect(info.output.contains("2 accounts") && info.output.contains("1 run,"), "\(info.output)")
    }

    @Test("Bad stores and arguments are refused in one line with the way out")
    func refusesMistakes() async throws {
        let folder = try TemporaryFolder()
        let text = try folder.write(String(repeating: "no database\n", count: 100), to: "text.sqlite")
        for (arguments, status, part) in [
            (["search", "x", "--store", text], 3, "not a store of xmpptap"),
            (["search", "x", "--store", folder.path(of: "none")], 3, "no such file"),
            (["search", "x"], 2, "name a store or recordings"), (["search", "x", text, "--store", text], 2, "exclude"),
            (["search", "...", text], 2, "contains no word"),
            (["search", "x", text, "--between", "a@b"], 2, "two addresses"),
            (["search", "x", text, "--account", "@"], 2, "@:"), (["convert", text, text], 3, "text.sqlite"),
            (["store", "info", text], 3, "not a store"), (["search", "x", text, "--csv", "--json"], 2, "exclude"),
            (["stats"], 2, "name a store or recordings"),
            (["stats", text, "--json", "--format", "html"], 2, "exclude"),
            (["stats", text], 3, "not a store of xmpptap"), (["stats", text, "--top", "0"], 2, "from 1 to"),
        ] {
            let refused = try await XMPPTapBinary.run(arguments)
            #expect(refused.ending == .exited(Int32(status)), "\(arguments): \(refused)")
            #expect(
                refused.error.contains(part) && refused.error.split(separator: "\n").count == 1,
                "\(arguments): \(refused.error)"
            )
        }
    }
}
