import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// What is kept of requests that are not answered.
@Suite struct IQTrackerTests {
    private func note(_ id: String, _ tracker: inout IQTracker, _ direction: Direction = .send) {
        let (id, to) = (Array(id.utf8), Array("a@b".utf8))
        tracker.note(direction, id: id.span, to: to.span, sequence: 1, at: 0, purpose: .ordinary)
    }

    private func isAnswered(_ id: String, _ tracker: inout IQTracker) -> Bool {
        let (id, from) = (Array(id.utf8), Array("a@b".utf8))
        return tracker.answer(.recv, id: id.span, from: from.span, jid: nil, domain: nil) != nil
    }

    @Test func `Requests are given up from the oldest on when there are too many`() {
        var tracker = IQTracker()
        for number in 0..<(IQTracker.capacity + 10) { note("\(number)", &tracker) }
        #expect(tracker.count == IQTracker.capacity && tracker.forgotten == 10)
        #expect(!isAnswered("9", &tracker) && isAnswered("10", &tracker) && !isAnswered("10", &tracker))
    }

    @Test func `However long their ids are, requests cost no more than a bound, and answers give it back`() {
        var tracker = IQTracker()
        let tail = String(repeating: "x", count: 50_000)
        for number in 0..<2000 {
            note("\(number)\(tail)", &tracker, number % 2 == 0 ? .send : .recv)
            #expect(tracker.byteCount <= 2 * IQTracker.byteCapacity)
        }
        #expect(tracker.count == 10 && tracker.forgotten == 1990)
        #expect(isAnswered("1998\(tail)", &tracker) && isAnswered("1990\(tail)", &tracker))
        #expect(!isAnswered("1988\(tail)", &tracker))
        for number in [1996, 1994, 1992] { #expect(isAnswered("\(number)\(tail)", &tracker)) }
        note("short", &tracker)
        #expect(tracker.count == 6 && isAnswered("short", &tracker))
    }

    @Test func `A request longer than all that is kept is given up itself, not the others`() {
        var tracker = IQTracker()
        note("first", &tracker)
        note(String(repeating: "x", count: IQTracker.byteCapacity), &tracker)
        #expect(tracker.count == 1 && tracker.forgotten == 1 && isAnswered("first", &tracker))
        #expect(tracker.byteCount == 0)
    }

    @Test func `A server that begins streams without end has the first of them kept`() {
        var session = SessionHarness(options: SessionOptions(level: .info))
        session.send(Conversations.plainLogin[0].text)
        for _ in 0..<100 { session.recv(Conversations.plainLogin[1].text) }
        let count = session.session.facts.streams.count
        #expect(count == SessionFacts.mostStreams)
    }
}
