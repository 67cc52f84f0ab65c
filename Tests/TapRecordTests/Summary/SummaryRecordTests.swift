import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Tests the summaries in records and in the forms of records.
@Suite struct SummaryRecordTests {
    @Test func `the summary of an answer includes its request`() throws {
        var harness = SessionHarness()
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        harness.send("<iq type='set' id='s1'><enable xmlns='urn:xmpp:carbons:2'/></iq>")
        harness.recv("<iq type='result' id='s1'/>")
        harness.send("<iq type='get' id='s2' to='a@b'><query xmlns='urn:own:thing'/></iq>")
        harness.recv(
            "<iq type='error' id='s2' from='a@b'><error type='cancel'>"
                + "<feature-not-implemented xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
        )
        let told = harness.told.filter { $0.record.kind == .stanza }.suffix(4).map(\.record.summary?.description)
        #expect(
            told == [
                "enables carbons", "ok: enables carbons", "{urn:own:thing}query",
                "refused: {urn:own:thing}query",
            ]
        )
        #expect(harness.told.last?.record.condition == "feature-not-implemented")
    }

    @Test func `a summary is in the text and JSON forms and is read back`() throws {
        var sample = Sample.roster
        #expect(try sample.text("info").hasSuffix(" id=7 roster: 2 contacts: a@b, c@d; 1.2 kB 38 ms\n"))
        let json = sample.json()
        #expect(json.contains(#""summary":"roster: 2 contacts: a@b, c@d""#))
        let line = try RecordLine(json: Array(json.utf8).span.bytes)
        #expect(line.record.summary?.description == sample.record.summary?.description)
        // For a record of a version without summaries, the payload is shown.
        sample.record.summary = nil
        let old = try RecordLine(json: Array(sample.json().utf8).span.bytes)
        #expect(old.record.summary == nil)
        #expect(try sample.text("info").hasSuffix(" id=7 {jabber:iq:roster}query; 1.2 kB 38 ms\n"))
    }

    @Test func `an item that is too large to parse is summarized by its head`() {
        var harness = SessionHarness(options: SessionOptions(level: .info))
        harness.say(Array(Conversations.plainLogin.prefix(10)))
        let rest = String(repeating: "x", count: 300 << 10)
        harness.recv("<message><event xmlns='http://jabber.org/protocol/pubsub#event'><a>\(rest)</a></event></message>")
        #expect(harness.told.last?.record.summary?.description == "{http://jabber.org/protocol/pubsub#event}event")
    }

    @Test func `no summary is made if the log shows no stanzas`() {
        var harness = SessionHarness(options: SessionOptions(level: .warn))
        harness.say(Conversations.plainLogin)
        #expect(harness.told.allSatisfy { $0.record.summary == nil })
    }
}
