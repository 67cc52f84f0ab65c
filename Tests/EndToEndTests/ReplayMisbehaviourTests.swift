import Foundation
import TapTestKit
import Testing

/// Tests of `xmpptap replay` with misbehaving servers: it ends, and reports the place, the cause, and the number of
/// stanzas not sent.
@Suite(.timeLimit(.minutes(2)), .enabled(if: XMPPTapBinary.path != nil, "xmpptap is not built"))
struct ReplayMisbehaviourTests {
    /// A server's misbehaviour and the expected report.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var login = ReplayPeer.Login.sasl
        var answers: [ReplayPeer.Answer] = []
        var arguments: [String] = []
        let exit: Int32
        /// Parts of the expected output.
        let said: [String]
    }

    private static func iq(_ word: String, id: String, _ type: String) -> String {
        "<iq id='\(id)' type='\(type)'><query xmlns='urn:example:\(word)'/></iq>"
    }

    private static func result(_ word: String, id: String = "ID") -> String { iq(word, id: id, "result") }

    private static let stanzaErrors = "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'"
    private static let refusal =
        "<iq id='ID' type='error'><error type='cancel'><service-unavailable \(stanzaErrors)/></error></iq>"
    private static let well = ["a", "b", "c"].map { (to: "example:\($0)'", answer: result($0)) }

    static let cases = [
        Case(testDescription: "answers", answers: well, exit: 0, said: ["no differences", "3 stanzas sent"]),
        Case(
            testDescription: "refuses",
            answers: [(well[0].to, refusal)] + well[1...],
            exit: 1,
            said: ["changed (behaviour) RECV", "service-unavailable", "3 stanzas sent"]
        ),
        Case(
            testDescription: "answers twice",
            answers: [(well[0].to, well[0].answer + refusal)] + well[1...],
            exit: 1,
            said: [
                "session 1 juliet@localhost/balcony: a second answer to the request", "1 unexpected", "3 stanzas sent",
            ]
        ),
        Case(
            testDescription: "answers out of order",
            answers: [(well[1].to, result("b") + result("a", id: "FIRST")), well[2]],
            exit: 0,
            said: ["no differences"]
        ),
        Case(
            testDescription: "answers another request",
            answers: [(well[0].to, result("a", id: "other"))] + well[1...],
            arguments: ["--wait", "20s"],
            exit: 1,
            said: ["changed (behaviour) RECV", "iq/@id: \"a\" → \"other\"", "3 stanzas sent"]
        ),
        Case(
            testDescription: "does not answer",
            answers: [well[1], well[2]],
            // With this wait, one answer is missing and the others are never late, even on a busy machine.
            arguments: ["--wait", "20s"],
            exit: 1,
            said: ["missing (behaviour) RECV", "#4 <iq id='a'", "1 missing", "3 stanzas sent"]
        ),
        Case(
            testDescription: "stops within an answer",
            answers: [(well[1].to, "<iq id='ID' type=")],
            arguments: ["--wait", "10s"],
            exit: 1,
            said: ["the session ended: the server sent ", " bytes of an incomplete item in ", "1 stanza not sent"]
        ),
        Case(
            testDescription: "stops within the login",
            login: .refused("<succ"),
            arguments: ["--wait", "10s"],
            exit: 5,
            said: ["login failed at login: no complete answer in time: 5 bytes of it arrived", "; give a slow server"]
        ),
        Case(
            testDescription: "closes the connection",
            answers: [(well[1].to, "CLOSE")],
            exit: 1,
            said: [
                "the session ended: the server closed the connection; 1 stanza not sent\n  session (behaviour), ",
                "→ #4 localhost does not answer", "→ #7 localhost does not answer", "1 session differs; 1 cause",
                "2 stanzas sent",
            ]
        ),
        Case(
            testDescription: "sends a stream error",
            answers: [
                (
                    well[1].to,
                    "<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>"
                )
            ],
            exit: 1,
            said: ["the session ended: ", "policy-violation", "1 stanza not sent"]
        ),
        Case(
            testDescription: "sends what is no XML",
            answers: [(well[1].to, "<iq id='ID'><a></b></iq>")],
            exit: 1,
            said: ["the session ended: ", "1 stanza not sent"]
        ),
        Case(
            testDescription: "reads nothing",
            login: .deaf,
            arguments: ["--wait", "5s"],
            exit: 1,
            said: ["the session ended: the server read no data for 5.0", "stanzas not sent"]
        ),
        Case(
            testDescription: "refuses the login",
            login: .refused("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"),
            exit: 5,
            said: ["juliet@localhost: login failed", "not-authorized", "0 stanzas sent"]
        ),
        Case(
            testDescription: "refuses to create the account",
            answers: [
                (
                    "jabber:iq:register",
                    "<iq id='ID' type='error'><error type='cancel'><not-allowed \(stanzaErrors)/></error></iq>"
                )
            ],
            arguments: ["--register"],
            exit: 5,
            said: ["juliet@localhost: login failed", "refused to create the account (not-allowed)"]
        ),
    ]

    @Test(arguments: cases) func `a server that misbehaves is reported, and the replay ends`(_ one: Case) async throws {
        let folder = try TemporaryFolder()
        let isLarge = if case .deaf = one.login { true } else { false }
        let capture = try folder.write(Self.recording(isLarge: isLarge).file, to: "talk.xtap")
        let peer = try ReplayPeer(one.login, answers: one.answers)
        let (ending, output, error) = try await peer.replay(capture, in: folder, one.arguments)
        #expect(ending == .exited(one.exit), "\(output.prefix(2000))\(error)")
        for text in one.said { #expect((output + error).contains(text), "\(text): \(output.prefix(2000))\(error)") }
        // The first line of the report gives the reason.
        if one.exit > 1 { #expect(output.hasPrefix("juliet@localhost: login failed at "), "\(output)") }
        // The progress line is only for terminals.
        #expect(!error.contains("\r"))
    }

    @Test func `each copy that is not played reports why, and hopeless logins are not tried`() async throws {
        let folder = try TemporaryFolder()
        let capture = try folder.write(Self.recording(isLarge: false).file, to: "talk.xtap")
        let peer = try ReplayPeer(
            .refused("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        )
        let arguments = ["--copies", "120"]
        let run = try await peer.replay(capture, in: folder, arguments, as: "juliet%d@localhost")
        #expect(run.ending == .exited(5), "\(run)")
        let reason = "login failed at login: the server answered not-authorized"
        let hopeless = "not tried: 50 logins had failed, and none had succeeded"
        // 50 logins start at once, and each of the first 49 failures starts another one: 99 logins. After 50 failures,
        // no more logins are tried.
        #expect(run.output.contains("copies 1-99 not played to the end: \(reason)\n"), "\(run)")
        #expect(run.output.contains("copies 100-120 not played to the end: \(hopeless)\n"), "\(run)")
        #expect(run.error.contains("copy 1: juliet1@localhost: \(reason) (and 119 more)"), "\(run)")
        let json = try await peer.replay(capture, in: folder, arguments + ["--json"], as: "juliet%d@localhost")
        let report = try #require(try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        let errors = try #require(report["errors"] as? [String], "\(json)")
        #expect(errors.count == 120 && errors.last == "copy 120: juliet120@localhost: \(hopeless)", "\(errors)")
    }

    @Test func `two hundred copies that start at once are all played without differences`() async throws {
        let folder = try TemporaryFolder()
        let capture = try folder.write(Self.recording(isLarge: false).file, to: "talk.xtap")
        let peer = try ReplayPeer(answers: Self.well)
        let run = try await peer.replay(capture, in: folder, ["--copies", "200"], as: "juliet%d@localhost")
        #expect(run.ending == .exited(0) && run.output.contains("600 items compared: no differences"), "\(run)")
    }

    /// Returns a recording in which juliet sends two requests, and a third one after both answers. If `isLarge` is
    /// true, she sends a large amount of data instead.
    private static func recording(isLarge: Bool) -> RecordedLog {
        var lines = ["000 1 ready juliet@localhost/balcony"]
        if isLarge {
            let text = String(repeating: "wherefore ", count: 20_000)
            lines += (0..<40).map { _ in "010 1 send <message to='romeo@localhost'><body>\(text)</body></message>" }
        } else {
            let items = ["send a get", "send b get", "recv a result", "recv b result", "send c get", "recv c result"]
            for (index, item) in items.enumerated() {
                let words = item.split(separator: " ").map(String.init)
                lines.append("\(index + 10) 1 \(words[0]) \(iq(words[1], id: words[1], words[2]))")
            }
        }
        lines += ["020 1 send </stream:stream>", "021 1 ended"]
        return RecordedLog(lines.joined(separator: "\n"))
    }
}
