internal import XMPPCore

/// Writes records as lines for people.
///
/// ```
/// 2026-11-21T17:22:42.102Z [3] SEND: <stream:stream xmlns='jabber:client' …>
/// 2026-11-21T17:22:44.261Z [3 1024@192.168.1.1/iOS_V1.0] RECV: <iq xmlns="jabber:client" type="result" …/>
/// 2026-11-21T17:22:44.262Z info [3 1024@192.168.1.1/iOS_V1.0] RECV iq result 192.168.1.1 → iOS_V1.0 id=7 roster: 1 contact: a@b; 1.2 kB 38 ms
/// 2026-11-21T17:22:45.008Z warn [3 1024@192.168.1.1/iOS_V1.0] net: the server is slow to read (log-congested)
/// ```
///
/// The first two are XMPPFramework's form: the item as sent on the wire. The others describe an event: an item by its
/// head and its summary, or a note from a part of the program. Each line has the day and the offset from UTC, since
/// lines are filtered, sorted and merged by other programs, and files are rotated. Every text from the wire is escaped
/// (``LineBuffer/appendEscaped(_:)-(RawSpan)``); the only other escape sequences are the colours, which the form adds
/// itself.
public struct TextForm: ~Copyable, Sendable {
    /// The style of the lines.
    public struct Style: Sendable, Hashable {
        /// Whether a text over 2 KiB is cut in the middle, with a note; for terminals, not for files.
        package var cutsLongTexts = false
        /// The advice in that note on how to see the whole text.
        package var cutAdvice = ""
        /// Whether levels and directions are coloured; for terminals without `NO_COLOR`.
        package var isColoured = false
        /// Whether XML is broken into indented lines (the form `pretty`).
        package var indentsXML = false
        /// Whether the text of messages is shown beside the summary, if the record contains it.
        package var showsBodies = false
        /// Whether long ids in summaries are cut to their beginning; for ``CompactForm``.
        var shortensIDs = false
        /// The zone of the times; default UTC.
        package var zone = LocalZone.utc

        /// Creates the style of log files, without colours and cuts.
        @usableFromInline package init() {}
    }

    let style: Style
    private var timestamps: TimestampWriter
    /// A buffer for one text, stored to reuse the memory.
    private var body: [UInt8] = []

    /// Creates a form with a style.
    public init(style: Style = Style()) {
        self.style = style
        timestamps = TimestampWriter(zone: style.zone)
    }

    /// Appends the shown lines of a record: the item, then the description; `content` holds its texts.
    public mutating func append(
        _ record: borrowing Record,
        content: Span<UInt8>,
        _ shown: LogFilter.Shown,
        to line: inout LineBuffer
    ) {
        // White space is summarised, not shown. Items of level verbose are shown as XML, without a summary.
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

    /// Writes `TIME LEVEL [SESSION WHO] WORD` and the action on the item. `isOwn` is true for the line with the data
    /// that replaced an item.
    private mutating func begin(
        _ record: borrowing Record,
        _ word: StaticString,
        withLevel: Bool,
        isOwn: Bool = false,
        to line: inout LineBuffer
    ) {
        timestamps.appendStamp(record.time, to: &line)
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
                jid.withBytes { appendWho($0, to: &line) }
            } else if let user = record.user {
                line.append(" ~")
                appendWho(user.utf8.span, to: &line)
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

    private static let maximumLength = 2048
    private static let keptStart = 1200
    private static let keptEnd = 600

    /// Appends the session's JID or user name. Escapes `]` before a space, so that a resource, or the name in a failed
    /// login, cannot imitate the end of `[SESSION WHO]` and an item after it.
    private func appendWho(_ who: Span<UInt8>, to line: inout LineBuffer) {
        guard who.firstIndex(of: 0x5D) != nil else { return appendWire(who, to: &line) }
        var start = 0
        for index in who.indices where who[index] == 0x5D && index + 1 < who.count && who[index + 1] == 0x20 {
            appendWire(who.extracting(start..<index), to: &line)
            line.append("\\u{5d}")
            start = index + 1
        }
        appendWire(who.extracting(start...), to: &line)
    }

    /// Appends a summary or a value, whose ids may be shortened.
    private func appendValue(_ text: Span<UInt8>, to line: inout LineBuffer) {
        guard style.shortensIDs, text.count >= LineBuffer.longID else { return appendWire(text, to: &line) }
        var start = 0
        while start < text.count {
            let end = text.firstIndex(of: 0x20, from: start) ?? text.count
            let word = text.extracting(start..<end)
            if !line.appendShortID(word) { line.appendEscaped(word.bytes) }
            if end < text.count { line.append(0x20) }
            start = end + 1
        }
    }

    /// Appends a text from the wire: escaped, and cut if it is long and the style asks for it.
    private func appendWire(_ text: Span<UInt8>, to line: inout LineBuffer) {
        guard style.cutsLongTexts, text.count > Self.maximumLength else { return line.appendEscaped(text.bytes) }
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
    /// Returns the largest offset up to `limit` that does not split a UTF-8 character.
    func characterBoundary(notAfter limit: Int) -> Int {
        var offset = limit
        while offset > limit - 3, offset > 0, self[offset] & 0xC0 == 0x80 { offset -= 1 }
        return self[offset] & 0xC0 == 0x80 ? limit : offset
    }
}

extension Record {
    /// Whether xmpptap acted on the item, so that the line names the action before a colon.
    fileprivate var isMarked: Bool { action != nil || origin == .tap }
}

extension Record.Kind {
    /// Whether a record of this kind describes bytes on the wire, rather than a note.
    fileprivate var isItem: Bool {
        switch self {
        case .declaration, .streamOpen, .stanza, .element, .whitespace, .streamClose, .bytes, .chunk, .frame: true
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

// The contents of a line: items by their heads, and annotations.
extension TextForm {
    private func appendXML(_ xml: Span<UInt8>, to line: inout LineBuffer) {
        guard style.indentsXML else { return appendWire(xml, to: &line) }
        PrettyForm.append(xml, to: &line) { appendWire($0, to: &$1) }
    }

    /// Appends the head, such as ` iq result 192.168.1.1 → iOS_V1.0 id=7 roster: 1 contact: a@b; 1.2 kB 38 ms`.
    package mutating func appendHead(
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
        if let id = record.id, !id.isEmpty {
            line.append(" id=")
            appendWire(content.slice(id), to: &line)
        }
        // The semicolon separates the size from the summary, which may end with another size.
        line.append(appendContent(record, content, to: &line) ? "; " : " ")
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
        if record.condition != nil, let message = record.message {
            line.append(": ")
            appendWire(message.text.utf8.span, to: &line)
        }
    }

    /// Appends the summary, the attributes, and annotations: ` roster: 1 contact: a@b`, ` SCRAM-SHA-1, client nonce
    /// bytes 16`. Omits the message of an error, which follows the condition.
    ///
    /// - Returns: Whether anything was appended.
    mutating func appendContent(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        var hasText = appendSummary(record, content, to: &line)
        if style.showsBodies, appendBody(record, content, to: &line) { hasText = true }
        guard !record.isPlain else { return hasText }
        let name = content.slice(record.name ?? .empty)
        append(record.sasl, of: name, &hasText, to: &line)
        append(record.tls, of: name, &hasText, to: &line)
        // The message replaces the details if there is one.
        guard let message = record.message else {
            append(record.details, of: name, &hasText, to: &line)
            return hasText
        }
        guard record.condition == nil else { return hasText }
        line.append(hasText ? ", " : " ")
        appendWire(message.text.utf8.span, to: &line)
        return true
    }

    /// Appends the decoded facts of an element of SASL or TLS: ` SCRAM-SHA-1, client nonce bytes 16`.
    func appendFacts(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) {
        let name = content.slice(record.name ?? .empty)
        var hasText = false
        append(record.sasl, of: name, &hasText, to: &line)
        append(record.tls, of: name, &hasText, to: &line)
    }

    private func append(_ details: Attributes?, of name: Span<UInt8>, _ hasText: inout Bool, to line: inout LineBuffer)
    {
        for entry in details?.entries ?? [] where entry != Self.beginning {
            // The values of these attributes are clear without a name.
            let isNameless = entry.name == "mechanism" || entry.name == "step"
            let value = entry.value.text
            // A step is often named like the element.
            if isNameless, name.equals(value.utf8.span) { continue }
            line.append(hasText ? ", " : " ")
            hasText = true
            if !isNameless {
                appendName(entry.name, to: &line)
                line.append(0x20)
            }
            appendValue(value.utf8.span, to: &line)
        }
    }

    /// The step that `<auth/>` and similar elements always have.
    private static let beginning = Attributes.Entry(name: "step", value: "begin")

    /// Appends ` FROM → TO`; the session's own full JID is shortened to its resource. A missing address of a stanza is
    /// replaced by the implied one (RFC 6120 §8.1); presence without `to` goes to all subscribers and has no arrow.
    private func appendAddresses(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        _ direction: Direction,
        to line: inout LineBuffer
    ) {
        let isBroadcast =
            direction == .send && record.to == nil && content.slice(record.name ?? .empty).equals("presence")
        let (from, to) = (record.from, record.to)
        let own = record.kind == .stanza ? record.jid ?? "" : ""
        own.withBytes { jid in
            if from != nil || !jid.isEmpty {
                line.append(0x20)
                appendAddress(from, content, jid, isOwn: direction == .send, to: &line)
            }
            if to != nil || !jid.isEmpty && !isBroadcast {
                line.append(" → ")
                appendAddress(to, content, jid, isOwn: direction == .recv, to: &line)
            }
        }
    }

    /// - Parameters:
    ///   - jid: The session's full JID; empty if there is none.
    ///   - isOwn: Whether a missing address means the session's full JID, not the account's bare JID.
    private func appendAddress(
        _ range: ByteRange?,
        _ content: Span<UInt8>,
        _ jid: Span<UInt8>,
        isOwn: Bool,
        to line: inout LineBuffer
    ) {
        if let range {
            let address = content.slice(range)
            if !jid.isEmpty, address.equals(jid) { return appendResource(jid, to: &line) }
            appendWire(address, to: &line)
        } else if isOwn {
            appendResource(jid, to: &line)
        } else {
            appendWire(jid.untilSlash, to: &line)
        }
    }

    private func appendResource(_ jid: Span<UInt8>, to line: inout LineBuffer) {
        let bare = jid.untilSlash.count
        appendWire(bare < jid.count ? jid.extracting((bare + 1)...) : jid, to: &line)
    }

    /// Appends the item's summary; if the record has none, as in older captures, appends the kind of its payload.
    ///
    /// - Returns: Whether anything was appended.
    private func appendSummary(_ record: borrowing Record, _ content: Span<UInt8>, to line: inout LineBuffer) -> Bool {
        guard let summary = record.summaryText ?? payload(record, content) else { return false }
        line.append(0x20)
        summary.withBytes { appendValue($0, to: &line) }
        return true
    }

    /// Appends the text of a message, such as ` "Wherefore art thou?"`.
    private mutating func appendBody(
        _ record: borrowing Record,
        _ content: Span<UInt8>,
        to line: inout LineBuffer
    ) -> Bool {
        guard record.kind == .stanza, let xml = record.xml,
            content.slice(record.name ?? .empty).equals("message")
        else { return false }
        body.removeAll(keepingCapacity: true)
        guard MessageBody.read(content.slice(xml), into: &body) else { return false }
        line.append(" \"")
        appendWire(body.span, to: &line)
        line.append("\"")
        return true
    }

    private func payload(_ record: borrowing Record, _ content: Span<UInt8>) -> String? {
        guard record.kind == .stanza, let name = record.payloadName else { return nil }
        return Summary.text(
            name: content.slice(name),
            namespace: record.payloadNamespace,
            uri: content.slice(record.payloadURI ?? .empty)
        )
    }

    /// Appends a detail's name as words: `sent_stanzas` is `sent stanzas`.
    private func appendName(_ name: String, to line: inout LineBuffer) {
        let start = line.count
        line.appendEscaped(name)
        line.replace(0x5F, by: 0x20, from: start)
    }

    /// Appends ` MESSAGE (2.3 s; sent stanzas 4, received stanzas 5)` and the direction of the event; for errors and
    /// warnings also the code and the condition.
    func appendRemark(_ record: borrowing Record, to line: inout LineBuffer) {
        line.append(0x20)
        let start = line.count
        if let message = record.message {
            appendWire(message.text.utf8.span, to: &line)
        } else {
            line.appendEscaped(record.code ?? record.kind.rawValue)
        }
        let words = start..<line.count
        var separator: StaticString = " ("
        var isOpen = false
        if let roundTrip = record.roundTrip {
            line.append(separator)
            line.append(duration: roundTrip)
            separator = "; "
            isOpen = true
        }
        if let direction = record.direction {
            line.append(separator)
            line.append(direction.word)
            separator = ", "
            isOpen = true
        }
        for details in [record.sasl, record.tls, record.details] {
            for entry in details?.entries ?? [] where !record.isInMessage(entry) {
                line.append(separator)
                appendName(entry.name, to: &line)
                line.append(0x20)
                appendWire(entry.value.text.utf8.span, to: &line)
                separator = ", "
                isOpen = true
            }
        }
        if record.level <= .warn {
            for word in record.code == record.condition ? [record.code] : [record.code, record.condition] {
                guard let word, record.message != nil else { continue }
                guard record.details?.entries.contains(where: { $0.value == .string(word) }) != true else { continue }
                // Omits a code or condition that the line already contains.
                guard !line.utf8.extracting(words).contains(word.utf8.span) else { continue }
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
}

extension Record {
    /// Returns whether a detail is omitted from the text, because the message contains its information.
    fileprivate func isInMessage(_ entry: Attributes.Entry) -> Bool {
        let detail = entry.name
        return switch code {
        case Code.sessionBegan:
            detail == Detail.source || detail == Detail.upstream || detail == Detail.request || detail == Detail.target
        case LoginStep.code: LoginStep.messageDetails.contains(detail)
        case Code.subscription: detail == Detail.contact || detail == Detail.before || detail == Detail.after
        case Code.sessionEnded: !Self.isShownInText(entry)
        case Code.tlsOpened: true
        // The message contains all details except the code of the cause.
        case Code.loginFailed: detail != Detail.cause
        default: false
        }
    }

    /// Returns whether the text log shows a detail of a session's end. It shows the details that neither the message
    /// nor earlier lines contain.
    private static func isShownInText(_ entry: Attributes.Entry) -> Bool {
        switch entry.name {
        case "kind": entry.value != "client"
        case "sent_stanzas", "received_stanzas", "sent_bytes", "received_bytes", "unanswered", "unverified": true
        default: false
        }
    }
}
