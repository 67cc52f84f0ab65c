import Testing
import XMPPCore

@testable import TapReplay

@Suite struct ScriptPlayTests {
    private func play(_ lines: String) throws -> ScriptPlay {
        var play = ScriptPlay(try script(lines))
        play.start(at: 0)
        return play
    }

    private func receive(_ xml: String, _ play: inout ScriptPlay, at now: Int64) throws {
        let element = try StanzaParser().parse(Array(xml.utf8).span, root: Array(" xmlns='jabber:client'".utf8))
        play.receive(element, Array(xml.utf8), for: 0, at: now)
    }

    private func failure(_ play: ScriptPlay) -> ScriptPlay.Failure? {
        if case .failed(let failure) = play.outcome { failure } else { nil }
    }

    @Test func `steps are played one after the other`() throws {
        var play = try play(
            "Romeo connects\nRomeo sends:\n\t<iq to=\"${Romeo's full JID}\"/>\nRomeo receives:\n\t<iq/>\nRomeo disconnects\n"
        )
        #expect(play.next() == .connect(0))
        // A login may take four times as long as a stanza.
        #expect(play.next() == nil && play.deadline == 40_000_000_000)
        play.bound(0, to: "romeo@localhost/x", at: 5)
        #expect(play.next() == .send(0, Array("<iq to=\"romeo@localhost/x\"/>".utf8)))
        #expect(play.next() == nil && play.deadline == 10_000_000_005)
        try receive("<iq/>", &play, at: 6)
        #expect(play.next() == .disconnect(0))
        play.closed(0, "the client closed", at: 7)
        #expect(play.outcome == .passed && play.next() == nil)
    }

    @Test func `a stanza that arrives early waits for its step`() throws {
        var play = try play("Romeo connects\nRomeo receives:\n\t<presence/>\nRomeo receives:\n\t<message/>\n")
        _ = play.next()
        play.bound(0, to: "romeo@localhost/x", at: 0)
        try receive("<presence/>", &play, at: 1)
        try receive("<message/>", &play, at: 1)
        #expect(play.outcome == .passed && play.next() == .disconnect(0))
    }

    @Test func `an unexpected stanza fails the step`() throws {
        var play = try play("Romeo connects\nRomeo receives:\n\t<presence/>\n")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        try receive("<message/>", &play, at: 1)
        // The stanza may have overtaken the expected one, until the server has answered a later ping.
        #expect(play.outcome == nil)
        _ = try commands(&play)
        let failed = try #require(failure(play))
        #expect(failed.line == 9 && failed.step == "Romeo receives" && failed.cause == .behaviour)
        #expect(failed.reason == "presence: expected <presence/>, received <message/>")
        #expect(failed.received == "<message/>" && failed.expected == "<presence/>")
        let report = Divergence(failed, file: "a.scs")
        #expect(report.code == .changed && report.scriptStep == .init(file: "a.scs", line: 9))
        #expect(report.differences.map(\.path) == ["presence"] && report.live?.text == "<message/>")
    }

    @Test func `secrets in received stanzas are not shown`() throws {
        var play = try play(
            "Romeo connects\nRomeo receives:\n\t<iq><query xmlns='jabber:iq:register'><password>a</password></query></iq>\n"
        )
        play.bound(0, to: "romeo@localhost/x", at: 0)
        let secret = "<iq><query xmlns='jabber:iq:register'><password>hunter2</password></query></iq>"
        try receive(secret, &play, at: 1)
        _ = try commands(&play)
        let failed = try #require(failure(play))
        #expect(failed.difference?.path == "iq/query/password/text()")
        #expect(!"\(failed)".contains("hunter2") && failed.received?.contains("[redacted:password#1]") == true)
    }

    @Test func `an unreachable server is a network failure, not a failed login`() throws {
        var play = try play("Romeo connects\n")
        play.closed(0, "refused", isUnreachable: true, at: 1)
        #expect(failure(play)?.cause == .network)
    }

    @Test(arguments: ["", " from='localhost'", " from='romeo@localhost'"])
    func `pings of the server are answered and not compared`(from: String) throws {
        var play = try play("Romeo connects\nRomeo receives:\n\t<message/>\n")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        _ = play.next()
        try receive("<iq type='get' id='p'\(from)><ping xmlns='urn:xmpp:ping'/></iq>", &play, at: 1)
        let to = from.replacing("from", with: "to")
        #expect(play.next() == .send(0, Array("<iq type='result' id='p'\(to)/>".utf8)))
        try receive("<iq type='get' id='p' from='juliet@localhost/x'><ping xmlns='urn:xmpp:ping'/></iq>", &play, at: 1)
        _ = try commands(&play)
        #expect(failure(play)?.received?.contains("juliet") == true)
    }

    @Test func `a step fails if no stanza arrives in time`() throws {
        var play = try play("Romeo connects\nRomeo receives:\n\t<presence/>\n")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        play.tick(at: 9_999_999_999)
        #expect(play.outcome == nil)
        play.tick(at: 10_000_000_000)
        #expect(failure(play)?.reason == "nothing received within 10 s")
    }

    @Test func `a step that expects nothing passes after a while`() throws {
        var quiet = try play("Romeo connects\nRomeo receives: nothing\n")
        quiet.bound(0, to: "romeo@localhost/x", at: 0)
        quiet.tick(at: 499_999_999)
        #expect(quiet.outcome == nil)
        quiet.tick(at: 500_000_000)
        #expect(quiet.outcome == .passed)
        var loud = try play("Romeo connects\nRomeo receives: nothing\n")
        loud.bound(0, to: "romeo@localhost/x", at: 0)
        try receive("<message/>", &loud, at: 1)
        #expect(failure(loud)?.reason == "expected nothing, received <message/>")
    }

    @Test func `a failed login is not a failure of behaviour`() throws {
        var play = try play("Romeo connects\n")
        play.closed(0, "the server answered not-authorized", at: 1)
        #expect(failure(play)?.reason == "the server answered not-authorized")
        #expect(failure(play)?.cause == .login)
    }

    @Test func `a connection that ends fails the next step`() throws {
        var play = try play("Romeo connects\nRomeo receives:\n\t<presence/>\n")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        play.closed(0, "the server closed the stream", at: 1)
        #expect(failure(play)?.reason == "the connection ended: the server closed the stream")
    }

    @Test func `a disconnected client sends nothing and can connect again`() throws {
        var play = try play(
            "Romeo connects\nRomeo disconnects\nRomeo sends:\n\t<presence/>\nRomeo connects\nRomeo disconnects\n"
        )
        play.bound(0, to: "romeo@localhost/x", at: 0)
        play.closed(0, "", at: 1)
        play.bound(0, to: "romeo@localhost/y", at: 2)
        play.tick(at: 20_000_000_000)
        play.tick(at: 40_000_000_000)
        #expect(play.outcome == .passed)
        var commands: [ScriptPlay.Command] = []
        while let command = play.next() { commands.append(command) }
        #expect(commands == [.connect(0), .disconnect(0), .connect(0), .disconnect(0)])
    }

    // MARK: Several clients

    /// Returns a script of Romeo (0) and Juliet's phone (1), who are both logged in.
    private func playOfTwo(_ lines: String) throws -> ScriptPlay {
        var play = try play("Romeo connects\nJuliet's phone connects\n\(lines)")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        play.bound(1, to: "juliet@localhost/mobile", at: 0)
        return play
    }

    private func receive(_ xml: String, _ play: inout ScriptPlay, for character: Int) throws {
        let element = try StanzaParser().parse(Array(xml.utf8).span, root: Array(" xmlns='jabber:client'".utf8))
        play.receive(element, Array(xml.utf8), for: character, at: 1)
    }

    /// Returns the commands so far as text, and answers the pings among them.
    private func commands(_ play: inout ScriptPlay) throws -> [String] {
        var texts: [String] = []
        while let command = play.next() {
            guard case .send(let character, let bytes) = command else { continue }
            let text = String(decoding: bytes, as: UTF8.self)
            let parts = text.split(separator: "'")
            guard text.contains("urn:xmpp:ping"), let id = parts.first(where: { $0.hasPrefix("xmpptap-settled") })
            else {
                texts.append("\(character) \(text)")
                continue
            }
            texts.append("\(character) ping")
            try receive("<iq type='result' id='\(id)'/>", &play, for: character)
        }
        return texts
    }

    @Test func `a client sends only after the server has handled what another client sent before`() throws {
        var play = try playOfTwo("Romeo sends:\n\t<message/>\nJuliet's phone sends:\n\t<presence/>\n")
        #expect(try commands(&play) == ["0 <message/>", "0 ping", "1 <presence/>"])
        #expect(play.outcome == .passed)
    }

    @Test func `a server that does not answer pings delays a step, and the step still passes`() throws {
        var play = try playOfTwo("Romeo sends:\n\t<message/>\nJuliet's phone sends:\n\t<presence/>\n")
        #expect(play.deadline == 10_000_000_000)
        play.tick(at: 10_000_000_000)
        #expect(play.outcome == .passed)
    }

    @Test func `stanzas that no step received before a client's next send are ignored`() throws {
        var play = try playOfTwo(
            "Romeo sends:\n\t<presence/>\nRomeo receives:\n\t<presence/>\nJuliet's phone sends:\n\t<message/>\n"
                + "Romeo receives:\n\t<message/>\n"
        )
        #expect(try commands(&play) == ["0 <presence/>"])
        try receive("<presence/>", &play, for: 0)
        // The answer to the first step, which no step expects.
        try receive("<iq/>", &play, for: 0)
        #expect(try commands(&play) == ["0 ping", "0 ping", "1 ping", "1 <message/>"])
        try receive("<message/>", &play, for: 0)
        #expect(play.outcome == .passed)
    }

    @Test func `a later step can receive earlier stanzas in any order`() throws {
        var play = try playOfTwo(
            "Romeo sends:\n\t<presence/>\nRomeo receives:\n\t<presence/>\nJuliet's phone sends:\n\t<message/>\n"
                + "Romeo receives:\n\t<iq id='2'/>\nRomeo receives:\n\t<message/>\nRomeo receives:\n\t<iq id='1'/>\n"
        )
        _ = try commands(&play)
        for text in ["<presence/>", "<iq id='1'/>", "<iq id='2'/>"] { try receive(text, &play, for: 0) }
        _ = try commands(&play)
        try receive("<message/>", &play, for: 0)
        // The expected stanza was set aside, but a step receives it only after a later ping was answered.
        #expect(play.outcome == nil)
        _ = try commands(&play)
        #expect(play.outcome == .passed)
    }

    @Test func `stanzas from different senders may arrive in any order, but those from one sender may not`() throws {
        func outcome(_ received: [String]) throws -> ScriptPlay.Failure? {
            var play = try playOfTwo(
                "Romeo receives:\n\t<message from='a@b/1'/>\nRomeo receives:\n\t<message from='a@b/2' id='1'/>\n"
                    + "Romeo receives:\n\t<message from='a@b/2' id='2'/>\n"
            )
            for text in received { try receive(text, &play, for: 0) }
            _ = try commands(&play)
            #expect(play.outcome != nil)
            return failure(play)
        }
        let (first, second, third) = (
            "<message from='a@b/1'/>", "<message from='a@b/2' id='1'/>", "<message from='a@b/2' id='2'/>"
        )
        #expect(try outcome([second, third, first]) == nil)
        #expect(try outcome([first, third, second])?.line == 12)
        // A step must still expect a stanza that was overtaken.
        let unawaited = try outcome(["<message from='c@d'/>", first, second, third])
        #expect(unawaited?.line == 10 && unawaited?.received == "<message from='c@d'/>", "\(unawaited as Any)")
    }

    @Test(arguments: [true, false])
    func `an optional request from the server may arrive or not`(_ comes: Bool) throws {
        let query = "<iq type='get' id='disco'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
        var play = try playOfTwo("Romeo receives:\n\t<message/>\n")
        if comes { try receive(query, &play, for: 0) }
        try receive("<message/>", &play, for: 0)
        #expect(play.outcome == .passed)
        // A script with the tag expects the request, and answers it if it arrives.
        let lines = "Romeo receives:\n\t\(query)\nRomeo sends:\n\t<iq type='result' id='disco'/>\n"
        let text = "# x\n## server-requests: optional\n[Client] Romeo\n\tjid: a@b\n-----\nRomeo connects\n\(lines)"
        var tagged = ScriptPlay(try Script(Array(text.utf8), file: "x.scs"))
        tagged.start(at: 0)
        tagged.bound(0, to: "a@b/c", at: 0)
        if comes { try receive(query, &tagged, for: 0) }
        let sent = try commands(&tagged)
        #expect(sent == ["0 ping"] + (comes ? ["0 <iq type='result' id='disco'/>"] : []))
        #expect(tagged.outcome == .passed)
    }

    @Test func `the answer to an optional request has the id of the server's request`() throws {
        func query(_ id: String) -> String {
            "<iq type='get' id='\(id)'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>"
        }
        let lines = "Romeo receives:\n\t\(query("a"))\nRomeo sends:\n\t<iq type='result' id='a'/>\n"
        let text = "# x\n## server-requests: optional\n[Client] Romeo\n\tjid: a@b\n-----\nRomeo connects\n\(lines)"
        var play = ScriptPlay(try Script(Array(text.utf8), file: "x.scs"))
        play.start(at: 0)
        play.bound(0, to: "a@b/c", at: 0)
        try receive(query("b"), &play, for: 0)
        #expect(try commands(&play).filter { $0 != "0 ping" } == ["0 <iq type='result' id='b'/>"])
        #expect(play.outcome == .passed)
    }

    @Test func `stanzas that arrive after a client's send must match the script`() throws {
        var play = try playOfTwo("Romeo sends:\n\t<presence/>\nRomeo receives:\n\t<presence/>\n")
        _ = try commands(&play)
        try receive("<message/>", &play, for: 0)
        _ = try commands(&play)
        #expect(failure(play)?.reason == "presence: expected <presence/>, received <message/>")
    }

    @Test func `the stanzas of one step are sent together, without attributes for received ones`() throws {
        var play = try play("Romeo connects\nRomeo sends:\n\t<a/>\n\n\t<b scansion:strict=\"false\" c='1'/>\n")
        play.bound(0, to: "romeo@localhost/x", at: 0)
        #expect(try commands(&play) == ["0 <a/><b c='1'/>"])
    }

    @Test func `comments begin with #, // or --`() throws {
        let lines = "// one\nRomeo connects\n-- Romeo sends: nothing\n# three\n--\n-----\nRomeo disconnects\n"
        #expect(try script(lines).steps.count == 2)
    }

    // MARK: Stored data

    /// Returns a script of Romeo with the tag for stored data. He is logged in.
    private func storedPlay(_ lines: String, isTagged: Bool = true) throws -> ScriptPlay {
        let tag = isTagged ? "## stored-data: optional\n" : ""
        let text = "# x\n\(tag)[Client] Romeo\n\tjid: romeo@localhost\n-----\nRomeo connects\n\(lines)"
        var play = ScriptPlay(try Script(Array(text.utf8), file: "x.scs"))
        play.start(at: 0)
        play.bound(0, to: "romeo@localhost/x", at: 0)
        return play
    }

    private static let event = """
        <message from="romeo@localhost"><event xmlns="http://jabber.org/protocol/pubsub#event"><items node="n"/></event></message>
        """
    private static let result = "<message><result xmlns=\"urn:xmpp:mam:2\" id=\"1\"/></message>"
    private static let delayed = "<message from=\"a@b\"><delay xmlns=\"urn:xmpp:delay\"/></message>"
    private static let publication = """
        <iq type="set" id="1"><pubsub xmlns="http://jabber.org/protocol/pubsub"><publish node="n"/></pubsub></iq>
        """

    @Test(arguments: [event, result, delayed])
    func `messages with stored data may arrive or not`(_ message: String) throws {
        var more = try storedPlay("Romeo receives:\n\t<presence/>\n")
        for text in [message, "<presence/>", message] { try receive(text, &more, for: 0) }
        #expect(more.outcome == .passed)
        var fewer = try storedPlay("Romeo receives:\n\t\(message)\nRomeo receives:\n\t<presence/>\n")
        try receive("<presence/>", &fewer, for: 0)
        _ = try commands(&fewer)
        #expect(fewer.outcome == .passed)
        var untagged = try storedPlay("Romeo receives:\n\t<presence/>\n", isTagged: false)
        try receive(message, &untagged, for: 0)
        _ = try commands(&untagged)
        #expect(failure(untagged)?.line == 6)
    }

    @Test func `an event of a node that a client published to must arrive, and earlier events do not count`() throws {
        let lines = "Romeo sends:\n\t\(Self.publication)\nRomeo receives:\n\t\(Self.event)\n"
        var play = try storedPlay("Romeo receives:\n\t<presence/>\n" + lines)
        try receive(Self.event, &play, for: 0)
        try receive("<presence/>", &play, for: 0)
        _ = try commands(&play)
        play.tick(at: 20_000_000_000)
        #expect(failure(play)?.reason == "nothing received within 10 s")
        var published = try storedPlay(lines)
        _ = try commands(&published)
        try receive(Self.event, &published, for: 0)
        _ = try commands(&published)
        #expect(published.outcome == .passed)
    }

    @Test func `a message of an earlier run does not match the message that a client sends now`() throws {
        let (old, new) = (
            "<message id='m'><delay xmlns='urn:xmpp:delay'/></message>", "<message id='m'><body>new</body></message>"
        )
        var play = try storedPlay("Romeo sends:\n\t<message id='m'/>\nRomeo receives:\n\t<message id='m'/>\n")
        try receive(old, &play, for: 0)
        _ = try commands(&play)
        try receive(new, &play, for: 0)
        #expect(play.outcome == .passed)
        // A message that the server stores during the script has a delay, too.
        var stored = try storedPlay("Romeo sends:\n\t<message id='m'/>\nRomeo receives:\n\t<message id='m'/>\n")
        _ = try commands(&stored)
        try receive(old, &stored, for: 0)
        _ = try commands(&stored)
        #expect(stored.outcome == .passed)
    }

    @Test(arguments: [true, false]) func `an answer with other stored data passes`(_ isTagged: Bool) throws {
        let lines = "Romeo receives:\n\t<iq type='result' id='1'><vCard xmlns='vcard-temp'/></iq>\n"
        func play(_ answer: String) throws -> ScriptPlay {
            var play = try storedPlay(lines, isTagged: isTagged)
            try receive(answer, &play, for: 0)
            _ = try commands(&play)
            return play
        }
        let other = try play("<iq type='result' id='1'><vCard xmlns='vcard-temp'><FN>Romeo</FN></vCard></iq>")
        #expect((other.outcome == .passed) == isTagged)
        let error = try play("<iq type='error' id='1'><vCard xmlns='vcard-temp'/></iq>")
        #expect(failure(error)?.difference?.path == "iq/@type")
    }
}
