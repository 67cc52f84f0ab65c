import XMPPCore

/// A frame for tests, written bit by bit, so that every violation can be expressed.
struct TestFrame {
    var first: UInt8
    var payload: [UInt8]
    var maskKey: UInt32?
    /// The 7 bits of the length, and the extended length; nil for the shortest form.
    var length: [UInt8]?

    init(_ first: UInt8, _ payload: [UInt8] = [], maskKey: UInt32? = nil, length: [UInt8]? = nil) {
        self.first = first
        self.payload = payload
        self.maskKey = maskKey
        self.length = length
    }

    init(_ first: UInt8, _ text: String, maskKey: UInt32? = nil) {
        self.init(first, Array(text.utf8), maskKey: maskKey)
    }

    var bytes: [UInt8] {
        var length = self.length ?? Self.shortest(payload.count)
        var key: [UInt8] = []
        if let maskKey {
            length[0] |= 0x80
            key = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: maskKey >> $0) }
        }
        let masked = key.isEmpty ? payload : payload.enumerated().map { $1 ^ key[$0 % 4] }
        return [first] + length + key + masked
    }

    static func shortest(_ count: Int) -> [UInt8] {
        switch count {
        case ...125: [UInt8(count)]
        case ...65535: [126, UInt8(count >> 8), UInt8(count & 255)]
        default: [127] + (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        }
    }
}

/// The output of a frame decoder in a comparable form: headers, control frames and faults as lines, payload joined.
struct FrameTranscript: Equatable, CustomStringConvertible {
    enum Form: CaseIterable { case copied, inPlace }

    var lines: [String] = []
    var messages: [[UInt8]] = []
    var isBetweenMessages = true
    var offset: UInt64 = 0

    var description: String { lines.joined(separator: "\n") }
    var fault: String? { lines.last.flatMap { $0.hasPrefix("fault") ? $0 : nil } }

    init(
        _ input: [UInt8],
        from sender: WebSocketSender,
        cuts: [Int] = [],
        messageBytes: Int = 1 << 20,
        acceptsCompression: Bool = false,
        form: Form = .copied
    ) {
        var decoder = WebSocketFrameDecoder(sender, messageBytes: messageBytes)
        decoder.acceptsCompression = acceptsCompression
        var payload: [UInt8] = []
        var consumed = 0
        reading: for end in cuts + [input.count] {
            while true {
                let signal: WebSocketFrameDecoder.Signal
                switch form {
                case .copied: signal = decoder.next(input.span.extracting(consumed..<end), into: &payload)
                case .inPlace:
                    var window = Array(input[consumed..<end])
                    var span = window.mutableSpan
                    signal = decoder.next(inPlace: &span)
                    if case .payload(let length, _) = signal { payload += window[..<length] }
                }
                switch signal {
                case .incomplete: continue reading
                case .header(let length):
                    let frame = decoder.frame
                    lines.append(
                        "\(frame.offset) \(frame.opcode)\(frame.isFinal ? " final" : "") \(frame.payloadLength)"
                            + (frame.maskKey.map { " key \(String($0, radix: 16))" } ?? "")
                            + (frame.isCompressed ? " compressed" : "") + " header \(frame.headerLength)"
                    )
                    consumed += length
                case .payload(let length, let endsMessage):
                    consumed += length
                    guard endsMessage else { continue }
                    lines.append("\(decoder.messageKind) \(decoder.fragments) \(decoder.messageLength)")
                    messages.append(payload)
                    payload = []
                case .control(let length):
                    consumed += length
                    var line = "\(decoder.frame.opcode): \(decoder.controlPayload.string())"
                    if decoder.frame.opcode == .close {
                        line = "close \(decoder.closeCode.rawValue): \(decoder.closeReason.string())"
                    }
                    lines.append(line)
                case .fault(let fault):
                    lines.append("fault \(fault.code.rawValue) at \(fault.offset) \(fault.limit)")
                    break reading
                }
            }
        }
        messages.append(payload)
        isBetweenMessages = decoder.isBetweenMessages
        offset = decoder.offset
    }

    /// Returns the first split of the input that gives other events; nil if there is none. Also compares the two forms
    /// of decoding.
    static func difference(
        _ input: [UInt8],
        from sender: WebSocketSender,
        messageBytes: Int = 1 << 20,
        acceptsCompression: Bool = false,
        cuts: [[Int]]? = nil
    ) -> String? {
        func read(_ cuts: [Int], _ form: Form) -> FrameTranscript {
            FrameTranscript(
                input,
                from: sender,
                cuts: cuts,
                messageBytes: messageBytes,
                acceptsCompression: acceptsCompression,
                form: form
            )
        }
        let whole = read([], .copied)
        let all = Array(1..<max(1, input.count))
        for cuts in cuts ?? [[], all] + all.map({ [$0] }) {
            for form in Form.allCases {
                let cut = read(cuts, form)
                if cut != whole { return "cut at \(cuts), \(form):\n\(cut)\nbut in one piece:\n\(whole)" }
            }
        }
        return nil
    }
}
