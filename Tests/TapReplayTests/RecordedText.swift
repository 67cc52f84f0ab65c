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

    /// Reports missing records after the last one.
    mutating func lose() { reader.noteLoss() }
}
