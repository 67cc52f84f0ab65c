import Foundation
import TapTestKit
import Testing

/// Tests of the story at info for a reader who knows XMPP but not this tool.
@Suite(.timeLimit(.minutes(2)))
struct SummaryTests {
    @Test(
        "A subscription, an avatar and a room are summarised line by line, without XML",
        .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp), "Prosody or slixmpp is missing")
    )
    func scene() async throws {
        let server = try await ProsodyServer(
            host: """
                modules_enabled = { "pep" }
                Component "rooms.localhost" "muc"
                """
        )
        let tap = try await Tap(upstream: server.port)
        let scene = try ToolProcess(
            "/usr/bin/python3",
            [
                URL(filePath: #filePath).deletingLastPathComponent()
                    .appending(path: "../TapTestKit/Clients/slixmpp_scene.py").standardized.path,
                "--port", "\(tap.port)", "--room", "balcony@rooms.localhost",
                "--juliet", "\(Account.juliet.jid)/house", Account.juliet.password,
                "--romeo", "\(Account.romeo.jid)/garden", Account.romeo.password,
            ]
        )
        guard try await scene.ending() == .exited(0) else {
            throw scene.failure("the scene failed: \(scene.text(of: .standardOutput))\n\(Tap.read(tap.story))")
        }
        try await tap.stop()
        try await server.stop()
        let story = Tap.read(tap.story)
        for sample in [Documentation.Sample.subscription, .avatar, .room] {
            try Documentation.check(sample, sessionsOf: story)
        }

        #expect(!story.contains("<"), "\(story)")
        #expect(!story.contains("{http"), "\(story)")
        // The lines of each session are in order; between sessions, a recipient's line may precede the sender's.
        var rests: [Substring: Substring] = [:]
        for line in Self.expected {
            let parts = line.split(separator: "…").map(String.init)
            let session = line.hasPrefix("[") ? line.prefix(2) : ""
            let rest = rests[session] ?? story[...]
            guard let found = rest.split(separator: "\n").first(where: { Self.has(parts, $0) }) else {
                Issue.record("no \"\(line)\" in order; the log is\n\(story)")
                return
            }
            rests[session] = rest[found.endIndex...]
        }

        // The live output contains the same lines as `read` prints from the capture.
        let read = try await XMPPTapBinary.run(["read", tap.capture, "--log", "info"])
        #expect(read.ending == .exited(0))
        let told = story.split(separator: "\n").filter { !$0.hasPrefix("#") }
        let again = read.output.split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(told.count > 80)
        #expect(Set(told) == Set(again))
        let stanzas = try tap.records().filter { $0.kind == "stanza" }
        #expect(stanzas.allSatisfy { $0.summary != nil })
    }

    /// Returns whether a line contains these parts in this order.
    private static func has(_ parts: [String], _ line: Substring) -> Bool {
        var rest = line
        for part in parts {
            guard let range = rest.firstRange(of: part) else { return false }
            rest = rest[range.upperBound...]
        }
        return true
    }

    private static let expected = [
        "[1 juliet@localhost/house] SEND presence…house → romeo@localhost…asks to subscribe",
        "[1 juliet@localhost/house] RECV iq set…roster push: romeo@localhost, subscription none, request pending",
        "[2 romeo@localhost/garden] RECV presence…juliet@localhost → …asks to subscribe",
        "[2 romeo@localhost/garden] SEND presence…→ juliet@localhost…approves the subscription",
        "[1 juliet@localhost/house] RECV presence…approves the subscription",
        "[1 juliet@localhost/house] SEND iq set…publishes avatar data 70 B (urn:xmpp:avatar:data)",
        "[1 juliet@localhost/house] SEND iq set…publishes avatar image/png 70 B 1×1 (urn:xmpp:avatar:metadata)",
        "[2 romeo@localhost/garden] RECV message…avatar image/png 70 B 1×1",
        "[2 romeo@localhost/garden] SEND iq get…asks for item ",
        "[2 romeo@localhost/garden] RECV iq result…avatar data 70 B",
        "SEND presence house → balcony@rooms.localhost/juliet…joins the room",
        "RECV presence balcony@rooms.localhost/juliet → house…in the room: owner, moderator…your own presence (110)",
        "RECV message groupchat balcony@rooms.localhost → house…the room has no subject",
        "SEND message…invitation to romeo@localhost",
        "RECV message…invitation from balcony@rooms.localhost/juliet",
        "SEND presence garden → balcony@rooms.localhost/romeo…joins the room",
        "SEND message groupchat house → balcony@rooms.localhost…subject of the room 17 B; ",
        "SEND message groupchat garden → balcony@rooms.localhost…body 23 B; ",
        "changes nickname to montague",
        "kicks montague",
        "kicked out of the room (307) by juliet",
    ]
}
