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
        #expect(table.first == "time,from,to,kind,type,id,body,payload,condition,round_trip,copies")
        #expect(
            table.last?.hasSuffix(#","The contract is in the drawer, ""under"" the élan.",,,,2"#) == true,
            "\(table)"
        )
        try await comparesForms(store, capture)

        let read = folder.path(of: "read.sqlite")
        let copied = try await XMPPTapBinary.run([
            "read", capture, "--log", "off", "--store", read, "--store-bodies", "hash",
        ])
        #expect(copied.ending == .exited(0), "\(copied.error)")
        // The digest by which sha256sum finds the first message.
        let digest = "1cd6025585f7fad479003dc916b50deed155e5f5543ebb97f80911aae84acbae"
        #expect(try await Self.search(digest, read).lines.count == 2)
        #expect(try await Self.search("sha256", read).lines.count == found.lines.count)

        let exported = folder.path(of: "rows.csv")
        let export = try await XMPPTapBinary.run(["store", "export", store, exported])
        #expect(export.ending == .exited(0), "\(export.error)")
        let rows = folder.read("rows.csv").split(separator: "\r\n")
        #expect(rows.first?.hasPrefix("time,seen,tap,run,session,sequence,account,") == true)
        #expect(rows.count(where: { $0.contains("Where is the contract?") }) == 2)

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
        let kept = try await XMPPTapBinary.run(["store", "retain", store, "--keep", "365d"])
        #expect(kept.output.hasPrefix("0 stanzas deleted"), "\(kept)")
        let emptied = try await XMPPTapBinary.run(["store", "retain", store, "--keep", "100ms"])
        #expect(emptied.ending == .exited(0) && emptied.output.contains(" deleted, 0 left"), "\(emptied)")
        #expect(try await Self.search("contract", store).ending == .exited(1))
    }

    /// Compares what a search prints of the store and of the recording.
    private func comparesForms(_ store: String, _ capture: String) async throws {
        for arguments in [
            ["", "--kind", "iq", "--kind", "presence", "--json"], ["", "--kind", "message", "--csv"],
            ["where", "-C", "1", "--json"], ["drawer", "--context", "1"], ["", "--kind", "iq", "-C", "2", "--csv"],
        ] {
            let stored = try await XMPPTapBinary.run(["search"] + arguments + ["--store", store])
            let read = try await XMPPTapBinary.run(["search", arguments[0], capture] + arguments.dropFirst())
            #expect(stored.ending == .exited(0), "\(arguments): \(stored)")
            #expect(stored.output == read.output && stored.error == read.error, "\(arguments)")
        }
        let around = try await Self.search("drawer", store, "--context", "1").lines
        #expect(around.count == 3 && around[1].hasPrefix("  2") && around[2].hasPrefix("* 2"), "\(around)")
        let coloured = try await Self.search("drawer", store, "-C", "1", "--color", "always").lines
        #expect(coloured.last?.contains("\u{1B}[33m") == true)
        let matches = try await Self.search("where", store, "-C1", "--json").lines
        #expect(matches.map { $0.contains("\"match\":true") } == [true, false])
        let requests = try await Self.search("", store, "--kind", "iq", "--account", Account.juliet.jid).lines
        #expect(requests.contains { $0.contains(": iq get {jabber:iq:roster}query") }, "\(requests)")
        #expect(requests.contains { $0.contains(": iq result {") && $0.contains("(after ") }, "\(requests)")

        let page = try await XMPPTapBinary.run(["search", "contract", store, "--format", "html"])
        let same = try await XMPPTapBinary.run(["search", "contract", capture, "--format", "html"])
        func articles(_ page: String) -> Substring {
            page[(page.range(of: "<section")?.lowerBound ?? page.startIndex)...]
        }
        // The digests of the store are those of the recording.
        #expect(articles(page.output) == articles(same.output))
        #expect(page.output.components(separatedBy: "; SHA-256 of the XML <code>").count == 5)
        let line = try #require(page.output.split(separator: "\n").first { $0.contains("<article") })
        #expect(line.contains("<bdi>romeo@localhost</bdi>") && line.contains("Z\">20"), "\(line)")
        for (name, value) in [
            ("Words", "contract"), ("Messages", "2"), ("Copies", "4"),
            ("SHA-256", "of the XML as recorded; see 'xmpptap help audit'"),
        ] {
            #expect(page.output.contains("<dt>\(name)</dt><dd dir=\"auto\">\(value)</dd>"), "\(name)")
        }
    }

    @Test("The avatar that a client publishes and requests is stored once, listed and written to a file")
    func keepsAvatars() async throws {
        let folder = try TemporaryFolder()
        let live = folder.path(of: "live.sqlite")
        let capture = try await RecordedTalk.record(
            "Hello",
            options: ["--avatar", "40000"],
            arguments: ["--store", live, "--store-avatars"],
            host: "modules_enabled = { \"pep\" }",
            into: folder
        )
        let store = folder.path(of: "audit.sqlite")
        let converted = try await XMPPTapBinary.run(["convert", capture, store, "--store-avatars"])
        #expect(converted.ending == .exited(0), "\(converted.error)")
        let picture = Data((0..<40_000).map { UInt8(truncatingIfNeeded: $0 * 31 + $0 / 251) })
        // The hash that sha1sum prints.
        let hash = "b162c70db8fa38434dd7724ba3c3ffdfb6033827"
        for path in [live, store] {
            let listed = try await XMPPTapBinary.run(["store", "avatars", path])
            let lines = listed.output.split(separator: "\n")
            #expect(
                lines.count == 2
                    && lines.last?.hasPrefix("\(Account.juliet.jid)  application/octet-stream  40000  \(hash)  ")
                        == true,
                "\(listed)"
            )
            let info = try await XMPPTapBinary.run(["store", "info", path])
            #expect(info.output.contains("\n1 picture, 0 vCards\n"), "\(info)")
            let files = folder.path(of: "avatars")
            let written = try await XMPPTapBinary.run(["store", "avatars", path, "--write", files, "--json"])
            #expect(written.ending == .exited(0) && written.output.contains(#""hash":"\#(hash)""#), "\(written)")
            #expect(FileManager.default.contents(atPath: "\(files)/\(hash).bin") == picture)
        }
        let without = folder.path(of: "without.sqlite")
        let read = try await XMPPTapBinary.run(["read", capture, "--log", "off", "--store", without])
        #expect(read.ending == .exited(0), "\(read)")
        let none = try await XMPPTapBinary.run(["store", "avatars", without])
        #expect(none.output.isEmpty && none.error.contains("--store-avatars keeps them"), "\(none)")
    }

    @Test(
        "Without the right to write, a store is read and stays as it is; without the right to read, it is named",
        .enabled(if: geteuid() == 0 && TestProgram.setpriv.isInstalled, "needs root and setpriv")
    )
    func respectsPermissions() async throws {
        let folder = try TemporaryFolder()
        let record =
            #"{"sequence":1,"time":"2026-11-22T10:00:00Z","monotonic":1,"level":"info","kind":"stanza","session":1,"#
            + #""jid":"juliet@localhost/x","direction":"recv","name":"message","from":"romeo@localhost","length":34,"#
            + #""xml":"<message><body>hi</body></message>"}"#
        let capture = try folder.write("\(RecordedLog.header)\(record)\n", to: "talk.xtap")
        let store = folder.path(of: "audit.sqlite")
        let created = try await XMPPTapBinary.run(["convert", capture, store])
        #expect(created.ending == .exited(0), "\(created)")
        func permit(_ mode: Int, _ path: String) throws {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        try permit(0o755, folder.path)
        try permit(0o644, capture)
        try permit(0o644, store)
        let binary = try #require(XMPPTapBinary.path)
        func run(_ arguments: [String]) async throws -> (ending: ToolProcess.Ending, output: String, error: String) {
            let process = try ToolProcess(
                TestProgram.setpriv.rawValue,
                ["--reuid", "65534", "--regid", "65534", "--clear-groups", binary] + arguments
            )
            return (
                try await process.ending(), process.text(of: .standardOutput), process.text(of: .standardError)
            )
        }
        let before = FileManager.default.contents(atPath: store)
        for arguments in [
            ["search", "hi", store], ["store", "check", store], ["store", "info", store], ["stats", store],
        ] {
            let read = try await run(arguments)
            #expect(read.ending == .exited(0) && !read.output.isEmpty && read.error.isEmpty, "\(arguments): \(read)")
        }
        let changes = [
            ["convert", capture, store], ["store", "retain", store, "--keep", "1d"], ["store", "vacuum", store],
            ["read", capture, "--log", "off", "--store", store],
        ]
        for arguments in changes + [["convert", capture, folder.path(of: "new.sqlite")]] {
            let refused = try await run(arguments)
            #expect(refused.ending == .exited(3), "\(arguments): \(refused)")
            #expect(refused.error.split(separator: "\n").count == 1, "\(arguments): \(refused.error)")
            #expect(refused.error.contains("check its permissions") || refused.error.contains("cannot be opened"))
        }
        try permit(0o600, store)
        for arguments in changes + [["search", "hi", store], ["store", "check", store]] {
            let refused = try await run(arguments)
            #expect(refused.ending == .exited(3) && refused.error.contains("permissions"), "\(arguments): \(refused)")
            #expect(refused.error.split(separator: "\n").count == 1, "\(arguments): \(refused.error)")
        }
        #expect(FileManager.default.contents(atPath: store) == before)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["audit.sqlite", "talk.xtap"]
        )
    }

    @Test(
        "While a store cannot be written, sessions continue; with --store-required they are closed and refused",
        arguments: [false, true]
    )
    func survivesLock(isRequired: Bool) async throws {
        let folder = try TemporaryFolder()
        let store = folder.path(of: "audit.sqlite")
        let proxy = try XMPPTapBinary(
            ["proxy", "--listen", "127.0.0.1:0", "--log", "off", "--control", "none", "--store", store]
                + (isRequired ? ["--store-required"] : [])
        )
        let line = try await proxy.process.line(of: .standardError, within: .seconds(60)) {
            $0.contains("juliet@localhost") && $0.contains("password")
        }
        let account = Account("juliet", password: line.split(separator: " ").last.map(String.init) ?? "")
        let port = try await proxy.port()
        func say(_ text: String, _ client: PlainClient) async throws {
            try await client.socket.write(
                "<message to='juliet@localhost' type='chat' id='\(text)'><body>\(text)</body></message>"
                    + "<iq type='get' id='after-\(text)' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>"
            )
            try await client.socket.read(until: "after-\(text)")
        }
        let client = try await PlainClient(account, port: port)
        try await say("before", client)
        // Another program is writing, and does not end.
        let program = """
            import sqlite3, sys, time
            connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
            connection.execute('BEGIN IMMEDIATE')
            print('locked', flush=True)
            time.sleep(600)
            """
        let other = try ToolProcess("/usr/bin/python3", ["-c", program, store])
        _ = try await other.line(of: .standardOutput) { $0 == "locked" }
        try await say("while", client)
        let notice =
            isRequired ? "--store-required: the store cannot be written; sessions are closed" : "is writing to it"
        _ = try await proxy.process.line(of: .standardError, within: .seconds(60)) { $0.contains(notice) }
        if isRequired {
            try await client.socket.read()
            #expect(client.socket.received.contains("<resource-constraint"))
            let refused = try PlainSocket(port: port)
            await #expect(throws: KitError.self) { try await refused.openStream(to: "localhost") }
            #expect(refused.received.contains("<resource-constraint"))
        } else {
            try await say("still", client)
        }
        other.signal(SIGKILL)
        _ = try await other.ending()
        let end = isRequired ? "sessions are accepted" : "written again"
        _ = try await proxy.process.line(of: .standardError, within: .seconds(60)) { $0.contains(end) }
        try await say("after", isRequired ? PlainClient(account, port: port) : client)
        #expect(try await proxy.process.terminate(within: .seconds(60)) == .exited(0))
        for text in ["before", "while", "after"] + (isRequired ? [] : ["still"]) {
            let found = try await XMPPTapBinary.run(["search", text, store])
            #expect(found.output.contains(text), "\(text): \(found)")
        }
        let info = try await XMPPTapBinary.run(["store", "info", store])
        #expect(!info.output.contains("missing"), "\(info)")
    }

    @Test("vCards are listed, and written to files once")
    func keepsVCards() async throws {
        let folder = try TemporaryFolder()
        let card = "<vCard xmlns='vcard-temp'><FN>Romeo Montague</FN></vCard>"
        let records = (1...2).map { number in
            #"{"sequence":\#(number),"time":"2026-11-22T10:00:0\#(number)Z","monotonic":1,"level":"info","kind":"stanza","#
                + #""session":1,"jid":"juliet@localhost/x","direction":"recv","name":"iq","type":"result","id":"v\#(number)","#
                + #""from":"romeo@localhost","length":90,"payload":"{vcard-temp}vCard","xml":"<iq type='result' id='v\#(number)' from='romeo@localhost'>"#
                + card + #"</iq>"}"# + "\n"
        }
        let capture = try folder.write(RecordedLog.header + records.joined(), to: "talk.xtap")
        let store = folder.path(of: "audit.sqlite")
        let created = try await XMPPTapBinary.run(["convert", capture, store, "--store-avatars"])
        #expect(created.ending == .exited(0), "\(created)")
        let listed = try await XMPPTapBinary.run(["store", "vcards", store])
        #expect(listed.output.contains("\nromeo@localhost  "), "\(listed)")
        let json = try await XMPPTapBinary.run(["store", "vcards", store, "--json"])
        #expect(
            json.output.contains(#""first":"2026-11-22T10:00:01"#)
                && json.output.contains(#""last":"2026-11-22T10:00:02"#)
        )
        #expect(json.output.split(separator: "\n").count == 1 && json.output.contains("Romeo Montague"), "\(json)")
        let files = folder.path(of: "cards")
        for expected in ["1 vCard written to \(files)", "0 vCards written to \(files), 1 vCard there already"] {
            let written = try await XMPPTapBinary.run(["store", "vcards", store, "--write", files])
            #expect(written.error == "xmpptap: \(expected)\n", "\(written)")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: files)
        #expect(names.count == 1 && names[0].hasSuffix(".xml"))
        #expect(FileManager.default.contents(atPath: "\(files)/\(names[0])") == Data(card.utf8))
    }

    @Test("A proxy deletes rows that are older than the limit when it starts")
    func keepsLimit() async throws {
        let folder = try TemporaryFolder()
        let record =
            #"{"sequence":1,"time":"2026-01-22T10:00:00Z","monotonic":1,"level":"info","kind":"stanza","session":1,"#
            + #""jid":"juliet@localhost/x","direction":"recv","name":"message","from":"romeo@localhost","length":34,"#
            + #""xml":"<message><body>hi</body></message>"}"#
        let capture = try folder.write("\(RecordedLog.header)\(record)\n", to: "talk.xtap")
        let store = folder.path(of: "audit.sqlite")
        let created = try await XMPPTapBinary.run(["convert", capture, store])
        #expect(created.ending == .exited(0), "\(created)")
        let proxy = try XMPPTapBinary([
            "proxy", "--listen", "127.0.0.1:0", "--log", "off", "--control", "none", "--store", store, "--store-keep",
            "1d", "--store-size", "100MB",
        ])
        _ = try await proxy.port()
        for _ in 0..<600 {
            let info = try await XMPPTapBinary.run(["store", "info", store])
            if info.output.hasPrefix("0 stanzas") { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(try await proxy.process.terminate(within: .seconds(60)) == .exited(0))
        let found = try await XMPPTapBinary.run(["search", "hi", store])
        #expect(found.ending == .exited(1), "\(found)")
    }

    @Test("Bad stores and arguments are refused in one line with the way out")
    func refusesMistakes() async throws {
        let folder = try TemporaryFolder()
        let text = try folder.write(String(repeating: "no database\n", count: 100), to: "text.sqlite")
        for (arguments, status, part) in [
            (["search", "x", "--store", text], 3, "not a store of xmpptap; name another file"),
            (["search", "x", "--store", folder.path(of: "none")], 3, "no such file"),
            (["search", "x"], 2, "name a store or recordings"), (["search", "x", text, "--store", text], 2, "exclude"),
            (["search", "...", text], 2, "contains no word"),
            (["search", "x", text, "--between", "a@b"], 2, "two addresses"),
            (["search", "x", text, "--account", "@"], 2, "@:"), (["convert", text, text], 3, "text.sqlite"),
            (["convert", folder.path(of: "none.xtap"), folder.path(of: "new.sqlite")], 3, "none.xtap"),
            (["store", "info", folder.path], 3, "it is a folder; name a file in it"),
            (["store", "check", "clickhouse://localhost/audit"], 3, "this command is for files"),
            (["stats", "http://me:secret@localhost:8123/audit"], 2, "clickhouse://USER@HOST:8123/DATABASE"),
            (["store", "info", text], 3, "not a store"), (["store", "retain", text], 2, "say what to keep"),
            (["store", "vacuum", text], 3, "not a store"), (["store", "export", text, text], 2, "must end in .csv"),
            (["read", text, "--store-xml"], 2, "needs --store"),
            (["read", text, "--store-avatars"], 2, "needs --store"), (["store", "avatars", text], 3, "not a store"),
            (["sniff", "-i", "lo", "--store", "-"], 2, "needs a file"),
            (["search", "x", text, "--csv", "--json"], 2, "exclude"),
            (["search", "x", text, "--json", "--format", "html"], 2, "exclude"),
            (["search", "x", text, "--kind", "iq"], 2, "only messages have a body"),
            (["search", "x", text, "--kind", "mail"], 2, "write message, presence or iq"),
            (["search", "x", text, "--context", "-1"], 2, "whole number from 0"),
            (["stats"], 2, "name a store or recordings"),
            (["stats", text, "--csv", "--format", "json"], 2, "exclude"),
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
        #expect(!FileManager.default.fileExists(atPath: folder.path(of: "new.sqlite")))
    }
}
