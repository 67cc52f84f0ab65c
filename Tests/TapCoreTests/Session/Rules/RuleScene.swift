import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
@testable import TapRules

/// An open session with rules, driven by the input of both peers.
struct RuleScene: ~Copyable {
    var harness: SessionHarness

    /// Creates a session, by default an open one.
    ///
    /// - Parameter enablesStreamManagement: Whether both peers count stanzas (XEP-0198).
    init(
        _ rules: String,
        _ options: SessionOptions = SessionOptions(level: .trace),
        run: Run = Run(),
        turns: Int = 10,
        enablesStreamManagement: Bool = false
    ) throws {
        var options = options
        options.rules = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime(minute: 600, weekday: 3) }
        self.init(options, run: run, turns: turns, enablesStreamManagement: enablesStreamManagement)
    }

    init(_ options: SessionOptions, run: Run, turns: Int = 10, enablesStreamManagement: Bool = false) {
        harness = SessionHarness(options: options, run: run)
        harness.say(Array(Conversations.plainLogin.prefix(turns)))
        guard enablesStreamManagement else { return }
        harness.send("<enable xmlns='urn:xmpp:sm:3' resume='true'/>")
        harness.recv("<enabled xmlns='urn:xmpp:sm:3' resume='true' id='i1' max='60'/>")
    }

    /// Returns the data that the server and the client receive during an event.
    private mutating func out(_ body: (inout SessionHarness) -> Void) -> (server: String, client: String) {
        let (server, client) = (harness.toServer.count, harness.toClient.count)
        body(&harness)
        return (
            String(decoding: harness.toServer[server...], as: UTF8.self),
            String(decoding: harness.toClient[client...], as: UTF8.self)
        )
    }

    /// Sends data of the client; returns the data that the server and the client receive.
    mutating func send(_ text: String) -> (server: String, client: String) { out { $0.send(text) } }

    /// Sends data of the server; returns the data that the server and the client receive.
    mutating func recv(_ text: String) -> (server: String, client: String) { out { $0.recv(text) } }

    mutating func handle(_ input: SessionInput) -> (server: String, client: String) { out { $0.handle(input) } }

    mutating func wait(milliseconds: Int64) -> (server: String, client: String) {
        out { $0.wait(milliseconds * 1_000_000) }
    }

    /// Loses the connection, and resumes the session on another one. The server has handled no stanza.
    mutating func resumed(_ rules: String, run: Run) throws -> RuleScene {
        harness.end(.client, .reset)
        harness.close()
        var scene = try RuleScene(rules, run: run, turns: 8)
        _ = scene.send("<resume xmlns='urn:xmpp:sm:3' h='0' previd='i1'/>")
        _ = scene.recv("<resumed xmlns='urn:xmpp:sm:3' h='0' previd='i1'/>")
        return scene
    }

    /// The last record of an item that a peer sent.
    var item: SessionHarness.Told? {
        harness.told.last { ($0.record.kind == .stanza || $0.record.kind == .element) && $0.record.origin == .peer }
    }

    func told(_ code: String) -> [SessionHarness.Told] { harness.told(code: code) }

    /// Returns whether the direction forwards bytes on arrival.
    func passes(_ direction: Direction) -> Bool { harness.session.isCutThrough(direction) }
}
