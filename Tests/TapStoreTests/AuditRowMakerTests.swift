import TapRecord
import Testing

@testable import TapStore

/// Rows that are made of records.
struct AuditRowMakerTests {
    /// Returns the row of a message in a session of Juliet.
    private static func row(_ direction: Direction, _ xml: String, from: String?) throws -> AuditRow {
        let sender = from.map { address in #","from":"\#(address)""# } ?? ""
        let json =
            #"{"sequence":1,"time":"2026-11-21T17:22:42.102000000Z","monotonic":1,"level":"info","kind":"stanza","session":1,"#
            + #""jid":"juliet@example.org/x","direction":"\#(direction)","name":"message"\#(sender),"xml":"\#(xml)"}"#
        let line = try RecordLine(json: Array(json.utf8).span.bytes)
        return try #require(AuditRowMaker(run: "run").row(line))
    }

    private static func forwarded(_ wrapper: String, from: String, to: String) -> String {
        "<message><\(wrapper)><forwarded xmlns='urn:xmpp:forward:0'><delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z'/>"
            + "<message xmlns='jabber:client' type='chat' from='\(from)' to='\(to)' id='1'><body>hi</body></message>"
            + "</forwarded></\(wrapper.split(separator: " ")[0])></message>"
    }

    @Test("A carbon copy or a result of an archive is the message inside, if its sender may speak for it")
    func readsForwarded() throws {
        let (juliet, romeo) = ("juliet@example.org", "romeo@example.org")
        let sent = Self.forwarded("sent xmlns='urn:xmpp:carbons:2'", from: "\(juliet)/y", to: romeo)
        let result = Self.forwarded("result xmlns='urn:xmpp:mam:2'", from: "\(romeo)/y", to: juliet)
        for from in [juliet, nil] {
            let carbon = try Self.row(.recv, sent, from: from)
            #expect(
                carbon.sender == juliet && carbon.receiver == romeo && carbon.body == "hi" && carbon.source == .carbon
            )
            let archived = try Self.row(.recv, result, from: from)
            #expect(archived.sender == romeo && archived.receiver == juliet && archived.source == .archive)
            #expect(archived.time == Timestamp(rfc3339: "2020-01-01T00:00:00Z") && archived.seen > archived.time)
        }
        let room = "hall@rooms.example.org"
        let history = Self.forwarded("result xmlns='urn:xmpp:mam:2'", from: "\(room)/Romeo", to: juliet)
        #expect(try Self.row(.recv, history, from: room).body == "hi")
        for (xml, from) in [
            (sent, "mallory@evil.org/1"), (result, "mallory@evil.org"), (history, "other@rooms.example.org"),
        ] {
            let forged = try Self.row(.recv, xml, from: from)
            #expect(forged.body == nil && forged.source == .live && forged.sender == from.prefix { $0 != "/" })
        }
        let own = try Self.row(.send, sent, from: nil)
        #expect(own.body == nil && own.source == .live)
    }

    @Test("A received delay is the time of a message, one that a client sends is not")
    func readsDelays() throws {
        let xml = "<message><body>hi</body><delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z'/></message>"
        let received = try Self.row(.recv, xml, from: "romeo@example.org")
        #expect(received.time == Timestamp(rfc3339: "2020-01-01T00:00:00Z"))
        let sent = try Self.row(.send, xml, from: nil)
        #expect(sent.time == sent.seen)
        var query = SearchQuery(words: "hi")
        query.times = sent.seen..<Timestamp(nanoseconds: .max)
        #expect(query.matches(received) && query.matches(sent))
    }
}
