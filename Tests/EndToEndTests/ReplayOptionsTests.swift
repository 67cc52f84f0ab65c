import Foundation
import TapTestKit
import Testing

/// Tests of the options of `xmpptap replay` with a scripted server.
@Suite(.timeLimit(.minutes(3)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReplayOptionsTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static let ready = "000 1 ready juliet@localhost/balcony\n"
    private static let end = "\n900 1 send </stream:stream>\n901 1 ended"

    private static func query(_ word: String, id: String = "ID", _ type: String, _ text: String = "") -> String {
        "<iq id='\(id)' type='\(type)'><query xmlns='urn:example:\(word)'>\(text)</query></iq>"
    }

    /// Writes a recording of a session with these items after the login, one per line, and returns its path.
    private func recording(_ items: String, _ name: String = "talk.xtap") throws -> String {
        try folder.write(RecordedLog(Self.ready + items + Self.end).file, to: name)
    }

    /// Writes a recording in which juliet sends one request and receives this text, and returns its path.
    private func question(_ text: String = "one") throws -> String {
        try recording(
            "010 1 send \(Self.query("a", id: "a", "get"))\n020 1 recv \(Self.query("a", id: "a", "result", text))"
        )
    }

    @Test func `--update writes the differences beside the capture, and then a replay has none`() async throws {
        let capture = try question()
        let text = Tap.read(capture)
        let peer = try ReplayPeer(answers: [("example:a'", Self.query("a", "result", "two"))])
        let first = try await peer.replay(capture, in: folder, ["--update"])
        #expect(first.ending == .exited(1) && first.output.contains("\"one\" → \"two\""), "\(first)")
        #expect(first.error.contains("1 rules added") || first.error.contains("1 rule added"), "\(first.error)")
        #expect(folder.read("talk.noise").contains("iq/{urn:example:a}query/text() present\n"))
        #expect(Tap.read(capture) == text)
        let second = try await peer.replay(capture, in: folder, ["--update"])
        #expect(second.ending == .exited(0) && second.output.contains("no differences"), "\(second)")
        // A compressed capture uses the same noise file.
        let packed = try folder.write(text, to: "packed.xtap")
        #expect(try await XMPPTapBinary.run(["convert", packed, folder.path(of: "talk.xtap.gz")]).ending == .exited(0))
        let compressed = try await peer.replay(folder.path(of: "talk.xtap.gz"), in: folder)
        #expect(compressed.ending == .exited(0), "\(compressed)")
        // `--update` reports differences that cannot become rules, and the report is shown even if its file cannot be
        // written.
        let refusing = try ReplayPeer(answers: [("example:a'", Self.query("a", "error", "two"))])
        let third = try await refusing.replay(capture, in: folder, ["--update"])
        #expect(third.error.contains("1 divergence not added to \(folder.path(of: "talk.noise"))"), "\(third)")
        let unwritten = try await refusing.replay(capture, in: folder, ["--junit", folder.path(of: "no/r.xml")])
        #expect(unwritten.ending == .exited(3) && unwritten.output.contains("1 changed"), "\(unwritten)")
    }

    @Test func `each capture of a folder is a separate test`() async throws {
        let tests = folder.path(of: "tests")
        try FileManager.default.createDirectory(atPath: tests, withIntermediateDirectories: true)
        for (name, text) in [("a", "one"), ("b", "two")] {
            try folder.write(Tap.read(try question(text)), to: "tests/\(name).xtap")
        }
        try folder.write(Tap.read(try question()).split(separator: "\n").prefix(1).joined() + "\n", to: "tests/c.xtap")
        let peer = try ReplayPeer(answers: [("example:a'", Self.query("a", "result", "one"))])
        let junit = folder.path(of: "all.xml")
        let run = try await peer.replay(tests, in: folder, ["--junit", junit])
        #expect(run.ending == .exited(3), "\(run)")
        #expect(run.output.contains("1 item compared: no differences"))
        #expect(run.output.contains("\"two\" → \"one\"") && run.output.contains("in all: 2 sessions"), "\(run)")
        #expect(run.error.contains("c.xtap: no session with a completed login"), "\(run)")
        let report = Tap.read(junit)
        #expect(
            report.contains("tests=\"3\" failures=\"1\" errors=\"1\"") && report.contains("tests/b.xtap: session 1"),
            "\(report)"
        )
        // The exit codes distinguish captures that cannot be replayed from differences.
        try FileManager.default.removeItem(atPath: folder.path(of: "tests/c.xtap"))
        #expect(try await peer.replay(tests, in: folder, ["--update"]).ending == .exited(1))
        #expect(folder.read("tests/b.noise").contains("text() present"))
        #expect(try await peer.replay(tests, in: folder).ending == .exited(0))
        // The report combines the times of all captures.
        let all = try await peer.replay(tests, in: folder, ["--json"])
        let whole = try #require(try JSONSerialization.jsonObject(with: Data(all.output.utf8)) as? [String: Any])
        let latencies = try #require(whole["latencies"] as? [[String: Any]], "\(all.output)")
        #expect(
            latencies.count == 1 && latencies.first?["kind"] as? String == "iq query",
            "\(all.output)"
        )
        #expect(latencies.first?["count"] as? Int == 2 && latencies.first?["p99"] is Double, "\(all.output)")
    }

    @Test func `data that a client sent before it lost its connection reaches the server`() async throws {
        let text = String(repeating: "x", count: 2000)
        let sends = (0..<4000).map { "010 1 send <message to='a@b' id='m\($0)'><body>\(text)</body></message>" }
        let log = RecordedLog(Self.ready + sends.joined(separator: "\n") + "\n900 1 ended")
        let capture = try folder.write(log.file, to: "lost.xtap")
        let peer = try ReplayPeer()
        let run = try await peer.replay(capture, in: folder)
        #expect(run.ending == .exited(0) && run.output.contains("4000 stanzas sent"), "\(run)")
        var got = 0
        for _ in 0..<600 where got < sends.count {
            got = peer.received.reduce(0) { $0 + $1.text.ranges(of: "</message>").count }
            if got < sends.count { try await Task.sleep(for: .milliseconds(100)) }
        }
        #expect(got == sends.count)
    }

    @Test func `--without-edits sends the client's original stanzas instead of the edited ones`() async throws {
        let capture = try recording(
            """
            010 1 send:edited <message to='a@b'><body>own</body></message> => <message to='a@b'><body>edited</body></message>
            011 1 send:injected <message to='a@b'><body>injected</body></message>
            012 1 send:dropped <message to='a@b'><body>dropped</body></message>
            """
        )
        for (arguments, sent, unsent) in [
            ([], ["edited", "injected"], ["own", "dropped"]),
            (["--without-edits"], ["own", "dropped"], ["edited", "injected"]),
        ] {
            let peer = try ReplayPeer()
            let run = try await peer.replay(capture, in: folder, arguments)
            #expect(run.ending == .exited(0) && run.output.contains("2 stanzas sent"), "\(run)")
            for word in sent { #expect(peer.text.contains("<body>\(word)</body>"), "\(word)") }
            for word in unsent { #expect(!peer.text.contains("<body>\(word)</body>"), "\(word)") }
        }
    }

    @Test(arguments: [("recorded", 800), ("x0.5", 1600)])
    func `--pace keeps or scales the recorded delays`(pace: String, least: Int) async throws {
        let capture = try recording("800 1 send <message to='a@b'><body>late</body></message>")
        let peer = try ReplayPeer()
        let began = ContinuousClock.now
        let run = try await peer.replay(capture, in: folder, ["--pace", pace])
        #expect(run.ending == .exited(0), "\(run)")
        let sent = try #require(peer.received.first { $0.text.contains("late") })
        #expect(sent.at - began >= .milliseconds(least))
    }

    @Test func `a report is written as JUnit, HTML and JSON, and --fail-on selects the exit code`()
        async throws
    {
        let roster = "<iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>"
        func contacts(_ id: String, _ name: String) -> String {
            "<iq id='\(id)' type='result'><query xmlns='jabber:iq:roster'><item jid='\(name)@localhost'/></query></iq>"
        }
        let capture = try recording("010 1 send \(roster)\n020 1 recv \(contacts("r", "romeo"))")
        let peer = try ReplayPeer(answers: [("iq:roster", contacts("ID", "nurse"))])
        let (junit, page) = (folder.path(of: "r.xml"), folder.path(of: "r.html"))
        let written = ["--junit", junit, "--report", page]
        // Different data is of the class state, not behaviour, so by default the test passes.
        let state = try await peer.replay(capture, in: folder, written + ["--json"])
        #expect(state.ending == .exited(0), "\(state)")
        let report = try #require(try JSONSerialization.jsonObject(with: Data(state.output.utf8)) as? [String: Any])
        #expect(report["failed"] as? Bool == false && state.output.contains("\"state\""), "\(state.output)")
        #expect(Tap.read(junit).contains("failures=\"0\""), "\(Tap.read(junit))")
        #expect(Tap.read(page).contains("nurse@localhost"))
        let failed = try await peer.replay(capture, in: folder, written + ["--fail-on", "behaviour,state"])
        #expect(failed.ending == .exited(1), "\(failed)")
        #expect(Tap.read(junit).contains("failures=\"1\"") && Tap.read(junit).contains("nurse@localhost"))
        let unknown = try await peer.replay(capture, in: folder, ["--fail-on", "nonsense"])
        #expect(unknown.ending == .exited(2) && unknown.error.contains("peer-absent"), "\(unknown)")
    }

    @Test func `--value replaces a redacted value, and without it the stanza is not sent`() async throws {
        let capture = try recording(
            """
            010 1 send <iq id='a' type='set'><query xmlns='urn:example:a'>[redacted:token#1]</query></iq>
            020 1 recv \(Self.query("a", id: "a", "result"))
            """
        )
        let peer = try ReplayPeer(answers: [("example:a'", Self.query("a", "result"))])
        let lacking = try await peer.replay(capture, in: folder)
        #expect(lacking.ending == .exited(0), "\(lacking)")
        #expect(lacking.output.contains("redacted") && lacking.output.contains("--value token#1=@FILE"), "\(lacking)")
        #expect(!peer.text.contains("example:a'"))
        let failing = try await peer.replay(capture, in: folder, ["--fail-on", "redacted"])
        #expect(failing.ending == .exited(1), "\(failing)")
        let token = try folder.write("se<ret & more\n", to: "token")
        let given = try await peer.replay(capture, in: folder, ["--value", "token#1=@\(token)"])
        #expect(given.ending == .exited(0) && given.output.contains("no differences"), "\(given)")
        #expect(peer.text.contains(">se&lt;ret &amp; more</query>"), "\(peer.text)")
        let mistaken = try await peer.replay(capture, in: folder, ["--value", "token#1=secret"])
        #expect(mistaken.ending == .exited(2) && mistaken.error.contains("token#3=@token.txt"), "\(mistaken)")
        let other = try await peer.replay(capture, in: folder, ["--value", "token#2=@\(token)"])
        #expect(other.error.contains("no stanza of \(capture) has this placeholder"), "\(other)")
    }

    @Test func `--quiet sets the silence after which no more stanzas are expected`() async throws {
        let capture = try question()
        let late = "<message from='romeo@localhost'><body>late</body></message>"
        for (quiet, exit, parts) in [("100ms", Int32(0), ["no differences"]), ("5s", 1, ["unexpected", "late"])] {
            let peer = try ReplayPeer(
                answers: [("example:a'", Self.query("a", "result", "one"))],
                afterwards: (.seconds(2), late)
            )
            let run = try await peer.replay(capture, in: folder, ["--quiet", quiet])
            #expect(run.ending == .exited(exit), "\(run)")
            for part in parts { #expect(run.output.contains(part), "\(run)") }
        }
    }

    @Test func `Ctrl-C closes the streams and reports the stanzas played so far`() async throws {
        let capture = try recording(
            """
            010 1 send \(Self.query("a", id: "a", "get"))
            020 1 recv \(Self.query("a", id: "a", "result"))
            030 1 send \(Self.query("b", id: "b", "get"))
            040 1 recv \(Self.query("b", id: "b", "result"))
            """
        )
        // The server answers only the first request.
        let peer = try ReplayPeer(answers: [("example:a'", Self.query("a", "result", "two"))])
        try folder.write("secret\n", to: "password")
        let accounts = try folder.write("juliet@localhost password\n", to: "accounts.txt")
        let junit = folder.path(of: "r.xml")
        let replay = try XMPPTapBinary([
            "replay", capture, "--to", "127.0.0.1:\(peer.port)", "--accounts", accounts, "--wait", "60s", "--junit",
            junit,
        ])
        while !peer.text.contains("example:b'") { try await Task.sleep(for: .milliseconds(20)) }
        replay.process.signal(SIGINT)
        #expect(try await replay.process.ending() == .signalled(SIGINT))
        #expect(replay.process.text(of: .standardOutput).contains("1 changed"))
        #expect(replay.process.text(of: .standardError).contains("interrupted after 2 of 4 stanzas"))
        #expect(Tap.read(junit).contains("interrupted after 2 of 4 stanzas") && peer.text.contains("</stream:stream>"))
    }

    @Test func `--session plays only these sessions`() async throws {
        let sessions = (1...3).map { number in
            """
            0\(number)0 \(number) \(number == 3 ? "resumed 1" : "ready") juliet@localhost/\(number)
            0\(number)1 \(number) send <message to='a@b'><body>of \(number)</body></message>
            0\(number)2 \(number) send </stream:stream>
            0\(number)3 \(number) ended
            """
        }
        let capture = try folder.write(RecordedLog(sessions.joined(separator: "\n")).file, to: "talk.xtap")
        let peer = try ReplayPeer()
        let run = try await peer.replay(capture, in: folder, ["--session", "2"])
        #expect(run.ending == .exited(0) && run.output.contains("1 session"), "\(run)")
        #expect(peer.text.contains("of 2") && !peer.text.contains("of 1") && !peer.text.contains("of 3"))
        let none = try await peer.replay(capture, in: folder, ["--session", "7"])
        #expect(none.ending == .exited(3) && none.error.contains("7") && !none.error.contains("login"), "\(none)")
        let rest = try await peer.replay(capture, in: folder, ["--session", "3"])
        #expect(rest.error.contains("session 3 resumed session 1, which is left out; add --session 1"), "\(rest)")
    }

    @Test func `a failed preparation is reported with its account, and nothing is played`() async throws {
        let refusal =
            "<iq id='ID' type='error'><error type='cancel'><not-allowed xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
        let capture = try recording(
            """
            010 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            020 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'><item jid='romeo@localhost'/></query></iq>
            """
        )
        let peer = try ReplayPeer(answers: [("iq:roster", refusal)])
        let run = try await peer.replay(capture, in: folder, ["--prepare"])
        #expect(run.ending == .exited(5), "\(run)")
        #expect(run.error.contains("juliet@localhost: preparation failed: the server refused a roster item"), "\(run)")
        #expect(run.error.contains("not-allowed") && run.output.contains("0 stanzas sent"), "\(run)")
    }

    @Test func `a recording that cannot be played is refused, with advice how to record one`() async throws {
        let peer = try ReplayPeer()
        let lines = Tap.read(try question()).split(separator: "\n").map { "\($0)\n" }
        let advice = "xmpptap proxy --upstream HOST:PORT --tls intercept --capture FILE.xtap"
        for (name, text, part) in [
            // Without the login; with a damaged line in the middle; and with one at the end.
            ("login", lines[0] + lines[2...].joined(), "no session with a completed login; record a whole session"),
            (
                "damaged", lines[..<3].joined() + lines[3].prefix(90) + "\n" + lines[4...].joined(),
                "records of it are missing; record a whole session"
            ),
            ("torn", lines[..<3].joined() + lines[3].prefix(90), "records of it are missing; record a whole session"),
        ] {
            let run = try await peer.replay(try folder.write(text, to: "\(name).xtap"), in: folder)
            #expect(run.ending == .exited(3), "\(name): \(run)")
            #expect(run.error.contains(part) && run.error.contains(advice), "\(name): \(run)")
        }
        let run = try await peer.replay(
            try folder.write(lines[..<2].joined() + lines[2...].reversed().joined(), to: "order.xtap"),
            in: folder
        )
        #expect(run.ending == .exited(3) && run.error.contains("cannot be replayed: record "), "\(run)")
        #expect(run.error.contains("name the files in the order in which they were written"), "\(run)")
        let newer = lines[0].replacing("\"xtap\":1", with: "\"xtap\":99") + lines[1...].joined()
        let later = try await peer.replay(try folder.write(newer, to: "newer.xtap"), in: folder)
        #expect(later.ending == .exited(3) && later.error.contains("written by a newer xmpptap (schema 99"), "\(later)")
        #expect(peer.received.isEmpty)
    }

    @Test func `the replay ends if items wait for each other in a cycle`() async throws {
        // In the recording, each message precedes the request to which the live server answers with it.
        func message(_ text: String) -> String { "<message from='juliet@localhost'><body>\(text)</body></message>" }
        let items = ["a", "b"].map { text in
            "010 1 recv \(message(text))\n020 1 send <message to='juliet@localhost'><body>ask \(text)</body></message>"
        }
        let peer = try ReplayPeer(answers: ["a", "b"].map { ("ask \($0)", message($0)) })
        let run = try await peer.replay(try recording(items.joined(separator: "\n")), in: folder, ["--wait", "5s"])
        #expect(run.ending == .exited(0) && run.output.contains("2 late"), "\(run)")
        #expect(run.output.contains("2 stanzas sent"), "\(run)")
    }

    @Test(arguments: [true, false])
    func `replay logs in to a server that offers only SASL2`(bindsInline: Bool) async throws {
        let peer = try ReplayPeer(
            .sasl2(bindsInline: bindsInline),
            answers: [("example:a'", Self.query("a", "result", "one"))]
        )
        let run = try await peer.replay(try question(), in: folder)
        #expect(run.ending == .exited(0) && run.output.contains("no differences"), "\(run)")
        #expect(peer.text.contains("<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>"), "\(peer.text)")
        #expect(peer.text.contains("xmpp-bind") == !bindsInline)
    }
}
