import TapDiagnosis
import TapRecord
import Testing

@Suite struct SubscriptionHistoryTests {
    private func record(_ details: Attributes?) -> Record {
        var record = Record(
            sequence: 1,
            time: Timestamp(nanoseconds: 0),
            monotonic: 0,
            kind: .note,
            level: .info,
            part: .session
        )
        record.session = 3
        record.jid = "juliet@example.net/balcony"
        record.code = Record.Code.subscription
        record.message = "romeo@example.net: none → both"
        record.details = details
        return record
    }

    @Test func `A subscription change is read from a record's details, not from its message`() {
        var history = SubscriptionHistory()
        let change = SubscriptionChange(contact: "romeo@example.org", from: SubscriptionState(), to: .both)
        var details = change.details
        details["because"] = "roster push from the server"
        history.add(record(details))
        #expect(history.pairs.map(\.second) == ["romeo@example.org"])
        let events = history.pairs.flatMap { history.events(of: $0) }
        #expect(events.map(\.change) == [change])
        #expect(events.map(\.reason) == ["roster push from the server"])
    }

    @Test func `A record without the details of a subscription change is ignored`() {
        var history = SubscriptionHistory()
        history.add(record(["because": "roster push from the server"]))
        history.add(record(nil))
        #expect(history.pairs.isEmpty)
    }
}
