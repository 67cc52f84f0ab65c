import TapNetwork
import TapRecord
import Testing

@testable import xmpptap

@Suite struct SessionTableTests {
    private static func session(_ json: String) throws -> RunningSession {
        try RunningSession(JSONValue(Array(json.utf8).span.bytes))
    }

    private static let bound = #"""
        {"session":12,"jid":"juliet@example.org/balcony","client":"127.0.0.1:40312","phase":"ready","domain":"example.org",
        "tls":{"client":"TLSv1.3","server":"TLSv1.2"},"age_ns":38000000,"sent":{"stanzas":7},"received":{"stanzas":1234}}
        """#

    @Test func `columns are aligned, and an unknown value is shown as a dash`() throws {
        let sessions = [
            try Self.session(Self.bound), try Self.session(#"{"session":3,"domain":"example.org","tls":{}}"#),
        ]
        #expect(
            SessionTable(sessions: sessions).lines(width: nil) == [
                "SESSION  JID                         CLIENT           PHASE  TLS      AGE    SENT  RECEIVED",
                "     12  juliet@example.org/balcony  127.0.0.1:40312  ready  1.3/1.2  38 ms     7      1234",
                "      3  ~@example.org               -                -      -        -         -         -",
            ]
        )
    }

    @Test(arguments: [80, 72, 40]) func `lines fit the terminal's width, down to a minimum`(width: Int) throws {
        let lines = SessionTable(sessions: [try Self.session(Self.bound)]).lines(width: width)
        let narrowest = 7 + 10 + 10 + 5 + 7 + 5 + 4 + 8 + 7 * 2
        #expect(lines.allSatisfy { $0.count <= max(width, narrowest) })
        #expect(lines[1].contains("…"))
    }

    @Test func `text from the wire cannot control the terminal`() throws {
        let lines = SessionTable(sessions: [try Self.session(#"{"session":1,"jid":"a\u001b[2Jb@c"}"#)]).lines(
            width: nil
        )
        #expect(!lines.joined().utf8.contains(0x1B))
    }

    @Test func `a rule's long path is cut at its beginning`() throws {
        let path = "/etc/xmpptap/rules/of/the/staff/no-typing.pfw"
        let rules = try [
            #"{"file":"\#(path)","line":5,"hits":1204}"#, #"{"file":"a.pfw","line":12,"hits":0}"#,
        ].map { try JSONValue(Array($0.utf8).span.bytes) }
        #expect(
            RuleHits(rules: rules).lines(width: nil) == ["HITS  RULE", "1204  \(path):5", "   0  a.pfw:12"]
        )
        #expect(
            RuleHits(rules: rules).lines(width: 24) == ["HITS  RULE", "1204  …f/no-typing.pfw:5", "   0  a.pfw:12"]
        )
    }

    @Test func `the lists of a session fit the terminal's width`() throws {
        let summary = String(repeating: "disco#info ", count: 20)
        let json = #"""
            {"session":12,"jid":"juliet@example.org/balcony","phase":"ready","timeline":[{"step":"connect","outcome":"ok",
            "duration_ns":1000000}],"roster":[{"jid":"a-name-of-forty-characters-for-a-contact@example.org","state":"both"}],
            "requests":[{"direction":"send","id":"\#(summary)","to":"a-long-name@conference.example.org",
            "summary":"\#(summary)","age_ns":38000000}]}
            """#
        let report = SessionReport(session: try Self.session(json))
        let lines = report.lines(width: 60)
        #expect(lines.allSatisfy { $0.count <= 60 } && lines.contains { $0.contains("…") }, "\(lines)")
        #expect(report.lines(width: nil).contains { $0.contains(summary.dropLast()) })
    }

    @Test func `a session without a number is an error`() {
        #expect(throws: ControlClientError.self) { try Self.session(#"{"jid":"a@b"}"#) }
    }

    @Test(arguments: [
        (["ping"], "name the session"),
        (["ping", "--session", "1", "--session", "2"], "--session given more than once"),
        (["ping", "--session", "1", "--jid", "a@b"], "leave one out"), (["ping", "--jid", "@"], "write a JID"),
        (["inject", "--session", "1", "--to", "both"], "write client or server"),
        (["inject", "--session", "1", "--to", "client", "--message", "x"], "--message needs --peer"),
        (["inject", "--session", "1", "--to", "client", "--peer", "a@b"], "--peer has no effect"),
        (["inject", "--session", "1", "--to", "client", "--from", "a@b"], "--from needs --message"),
        (
            ["inject", "--session", "1", "--to", "client", "--message", "x", "--peer", "a@b", "--raw"],
            "--raw sends a file"
        ),
        (["inject", "--session", "1", "--to", "client", "--message", "x", "--peer", "a@b", "f"], "leave one out"),
        (["level", "loud"], "the levels are"), (["level", "default"], "default removes the level"),
        (["level", "--session", "1"], "a level is missing"), (["level", "info", "--part", "x"], "the parts are"),
        (["level", "info", "--session", "1", "--jid", "a@b"], "once for each"),
        (["tail", "--level", "off"], "the levels are"),
        (["tail", "--session", "1", "--session", "2"], "more than once"), (["sessions", "list"], "unknown command"),
        (["sessions", "0"], "write a whole number"), (["sessions", "pass", "1"], "missing expected argument"),
    ])
    func `contradictory or invalid arguments are refused`(arguments: [String], words: String) {
        do {
            _ = try Invocation.command(arguments)
            Issue.record("not refused")
        } catch {
            let complaint = Ending(error, arguments: arguments)
            #expect(complaint.status == .usage && complaint.complaint.contains(words), "\(complaint.complaint)")
        }
    }

    @Test(arguments: [
        ["sessions"], ["sessions", "3"], ["sessions", "--json"], ["sessions", "show", "3", "--json"],
        ["sessions", "pass", "3", "1"],
        ["inject", "--session", "1", "--to", "client", "-"],
        ["inject", "--jid", "a@b/c", "--to", "server", "--raw", "--no-wait"],
        ["level", "default", "--part", "sasl"], ["tail", "--filter", "message and body~\"x\"", "--json"],
        ["rules", "trace", "--session", "3"],
    ])
    func `valid arguments are accepted`(arguments: [String]) throws { _ = try Invocation.command(arguments) }
}
