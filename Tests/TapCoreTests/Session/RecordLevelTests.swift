import TapCore
import TapRecord
import TapTestKit
import Testing

/// Tests of a record level that changes while a session runs.
@Suite struct RecordLevelTests {
    /// The properties of one item's record, without the record numbers.
    private struct SentItem: Equatable, CustomStringConvertible {
        let kind: Record.Kind
        let level: Level
        let code: String?
        let isSummed: Bool
        let message: String?
        let xml: String?

        init(_ told: SessionHarness.Told) {
            kind = told.record.kind
            level = told.record.level
            code = told.record.code
            // The summary of an answer depends on that of its request.
            isSummed = told.record.summary != nil
            message = told.record.messageText
            xml = told.xml
        }

        var description: String { "\(level) \(kind) \(code ?? "") \(message ?? xml ?? "")" }
    }

    private static func say(_ turn: Conversations.Turn, _ harness: inout SessionHarness) -> [SentItem] {
        let before = harness.told.count
        harness.receive(turn.direction, Array(turn.text.utf8))
        return harness.told[before...].map { SentItem($0) }
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func `an item is recorded as in a session that always had its level`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        var options = SessionOptions(level: .off)
        let level = RecordLevel(.off)
        options.recordLevel = level
        var changing = SessionHarness(options: options)
        let fixed = FixedSessions()
        for turn in Conversations.plainLogin {
            let now = Level.allCases.randomElement(using: &random) ?? .off
            level.set(now)
            let expected = fixed.say(turn)
            #expect(Self.say(turn, &changing) == expected[Int(now.rawValue)], "\(now) at \(turn.text)")
        }
    }

    /// One session for each level.
    private final class FixedSessions {
        private var harnesses = Level.allCases.map { Box(SessionHarness(options: SessionOptions(level: $0))) }

        func say(_ turn: Conversations.Turn) -> [[SentItem]] {
            harnesses.map { RecordLevelTests.say(turn, &$0.harness) }
        }
    }

    /// A harness cannot be copied, so an array must contain it in a box.
    private final class Box {
        var harness: SessionHarness

        init(_ harness: consuming SessionHarness) { self.harness = harness }
    }
}
