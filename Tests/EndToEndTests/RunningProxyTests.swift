import Foundation
import TapTestKit
import Testing

/// Tests of the commands that control a running proxy, with a real server and real clients.
@Suite(
    .timeLimit(.minutes(3)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
) struct RunningProxyTests {
    private typealias Result = (ending: ToolProcess.Ending, output: String, error: String)

    /// Juliet and romeo with a server, through a proxy with a control socket. Romeo answers every message.
    private final class Scene: Sendable {
        let server: ProsodyServer
        let tap: Tap
        let romeo: ScriptedClient
        let juliet: ScriptedClient
        /// Juliet's full JID and the number of her session.
        let jid: String
        let session = "2"

        static let reply = "Speak again"
        /// The options with which a client stays connected for up to 180 seconds.
        private static let patience = ["--timeout", "180"]

        /// - Parameters:
        ///   - messages: The number of messages after which juliet disconnects.
        ///   - received: The number of messages after which romeo disconnects.
        ///   - rules: The contents of the proxy's rule file `rules.pfw`.
        init(juliet messages: Int = 1000, romeo received: Int = 1000, rules: String? = nil) async throws {
            server = try await ProsodyServer()
            let control = try TemporaryFolder()
            self.control = control
            var arguments = ["--control", control.path(of: "tap.sock")]
            if let rules { arguments += ["--rules", try control.write(rules, to: "rules.pfw")] }
            tap = try await Tap(upstream: server.port, arguments: arguments)
            romeo = try ScriptedClient(
                .slixmpp,
                as: .romeo,
                port: tap.port,
                .init(reply: Self.reply, receive: received),
                options: Self.patience
            )
            try await romeo.event("ready")
            juliet = try ScriptedClient(
                .slixmpp,
                as: .juliet,
                port: tap.port,
                .init(receive: messages),
                options: Self.patience
            )
            jid = try #require(try await juliet.event("bound").jid)
            try await juliet.event("ready")
        }

        let control: TemporaryFolder
        var flags: [String] { ["--control", control.path(of: "tap.sock")] }

        func run(_ arguments: [String], input: String = "") async throws -> Result {
            try await XMPPTapBinary.run(arguments + flags, input: input)
        }

        /// Waits until a client has received this text the given number of times.
        func received(_ client: ScriptedClient, _ body: String, times: Int = 1) async throws {
            let end = ContinuousClock.now + .seconds(20)
            while client.events.count(where: { $0.event == "received" && $0.body == body }) < times {
                guard ContinuousClock.now < end else { throw KitError("\(body) was not received: \(client.events)") }
                try await Task.sleep(for: .milliseconds(20))
            }
        }

        /// Returns the output of a command on a terminal with the given width.
        func terminal(columns: Int, _ arguments: [String]) async throws -> [String] {
            let command = [try #require(XMPPTapBinary.path)] + arguments + flags
            let words = command.map { "'\($0)'" }.joined(separator: " ")
            let script = try ToolProcess("/usr/bin/script", ["-qec", "stty cols \(columns); \(words)", "/dev/null"])
            guard try await script.ending() == .exited(0) else { throw script.failure("\(arguments)") }
            return script.text(of: .standardOutput).split(whereSeparator: \.isNewline).map(String.init)
        }

        func write(rules: String) throws { _ = try control.write(rules, to: "rules.pfw") }

        /// Sends a message from juliet to romeo.
        func say(_ body: String) async throws {
            let sent = try await run(
                ["inject", "--session", session, "--to", "server", "--message", body, "--peer", Account.romeo.jid]
            )
            #expect(sent.ending == .exited(0), "\(sent.error)")
        }

        /// Waits until a rule holds a stanza with this text in romeo's session, and returns its number.
        func held(_ body: String) async throws -> String {
            let end = ContinuousClock.now + .seconds(20)
            while true {
                let held = try await run(["sessions", "held", "1", "--json"])
                let line = held.output.split(separator: "\n").first { $0.contains(body) }
                if let line, let number = line.firstMatch(of: #/"number":(\d+)/#)?.1 { return String(number) }
                guard ContinuousClock.now < end else { throw KitError("\(body) is not held: \(held)") }
                try await Task.sleep(for: .milliseconds(20))
            }
        }

        /// Sends a message from juliet, and waits for romeo's answer, which shows that both sessions still work.
        func checkRelaying(_ body: String) async throws {
            let before = juliet.events.count { $0.body == Self.reply }
            try await say(body)
            try await received(romeo, body)
            try await received(juliet, Self.reply, times: before + 1)
        }
    }

    @Test func `messages are injected in both directions, and the session continues to its end`() async throws {
        let scene = try await Scene(juliet: 4, romeo: 2)
        let fromNobody = try await scene.run([
            "inject", "--jid", Account.juliet.jid, "--to", "client", "--message", "Ay <me> & 'more'", "--peer",
            "nurse@example.org",
        ])
        #expect(fromNobody.ending == .exited(0), "\(fromNobody.error)")
        #expect(fromNobody.output.hasPrefix("sent to \(scene.jid) in session 2 after "), "\(fromNobody.output)")
        try await scene.received(scene.juliet, "Ay <me> & 'more'")
        let received = try #require(scene.juliet.events.first { $0.event == "received" })
        #expect(received.from == "nurse@example.org" && fromNobody.output.contains("id \(received.id ?? "none")"))
        let given = ["--message", "Madam!", "--peer", "nurse@example.org", "--from", "lady@example.org/chamber"]
        let fromAnother = try await scene.run(["inject", "--jid", scene.jid, "--to", "client"] + given)
        #expect(fromAnother.ending == .exited(0), "\(fromAnother.error)")
        try await scene.received(scene.juliet, "Madam!")
        #expect(scene.juliet.events.last { $0.body == "Madam!" }?.from == "lady@example.org/chamber")
        let forged = try await scene.run(["inject", "--jid", scene.jid, "--to", "server"] + given)
        #expect(forged.ending == .exited(1) && forged.error.contains("is not the session's JID"), "\(forged)")
        try await scene.checkRelaying("It is the east")
        let stanza = "<message to='\(Account.romeo.jid)' type='chat' id='own-1'><body>Good night</body></message>\n"
        let piped = try await scene.run(["inject", "--jid", scene.jid, "--to", "server", "--json"], input: stanza)
        #expect(piped.ending == .exited(0) && piped.output.contains("\"outcome\":\"sent\""), "\(piped.error)")
        let (hers, his) = (try await scene.juliet.finish(), try await scene.romeo.finish())
        #expect(his.filter { $0.event == "received" }.map(\.body) == ["It is the east", "Good night"])
        #expect(hers.filter { $0.event == "received" }.count == 4)
        try await scene.tap.stop()
        let own = try scene.tap.records().filter { $0.origin == "tap" && $0.name == "message" }
        #expect(own.count == 4 && own.allSatisfy { $0.session == 2 })
        try await scene.server.stop()
    }

    @Test func `the sessions pause command holds the next matching message without rules`() async throws {
        let scene = try await Scene()
        let arguments = ["sessions", "pause", "1", "--direction", "recv", "--condition", "INSPECT: body#/=Hold"]
        let paused = try await scene.run(arguments + ["--json"])
        #expect(paused.ending == .exited(0) && paused.output == #"{"session":1,"action":"pause"}"# + "\n", "\(paused)")
        try await scene.checkRelaying("It is the east")
        try await scene.say("Hold, fair sun")
        let number = try await scene.held("Hold, fair sun")
        let shown = try await scene.run(["sessions", "held", "1"])
        #expect(shown.output.hasPrefix("\(number) RECV, passes in "), "\(shown)")
        let passed = try await scene.run(["sessions", "pass", "1", number])
        #expect(passed.ending == .exited(0), "\(passed.error)")
        try await scene.received(scene.romeo, "Hold, fair sun")
        try await scene.checkRelaying("Hold no more")
        let filter = ["sessions", "pause", "1", "--filter", "message and body:\"O Romeo\""]
        #expect(try await scene.run(filter).ending == .exited(0))
        try await scene.checkRelaying("Hold nothing")
        try await scene.say("O Romeo, Romeo")
        let second = try await scene.held("O Romeo, Romeo")
        let match = try await scene.run(["sessions", "held", "1"])
        #expect(match.output.hasPrefix("\(second) RECV message and body:\"O Romeo\", passes in "), "\(match)")
        #expect(try await scene.run(["sessions", "pass", "1", second]).ending == .exited(0))
        try await scene.received(scene.romeo, "O Romeo, Romeo")
        let both = try await scene.run(filter + ["--condition", "KIND: message"])
        #expect(both.ending == .exited(2) && both.error.contains("one of --condition and --filter"), "\(both)")
        for (wrong, reason) in [
            ("--direction", "both"), ("--condition", "DROP."), ("--count", "1001"), ("--count", "0"),
            ("--filter", "message or"), ("--filter", "round-trip>1s"),
        ] {
            let refused = try await scene.run(["sessions", "pause", "1", wrong, reason])
            #expect(refused.ending != .exited(0) && !refused.error.isEmpty, "\(refused)")
        }
        let another = try await scene.run(["sessions", "pause", "1", "--condition", "INSPECT: body#/=Hold"])
        #expect(another.ending == .exited(0), "\(another)")
        let ended = try await scene.run(["sessions", "pause", "1", "--end", "--json"])
        #expect(ended.ending == .exited(0) && ended.output.contains("end-pause"), "\(ended)")
        try await scene.checkRelaying("Hold not")
        let unknown = try await scene.run(["sessions", "pause", "7"])
        #expect(unknown.ending == .exited(1) && unknown.error.contains("no session 7"), "\(unknown)")
        try await scene.tap.stop()
        try await scene.server.stop()
    }

    @Test func `a held message is edited by the user, and rule files are reloaded`() async throws {
        let pause = """
            ::recv

            KIND: message
            INSPECT: body#/=Hold
            PAUSE.

            KIND: message
            INSPECT: body#=Who is there
            REPLY=Who is there

            """
        let scene = try await Scene(rules: pause)
        try await scene.say("Hold, fair sun")
        let number = try await scene.held("Hold, fair sun")
        let stanza =
            "<message to='\(Account.romeo.jid)' from='\(scene.jid)' type='chat' id='hand-1'><body>Arise</body></message>"
        let unknown = try await scene.run(["sessions", "edit", "1", "999", "-"], input: stanza)
        #expect(unknown.ending == .exited(1) && unknown.error.contains("999"), "\(unknown.error)")
        let broken = try await scene.run(["sessions", "edit", "1", number, "-"], input: "<message><body></message>")
        #expect(broken.ending != .exited(0))
        #expect(
            broken.error.contains("stays held, its edit was refused: ") && broken.error.contains("tag"),
            "\(broken)"
        )
        for (wrong, reason) in [
            ("<presence/>", "it is not a message, as the held stanza is"),
            ("<message xmlns='jabber:server'/>", "not an iq, message or presence in the stream's namespace"),
            ("<message xmlns='urn:example'/>", "not an iq, message or presence in the stream's namespace"),
            ("<message from='a@b@c'><body>Arise</body></message>", "from='a@b@c' is not a JID"),
            ("<message><body>\(String(repeating: "x", count: 2 << 20))</body></message>", "the limit of an item"),
        ] {
            let refused = try await scene.run(["sessions", "edit", "1", number, "-", "--json"], input: wrong)
            #expect(refused.ending == .exited(1) && refused.output.isEmpty, "\(reason): \(refused.ending)")
            #expect(refused.error.contains(reason), "\(refused.error.prefix(300))")
        }
        // With the line breaks that a file would contain.
        let edited = try await scene.run(["sessions", "edit", "1", number, "-", "--json"], input: "\n\(stanza)\n")
        #expect(edited.ending == .exited(0), "\(edited.error)")
        #expect(edited.output == #"{"session":1,"held":\#(number),"action":"edit"}"# + "\n")
        try await scene.received(scene.romeo, "Arise")

        // The rule's reply reaches juliet, and is not itself answered by the rule.
        try await scene.say("Who is there")
        try await scene.received(scene.juliet, "Who is there")
        try await scene.checkRelaying("It is the east")
        for client in [scene.juliet, scene.romeo] {
            #expect(client.events.count { $0.event == "received" && $0.body == "Who is there" } == 1)
        }

        try await scene.say("Hold no more")
        let second = try await scene.held("Hold no more")
        let dropped = try await scene.run(["sessions", "drop", "1", second, "--json"])
        #expect(dropped.ending == .exited(0), "\(dropped.error)")
        #expect(dropped.output == #"{"session":1,"held":\#(second),"action":"drop"}"# + "\n")
        let hits = try await scene.run(["rules", "hits"])
        #expect(hits.ending == .exited(0) && hits.output.contains("rules.pfw:3"), "\(hits)")

        try scene.write(rules: "KIND: massage\nDROP.\n")
        let file = scene.control.path(of: "rules.pfw")
        let mistakes = try await XMPPTapBinary.run(["rules", "check", file, "--json"])
        #expect(mistakes.ending == .exited(1), "\(mistakes)")
        #expect(mistakes.output.hasPrefix(#"{"severity":"error","file":""#), "\(mistakes.output)")
        #expect(mistakes.output.contains(#"","line":1,"#), "\(mistakes.output)")
        let refused = try await scene.run(["rules", "reload"])
        #expect(refused.ending == .exited(1) && refused.error.contains("rules.pfw:1:"), "\(refused.error)")
        try await scene.say("Hold once more")
        let third = try await scene.held("Hold once more")
        let passed = try await scene.run(["sessions", "pass", "1", third, "--json"])
        #expect(passed.ending == .exited(0), "\(passed.error)")
        #expect(passed.output == #"{"session":1,"held":\#(third),"action":"pass"}"# + "\n")
        try await scene.received(scene.romeo, "Hold once more")

        try scene.write(rules: "::recv\n\nKIND: message\nINSPECT: body#/=envious moon\nDROP.\n")
        let reloaded = try await scene.run(["rules", "reload"])
        #expect(reloaded.ending == .exited(0), "\(reloaded.error)")
        let traces = try [[], ["--json", "--session", "1"]].map {
            try XMPPTapBinary(["rules", "trace"] + $0 + scene.flags)
        }
        // Repeats until both commands are connected and show a record.
        repeat {
            try await scene.say("Kill the envious moon")
        } while traces.contains { $0.process.text(of: .standardOutput).isEmpty }
        let hit = try #require(traces[0].process.lines(of: .standardOutput).first)
        #expect(
            hit.hasPrefix("[1] RECV \(file):3 drop (KIND: message; INSPECT: body#/=envious moon): <message "),
            "\(hit)"
        )
        let line = try #require(traces[1].process.lines(of: .standardOutput).first)
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        #expect(object?["session"] as? Int == 1 && object?["line"] as? Int == 3 && object?["file"] as? String == file)
        #expect((object?["stanza"] as? String)?.contains("Kill the envious moon") == true, "\(line)")
        for trace in traces {
            trace.process.signal(SIGINT)
            #expect(try await trace.process.ending() == .exited(0))
        }
        let narrow = try await scene.terminal(columns: 30, ["rules", "hits"])
        #expect(narrow.allSatisfy { $0.count <= 30 } && narrow.last?.hasSuffix("/rules.pfw:3") == true, "\(narrow)")
        #expect(narrow.last?.contains("  …") == true, "\(narrow)")
        try await scene.checkRelaying("Hold, and pass")
        let bodies = scene.romeo.events.filter { $0.event == "received" }.map(\.body)
        #expect(bodies == ["Arise", "Who is there", "It is the east", "Hold once more", "Hold, and pass"])
        try await scene.tap.stop()
        try await scene.server.stop()
    }

    @Test func `the answer to an injected request is printed, but not relayed`() async throws {
        let scene = try await Scene()
        let version = "<iq type='get' id='v1' to='\(Account.juliet.domain)'><query xmlns='jabber:iq:version'/></iq>"
        let answered = try await scene.run(["inject", "--session", "2", "--to", "server"], input: version)
        #expect(answered.ending == .exited(0), "\(answered.error)")
        #expect(answered.output.hasPrefix("<iq ") && answered.output.contains("<name>Prosody</name>"))
        #expect(answered.error.hasPrefix("answered by \(Account.juliet.domain) after "), "\(answered.error)")
        let json = try await scene.run(["inject", "--session", "2", "--to", "server", "--json"], input: version)
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
        #expect(object?["outcome"] as? String == "answered" && object?["type"] as? String == "result")
        #expect(object?["round_trip_ns"] is Int && (object?["answer"] as? String)?.contains("Prosody") == true)
        // With `--no-wait`, the answer is not intercepted, so juliet receives an answer to a request that she did not
        // send.
        let unasked = try await scene.run(["inject", "--session", "2", "--to", "server", "--no-wait"], input: version)
        #expect(unasked.ending == .exited(0) && unasked.output.hasPrefix("sent to "), "\(unasked.error)")
        try await scene.checkRelaying("It is the east")
        try await scene.tap.stop()
        let answers = try scene.tap.records().filter {
            $0.direction == "recv" && $0.payload == "{jabber:iq:version}query"
        }
        #expect(answers.map(\.action) == ["dropped", "dropped", nil])
    }

    @Test(arguments: ["client", "server"]) func `ping counts the answers, and drops them`(side: String) async throws {
        let scene = try await Scene()
        let name = side == "client" ? scene.jid : Account.juliet.domain
        let arguments = ["ping", "--jid", scene.jid, "--to", side, "--count", "3", "--interval", "100ms"]
        let pinged = try await scene.run(arguments)
        let lines = pinged.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(pinged.ending == .exited(0) && lines.count == 9, "\(pinged)")
        #expect(lines.first == "PING \(name), \(side) of session 2")
        for number in 1...3 {
            #expect(lines[number].firstMatch(of: /^answer from (.*): seq=(\d) time=\d+\.\d{3} ms$/)?.2 == "\(number)")
        }
        #expect(lines[5] == "--- \(name) ping statistics ---")
        #expect(lines[6].hasPrefix("3 sent, 3 answered, 0% loss, time "))
        #expect(lines[7].wholeMatch(of: /rtt min\/avg\/max\/mdev = [\d.]+\/[\d.]+\/[\d.]+\/[\d.]+ ms/) != nil)
        try await scene.checkRelaying("It is the east")
        try await scene.tap.stop()
        let pings = try scene.tap.records().filter { $0.origin == "tap" && $0.payload == "{urn:xmpp:ping}ping" }
        #expect(pings.count == 3)
        #expect(try scene.tap.records().count { $0.action == "dropped" && $0.answers != nil } == 3)
    }

    @Test func `Ctrl-C ends ping with its summary`() async throws {
        let scene = try await Scene()
        let ping = try XMPPTapBinary(["ping", "--session", "2", "--interval", "200ms"] + scene.flags)
        _ = try await ping.process.line(of: .standardOutput) { $0.contains("seq=2") }
        ping.process.signal(SIGINT)
        #expect(try await ping.process.ending() == .exited(0))
        #expect(ping.process.lines(of: .standardOutput).contains { $0.contains("0% loss") })
        try await scene.checkRelaying("It is the east")
    }

    @Test func `the sessions command lists all sessions and shows one`() async throws {
        let scene = try await Scene()
        let table = try await scene.run(["sessions"])
        let rows = table.output.split(separator: "\n")
        #expect(table.ending == .exited(0) && rows.count == 3 && rows[0].hasPrefix("SESSION  JID "), "\(table)")
        #expect(rows[2].contains(scene.jid) && rows[2].contains("ready"))
        let json = try await scene.run(["sessions", "--json"])
        #expect(json.output.split(separator: "\n").count == 2)
        let one = try await scene.run(["sessions", "2"])
        #expect(one.ending == .exited(0) && one.output.hasPrefix("session   2 \(scene.jid), ready\n"), "\(one)")
        #expect(one.output.contains("\ntimeline:\n"), "\(one.output)")
        let whole = try await scene.run(["sessions", "2", "--json"])
        let object = try JSONSerialization.jsonObject(with: Data(whole.output.utf8)) as? [String: Any]
        #expect(object?["timeline"] is [Any] && object?["roster"] is [Any] && object?["requests"] is [Any])
        let none = try await scene.run(["sessions", "99"])
        #expect(
            none.ending == .exited(1) && none.error.contains("no session 99; 'xmpptap sessions' lists them"),
            "\(none)"
        )
        // No table is wider than the terminal.
        for arguments in [["sessions"], ["sessions", "2"]] {
            let lines = try await scene.terminal(columns: 84, arguments)
            let tables = lines.drop { !$0.contains("SESSION") && !$0.contains("STEP") }
            #expect(tables.count > 1 && tables.allSatisfy { $0.count <= 84 }, "\(lines)")
        }
        let closed = try await scene.run(["sessions", "close", "2", "--json"])
        #expect(closed.ending == .exited(0), "\(closed)")
        #expect(closed.output == #"{"session":2,"action":"close"}"# + "\n")
        try await scene.juliet.event("disconnected")
        let gone = try await scene.run(["inject", "--session", "2", "--to", "client"], input: "<presence/>")
        #expect(gone.ending == .exited(1), "\(gone)")
        let held = try await scene.run(["sessions", "held", "2"])
        #expect(held.ending == .exited(1) && held.error.contains("no session 2; 'xmpptap sessions'"), "\(held)")
        // Romeo's session is unaffected.
        let his = try await scene.run(["ping", "--session", "1", "--count", "1"])
        #expect(his.ending == .exited(0), "\(his)")
    }

    @Test func `the level command changes and restores the log level while sessions run`() async throws {
        let scene = try await Scene()
        let before = try await scene.run(["level"])
        #expect(before.ending == .exited(0), "\(before)")
        let levels = before.output
        #expect(try await scene.run(["level", "verbose", "--session", "2"]).output == levels + "session:2=verbose\n")
        #expect(try await scene.run(["level", "trace", "--part", "sasl"]).output.contains("\nsasl=trace\n"))
        let jid = try await scene.run(["level", "error", "--jid", Account.romeo.jid, "--json"])
        #expect(jid.output.contains("\"\(Account.romeo.jid)\":\"error\""), "\(jid)")
        try await scene.checkRelaying("It is the east")
        _ = try await scene.tap.binary.process.line(of: .standardOutput) { $0.contains("It is the east") }
        for words in [["--session", "2"], ["--part", "sasl"], ["--jid", Account.romeo.jid]] {
            let back = try await scene.run(["level", "default"] + words)
            #expect(back.ending == .exited(0), "\(back)")
        }
        #expect(try await scene.run(["level"]).output == levels)
        try await scene.checkRelaying("Good night")
        #expect(!scene.tap.binary.process.text(of: .standardOutput).contains("Good night"))
    }

    @Test func `the tail command shows live records as in the log`() async throws {
        let scene = try await Scene()
        let all = try XMPPTapBinary(["tail", "--level", "verbose"] + scene.flags)
        let json = try XMPPTapBinary(["tail", "--json", "--session", "2"] + scene.flags)
        let bodies = try XMPPTapBinary(["tail", "--bodies", "--format", "text", "--level", "info"] + scene.flags)
        // Repeats until all three commands are connected and show a record.
        while [all, json, bodies].contains(where: { !$0.process.text(of: .standardOutput).contains("rehearsal") }) {
            try await scene.checkRelaying("rehearsal")
        }
        try await scene.checkRelaying("It is the east")
        _ = try await all.process.line(of: .standardOutput) { $0.contains("RECV") && $0.contains("It is the east") }
        _ = try await json.process.line(of: .standardOutput) { $0.contains("It is the east") }
        _ = try await bodies.process.line(of: .standardOutput) {
            $0.contains(" info ") && $0.contains("\"It is the east") && !$0.contains("<body")
        }
        for tail in [all, json, bodies] {
            tail.process.signal(SIGINT)
            #expect(try await tail.process.ending() == .exited(0))
        }
        try await scene.tap.stop()
        let log = Set(scene.tap.lines())
        let shown = all.process.lines(of: .standardOutput)
        #expect(!shown.isEmpty && shown.allSatisfy(log.contains))
        let sessions = try json.process.lines(of: .standardOutput).map {
            try JSONDecoder().decode(LogRecord.self, from: Data($0.utf8)).session
        }
        #expect(!sessions.isEmpty && sessions.allSatisfy { $0 == 2 })
    }

    @Test func `input that is not a stanza is refused, and the session is unaffected`() async throws {
        let scene = try await Scene()
        let cases: [(stanza: String, words: String)] = [
            ("<message><body>x</message>", "offset 16"),
            ("<message/><presence/>", "more than one stanza; the second begins at offset 10"),
            ("</stream:stream>", "it ends the stream"), ("<message to='a@b'", "it is not a complete stanza"),
            ("", "it is not a complete stanza"),
            ("<x xmlns='urn:x'/>", "it is not an iq, message or presence"),
            (
                "<message xmlns='jabber:server' to='romeo@localhost/o'><body>q</body></message>",
                "it is not an iq, message or presence"
            ), ("<!DOCTYPE x><message/>", "offset"),
        ]
        for (stanza, words) in cases {
            let refused = try await scene.run(["inject", "--session", "2", "--to", "client"], input: stanza)
            #expect(refused.ending == .exited(1) && refused.error.contains(words), "\(stanza): \(refused)")
        }
        let big = "<message><body>\(String(repeating: "x", count: 2 << 20))</body></message>"
        let tooLarge = try await scene.run(["inject", "--session", "2", "--to", "client"], input: big)
        #expect(tooLarge.ending == .exited(1) && tooLarge.error.contains("larger than"), "\(tooLarge.error)")
        let huge = try await scene.run(
            ["inject", "--session", "2", "--to", "client"],
            input: String(repeating: "x", count: 100 << 20)
        )
        #expect(
            huge.ending == .exited(3) && huge.error.contains("standard input is larger than 16777216 bytes"),
            "\(huge.error)"
        )
        let nobody = try await scene.run(
            ["inject", "--jid", "tybalt@localhost", "--to", "client"],
            input: "<message/>"
        )
        #expect(nobody.ending == .exited(1) && nobody.error.contains("no session of tybalt@localhost"), "\(nobody)")
        try await scene.checkRelaying("It is the east")
        #expect(!scene.juliet.events.contains { $0.event == "disconnected" })
    }

    @Test func `raw bytes are sent unchanged, and the server ends the stream if they are malformed`() async throws {
        let scene = try await Scene()
        let sent = try await scene.run(
            ["inject", "--session", "2", "--to", "server", "--raw"],
            input: "<message></body>"
        )
        #expect(sent.ending == .exited(0), "\(sent)")
        try await scene.juliet.event("disconnected")
        try await scene.tap.stop()
        let records = try scene.tap.records()
        let raw = try #require(records.first { $0.code == "raw" })
        #expect(raw.origin == "tap" && raw.kind == "bytes" && raw.length == 16 && raw.xml == nil)
        #expect(records.contains { $0.session == 2 && $0.code == "stream-error" })
    }

    @Test func `a JID with several sessions is refused with a list of them`() async throws {
        let scene = try await Scene()
        let second = try ScriptedClient(.slixmpp, as: .juliet, port: scene.tap.port, .init(receive: 1000))
        let jid = try #require(try await second.event("bound").jid)
        try await second.event("ready")
        let refused = try await scene.run(["ping", "--jid", Account.juliet.jid, "--count", "1"])
        #expect(refused.ending == .exited(2), "\(refused)")
        #expect(refused.error.contains("has several sessions: 2 (\(scene.jid)), 3 (\(jid)); choose one with --session"))
        let full = try await scene.run(["ping", "--jid", jid, "--count", "1"])
        #expect(full.ending == .exited(0) && full.output.hasPrefix("PING \(jid), client of session 3"), "\(full)")
    }

    @Test func `commands find the only running proxy, and report if there is none or several`() async throws {
        let server = try await ProsodyServer()
        let folder = try TemporaryFolder()
        let environment = ["XDG_RUNTIME_DIR": folder.path, "TMPDIR": folder.path]
        func sessions() async throws -> Result {
            let binary = try XMPPTapBinary(["sessions"], environment: environment)
            let ending = try await binary.process.ending()
            return (
                ending, binary.process.text(of: .standardOutput), binary.process.text(of: .standardError)
            )
        }
        let none = try await sessions()
        #expect(none.ending == .exited(4) && none.error.contains("no running proxy found in \(folder.path)/xmpptap"))
        let first = try XMPPTapBinary(proxyTo: server.port, environment: environment)
        _ = try await first.port()
        let one = try await sessions()
        #expect(one.ending == .exited(0) && one.error.contains("the proxy has no sessions"), "\(one)")
        let second = try XMPPTapBinary(proxyTo: server.port, environment: environment)
        _ = try await second.port()
        let both = try await sessions()
        #expect(both.ending == .exited(2) && both.error.contains("several proxies are running"), "\(both)")
        for proxy in [first, second] { #expect(both.error.contains("PID \(proxy.process.identifier) at ")) }
        // A killed proxy leaves its socket behind.
        second.process.signal(SIGKILL)
        _ = try await second.process.ending()
        #expect(try await sessions().ending == .exited(0))
        try await first.process.terminate()
        #expect(try await sessions().ending == .exited(4))
    }
}
