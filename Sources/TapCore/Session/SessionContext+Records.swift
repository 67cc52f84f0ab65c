internal import TapDiagnosis
internal import TapRecord
import TapRules
import XMPPCore

// Creates records from events.
extension SessionContext {
    /// Records an item, of which the record needs only the head.
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

    /// Passes a record to the sinks, through the redactor. All records take this path.
    mutating func emit(_ record: consuming Record) {
        guard record.level <= options.level, rules == nil || !isLeftOut(record) else { return }
        outlet.record(record, by: tools.redactor, at: options.redaction == .metadata ? info.domain : nil)
    }

    /// The bytes of the last command: the bytes to forward, or the texts of a record.
    var content: Span<UInt8> {
        @_lifetime(borrow self)
        get {
            switch outlet.shown {
            case .none, .composed: outlet.composed.span
            case .send: directions.bytes(.send)
            case .recv: directions.bytes(.recv)
            }
        }
    }

    /// Creates a record of this session without content.
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

    /// Creates a record of an item, with the item's bytes as its content, unchanged or redacted.
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
        // Without `consume`, the record is copied, which retains each of its texts.
        let made = consume record
        return made
    }

    /// Returns whether a filter selects the last event's stanza, as it has arrived. The record that the filter sees is
    /// not redacted and has no number, because it is not recorded.
    func matches(_ filter: RecordFilter, _ event: StreamEvent, _ direction: Direction) -> Bool {
        let isError = StanzaType(event.head, directions.bytes(direction)) == .error
        var record = Record(
            sequence: 0,
            time: now.time,
            monotonic: now.monotonic,
            kind: .stanza,
            level: isError ? .warn : .info,
            part: .session,
            session: number,
            jid: info.jid,
            user: info.jid == nil ? info.user : nil,
            domain: info.jid == nil ? info.domain : nil,
            remote: remote
        )
        record.direction = direction
        record.leg = direction.source
        record.epoch = event.epoch
        record.offset = event.offset
        record.length = event.length
        record.xml = ByteRange(0, Int(truncatingIfNeeded: event.length))
        var content: [UInt8] = []
        content.append(directions.bytes(direction))
        Self.describe(event.head, in: &record)
        Self.decode(event.head, event, of: directions[direction].decoder, into: &content, &record)
        return filter.matches(record, content: content.span)
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
        // Most events have no chunks, and assigning them makes the compiler copy the event.
        if !event.chunks.isEmpty { record.chunks = event.chunks }
        if !event.tlsRecords.isEmpty { record.tlsRecords = event.tlsRecords }
        // Of an item that was not stored completely, the boundaries are unknown.
        record.isInTLS = directions[direction].isInTLS && !event.isTruncated
        record.isTruncated = event.isTruncated
        if let action { record.action = action }
        let ruling = rules?.ruling
        if let ruling {
            record.rule = ruling.rule.map { "\($0)" }
            if let level = ruling.level { record.level = level }
        }
        // If logging is off, no sink reads the rest of the record.
        guard options.level > .off else { return }
        outlet.show(direction)
        guard !event.isTruncated else {
            record.digest = takeDigest(direction)
            return Self.describe(tools.redactor.disclose(event.head), in: &record)
        }
        record.xml = ByteRange(0, Int(truncatingIfNeeded: event.length))
        Self.describe(event.head, in: &record)
        if let rules, case let paths = hiddenPaths(event), !paths.isEmpty {
            composeHidden(item(direction), paths, direction, rules, in: &record)
        } else if event.head.mayContainSecret || options.redaction.hidesTexts || Self.needsComposing(event.head) {
            var texts = outlet.takeComposed()
            let isShown = Self.compose(
                event,
                of: directions[direction].decoder,
                tools.redactor,
                always: false,
                into: &texts,
                &record
            )
            outlet.setComposed(texts, isShown: isShown)
        }
        if isDescribedBySummary(event.head, record.kind), record.level <= options.level {
            summarise(event, direction, in: &record, answering: request)
        }
        if let edited { describe(edited, event, direction, in: &record) }
    }

    /// Adds the replacement of an item to its record.
    private mutating func describe(
        _ edited: EditedItem,
        _ event: StreamEvent,
        _ direction: Direction,
        in record: inout Record
    ) {
        record.message = "relayed with \(edited.summary)"
        guard record.xml != nil else { return }
        if let rules, case let paths = hiddenPaths(event), !paths.isEmpty {
            record.edited = hide(paths, in: edited.bytes.span, direction, rules).flatMap { compose($0) }
        } else {
            record.edited = compose(edited.bytes)
        }
    }

    /// Returns whether an item needs a summary: a stanza does, and an element that no other code describes.
    private func isDescribedBySummary(_ head: StanzaHead, _ kind: Record.Kind) -> Bool {
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

    /// The largest item in bytes that is read for its summary. Larger items are summarized from their heads only.
    private static let maximumReadLength = 256 << 10

    /// Sets the summary of an item, using only the content that the record may show.
    func summarise(
        _ event: StreamEvent,
        _ direction: Direction,
        in record: inout Record,
        answering request: IQTracker.Request?
    ) {
        guard let xml = record.xml else { return }
        let context = Summary.Context(direction: direction, request: request?.summary)
        let content = outlet.source == .composed ? outlet.composed.span : directions.bytes(direction)
        let isShort = xml.count <= Self.maximumReadLength
        var summary: String?
        // The head refers to the original item. If the record shows other content, read that instead.
        if outlet.source != .composed {
            summary = Summary.text(of: event.head, content, context)
            if summary == nil, isShort {
                summary = Summary.text(of: event.head, directions[direction].decoder, by: &tools.summary)
            }
        }
        if summary == nil {
            if isShort, let element = read(content.slice(xml), direction) {
                summary = Summary.text(of: element, context)
            } else {
                summary = Summary.text(
                    name: content.slice(record.payloadName ?? .empty),
                    namespace: record.payloadNamespace,
                    uri: content.slice(record.payloadURI ?? .empty)
                )
            }
        }
        record.summary = summary.map { Prose($0) }
    }

    /// Reads the shown content of the last event's item as an element. If the content is unchanged, it uses the
    /// scanner's outline.
    private func read(_ shown: Span<UInt8>, _ direction: Direction) -> Element? {
        if outlet.source != .composed { return tools.elements.read(directions[direction].decoder) }
        return tools.elements.read(shown, in: directions[direction].decoder)
    }

    private static func describe(_ head: StanzaHead, in record: inout Record) {
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

    /// Sets a record's content to an item without its secrets.
    private mutating func compose(_ event: StreamEvent, of decoder: borrowing StreamDecoder, in record: inout Record) {
        var texts = outlet.takeComposed()
        let isShown = Self.compose(event, of: decoder, tools.redactor, always: true, into: &texts, &record)
        outlet.setComposed(texts, isShown: isShown)
    }

    /// Replaces a record's content if the item's bytes must not be shown, or if they need decoding. In other cases, it
    /// does so only if `always` is set, and otherwise returns false.
    private static func compose(
        _ event: StreamEvent,
        of decoder: borrowing StreamDecoder,
        _ redactor: Redactor,
        always: Bool,
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
        describe(head, in: &record)
        decode(head, event, of: decoder, into: &content, &record)
        return true
    }

    /// Sets the attributes and the namespace of a record, decoded and appended to the content if necessary.
    ///
    /// - Parameter head: The head of the item in the content.
    private static func decode(
        _ head: StanzaHead,
        _ event: StreamEvent,
        of decoder: borrowing StreamDecoder,
        into content: inout [UInt8],
        _ record: inout Record
    ) {
        record.id = meaning(of: head.id, in: &content)
        record.type = meaning(of: head.type, in: &content)
        record.from = meaning(of: head.from, in: &content)
        record.to = meaning(of: head.to, in: &content)
        guard head.payloadNamespace.source != .known else { return }
        let start = content.count
        decoder.appendURI(of: event.head.payloadNamespace, to: &content)
        record.payloadURI = ByteRange(start, content.count)
    }

    /// Returns the range of an attribute's value in the content. A value that needs decoding is decoded and appended
    /// after the item.
    private static func meaning(of attribute: StanzaHead.Attribute?, in content: inout [UInt8]) -> ByteRange? {
        guard let attribute, attribute.needsDecoding else { return attribute?.range }
        let start = content.count
        var decoded: [UInt8] = []
        AttributeValue.decode(content.span.slice(attribute.range), into: &decoded)
        content += decoded
        return ByteRange(start, content.count)
    }

    // MARK: Records other than those of items

    mutating func report(
        _ kind: Record.Kind = .note,
        _ level: Level = .warn,
        code: String,
        _ message: Prose,
        condition: StreamErrorCondition? = nil,
        direction: Direction? = nil,
        part: Part = .session,
        details: Attributes? = nil,
        remedy: Remedy? = nil
    ) {
        guard level <= options.level else { return }
        var record = makeRecord(kind, level, part: part)
        record.code = code
        record.message = advised(message, remedy)
        record.details = details
        record.condition = condition?.rawValue
        record.direction = direction
        record.leg = direction?.source
        emit(consume record)
    }

    /// Appends the advice for a remedy to a message, if the options provide advice.
    func advised(_ message: Prose, _ remedy: Remedy?) -> Prose {
        guard let remedy, !options.isObserved, let advice = options.advice else { return message }
        return "\(message); \(advice(remedy))"
    }

    // MARK: Items of xmpptap

    /// An item that xmpptap sends.
    typealias SentItem = (kind: Record.Kind, bytes: [UInt8])

    /// Sends items of xmpptap to a peer, and records them.
    mutating func answer(
        _ items: [SentItem],
        _ condition: StreamErrorCondition? = nil,
        to leg: Leg,
        part: Part = .session
    ) {
        if isOfMessages {
            for item in items { outlet.answer(item.bytes, to: leg) }
        } else {
            outlet.answer(items.flatMap(\.bytes), to: leg)
        }
        recordSent(items, condition, to: leg, part: part)
    }

    /// The end of a stream.
    var streamEnd: SentItem {
        (.streamClose, Array((isOfMessages ? "<close xmlns='\(Namespace.framing.uri)'/>" : "</stream:stream>").utf8))
    }

    /// Records items that xmpptap sent.
    mutating func recordSent(
        _ items: [SentItem],
        _ condition: StreamErrorCondition? = nil,
        to leg: Leg,
        part: Part = .session
    ) {
        for item in items {
            let range = outlet.compose(item.bytes.span, after: directions)
            let isMarginal = item.kind == .declaration || item.kind == .whitespace
            var record = makeRecord(item.kind, isMarginal ? .verbose : .info, part: part)
            record.origin = .tap
            record.direction = leg.inbound.opposite
            record.leg = leg
            record.length = UInt64(item.bytes.count)
            // The header's `from` is the domain that the client requested, which redaction may hide.
            let isShown = item.kind != .streamOpen || tools.redactor.shows(address: info.domain)
            record.xml = isShown ? range : nil
            if item.kind == .element {
                record.name = outlet.elementName(in: range)
                record.condition = condition?.rawValue
            }
            emit(consume record)
        }
    }

    /// Appends an item to the composed texts, redacted; returns nil if it must not be shown.
    mutating func compose(_ item: [UInt8]) -> ByteRange? {
        switch tools.redactor.disclose(item: item.span) {
        case .verbatim: outlet.compose(item.span, after: directions)
        case .redacted(let redaction): outlet.compose(redaction.bytes.span, after: directions)
        case .withheld: nil
        }
    }

    /// Sets the texts of an injected item's record.
    ///
    /// - Parameter paths: The parts of the item that rules redact.
    mutating func compose(
        _ event: StreamEvent,
        of item: InjectedItem,
        _ direction: Direction,
        without paths: [StanzaPath],
        in record: inout Record
    ) {
        guard let rules, !paths.isEmpty else { return compose(event, of: item.decoder, in: &record) }
        composeHidden(item.bytes, paths, direction, rules, in: &record)
    }

    // MARK: Digests of bytes that records do not show

    /// Returns the digest in hexadecimal and clears it; nil if there is none.
    mutating func takeDigest(_ direction: Direction) -> String? {
        defer { directions[direction].digest = nil }
        return directions[direction].digest.flatMap { Self.hexadecimal($0) }
    }

    /// Returns a digest in hexadecimal; nil if it cannot be computed.
    static func hexadecimal(_ digest: any Digest) -> String? {
        guard let bytes = try? digest.finalize() else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Updates the digest of an item that is not stored whole.
    mutating func digest(_ direction: Direction, isFirst: Bool) {
        if isFirst { directions[direction].digest = run.makeByteDigest() }
        guard let digest = directions[direction].digest else { return }
        digest.update(directions.bytes(direction))
    }

    // MARK: What rules redact

    /// Returns the paths that are redacted in records of the current item. If the rules were not evaluated for the
    /// item, these are the paths of all rules.
    func hiddenPaths(_ event: StreamEvent) -> [StanzaPath] {
        guard let rules, event.item == .element else { return [] }
        return rules.ruling?.redacted ?? (rules.isJudged ? [] : rules.set.redactions)
    }

    /// Returns whether a rule excludes the record's item from the log.
    func isLeftOut(_ record: borrowing Record) -> Bool {
        guard let ruling = rules?.ruling, !ruling.isRecorded, record.origin == ruling.origin else { return false }
        switch record.kind {
        case .stanza, .element: return true
        default: return record.code == Record.Code.ruleHit
        }
    }

    /// Sets a record's item without the redacted parts; omits the whole item if it cannot be read.
    mutating func composeHidden(
        _ item: [UInt8],
        _ paths: [StanzaPath],
        _ direction: Direction,
        _ rules: SessionRules,
        in record: inout Record
    ) {
        guard let hidden = hide(paths, in: item.span, direction, rules),
            let (event, _) = rules.checker.scan(hidden, content: ruleContent(direction))
        else {
            outlet.setComposed([])
            return record.forgetItem()
        }
        compose(event, of: rules.checker.decoder, in: &record)
    }

    /// Returns an item without the redacted parts, read in the context of its stream; nil if the item cannot be read.
    func hide(_ paths: [StanzaPath], in item: Span<UInt8>, _ direction: Direction, _ rules: SessionRules) -> [UInt8]? {
        let content = ruleContent(direction)
        var bytes: [UInt8] = []
        bytes.append(item)
        guard var element = tools.elements.read(bytes.span, in: directions[direction].decoder) else { return nil }
        for path in paths {
            guard let edited = path.hide(in: element, inheriting: content.uri.description) else { continue }
            bytes = edited
            guard let (_, hidden) = rules.checker.scan(bytes, content: content) else { return nil }
            element = hidden
        }
        return bytes
    }

    /// Returns the content namespace in which rules see the items of a direction.
    func ruleContent(_ direction: Direction) -> Namespace {
        let content = directions[direction].decoder.contentNamespace
        return content.isContent ? content : .client
    }
}

extension Record {
    /// Removes all texts of the item.
    fileprivate mutating func forgetItem() {
        xml = nil
        (name, id, type, from, to, payloadName, payloadURI) = (nil, nil, nil, nil, nil, nil, nil)
        payloadNamespace = .none
    }
}
