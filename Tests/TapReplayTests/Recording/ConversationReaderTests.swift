import TapRecord
import TapReplay
import TapTestKit
import Testing
import XMPPCore

@Suite struct ConversationReaderTests {
    @Test func `a conversation has the items after login, and the roster without its own changes`() throws {
        let text = """
            0 1 send <stream:stream xml:lang='fr' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>
            1 1 send <iq id='b' type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>
            2 1 ready juliet@capulet.example/balcony
            3 1 send <iq id='s' type='set'><query xmlns='jabber:iq:roster'><item jid='paris@capulet.example'/></query></iq>
            4 1 send <iq id='r' type='get'><query xmlns='jabber:iq:roster'/></iq>
            5 1 recv <iq id='r' type='result'><query xmlns='jabber:iq:roster'><item jid='paris@capulet.example'/><item jid='romeo@montague.example' subscription='both'><group>Friends</group></item></query></iq>
            6 1 send </stream:stream>
            7 1 ended
            """
        let all = try RecordedText(text).conversations
        #expect(all.count == 1)
        let one = try #require(all.first)
        #expect(one.isComplete && one.jid?.description == "juliet@capulet.example/balcony")
        #expect(one.items.map(\.id) == ["s", "r", "r", nil])
        #expect(one.items.map(\.kind) == [.iq, .iq, .iq, .end])
        #expect(one.language == "fr" && one.ending == .client && one.ready == 2_000_000 && one.ended.at == 7_000_000)
        let contact = try #require(one.roster?.first)
        #expect(one.roster?.count == 1 && contact.jid == "romeo@montague.example")
        #expect(contact.subscription == "both" && contact.groups == ["Friends"])
    }

    @Test func `a conversation that cannot be replayed has a fault`() throws {
        let text = """
            1 1 send <iq id='b' type='get'><ping xmlns='urn:xmpp:ping'/></iq>
            2 2 ready juliet@capulet.example/balcony
            3 2 send <message to='romeo@montague.example'><body>[redacted:body#1] and [redacted:body#2] [redacted:body#1]</body></message>
            """
        var recording = try RecordedText(text)
        #expect(recording.conversations.map(\.faults) == [[.withoutLogin], []])
        let placeholders = recording.conversations[1].items[0].placeholders
        #expect(placeholders == ["[redacted:body#1]", "[redacted:body#2]"])
        recording.lose()
        #expect(recording.conversations.map(\.faults) == [[.withoutLogin, .incomplete], [.incomplete]])
        #expect(recording.conversations.map(\.ending) == [.open, .open])
    }

    @Test func `records in a different order than written are a fault of the recording`() throws {
        let text = """
            1 1 ready juliet@capulet.example/balcony
            2 1 recv <iq id='a' type='result'/>
            3 1 send <iq id='b' type='get'><ping xmlns='urn:xmpp:ping'/></iq>
            4 1 recv <iq id='b' type='result'/>
            5 1 send <iq id='a' type='get'><ping xmlns='urn:xmpp:ping'/></iq>
            """
        #expect(try RecordedText(text).conversations.map(\.faults) == [[.answeredEarly(answer: 2, request: 5)]])
        var reader = ConversationReader()
        reader.add(.test())
        for record in RecordedLog(text).records.reversed() {
            reader.add(try RecordLine(json: Array(record.utf8).span.bytes))
        }
        #expect(reader.conversations().map(\.faults) == [[.disordered(record: 4, after: 5)]])
    }
}
