internal import TapRecord
import XMPPCore

// Makes records from events.
extension Session {
    /// Records an item that needs only its head.
    mutating func recordItem(
        _ event: StreamEvent,
        _ direction: Direction,
        _ kind: Record.Kind,
        level: Level,
        part: Part = .session
    ) {
        guard (rules?.ruling?.level ?? level) <= options.level else { return }
        emit(makeRecord(event, direction, kind, level: level, part: part))
    }

    /// The only path of a record to the sinks: through the redactor.
    mutating func emit(_ record: consuming Record) {
        guard record.level <= options.level, rules == nil || !isLeftOut(record) else { return }
        enqueue(record)
    }

    /// Makes a record of this session without content.
    @inline(__always)
    mutating func makeRecord(_ kind: Record.Kind, _ level: Level, part: Part) -> Record {
        let isBound = info.jid != nil
        return Record(
            sequence: run.nextSequence(),
            time: now.time,
            monotonic: now.monotonic,
            kind: kind,
            level: level,
            part: part,
            session: number,
            jid: info.jid,
            user: isBound ? nil : info.user,
            domain: isBound ? nil : info.domain,
            remote: remote
        )
    }

    /// Makes a record of an item, with the item's bytes as its content: unchanged, or redacted.
    @inline(__always)
    mutating func makeRecord(
        _ event: StreamEvent,
        _ direction: Direction,
        _ kind: Record.Kind,
        level: Level,
        part: Part = .session,
        answering request: IQTracker.Request? = nil
    ) -> Record {
        var record = makeRecord(kind, level, part: part)
        describe(event, direction, in: &record, answering: request)
        // Otherwise it is copied, which retains each of its texts.
        let made = consume record
        return made
    }

    private mutating func describe(
        _ event: StreamEvent,
        _ direction: Direction,
        in record: inout Record,
        answering request: IQTracker.Request?
    ) {
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = event.offset
        record.length = event.length
        // They are rare, and to retain them the compiler would copy the event.
        if !event.chunks.isEmpty { record.chunks = event.chunks }
        record.isTruncated = event.isTruncated
        if let action { record.action = action }
        let ruling = rules?.ruling
        if let ruling {
            record.rule = ruling.rule.map { "\($0)" }
            if let level = ruling.level { record.level = level }
        }
        // Without a log, the rest of the record has no reader.
        guard options.level > .off else { return }
        contentSource = direction == .send ? .send : .recv
        guard !event.isTruncated else {
            record.digest = takeDigest(direction)
            return Self.note(tools.redactor.disclose(event.head), in: &record)
        }
        record.xml = ByteRange(0, Int(truncatingIfNeeded: event.length))
        Self.note(event.head, in: &record)
        if let rules, case let paths = hiddenPaths(event), !paths.isEmpty {
            composeHidden(item(direction), paths, direction, rules, in: &record)
            contentSource = .composed
        } else if event.head.mayHoldSecret || options.redaction.hidesTexts || Self.needsComposing(event.head),
            Self.compose(event, of: directions[direction].decoder, tools.redactor, into: &composed, &record)
        {
            contentSource = .composed
        }
        if isToldBySummary(event.head, record.kind), record.level <= options.level {
            summarise(event, direction, in: &record, answering: request)
        }
        if let edited { note(edited, event, direction, in: &record) }
    }

    /// Adds the replacement of an item to its record.
    private mutating func note(
        _ edited: EditedItem,
        _ event: StreamEvent,
        _ direction: Direction,
        in record: inout Record
    ) {
        record.message = "relayed with \(edited.words)"
        guard record.xml != nil else { return }
        if let rules, case let paths = hiddenPaths(event), !paths.isEmpty {
            record.edited = hide(paths, in: edited.bytes.span, direction, rules).flatMap { compose($0) }
        } else {
            record.edited = compose(edited.bytes)
        }
    }

    /// Whether an item needs a summary: stanzas, and elements without a record of another kind.
    private func isToldBySummary(_ head: StanzaHead, _ kind: Record.Kind) -> Bool {
        switch kind {
        case .stanza: true
        case .element:
            switch head.namespace.namespace {
            case .streams, .tls, .sasl, .sasl2, .sasl2Legacy, .compression, .dialback, .componentAccept,
                .componentConnect:
                false
            default: true
            }
        default: false
        }
    }

    /// Items with more bytes than this are summarised from their heads only.
    private static let longestRead = 256 << 10

    /// Sets the summary of an item, from the content that the record may show.
    func summarise(
        _ event: StreamEvent,
        _ direction: Direction,
        in record: inout Record,
        answering request: IQTracker.Request?
    ) {
        guard let xml = record.xml else { return }
        let context = Summary.Context(direction: direction, request: request?.summary)
        let content = contentSource == .composed ? composed.span : directions.bytes(direction)
        let isShort = xml.count <= Self.longestRead
        var words: String?
        // The head refers to the original item; if that is not shown, read the shown content.
        if contentSource != .composed {
            words = Summary.words(of: event.head, content, context)
            if words == nil, isShort {
                words = Summary.words(of: event.head, directions[direction].decoder, by: &tools.summary)
            }
        }
        if words == nil {
            if isShort, let element = read(content.slice(xml), direction) {
                words = Summary.words(of: element, context)
            } else {
                words = Summary.words(
                    name: content.slice(record.payloadName ?? .empty),
                    namespace: record.payloadNamespace,
                    uri: content.slice(record.payloadURI ?? .empty)
                )
            }
        }
        record.summary = words.map { Prose($0) }
    }

    /// Reads the shown content of the last event's item as an element, using the scanner's outline if it is unchanged.
    private func read(_ shown: Span<UInt8>, _ direction: Direction) -> Element? {
        if contentSource != .composed { return tools.elements.read(directions[direction].decoder) }
        return tools.elements.read(shown, in: directions[direction].decoder)
    }

    private static func note(_ head: StanzaHead, in record: inout Record) {
        record.name = head.name.isEmpty ? nil : head.name
        record.id = head.id?.range
        record.type = head.type?.range
        record.from = head.from?.range
        record.to = head.to?.range
        record.payloadName = head.payloadName
        record.payloadNamespace = head.payloadNamespace.namespace
    }

    private static func needsComposing(_ head: StanzaHead) -> Bool {
        if head.payloadNamespace.source != .known { return true }
        return head.id?.needsDecoding ?? false || head.type?.needsDecoding ?? false
            || head.from?.needsDecoding ?? false || head.to?.needsDecoding ?? false
    }

    /// Replaces a record's content if the item's bytes must not be shown, or if they differ from its head; returns
    /// false if neither holds, unless `always` is set.
    static func compose(
        _ event: StreamEvent,
        of decoder: borrowing StreamDecoder,
        _ redactor: Redactor,
        always: Bool = false,
        into content: inout [UInt8],
        _ record: inout Record
    ) -> Bool {
        var head = event.head
        content.removeAll(keepingCapacity: true)
        switch redactor.disclose(event, of: decoder) {
        case .verbatim:
            guard always || needsComposing(head) else { return false }
            content.append(decoder.bytes)
        case .redacted(let redaction):
            content += redaction.bytes
            head = redaction.carry(head)
        case .withheld: record.xml = nil
        }
        if record.xml != nil { record.xml = ByteRange(0, content.count) }
        note(head, in: &record)
        record.id = meaning(of: head.id, in: &content)
        record.type = meaning(of: head.type, in: &content)
        record.from = meaning(of: head.from, in: &content)
        record.to = meaning(of: head.to, in: &content)
        if head.payloadNamespace.source != .known {
            let start = content.count
            decoder.appendURI(of: event.head.payloadNamespace, to: &content)
            record.payloadURI = ByteRange(start, content.count)
        }
        return true
    }

    /// The range of an attribute's value in the content: its own, or that of the decoded value, appended after the
    /// item.
    private static func meaning(of attribute: StanzaHead.Attribute?, in content: inout [UInt8]) -> ByteRange? {
        guard let attribute, attribute.needsDecoding else { return attribute?.range }
        let start = content.count
        var decoded: [UInt8] = []
        AttributeValue.decode(content.span.slice(attribute.range), into: &decoded)
        content += decoded
        return ByteRange(start, content.count)
    }
}
