import Foundation
import TapRecord
import TapTestKit
import Testing

/// Tests of every ``HostileItem`` at every stage of a login, from the client and from the server, under both
/// `--on-unparsable` policies. The tests check the data that each side receives, the log, and that the next login
/// works.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct HostileTableTests {
    /// The stage of the login, as the number of turns of `Conversations.plainLogin` that were played.
    private enum Stage: Int, CaseIterable {
        /// Both stream headers and the features were sent.
        case features = 3
        /// The client is authenticated and has to restart the stream.
        case authenticated = 8
        /// A resource is bound.
        case open = 10
    }

    private enum Policy: String {
        case relay
        case close
    }

    /// A session in which one side sends a hostile item, and the data that each side received.
    private struct Contact {
        let item: HostileItem
        let stage: Stage
        let direction: Direction
        /// The data that the other side received after the turns of the login.
        let heard: [UInt8]
        let end: RawConnection.End
        /// The data that the hostile side received.
        let answer: String
        let answerEnd: RawConnection.End

        var name: String { "\(item.name) at \(stage), \(direction)" }
        /// The offset of the item in the bytes of its epoch (since the last stream restart).
        var offset: Int {
            let turns = Conversations.plainLogin[..<stage.rawValue].filter { $0.direction == direction }
            guard let header = turns.lastIndex(where: { $0.text.hasPrefix("<?xml") }) else { return 0 }
            return turns[header...].reduce(0) { $0 + $1.text.utf8.count }
        }
    }

    @Test(
        "Each kind of malformed input has the expected outcome at each stage and from either side",
        .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing"),
        arguments: ["relay", "close"]
    )
    func table(policy name: String) async throws {
        let policy = try #require(Policy(rawValue: name))
        let server = try await ProsodyServer()
        let scripted = try RawListener()
        let tap = try await Tap(upstream: server.port, scripted.port, arguments: ["--on-unparsable", policy.rawValue])
        // The proxy checks at startup whether its servers accept connections; that connection does not belong to a
        // session.
        _ = try await scripted.accept().drain()
        var contacts: [Contact] = []
        for item in HostileItem.all {
            for stage in Stage.allCases {
                for direction in Direction.allCases {
                    contacts.append(try await Self.contact(item, stage, direction, tap, scripted))
                }
            }
            try await PlainClient(.romeo, tap).leave()
        }
        #expect(contacts.count > 200)
        try await tap.stop()
        try await server.stop()

        // The sessions ran one after the other, and are numbered in that order.
        let sessions = Dictionary(grouping: try tap.records(), by: \.session)
            .filter { $0.value.contains { $0.message?.hasSuffix("relayed to 127.0.0.1:\(scripted.port)") == true } }
            .sorted { ($0.key ?? 0) < ($1.key ?? 0) }
        try #require(sessions.count == contacts.count)
        for (contact, session) in zip(contacts, sessions) { Self.check(contact, policy, session.value) }
    }

    private static func contact(
        _ item: HostileItem,
        _ stage: Stage,
        _ direction: Direction,
        _ tap: Tap,
        _ scripted: RawListener
    ) async throws -> Contact {
        let client = try RawConnection(port: tap.ports[1])
        let server = try await scripted.accept()
        for turn in Conversations.plainLogin[..<stage.rawValue] {
            let (from, to) = turn.direction == .send ? (client, server) : (server, client)
            try await from.write(turn.text)
            let count = turn.text.utf8.count
            let (got, _) = try await to.read { $0.count >= count }
            #expect(String(decoding: got, as: UTF8.self) == turn.text)
        }
        let (villain, victim) = direction == .send ? (client, server) : (server, client)
        async let heard = victim.read { _ in false }
        async let answered = villain.read { _ in false }
        try await villain.write(item.bytes)
        villain.finish()
        let (bytes, end) = try await heard
        victim.finish()
        let (answer, answerEnd) = try await answered
        return Contact(
            item: item,
            stage: stage,
            direction: direction,
            heard: bytes,
            end: end,
            answer: String(decoding: answer, as: UTF8.self),
            answerEnd: answerEnd
        )
    }

    // MARK: Expectations

    private static func check(_ contact: Contact, _ policy: Policy, _ records: [LogRecord]) {
        switch contact.item.fate {
        case .late(let code, _, let at) where contact.stage == .open:
            checkLate(contact, policy, records, code, at: at)
        case .passes(let code):
            checkPassed(contact)
            #expect(!records.contains { $0.kind == "error" }, "\(contact.name)")
            if let code { #expect(records.contains { $0.code == code }, "\(contact.name): no \(code)") }
        case .unparsable(let code, let condition, let at), .late(let code, let condition, let at):
            checkRecord(contact, records, code, condition, at: UInt64(contact.offset + at))
            switch policy {
            case .relay:
                checkPassed(contact)
                checkUnread(contact, records)
            case .close: checkClosed(contact, condition, "at offset \(contact.offset + at)")
            }
        case .tooLarge(let later):
            guard contact.stage == .features || contact.stage == .open && later && policy == .close else {
                // After authentication, a peer may send larger items; and data that was already forwarded is not
                // refused.
                guard contact.stage != .authenticated || !later else {
                    return checkClosed(contact, "policy-violation", "is larger than 1048576 bytes")
                }
                return checkPassed(contact)
            }
            let limit = contact.stage == .features ? 65536 : 1_048_576
            checkClosed(contact, "policy-violation", "is larger than \(limit) bytes")
            let error = records.first { $0.code == "limit-item" }
            #expect(error?.message?.contains("longer than \(limit) bytes") == true, "\(contact.name)")
            #expect(error?.message?.contains("at offset \(contact.offset) ") == true, "\(contact.name)")
        }
        let last = records.last
        #expect(last?.code == "session-ended", "\(contact.name): ends with \(last?.code ?? "nothing")")
    }

    /// Checks that the item was forwarded unchanged, and that the proxy sent nothing itself.
    private static func checkPassed(_ contact: Contact) {
        #expect(contact.heard == contact.item.bytes, "\(contact.name): \(contact.heard.count) bytes passed")
        #expect(contact.answer.isEmpty, "\(contact.name): \(contact.answer)")
        #expect(contact.end == .finished && contact.answerEnd == .finished, "\(contact.name)")
    }

    /// Checks that the hostile side received the stream error, and that the other side received the end of the stream.
    private static func checkClosed(_ contact: Contact, _ condition: String, _ words: String) {
        let told = "<stream:error><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>"
        let heard = String(decoding: contact.heard, as: UTF8.self)
        let end = "</stream:stream>"
        #expect(contact.answer.hasPrefix(told), "\(contact.name): \(contact.answer)")
        #expect(contact.answer.contains(words), "\(contact.name): \(contact.answer)")
        #expect(contact.answer.hasSuffix("</stream:error>\(end)"), "\(contact.name): \(contact.answer)")
        // The end of the stream, from the proxy or from the item itself, is sent only once and is last.
        #expect(heard.components(separatedBy: end).count == 2 && heard.hasSuffix(end), "\(contact.name): \(heard)")
        if contact.direction == .recv, !contact.item.bytes.starts(with: end.utf8) {
            #expect(heard.hasPrefix("<stream:error><internal-server-error "), "\(contact.name): \(heard)")
        } else {
            #expect(heard == end, "\(contact.name): \(heard)")
        }
        #expect(contact.end == .finished && contact.answerEnd == .finished, "\(contact.name)")
    }

    /// Checks that there is exactly one error record, with the exact offset.
    private static func checkRecord(
        _ contact: Contact,
        _ records: [LogRecord],
        _ code: String,
        _ condition: String,
        at offset: UInt64
    ) {
        let errors = records.filter { $0.kind == "error" }
        #expect(errors.map(\.code) == [code], "\(contact.name)")
        #expect(errors.first?.condition == condition, "\(contact.name)")
        #expect(errors.first?.offset == offset, "\(contact.name)")
        #expect(errors.first?.direction == "\(contact.direction)", "\(contact.name)")
        #expect(errors.first?.level == "error", "\(contact.name)")
    }

    /// Checks an invalid item after the end of an open session's stream: the error is reported only at verbose, and the
    /// item is forwarded, but with the policy `close` only up to the error.
    private static func checkLate(
        _ contact: Contact,
        _ policy: Policy,
        _ records: [LogRecord],
        _ code: String,
        at: Int
    ) {
        let end = policy == .relay ? contact.item.bytes.count : at
        #expect(
            contact.heard == Array(contact.item.bytes[..<end]),
            "\(contact.name): \(contact.heard.count) bytes passed"
        )
        #expect(contact.answer.isEmpty, "\(contact.name): \(contact.answer)")
        #expect(contact.end == .finished && contact.answerEnd == .finished, "\(contact.name)")
        let told = records.filter { $0.code == code }
        #expect(told.map(\.kind) == ["note", "bytes"] && told.allSatisfy { $0.level == "verbose" }, "\(contact.name)")
        #expect(told.first?.offset == UInt64(contact.offset + at), "\(contact.name)")
        #expect(!records.contains { $0.kind == "error" || $0.level == "error" }, "\(contact.name)")
    }

    /// Checks that the log counts the bytes that were relayed without decoding.
    private static func checkUnread(_ contact: Contact, _ records: [LogRecord]) {
        let unread = records.filter { $0.kind == "bytes" && $0.direction == "\(contact.direction)" }
        #expect(unread.count == 1, "\(contact.name)")
        #expect(unread.first?.message?.hasSuffix("bytes relayed without decoding") == true, "\(contact.name)")
    }

    // MARK: With a real server

    /// Returns a server's response without the parts that differ each time.
    private static func normal(_ answer: [UInt8]) -> String {
        String(decoding: answer, as: UTF8.self)
            .replacing(/\ id='[^']*'/, with: "")
            .replacing(/<jid>[^<]*<\/jid>/, with: "")
            .replacing(/\ to='[^']*'/, with: "")
    }

    /// Connects a client, logged in or not, that sends an item and ends; returns the server's response.
    private static func say(_ item: HostileItem, loggedIn: Bool, port: UInt16) async throws -> String {
        let client = try RawConnection(port: port)
        let header =
            "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
            + "to='localhost' version='1.0'>"
        try await client.write(header)
        try await client.read(through: "</stream:features>")
        if loggedIn {
            let secret = Data("\0juliet\0\(Account.juliet.password)".utf8).base64EncodedString()
            try await client.write("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(secret)</auth>")
            try await client.read(through: "<success")
            try await client.write(header)
            try await client.read(through: "</stream:features>")
            try await client.write("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
            try await client.read(through: "</iq>")
        }
        // The client ends the connection only after the answer, because a server that reads the end together with the
        // last stanza need not answer it.
        let last = Array("<iq type='get' id='after'><ping xmlns='urn:xmpp:ping'/></iq>".utf8)
        try await client.write(item.bytes + last)
        let id = Array("id='after'".utf8)
        let (answer, end) = try await client.read(within: .seconds(2)) { $0.firstRange(of: id) != nil }
        guard end != .finished else { return normal(answer) }
        client.finish()
        let (rest, _) = try await client.read { _ in false }
        return normal(answer + rest)
    }

    @Test(
        "A real server answers malformed input the same with and without the proxy",
        .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
    )
    func realServer() async throws {
        let server = try await ProsodyServer()
        let tap = try await Tap(upstream: server.port)
        for item in HostileItem.all {
            for loggedIn in [false, true] {
                // The proxy itself answers an unauthenticated peer that sends too much.
                if case .tooLarge = item.fate, !loggedIn { continue }
                async let direct = Self.say(item, loggedIn: loggedIn, port: server.port)
                async let through = Self.say(item, loggedIn: loggedIn, port: tap.port)
                let (expected, answer) = try await (direct, through)
                #expect(answer == expected, "\(item.name), logged in: \(loggedIn)")
            }
            try await PlainClient(.romeo, tap).leave()
        }
        try await tap.stop()
        try await server.stop()
    }
}
