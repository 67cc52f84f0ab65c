import TapTestKit
import Testing
import XMPPCore

@Suite struct WebSocketFrameWriterTests {
    @Test(arguments: [0, 1, 125, 126, 65535, 65536])
    func `a message is one frame with the shortest encoding of its length`(_ count: Int) {
        let payload = (0..<count).map { UInt8($0 % 127) }
        var output: [UInt8] = []
        WebSocketFrameWriter.append(message: payload.span, as: .server, to: &output)
        #expect(output == TestFrame(0x81, payload).bytes)
        output = [9]
        WebSocketFrameWriter.append(
            message: payload.span,
            isBinary: true,
            as: .client(maskKey: 0xA1B2_C3D4),
            to: &output
        )
        #expect(output == [9] + TestFrame(0x82, payload, maskKey: 0xA1B2_C3D4).bytes)
    }

    @Test func `control frames have at most 125 bytes`() {
        let payload = [UInt8](repeating: 65, count: 126)
        var output: [UInt8] = []
        #expect(WebSocketFrameWriter.append(ping: payload.span.extracting(0..<125), as: .server, to: &output))
        #expect(output == TestFrame(0x89, Array(payload[1...])).bytes)
        output = []
        #expect(WebSocketFrameWriter.append(pong: payload.span.extracting(0..<2), as: .client(maskKey: 5), to: &output))
        #expect(output == TestFrame(0x8A, "AA", maskKey: 5).bytes)
        output = []
        #expect(!WebSocketFrameWriter.append(ping: payload.span, as: .server, to: &output))
        #expect(!WebSocketFrameWriter.append(pong: payload.span, as: .server, to: &output))
        #expect(output.isEmpty)
    }

    @Test func `a close frame has an allowed code and a reason cut at a character`() {
        var output: [UInt8] = []
        #expect(WebSocketFrameWriter.append(close: .goingAway, reason: "restart", as: .server, to: &output))
        #expect(output == TestFrame(0x88, [0x03, 0xE9] + Array("restart".utf8)).bytes)
        output = []
        #expect(WebSocketFrameWriter.append(close: .noStatus, reason: "none", as: .server, to: &output))
        #expect(output == [0x88, 0])
        output = []
        for code in [WebSocketCloseCode.abnormal, .failedTLS, .init(rawValue: 0), .init(rawValue: 5000)] {
            #expect(!WebSocketFrameWriter.append(close: code, as: .server, to: &output))
        }
        #expect(output.isEmpty)
        let long = String(repeating: "\u{20AC}", count: 50)
        #expect(WebSocketFrameWriter.append(close: .normal, reason: long, as: .client(maskKey: 77), to: &output))
        let transcript = FrameTranscript(output, from: .client)
        #expect(transcript.lines.last == "close 1000: " + String(repeating: "\u{20AC}", count: 41))
    }

    /// Messages of random bytes and texts, in random fragments with control frames between them, split at random.
    @Test(arguments: 0..<40) func `written frames are decoded to the same messages`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: 7395 + seed)
        for sender in [WebSocketSender.client, .server] {
            var (input, messages, controls): ([UInt8], [[UInt8]], [String]) = ([], [], [])
            func role() -> WebSocketFrameWriter.Role {
                sender == .server ? .server : .client(maskKey: UInt32.random(in: 0...UInt32.max, using: &generator))
            }
            for _ in 0..<12 {
                let isBinary = Bool.random(using: &generator)
                let count = Int.random(in: 0...300, using: &generator) * (Int.random(in: 0..<9, using: &generator) / 4)
                let payload =
                    isBinary ? generator.bytes(count: count) : Array(generator.hostileText(count: count).utf8)
                messages.append(payload)
                guard Bool.random(using: &generator) else {
                    WebSocketFrameWriter.append(message: payload.span, isBinary: isBinary, as: role(), to: &input)
                    continue
                }
                var start = 0
                var opcode = isBinary ? WebSocketOpcode.binary : .text
                while true {
                    let end = min(payload.count, start + Int.random(in: 0...90, using: &generator))
                    let isLast = end == payload.count && Bool.random(using: &generator)
                    let key = UInt32.random(in: 0...UInt32.max, using: &generator)
                    let first = opcode.rawValue | (isLast ? 0x80 : 0)
                    let piece = Array(payload[start..<end])
                    input += TestFrame(first, piece, maskKey: sender == .client ? key : nil).bytes
                    start = end
                    opcode = .continuation
                    if isLast { break }
                    guard Int.random(in: 0..<4, using: &generator) == 0 else { continue }
                    let ping = [UInt8](repeating: 66, count: Int.random(in: 0...125, using: &generator))
                    controls.append("ping: " + String(decoding: ping, as: UTF8.self))
                    #expect(WebSocketFrameWriter.append(ping: ping.span, as: role(), to: &input))
                }
            }
            let transcript = FrameTranscript(input, from: sender)
            #expect(transcript.messages == messages + [[]])
            #expect(transcript.lines.filter { $0.hasPrefix("ping: ") } == controls)
            #expect(transcript.offset == UInt64(input.count) && transcript.isBetweenMessages)
            let cuts = (0..<10).map { _ in
                (0..<Int.random(in: 1...60, using: &generator))
                    .map { _ in Int.random(in: 0...input.count, using: &generator) }.sorted()
            }
            if let difference = FrameTranscript.difference(input, from: sender, cuts: cuts) {
                Issue.record("\(difference)")
            }
        }
    }
}
