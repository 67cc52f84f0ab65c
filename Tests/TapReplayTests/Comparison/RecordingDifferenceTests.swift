import TapRecord
import Testing
import XMPPCore

@testable import TapReplay

@Suite struct RecordingDifferenceTests {
    private static let request = (Direction.send, "<iq type='get' id='1'><query xmlns='jabber:iq:roster'/></iq>")
    private static let answer = (
        Direction.recv, "<iq type='result' id='1'><query xmlns='jabber:iq:roster'><item jid='a@x'/></query></iq>"
    )
    private static let ping = (Direction.send, "<iq type='get' id='2' to='x'><ping xmlns='urn:xmpp:ping'/></iq>")
    private static let pong = (Direction.recv, "<iq type='result' id='2' from='x'/>")

    private func found(_ recorded: Recording, _ live: Recording, _ noise: String = "") throws -> [String] {
        try recorded.divergences(from: live, noise: noise).map {
            let sides = "\($0.recorded.map { "\($0.sequence)" } ?? "-")/\($0.live.map { "\($0.sequence)" } ?? "-")"
            return "\($0.code.rawValue) \($0.divergenceClass.rawValue) \(sides)"
        }
    }

    @Test func `equal recordings have no difference`() throws {
        let recording = Recording([Self.request, Self.ping, Self.pong, Self.answer])
        #expect(try found(recording, recording) == [])
        #expect(try found(recording, Recording([Self.request, Self.ping, Self.answer, Self.pong])) == [])
    }

    @Test func `a missing request and its answer are one divergence`() throws {
        let whole = Recording([Self.request, Self.answer, Self.ping, Self.pong])
        let without = Recording([Self.request, Self.answer])
        #expect(try found(whole, without) == ["missing behaviour 3/-"])
        #expect(try whole.divergences(from: without).first?.consequences == 1)
        #expect(try found(without, whole) == ["unexpected behaviour -/3"])
        #expect(try found(whole, Recording([Self.request, Self.answer, Self.ping])) == ["missing behaviour 4/-"])
    }

    @Test func `a different answer is a change of behaviour`() throws {
        let other = (Direction.recv, "<iq type='error' id='2' from='x'><error type='cancel'/></iq>")
        #expect(
            try found(Recording([Self.ping, Self.pong]), Recording([Self.ping, other])) == ["changed behaviour 2/2"]
        )
    }

    @Test func `a difference in stored data is a change of state`() throws {
        let other = (Direction.recv, "<iq type='result' id='1'><query xmlns='jabber:iq:roster'/></iq>")
        #expect(
            try found(Recording([Self.request, Self.answer]), Recording([Self.request, other])) == ["changed state 2/2"]
        )
    }

    @Test(arguments: [
        (
            "<vCard xmlns='vcard-temp'><FN>Juliet</FN></vCard>", "<vCard xmlns='vcard-temp'/>",
            "<vCard xmlns='vcard-temp'><FN>Juliet</FN></vCard>", "<vCard xmlns='vcard-temp'><FN>Nurse</FN></vCard>"
        ),
        (
            "<block xmlns='urn:xmpp:blocking'><item jid='paris@example.org'/></block>",
            "<blocklist xmlns='urn:xmpp:blocking'/>",
            "<blocklist xmlns='urn:xmpp:blocking'><item jid='paris@example.org'/></blocklist>",
            "<blocklist xmlns='urn:xmpp:blocking'/>"
        ),
    ])
    func `data that both clients stored and one gets back changed differ in behaviour`(
        stored: String,
        request: String,
        first: String,
        second: String
    ) throws {
        let writing = [(Direction.send, "<iq type='set' id='s'>\(stored)</iq>"), (.recv, "<iq type='result' id='s'/>")]
        func reading(_ answer: String) -> [(Direction, String)] {
            [(.send, "<iq type='get' id='g'>\(request)</iq>"), (.recv, "<iq type='result' id='g'>\(answer)</iq>")]
        }
        func other(_ items: [(Direction, String)]) -> Recording {
            Recording(
                items.map { ($0, $1.replacing("example.org", with: "test.example")) },
                jid: "romeo@test.example/orchard"
            )
        }
        #expect(
            try found(Recording(writing + reading(first)), other(writing + reading(second)))
                == ["changed behaviour 4/4"]
        )
        // Before the clients store it, and if only one of them stores it, the difference may result from earlier data.
        #expect(
            try found(Recording(reading(first) + writing), other(reading(second) + writing)) == ["changed state 2/2"]
        )
        #expect(
            try found(Recording(writing + reading(first)), other(reading(second)))
                == ["missing behaviour 1/-", "changed state 4/2"]
        )
    }

    @Test func `an error instead of stored data is a change of behaviour`() throws {
        let error = (Direction.recv, "<iq type='error' id='1'><query xmlns='jabber:iq:roster'/></iq>")
        #expect(
            try found(Recording([Self.request, Self.answer]), Recording([Self.request, error]))
                == ["changed behaviour 2/2"]
        )
    }

    @Test func `a slow answer is a difference in timing`() throws {
        var live = Recording([Self.ping, Self.pong])
        live.items[1].at = 0.55
        #expect(try found(Recording([Self.ping, Self.pong]), live) == [])
        live.items[1].at = 0.65
        #expect(try found(Recording([Self.ping, Self.pong]), live) == ["slower timing 2/2"])
        #expect(try Recording([Self.ping, Self.pong]).divergences(from: live).first?.message == "0.100 s → 0.650 s")
    }

    @Test func `a clock that was set back causes no finding`() throws {
        var recording = Recording([Self.ping, Self.pong])
        recording.items[0].at = 5
        #expect(try found(recording, Recording([Self.ping, Self.pong])) == [])
    }

    @Test func `numbers are compared without rounding`() throws {
        let (one, other) = (
            Recording([(.recv, "<presence from='a' n='100000000'/>")]),
            Recording([(.recv, "<presence from='a' n='100000002'/>")])
        )
        #expect(try found(one, other, "presence/@n number ± 1") == ["changed behaviour 1/1"])
        #expect(try found(one, other, "presence/@n number ± 2") == [])
    }

    @Test func `a stanza of a room may be addressed to any resource`() throws {
        func said(_ nick: String, to resource: String) -> Recording {
            Recording([(.recv, "<message type='groupchat' from='r@x/\(nick)' to='me@x/\(resource)'/>")])
        }
        #expect(try found(said("a", to: "1"), said("a", to: "2")) == [])
        #expect(try found(said("a", to: "1"), said("b", to: "1")) == ["changed behaviour 1/1"])
    }

    @Test func `many different messages are compared within the time limit`() throws {
        func talk(_ word: String) -> Recording {
            Recording((0..<20_000).map { (.recv, "<message from='a@x/1'><body>\(word) \($0)</body></message>") })
        }
        #expect(try found(talk("one"), talk("other")).count == 20_000)
    }

    private func message(_ id: String, _ text: String) -> (Direction, String) {
        (.recv, "<message from='juliet@example.org/balcony' id='\(id)'><body>\(text)</body></message>")
    }

    private func receipt(_ id: String) -> (Direction, String) {
        (.send, "<message to='juliet@example.org/balcony'><received xmlns='urn:xmpp:receipts' id='\(id)'/></message>")
    }

    @Test func `messages in another order are reported as reordered`() throws {
        let recorded = Recording([message("1", "a"), message("2", "b"), message("3", "c")])
        #expect(
            try found(recorded, Recording([message("7", "b"), message("8", "a"), message("9", "c")])) == [
                "reordered behaviour 1/2"
            ]
        )
    }

    @Test func `one live identifier for two recorded ones is a collision`() throws {
        let recorded = Recording([message("1", "a"), message("2", "b"), receipt("1"), receipt("2")])
        #expect(
            try found(recorded, Recording([message("x", "a"), message("y", "b"), receipt("x"), receipt("y")])) == []
        )
        let live = Recording([message("x", "a"), message("y", "b"), receipt("y"), receipt("y")])
        let divergences = try recorded.divergences(from: live)
        #expect(divergences.map(\.code) == [.collision])
        #expect(divergences.first?.differences.map(\.path) == ["message/{urn:xmpp:receipts}received/@id"])
    }

    @Test func `recorded accounts are replaced by the live ones`() throws {
        let recorded = Recording(
            [
                (.recv, "<presence from='romeo@example.org/orchard' to='romeo@example.org/orchard'/>"),
                (.recv, "<message from='juliet@example.org'><body>romeo@example.org</body></message>"),
            ]
        )
        let live = Recording(
            [
                (.recv, "<presence from='user1@test.example/x' to='user1@test.example/x'/>"),
                (.recv, "<message from='juliet@test.example'><body>user1@test.example</body></message>"),
            ],
            jid: "user1@test.example/x"
        )
        #expect(try found(recorded, live) == [])
        #expect(
            try found(recorded, Recording(live.items.map { ($0.direction, $0.xml) }, jid: "x@else.example/y")).count
                == 2
        )
    }

    @Test func `a comparison with a redacted value is undecided`() throws {
        let recorded = Recording([(.send, "<iq type='set' id='1'><p xmlns='urn:p'>[redacted:password#1]</p></iq>")])
        let live = Recording([(.send, "<iq type='set' id='1'><p xmlns='urn:p'>secret</p></iq>")])
        #expect(try found(recorded, live) == ["undecided redacted 1/1"])
    }

    @Test func `a number may differ by the tolerance of its rule`() throws {
        func load(_ value: String) -> Recording {
            Recording([(.recv, "<message><load xmlns='urn:l' value='\(value)'/></message>")])
        }
        let rule = "message/{urn:l}load/@value number ± 2"
        #expect(try found(load("10"), load("12"), rule) == [])
        #expect(try found(load("10"), load("12.5"), rule) == ["changed behaviour 1/1"])
        #expect(try found(load("10"), load("10.1")) == ["changed behaviour 1/1"])
    }

    @Test func `many items are compared although one is missing at the start`() throws {
        // More items than are compared at once; one is missing at the start, so that each arrives before it is
        // expected.
        let items = (0..<10_000).map { message("\($0)", "text \($0)") }
        let live = (1..<10_000).map { message("x\($0)", "text \($0)") }
        #expect(try found(Recording(items), Recording(live)) == ["missing behaviour 1/-"])
        #expect(try found(Recording(live), Recording(items)) == ["unexpected behaviour -/1"])
    }

    @Test func `noise rules are learned from differences`() throws {
        func recording(_ token: String, _ extra: String = "") -> Recording {
            Recording([(.recv, "<message><t xmlns='urn:t' token='\(token)'\(extra)/><t xmlns='urn:t'/></message>")])
        }
        var learner = NoiseLearner()
        for divergence in try recording("a").divergences(from: recording("b")) { learner.learn(divergence) }
        for divergence in try recording("a").divergences(from: recording("c", " x='1'")) { learner.learn(divergence) }
        #expect(learner.rules.map(\.description) == ["message/{urn:t}t/@token present", "message/{urn:t}t/@x ignore"])
        #expect(learner.unlearned.isEmpty)
        #expect(try found(recording("a"), recording("d", " x='2'"), NoiseFile.text(learner.rules)) == [])
        let other = Recording([(.recv, "<presence/>")])
        for divergence in try recording("a").divergences(from: other) { learner.learn(divergence) }
        // A message of the server itself may be optional; a presence without a payload names no kind of stanza.
        #expect(learner.rules.last?.description == "message[{urn:t}t] may be absent")
        #expect(learner.unlearned.map(\.code) == [.unexpected])
    }

    @Test func `noise rules apply to text beside elements`() throws {
        func page(_ one: String, _ other: String) -> Recording {
            Recording([(.recv, "<message><html xmlns='urn:h'>\(one)<b>x</b>\(other)</html></message>")])
        }
        let place = "message/{urn:h}html/text()"
        #expect(try page("a", "b").divergences(from: page("c", "d")).map(\.code) == [.changed])
        for rule in ["present", "ignore", "regex ^[a-d]$"] {
            #expect(try page("a", "b").divergences(from: page("c", "d"), noise: "\(place) \(rule)").isEmpty, "\(rule)")
        }
        #expect(try page("a", "").divergences(from: page("", "d"), noise: "\(place) present").isEmpty)
        #expect(try page("a", "").divergences(from: page("", ""), noise: "\(place) ignore").isEmpty)
        let gone = try page("a", "").divergences(from: page("", ""), noise: "\(place) present")
        #expect(gone.flatMap(\.differences).map(\.reason) == [.missing])
        #expect(try page("a", "b").divergences(from: page("c", "e"), noise: "\(place) regex ^[a-d]$").count == 1)
        // The learned rules make both recordings equal.
        var learner = NoiseLearner()
        for divergence in try page("a", "b").divergences(from: page("c", "d")) { learner.learn(divergence) }
        let learned = NoiseFile.text(learner.rules)
        #expect(try page("a", "b").divergences(from: page("c", "d"), noise: learned).isEmpty)
    }

    @Test func `items are parsed with the declarations of their stream`() throws {
        let text = DivergenceBuilder.Text(
            bytes: Array("<message><x:a n='1'/></message>".utf8),
            root: Array(" xmlns='jabber:client' xmlns:x='urn:x'".utf8)
        )
        var other = text
        other.bytes = Array("<message><x:a n='2'/></message>".utf8)
        let key = SessionKey(run: "", number: 1)
        let builder = DivergenceBuilder(
            recorded: [key: [1: text]],
            live: [key: [1: other]],
            bindings: ValueBindings(),
            rules: NoiseRules(),
            parser: StanzaParser()
        )
        let place = RecordingDifference.Place(session: key, sequence: 1, at: 0, direction: .recv)
        let finding = RecordingDifference.Finding(code: .changed, recorded: place, live: place)
        #expect(builder.divergence(finding).differences.map(\.path) == ["message/{urn:x}a/@n"])
    }

    @Test func `items are compared as their receiver got them`() throws {
        let passed = Recording([(.send, "<message><body>b</body></message>")])
        var edited = Recording([(.send, "<message><body>a</body></message>")])
        edited.action = ("edited", "<message><body>b</body></message>")
        #expect(try passed.divergences(from: edited).isEmpty)
        var dropped = passed
        dropped.action = ("dropped", nil)
        #expect(try passed.divergences(from: dropped).map(\.code) == [.missing])
        #expect(try dropped.divergences(from: dropped).isEmpty)
    }

    @Test func `many accounts are found by their names`() throws {
        var names = AddressNames()
        for number in 0..<2000 { names.add("user\(number)@example.org", as: "<\(number)>") }
        names.add("example.org", as: "<domain>")
        func shared(_ text: String) -> String? {
            names.shared(text.utf8Span.span).map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(shared("user1999@example.org/x and user1@example.org.") == "<1999>/x and <1>.")
        #expect(shared("user2000@example.org, conference.example.org") == "user2000@<domain>, conference.<domain>")
        #expect(shared("example.organic") == nil)
    }
}
