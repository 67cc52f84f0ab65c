import TapRecord
import Testing

@testable import TapStore

/// Messages are found once, whatever copies of them there are.
struct FoundMessagesTests {
    /// Returns the body of each message and the number of its copies, which do not depend on the order of the rows.
    private static func fold(_ rows: [AuditRow]) -> [(body: String, copies: Int)] {
        let results = [rows, rows.reversed()].map { rows in
            Self.messages(rows).map { ($0.row.body ?? "", $0.copies.count) }
        }
        #expect(results[0].map { "\($0)" } == results[1].map { "\($0)" })
        return results[0]
    }

    private static func messages(_ rows: [AuditRow]) -> [FoundMessage] {
        let query = SearchQuery(words: "")
        var found = FoundMessages(query)
        for row in rows { found.add(row) }
        var messages: [FoundMessage] = []
        found.show(query) {
            messages.append($0.message)
            return true
        }
        return messages
    }

    private static func counts(_ rows: AuditRow...) -> [String] { fold(rows).map { "\($0.body) \($0.copies)" } }

    @Test("What was sent, received, copied and archived is one message; another body is another message")
    func foldsCopies() {
        let (juliet, romeo) = ("juliet@example.org", "romeo@example.org")
        #expect(
            Self.counts(
                TestRow.message("hi"),
                TestRow.message("hi", sequence: 2, session: 2, account: romeo, peer: juliet, direction: .recv),
                TestRow.message("hi", sequence: 3, session: 3, source: .carbon, after: 1),
                TestRow.message(
                    "hi",
                    sequence: 4,
                    session: 2,
                    account: romeo,
                    peer: juliet,
                    direction: .recv,
                    source: .archive
                ),
                TestRow.message("bye", sequence: 5, after: 2)
            ) == ["hi 4", "bye 1"]
        )
    }

    @Test("An id that is used again after five minutes, and the same text without an id, are other messages")
    func tellsApart() {
        let romeo = "romeo@example.org"
        #expect(Self.counts(TestRow.message("hi"), TestRow.message("hi", sequence: 2, after: 301)) == ["hi 1", "hi 1"])
        #expect(Self.counts(TestRow.message("hi"), TestRow.message("hi", sequence: 2, after: 299)) == ["hi 2"])
        let rows = [Int64(0), 1].flatMap { second -> [AuditRow] in
            let number = UInt64(exactly: second) ?? 0
            return [
                TestRow.message("ok", sequence: 10 + number, id: nil, after: second),
                TestRow.message(
                    "ok",
                    sequence: 20 + number,
                    session: 2,
                    account: romeo,
                    peer: "juliet@example.org",
                    direction: .recv,
                    id: nil,
                    after: second
                ),
            ]
        }
        #expect(Self.fold(rows).map(\.copies) == [2, 2])
    }

    @Test("A room's copies are one message, also if the room adds an id, and show the nickname")
    func foldsRooms() throws {
        let room = "hall@rooms.example.org"
        for id in ["m1", nil] {
            var copies = [
                TestRow.message("all", peer: room, type: "groupchat", id: id),
                TestRow.message(
                    "all",
                    sequence: 2,
                    peer: room,
                    direction: .recv,
                    type: "groupchat",
                    id: id ?? "room-1"
                ),
                TestRow.message(
                    "all",
                    sequence: 3,
                    session: 2,
                    account: "romeo@example.org",
                    peer: room,
                    direction: .recv,
                    type: "groupchat",
                    id: id ?? "room-1",
                    after: 1
                ),
            ]
            for index in [1, 2] { copies[index].peerResource = "Juliet" }
            let messages = Self.messages(copies)
            #expect(messages.map(\.copies.count) == [3])
            #expect(messages.first?.row.sender == "\(room)/Juliet")
        }
    }
}
