import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

@Suite struct EndingTests {
    private static func open() -> SessionHarness {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        return harness
    }

    /// Lets time go by.
    private static func wait(_ seconds: Int64, _ harness: inout SessionHarness) {
        harness.now = harness.now.advanced(by: seconds * 1_000_000_000)
    }

    /// Ends it, and gives what was said of the end.
    private static func end(
        _ harness: inout SessionHarness,
        _ leg: Leg,
        _ end: LegEnd
    ) -> (words: String?, verdict: String?) {
        harness.end(leg, end)
        harness.end(leg.other, .finished)
        harness.close()
        let record = harness.told(code: "session-ended").first?.record
        return (record?.message, record?.details?["verdict"]?.text)
    }

    private static let ping = "<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>"

    @Test func aServerWhosePingHadNoAnswerGaveUp() {
        var harness = Self.open()
        harness.recv(Self.ping)
        Self.wait(20, &harness)
        let told = Self.end(&harness, .server, .finished)
        #expect(told.verdict == "ping-timeout")
        #expect(
            told.words == "the server's connection ended without the end of its stream; "
                + "its ping had no answer for 20 s"
        )
    }

    @Test func aPingThatWasAnsweredExplainsNothing() {
        var harness = Self.open()
        harness.recv(Self.ping)
        harness.send("<iq type='result' id='p1'/>")
        Self.wait(20, &harness)
        #expect(Self.end(&harness, .server, .finished).verdict == "unclean")
    }

    @Test func aPingOfTheOtherSideOrOneJustSentExplainsNothing() {
        var other = Self.open()
        other.send(Self.ping)
        Self.wait(20, &other)
        #expect(Self.end(&other, .server, .finished).verdict == "unclean")
        var young = Self.open()
        young.recv(Self.ping)
        Self.wait(1, &young)
        #expect(Self.end(&young, .server, .reset).verdict == "reset")
    }

    @Test func anAcknowledgementThatNeverCameIsTheReason() {
        var harness = Self.open()
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        harness.send("<a xmlns='urn:xmpp:sm:3' h='1'/>")
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        Self.wait(9, &harness)
        harness.recv("<r xmlns='urn:xmpp:sm:3'/>")
        Self.wait(5, &harness)
        let told = Self.end(&harness, .server, .reset)
        #expect(told.verdict == "ack-timeout")
        #expect(told.words?.hasSuffix("its request for an acknowledgement had no answer for 14 s") == true)
    }

    @Test func longSilenceIsWorthAWord() {
        var harness = Self.open()
        Self.wait(300, &harness)
        let told = Self.end(&harness, .client, .finished)
        #expect(told.verdict == "idle")
        #expect(told.words?.hasSuffix("; after 300 s without a byte in either direction") == true)
    }

    @Test(
        arguments: [
            ("<conflict NS/>", "conflict", "conflict; another login has taken the resource balcony"),
            ("<system-shutdown NS/>", "system-shutdown", "system-shutdown"),
            (
                "<policy-violation NS/><text NS>too many stanzas</text>", "policy-violation",
                "policy-violation; too many stanzas"
            ),
            (
                "<see-other-host NS>xmpp2.example.org:5222</see-other-host>", "see-other-host",
                "see-other-host; the client is sent to xmpp2.example.org:5222, where this session leaves the tap"
            ),
            ("<host-gone NS/>", "stream-error", "host-gone"),
            ("<connection-timeout NS/>", "idle", "connection-timeout"),
        ]
    ) func aStreamErrorIsTheReason(error: String, verdict: String, words: String) {
        var harness = Self.open()
        let content = error.replacing("NS", with: "xmlns='urn:ietf:params:xml:ns:xmpp-streams'")
        harness.recv("<stream:error>\(content)</stream:error></stream:stream>")
        let told = Self.end(&harness, .server, .finished)
        #expect(told.verdict == verdict)
        #expect(told.words == "ended by a stream error of the server: \(words)")
    }

    @Test func aTimeoutOfTheServerIsTracedToItsPing() {
        var harness = Self.open()
        harness.recv(Self.ping)
        Self.wait(60, &harness)
        harness.recv(
            "<stream:error><connection-timeout xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
        )
        #expect(Self.end(&harness, .server, .finished).verdict == "ping-timeout")
    }

    @Test func everyOtherEndHasAWordToo() {
        var clean = SessionHarness()
        clean.say(Conversations.plainLogin)
        #expect(Self.end(&clean, .client, .finished).verdict == "closed")
        var stopped = Self.open()
        stopped.session.stop(at: stopped.now)
        #expect(Self.end(&stopped, .client, .finished).verdict == "stopped")
        var aborted = Self.open()
        aborted.session.abort(.resourceConstraint, "no room", at: aborted.now)
        #expect(Self.end(&aborted, .client, .finished).verdict == "tap")
    }

    // MARK: Logins

    @Test func anAccountThatLogsInAgainAndAgainIsTold() throws {
        let run = Run()
        var told: [String] = []
        for number in 0..<7 {
            var harness = SessionHarness(run: run)
            harness.now = harness.now.advanced(by: Int64(number) * 2_000_000_000)
            harness.say(Array(Conversations.plainLogin.prefix(10)))
            told += harness.told(code: "reconnect-loop").compactMap(\.record.message)
        }
        #expect(told.count == 1)
        #expect(told.first?.hasPrefix("the account has logged in 5 times in 8 s: ") == true)
    }

    @Test func aLoopThatGoesOnIsToldEachTimeItHasDoubled() {
        let watch = LoginWatch()
        let told = (0..<200).compactMap { watch.note("a@b", at: Int64($0) * 10_000_000_000) }
        #expect(told.map(\.count) == [5, 10, 20, 40, 80, 160])
        #expect(told.last?.span == 1_590_000_000_000)
        // After a pause it begins anew.
        let later = (300..<306).compactMap { watch.note("a@b", at: Int64($0) * 10_000_000_000) }
        #expect(later.map(\.count) == [5])
        #expect(later.first?.span == 40_000_000_000)
    }

    @Test func loginsFarApartOrOfManyAccountsAreNone() {
        let watch = LoginWatch()
        for number in 0..<20 { #expect(watch.note("a@b", at: Int64(number) * 20_000_000_000) == nil) }
        for number in 0..<(LoginWatch.capacity * 2) { #expect(watch.note("\(number)@b", at: 0) == nil) }
        #expect(watch.note("new@b", at: 2 * LoginWatch.span) == nil)
        for _ in 0..<3 { #expect(watch.note("new@b", at: 2 * LoginWatch.span) == nil) }
        #expect(watch.note("new@b", at: 2 * LoginWatch.span)?.count == 5)
    }

    @Test func `A reconnect loop is reported however many other accounts have just logged in`() {
        let watch = LoginWatch()
        for number in 0..<(LoginWatch.capacity * 2) { #expect(watch.note("\(number)@b", at: 0) == nil) }
        let told = (0..<5).compactMap { watch.note("new@b", at: $0) }
        #expect(told.map(\.count) == [5])
        // Longer than any JID: ignored.
        let long = String(repeating: "x", count: LoginWatch.longestAccount + 1)
        for _ in 0..<10 { #expect(watch.note(long, at: 0) == nil) }
    }
}
