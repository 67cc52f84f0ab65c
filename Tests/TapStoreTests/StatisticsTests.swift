import TapRecord
import TapTestKit
import Testing

@testable import TapStore

/// Figures about stanzas and sessions.
struct StatisticsTests {
    private static let zone = LocalZone(name: "test") { _ in 3600 }
    private static let (juliet, romeo) = ("juliet@example.org", "romeo@example.org")

    /// Returns the figures of entries in the order of time, as of a store; those in other orders are the same.
    private static func count(_ entries: [AuditEntry], zone: LocalZone = zone) -> AuditStatistics {
        func count(_ entries: some Sequence<AuditEntry>, isOrdered: Bool) -> AuditStatistics {
            var counter = StatisticsCounter(zone: zone, isOrdered: isOrdered)
            for entry in entries { counter.add(entry) }
            return counter.finish()
        }
        let ordered = count(entries.sorted { $0.place < $1.place }, isOrdered: true)
        #expect(count(entries, isOrdered: false) == ordered)
        #expect(count(entries.reversed(), isOrdered: false) == ordered)
        return ordered
    }

    private static func count(_ rows: [AuditRow]) -> AuditStatistics { count(rows.map { .stanza($0) }) }

    /// Returns the row of an iq in a session of Juliet.
    private static func iq(
        _ type: String,
        _ sequence: UInt64,
        id: String = "1",
        session: UInt64 = 1,
        direction: Direction = .send,
        payload: String? = nil,
        peer: String? = nil,
        roundTrip: Int64? = nil,
        after seconds: Int64 = 0
    ) -> AuditRow {
        var row = TestRow.message(
            "",
            sequence: sequence,
            session: session,
            peer: peer,
            direction: direction,
            type: type,
            id: id,
            after: seconds
        )
        (row.kind, row.body) = (.iq, nil)
        (row.payload, row.roundTrip) = (payload, roundTrip)
        return row
    }

    @Test("Without stanzas, all lists are empty")
    func countsNothing() {
        #expect(Self.count([AuditRow]()) == AuditStatistics())
    }

    @Test("A single message is counted in its pair, its hour and its day in the zone, and its size")
    func countsOne() {
        // 2026-11-18T11:06:40Z is an hour later in the zone.
        let message = TestRow.message("hi")
        let statistics = Self.count([message])
        var expected = AuditStatistics()
        (expected.stanzas, expected.bytes, expected.messages) = (1, 100, 1)
        expected.times = message.time...message.time
        expected.pairs = [.init(first: Self.juliet, second: Self.romeo, forth: 1, times: message.time...message.time)]
        expected.hours[12] = 1
        expected.days = [.init(name: "2026-11-18", count: 1)]
        expected.offsets = [3600]
        expected.kinds = [.init(kind: .message, stanzas: 1, bytes: 100)]
        expected.sizes = [.init(kind: .message, namespace: "", stanzas: 1, bytes: 100)]
        #expect(statistics == expected)
    }

    @Test("Copies of a message count once, messages back and later ones with the same id count again")
    func countsCopiesOnce() {
        let (juliet, romeo) = (Self.juliet, Self.romeo)
        let statistics = Self.count([
            TestRow.message("hi"),
            TestRow.message("hi", sequence: 2, session: 2, account: romeo, peer: juliet, direction: .recv, after: 1),
            TestRow.message("hi", sequence: 3, session: 3, source: .carbon, after: 2),
            TestRow.message("hi", sequence: 4, session: 2, account: romeo, peer: juliet, after: 3),
            TestRow.message("hi", sequence: 5, after: 302),
            TestRow.message("", sequence: 6, peer: nil, after: 400),
        ])
        #expect(statistics.messages == 4 && statistics.copies == 2)
        #expect(
            statistics.pairs.map { "\($0.first) \($0.second) \($0.forth) \($0.back)" } == [
                "\(juliet) \(romeo) 2 1", "\(juliet) \(juliet) 1 0",
            ]
        )
        #expect(statistics.pairs.first?.times.upperBound == TestRow.message("", after: 302).time)
    }

    @Test("A message in a room counts once, for its writer: the account, or the nickname of somebody else")
    func countsRooms() {
        let room = "hall@rooms.example.org"
        func copy(_ sequence: UInt64, _ account: String, _ nickname: String, _ id: String, at second: Int64) -> AuditRow
        {
            var row = TestRow.message(
                "all",
                sequence: sequence,
                session: sequence,
                account: account,
                peer: room,
                direction: .recv,
                type: "groupchat",
                id: id,
                after: second
            )
            row.peerResource = nickname
            return row
        }
        // A room with a slow clock stamps the message earlier than it was sent.
        let statistics = Self.count([
            TestRow.message("all", peer: room, type: "groupchat", id: "a", after: 1),
            copy(2, Self.juliet, "Juliet", "a", at: 1), copy(3, Self.romeo, "Juliet", "a", at: 0),
            copy(4, Self.juliet, "Nurse", "b", at: 4), copy(5, Self.romeo, "Nurse", "b", at: 5),
        ])
        #expect(statistics.messages == 2 && statistics.copies == 3)
        #expect(
            statistics.pairs.map { "\($0.first) \($0.second) \($0.forth) \($0.back)" } == [
                "\(room) \(room)/Nurse 0 1", "\(room) \(Self.juliet) 0 1",
            ]
        )
    }

    @Test("Days begin at midnight in the zone, also before 1970 and when the offset changes")
    func countsDays() {
        let zone = LocalZone(name: "test") { $0.nanoseconds < 1_794_999_600_000_000_000 ? 7200 : -3600 }
        let times: [Int64] = [
            -86_400_000_000_001 - 7_200_000_000_000, -86_400_000_000_000 - 7_200_000_000_000, .min, .max,
            1_794_999_600_000_000_000 - 1, 1_794_999_600_000_000_000,
        ]
        let rows = times.enumerated().map { index, time in
            var row = TestRow.message("hi", sequence: UInt64(index), id: "\(index)")
            row.time = Timestamp(nanoseconds: time)
            return row
        }
        let statistics = Self.count(rows.map { .stanza($0) }, zone: zone)
        #expect(statistics.days.map(\.name).dropFirst().dropLast() == ["1969-12-30", "1969-12-31", "2026-11-18"])
        #expect(statistics.days.map(\.count) == [1, 1, 1, 2, 1] && statistics.offsets == [-3600, 7200])
        #expect(statistics.hours[23] >= 1 && statistics.hours[12] == 1 && statistics.hours[10] == 1)
        #expect(statistics.hours.reduce(0, +) == 6)
    }

    @Test("Round trips are counted by the payload of the request, if it is known, and are in bounds")
    func countsRoundTrips() {
        var rows: [AuditRow] = []
        for number in 1...200 {
            let (id, sequence) = ("r\(number)", UInt64(number) * 2)
            rows.append(Self.iq("get", sequence, id: id, payload: "{urn:xmpp:ping}ping", after: Int64(number)))
            rows.append(
                Self.iq(
                    number == 7 ? "error" : "result",
                    sequence + 1,
                    id: id,
                    direction: .recv,
                    roundTrip: Int64(number) * 1_000_000,
                    after: Int64(number)
                )
            )
        }
        rows.append(Self.iq("result", 900, id: "x", direction: .recv, payload: "{a}b", roundTrip: 5_000_000_000))
        rows.append(Self.iq("result", 901, id: "y", direction: .recv, roundTrip: 4))
        let requests = Self.count(rows).requests
        #expect(requests.map(\.payload) == ["{a}b", "{urn:xmpp:ping}ping", nil])
        #expect(requests[0].median == 5_000_000_000 && requests[0].percentile99 == 5_000_000_000)
        #expect(requests[1].count == 200 && requests[1].longest == 200_000_000)
        #expect((100_000_000...106_250_000).contains(requests[1].median))
        #expect((198_000_000...200_000_000).contains(requests[1].percentile99))
    }

    @Test("A request is answered by a result or an error with its id in its session, whatever the clock shows")
    func findsUnanswered() {
        let ping = "{urn:xmpp:ping}ping"
        let statistics = Self.count([
            // The clock is set back between request and answer.
            Self.iq("get", 1, id: "a", payload: ping, after: 100),
            Self.iq("result", 2, id: "a", direction: .recv, roundTrip: 1, after: -3600),
            Self.iq("set", 3, id: "b", payload: "{q}s"), Self.iq("error", 4, id: "b", direction: .recv),
            // In another session, in the same direction, and from another contact.
            Self.iq("get", 5, id: "c", payload: ping, after: 10),
            Self.iq("result", 6, id: "c", session: 2, direction: .recv),
            Self.iq("get", 7, id: "d", payload: ping, after: 20), Self.iq("result", 8, id: "d"),
            Self.iq("get", 9, id: "e", direction: .recv, payload: ping, peer: "a@x", after: 30),
            Self.iq("get", 10, id: "e", direction: .recv, payload: "{q}v", peer: "b@x", after: 30),
            Self.iq("result", 11, id: "e", peer: "a@x", after: 31),
            // A server's request may have no sender.
            Self.iq("get", 12, id: "f", direction: .recv, payload: ping),
            Self.iq("result", 13, id: "f", peer: "example.org"),
            Self.iq("other", 15, id: "z"),
        ])
        #expect(statistics.unanswered.map { "\($0.payload ?? "-") \($0.count)" } == ["\(ping) 2", "{q}v 1"])
        #expect(statistics.unanswered.first?.last == TestRow.message("", after: 20).time)
        #expect(statistics.requests.map(\.payload) == [ping])

        // An id is used again.
        var counter = StatisticsCounter(zone: .utc, isOrdered: true)
        for number: UInt64 in 0..<3 {
            let payload = "{q}\(number)"
            counter.add(.stanza(Self.iq("get", number * 2, payload: payload)))
            guard number < 2 else { break }
            counter.add(.stanza(Self.iq("result", number * 2 + 1, direction: .recv, roundTrip: 1)))
        }
        let again = counter.finish()
        #expect(again.unanswered.map(\.payload) == ["{q}2"] && again.requests.map(\.payload) == ["{q}0", "{q}1"])
    }

    @Test("Failed logins are counted by cause and account, with the finding about the latest")
    func countsLogins() {
        var joiner = SessionJoiner()
        var entries: [AuditEntry] = []
        for number in 1...4 {
            var parts = (0..<3).map { _ in AuditSession(run: "run", number: UInt64(number)) }
            parts[0].began = TestRow.message("", after: Int64(number)).time
            if number != 4 { parts[1].cause = number == 2 ? "tls-required" : "wrong-password" }
            (parts[1].account, parts[1].finding) = (number == 3 ? nil : Self.juliet, "finding \(number)")
            parts[2].ended = TestRow.message("", after: Int64(number) + 1).time
            for part in number == 3 ? parts.dropLast() : parts {
                if let session = joiner.add(part) { entries.append(.session(session)) }
            }
        }
        entries += joiner.rest.map { .session($0) }
        #expect(entries.count == 4)
        let logins = Self.count(entries).failedLogins
        #expect(
            logins.map { "\($0.cause) \($0.count) \($0.finding ?? "")" } == [
                "wrong-password 2 finding 3", "tls-required 1 finding 2",
            ]
        )
        #expect(logins.first?.accounts == [.init(name: Self.juliet, count: 1)])
        #expect(logins.first?.last == TestRow.message("", after: 3).time)
        var query = SearchQuery(words: "")
        query.times = TestRow.message("", after: 2).time..<TestRow.message("", after: 3).time
        let matching = entries.filter { if case .session(let session) = $0 { query.matches(session) } else { false } }
        #expect(matching.count == 2)
        query.peer = Self.romeo
        #expect(!entries.contains { if case .session(let session) = $0 { query.matches(session) } else { false } })
    }

    @Test("Bytes are counted by namespace and kind, whatever text a payload is")
    func countsSizes() {
        let payloads = ["{a}x", "{a}y", "{}x", "x", "{", "}{", "{b}c}d", nil]
        let rows = payloads.enumerated().map { index, payload in
            Self.iq("other", UInt64(index), payload: payload)
        }
        let sizes = Self.count(rows + [TestRow.message("hi", sequence: 99)]).sizes
        #expect(
            sizes.map { "\($0.namespace) \($0.kind.name) \($0.bytes)" } == [
                " iq 500", "a iq 200", " message 100", "b}c iq 100",
            ]
        )
    }

    @Test("A store yields stanzas in the order of their times, also those that were delayed")
    func readsInOrder() throws {
        let folder = try TemporaryFolder()
        let store = try SQLiteStore.create(folder.path(of: "a.sqlite"), partSize: 20)
        var random = SeededGenerator(seed: 9)
        var rows: [AuditRow] = []
        for number in 1...200 {
            var row = TestRow.message(
                "n\(number)",
                sequence: UInt64(number),
                account: number.isMultiple(of: 3) ? Self.romeo : Self.juliet,
                after: Int64.random(in: 0..<100_000, using: &random)
            )
            if number.isMultiple(of: 5) { row.seen = Timestamp(nanoseconds: row.seen.nanoseconds + 9_000_000_000_000) }
            rows.append(row)
            try store.add(.stanza(row))
        }
        try store.commit()
        rows.sort { ($0.time, $0.seen, $0.sequence) < ($1.time, $1.seen, $1.sequence) }
        var queries = [SearchQuery](repeating: SearchQuery(words: ""), count: 5)
        queries[1].account = Self.romeo
        queries[2].peer = Self.romeo
        queries[3].times = rows[50].time..<rows[100].time
        queries[4].account = "nobody@example.org"
        for query in queries {
            var found: [AuditRow] = []
            try store.rows(for: query) {
                found.append($0)
                return true
            }
            #expect(found == rows.filter { query.matches($0) })
        }
    }
}

extension AuditEntry {
    /// Orders entries by time.
    fileprivate var place: (Timestamp, UInt64) {
        switch self {
        case .stanza(let row): (row.time, row.sequence)
        case .session(let session): (session.began ?? Timestamp(nanoseconds: 0), session.number)
        case .gap(let gap): (gap.time, gap.first)
        }
    }
}
