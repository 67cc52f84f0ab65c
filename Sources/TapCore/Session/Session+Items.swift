internal import TapRecord
import XMPPCore

// What each item does to the session.
extension Session {
    /// One event of a decoder: passed on, understood, recorded.
    mutating func handle(_ event: StreamEvent, _ direction: Direction) {
        switch event.kind {
        case .item(let kind):
            if kind == .element, event.isTruncated, directions[direction].mode == .store {
                return refuseOversize(event, direction)
            }
            if kind == .header, direction == .send, refuseOtherDomain(event) || refusesClearStream() { return }
            if kind == .element, refusesClearElement(event, direction) { return }
            if asymmetric != nil, takesAside(event, kind, direction) { return }
            if kind == .element, direction == .recv, isFeatures(event) { return passFeatures(event) }
            if kind == .element, bridges(event, direction) { return }
            if kind == .element, refusesConsent(event, direction) { return }
            if kind == .whitespace, keepsWhiteSpace(event, direction) { return }
            if shouldHold(event, direction) { holdItem(event, direction) } else { forward(event, direction) }
            if event.head.isUnusual { compareReaders(event, kind, direction) }
            switch kind {
            case .declaration: recordItem(event, direction, .declaration, level: .verbose)
            case .whitespace: recordItem(event, direction, .whitespace, level: .verbose)
            case .header: handleHeader(event, direction)
            case .element: handleElement(event, direction)
            case .end: handleStreamEnd(event, direction)
            }
        case .fragment(let isFirst):
            // In cut-through the piece has passed; where items are stored it must not, and the item is refused.
            if directions[direction].mode == .store {
                if isFirst { refuseOversize(event, direction) }
            } else {
                digest(direction, isFirst: isFirst)
            }
        case .fault(let fault): handleFault(fault, event, direction)
        case .torn: recordTorn(event, direction)
        }
    }

    private mutating func refuseOversize(_ event: StreamEvent, _ direction: Direction) {
        let limit = directions[direction].decoder.limits.itemBytes
        let isStranger = limit == options.unauthenticatedLimits.itemBytes
        let words = "\(limit) bytes, the limit \(isStranger ? "before authentication" : "of a session")"
        note(
            .error,
            .error,
            code: ScanFault.Code.itemTooLong.rawValue,
            "an item longer than \(words), at offset \(event.offset) of stream \(event.epoch); the session is closed",
            condition: .policyViolation,
            direction: direction
        )
        login?.refusal = "an item of the \(direction.source.name) is larger than \(words)"
        refuse(.policyViolation, "An item is larger than \(words).", fault: direction)
    }

    /// Some clients say goodbye twice, which harms nobody.
    private func isRepeatedEnd(_ fault: ScanFault, _ direction: Direction) -> Bool {
        guard fault.code == .afterStreamEnd else { return false }
        let bytes = directions.bytes(direction)
        return bytes.count > 1 && bytes[0] == 0x3C && bytes[1] == 0x2F
    }

    /// Whether the first bytes of a server are an alert or a handshake of TLS, which no XML begins like (RFC 8446 §5.1).
    private func isTLSRecord(_ bytes: Span<UInt8>) -> Bool {
        guard !bytes.isEmpty, bytes[0] == 0x15 || bytes[0] == 0x16 else { return false }
        return bytes.count < 2 || bytes[1] == 3
    }

    private mutating func handleFault(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) {
        if direction == .recv, refusesEarlyBytesOfServer() { return }
        let isForeign = directions[direction].decoder.epoch == 0 && fault.code == .notXML
        // An acknowledgement or a presence that crosses the end of the stream belongs to an ordinary logout.
        let isLate = fault.code == .afterStreamEnd && info.opened != nil
        if isRepeatedEnd(fault, direction) {
            note(
                .note,
                .verbose,
                code: "repeated-end",
                "the end of the stream, once more",
                direction: direction
            )
        } else {
            if isForeign, direction == .recv, isTLSRecord(directions.bytes(.recv)) { login?.hasServerTLS = true }
            recordFault(fault, event, direction, isForeign: isForeign, isLate: isLate)
            if let login, login.fault == nil { login.fault = (fault, direction, isForeign) }
        }
        if isLate { return turnOpaque(direction, .ended) }
        failStep(condition: fault.condition.rawValue, isForeign ? "no XMPP" : fault.explanation)
        if isRefusing { return direction == .send ? answerRefused() : finish(reset: false) }
        if refusesUnread {
            return refuse(fault.condition, "\(fault.explanation), at offset \(fault.offset)", fault: direction)
        }
        turnOpaque(direction, isForeign ? .foreign : .unparsable)
        if isForeign {
            turnOpaque(direction.opposite, .paired)
            phase = .opaque
        }
    }

    /// The last event's element as a tree; nil when libxml2 disagrees with the scanner, which is recorded.
    mutating func parse(_ direction: Direction) -> Element? {
        do {
            return try tools.parser.parse(directions[direction].decoder)
        } catch {
            note(
                .error,
                .warn,
                code: "parser-disagreement",
                error.code == 0
                    ? "the item cannot be looked into: \(error.message)"
                    : "libxml2 refuses what the scanner accepts: \(error.message) (\(error.code))",
                direction: direction
            )
            return nil
        }
    }

    func isNamed(_ name: StaticString, _ event: StreamEvent, _ direction: Direction) -> Bool {
        directions.bytes(direction).slice(event.head.name).equals(name)
    }

    /// What an attribute of the last event means; nil where it is absent.
    func text(_ attribute: StanzaHead.Attribute?, _ direction: Direction) -> String? {
        guard let attribute else { return nil }
        let raw = directions.bytes(direction).slice(attribute.range)
        guard attribute.needsDecoding else { return raw.string() }
        var meaning: [UInt8] = []
        AttributeValue.decode(raw, into: &meaning)
        return meaning.span.string()
    }
}
