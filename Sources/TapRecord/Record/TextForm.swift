internal import XMPPCore

/// Writes records as lines for people.
///
/// ```
/// 17:22:42.102 [3] SEND: <stream:stream xmlns='jabber:client' …>
/// 17:22:44.261 [3 1024@192.168.1.1/iOS_V1.0] RECV: <iq xmlns="jabber:client" type="result" …/>
/// 17:22:44.262 info [3 1024@192.168.1.1/iOS_V1.0] RECV iq result 192.168.1.1 → iOS_V1.0 id=7 roster: 1 contact: a@b; 1.2 kB 38 ms
/// 17:22:45.008 warn [3 1024@192.168.1.1/iOS_V1.0] net: the server is slow to read (log-congested)
/// ```
///
/// The first two are XMPPFramework's form: the item as it went over the wire. The others tell a event: an item by
/// its head and its summary, or a remark of a part of the program. Every text from the wire is escaped (``LineBuffer/appendEscaped(_:)-(RawSpan)``);
/// the only other escape sequences are the colours, which the form adds itself.
public struct TextForm: Sendable {
    /// How the lines look.
    public struct Style: Sendable, Hashable {
        /// A text over 2 KiB is cut in its middle, with a note; for terminals, never for files.
        public var cutsLongTexts = false
        /// How to see such a text whole, as the note says it.
        public var cutAdvice = "use --log-to FILE,verbose for all of it"
        /// Levels and directions are coloured; for terminals without `NO_COLOR`.
        public var isColoured = false
        /// XML is broken into indented lines (the form `pretty`).
        public var indentsXML = false

        /// The style of a file.
        public init() {}
    }

    let style: Style
    private var timestamps = TimestampWriter()

    /// A form of that style.
    public init(style: Style = Style()) {
        self.style = style
    }

    /// Appends the lines of a record that are to be shown: the item, then the telling; `content` holds its texts.
    public mutating func append(
        _ record: borrowing Record,
        content: Span<UInt8>,
        _ shown: LogFilter.Shown,
        to line: inout LineBuffer
    ) {
        // White space is told and not shown; what only the whole XML is worth telling is shown and not told beside it.
        let showsXML = shown.contains(.xml) && record.kind != .whitespace
        if showsXML, let xml = record.xml, let direction = record.direction {
            begin(record, direction.word, withLevel: false, to: &line)
            line.append(style.indentsXML ? ":" : ": ")
            appendXML(content.slice(xml), to: &line)
            line.endLine()
            if let edited = record.edited {
                begin(record, direction.word, withLevel: false, isOwn: true, to: &line)
                line.append(style.indentsXML ? ":" : ": ")
                appendXML(content.slice(edited), to: &line)
                line.endLine()
            }
        }
        if shown.contains(.summary), !(showsXML && record.level == .verbose) {
            if let direction = record.direction, record.kind.isItem {
                begin(record, direction.word, withLevel: true, to: &line)
                if record.isMarked { line.append(0x3A) }
                appendHead(record, content, direction, to: &line)
            } else {
                begin(record, record.part.literal, withLevel: true, to: &line)
                line.append(0x3A)
                appendRemark(record, to: &line)
            }
            line.endLine()
        }
    }

    // MARK: - The beginning of a line

    /// `TIME LEVEL [SESSION WHO] WORD` and the mark of what the tap did. `isOwn` begins a line of what it put in the
    /// place of an item.
    private mutating func begin(
        _ record: borrowing Record,
        _ word: StaticString,
        withLevel: Bool,
        isOwn: Bool = false,
        to line: inout LineBuffer
    ) {
        timestamps.appendTimeOfDay(record.time, to: &line)
        line.append(0x20)
        if withLevel {
            append(record.level.literal, colour: record.level.colour, to: &line)
            line.append(0x20)
        }
        if record.session > 0 {
            line.append(0x5B)
            line.append(decimal: record.session)
            if let jid = record.jid {
                line.append(0x20)
                appendWire(jid.utf8.span, to: &line)
            } else if let user = record.user {
                line.append(" ~")
                appendWire(user.utf8.span, to: &line)
            }
            line.append("] ")
        }
        append(word, colour: record.direction?.colour, to: &line)
        if let action = record.action, !isOwn {
            line.append(0x20)
            line.appendEscaped(action)
            if let rule = record.rule {
                line.append(0x20)
                line.appendEscaped(rule)
            }
        }
        if isOwn || record.origin == .tap { line.append(" tap") }
    }

    private func append(_ word: StaticString, colour: StaticString?, to line: inout LineBuffer) {
        guard style.isColoured, let colour else { return line.append(word) }
        line.append(colour)
        line.append(word)
        line.append("\u{1B}[0m")
    }

    // MARK: - Texts from the wire

    private static let longest = 2048
    private static let keptStart = 1200
    private static let keptEnd = 600

    /// A text of the wire: escaped, and cut where that is asked for and it is long.
    func appendWire(_ text: Span<UInt8>, to line: inout LineBuffer) {
        guard style.cutsLongTexts, text.count > Self.longest else { return line.appendEscaped(text.bytes) }
        let start = text.characterBoundary(notAfter: Self.keptStart)
        let end = text.characterBoundary(notAfter: text.count - Self.keptEnd)
        line.appendEscaped(text.extracting(0..<start).bytes)
        line.append(" … ")
        line.append(size: UInt64(end - start))
        line.append(" cut here; ")
        line.appendEscaped(style.cutAdvice)
        line.append(" … ")
        line.appendEscaped(text.extracting(end...).bytes)
    }
}

extension Span<UInt8> {
    /// The largest offset up to `limit` at which no UTF-8 character is cut.
    fileprivate func characterBoundary(notAfter limit: Int) -> Int {
        var offset = limit
        while offset > limit - 3, offset > 0, self[offset] & 0xC0 == 0x80 { offset -= 1 }
        return self[offset] & 0xC0 == 0x80 ? limit : offset
    }
}

extension Record {
    /// Whether the tap did something about it, which is told before a colon.
    fileprivate var isMarked: Bool { action != nil || origin == .tap }
}

extension Record.Kind {
    /// Whether the record is of bytes that went over the wire, rather than a remark.
    fileprivate var isItem: Bool {
        switch self {
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose, .bytes, .chunk: true
        case .session, .tls, .note, .error: false
        }
    }
}

extension Direction {
    var word: StaticString { self == .send ? "SEND" : "RECV" }
    fileprivate var colour: StaticString { self == .send ? "\u{1B}[36m" : "\u{1B}[32m" }
}

extension Level {
    fileprivate var colour: StaticString? {
        switch self {
        case .error: "\u{1B}[1;31m"
        case .warn: "\u{1B}[33m"
        case .trace: "\u{1B}[2m"
        case .off, .info, .verbose: nil
        }
    }
}
