import TapReplay
import Testing
import XMPPCore

/// Tests how long a replay waits for missing items, with a simulated clock.
@Suite struct ReplayWaitingTests {
    /// Returns a replay in which the client sends a message, receives two, sends a second one, and receives a third.
    private static func echoed() throws -> Replayer {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 send <message to='juliet@capulet.example'><body>first</body></message>
            3 1 recv <message from='juliet@capulet.example' to='juliet@capulet.example/balcony'><body>1</body></message>
            4 1 recv <message from='juliet@capulet.example' to='juliet@capulet.example/balcony'><body>2</body></message>
            5 1 send <message to='juliet@capulet.example'><body>second</body></message>
            6 1 recv <message from='juliet@capulet.example' to='juliet@capulet.example/balcony'><body>3</body></message>
            """
        var generator = ReplayGenerator(seed: 1)
        var replayer = Replayer(
            ReplayScript(try RecordedText(text).conversations),
            accounts: [(try JID(parsing: "juliet@capulet.example"), try JID(parsing: "juliet@live.example"))],
            using: &generator
        )
        replayer.tick(at: 0)
        while let action = replayer.next(at: 0) {
            guard case .connect = action else { continue }
            replayer.handle(.bound(try JID(parsing: "juliet@live.example/x")), client: 0, at: 0)
        }
        return replayer
    }

    private static func receive(_ number: Int, by replayer: inout Replayer, at now: Int64) throws {
        let text = "<message from='juliet@live.example' to='juliet@live.example/x'><body>\(number)</body></message>"
        let bytes = Array(text.utf8)
        let element = try StanzaParser().parse(bytes.span, root: StanzaForm.clientDeclarations)
        replayer.handle(.received(bytes, element), client: 0, at: now)
        while replayer.next(at: now) != nil {}
    }

    @Test func `time in which the replay or the server is busy does not count as silence`() throws {
        let second: Int64 = 1_000_000_000
        var replayer = try Self.echoed()
        #expect(replayer.nextDeadline == 10 * second)
        replayer.excuse(4 * second, at: 9 * second)
        #expect(replayer.nextDeadline == 14 * second)
        replayer.excuse(60 * second, at: 13 * second)
        #expect(replayer.nextDeadline == 23 * second)
        replayer.othersServed = 20 * second
        #expect(replayer.nextDeadline == 30 * second)
        // The wait for a busy server is bounded.
        replayer.othersServed = 300 * second
        #expect(replayer.nextDeadline == 73 * second)
        for number in 1...3 { try Self.receive(number, by: &replayer, at: 72 * second) }
        #expect(replayer.progress.matched == 3 && replayer.divergences.isEmpty)
    }

    @Test func `a server that answers other copies is not considered silent after a missing item`() throws {
        let second: Int64 = 1_000_000_000
        var replayer = try Self.echoed()
        replayer.tick(at: 10 * second)
        while replayer.next(at: 10 * second) != nil {}
        #expect(replayer.nextDeadline == 10 * second + second / 2)
        replayer.othersServed = 12 * second
        #expect(replayer.nextDeadline == 12 * second + second / 2)
        try Self.receive(3, by: &replayer, at: 12 * second)
        #expect(replayer.progress.matched == 1)
    }

    @Test func `the wait adapts to a slow server, even after a missing item`() throws {
        let second: Int64 = 1_000_000_000
        var replayer = try Self.echoed()
        try Self.receive(1, by: &replayer, at: 9 * second)
        // The wait for the next message starts again.
        #expect(replayer.nextDeadline == 19 * second)
        replayer.tick(at: 19 * second)
        while replayer.next(at: 19 * second) != nil {}
        // The replay gives up on the second message. The server took nine seconds for the first message, so it is not
        // considered silent after half a second.
        #expect(replayer.progress.sent == 2 && replayer.nextDeadline == 29 * second)
        try Self.receive(3, by: &replayer, at: 28 * second)
        #expect(replayer.progress.matched == 2)
        replayer.tick(at: 29 * second)
        while replayer.next(at: 29 * second) != nil {}
        #expect(replayer.divergences.map(\.code) == [.missing])
        #expect(replayer.divergences.first?.recorded?.sequence == 4)
    }

    @Test func `a server that keeps sending gets more time, up to a limit`() throws {
        func played(_ bytes: Int) throws -> ReplayPeer {
            var peer = try ReplayPeer(ReplayPeer.roster) { client, text in
                text.contains("jabber:iq:roster") ? [] : ReplayPeer.answer(client, text)
            }
            let roster = try #require(ReplayPeer.answer(0, "<iq><query xmlns='jabber:iq:roster'/></iq>").first)
            peer.dripping = (roster.1, bytes)
            try peer.run()
            return peer
        }
        let slow = try played(5)
        #expect(slow.found.isEmpty && slow.now > 40_000_000_000, "\(slow.found) \(slow.now)")
        let slower = try played(50)
        #expect(slower.found == ["behaviour session 0"] && slower.now < 70_000_000_000, "\(slower.now)")
        let message = try #require(slower.replayer.divergences.first?.message)
        #expect(message.contains("the server sent 56 bytes of an incomplete item in 60 s"), "\(message)")
        #expect(message.hasSuffix("; 1 stanza not sent") && slower.log.last == "drop 0", "\(message) \(slower.log)")
        #expect(slower.followed(0).first == "behaviour missing 3", "\(slower.followed(0))")
    }
}
