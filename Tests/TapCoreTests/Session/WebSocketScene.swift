import TapCore
import TapDiagnosis
import TapRecord
import TapRules
import TapTestKit
import XMPPCore

/// A session over WebSocket, with both peers played by the test.
struct WebSocketScene: ~Copyable {
    /// A frame as a peer reads it.
    struct Frame: Equatable {
        var opcode: WebSocketOpcode
        var isFinal: Bool
        var payload: String
    }

    var harness: SessionHarness

    init(level: Level = .trace, rules: String? = nil, _ change: (inout SessionOptions) -> Void = { _ in }) throws {
        var options = SessionOptions(level: level)
        options.framing = .messages
        if let rules { options.rules = LiveRules(try RuleSet.test(rules)) { _ in RuleLocalTime() } }
        change(&options)
        harness = SessionHarness(options: options)
    }

    // MARK: Peers

    static func frame(
        _ text: String,
        _ opcode: WebSocketOpcode = .text,
        isFinal: Bool = true,
        from direction: Direction
    ) -> [UInt8] {
        WebSocketConversation.frame(text, opcode, isFinal: isFinal, from: direction)
    }

    mutating func send(_ text: String) { harness.receive(.send, Self.frame(text, from: .send)) }

    mutating func recv(_ text: String) { harness.receive(.recv, Self.frame(text, from: .recv)) }

    /// Passes bytes in pieces of this length.
    mutating func receive(_ direction: Direction, _ bytes: [UInt8], pieces length: Int) {
        for start in stride(from: 0, to: bytes.count, by: length) {
            harness.receive(direction, Array(bytes[start..<min(start + length, bytes.count)]))
        }
    }

    static let open = WebSocketConversation.open
    static let close = WebSocketConversation.close

    mutating func logIn() {
        for (direction, text) in WebSocketConversation.login { direction == .send ? send(text) : recv(text) }
    }

    // MARK: Output

    /// The frames that a leg has received so far.
    func frames(to leg: Leg) -> [Frame] {
        let bytes = leg == .server ? harness.toServer : harness.toClient
        var decoder = WebSocketFrameDecoder(leg == .server ? .client : .server)
        var index = 0
        var frames: [Frame] = []
        var payload: [UInt8] = []
        while true {
            let signal = decoder.next(bytes.span.extracting(index..<bytes.count), into: &payload)
            switch signal {
            case .incomplete: return frames
            case .header(let length):
                index += length
                payload = []
                frames.append(Frame(opcode: decoder.frame.opcode, isFinal: decoder.frame.isFinal, payload: ""))
            case .payload(let length, _):
                index += length
                frames[frames.count - 1].payload = String(decoding: payload, as: UTF8.self)
            case .control(let length):
                index += length
                frames[frames.count - 1].payload =
                    decoder.frame.opcode == .close
                    ? "\(decoder.closeCode.rawValue) \(decoder.closeReason.string())" : decoder.controlPayload.string()
            case .fault(let fault):
                frames.append(Frame(opcode: .close, isFinal: true, payload: "FAULT \(fault.explanation)"))
                return frames
            }
        }
    }

    /// The whole messages that a leg has received so far.
    func messages(to leg: Leg) -> [String] {
        var messages: [String] = []
        var text = ""
        for frame in frames(to: leg) where !frame.opcode.isControl {
            text += frame.payload
            guard frame.isFinal else { continue }
            messages.append(text)
            text = ""
        }
        return messages
    }

    /// The records with this code.
    func records(_ code: String) -> [SessionHarness.Told] { harness.told.filter { $0.record.code == code } }
}
