internal import XMPPCore

/// Writes records as lines for people.
///
/// ```
/// 17:22:42.102 [3] SEND: <stream:stream xmlns='jabber:client' …>
/// 17:22:44.261 [3 1024@192.168.1.1/iOS_V1.0] RECV: <iq xmlns="jabber:client" type="result" …/>
/// 17:22:44.262 info [3 1024@192.168.1.1/iOS_V1.0] RECV iq result 192.168.1.1 → iOS_V1.0 id=7 roster 1.2 kB 38 ms
/// 17:22:45.008 warn [3 1024@192.168.1.1/iOS_V1.0] net: the server is slow to read (log-congested)
/// ```
///
/// The first two are XMPPFramework's form: the item as it went over the wire. The others tell a happening: an item by
/// its head, or a remark of a part of the program. Every text from the wire is escaped (``LineBuffer/appendEscaped(_:)-(RawSpan)``);
/// the only other escape sequences are the colours, which the form adds itself.
public struct TextForm: Sendable {
    /// How the lines look.
    public struct Style: Sendable, Hashable {
        /// A text over 2 KiB is cut in its middle, with a note; for terminals, never for files.
        public var cutsLongTexts = false
        /// Levels and directions are coloured; for terminals without `NO_COLOR`.
        public var isColoured = false
        /// XML is broken into indented lines (the form `pretty`).
        public var indentsXML = false

        /// The style of a file.
        public init() {}
    }

    private let style: Style
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
        if shown.contains(.xml), let xml = record.xml, let direction = record.direction {
            begin(record, direction.word, withLevel: false, to: &line)
            line.append(style.indentsXML ? ":" : ": ")
            appendXML(content.slice(xml), to: &line)
            line.endLine()
        }
        if shown.contains(.summary) {
            if let direction = record.direction, record.kind.isItem {
                begin(record, direction.word, withLevel: true, to: &line)
                if record.isMarked { line.append(0x3A) }
                appendHead(record, content, direction, to: &line)
            } else {
                begin(record, record.direction?.word ?? record.part.literal, withLevel: true, to: &line)
                line.append(0x3A)
                appendRemark(record, to: &line)
            }
            line.endLine()
        }
    }

    // MARK: - The beginning of a line

    /// `TIME LEVEL [SESSION WHO] WORD` and the mark of what the tap did.
    private mutating func begin(
        _ record: borrowing Record,
        _ word: StaticString,
        withLevel: Bool,
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
        if let verdict = record.verdict {
            line.append(0x20)
            line.appendEscaped(verdict)
            if let rule = record.rule {
                line.append(0x20)
                line.appendEscaped(rule)
            }
        }
        if record.origin == .tap { line.append(" tap") }
    }

    private func append(_ word: StaticString, colour: StaticString?, to line: inout LineBuffer) {
        guard style.isColoured, let colour else { return line.append(word) }
        line.append(colour)
        line.append(word)
        line.append("\u{1B}[0m")
    }

    // MARK: - Items

    private func appendXML(_ xml: Span<UInt8>, to line: inout LineBuffer) {
        guard style.indentsXML else { return appendWire(xml, to: &line) }
        PrettyForm.append(xml, to: &line) { appendWire($0, to: &$1) }
    }

    /// ` iq result 192.168.1.1 → iOS_V1.0 id=7 roster 1.2 kB 38 ms`
    private func appendHead(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ direction: Direction,
        to line: inout LineBuffer
    ) {
        line.append(0x20)
        switch record.kind {
        case .stanza, .element: appendWire(content.slice(record.name ?? .empty), to: &line)
        case .streamOpen: line.append("stream")
        case .streamClose: line.append("end of stream")
        case .declaration: line.append("XML declaration")
        default: line.append(record.kind.literal)
        }
        if let type = record.type {
            line.append(0x20)
            appendWire(content.slice(type), to: &line)
        }
        appendAddresses(record, content, direction, to: &line)
        if let id = record.id {
            line.append(" id=")
            appendWire(content.slice(id), to: &line)
        }
        if let payload = record.payloadName { appendPayload(payload, record, content, to: &line) }
        append(record.sasl, to: &line)
        append(record.tls, to: &line)
        append(record.sm, to: &line)
        // Details are told in words where there are words for them.
        if record.message == nil { append(record.details, to: &line) }
        line.append(0x20)
        line.append(size: record.length)
        if record.kind == .chunk || record.kind == .bytes {
            line.append(" at ")
            line.append(decimal: record.offset)
        }
        if record.isTruncated { line.append(" truncated") }
        if let digest = record.digest {
            line.append(" digest=")
            line.appendEscaped(digest)
        }
        if let roundTrip = record.roundTrip {
            line.append(0x20)
            line.append(duration: roundTrip)
        }
        if let condition = record.condition {
            line.append(0x20)
            line.appendEscaped(condition)
        }
        if let message = record.message {
            line.append(record.condition == nil ? " " : ": ")
            appendWire(message.utf8.span, to: &line)
        }
    }

    /// ` FROM → TO`, the session's own full JID by its resource. A stanza's missing address is the one it stands for
    /// (RFC 6120 §8.1); a presence to nobody goes to all who are subscribed and has no arrow.
    private func appendAddresses(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ direction: Direction,
        to line: inout LineBuffer
    ) {
        let jid = record.kind == .stanza ? record.jid : nil
        let isBroadcast =
            direction == .send && record.to == nil && content.slice(record.name ?? .empty).equals("presence")
        let from = record.from != nil || jid != nil
        let to = record.to != nil || jid != nil && !isBroadcast
        if from {
            line.append(0x20)
            appendAddress(record.from, content, jid, isOwn: direction == .send, to: &line)
        }
        if to {
            line.append(" → ")
            appendAddress(record.to, content, jid, isOwn: direction == .recv, to: &line)
        }
    }

    /// - Parameter isOwn: Whether a missing address is the session's full JID, else its account's bare one.
    private func appendAddress(
        _ range: ByteRange?,
        _ content: Span<UInt8>,
        _ jid: String?,
        isOwn: Bool,
        to line: inout LineBuffer
    ) {
        if let range {
            let address = content.slice(range)
            if let jid, address.equals(jid.utf8.span) { return appendResource(jid, to: &line) }
            appendWire(address, to: &line)
        } else if let jid {
            if isOwn { appendResource(jid, to: &line) } else { appendWire(jid.utf8.span.untilSlash, to: &line) }
        }
    }

    private func appendResource(_ text: String, to line: inout LineBuffer) {
        let jid = text.utf8.span
        let bare = jid.untilSlash.count
        appendWire(bare < jid.count ? jid.extracting((bare + 1)...) : jid, to: &line)
    }

    /// The first child's name; where that says nothing (`query`, `x`) the telling part of its namespace.
    private func appendPayload(
        _ name: ByteRange,
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        to line: inout LineBuffer
    ) {
        line.append(0x20)
        let name = content.slice(name)
        guard name.equals("query") || name.equals("x") else { return appendWire(name, to: &line) }
        var uri = LineBuffer(capacity: 64)
        if record.payloadNamespace == .other {
            uri.append(bytes: content.slice(record.payloadURI ?? .empty).bytes)
        } else {
            uri.append(record.payloadNamespace.uri)
        }
        let word = uri.bytes.span.tellingPart
        appendWire(word.isEmpty ? name : word, to: &line)
    }

    private func append(_ facts: Facts?, to line: inout LineBuffer) {
        guard let facts else { return }
        for entry in facts.entries {
            line.append(0x20)
            line.appendEscaped(entry.name)
            line.append(0x3D)
            appendWire(entry.value.text.utf8.span, to: &line)
        }
    }

    // MARK: - Remarks

    /// ` MESSAGE (2.3 s; sent stanzas 4, received stanzas 5)`, and from warn on the code and condition.
    private func appendRemark(_ record: borrowing Record, to line: inout LineBuffer) {
        line.append(0x20)
        if let message = record.message {
            appendWire(message.utf8.span, to: &line)
        } else {
            line.appendEscaped(record.code ?? record.kind.rawValue)
        }
        var separator: StaticString = " ("
        var isOpen = false
        if let roundTrip = record.roundTrip {
            line.append(separator)
            line.append(duration: roundTrip)
            separator = "; "
            isOpen = true
        }
        for facts in [record.sasl, record.tls, record.sm, record.details] {
            for entry in facts?.entries ?? [] {
                line.append(separator)
                for byte in entry.name.utf8 { line.appendEscaped([byte == 0x5F ? 0x20 : byte].span.bytes) }
                line.append(0x20)
                appendWire(entry.value.text.utf8.span, to: &line)
                separator = ", "
                isOpen = true
            }
        }
        if record.level <= .warn {
            for word in [record.code, record.condition] {
                guard let word, record.message != nil, record.message?.contains(word) == false else { continue }
                line.append(separator)
                line.appendEscaped(word)
                separator = ", "
                isOpen = true
            }
        }
        if isOpen { line.append(0x29) }
        if let bytes = record.bytes, !bytes.isEmpty {
            line.append(": ")
            appendWire(bytes.span, to: &line)
        }
    }

    // MARK: - Texts from the wire

    private static let longest = 2048
    private static let keptStart = 1200
    private static let keptEnd = 600

    /// A text of the wire: escaped, and cut where that is asked for and it is long.
    private func appendWire(_ text: Span<UInt8>, to line: inout LineBuffer) {
        guard style.cutsLongTexts, text.count > Self.longest else { return line.appendEscaped(text.bytes) }
        let start = text.characterBoundary(notAfter: Self.keptStart)
        let end = text.characterBoundary(notAfter: text.count - Self.keptEnd)
        line.appendEscaped(text.extracting(0..<start).bytes)
        line.append(" … ")
        line.append(size: UInt64(end - start))
        line.append(" cut here; --log-to FILE,verbose writes it whole … ")
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

    /// Of a namespace, what stands behind the last `/` or `:` and is no number: `roster` of `jabber:iq:roster`,
    /// `disco#info` of `http://jabber.org/protocol/disco#info`, `mam` of `urn:xmpp:mam:2`.
    fileprivate var tellingPart: Span<UInt8> {
        @_lifetime(copy self)
        get {
            var end = count
            while end > 0 {
                var start = end
                var isNumber = true
                while start > 0, self[start - 1] != 0x2F, self[start - 1] != 0x3A {
                    start -= 1
                    isNumber = isNumber && (0x30...0x39).contains(self[start])
                }
                if !isNumber { return extracting(start..<end) }
                end = Swift.max(0, start - 1)
            }
            return extracting(0..<0)
        }
    }
}

extension Record {
    /// Whether the tap did something about it, which is told before a colon.
    fileprivate var isMarked: Bool { verdict != nil || origin == .tap }
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
    fileprivate var word: StaticString { self == .send ? "SEND" : "RECV" }
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
