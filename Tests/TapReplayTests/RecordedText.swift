import TapRecord
import TapReplay
import TapTestKit

/// The conversations of a ``RecordedLog``.
struct RecordedText {
    private var reader = ConversationReader()

    init(_ text: String) throws {
        reader.note(.test())
        for record in RecordedLog(text).records { reader.take(try RecordLine(json: Array(record.utf8).span.bytes)) }
    }

    var conversations: [RecordedConversation] { reader.conversations() }

    /// Records are missing behind the last.
    mutating func lose() { reader.noteLoss() }
}
