import Foundation
import TapTestKit
import Testing

/// Tests of capture files: their names, their hash chain, and their contents after the program is killed.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct CaptureFileTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func demo(_ arguments: String...) async throws -> (
        ending: ToolProcess.Ending, error: String
    ) {
        let run = try await XMPPTapBinary.run(["demo", "--log", "off"] + arguments)
        return (run.ending, run.error)
    }

    private func files(_ name: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path(of: name)).sorted()
    }

    @Test func `--capture writes the named file, appends only on request, and deletes old captures`() async throws {
        // A capture to a single file.
        let file = folder.path(of: "one.xtap")
        #expect(try await demo("--capture", file).ending == .exited(0))
        let again = try await demo("--capture", file)
        #expect(again.ending == .exited(3))
        #expect(again.error.contains("one.xtap") && again.error.contains("--append"))
        #expect(try await demo("--capture", file, "--append").ending == .exited(0))
        let table = try await XMPPTapBinary.run(["read", file, "--sessions", "--json"])
        #expect(table.output.split(separator: "\n").count == 2)
        try FileManager.default.removeItem(atPath: file)

        // A capture to a folder: numbered files; old captures are removed, but no other files.
        let day = 86_400.0
        let old = Date(timeIntervalSinceNow: -40 * day)
        for name in ["xmpptap-20200101T000000Z-1.xtap", "notes.xtap"] {
            try folder.write("", to: name)
            try FileManager.default.setAttributes([.modificationDate: old], ofItemAtPath: folder.path(of: name))
        }
        #expect(
            try await demo("--capture", folder.path, "--rotate-size", "4kB", "--keep-age", "30d").ending == .exited(0)
        )
        let numbered = try files().filter { $0.hasPrefix("xmpptap-") }
        #expect(numbered.count > 3)
        #expect(numbered.allSatisfy { $0.wholeMatch(of: /xmpptap-\d{8}T\d{6}Z-\d{4,}\.xtap/) != nil })
        #expect(!numbered.contains { $0.hasPrefix("xmpptap-2020") })
        #expect(try files().contains("notes.xtap"))
        let whole = try await XMPPTapBinary.run(["read", "--json"] + numbered.map { folder.path(of: $0) })
        #expect(whole.ending == .exited(0))
        #expect(whole.error.isEmpty, "no record is missing between the files")

        // Given a folder, the commands read all its captures except the empty file.
        for arguments in [["read", "--json"], ["explain"], ["diff"]] {
            let named = arguments[0] == "diff" ? [folder.path, folder.path] : [folder.path]
            let run = try await XMPPTapBinary.run(arguments + named)
            #expect(run.ending == .exited(0), "\(arguments): \(run.error)")
            if arguments == ["read", "--json"] { #expect(run.output == whole.output) }
        }
        let page = folder.path(of: "sub/page.html")
        try FileManager.default.createDirectory(atPath: folder.path(of: "sub"), withIntermediateDirectories: false)
        #expect(try await XMPPTapBinary.run(["convert", folder.path, page]).ending == .exited(0))
        #expect(numbered == numbered.sorted { $0.count == $1.count ? $0 < $1 : $0.count < $1.count })

        // A template creates a file for each session, named when the session binds its resource.
        let template = folder.path(of: "sessions-%s-%j.xtap")
        #expect(try await demo("--capture", template).ending == .exited(0))
        #expect(try await demo("--capture", template).ending == .exited(0))
        #expect(
            try files().filter { $0.hasPrefix("sessions") }
                == ["sessions-1-romeo@localhost%2Fdemo-2.xtap", "sessions-1-romeo@localhost%2Fdemo.xtap"]
        )
        // The program reports a file that it cannot create at startup, not at the first session.
        let nowhere = try await demo("--capture", folder.path(of: "nowhere/%j.xtap"))
        #expect(nowhere.ending == .exited(3) && nowhere.error.contains("nowhere/ does not exist"), "\(nowhere)")
    }

    @Test func `A proxy's last line is the command that explains its capture`() async throws {
        let nobody = try FreePort.next()
        for name in ["my first.xtap", "session-%s.xtap"] {
            let path = folder.path(of: name)
            let tap = try XMPPTapBinary(proxyTo: nobody, ["--log", "off", "--capture", path])
            let client = try RawConnection(port: try await tap.port())
            try await client.write(Conversations.plainLogin[0].text)
            _ = try await client.read(through: "</stream:stream>")
            #expect(try await tap.process.terminate() == .exited(0))
            let line = try #require(tap.process.lines(of: .standardError).last)
            let match = try #require(
                line.firstMatch(of: /^capture .*, (\d+) records: (xmpptap explain .*)$/),
                "\(line)"
            )
            #expect(match.1 != "0")
            let words = name.contains(" ") ? "'\(path)'" : folder.path(of: "session-*.xtap")
            #expect(match.2 == "xmpptap explain \(words)")
        }
    }

    @Test func `A deleted capture is created again with a warning, and --log-required closes sessions`() async throws {
        let path = folder.path(of: "gone.xtap")
        let tap = try XMPPTapBinary(
            proxyTo: try FreePort.next(),
            ["--log", "off", "--capture", path, "--log-required"]
        )
        let port = try await tap.port()
        func connect() async throws {
            let client = try RawConnection(port: port)
            try await client.write(Conversations.plainLogin[0].text)
            _ = try await client.read(through: "</stream:stream>")
        }
        try await connect()
        try FileManager.default.removeItem(atPath: path)
        _ = try await tap.process.line(of: .standardError) { $0.contains("the log can be written again") }
        try await connect()
        _ = try await tap.process.terminate()
        let errors = tap.process.lines(of: .standardError)
        #expect(errors.contains { $0.contains("warning: --capture: \(path) was deleted while it was written") })
        #expect(errors.contains { $0.contains("--log-required: the log cannot be written; sessions are closed") })
        let records = try LogRecord.all(in: path)
        #expect(records.first?.code == "records-dropped" && records.first?.message?.contains(path) == true)
        #expect(errors.last?.contains("gone.xtap, \(records.count) records: ") == true, "\(errors)")
        #expect(folder.read("gone.xtap").hasPrefix(#"{"xtap":1,"#))
    }

    @Test func `--hash-chain reveals whether a capture was changed`() async throws {
        let file = folder.path(of: "chain.xtap")
        let demo = try await demo("--capture", file, "--hash-chain")
        #expect(demo.ending == .exited(0))
        let head = try #require(
            demo.error.firstMatch(of: /the hash chain of .*chain\.xtap ends with ([0-9a-f]{64})/)?.1
        )
        func verify(_ name: String, _ arguments: String...) async throws -> (ending: ToolProcess.Ending, error: String)
        {
            let run = try await XMPPTapBinary.run(["read", folder.path(of: name), "--verify"] + arguments)
            return (run.ending, run.error)
        }
        #expect(try await verify("chain.xtap", "--head", String(head)).ending == .exited(0))
        let text = folder.read("chain.xtap")
        var lines = text.split(separator: "\n").map(String.init)
        let place = try #require(lines.firstIndex { $0.contains("\"name\":\"message\"") })
        try folder.write(text.replacing("Wherefore", with: "Therefore"), to: "edited.xtap")
        let edited = try await verify("edited.xtap")
        #expect(edited.ending == .exited(1))
        #expect(edited.error.contains("edited.xtap: line \(place + 1) (record "))
        lines.removeLast()
        try folder.write(lines.map { "\($0)\n" }.joined(), to: "cut.xtap")
        #expect(try await verify("cut.xtap").ending == .exited(0))
        #expect(try await verify("cut.xtap", "--head", String(head)).ending == .exited(1))
        // The second run in the same file has a separate chain head; `--head` is needed for both.
        let more = try await self.demo("--capture", file, "--append", "--hash-chain")
        let second = try #require(more.error.firstMatch(of: /ends with ([0-9a-f]{64})/)?.1)
        #expect(try await verify("chain.xtap", "--head", String(second)).ending == .exited(1))
        #expect(try await verify("chain.xtap", "--head", String(head), "--head", String(second)).ending == .exited(0))
        let plain = try await self.demo("--capture", folder.path(of: "plain.xtap"))
        #expect(plain.ending == .exited(0))
        // Mixing records with and without a hash chain in one file would look like tampering, so `--append` refuses it.
        let late = try await self.demo("--capture", folder.path(of: "plain.xtap"), "--append", "--hash-chain")
        #expect(late.ending == .exited(3) && late.error.contains("plain.xtap has no hash chain"))
        let bare = try await self.demo("--capture", file, "--append")
        #expect(bare.ending == .exited(3) && bare.error.contains("chain.xtap has a hash chain"))
        #expect(try await verify("plain.xtap").error.contains("--hash-chain"))
        #expect(try await self.demo("--hash-chain").ending == .exited(2))
    }

    @Test func `--capture-when records the login and the records near a match, and reports gaps`() async throws {
        let (whole, part) = (folder.path(of: "whole.xtap"), folder.path(of: "part.xtap"))
        let condition = ["--capture-when", "message", "--before", "2", "--after", "0"]
        // The full log of the same run numbers its records as the capture does.
        let run = try await XMPPTapBinary.run(
            ["demo", "--log", "off", "--log-to", "\(whole),format=json,verbose", "--capture", part] + condition
        )
        #expect(run.ending == .exited(0), "\(run.error)")
        let all = try LogRecord.all(in: whole)
        let kept = try LogRecord.all(in: part)
        #expect(folder.read("part.xtap").hasPrefix(#"{"xtap":1,"#))
        #expect(folder.read("part.xtap").contains(#""when":"message","before":2,"after":0,"complete":false"#))
        let notes = kept.filter { $0.code == "records-omitted" }
        let records = kept.filter { $0.code != "records-omitted" }
        #expect(!notes.isEmpty && notes.allSatisfy { $0.session == 1 })
        let omitted = notes.compactMap { $0.message?.split(separator: " ").first.flatMap { Int($0) } }.reduce(0, +)
        #expect(omitted + records.count == all.count { $0.session == 1 }, "each record is in the file or counted")
        #expect(kept.map(\.sequence) == kept.map(\.sequence).sorted() && Set(kept.map(\.sequence)).count == kept.count)
        let stored = Dictionary(uniqueKeysWithValues: all.map { ($0.sequence, $0) })
        #expect(records.allSatisfy { stored[$0.sequence]?.xml == $0.xml && stored[$0.sequence]?.code == $0.code })
        let messages = Set(all.filter { $0.name == "message" }.map(\.sequence))
        #expect(!messages.isEmpty && messages.isSubset(of: records.map(\.sequence)))
        #expect(!records.contains { $0.kind == "stanza" && $0.payload?.contains("roster") == true })
        // `read` and `explain` accept the partial capture, and `replay` refuses it as incomplete.
        let read = try await XMPPTapBinary.run(["read", part])
        #expect(read.ending == .exited(0) && read.error.isEmpty && read.output.contains("left out here"))
        let explained = try await XMPPTapBinary.run(["explain", part])
        #expect(explained.ending == .exited(0) && explained.output.contains("SCRAM"), "\(explained)")
        let replay = try await XMPPTapBinary.run(["replay", part, "--to", "127.0.0.1:1", "--accounts", "/dev/null"])
        #expect(replay.ending == .exited(3) && replay.error.contains("records of it are missing"), "\(replay)")

        // The capture ends after the given number of matches, and keeps nothing of a session without a match.
        func demo(_ name: String, _ arguments: [String]) async throws -> (records: [LogRecord], error: String) {
            let file = folder.path(of: name)
            let run = try await XMPPTapBinary.run(["demo", "--log", "off", "--capture", file] + arguments)
            #expect(run.ending == .exited(0), "\(run.error)")
            return (try LogRecord.all(in: file), run.error)
        }
        let one = try await demo("one.xtap", ["--capture-when", "iq", "--after", "0", "--capture-matches", "1"])
        #expect(one.records.count { $0.name == "iq" } == 1)
        #expect(one.records.last?.code == "capture-ended")
        #expect(one.error.contains("one.xtap is complete after 1 match"))
        let none = try await demo("none.xtap", ["--capture-when", "session:9"])
        #expect(none.records.map(\.code) == ["records-omitted"])
        for wrong in [
            ["--before", "3"], ["--capture", part, "--after", "3"], ["--capture-when", "message"],
            ["--capture", folder.path(of: "%s.xtap"), "--capture-when", "message"],
            ["--capture", folder.path(of: "%j.xtap"), "--hash-chain"],
            ["--capture", part, "--capture-when", "massage"],
        ] {
            let run = try await XMPPTapBinary.run(["demo", "--log", "off"] + wrong)
            #expect(run.ending == .exited(2), "\(wrong): \(run)")
        }
    }

    @Test func `A program that is killed under load loses only the end of its capture`() async throws {
        let file = folder.path(of: "killed.xtap")
        let proxy = try XMPPTapBinary(["proxy", "--listen", "127.0.0.1:0", "--log", "off", "--capture", file])
        let client = try PlainSocket(port: try await proxy.port())
        try await client.openStream()
        func ask(_ id: String) -> String {
            "<iq type='get' id='\(id)'><query xmlns='jabber:iq:register'/></iq>"
        }
        // Sends requests until a later answer is in the file; the earlier answers are in the file then too.
        var round = 0
        while !folder.read("killed.xtap").contains("id='q3-49'") {
            for number in 0..<50 { try await client.write(ask("q\(round)-\(number)")) }
            try await client.read(until: "q\(round)-49")
            round += 1
            if round > 3 { try await Task.sleep(for: .milliseconds(5)) }
        }
        let seen = folder.read("killed.xtap")
        for number in 0..<200 { try await client.write(ask("late\(number)")) }
        proxy.process.signal(SIGKILL)
        _ = try await proxy.process.ending()
        let left = folder.read("killed.xtap")
        #expect(left.hasPrefix(seen[..<(seen.lastIndex(of: "\n") ?? seen.startIndex)]))
        let read = try await XMPPTapBinary.run(["read", file, "--json"])
        let sequences = read.output.split(separator: "\n").dropFirst()
            .compactMap { $0.firstMatch(of: /^\{"sequence":(\d+)/).flatMap { Int($0.1) } }
        #expect(sequences.count > 400)
        #expect(sequences.sorted() == Array(1...sequences.count), "no record is missing before the last one")
        for earlier in 0..<3 {
            for number in 0..<50 { #expect(left.contains("id='q\(earlier)-\(number)'")) }
        }
    }
}
