import TapRecord
import TapReplay
import TapTestKit

/// The conversations of a ``RecordedLog``.
struct RecordedText {
    private var reader = ConversationReader()

    init(_ text: String) throws {
        let header = RecordHeader(
            tool: "test",
            time: Timestamp(nanoseconds: 0),
            level: "verbose",
            isComplete: true,
            redaction: .secrets,
            run: "run"
        )
        reader.note(header)
        for record in RecordedLog(text).records { reader.take(try RecordLine(json: Array(record.utf8).span.bytes)) }
    }

    var conversations: [RecordedConversation] { reader.conversations() }

    /// Records are missing behind the last.
    mutating func lose() { reader.noteLoss() }
}
