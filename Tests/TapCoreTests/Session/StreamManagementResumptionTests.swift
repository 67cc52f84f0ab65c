import Synchronization
import TapRecord
import TapRules
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

private let sm = "xmlns='urn:xmpp:sm:3'"

/// Tests of sessions that resume one whose stanza counts have diverged (XEP-0198 §5).
@Suite struct StreamManagementResumptionTests {
    private static func message(_ number: Int) -> String { "<message id='m\(number)'/>" }

    /// Returns a session up to the features after its login.
    private static func authenticated(_ run: Run, at seconds: Int64) -> SessionHarness {
        var harness = SessionHarness(run: run)
        harness.now = harness.now.advanced(by: seconds * 1_000_000_000)
        harness.say(Array(Conversations.plainLogin.prefix(8)))
        return harness
    }

    /// Returns a resumable session.
    private static func enabled(_ run: Run, max: Int = 60) -> SessionHarness {
        var harness = authenticated(run, at: 0)
        harness.say(Array(Conversations.plainLogin[8..<10]))
        harness.send("<enable \(sm) resume='true'/>")
        harness.recv("<enabled \(sm) resume='true' id='i1' max='\(max)'/>")
        return harness
    }

    /// Closes the connections of a session whose stream was not closed.
    private static func drop(_ harness: inout SessionHarness) {
        harness.end(.client, .reset)
        harness.close()
    }

    private static func inject(_ item: String, to leg: Leg, swallowing: Bool = false, _ harness: inout SessionHarness) {
        harness.inject(Injection(Array(item.utf8), to: leg, swallowsAnswer: swallowing))
    }

    /// Returns the bytes that the server receives for the client's text.
    private static func send(_ text: String, _ harness: inout SessionHarness) -> String {
        let start = harness.toServer.count
        harness.send(text)
        return String(decoding: harness.toServer[start...], as: UTF8.self)
    }

    /// Returns the bytes that the client receives for the server's text.
    private static func recv(_ text: String, _ harness: inout SessionHarness) -> String {
        let start = harness.toClient.count
        harness.recv(text)
        return String(decoding: harness.toClient[start...], as: UTF8.self)
    }

    @Test func `a resumption translates both counts, and both sides retransmit unhandled stanzas`() {
        let run = Run()
        var first = Self.enabled(run)
        first.send(Self.message(1))
        first.recv(Self.message(1))
        Self.inject("<message id='a'/>", to: .server, &first)
        Self.inject("<iq type='get' id='xt-1'/>", to: .client, swallowing: true, &first)
        first.send(Self.message(2))
        Self.inject("<message id='b'/>", to: .server, &first)
        Self.inject("<message id='c'/>", to: .client, &first)
        first.send(Self.message(3) + "<iq type='result' id='xt-1'/>" + Self.message(5))
        first.recv(Self.message(2) + Self.message(3))
        Self.drop(&first)

        // The server has handled 5 stanzas, and the client 4.
        var second = Self.authenticated(run, at: 1)
        #expect(
            Self.send("<resume \(sm) h='4' previd='i1'/>", &second) == "<resume \(sm) h='2' previd='i1'/>"
        )
        #expect(Self.recv("<resumed \(sm) h='5' previd='i1'/>", &second) == "<resumed \(sm) h='4' previd='i1'/>")
        #expect(Self.send(Self.message(5), &second) == Self.message(5))
        #expect(Self.recv(Self.message(3), &second) == Self.message(3))
        #expect(Self.recv("<a \(sm) h='6'/>", &second) == "<a \(sm) h='5'/>")
        #expect(Self.send("<a \(sm) h='5'/>", &second) == "<a \(sm) h='3'/>")
        let (isCutThrough, isFine) = (
            second.session.isCutThrough(.send), second.told(code: "wrong-acknowledgement").isEmpty
        )
        #expect(!isCutThrough && isFine)
        // The session is resumed a second time.
        Self.drop(&second)
        var third = Self.authenticated(run, at: 2)
        #expect(Self.send("<resume \(sm) h='5' previd='i1'/>", &third) == "<resume \(sm) h='3' previd='i1'/>")
    }

    @Test
    func `the counts of a session that began elsewhere are translated after they diverge, also when it is resumed`() {
        let run = Run()
        var first = Self.authenticated(run, at: 0)
        let resume = "<resume \(sm) h='7' previd='i1'/>"
        #expect(Self.send(resume, &first) == resume)
        let resumed = "<resumed \(sm) h='20' previd='i1'/>"
        #expect(Self.recv(resumed, &first) == resumed)
        Self.inject("<message id='a'/>", to: .server, &first)
        Self.inject("<message id='b'/>", to: .client, &first)
        first.send(Self.message(1))
        #expect(Self.recv("<a \(sm) h='22'/>", &first) == "<a \(sm) h='21'/>")
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        #expect(Self.send("<resume \(sm) h='8' previd='i1'/>", &second) == "<resume \(sm) h='7' previd='i1'/>")
        #expect(Self.recv("<resumed \(sm) h='22' previd='i1'/>", &second) == "<resumed \(sm) h='21' previd='i1'/>")
        #expect(Self.send("<a \(sm) h='8'/>", &second) == "<a \(sm) h='7'/>")
        let found = second.told(code: "wrong-acknowledgement")
        #expect(found.isEmpty)
    }

    @Test func `a session that was resumed elsewhere in the meantime continues with the counts of both ends`() {
        let run = Run()
        var first = Self.enabled(run)
        first.send(Self.message(1))
        first.recv(Self.message(1))
        Self.drop(&first)
        // Elsewhere, more stanzas were sent in both directions.
        var second = Self.authenticated(run, at: 1)
        let resume = "<resume \(sm) h='8' previd='i1'/>"
        #expect(Self.send(resume, &second) == resume)
        let resumed = "<resumed \(sm) h='20' previd='i1'/>"
        #expect(Self.recv(resumed, &second) == resumed)
        Self.inject("<message id='a'/>", to: .server, &second)
        second.send(Self.message(2))
        #expect(Self.recv("<a \(sm) h='22'/>", &second) == "<a \(sm) h='21'/>")
        second.recv(Self.message(2))
        #expect(Self.send("<a \(sm) h='9'/>", &second) == "<a \(sm) h='9'/>")
        #expect(second.told(code: "wrong-acknowledgement").isEmpty)
    }

    @Test func `a login without a name finds the counts of a session that began elsewhere`() {
        let run = Run()
        func authenticate(_ resume: String) -> SessionHarness {
            var harness = SessionHarness(run: run)
            harness.send(
                FailedLogin.header + "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='EXTERNAL'>"
                    + "<initial-response>=</initial-response>\(resume)</authenticate>"
            )
            harness.say(Array(Conversations.sasl2[1..<3]))
            return harness
        }
        func succeed(_ count: Int, _ harness: inout SessionHarness) -> String {
            Self.recv(
                "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org</authorization-identifier>"
                    + "<resumed \(sm) h='\(count)' previd='i1'/></success>",
                &harness
            )
        }
        var first = authenticate("<resume \(sm) h='7' previd='i1'/>")
        #expect(succeed(20, &first).contains("h='20'"))
        Self.inject("<message id='a'/>", to: .server, &first)
        Self.drop(&first)
        var second = authenticate("<resume \(sm) h='7' previd='i1'/>")
        #expect(succeed(21, &second).contains("h='20'"))
    }

    @Test func `a session with equal counts is resumed unchanged and in cut-through mode`() {
        let run = Run()
        var first = Self.enabled(run)
        first.send(Self.message(1) + Self.message(2))
        first.recv(Self.message(1))
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        let resume = "<resume \(sm) h='1' previd='i1'/>"
        #expect(Self.send(resume, &second) == resume)
        let resumed = "<resumed \(sm) h='1' previd='i1'/>"
        #expect(Self.recv(resumed, &second) == resumed)
        let isCutThrough = second.session.isCutThrough(.send)
        #expect(isCutThrough)
        // The counts include the stanzas that were sent on the earlier connection.
        second.send(Self.message(2))
        second.recv("<a \(sm) h='3'/>")
        #expect(second.told(code: "wrong-acknowledgement").first?.record.details?["difference"] == 1)
    }

    @Test func `a session whose counts were lost is resumed with the counts of both ends`() {
        let run = Run()
        var first = Self.enabled(run)
        first.recv("<message><!-- a --></message>" + Self.message(1) + Self.message(2))
        first.send(Self.message(1))
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        let resume = "<resume \(sm) h='3' previd='i1'/>"
        #expect(Self.send(resume, &second) == resume)
        let resumed = "<resumed \(sm) h='1' previd='i1'/>"
        #expect(Self.recv(resumed, &second) == resumed)
        Self.inject("<message id='a'/>", to: .server, &second)
        #expect(Self.recv("<a \(sm) h='2'/>", &second) == "<a \(sm) h='1'/>")
        #expect(second.told(code: "wrong-acknowledgement").isEmpty)
    }

    @Test func `a session cannot be resumed if a stanza was dropped after its counts were lost`() throws {
        let run = Run()
        var first = Self.enabled(run)
        first.recv("<message><!-- a --></message>")
        first.handle(.rules(try RuleSet.test("KIND: message\nDROP.")))
        #expect(Self.send(Self.message(1) + "<presence/>", &first) == "<presence/>")
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        #expect(Self.send("<resume \(sm) h='1' previd='i1'/>", &second).isEmpty)
        #expect(String(decoding: second.toClient, as: UTF8.self).contains("<item-not-found"))
    }

    @Test func `the late answer to an injected request is dropped after a resumption too`() throws {
        let run = Run()
        var first = Self.enabled(run)
        let id = first.session.injectedID(1)
        Self.inject("<iq type='get' id='\(id)'/>", to: .server, swallowing: true, &first)
        Self.inject("<iq type='get' id='xt-2'/>", to: .client, swallowing: true, &first)
        Self.drop(&first)
        #expect(first.injected.map(\.outcome) == [.sent, .sent, .failed(.ended), .failed(.ended)])
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='1' previd='i1'/>")
        let resumed = "<resumed \(sm) h='1' previd='i1'/>"
        let answer = "<iq type='result' id='\(id)' from='juliet@example.org/balcony'/>"
        #expect(Self.recv(resumed + answer + Self.message(1), &second).hasSuffix("'i1'/>" + Self.message(1)))
        Self.drop(&second)
        // The other answer arrives after a second resumption.
        var third = Self.authenticated(run, at: 2)
        third.send("<resume \(sm) h='2' previd='i1'/>")
        third.recv("<resumed \(sm) h='1' previd='i1'/>")
        #expect(Self.send("<iq type='result' id='xt-2'/><presence/>", &third) == "<presence/>")
        #expect(third.session.isInjecting == false)
        #expect(run.resumptions.ledgerByteCount == 0)
    }

    @Test func `answers to requests from before stream management are dropped after a resumption in one read`() {
        let run = Run()
        var first = Self.authenticated(run, at: 0)
        first.say(Array(Conversations.plainLogin[8..<10]))
        Self.inject("<iq type='get' id='xt-1'/>", to: .server, swallowing: true, &first)
        first.send("<enable \(sm) resume='true'/>")
        first.recv("<enabled \(sm) resume='true' id='i1' max='60'/>")
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='0' previd='i1'/>")
        let resumed = "<resumed \(sm) h='0' previd='i1'/>"
        #expect(
            Self.recv(resumed + "<iq type='result' id='xt-1'/>" + Self.message(1), &second) == resumed + Self.message(1)
        )
        #expect(second.session.isInjecting == false)
    }

    @Test func `requests that a resumed session inherits are forgotten after a time limit`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<iq type='get' id='xt-1'/>", to: .server, swallowing: true, &first)
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='0' previd='i1'/>")
        second.recv("<resumed \(sm) h='1' previd='i1'/>")
        #expect(second.session.isInjecting == true)
        second.wait(Injections.lateness)
        #expect(second.session.isInjecting == false)
    }

    @Test func `a lost injected message is injected again after a resumption, a ping is not`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<message id='a'/>", to: .client, &first)
        first.send("<a \(sm) h='1'/>")
        Self.inject("<message id='b'/>", to: .client, &first)
        Self.inject("<iq type='get' id='xt-1'/>", to: .client, swallowing: true, &first)
        Self.inject("<message id='c'/>", to: .server, &first)
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='1' previd='i1'/>")
        let before = second.toServer.count
        #expect(
            Self.recv("<resumed \(sm) h='0' previd='i1'/>", &second)
                == "<resumed \(sm) h='0' previd='i1'/><message id='b'/>"
        )
        #expect(String(decoding: second.toServer[before...], as: UTF8.self) == "<message id='c'/>")
        #expect(second.injected.isEmpty)
        // The messages that are injected again are counted as before.
        second.recv(Self.message(1))
        #expect(Self.send("<a \(sm) h='3'/>", &second) == "<a \(sm) h='1'/>")
    }

    @Test func `a rule's stanza for a closed connection is sent after the resumption`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<message id='a'/>", to: .client, &first)
        first.end(.client)
        let bounce = "<message id='b' type='error'/>"
        first.inject(Injection(Array(bounce.utf8), to: .server, number: Injection.ruleNumber))
        #expect(first.told(code: "rule-injection-failed").isEmpty)
        first.end(.server)
        first.close()
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='1' previd='i1'/>")
        let before = second.toServer.count
        second.recv("<resumed \(sm) h='0' previd='i1'/>")
        #expect(String(decoding: second.toServer[before...], as: UTF8.self) == bounce)
        #expect(Self.recv("<a \(sm) h='1'/>", &second) == "<a \(sm) h='0'/>")
    }

    @Test(arguments: [false, true])
    func `a rule's stanza of a session that is resumed while connected is sent by the new session`(
        endsBeforeTheAnswer: Bool
    ) {
        let run = Run()
        var first = Self.enabled(run)
        first.end(.client)
        let bounce = "<message id='b' type='error'/>"
        first.inject(Injection(Array(bounce.utf8), to: .server, number: Injection.ruleNumber))
        func end() {
            first.end(.server)
            first.close()
        }
        var second = Self.authenticated(run, at: 1)
        second.send("<resume \(sm) h='0' previd='i1'/>")
        let before = second.toServer.count
        if endsBeforeTheAnswer { end() }
        second.recv("<resumed \(sm) h='0' previd='i1'/>")
        if !endsBeforeTheAnswer { end() }
        #expect(first.told(code: "rule-injection-failed").isEmpty)
        second.recv(Self.message(1))
        #expect(String(decoding: second.toServer[before...], as: UTF8.self) == bounce)
    }

    @Test func `a dropped answer is dropped again when the server retransmits it`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<iq type='get' id='xt-1'/>", to: .server, swallowing: true, &first)
        first.recv(Self.message(1) + "<iq type='result' id='xt-1'/>")
        Self.drop(&first)
        var second = Self.authenticated(run, at: 1)
        #expect(Self.send("<resume \(sm) h='0' previd='i1'/>", &second).contains("h='0'"))
        second.recv("<resumed \(sm) h='1' previd='i1'/>")
        #expect(
            Self.recv(Self.message(1) + "<iq type='result' id='xt-1'/>" + Self.message(3), &second)
                == Self.message(1) + Self.message(3)
        )
        #expect(Self.send("<a \(sm) h='2'/>", &second) == "<a \(sm) h='3'/>")
    }

    @Test func `a connected session passes its counts to the session that resumes it`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<message id='a'/>", to: .client, &first)
        first.recv(Self.message(1))
        var second = Self.authenticated(run, at: 1)
        // Later stanzas wait with the request, including those that arrive in later reads.
        #expect(Self.send("<resume \(sm) h='2' previd='i1'/>" + Self.message(1), &second).isEmpty)
        #expect(Self.send(Self.message(2), &second).isEmpty)
        #expect(second.displaced == [first.session.number])
        first.handle(.displaced(by: second.session.number))
        #expect(first.closed == true)
        let start = second.toServer.count
        second.handle(.displaces)
        #expect(
            String(decoding: second.toServer[start...], as: UTF8.self)
                == "<resume \(sm) h='1' previd='i1'/>" + Self.message(1) + Self.message(2)
        )
        // After the connections are closed, the entry in the table belongs to the session that resumed it.
        first.close()
        #expect(Self.recv("<resumed \(sm) h='0' previd='i1'/>", &second) == "<resumed \(sm) h='0' previd='i1'/>")
        #expect(Self.send("<a \(sm) h='3'/>", &second) == "<a \(sm) h='2'/>")
        #expect(second.told(code: "session-ready").first?.record.messageText?.contains("resumed session 1") == true)
        let end = first.told(code: "session-ended").first?.record
        #expect(end?.messageText?.contains("resumed as session 2") == true)
        Self.drop(&second)
        var third = Self.authenticated(run, at: 2)
        #expect(Self.send("<resume \(sm) h='3' previd='i1'/>", &third) == "<resume \(sm) h='2' previd='i1'/>")
    }

    @Test func `an ending session passes on its counts before its connections are closed`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<message/>", to: .client, &first)
        first.end(.client, .reset)
        var second = Self.authenticated(run, at: 1)
        #expect(Self.send("<resume \(sm) h='1' previd='i1'/>", &second) == "<resume \(sm) h='0' previd='i1'/>")
        first.close()
        #expect(Self.recv("<resumed \(sm) h='0' previd='i1'/>", &second) == "<resumed \(sm) h='0' previd='i1'/>")
        #expect(Self.send("<a \(sm) h='1'/>", &second) == "<a \(sm) h='0'/>")
    }

    @Test func `a connected session with equal counts is not displaced by its resumption`() {
        let run = Run()
        let first = Self.enabled(run)
        var second = Self.authenticated(run, at: 1)
        let resume = "<resume \(sm) h='0' previd='i1'/>"
        #expect(Self.send(resume, &second) == resume)
        #expect(second.displaced.isEmpty && first.closed == nil)
    }

    @Test func `a session that does not pass on its counts within 5 s cannot be resumed`() {
        let run = Run()
        var first = Self.enabled(run)
        Self.inject("<message/>", to: .client, &first)
        var second = Self.authenticated(run, at: 1)
        let before = second.toClient.count
        #expect(Self.send("<resume \(sm) h='1' previd='i1'/>", &second).isEmpty)
        second.wait(4_900_000_000)
        #expect(second.toClient.count == before)
        second.wait(200_000_000)
        #expect(String(decoding: second.toClient[before...], as: UTF8.self).contains("item-not-found"))
        second.say(Array(Conversations.plainLogin[8..<10]))
        #expect(second.session.info.opened != nil)
    }

    private final class Journal: ResumptionJournal {
        let marks = Mutex<Set<[UInt8]>>([])

        func mark(of session: [UInt8]) -> [UInt8]? { session.reversed() }
        func add(_ marks: [[UInt8]]) { self.marks.withLock { $0.formUnion(marks) } }
        func found(of marks: [[UInt8]]) -> Set<[UInt8]> { self.marks.withLock { $0.intersection(marks) } }
    }

    /// Returns a session of another run, whose journal contains the first session if that has diverged. Its journal
    /// searches wait for ``SessionHarness/answerSearch()``.
    private static func restarted(hasDiverged: Bool) -> SessionHarness {
        let journal = Journal()
        var first = enabled(Run(journal: journal))
        first.recv(message(1))
        if hasDiverged { inject("<message/>", to: .client, &first) }
        var second = authenticated(Run(journal: journal), at: 1)
        second.keepsSearches = true
        return second
    }

    @Test func `a session is added to the journal directly after the bytes that make its counts differ`() {
        let journal = Journal()
        var first = Self.enabled(Run(journal: journal))
        first.recv(Self.message(1))
        #expect(first.added.isEmpty)
        Self.inject("<message id='a'/>", to: .client, &first)
        #expect(first.added.map(\.toClient) == [first.toClient.count])
        // The journal contains the session already.
        Self.inject("<message id='b'/>", to: .client, &first)
        #expect(first.added.count == 1)
    }

    @Test(arguments: [true, false])
    func `a resume request waits for the journal, and later stanzas keep their order`(hasDiverged: Bool) {
        var second = Self.restarted(hasDiverged: hasDiverged)
        let (resume, before) = ("<resume \(sm) h='1' previd='i1'/>", second.toClient.count)
        #expect(Self.send(resume + Self.message(1), &second).isEmpty)
        #expect(Self.send(Self.message(2), &second).isEmpty)
        // The other direction does not wait.
        let features = "<iq type='get' id='s1'/>"
        #expect(Self.recv(features, &second) == features)
        let (start, count) = (second.toServer.count, second.searches.count)
        #expect(count == 1)
        second.answerSearch()
        let passed = String(decoding: second.toServer[start...], as: UTF8.self)
        #expect(passed == (hasDiverged ? "" : resume) + Self.message(1) + Self.message(2))
        let answer = String(decoding: second.toClient[before...], as: UTF8.self)
        #expect(answer.contains("item-not-found") == hasDiverged)
    }

    /// An event while a request to resume waits. Later bytes must not overtake the request.
    private enum Meanwhile: CaseIterable {
        case ready, serverEnds, clientEnds, undecodable, compressed
    }

    @Test(arguments: Meanwhile.allCases)
    private func `a delayed resume request is relayed, whatever happens meanwhile`(meanwhile: Meanwhile) {
        var second = Self.restarted(hasDiverged: false)
        let resume = "<resume \(sm) h='1' previd='i1'/>"
        let start = second.toServer.count
        #expect(Self.send(resume + Self.message(1), &second).isEmpty)
        switch meanwhile {
        case .ready: second.recv("<resumed \(sm) h='0' previd='i1'/>" + Self.message(1))
        case .serverEnds: second.end(.server, .finished)
        case .clientEnds: second.end(.client, .finished)
        case .undecodable: second.recv("<a><b></a>")
        case .compressed: second.recv("<compressed xmlns='http://jabber.org/protocol/compress'/>")
        }
        second.answerSearch()
        let passed = String(decoding: second.toServer[start...], as: UTF8.self)
        #expect(passed == resume + Self.message(1))
        for line in second.told where line.record.direction == .recv {
            let texts = "\(line.text(line.record.name) ?? "") \(line.xml ?? "")"
            #expect(!texts.contains("resume "), "\(texts)")
        }
        second.end(.client, .finished)
        second.end(.server, .finished)
        #expect(second.closed == false)
    }

    @Test func `each resume request is searched separately, and late search results are ignored`() {
        var second = Self.restarted(hasDiverged: true)
        let other = "<resume \(sm) h='1' previd='i2'/>"
        #expect(Self.send(other, &second).isEmpty)
        let marks = second.searches
        // The journal is not read in time.
        #expect(marks.count == 1)
        second.wait(4_900_000_000)
        let start = second.toServer.count
        second.wait(200_000_000)
        #expect(String(decoding: second.toServer[start...], as: UTF8.self) == other)
        let before = second.toClient.count
        #expect(Self.send("<resume \(sm) h='1' previd='i1'/>", &second).isEmpty)
        for marks in marks { second.handle(.searchedJournal(marks, isFound: false)) }
        let count = second.toClient.count
        #expect(count == before)
        second.answerSearch()
        second.answerSearch()
        #expect(String(decoding: second.toClient[before...], as: UTF8.self).contains("item-not-found"))
    }

    @Test func `a client that disconnects while the journal is searched ends its session`() {
        var second = Self.restarted(hasDiverged: true)
        second.send("<resume \(sm) h='1' previd='i1'/>")
        second.end(.client, .reset)
        #expect(second.closed == true)
        second.answerSearch()
        second.close()
        #expect(!second.told(code: "session-ended").isEmpty)
    }

    @Test(arguments: [true, false])
    func `after a restart a session can be resumed only if its counts are equal`(hasDiverged: Bool) {
        let journal = Journal()
        var first = Self.enabled(Run(journal: journal))
        first.recv(Self.message(1))
        if hasDiverged {
            Self.inject("<message/>", to: .client, &first)
            Self.inject("<message/>", to: .client, &first)
        }
        #expect(journal.marks.withLock { $0.count } == (hasDiverged ? 1 : 0))
        // Only the journal of the first run is kept.
        var second = Self.authenticated(Run(journal: journal), at: 1)
        let (resume, before) = ("<resume \(sm) h='1' previd='i1'/>", second.toClient.count)
        #expect(Self.send(resume, &second) == (hasDiverged ? "" : resume))
        let answer = String(decoding: second.toClient[before...], as: UTF8.self)
        #expect(answer.contains("item-not-found") == hasDiverged)
        // A session of another account with the same id is not affected.
        var other = SessionHarness(run: Run(journal: journal))
        other.say(Array(Conversations.plainLogin.prefix(3)))
        other.send(FailedLogin.auth("PLAIN", "\0romeo\0R0m30myr0m30"))
        other.say(Array(Conversations.plainLogin[4..<8]))
        #expect(Self.send(resume, &other) == resume)
    }

    @Test func `after a restart a resume with different counts is removed from SASL2 authentication`() {
        let journal = Journal()
        var first = Self.enabled(Run(journal: journal))
        Self.inject("<message/>", to: .client, &first)
        var second = SessionHarness(run: Run(journal: journal))
        second.send(FailedLogin.header)
        let login =
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>"
            + "<initial-response>AGp1bGlldABSMG0zMG15cjBtMzA=</initial-response>"
            + "<resume \(sm) h='2' previd='i1'/></authenticate>"
        #expect(
            Self.send(login, &second) == login.replacing("<resume \(sm) h='2' previd='i1'/>", with: "")
        )
        second.say(Array(Conversations.sasl2[1..<3]))
        #expect(
            Self.recv(
                "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org"
                    + "</authorization-identifier></success>",
                &second
            ).contains("item-not-found")
        )
    }

    @Test func `a session with lost counts cannot be resumed`() {
        let run = Run()
        var first = Self.enabled(run, max: 10)
        Self.inject("<message/>", to: .client, &first)
        Self.drop(&first)
        var second = Self.authenticated(run, at: 20)
        let before = second.toClient.count
        #expect(Self.send("<resume \(sm) h='1' previd='i1'/>", &second).isEmpty)
        let answer = String(decoding: second.toClient[before...], as: UTF8.self)
        #expect(answer.hasPrefix("<failed ") && answer.contains("item-not-found"))
        #expect(
            second.told.contains { $0.record.details?["outcome"] == "failed" && $0.record.details?["step"] == "resume" }
        )
        // The session continues like any other session.
        second.say(Array(Conversations.plainLogin[8..<10]))
        let isCutThrough = second.session.isCutThrough(.send)
        #expect(isCutThrough && second.session.ledgers == nil)
    }

    @Test func `the counts are translated inside SASL2 authentication`() {
        let run = Run()
        var first = SessionHarness(run: run)
        first.send(Conversations.sasl2[0].text.replacing("<tag>", with: "<enable \(sm) resume='true'/><tag>"))
        first.say(Array(Conversations.sasl2[1..<3]))
        first.recv(
            "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/balcony.1"
                + "</authorization-identifier><bound xmlns='urn:xmpp:bind:0'>"
                + "<enabled \(sm) resume='true' id='i1'/></bound></success>"
        )
        Self.inject("<message/>", to: .client, &first)
        first.recv(Self.message(1))
        Self.drop(&first)
        var second = SessionHarness(run: run)
        second.send(FailedLogin.header)
        let login =
            "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'>"
            + "<initial-response>AGp1bGlldABSMG0zMG15cjBtMzA=</initial-response>"
            + "<resume \(sm) h='2' previd='i1'/></authenticate>"
        #expect(Self.send(login, &second) == login.replacing("h='2'", with: "h='1'"))
        second.say(Array(Conversations.sasl2[1..<3]))
        #expect(
            Self.recv(
                "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>juliet@example.org/balcony.1"
                    + "</authorization-identifier><resumed \(sm) h='0' previd='i1'/></success>",
                &second
            ).contains("<resumed \(sm) h='0' previd='i1'/>")
        )
        // The counts are also translated if the resumed session is still connected.
        var third = SessionHarness(run: run)
        third.send(FailedLogin.header)
        #expect(Self.send(login, &third).isEmpty)
        second.handle(.displaced(by: third.session.number))
        let start = third.toServer.count
        third.handle(.displaces)
        #expect(
            String(decoding: third.toServer[start...], as: UTF8.self) == login.replacing("h='2'", with: "h='1'")
        )
        // The records contain the secret neither before nor after the edit.
        #expect(second.told.allSatisfy { !String(decoding: $0.content, as: UTF8.self).contains("AGp1bGlldABSMG0z") })
    }
}
