internal import XMPPCore

/// Rows of a table of records, as a JSON object with an array for each column.
///
/// A row has what a list shows of a record, about 150 bytes. The record itself is read separately when it is selected.
package struct RecordRows: ~Copyable {
    /// Maximum number of bytes of the text of a row.
    static let maximumText = 240
    /// Maximum number of bytes of an address, a type or another column.
    static let maximumWord = 160

    /// Number of rows.
    package private(set) var count = 0
    private var at = LineBuffer()
    private var number = LineBuffer()
    private var time = LineBuffer()
    private var session = LineBuffer()
    private var direction = LineBuffer()
    private var leg = LineBuffer()
    private var kind = LineBuffer()
    private var name = LineBuffer()
    private var type = LineBuffer()
    private var from = LineBuffer()
    private var to = LineBuffer()
    private var payload = LineBuffer()
    private var text = LineBuffer()
    private var isBody = LineBuffer()
    private var size = LineBuffer()
    private var level = LineBuffer()
    private var trip = LineBuffer()
    private var answers = LineBuffer()
    private var action = LineBuffer()
    private var origin = LineBuffer()
    private var code = LineBuffer()
    private var counts = LineBuffer()
    private var body: [UInt8] = []
    private let form = TextForm()

    package init() {}

    /// Adds the row of a record.
    ///
    /// - Parameters:
    ///   - content: The texts of the record.
    ///   - position: The position of the record among those that are stored.
    package mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int) {
        count += 1
        at.item(position)
        number.item(record.sequence)
        // Microseconds: nanoseconds since 1970 exceed the integers that JavaScript represents.
        time.item(Int(record.time.nanoseconds / 1000))
        session.item(record.session)
        direction.item(record.direction.map { $0 == .send ? 1 : 2 } ?? 0)
        leg.item(record.leg.map { $0 == .client ? 1 : 2 } ?? 0)
        kind.item(record.kind.literal)
        name.item(content, record.name, limit: Self.maximumWord)
        type.item(content, record.type, limit: Self.maximumWord)
        from.item(content, record.from, limit: Self.maximumWord)
        to.item(content, record.to, limit: Self.maximumWord)
        payload.item(record.payloadText(content), limit: Self.maximumWord)
        let showsBody = record.readBody(content, into: &body)
        isBody.item(showsBody ? 1 : 0)
        if showsBody {
            let body = body
            text.item(body.span, limit: Self.maximumText)
        } else if let words = record.summary?.text ?? record.message?.text {
            text.item(words, limit: Self.maximumText)
        } else {
            // Elements of SASL and stream management have no summary, but decoded facts.
            var words = LineBuffer()
            form.appendFacts(record, content, to: &words)
            words.drop(" ", at: 0)
            text.item(words.utf8, limit: Self.maximumText)
        }
        size.item(record.length)
        level.item(Int(record.level.rawValue))
        if let roundTrip = record.roundTrip { trip.item(Int(roundTrip / 1000)) } else { trip.itemNull() }
        if let request = record.answers { answers.item(request) } else { answers.itemNull() }
        action.item(record.action ?? "", limit: Self.maximumWord)
        origin.item(record.origin == .tap ? 1 : 0)
        code.item(record.code ?? record.condition ?? "", limit: Self.maximumWord)
        if let sm = record.isPlain ? nil : record.sm { counts.item(sm) } else { counts.itemNull() }
    }

    /// Adds a row for something that is not a record: the header of a file, damage or missing records.
    ///
    /// - Parameters:
    ///   - kind: `header`, `damage` or `gap`.
    ///   - words: The text of the row.
    ///   - position: The position among the stored records.
    ///   - level: The severity.
    ///   - moment: The time, if it is known.
    package mutating func add(
        _ kind: StaticString,
        _ words: String,
        at position: Int,
        _ level: Level,
        time moment: Timestamp? = nil
    ) {
        count += 1
        at.item(position)
        number.item(0)
        time.item(Int((moment?.nanoseconds ?? 0) / 1000))
        session.item(0)
        direction.item(0)
        leg.item(0)
        self.kind.item(kind)
        name.item("", limit: 0)
        type.item("", limit: 0)
        from.item("", limit: 0)
        to.item("", limit: 0)
        payload.item("", limit: 0)
        text.item(words, limit: Self.maximumText)
        isBody.item(0)
        size.item(0)
        self.level.item(Int(level.rawValue))
        trip.itemNull()
        answers.itemNull()
        action.item("", limit: 0)
        origin.item(0)
        code.item("", limit: 0)
        counts.itemNull()
    }

    /// Writes the columns as fields of the open object.
    package func append(to line: inout LineBuffer) {
        line.column("at", at)
        line.column("number", number)
        line.column("time", time)
        line.column("session", session)
        line.column("direction", direction)
        line.column("leg", leg)
        line.column("kind", kind)
        line.column("name", name)
        line.column("type", type)
        line.column("from", from)
        line.column("to", to)
        line.column("payload", payload)
        line.column("text", text)
        line.column("body", isBody)
        line.column("size", size)
        line.column("level", level)
        line.column("trip", trip)
        line.column("answers", answers)
        line.column("action", action)
        line.column("tap", origin)
        line.column("code", code)
        line.column("sm", counts)
    }
}

extension Record {
    /// Appends the text of a message to `text`, which is emptied first.
    ///
    /// - Returns: Whether the record is about a message with a text that may be shown.
    package func readBody(_ content: Span<UInt8>, into text: inout [UInt8]) -> Bool {
        text.removeAll(keepingCapacity: true)
        guard kind == .stanza, let xml, let name, content.slice(name).equals("message") else { return false }
        return MessageBody.read(content.slice(xml), into: &text)
    }

    /// Replaces `text` by the text of the message that was sent on in place of this one, if it has one that may be shown.
    ///
    /// - Returns: Whether it has.
    package func readEditedBody(_ content: Span<UInt8>, into text: inout [UInt8]) -> Bool {
        guard let edited else { return false }
        let old = text
        text.removeAll(keepingCapacity: true)
        if MessageBody.read(content.slice(edited), into: &text) { return true }
        text = old
        return false
    }

    /// Returns the first child as `{namespace}name`; empty if there is none.
    package func payloadText(_ content: Span<UInt8>) -> String {
        guard let payloadName else { return "" }
        // Interpolation of texts takes several times as long.
        var text: [UInt8] = [0x7B]
        text.reserveCapacity(80)
        if let payloadURI {
            text.append(content.slice(payloadURI))
        } else {
            payloadNamespace.withURI { text.append($0) }
        }
        guard text.count > 1 else { return content.slice(payloadName).string() }
        text.append(0x7D)
        text.append(content.slice(payloadName))
        return text.span.string()
    }
}

extension LineBuffer {
    fileprivate mutating func item(_ value: Int) {
        separate()
        append(decimal: value)
    }

    fileprivate mutating func item(_ value: UInt64) {
        separate()
        append(decimal: value)
    }

    fileprivate mutating func itemNull() {
        separate()
        append("null")
    }

    /// Appends the numbers of attributes as an object.
    fileprivate mutating func item(_ attributes: Attributes) {
        openObject()
        for entry in attributes.entries {
            guard case .integer(let number) = entry.value else { continue }
            field(named: entry.name)
            append(decimal: number)
        }
        closeObject()
    }

    /// Appends a literal of plain ASCII.
    fileprivate mutating func item(_ word: StaticString) {
        separate()
        append(0x22)
        append(word)
        append(0x22)
    }

    fileprivate mutating func item(_ text: String, limit: Int) {
        item(text.utf8Span.span, limit: limit)
    }

    fileprivate mutating func item(_ content: Span<UInt8>, _ range: ByteRange?, limit: Int) {
        guard let range else { return item("") }
        item(content.slice(range), limit: limit)
    }

    /// Appends a text, cut between two characters.
    fileprivate mutating func item(_ text: Span<UInt8>, limit: Int) {
        separate()
        let shown = text.cut(to: limit)
        // Text from the wire is UTF-8, because the scanner has checked it; other text is repaired.
        if !appendJSONString(shown.bytes) { appendJSONString(shown.string()) }
    }

    fileprivate mutating func column(_ name: StaticString, _ values: borrowing LineBuffer) {
        field(name)
        openArray()
        append(bytes: values.span)
        closeArray()
    }
}
