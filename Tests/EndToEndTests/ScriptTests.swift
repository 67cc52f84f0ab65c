import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap convert` to scansion scripts, and of `xmpptap replay` with scripts, with Prosody.
@Suite(
    .timeLimit(.minutes(3)),
    .serialized,
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "a server or a client is missing")
) struct ScriptTests {
    /// Writes an accounts file for juliet and romeo, and returns its path.
    private static func accounts(in folder: TemporaryFolder) throws -> String {
        let lines = try [Account.juliet, .romeo].map { account in
            chmod(try folder.write("\(account.password)\n", to: account.user), 0o600)
            return "\(account.jid) \(account.user)\n"
        }
        return try folder.write(lines.joined(), to: "accounts")
    }

    @Test func `a recorded conversation becomes a script that passes on another server`() async throws {
        let folder = try TemporaryFolder()
        let body = "What light ${Juliet's JID} & 'window' — ünïcode"
        let capture = try await RecordedTalk.record(body, into: folder)

        let script = folder.path(of: "talk.scs")
        let converted = try await XMPPTapBinary.run(["convert", capture, script])
        #expect(converted.ending == .exited(0), "\(converted.error)")
        let text = Tap.read(script)
        #expect(text.contains("[Client] Juliet") && text.contains("{scansion:any}"))
        #expect(text.contains("from=\"${Romeo's full JID}\""))
        // An existing script is not overwritten, because it may have been edited.
        let again = try await XMPPTapBinary.run(["convert", capture, script])
        #expect(again.ending == .exited(2) && again.error.contains("talk.scs exists already"))
        #expect(try await XMPPTapBinary.run(["convert", capture, script, "--overwrite"]).ending == .exited(0))
        #expect(Tap.read(script) == text)

        let fresh = try await ProsodyServer()
        let server = ["--to", "127.0.0.1:\(fresh.port)", "--accounts", try Self.accounts(in: folder)]
        let replayed = try await XMPPTapBinary.run(["replay", script] + server)
        #expect(replayed.ending == .exited(0), "\(replayed.output)\(replayed.error)")
        #expect(replayed.output.contains("1 of 1 scripts passed"))
        try await fresh.stop()
    }

    @Test func `a script that pages through a message archive passes on a server in use`() async throws {
        let folder = try TemporaryFolder()
        let capture = try await RecordedTalk.record(
            "But, soft!",
            "what light",
            options: ["--archive"],
            into: folder
        )
        let script = folder.path(of: "archive.scs")
        let converted = try await XMPPTapBinary.run(["convert", capture, script])
        #expect(converted.ending == .exited(0))
        try Documentation.check(.scriptExport, converted.error.split(separator: "\n").map(String.init))
        #expect(Tap.read(script).contains("## stored-data: optional") && Tap.read(script).contains("<result"))

        let fresh = try await ProsodyServer()
        let arguments = ["--to", "127.0.0.1:\(fresh.port)", "--accounts", try Self.accounts(in: folder)]
        for run in 1...3 {
            let replayed = try await XMPPTapBinary.run(["replay", script] + arguments)
            #expect(replayed.ending == .exited(0), "run \(run): \(replayed.output)\(replayed.error)")
            // The messages of this run are in the archive during the next run.
            if run == 1 {
                let absent = [(to: Account.juliet, body: "Lady, by yonder blessed moon I vow")]
                try await ScriptedClient(.slixmpp, as: .romeo, port: fresh.port, .init(ping: true, send: absent))
                    .finish()
            }
        }
        try await fresh.stop()
    }

    @Test func `all scripts of a folder are run, and those that fail are named`() async throws {
        let folder = try TemporaryFolder()
        let server = try await ProsodyServer()
        let header = "[Client] Romeo\n\tjid: \(Account.romeo.jid)\n-----\nRomeo connects\n"
        _ = try folder.write("# Good\n\(header)Romeo receives: nothing\n", to: "a.scs")
        _ = try folder.write("# Bad\n## slow\n\(header)Romeo receives:\n\t<presence/>\n", to: "b.scs")
        let arguments = [
            "replay", folder.path, "--to", "127.0.0.1:\(server.port)", "--accounts", try Self.accounts(in: folder),
            "--wait", "1s",
        ]
        let all = try await XMPPTapBinary.run(arguments)
        #expect(all.ending == .exited(1))
        #expect(all.output.contains("1 of 2 scripts passed"))
        #expect(all.output.contains("b.scs:7: Romeo receives: nothing received within 1.0 s"))
        let (junit, page) = (folder.path(of: "r.xml"), folder.path(of: "r.html"))
        let reported = try await XMPPTapBinary.run(arguments + ["--json", "--junit", junit, "--report", page])
        #expect(reported.ending == .exited(1))
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(reported.output.utf8)) as? [String: Any]
        )
        let scripts = try #require(report["scripts"] as? [[String: Any]])
        let found = scripts.map { $0["divergences"] as? [[String: Any]] ?? [] }
        #expect(report["failed"] as? Bool == true && found.map(\.count) == [0, 1])
        let step = try #require(found.last?.first)
        #expect(step["file"] as? String == folder.path(of: "b.scs") && step["line"] as? Int == 7)
        #expect(step["code"] as? String == "missing")
        #expect((step["recorded"] as? [String: Any])?["xml"] as? String == "<presence/>")
        #expect(Tap.read(junit).contains("tests=\"2\" failures=\"1\""))
        #expect(Tap.read(junit).contains("b.scs:7: Romeo receives: nothing received within 1.0 s"))
        #expect(Tap.read(page).contains("2 scripts, 3 steps passed: 1 missing"))
        let quick = try await XMPPTapBinary.run(arguments + ["--skip-tags", "slow"])
        #expect(quick.ending == .exited(0) && quick.output.contains("1 of 1 scripts passed"))
        _ = try folder.write("# Worse\n\(header)Romeo sends:\n\t<presence>\n", to: "c.scs")
        let mistaken = try await XMPPTapBinary.run(arguments)
        #expect(mistaken.ending == .exited(3) && mistaken.output.contains("1 of 3 scripts passed"), "\(mistaken)")
        #expect(mistaken.output.contains("c.scs:7:12: the stanza has no end"), "\(mistaken)")
        try await server.stop()
        try FileManager.default.removeItem(atPath: folder.path(of: "c.scs"))
        let unreachable = try await XMPPTapBinary.run(arguments)
        #expect(unreachable.ending == .exited(4))
        #expect(unreachable.output.contains("b.scs:6: Romeo connects: "))
    }

    @Test func `convert refuses an unknown format and an empty recording`() async throws {
        let folder = try TemporaryFolder()
        let log = try folder.write("nothing\n", to: "a.log")
        let unknown = try await XMPPTapBinary.run(["convert", log, folder.path(of: "a.doc")])
        #expect(unknown.ending == .exited(2) && unknown.error.contains("unknown format"))
        let empty = try await XMPPTapBinary.run(["convert", log, folder.path(of: "a.scs")])
        #expect(empty.ending == .exited(3))
    }
}
