import Testing
import XMPPCore

@testable import TapRules

/// Tests of the memory of stanzas that rules have created.
@Suite struct CreatedStanzasTests {
    private static let second: Int64 = 1_000_000_000
    private static let rule = RulePlace(file: "a.pfw", line: 1)

    private static func key(id: String = "", body: String = "", from: String = "a@example.org") -> CreatedStanzas.Key {
        CreatedStanzas.Key(
            kind: .message,
            type: [],
            id: Array(id.utf8),
            from: Array(from.utf8),
            to: Array("b@example.org".utf8),
            body: Array(body.utf8)
        )
    }

    @Test func `the memory for a created stanza does not depend on the length of its body, id or sender`() {
        #expect(MemoryLayout<CreatedStanzas.Key>.size == 16)
        let created = CreatedStanzas()
        let long = String(repeating: "x", count: 1 << 20)
        let keys = [Self.key(body: long), Self.key(id: long), Self.key(from: long), Self.key(body: long + "y")]
        for key in keys { #expect(created.create(key, by: Self.rule, for: Array(long.utf8), [], at: 0)) }
        #expect(Set(keys).count == 4 && created.counts == (4, 4))
        for key in keys { #expect(created.rules(of: key, session: 1, at: 0) == [Self.rule]) }
        #expect(created.rules(of: Self.key(body: "x"), session: 1, at: 0).isEmpty)
    }

    @Test func `created stanzas are forgotten after a minute, however few there are`() {
        let created = CreatedStanzas()
        for number in 0..<100 { _ = created.create(Self.key(id: "\(number)"), by: Self.rule, for: [], [], at: 0) }
        #expect(created.counts == (100, 100))
        // The next stanza of any session removes them.
        #expect(created.rules(of: Self.key(id: "1"), session: 1, at: 61 * Self.second).isEmpty)
        #expect(created.counts == (0, 0) && created.isEmpty)
        // The times of a recording can go backwards.
        _ = created.create(Self.key(id: "1"), by: Self.rule, for: [], [], at: -1000 * Self.second)
        _ = created.create(Self.key(id: "2"), by: Self.rule, for: [], [], at: -900 * Self.second)
        #expect(created.counts.stanzas == 1)
    }

    @Test func `the number of created stanzas, and of sessions that receive one, is limited`() {
        let created = CreatedStanzas()
        for number in 0...CreatedStanzas.maximumCount {
            #expect(created.create(Self.key(id: "\(number)"), by: Self.rule, for: [], [], at: 0))
        }
        #expect(created.counts == (CreatedStanzas.maximumCount, CreatedStanzas.maximumCount))
        let key = Self.key(id: "1")
        for session in 0..<UInt64(CreatedStanzas.maximumSessions) {
            #expect(created.rules(of: key, session: session, at: 0) == [Self.rule])
        }
        #expect(created.rules(of: key, session: .max, at: 0).isEmpty)
    }
}
