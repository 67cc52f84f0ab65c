import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCapture

@Suite("Compressed WebSockets")
struct PacketInflationTests {
    private static let messages = [
        "<a xmlns='u'/>", String(repeating: "<body>hello</body>", count: 300), "", "<message xmlns='jabber:client'/>",
    ]

    /// Returns the frames without compression, and the reason of a fault, if the bytes arrive in these pieces.
    private static func decode(_ bytes: [UInt8], pieces length: Int, _ direction: Direction) -> ([UInt8], String?) {
        let inflation = PacketInflation(PerMessageDeflate())
        var output: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: length) {
            let piece = Array(bytes[start..<min(start + length, bytes.count)])
            let (frames, failure) = inflation.receive(direction, piece)
            output += frames
            if let failure { return (output, "\(failure.text)") }
        }
        return (output, nil)
    }

    /// Returns the messages in frames that are not compressed, up to the first fault.
    private static func messages(in bytes: [UInt8], _ sender: WebSocketSender) -> [[UInt8]] {
        var frames = WebSocketFrameDecoder(sender)
        var (start, messages, message): (Int, [[UInt8]], [UInt8]) = (0, [], [])
        while true {
            switch frames.next(bytes.span.extracting(start...), into: &message) {
            case .header(let length), .control(let length): start += length
            case .payload(let length, let endsMessage):
                start += length
                guard endsMessage else { continue }
                messages.append(message)
                message = []
            case .incomplete, .fault: return messages
            }
        }
    }

    @Test("Changed compressed frames give the same messages in every split", arguments: [Direction.send, .recv])
    func survivesMutations(direction: Direction) {
        var generator = SeededGenerator(seed: 7692)
        let sender: WebSocketSender = direction == .send ? .client : .server
        var faults = 0
        for _ in 0..<600 {
            let frames = DeflatedFrames(direction, 15, false)
            var bytes = Self.messages.flatMap { frames.frames(of: $0) }
            for _ in 0..<Int.random(in: 0...3, using: &generator) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let whole = Self.decode(bytes, pieces: bytes.count, direction)
            let expected = Self.messages(in: whole.0, sender)
            if whole.1 != nil { faults += 1 }
            for length in [1, 5] {
                let part = Self.decode(bytes, pieces: length, direction)
                #expect(Self.messages(in: part.0, sender) == expected)
                #expect((part.1 == nil) == (whole.1 == nil))
            }
        }
        #expect(faults > 50)
    }

    @Test("The decompressed bytes of one message are limited")
    func limitsMessages() throws {
        let inflater = try #require(MessageInflater(keepsContext: true, messageBytes: 1_000))
        var output: [UInt8] = []
        // The first byte of an unfragmented message of the server follows two bytes of header.
        let frames = DeflatedFrames(.recv, 15, false)
        _ = frames.frames(of: "x")
        let message = frames.frames(of: String(repeating: "x", count: 20_000))
        #expect(throws: MessageInflater.Fault.self) {
            try inflater.inflate(Array(message.dropFirst(2)), endsMessage: true, into: &output)
        }
        #expect(output.count <= 1_000 + (16 << 10))
    }

    @Test("A final block ends no message, and later messages can refer to it")
    func readsFinalBlocks() throws {
        // RFC 7692 §7.2.3.1 and §7.2.3.2: "Hello", and the same again with a reference; §7.2.3.4: with a final block.
        let inflater = try #require(MessageInflater(keepsContext: true, messageBytes: 100))
        for bytes: [UInt8] in [
            [0xF2, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00],
            [0xF3, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x00], [0xF2, 0x00, 0x11, 0x00, 0x00],
        ] {
            var output: [UInt8] = []
            try inflater.inflate(bytes, endsMessage: true, into: &output)
            #expect(output == Array("Hello".utf8))
        }
    }
}
