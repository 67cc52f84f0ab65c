import TapRecord
import TapReplay
import TapTestKit

/// The conversations of a ``RecordedLog``.
struct RecordedText {
    private var reader = ConversationReader()

    init(_ text: String) throws {
        reader.add(.test())
        for record in RecordedLog(text).records { reader.add(try RecordLine(json: Array(record.utf8).span.bytes)) }
    }

    var conversations: [RecordedConversation] { reader.conversations() }

    /// Reports missing records after the last one.
    mutating func lose() { reader.recordLoss() }

    /// Returns the conversation of a session whose login the server refused with `not-authorized`, for
    /// juliet@capulet.example.
    static func refusedLogin() throws -> [RecordedConversation] {
        var reader = ConversationReader()
        reader.add(.test())
        let failure =
            #"{"sequence":1,"time":"2026-11-22T10:00:00Z","monotonic":0.1,"level":"error","part":"sasl","kind":"element","session":1,"user":"juliet","domain":"capulet.example","direction":"recv","name":"failure","condition":"not-authorized","code":"sasl-failure"}"#
        reader.add(try RecordLine(json: Array(failure.utf8).span.bytes))
        return reader.conversations()
    }
}
