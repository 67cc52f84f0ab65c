internal import TapCapture
internal import TapRecord
internal import XMPPCore

/// The details of one record: its fields, the action of xmpptap, and its XML.
struct DetailView {
    /// Maximum number of bytes of an item that are shown.
    private static let maximumItem = 128 << 10
    /// Maximum number of bytes of a value.
    private static let maximumValue = 4096
    private static let nameWidth = 16

    /// A line; its text is escaped.
    private struct Line {
        let text: String
        var name = ""
        var style = Style.plain
        /// The columns before a part of a line that was too long.
        var indent = 0
    }

    /// The position of the record; -1 if none was chosen.
    private(set) var position = -1
    private var whole: Inspection.Whole?
    /// The lines at a width.
    private var lines: [Line] = []
    private var width = 0
    private var top = 0
    private var height = 1

    /// The session of the record; nil if it belongs to none.
    var session: UInt64? { whole?.row.flatMap { $0.session > 0 ? $0.session : nil } }

    /// Shows a record.
    mutating func show(_ position: Int, _ context: ViewContext) {
        if position != self.position { top = 0 }
        self.position = position
        whole = context.inspection.whole(at: position)
        width = 0
    }

    /// Reads the record again if its answer may have come since.
    mutating func refresh(_ context: ViewContext) {
        guard position >= 0, let known = whole, known.request == nil, known.answer == nil else { return }
        let new = context.inspection.whole(at: position)
        // The table may have dropped the record that is shown.
        guard new.row != nil, new.answer != known.answer || new.request != known.request else { return }
        whole = new
        width = 0
    }

    // MARK: Keys

    mutating func handle(_ key: Key, _ context: ViewContext) -> ViewRequest? {
        switch key {
        case .down, .character("j"): scroll(1)
        case .up, .character("k"): scroll(-1)
        case .pageDown, .control("f"), .character(" "): scroll(height)
        case .pageUp, .control("b"): scroll(-height)
        case .control("d"): scroll(max(1, height / 2))
        case .control("u"): scroll(-max(1, height / 2))
        case .home, .character("g"): top = 0
        case .end, .character("G"): scroll(lines.count)
        case .left, .character("h"), .enter: return .back
        case .character("a"): return RecordsView.partner(of: position, context)
        case .character("d"):
            guard let session else { return .say("this row belongs to no session") }
            return .diagram(session: session)
        default: return nil
        }
        return nil
    }

    private mutating func scroll(_ distance: Int) { top = max(0, min(top + distance, lines.count - height)) }

    // MARK: Drawing

    /// A sentence about the view.
    var status: String {
        lines.count > height ? "lines \(top + 1) to \(min(top + height, lines.count)) of \(lines.count)" : ""
    }

    mutating func draw(_ area: Area, _ context: ViewContext, to screen: inout Screen) {
        height = max(1, area.height)
        if width != screen.width {
            width = screen.width
            lines = makeLines(context)
        }
        top = max(0, min(top, lines.count - height))
        for (row, line) in lines.dropFirst(top).prefix(height).enumerated() {
            let y = area.top + row
            if !line.name.isEmpty { screen.put(escaped: line.name, x: 1, y: y, limit: Self.nameWidth, style: .dim) }
            screen.put(escaped: line.text, x: 1 + line.indent, y: y, style: line.style)
        }
    }

    private func makeLines(_ context: ViewContext) -> [Line] {
        guard let row = whole?.row else {
            let text = "xmpptap no longer keeps this record; a capture (--capture FILE) has all of them."
            return Columns.wrapped(text, to: max(10, width - 2)).map { Line(text: $0) }
        }
        var lines: [Line] = []
        func add(_ text: String, _ style: Style = .plain) {
            let text = LineBuffer.escaped(text.cut(to: Self.maximumValue))
            lines += Columns.wrapped(text, to: max(10, width - 2)).map { Line(text: $0, style: style) }
        }
        let number = row.number > 0 ? "#\(row.number) " : ""
        let direction = row.direction.map { "\($0.name)".uppercased() + " " } ?? ""
        add("\(number)\(direction)\(row.item)", .bold)
        if !row.contents.isEmpty { add(row.contents, row.style) }
        add(context.clock.stamp(row.time), .dim)
        if whole?.request != nil { add("a: its request") }
        if whole?.answer != nil { add("a: its answer") }
        guard let line = whole?.line else { return lines }
        for group in Self.facts(line, row) {
            lines.append(Line(text: ""))
            if !group.title.isEmpty { lines.append(Line(text: group.title, style: .bold)) }
            for fact in group.facts { lines += self.lines(fact.name, fact.value) }
        }
        lines += items(of: line)
        return lines
    }

    /// Returns the lines of a fact, with the name before the first one.
    private func lines(_ name: String, _ value: String) -> [Line] {
        let indent = Self.nameWidth + 1
        let value = LineBuffer.escaped(value.cut(to: Self.maximumValue))
        let wrapped = Columns.wrapped(value, to: max(10, width - indent - 2))
        return wrapped.enumerated().map { index, text in
            Line(text: text, name: index == 0 ? LineBuffer.escaped(name) : "", indent: indent)
        }
    }

    private typealias Fact = (name: String, value: String)

    /// Returns the fields of a record, in the groups of the page.
    private static func facts(_ line: RecordLine, _ row: RecordRow) -> [(title: String, facts: [Fact])] {
        let (record, content) = (line.record, line.content)
        var facts: [Fact] = []
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, value)) }
        }
        func text(_ range: ByteRange?) -> String? {
            range.map { content.span.slice($0).cut(to: maximumValue).string() }
        }
        if row.session > 0 {
            let who = record.jid ?? record.user ?? record.domain
            add("session", InspectedSession.name(of: row.session) + (who.map { " · \($0)" } ?? ""))
        }
        add("from", text(record.from))
        add("to", text(record.to))
        add("type", text(record.type))
        add("id", text(record.id))
        add("payload", record.payloadText(content.span))
        if let message = record.message, "\(message)" != row.text { add("what", "\(message)") }
        add("condition", record.condition)
        add("code", record.code)
        add("action", record.action)
        add("rule", record.rule)
        if record.origin == .tap { add("origin", "xmpptap") }
        if record.isTruncated { add("truncated", "the record has only a part of the item") }
        if let trip = record.roundTrip {
            add(record.answers == nil ? "took" : "answered after", LineBuffer.duration(trip))
        }
        if record.length > 0 {
            let leg = record.leg.map { " of the \($0.name)" } ?? ""
            let last = record.offset &+ record.length &- 1
            add(
                "size",
                "\(Words.size(record.length)), bytes \(record.offset) to \(last) of stream \(record.epoch)\(leg)"
            )
        }
        if !record.chunks.isEmpty {
            let offsets = record.chunks.prefix(20).map { "\($0)" }.joined(separator: ", ")
            add("reads", "the item arrived in \(record.chunks.count + 1) reads, split after \(offsets) bytes")
        }
        if !record.tlsRecords.isEmpty {
            let offsets = record.tlsRecords.prefix(20).map { "\($0)" }.joined(separator: ", ")
            add(
                "TLS records",
                "the item is in \(record.tlsRecords.count + 1) TLS records, split after \(offsets) bytes"
            )
        }
        add("level", record.level.name)
        if record.part != .session { add("part", record.part.name) }
        var groups: [(title: String, facts: [Fact])] = [("", facts)]
        for (title, attributes) in [
            ("SASL", record.sasl), ("TLS", record.tls), ("Stream management", record.sm), ("Details", record.details),
        ] {
            guard let attributes, !attributes.isEmpty else { continue }
            groups.append((title, attributes.entries.map { ($0.name.replacing("_", with: " "), $0.value.text) }))
        }
        return groups
    }

    // MARK: The item

    /// Returns the XML as it was received, and as it was sent on if it was edited.
    private func items(of line: RecordLine) -> [Line] {
        var lines: [Line] = []
        if let xml = line.record.xml {
            lines += [Line(text: ""), Line(text: line.record.edited == nil ? "XML" : "As received", style: .bold)]
            lines += self.lines(of: line.content.span.slice(xml))
        }
        if let edited = line.record.edited {
            lines += [Line(text: ""), Line(text: "As sent on", style: .bold)]
            lines += self.lines(of: line.content.span.slice(edited))
        }
        if let bytes = line.record.bytes {
            let title = "\(Words.size(UInt64(bytes.count))) that are not text"
            lines += [Line(text: ""), Line(text: title, style: .bold)]
            lines += Self.hexadecimal(bytes.prefix(4096)).map { Line(text: $0) }
        }
        return lines
    }

    private func lines(of xml: Span<UInt8>) -> [Line] {
        let (texts, omitted) = PrettyForm.lines(xml, limit: Self.maximumItem)
        var lines: [Line] = []
        for text in texts {
            let indent = text.prefix { $0 == " " }.count
            for (index, part) in Self.parts(of: text, width: max(10, width - 2), indent: indent).enumerated() {
                lines.append(Line(text: part, indent: index == 0 ? 0 : indent + 2))
            }
        }
        if omitted > 0 {
            lines.append(Line(text: "… \(Words.size(UInt64(omitted))) more; 'xmpptap read' shows all", style: .dim))
        }
        return lines
    }

    /// Breaks a line into parts that fit; white space stays as it is.
    private static func parts(of text: String, width: Int, indent: Int) -> [String] {
        guard text.utf8.count > width else { return [text] }
        var parts: [String] = []
        var part = ""
        var used = 0
        let room = max(10, width - indent - 2)
        for character in text {
            let columns = character.isASCII ? 1 : Columns.count(String(character))
            if used + columns > (parts.isEmpty ? width : room) {
                parts.append(part)
                part = ""
                used = 0
            }
            part.append(character)
            used += columns
        }
        return parts + [part]
    }

    private static func hexadecimal(_ bytes: some Collection<UInt8>) -> [String] {
        func digits(_ value: Int, _ width: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        let bytes = Array(bytes)
        return stride(from: 0, to: bytes.count, by: 16).map { start in
            let part = bytes[start..<min(start + 16, bytes.count)]
            let codes = part.map { digits(Int($0), 2) }.joined(separator: " ")
            let text = part.map { $0 >= 0x20 && $0 < 0x7F ? String(Unicode.Scalar($0)) : "." }.joined()
            return "\(digits(start, 6))  \(codes.padded(to: 48)) \(text.replacing("\\", with: "\\\\"))"
        }
    }
}
