import Foundation
import TapRecord
import Testing

@testable import TapCapture

/// The copies of a message in the sessions of both accounts are one message; the same text again is another one.
struct ConversationCopiesTests {
    /// Records of sessions, and the conversations in them.
    private struct Scene {
        private(set) var talks = Conversations()
        private(set) var position = 0
        /// In seconds.
        var time = 0.0
        /// 2 for the sessions of a second run.
        var run = 1
        /// Whether a record has the number of the one before.
        var repeatsNumber = false

        /// Adds a record.
        mutating func add(_ session: Int, _ fields: String) throws {
            let time = Timestamp(nanoseconds: 1_796_000_000_000_000_000 + Int64(time * 1e9)).text
            let text =
                #"{"sequence":\#(position + (repeatsNumber ? 0 : 1)),"time":"\#(time)","monotonic":1.5,"level":"info","session":\#(session),\#(fields)}"#
            let line = try RecordLine(json: Array(text.utf8).span.bytes)
            let unique = line.inSession(TableRuns.session(UInt64(session), of: run))
            talks.add(unique.record, unique.content.span, at: position)
            position += 1
        }

        private func xml(_ body: String, _ more: String = "") -> String {
            "<message><body>\(body)</body>\(more)</message>"
        }

        /// Adds a message that juliet's client sends.
        mutating func send(
            _ session: Int,
            _ body: String = "hi",
            id: String = "m1",
            client: String = "juliet@example.org/balcony",
            edited: String? = nil,
            action: String? = nil,
            to: String = "romeo@example.net",
            type: String = "chat",
            origin: String? = nil
        ) throws {
            let more = origin.map { "<origin-id xmlns='urn:xmpp:sid:0' id='\($0)'/>" } ?? ""
            try add(
                session,
                #""kind":"stanza","jid":"\#(client)","direction":"send","leg":"client","length":9,"name":"message","to":"\#(to)","type":"\#(type)","id":"\#(id)","payload":"{jabber:client}body"\#(change(action, edited)),"xml":"\#(xml(body, more))""#
            )
        }

        /// Adds a message that romeo's client receives.
        mutating func receive(
            _ session: Int,
            _ body: String = "hi",
            id: String = "m1",
            client: String = "romeo@example.net/orchard",
            edited: String? = nil,
            action: String? = nil,
            delay: Double? = nil,
            from: String = "juliet@example.org/balcony",
            type: String = "chat",
            archive: String? = nil,
            by: String = "romeo@example.net"
        ) throws {
            let stamp = delay.map { Timestamp(nanoseconds: 1_796_000_000_000_000_000 + Int64($0 * 1e9)).text }
            let more =
                (stamp.map { "<delay xmlns='urn:xmpp:delay' stamp='\($0)'/>" } ?? "")
                + (archive.map { "<stanza-id xmlns='urn:xmpp:sid:0' by='\(by)' id='\($0)'/>" } ?? "")
            try add(
                session,
                #""kind":"stanza","jid":"\#(client)","direction":"recv","leg":"server","length":9,"name":"message","from":"\#(from)","to":"\#(client)","type":"\#(type)","id":"\#(id)","payload":"{jabber:client}body"\#(change(action, edited)),"xml":"\#(xml(body, more))""#
            )
        }

        private func change(_ action: String?, _ edited: String?) -> String {
            let name = (action ?? edited.map { _ in "edited" }).map { #","action":"\#($0)""# } ?? ""
            return name + (edited.map { #","edited":"\#(xml($0))""# } ?? "")
        }

        mutating func end(_ session: Int) throws {
            try add(session, #""kind":"session","code":"session-ended","jid":"x@example.org""#)
        }

        mutating func resume(_ session: Int, _ earlier: Int) throws {
            try add(session, #""kind":"session","code":"session-ready","details":{"resumes":\#(earlier)}"#)
        }

        var positions: [Int] { talks.positions(of: 0).positions }
        var others: [Int: [Int]] { talks.others(of: 0) }
    }

    @Test func `a message dropped for its receiver is one message, with the record of the drop`() throws {
        var scene = Scene()
        try scene.send(1)
        try scene.receive(2, action: "dropped")
        #expect(scene.positions == [0] && scene.others == [0: [1]])
        // The receiver's session may be recorded first.
        var reverse = Scene()
        try reverse.receive(2, action: "dropped")
        try reverse.send(1)
        #expect(reverse.positions == [1] && reverse.others == [1: [0]])
    }

    @Test func `a message edited when it was sent, or when it was received, is one message`() throws {
        var scene = Scene()
        try scene.send(1, "shout", edited: "SHOUT")
        try scene.receive(2, "SHOUT")
        try scene.send(1, "two", id: "m2")
        try scene.receive(2, "two", id: "m2", edited: "2")
        try scene.receive(2, "three", id: "m3", edited: "3")
        try scene.send(1, "three", id: "m3")
        #expect(scene.positions == [0, 2, 5])
        #expect(scene.others == [0: [1], 2: [3], 5: [4]])
        // The words of both texts find the message.
        #expect(scene.talks.positions(of: 0, in: [1, 2]) == [0, 2])
        #expect(scene.talks.positions(of: 0, in: [4]) == [5])
        #expect(scene.talks.positions(of: 0, in: []) == [])
    }

    @Test func `the same id and text again in a session is another message`() throws {
        var scene = Scene()
        for _ in 1...2 {
            try scene.send(1)
            try scene.receive(2)
            scene.time += 1
        }
        #expect(scene.positions == [0, 2] && scene.others.isEmpty)
        // The same record in two files is the same message.
        var copied = Scene()
        try copied.send(1)
        copied.repeatsNumber = true
        try copied.send(1)
        #expect(copied.positions == [0])
    }

    @Test(arguments: [1, 2]) func `the second run of a script with fixed ids has its own messages`(run: Int) throws {
        var scene = Scene()
        try scene.send(1)
        try scene.receive(2)
        for session in 1...2 { try scene.end(session) }
        scene.time = 3
        scene.run = run
        try scene.send(3)
        try scene.receive(4)
        #expect(scene.positions == [0, 4])
        // Only the receiver's sessions were recorded.
        var other = Scene()
        try other.receive(1)
        try other.end(1)
        other.time = 3
        other.run = run
        try other.receive(2, client: "romeo@example.net/random")
        #expect(other.positions == [0, 2])
    }

    @Test func `an id that is used again after five minutes means another message`() throws {
        var scene = Scene()
        try scene.receive(1)
        scene.time = 299
        try scene.receive(2, client: "romeo@example.net/phone")
        #expect(scene.positions == [0])
        scene.time = 301
        try scene.receive(3, client: "romeo@example.net/laptop")
        #expect(scene.positions == [0, 2])
    }

    @Test func `copies for other clients, from an archive, and after a resumption are the same message`() throws {
        var scene = Scene()
        try scene.send(1)
        try scene.receive(2)
        try scene.receive(3, client: "romeo@example.net/phone")
        // A room or a server that stores messages sends them again, with a delay.
        scene.time = 90_000
        try scene.receive(4, delay: 1)
        try scene.receive(2, delay: 1)
        #expect(scene.positions == [0])
        // A forged delay, or that of another message, does not count.
        try scene.receive(5, delay: 50_000)
        #expect(scene.positions == [0, 5])
        var resumed = Scene()
        try resumed.send(1)
        try resumed.receive(2)
        for session in 1...2 { try resumed.end(session) }
        try resumed.resume(3, 1)
        try resumed.resume(4, 2)
        resumed.time = 20
        try resumed.send(3)
        try resumed.receive(4)
        #expect(resumed.positions == [0])
        try resumed.send(3)
        #expect(resumed.positions.count == 2)
    }

    @Test func `several proxies on the way see the same message`() throws {
        var scene = Scene()
        try scene.send(1)
        scene.run = 2
        scene.time = 0.2
        try scene.send(1)
        try scene.receive(2)
        scene.run = 1
        try scene.receive(2)
        #expect(scene.positions == [0])
    }

    @Test func `proxies with different clocks see one message if it has a unique id`() throws {
        func seen(_ first: String?, _ second: String?, run: Int = 2, after seconds: Double = 100) throws -> [Int] {
            var scene = Scene()
            try scene.send(1, origin: first)
            try scene.end(1)
            scene.run = run
            scene.time = seconds
            try scene.send(2, origin: second)
            return scene.positions
        }
        #expect(try seen("o1", "o1") == [0])
        #expect(try seen(nil, nil) == [0, 2] && seen("o1", nil) == [0, 2] && seen("o1", "o2") == [0, 2])
        // A script with fixed ids runs again.
        #expect(try seen("o1", "o1", run: 1) == [0, 2])
        #expect(try seen("o1", "o1", after: 301) == [0, 2])
        func received(_ first: String, _ second: String, by: String = "romeo@example.net", after: Double) throws -> Int
        {
            var scene = Scene()
            try scene.receive(1, archive: first, by: by)
            scene.time = after
            scene.run = 2
            try scene.receive(2, archive: second, by: by)
            return scene.positions.count
        }
        #expect(try received("a1", "a1", after: 100) == 1)
        // The server stored two messages.
        #expect(try received("a1", "a2", after: 1) == 2)
        // Only the server of the account gives ids that are unique.
        #expect(try received("a1", "a1", by: "mallory@example.org", after: 100) == 2)
    }

    @Test func `two occupants of a room can send the same text with the same id`() throws {
        var scene = Scene()
        let room = "hall@rooms.example.org"
        try scene.send(1, to: room, type: "groupchat")
        try scene.send(2, client: "romeo@example.net/orchard", to: room, type: "groupchat")
        for nickname in ["Jule", "Romeo"] {
            for (session, client) in [(1, "juliet@example.org/balcony"), (2, "romeo@example.net/orchard")] {
                try scene.receive(session, client: client, from: "\(room)/\(nickname)", type: "groupchat")
            }
        }
        #expect(scene.positions == [0, 1])
    }

    @Test func `messages have the records that say what became of them`() throws {
        let lines = [
            #"{"sequence":1,"time":"2026-11-29T10:00:00Z","monotonic":1.5,"level":"info","kind":"stanza","session":1,"jid":"juliet@example.org/a","direction":"send","length":9,"name":"message","to":"romeo@example.net","id":"m1","payload":"{jabber:client}body","xml":"<message><body>one two</body></message>"}"#,
            #"{"sequence":2,"time":"2026-11-29T10:00:00Z","monotonic":1.6,"level":"info","kind":"stanza","session":2,"jid":"romeo@example.net/o","direction":"recv","length":9,"name":"message","from":"juliet@example.org/a","id":"m1","payload":"{jabber:client}body","action":"dropped","xml":"<message><body>one two</body></message>"}"#,
        ]
        let inspection = RecordedLines.inspection(lines)
        inspection.surveyAll { true }
        let messages = try InspectionAnswer(inspection.messages(of: 0, before: nil, count: 10)).objects("messages")
        let message = try #require(messages.first)
        #expect(messages.count == 1 && message["at"] as? Int == 0)
        let others = message["others"] as? [[String: Any]]
        #expect(others?.map { $0["action"] as? String } == ["dropped"])
        let talk = try #require(try InspectionAnswer(inspection.conversations()).objects("conversations").first)
        #expect(talk["messages"] as? Int == 1 && talk["changes"] as? Int == 1)
        let page = String(decoding: inspection.export(build: "x", view: "records"), as: UTF8.self)
        #expect(page.contains(#""messages":[[0]],"others":{"0":[1]}"#))
    }
}
