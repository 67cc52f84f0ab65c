import TapRecord
import TapReplay

/// A recording for tests, one item a line: `MILLISECONDS SESSION DIRECTION XML`, below 1000, where `ready JID` stands for a completed login,
/// `resumed NUMBER JID` for one that resumed that session, `ended` for the end of the session.
struct RecordedText {
    private var reader = ConversationReader()
    private var sequence: UInt64 = 0

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
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 3).map(String.init)
            guard parts.count > 2, let at = Int64(parts[0]), let session = UInt64(parts[1]) else { continue }
            try take(at, session, parts[2], parts.count > 3 ? parts[3] : "")
        }
    }

    var conversations: [RecordedConversation] { reader.conversations() }

    /// Records are missing behind the last.
    mutating func lose() { reader.noteLoss() }

    private mutating func take(_ at: Int64, _ session: UInt64, _ word: String, _ rest: String) throws {
        switch word {
        case "ready": try add(at, session, #""kind":"session","code":"session-ready","jid":"\#(rest)""#)
        case "resumed":
            let parts = rest.split(separator: " ")
            let fields =
                #""kind":"session","code":"session-ready","details":{"resumes":\#(parts[0])},"jid":"\#(parts[1])""#
            try add(at, session, fields)
        case "ended": try add(at, session, #""kind":"session","code":"session-ended""#)
        default:
            let name = rest.dropFirst().prefix { $0.isLetter || $0 == ":" }
            let kind =
                ["iq", "message", "presence"].contains(name)
                ? "stanza"
                : rest.hasPrefix("</") ? "stream-close" : rest.hasPrefix("<stream:stream") ? "stream-open" : "element"
            var fields = #""kind":"\#(kind)","direction":"\#(word)","name":"\#(name)""#
            for key in ["id", "type", "from", "to"] {
                let tag = rest.prefix { $0 != ">" }
                guard let start = tag.firstRange(of: " \(key)='") else { continue }
                fields += #","\#(key)":"\#(tag[start.upperBound...].prefix { $0 != "'" })""#
            }
            if let inner = rest.firstIndex(of: ">"), rest[inner...].hasPrefix("><"),
                let uri = rest[inner...].firstRange(of: "xmlns='")
            {
                let payload = rest[inner...].dropFirst(2).prefix { $0.isLetter || $0 == "-" }
                fields += #","payload":"{\#(rest[uri.upperBound...].prefix { $0 != "'" })}\#(payload)""#
            }
            try add(at, session, fields + #","xml":"\#(rest.replacing("\"", with: "\\\""))""#)
        }
    }

    private mutating func add(_ at: Int64, _ session: UInt64, _ fields: String) throws {
        sequence += 1
        let text =
            #"{"sequence":\#(sequence),"time":"2026-11-22T10:00:00Z","monotonic":0.\#(String(at + 1000).dropFirst()),"level":"info","session":\#(session),\#(fields)}"#
        reader.take(try RecordLine(json: Array(text.utf8).span.bytes))
    }
}
