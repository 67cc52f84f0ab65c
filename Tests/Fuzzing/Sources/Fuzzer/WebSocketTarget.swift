import XMPPCore

/// Frames of one direction of a WebSocket, and the messages in them: the events must not depend on the split, libxml2
/// must read the same elements, and written messages must be read back.
///
/// An input is a mode, two bytes that select the cuts, and the bytes on the wire, or a script that generates them,
/// because few random bytes are frames: for each frame its first byte, the length of the payload, and the payload.
enum WebSocketTarget {
    private struct Mode {
        var sender: WebSocketSender
        var isScript: Bool
        var acceptsCompression: Bool
        var framing: StreamFraming
        var limits: StreamLimits
        var messageBytes: Int

        init(_ byte: UInt8) {
            sender = byte & 1 == 0 ? .server : .client
            isScript = byte & 2 == 0
            acceptsCompression = byte & 4 != 0
            framing = byte & 8 == 0 ? .messagesInside : .messages
            let hasLimits = byte & 16 != 0
            limits =
                hasLimits
                ? StreamLimits(itemBytes: 90, tagBytes: 120, depth: 5, attributes: 4, nameBytes: 12, namespaces: 6)
                : .authenticated
            messageBytes = hasLimits ? 300 : 1 << 20
        }
    }

    /// The events of the frames and of the messages, in a form that does not depend on the split.
    private struct Events: Equatable {
        var frames: [Frame] = []
        var items: [Item] = []
        var messages: [[UInt8]] = []
        var contradiction: String?
    }

    private enum Frame: Equatable {
        case header(WebSocketFrame)
        case control(String)
        case fault(WebSocketFault)
        case end(offset: UInt64, isBetweenMessages: Bool)
    }

    private enum Item: Equatable {
        case item(Whole)
        case fault(ScanFault)
        case torn(UInt64)
    }

    private struct Whole: Equatable {
        var kind: StanzaScanner.Item.Kind
        var epoch: Int
        var offset: UInt64
        var length: UInt64
        var head: StanzaHead
        var traits: MessageTraits
        /// The number of bytes of the message's fragments, if the message exceeds the limit.
        var fragments: UInt64?
    }

    static func run(_ input: [UInt8]) -> String? {
        guard input.count > 3 else { return nil }
        var script = Script(Array(input[3...]))
        let mode = Mode(input[0])
        let wire = mode.isScript ? wire(&script, mode.sender) : Array(input[3...])
        let whole = events(wire, cuts: [], inPlace: false, mode)
        if let contradiction = whole.contradiction { return contradiction }
        let cuts = FuzzInput.cuts(of: wire.count, seed: input[1], step: input[2])
        for inPlace in [false, true] {
            let cut = events(wire, cuts: cuts, inPlace: inPlace, mode)
            guard cut == whole else { return "cut at \(cuts), in one piece:\n\(whole)\nin pieces:\n\(cut)" }
        }
        return rewritten(whole.messages, mode)
    }

    private static func wire(_ script: inout Script, _ sender: WebSocketSender) -> [UInt8] {
        var wire: [UInt8] = []
        while !script.isOver {
            let first = script.byte()
            let payload = script.bytes(Int(script.byte()))
            let key = UInt32(first) &* 0x0101_4365
            let role: WebSocketFrameWriter.Role = sender == .client ? .client(maskKey: key) : .server
            let start = wire.count
            WebSocketFrameWriter.appendHeader(.text, payloadLength: payload.count, as: role, to: &wire)
            wire[start] = first
            let content = wire.count
            wire += payload
            if sender == .client { WebSocketMask.apply(key, at: 0, to: &wire, from: content) }
        }
        return wire
    }

    // MARK: Reading

    private static func events(_ wire: [UInt8], cuts: [Int], inPlace: Bool, _ mode: Mode) -> Events {
        var events = Events()
        var frames = WebSocketFrameDecoder(mode.sender, messageBytes: mode.messageBytes)
        frames.acceptsCompression = mode.acceptsCompression
        var items = StreamDecoder(framing: mode.framing, limits: mode.limits, outline: ItemOutline())
        var (payload, message, fragments): ([UInt8], [UInt8], UInt64) = ([], [], 0)
        var consumed = 0
        reading: for end in cuts + [wire.count] {
            while true {
                payload.removeAll(keepingCapacity: true)
                let signal: WebSocketFrameDecoder.Signal
                if inPlace {
                    var window = Array(wire[consumed..<end])
                    var span = window.mutableSpan
                    signal = frames.next(inPlace: &span)
                    if case .payload(let length, _) = signal { payload += window[..<length] }
                } else {
                    signal = frames.next(wire.span.extracting(consumed..<end), into: &payload)
                }
                switch signal {
                case .incomplete: continue reading
                case .header(let length):
                    consumed += length
                    events.frames.append(.header(frames.frame))
                case .control(let length):
                    consumed += length
                    events.frames.append(.control(frames.controlPayload.string()))
                case .fault(let fault):
                    events.frames.append(.fault(fault))
                    break reading
                case .payload(let length, let endsMessage):
                    consumed += length
                    message += payload
                    guard !frames.isMessageCompressed else { continue }
                    items.append(message: payload.span, endsMessage: endsMessage)
                    pull(&items, &fragments, &events)
                    if endsMessage {
                        events.messages.append(message)
                        message = []
                    }
                }
            }
        }
        events.frames.append(.end(offset: frames.offset, isBetweenMessages: frames.isBetweenMessages))
        if let last = items.finish() { note(last, items, &fragments, &events) }
        return events
    }

    private static func pull(_ items: inout StreamDecoder, _ fragments: inout UInt64, _ events: inout Events) {
        while let event = items.next() { note(event, items, &fragments, &events) }
    }

    private static func note(
        _ event: StreamEvent,
        _ items: borrowing StreamDecoder,
        _ fragments: inout UInt64,
        _ events: inout Events
    ) {
        switch event.kind {
        case .fragment:
            fragments += event.length
            return
        // The rest of a message at the end of the input.
        case .incomplete: events.items.append(.torn(event.length + fragments))
        case .fault(let fault): events.items.append(.fault(fault))
        case .item(let kind):
            if !event.isTruncated, events.contradiction == nil {
                events.contradiction = ItemComparison.shared.contradiction(event, items)
            }
            let item = Whole(
                kind: kind,
                epoch: event.epoch,
                offset: event.offset,
                length: event.length,
                head: event.head,
                traits: items.messageTraits,
                fragments: event.isTruncated ? fragments : nil
            )
            events.items.append(.item(item))
        }
        fragments = 0
    }

    // MARK: Writing

    /// Writes the messages with the other sender's frames, and reads them again.
    private static func rewritten(_ messages: [[UInt8]], _ mode: Mode) -> String? {
        var wire: [UInt8] = []
        let role: WebSocketFrameWriter.Role = mode.sender == .server ? .client(maskKey: 0xA1B2_C3D4) : .server
        for message in messages {
            WebSocketFrameWriter.append(message: message.span, isBinary: true, as: role, to: &wire)
        }
        var other = mode
        other.sender = mode.sender == .server ? .client : .server
        let read = events(wire, cuts: [], inPlace: false, other)
        return read.messages == messages ? nil : "written as\n\(wire)\nis read as\n\(read)"
    }

    // MARK: Seeds

    private static let framing = "xmlns='urn:ietf:params:xml:ns:xmpp-framing'"
    private static let login = [
        "<open \(framing) to='example.net' version='1.0'/>",
        "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGEAYg==</auth>",
        "<?xml version='1.0'?>\n<open \(framing) to='example.net'/>",
        "<stream:features xmlns:stream='http://etherx.jabber.org/streams'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
            + "</stream:features>",
        "<message xmlns='jabber:client' to='a@example.net'><body>Gr\u{FC}\u{DF}e \u{1F600} &amp; mehr</body></message>",
        "<a/><b/>", "<a/> ", " ", "", "<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>", "<a>",
        "<close \(framing) see-other-uri='wss://example.org/ws'/>",
    ]

    private static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [first, UInt8(min(255, payload.count))] + payload.prefix(255)
    }

    static let seeds: [[UInt8]] = {
        var script: [UInt8] = []
        var wire: [UInt8] = []
        for (index, message) in login.enumerated() {
            let bytes = Array(message.utf8)
            WebSocketFrameWriter.append(message: bytes.span, as: .client(maskKey: 0x1234_5678), to: &wire)
            guard index % 3 == 1 else {
                script += frame(0x81, bytes)
                continue
            }
            let middle = bytes.count * 2 / 3
            script += frame(0x01, Array(bytes[..<middle])) + frame(0x89, [1, 2]) + frame(0x00, []) + frame(0x8A, [])
            script += frame(0x80, Array(bytes[middle...]))
        }
        let close = frame(0x88, [0x03, 0xE8] + Array("bye".utf8))
        let faults: [[UInt8]] = [
            [0x81, 0x80], [0x83, 0x00], [0x80, 0x00], [0x09, 0x00], [0x88, 0x01, 0x03], [0x88, 0x02, 0x03, 0xED],
            [0x81, 0x7E, 0x00, 0x05], [0x82, 0x7F, 0xFF, 0, 0, 0, 0, 0, 0, 0], [0x89, 0x7E, 0x01, 0x00],
            [0x01, 0x01, 0xE2, 0x80, 0x01, 0x28], [0x01, 0x00, 0x81, 0x00], [0xC1, 0x02, 0x4A, 0x00],
        ]
        let modes: [UInt8] = [0, 1, 8, 9, 16, 17, 25]
        return modes.map { [$0, 3, 7] + script + close } + [[3, 1, 9] + wire, [11, 1, 1] + wire, [19, 1, 30] + wire]
            + faults.map { [6, 0, 0] + $0 } + [[4, 1, 2] + frame(0xC1, [0x4A, 4, 0]) + frame(0x80, [])]
    }()
}
