import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// Tests of pending iq requests: which requests are stored, which answers match them, and the amount of work.
@Suite struct IQTrackerTests {
    private func store(
        _ id: String,
        to: String = "a@b",
        _ tracker: inout IQTracker,
        _ direction: Direction = .send,
        at time: Int64 = 0,
        purpose: IQTracker.Purpose = .ordinary
    ) {
        let (id, to) = (Array(id.utf8), Array(to.utf8))
        tracker.store(direction, id: id.span, to: to.span, sequence: 1, at: time, purpose: purpose)
    }

    private func isAnswered(
        _ id: String,
        from: String = "a@b",
        _ tracker: inout IQTracker,
        _ direction: Direction = .recv,
        jid: String? = nil
    ) -> Bool {
        let (id, from) = (Array(id.utf8), Array(from.utf8))
        return tracker.answer(direction, id: id.span, from: from.span, jid: jid, domain: nil) != nil
    }

    @Test func `a server's answers arrive on a separate stream, unless the stream is bidirectional`() {
        var tracker = IQTracker()
        #expect(!tracker.expectsAnswers(on: .server) && tracker.expectsAnswers(on: .client))
        tracker.observeBidirectional()
        #expect(tracker.expectsAnswers(on: .server))
    }

    @Test func `Over the capacity, the oldest requests are discarded`() {
        var tracker = IQTracker()
        for number in 0..<(IQTracker.capacity + 10) { store("\(number)", &tracker) }
        #expect(tracker.count == IQTracker.capacity && tracker.forgotten == 10)
        #expect(!isAnswered("9", &tracker) && isAnswered("10", &tracker) && !isAnswered("10", &tracker))
    }

    @Test func `The memory for pending requests is bounded, however long their ids are`() {
        var tracker = IQTracker()
        let tail = String(repeating: "x", count: 50_000)
        for number in 0..<2000 {
            store("\(number)\(tail)", &tracker, number % 2 == 0 ? .send : .recv)
            #expect(tracker.byteCount <= 2 * IQTracker.byteCapacity)
        }
        #expect(tracker.count == 10 && tracker.forgotten == 1990)
        #expect(isAnswered("1998\(tail)", &tracker) && isAnswered("1990\(tail)", &tracker))
        #expect(!isAnswered("1988\(tail)", &tracker))
        for number in [1996, 1994, 1992] { #expect(isAnswered("\(number)\(tail)", &tracker)) }
        store("short", &tracker)
        #expect(tracker.count == 6 && isAnswered("short", &tracker))
    }

    @Test func `A request over the byte limit is discarded itself, not the others`() {
        var tracker = IQTracker()
        store("first", &tracker)
        store(String(repeating: "x", count: IQTracker.byteCapacity), &tracker)
        #expect(tracker.count == 1 && tracker.forgotten == 1 && isAnswered("first", &tracker))
        #expect(tracker.byteCount == 0)
    }

    @Test func `Over the limit of one id, its oldest requests are evicted and other ids stay`() {
        var tracker = IQTracker()
        store("other", &tracker)
        for number in 0..<(IQTracker.capacityPerID + 3) { store("x", to: "\(number)@b", &tracker) }
        #expect(tracker.count == IQTracker.capacityPerID + 1 && tracker.forgotten == 3)
        #expect(!isAnswered("x", from: "2@b", &tracker) && isAnswered("x", from: "3@b", &tracker))
        #expect(isAnswered("other", &tracker))
    }

    // MARK: Work

    /// The numbers of unanswered requests. Beyond ``IQTracker/capacity``, only the newest are stored.
    static let pending = [1, 1024, 65_536]

    @Test(arguments: pending)
    func `Answers to one id from other addresses cost bounded work, however many requests are pending`(
        pending: Int
    ) {
        var tracker = IQTracker()
        for number in 0..<pending { store("x", to: "user\(number)@example.org/r", &tracker) }
        let (visits, parses) = (tracker.visits, tracker.parses)
        let answers = 2000
        for number in 0..<answers {
            // Every second address is not a valid JID.
            let from = number.isMultiple(of: 2) ? "other\(number)@example.org" : "\u{265a}\(number)@example.org"
            #expect(!isAnswered("x", from: from, &tracker, jid: "me@example.org/r"))
        }
        #expect(tracker.visits - visits <= answers * IQTracker.capacityPerID)
        // The address of each answer is parsed once, and that of each request once for all answers.
        #expect(tracker.parses - parses <= answers + IQTracker.capacityPerID + 1)
        #expect(tracker.count <= IQTracker.capacityPerID)
    }

    @Test(arguments: pending) func `Ordinary requests and answers cost bounded work, however many are pending`(
        pending: Int
    ) {
        var tracker = IQTracker()
        for number in 0..<pending { store("\(number)", &tracker) }
        // A request beyond the limit evicts one other request, and accesses no more.
        #expect(tracker.visits <= pending)
        #expect(tracker.count + tracker.forgotten == pending)
        let visits = tracker.visits
        for number in 0..<2000 {
            store("y\(number)", &tracker)
            #expect(isAnswered("y\(number)", &tracker))
        }
        // Each answer needs one comparison, and the first request may evict another.
        #expect(tracker.visits - visits <= 2001 && tracker.parses == 0)
    }

    @Test func `Ids with colliding hashes are limited like one id, and the newest are kept`() {
        var tracker = IQTracker(hashMask: 0)
        for number in 0..<5000 { store("\(number)", &tracker) }
        #expect(tracker.count == IQTracker.capacityPerID && tracker.count + tracker.forgotten == 5000)
        #expect(tracker.visits <= 5000)
        let visits = tracker.visits
        for number in 0..<1000 { #expect(!isAnswered("no \(number)", &tracker)) }
        #expect(tracker.visits - visits <= 1000 * IQTracker.capacityPerID)
        for number in (5000 - IQTracker.capacityPerID)..<5000 { #expect(isAnswered("\(number)", &tracker)) }
        #expect(tracker.count == 0 && tracker.byteCount == 0)
    }

    @Test func `The oldest pending ping is found independently of other requests`() {
        var tracker = IQTracker()
        #expect(tracker.oldestPing(.send) == nil)
        for number in 0..<10 {
            store("a\(number)", &tracker, at: Int64(number))
            store("p\(number)", &tracker, at: Int64(100 + number), purpose: .ping)
        }
        #expect(tracker.oldestPing(.send) == 100 && tracker.oldestPing(.recv) == nil)
        for number in [0, 2, 1] { #expect(isAnswered("p\(number)", &tracker)) }
        #expect(tracker.oldestPing(.send) == 103)
        for number in 3..<10 { #expect(isAnswered("p\(number)", &tracker)) }
        #expect(tracker.oldestPing(.send) == nil && tracker.count == 10)
        store("p", &tracker, at: 200, purpose: .ping)
        #expect(tracker.oldestPing(.send) == 200)
        for number in 0..<IQTracker.capacity { store("b\(number)", &tracker) }
        #expect(tracker.oldestPing(.send) == nil)
    }

    // MARK: Comparison with a linear search

    /// A request in the linear search.
    private struct Asked {
        var number: UInt64
        var id, to, from: String
    }

    /// Returns whether an answer matches a request by the rules of RFC 6120.
    private func isAnswer(_ id: String, from: String, to: String, _ asked: Asked, jid: String?, domain: String?) -> Bool
    {
        guard id == asked.id else { return false }
        let (answerer, asker) = (Address(from), Address(to))
        let isAsker = asked.from.isEmpty || to.isEmpty || to == asked.from || Address(asked.from) == asker
        guard isAsker else { return false }
        if from == asked.to { return true }
        let target = Address(asked.to)
        guard !from.isEmpty else {
            guard let own = jid.map({ Address($0) }), !asked.to.isEmpty else { return true }
            return target.matches(own, in: .bare) || target.local == nil && target.matches(own, in: .domain)
                || asked.to == domain
        }
        guard asked.to.isEmpty else { return target == answerer }
        guard let own = jid.map({ Address($0) }) else { return true }
        return answerer.local == nil ? answerer.matches(own, in: .domain) : answerer == own || answerer == own.bare
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func `Each answer matches the same request as in a linear search`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        let ids = ["1", "2", "é", ""]
        let addresses = [
            "", "a@b.example", "A@B.example", "a@b.example/r", "A@b.EXAMPLE/r", "a@b.example/R", "b.example",
            "B.example.",
            "b.example/x", "c@b.example/r", "other.example", "@", "a b@b.example", "a b@B.example/r",
            "bücher@b.example",
            "BÜCHER@b.example", "a@bücher.example", "a@xn--bcher-kva.example",
        ]
        let owns: [(String?, String?)] = [
            (nil, nil), ("a@b.example/r", "b.example"), ("bücher@b.example/r", "b.example"),
            ("a b@b.example/r", "b.example"),
        ]
        var tracker = IQTracker(hashMask: seed % 2 == 0 ? 0 : -1)
        var pending: [Asked] = []
        var found = 0
        for number in 0..<4000 {
            let (id, to, from) = (
                ids.randomElement(using: &random) ?? "", addresses.randomElement(using: &random) ?? "",
                addresses.randomElement(using: &random) ?? ""
            )
            let (idBytes, toBytes, fromBytes) = (Array(id.utf8), Array(to.utf8), Array(from.utf8))
            if Bool.random(using: &random), pending.count < IQTracker.capacityPerID {
                let asker = number % 3 == 0 ? from : ""
                let askerBytes = Array(asker.utf8)
                tracker.store(
                    .send,
                    id: idBytes.span,
                    to: toBytes.span,
                    from: askerBytes.span,
                    sequence: UInt64(number),
                    at: 0,
                    purpose: .ordinary
                )
                pending.append(Asked(number: UInt64(number), id: id, to: to, from: asker))
            } else {
                let (jid, domain) = owns.randomElement(using: &random) ?? (nil, nil)
                let position = pending.firstIndex { isAnswer(id, from: from, to: to, $0, jid: jid, domain: domain) }
                let expected = position.map { pending.remove(at: $0).number }
                let request = tracker.answer(
                    .recv,
                    id: idBytes.span,
                    from: fromBytes.span,
                    to: toBytes.span,
                    jid: jid,
                    domain: domain
                )
                #expect(request?.sequence == expected)
                if expected != nil { found += 1 }
            }
            #expect(tracker.count == pending.count)
        }
        #expect(found > 100)
    }

    @Test func `The number of stored streams is limited if a server repeats its header endlessly`() {
        var session = SessionHarness(options: SessionOptions(level: .info))
        session.send(Conversations.plainLogin[0].text)
        for _ in 0..<100 { session.recv(Conversations.plainLogin[1].text) }
        let count = session.session.info.streams.count
        #expect(count == SessionInfo.maximumStreams)
    }
}
