import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapDiagnosis
import TapRecord
@testable import TapRules

/// Tests of sessions that resume an earlier one on a new connection (XEP-0198 §5).
@Suite struct ResumptionTests {
    private static let id = "sm-9b2f51c7d0e84a6f"
    private static let sm = "xmlns='urn:xmpp:sm:3'"

    /// Returns a session up to the features after its login; `user` is the name that logs in.
    private static func authenticated(_ run: Run, user: String = "juliet", at seconds: Int64) -> SessionHarness {
        var harness = SessionHarness(run: run)
        harness.now = harness.now.advanced(by: seconds * 1_000_000_000)
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        harness.send(FailedLogin.auth("PLAIN", "\0\(user)\0R0m30myr0m30"))
        harness.say(Array(Conversations.plainLogin[4..<8]))
        return harness
    }

    /// Returns a session that has bound a resource, and can be resumed.
    private static func resumable(
        _ run: Run,
        user: String = "juliet",
        id: String = id,
        max: Int? = nil,
        at seconds: Int64 = 0
    ) -> SessionHarness {
        var harness = authenticated(run, user: user, at: seconds)
        harness.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        harness.recv(
            "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>\(user)@example.org/balcony</jid></bind></iq>"
        )
        harness.send("<enable \(sm) resume='true'/>")
        let most = max.map { " max='\($0)'" } ?? ""
        harness.recv("<enabled \(sm) resume='true' id='\(id)'\(most)/>")
        return harness
    }

    /// Ends a session whose stream was not closed.
    private static func drop(_ harness: inout SessionHarness) {
        harness.end(.client, .reset)
        harness.close()
    }

    /// Returns a session that was resumed, and has received a message.
    private static func resumed(
        _ run: Run,
        user: String = "juliet",
        id: String = id,
        at seconds: Int64 = 1
    ) -> SessionHarness {
        var harness = authenticated(run, user: user, at: seconds)
        harness.send("<resume \(sm) h='0' previd='\(id)'/>")
        harness.recv("<resumed \(sm) h='0' previd='\(id)'/>")
        harness.recv("<message from='romeo@example.net' type='chat'><body>Call me but love</body></message>")
        return harness
    }

    private static func message(_ harness: borrowing SessionHarness) -> Record? {
        harness.told.last { $0.record.kind == .stanza && $0.text($0.record.name) == "message" }?.record
    }

    private static func ready(_ harness: borrowing SessionHarness) -> Record? {
        harness.told(code: "session-ready").first?.record
    }

    @Test func `a resumed session has the address of the previous session and names it`() throws {
        let run = Run()
        var first = Self.resumable(run)
        Self.drop(&first)
        let second = Self.resumed(run)
        let message = Self.message(second)
        try #require(message != nil)
        #expect(message?.jid == "juliet@example.org/balcony")
        let filter = LogFilter(try LogSpec("off,jid:juliet@example.org/balcony=info"))
        if let message { #expect(filter.shown(of: message) == .summary) }
        let ready = Self.ready(second)
        #expect(ready?.messageText == "ready as juliet@example.org/balcony: resumed session 1")
        #expect(ready?.details?["resumes"] == 1)
    }

    @Test func `contacts and counts continue in a resumed session, also without rules`() {
        let run = Run()
        var first = Self.resumable(run)
        first.recv(
            "<iq type='set' id='p'><query xmlns='jabber:iq:roster'><item jid='romeo@example.net' "
                + "subscription='both'/></query></iq>"
        )
        let before = first.session.snapshot(at: first.now).info
        Self.drop(&first)
        var second = Self.resumed(run)
        #expect(second.session.contacts(limit: 10).map(\.contact) == ["romeo@example.net"])
        let after = second.session.snapshot(at: second.now).info
        #expect(after.received.iq == before.received.iq && before.received.iq > 0)
        #expect(after.received.message == 1 && after.sent.iq == before.sent.iq && after.sent.bytes > before.sent.bytes)
        // The record of the new session contains only the counts of the new connection.
        #expect(second.session.info.received.iq == 0)
        Self.drop(&second)
        let third = Self.resumed(run, at: 2)
        #expect(third.session.snapshot(at: third.now).info.received.message == 2)
        #expect(third.session.contacts(limit: 10).count == 1)
    }

    @Test func `contacts and counts of a session that is still connected are added once it ends`() {
        let run = Run()
        var first = Self.resumable(run)
        func push(_ contact: String, _ subscription: String) -> String {
            "<iq type='set' id='p'><query xmlns='jabber:iq:roster'><item jid='\(contact)' "
                + "subscription='\(subscription)'/></query></iq>"
        }
        first.recv(push("romeo@example.net", "both") + push("nurse@example.net", "to"))
        var second = Self.resumed(run)
        second.recv(push("nurse@example.net", "from"))
        #expect(second.session.contacts(limit: 10).count == 1)
        let before = first.session.snapshot(at: first.now).info
        Self.drop(&first)
        second.recv("<presence/>")
        let contacts = Dictionary(
            uniqueKeysWithValues: second.session.contacts(limit: 10).map { ($0.contact, $0.state) }
        )
        #expect(contacts.count == 2 && contacts["nurse@example.net"]?.from == true)
        let after = second.session.snapshot(at: second.now).info
        #expect(after.received.iq == before.received.iq + 1 && after.sent.iq == before.sent.iq)
        Self.drop(&second)
        let third = Self.resumed(run, at: 2)
        #expect(third.session.snapshot(at: third.now).info.received.iq == after.received.iq)
        #expect(third.session.contacts(limit: 10).count == 2)
    }

    @Test func `each resumption names the previous session`() {
        let run = Run()
        for number in 1...4 {
            var harness = number == 1 ? Self.resumable(run) : Self.resumed(run, at: Int64(number - 1) * 500)
            if number > 1 { #expect(Self.ready(harness)?.details?["resumes"] == .integer(Int64(number) - 1)) }
            Self.drop(&harness)
        }
    }

    @Test func `a client can resume before its old connection has ended`() {
        let run = Run()
        var first = Self.resumable(run, max: 10)
        var second = Self.resumed(run, at: 5)
        #expect(Self.message(second)?.jid == "juliet@example.org/balcony")
        // The old connection ends after the new session has taken over, and the lifetime is counted from the new
        // session's end.
        Self.drop(&first)
        second.now = second.now.advanced(by: 3_600_000_000_000)
        Self.drop(&second)
        #expect(Self.ready(Self.resumed(run, at: 3610))?.details?["resumes"] == 2)
    }

    @Test func `a session is bound and resumed inside SASL2 authentication`() {
        let run = Run()
        var first = SessionHarness(run: run)
        first.say(Array(Conversations.sasl2.prefix(3)))
        first.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/balcony.1</authorization-identifier>"
                + "<bound xmlns='urn:xmpp:bind:0'><enabled \(Self.sm) resume='true' id='\(Self.id)'/></bound></success>"
        )
        Self.drop(&first)
        var second = SessionHarness(run: run)
        second.send(
            FailedLogin.header
                + "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>"
                + "<initial-response>AGp1bGlldABSMG0zMG15cjBtMzA=</initial-response>"
                + "<resume \(Self.sm) h='0' previd='\(Self.id)'/></authenticate>"
        )
        second.say(Array(Conversations.sasl2[1..<3]))
        second.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org</authorization-identifier>"
                + "<resumed \(Self.sm) h='0' previd='\(Self.id)'/></success>"
        )
        second.send("<message to='romeo@example.net'><body>Ay me</body></message>")
        #expect(Self.message(second)?.jid == "juliet@example.org/balcony.1")
        #expect(Self.ready(second)?.messageText?.hasSuffix("resumed session 1") == true)
    }

    @Test func `a resumption id is valid only for its own account`() {
        let run = Run()
        var first = Self.resumable(run)
        Self.drop(&first)
        let other = Self.resumed(run, user: "mercutio")
        #expect(Self.message(other)?.jid == "mercutio@example.org")
        #expect(Self.ready(other)?.details?["resumes"] == nil)
        // The attempt of the other account does not remove the entry of the first one.
        #expect(Self.message(Self.resumed(run))?.jid == "juliet@example.org/balcony")
    }

    @Test(arguments: [(300, 299, true), (300, 301, false), (nil, 599, true), (nil, 601, false)])
    func `a session can be resumed for as long as the server allows after its end`(
        max: Int?,
        later: Int64,
        isKnown: Bool
    ) {
        let run = Run()
        var first = Self.resumable(run, max: max)
        first.now = first.now.advanced(by: 7_200_000_000_000)
        Self.drop(&first)
        let second = Self.resumed(run, at: 7200 + later)
        #expect((Self.message(second)?.jid == "juliet@example.org/balcony") == isKnown)
    }

    @Test func `a session that was closed normally cannot be resumed`() {
        let run = Run()
        var first = Self.resumable(run)
        first.send("</stream:stream>")
        first.recv("</stream:stream>")
        first.end(.client)
        first.end(.server)
        first.close()
        #expect(Self.message(Self.resumed(run))?.jid == "juliet@example.org")
    }

    @Test func `a resumed session with an unknown id has the address of the account, and this is recorded`() {
        let told = Self.resumed(Run())
        #expect(Self.message(told)?.jid == "juliet@example.org")
        #expect(
            Self.ready(told)?.messageText
                == "ready as juliet@example.org: resumed a session that xmpptap has no record of"
        )
    }

    /// Returns the address of a session that logs in by some authentication elements, the last of which succeeds, and then resumes.
    private static func address(after attempts: [String]) -> String? {
        var harness = SessionHarness(run: Run())
        harness.say(Array(Conversations.plainLogin.prefix(3)))
        for attempt in attempts.dropLast() {
            harness.send(attempt)
            harness.recv("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>")
        }
        harness.send(attempts.last ?? "")
        harness.say(Array(Conversations.plainLogin[4..<8]))
        harness.send("<resume \(sm) h='0' previd='\(id)'/>")
        harness.recv("<resumed \(sm) h='0' previd='\(id)'/>")
        harness.recv("<message from='romeo@example.net' type='chat'><body>Call me but love</body></message>")
        return message(harness)?.jid
    }

    @Test func `a session that began elsewhere has the account of the login that succeeded, or none`() {
        let plain = FailedLogin.auth("PLAIN", "\0juliet\0R0m30myr0m30")
        let external = "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>"
        for (attempts, address) in [
            ([plain], "juliet@example.org"),
            ([plain, external], nil),
            ([external], nil),
            ([FailedLogin.auth("PLAIN", "romeo@example.org\0nurse\0R0m30myr0m30")], "romeo@example.org"),
            ([FailedLogin.auth("PLAIN", "\0juliet@example.org\0R0m30myr0m30")], "juliet@example.org"),
            ([FailedLogin.auth("PLAIN", "\0juliet@example.net\0R0m30myr0m30")], nil),
        ] as [([String], String?)] {
            #expect(Self.address(after: attempts) == address, "\(attempts)")
        }
    }

    @Test func `a session that began elsewhere takes its resource from the IQs that the server delivers`() {
        var harness = Self.resumed(Run())
        harness.recv(
            "<message from='romeo@example.net' to='juliet@example.org/earlier' type='chat'><body>1</body></message>"
        )
        #expect(Self.message(harness)?.jid == "juliet@example.org")
        harness.recv(
            "<iq type='get' id='p1' from='example.org' to='other@example.org/x'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        harness.recv(
            "<iq type='get' id='p2' from='example.org' to='juliet@example.org'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        harness.recv("<message from='romeo@example.net' type='chat'><body>2</body></message>")
        #expect(Self.message(harness)?.jid == "juliet@example.org")
        harness.recv(
            "<iq type='get' id='p3' from='example.org' to='juliet@example.org/balcony'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        harness.recv("<message from='romeo@example.net' type='chat'><body>3</body></message>")
        #expect(Self.message(harness)?.jid == "juliet@example.org/balcony")
    }

    @Test func `a session that began elsewhere is known when it is resumed again, with the resource that it has shown`()
    {
        let run = Run()
        var first = Self.resumed(run)
        first.recv(
            "<iq type='get' id='p1' from='example.org' to='juliet@example.org/balcony'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        Self.drop(&first)
        var second = Self.resumed(run, at: 2)
        #expect(
            Self.ready(second)?.messageText == "ready as juliet@example.org/balcony: resumed session 1"
        )
        // A stanza of another resource would come from nowhere.
        second.inject(
            Injection(Array("<message from='juliet@example.org/other' to='romeo@example.net'/>".utf8), to: .server)
        )
        let fault = InjectionFault.foreignSender("juliet@example.org/other", jid: "juliet@example.org/balcony")
        #expect(second.injected.map(\.outcome) == [.failed(fault)])
    }

    @Test func `the resource that a session has shown passes to the one that resumes it while it is connected`() {
        let run = Run()
        var first = Self.resumed(run)
        first.recv(
            "<iq type='get' id='p1' from='example.org' to='juliet@example.org/balcony'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        var second = Self.resumed(run, at: 2)
        Self.drop(&first)
        second.recv("<message from='romeo@example.net' type='chat'><body>2</body></message>")
        #expect(Self.message(second)?.jid == "juliet@example.org/balcony")
    }

    @Test func `a session that began elsewhere finds its resource after it was resumed again`() {
        let run = Run()
        var first = Self.resumed(run)
        Self.drop(&first)
        var second = Self.resumed(run, at: 2)
        #expect(Self.ready(second)?.messageText == "ready as juliet@example.org: resumed session 1")
        second.recv(
            "<iq type='get' id='p1' from='example.org' to='juliet@example.org/balcony'><ping xmlns='urn:xmpp:ping'/></iq>"
        )
        second.recv("<message from='romeo@example.net' type='chat'><body>2</body></message>")
        #expect(Self.message(second)?.jid == "juliet@example.org/balcony")
    }

    @Test func `a stanza from any resource of the account can be injected while the resource is unknown`() {
        var harness = Self.resumed(Run())
        for sender in ["juliet@example.org/balcony", "juliet@example.org", "nurse@example.org"] {
            harness.inject(Injection(Array("<message from='\(sender)' to='romeo@example.net'/>".utf8), to: .server))
        }
        let fault = InjectionFault.foreignSender("nurse@example.org", jid: "juliet@example.org")
        #expect(harness.injected.map(\.outcome) == [.sent, .sent, .failed(fault)])
    }

    @Test func `a session resumed with SASL2 has the address that the server names`() {
        var harness = SessionHarness(run: Run())
        harness.send(
            FailedLogin.header + "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='EXTERNAL'>"
                + "<initial-response>=</initial-response><resume \(Self.sm) h='0' previd='\(Self.id)'/></authenticate>"
        )
        harness.say(Array(Conversations.sasl2[1..<3]))
        harness.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org</authorization-identifier>"
                + "<resumed \(Self.sm) h='0' previd='\(Self.id)'/></success>"
        )
        harness.recv("<message from='romeo@example.net' type='chat'><body>Call me but love</body></message>")
        #expect(Self.message(harness)?.jid == "juliet@example.org")
    }

    @Test func `a session without a user name in its login can be resumed`() {
        func login(_ run: Run) -> SessionHarness {
            var harness = SessionHarness(run: run)
            harness.say(Array(Conversations.plainLogin.prefix(3)))
            harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='EXTERNAL'>=</auth>")
            harness.say(Array(Conversations.plainLogin[4..<8]))
            return harness
        }
        let run = Run()
        var first = login(run)
        first.send("<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        first.recv(
            "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                + "<jid>juliet@example.org/balcony</jid></bind></iq>"
        )
        first.send("<enable \(Self.sm) resume='true'/>")
        first.recv("<enabled \(Self.sm) resume='true' id='\(Self.id)'/>")
        Self.drop(&first)
        var second = login(run)
        second.send("<resume \(Self.sm) h='0' previd='\(Self.id)'/>")
        second.recv("<resumed \(Self.sm) h='0' previd='\(Self.id)'/>")
        #expect(Self.ready(second)?.messageText == "ready as juliet@example.org/balcony: resumed session 1")
    }

    private static func content(_ session: UInt64) -> ResumptionTable.Suspended {
        ResumptionTable.Suspended(jid: "juliet@example.org/\(session)", session: session)
    }

    @Test(arguments: [Int64.max, 9_999_999_999])
    func `repeated suspensions of a session leave few entries, whatever lifetime the server grants`(seconds: Int64) {
        let table = ResumptionTable()
        let key = table.key(id: Self.id, account: "juliet@example.org")
        table.enable(key, Self.content(1), seconds: seconds)
        // All calls have the same time, so each suspension expires at the same time.
        for _ in 0..<10_000 {
            table.suspend(key, of: 1, at: 5)
            #expect(table.resume(key, by: 1, at: 5) != nil)
        }
        #expect(table.count == 1 && table.traceCount < 100)
        table.suspend(key, of: 1, at: 0)
        #expect(table.resume(key, by: 1, at: (ResumptionTable.maximumLifetime + 1) * 1_000_000_000) == nil)
    }

    @Test func `the session that has been suspended longest is forgotten if the table is full`() {
        let table = ResumptionTable()
        let count = UInt64(ResumptionTable.capacity)
        let keys = (0...count).map { table.key(id: "\($0)", account: "juliet@example.org") }
        for number in 0..<count { table.enable(keys[Int(number)], Self.content(number), seconds: nil) }
        // All sessions are connected, so another one does not fit.
        table.enable(keys[Int(count)], Self.content(count), seconds: nil)
        #expect(table.count == ResumptionTable.capacity && table.resume(keys[Int(count)], by: 1, at: 0) == nil)
        // The first session was resumed and suspended again, so the second has been suspended for longest.
        table.suspend(keys[0], of: 0, at: 1)
        table.suspend(keys[1], of: 1, at: 1)
        #expect(table.resume(keys[0], by: 0, at: 1) != nil)
        table.suspend(keys[0], of: 0, at: 1)
        table.enable(keys[Int(count)], Self.content(count), seconds: nil)
        #expect(table.count == ResumptionTable.capacity)
        #expect(table.resume(keys[1], by: 1, at: 1) == nil && table.resume(keys[0], by: 0, at: 1) != nil)
    }

    @Test func `the state of suspended sessions besides their counts is limited in bytes`() {
        let table = ResumptionTable()
        var state = RuleState(seed: 1)
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(
            Array("<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>".utf8).span
        )
        _ = decoder.next()
        let resource = String(repeating: "r", count: 1000)
        for number in 0..<1000 {
            decoder.append(Array("<presence to='a@example.org/\(resource)\(number)'/>".utf8).span)
            if let event = decoder.next() { state.observePresence(event.head, decoder.bytes) }
        }
        let memory = RuleMemory(marks: [:], directedPresence: state.directedPresence, generator: 1, rules: [])
        #expect(memory.byteCount > 200 << 10)
        let counts = EarlierCounts(SessionInfo.Counts(), SessionInfo.Counts())
        let legacy = TransferredState(jid: nil, roster: Roster(), counts: counts, rules: memory)
        for number in 0..<100 as Range<UInt64> {
            let key = table.key(id: "\(number)", account: "juliet@example.org")
            table.enable(key, ResumptionTable.Suspended(jid: "juliet@example.org/x", session: number), seconds: nil)
            table.suspend(key, of: number, at: 0, legacy: legacy)
        }
        #expect(table.ledgerByteCount <= ResumptionTable.ledgerByteCapacity)
        #expect(table.count < 100 && table.count > 50)
    }

    @Test func `the memory of rules is passed to one session only, and the roster counts for the limit`() {
        let table = ResumptionTable()
        let key = table.key(id: "a", account: "juliet@example.org")
        var roster = Roster()
        _ = roster.observe(.subscribe, .recv, contact: "romeo@example.net")
        let memory = RuleMemory(marks: ["m": 1], directedPresence: DirectedPresence(), generator: 1, rules: [])
        let counts = EarlierCounts(SessionInfo.Counts(), SessionInfo.Counts())
        let legacy = TransferredState(jid: nil, roster: roster, counts: counts, rules: memory)
        table.enable(key, ResumptionTable.Suspended(jid: "juliet@example.org/x", session: 1), seconds: nil)
        table.suspend(key, of: 1, at: 0, legacy: legacy)
        #expect(table.ledgerByteCount == roster.byteCount + memory.byteCount && memory.byteCount > 0)
        #expect(table.resume(key, by: 2, at: 1)?.legacy?.rules?.marks == ["m": 1])
        #expect(table.ledgerByteCount == 0)
        // The second session is still connected.
        let second = table.resume(key, by: 3, at: 2)
        #expect(second?.session == 2 && second?.legacy == nil)
    }

    @Test func `the bytes of stored addresses are limited, and an overlong address is not stored`() {
        let table = ResumptionTable()
        let long = String(repeating: "a", count: ResumptionTable.maximumJIDLength)
        for number in 0..<2_000 as Range<UInt64> {
            let key = table.key(id: "\(number)", account: "juliet@example.org")
            table.enable(key, ResumptionTable.Suspended(jid: long, session: number), seconds: nil)
            table.suspend(key, of: number, at: Int64(number))
        }
        #expect(table.byteCount <= ResumptionTable.byteCapacity)
        #expect(table.count == ResumptionTable.byteCapacity / ResumptionTable.maximumJIDLength)
        let key = table.key(id: "x", account: "juliet@example.org")
        table.enable(key, ResumptionTable.Suspended(jid: long + "a", session: 1), seconds: nil)
        #expect(table.resume(key, by: 1, at: 0) == nil)
    }

    @Test(arguments: [RedactionPolicy.secrets, .bodies, .metadata])
    func `the resumption id is redacted in every record`(policy: RedactionPolicy) {
        let run = Run()
        for _ in 0..<2 {
            let options = SessionOptions(level: .trace, redaction: policy)
            var harness = SessionHarness(options: options, run: run)
            harness.say(Array(Conversations.plainLogin.prefix(10)))
            harness.send("<enable \(Self.sm) resume='true'/>")
            harness.recv("<enabled \(Self.sm) resume='true' id='\(Self.id)' max='300'/>")
            harness.end(.client, .reset)
            harness.close()
            for told in harness.told {
                var line = LineBuffer()
                var form = JSONForm()
                form.append(told.record, content: told.content.span, [.content, .chunks], to: &line)
                #expect(!String(decoding: line.bytes, as: UTF8.self).contains(Self.id))
            }
        }
    }
}
