import XMPPCore

/// The output of a decoder of messages in a comparable form: one line for each message.
struct MessageTranscript: Equatable, CustomStringConvertible {
    var lines: [String] = []
    /// The codes of the faults, in order.
    var faults: [ScanFault.Code] = []

    var description: String { lines.joined(separator: "\n") }

    /// Runs a decoder on messages, each of which arrives in pieces that end at `cuts` (offsets in it, ascending).
    init(
        _ messages: [[UInt8]],
        framing: StreamFraming = .messages,
        cuts: [Int] = [],
        limits: StreamLimits = .unauthenticated,
        isPulledLate: Bool = false
    ) {
        let outline = ItemOutline()
        var decoder = StreamDecoder(framing: framing, limits: limits, outline: outline)
        var fragments: UInt64 = 0
        func pull(_ decoder: inout StreamDecoder) {
            while let event = decoder.next() {
                if case .fragment(let isFirst) = event.kind {
                    if isFirst != (fragments == 0) { lines.append("fragment that is first: \(isFirst)") }
                    if event.length != UInt64(decoder.bytes.count) { lines.append("fragment of other bytes") }
                    fragments += event.length
                    continue
                }
                note(event, decoder, fragments)
                fragments = 0
            }
        }
        for message in messages {
            var start = 0
            for end in cuts where end <= message.count && end >= start {
                decoder.append(message: message.span.extracting(start..<end), endsMessage: false)
                start = end
                if !isPulledLate { pull(&decoder) }
            }
            decoder.append(message: message.span.extracting(start..<message.count), endsMessage: true)
            if !isPulledLate { pull(&decoder) }
        }
        pull(&decoder)
        if !decoder.isBetweenItems { lines.append("inside an item") }
        if decoder.finish() != nil { lines.append("unfinished") }
    }

    private mutating func note(_ event: StreamEvent, _ decoder: borrowing StreamDecoder, _ fragments: UInt64) {
        var line = "\(event.epoch)/\(event.offset)+\(event.length) "
        switch event.kind {
        case .item(let kind): line += "\(kind)" + Self.describe(event.head, decoder)
        case .fault(let fault):
            line += "fault \(fault.code.rawValue) at \(fault.offset) \(fault.limit)"
            faults.append(fault.code)
        case .fragment, .incomplete: line += "unexpected"
        }
        if event.isTruncated {
            line += " truncated" + (fragments == event.length ? "" : ", of another length")
        } else {
            line += " " + decoder.bytes.string()
            if event.length != UInt64(decoder.bytes.count) { line += ", of other bytes" }
        }
        let traits = decoder.messageTraits
        for (trait, name) in [
            (MessageTraits.declaration, "declaration"), (.leadingSpace, "leading"), (.trailingSpace, "trailing"),
            (.content, "content"),
        ] where traits.contains(trait) && !event.isTruncated {
            line += " +\(name)"
        }
        lines.append(line)
    }

    private static func describe(_ head: StanzaHead, _ decoder: borrowing StreamDecoder) -> String {
        let bytes = decoder.bytes
        func name(_ range: ByteRange, _ namespace: NamespaceName) -> String {
            var uri: [UInt8] = []
            decoder.appendURI(of: namespace, to: &uri)
            return " {" + String(decoding: uri, as: UTF8.self) + "}" + bytes.slice(range).string()
        }
        var line = " \(head.kind)" + name(head.name, head.namespace)
        for (label, attribute) in [
            ("id", head.id), ("type", head.type), ("from", head.from), ("to", head.to), ("version", head.version),
        ] {
            if let attribute { line += " \(label)=" + bytes.slice(attribute.range).string() }
        }
        if let payload = head.payloadName { line += " payload" + name(payload, head.payloadNamespace) }
        if head.mayContainSecret { line += " secret?" }
        if head.isUnusual { line += " unusual" }
        if head.isEmptyElement { line += " empty" }
        return line
    }

    /// Returns the first way to cut the messages that gives other events; nil if there is none.
    static func difference(
        _ messages: [[UInt8]],
        framing: StreamFraming = .messages,
        limits: StreamLimits = .unauthenticated
    ) -> String? {
        let whole = MessageTranscript(messages, framing: framing, limits: limits)
        let longest = messages.map(\.count).max() ?? 0
        let all = Array(0...longest)
        for cuts in [all, all + all] + all.map({ [$0] }) {
            for isPulledLate in [false, true] {
                let cut = MessageTranscript(
                    messages,
                    framing: framing,
                    cuts: cuts.sorted(),
                    limits: limits,
                    isPulledLate: isPulledLate
                )
                if cut != whole { return "cut at \(cuts):\n\(cut)\nbut in one piece:\n\(whole)" }
            }
        }
        return nil
    }
}
