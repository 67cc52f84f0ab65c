internal import XMPPCore

/// A row of a list of records, as values; ``RecordRows`` has the same fields as JSON.
package struct RecordRow: Sendable, Hashable {
    /// The position of the record among those that are stored.
    package let position: Int
    /// The number of the record within its run; 0 for a remark.
    package private(set) var number: UInt64 = 0
    /// The time; nil if a remark has none.
    package private(set) var time: Timestamp?
    /// The number of the session; 0 if there is none.
    package private(set) var session: UInt64 = 0
    package private(set) var direction: Direction?
    package private(set) var leg: Leg?
    /// The raw value of ``Record/Kind``; `header`, `damage` or `gap` for a remark.
    package let kind: String
    package private(set) var name = ""
    package private(set) var type = ""
    package private(set) var from = ""
    package private(set) var to = ""
    /// The first child as `{namespace}name`; empty if there is none.
    package private(set) var payload = ""
    /// The text of a message, the summary of an item, or the words of a note.
    package let text: String
    /// Whether ``text`` is the text of a message.
    package private(set) var isBody = false
    /// Number of bytes on the wire.
    package private(set) var size: UInt64 = 0
    package let level: Level
    /// The time between the request and this answer, or of a step, in nanoseconds.
    package private(set) var trip: Int64?
    /// The number of the request that this record answers.
    package private(set) var answers: UInt64?
    package private(set) var action = ""
    /// Whether xmpptap has sent the item.
    package private(set) var isOwn = false
    package private(set) var code = ""
    /// The result of a login step; nil for other records.
    package private(set) var stepResult: LoginStep.Result?

    /// Creates the row of a record.
    ///
    /// - Parameter content: The texts of the record.
    package init(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        self.position = position
        number = record.sequence
        time = record.time
        session = record.session
        direction = record.direction
        leg = record.leg
        kind = record.kind.rawValue
        name = Self.word(content, record.name)
        type = Self.word(content, record.type)
        from = Self.word(content, record.from)
        to = Self.word(content, record.to)
        payload = Self.word(record.payloadText(content))
        var body: [UInt8] = []
        isBody = record.readBody(content, into: &body)
        if isBody {
            text = body.span.cut(to: RecordRows.maximumText).string()
        } else {
            let words = record.summary?.text ?? record.message?.text ?? ""
            text = words.utf8Span.span.cut(to: RecordRows.maximumText).string()
        }
        size = record.length
        level = record.level
        trip = record.roundTrip
        answers = record.answers
        action = Self.word(record.action ?? "")
        isOwn = record.origin == .tap
        code = Self.word(record.code ?? record.condition ?? "")
        if code == LoginStep.code { stepResult = record.details.flatMap { LoginStep.Result($0) } }
    }

    /// Creates a row for something that is not a record: the header of a file, damage or missing records.
    ///
    /// - Parameters:
    ///   - kind: `header`, `damage` or `gap`.
    ///   - words: The text of the row.
    package init(_ kind: String, _ words: String, at position: Int, _ level: Level, time: Timestamp? = nil) {
        self.position = position
        self.kind = kind
        self.time = time
        self.level = level
        text = words.utf8Span.span.cut(to: RecordRows.maximumText).string()
    }

    private static func word(_ content: Span<UInt8>, _ range: ByteRange?) -> String {
        guard let range else { return "" }
        return content.slice(range).cut(to: RecordRows.maximumWord).string()
    }

    private static func word(_ text: String) -> String {
        text.utf8Span.span.cut(to: RecordRows.maximumWord).string()
    }
}
