internal import TapRecord
import XMPPCore

// How records are made of events.
extension Session {
    /// The record of an item that needs nothing beside its head.
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

    /// The only way of a record to the sinks: by the redactor.
    mutating func emit(_ record: consuming Record) {
        guard record.level <= options.level, rules == nil || !isLeftOut(record) else { return }
        enqueue(record)
    }

    /// A record of this session without content.
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

    /// A record of an item, with the item's bytes as its content: as they were, or with the secrets taken out.
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
        // Otherwise it is copied, which counts a reference more of each of its texts.
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
        // Seldom there are any, and to count a reference more of them the compiler would copy the event.
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

    /// Puts beside an item what goes out in its place.
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

    /// Stanzas, and the elements for which no other record is made.
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

    /// An item with more bytes than this is summarised from its head alone.
    private static let longestRead = 256 << 10

    /// What the item says, made of what the record may show of it.
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
        // The head refers to the item as it came; where that is not shown, what is shown is read.
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

    /// What is shown of the last event's item as an element, by the scanner's outline where it is shown as it came.
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

    /// Replaces a record's content where it may not show the item's bytes, or where they differ from its head;
    /// false where neither holds, unless `always` is set.
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

    /// Where an attribute's meaning stands in the content: its value, or behind the item what that stands for.
    private static func meaning(of attribute: StanzaHead.Attribute?, in content: inout [UInt8]) -> ByteRange? {
        guard let attribute, attribute.needsDecoding else { return attribute?.range }
        let start = content.count
        var decoded: [UInt8] = []
        AttributeValue.decode(content.span.slice(attribute.range), into: &decoded)
        content += decoded
        return ByteRange(start, content.count)
    }
}
